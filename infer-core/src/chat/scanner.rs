//! Where a JSON value ends, in a text that comes in pieces.

/// Lists in lists in … as deep as this are taken: no deeper than what parses the value afterwards.
const MAX_DEPTH: usize = 100;

/// Reads one object or list, byte by byte, and refuses what cannot become one as soon as that is certain. Numbers and
/// words are looked at only roughly; who wants the value parses it.
#[derive(Clone, Debug)]
pub(super) struct Scanner {
    stack: Vec<Level>,
    expect: Expect,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Level {
    Object,
    List,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Expect {
    Value,
    FirstItem,
    FirstKey,
    Key,
    Colon,
    Separator,
    String { key: bool, escape: bool },
    Word,
}

/// What a byte brought.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Scanned {
    /// The value goes on.
    More,
    /// A key begins, at this many objects and lists around it.
    Key(usize),
    /// A key ends.
    EndOfKey,
    /// The value is whole with this byte.
    Whole,
    /// This cannot be JSON.
    Broken,
}

impl Scanner {
    pub(super) fn new() -> Self {
        Self { stack: Vec::new(), expect: Expect::Value }
    }

    /// Takes the next byte of the value, the first of which is a bracket.
    pub(super) fn step(&mut self, byte: u8) -> Scanned {
        match self.expect {
            Expect::String { key, escape } => self.within_string(byte, key, escape),
            Expect::Word if matches!(byte, b'0'..=b'9' | b'a'..=b'z' | b'E' | b'+' | b'-' | b'.') => Scanned::More,
            Expect::Word => {
                self.expect = Expect::Separator;
                self.step(byte)
            }
            _ if byte.is_ascii_whitespace() && byte != b'\x0c' => Scanned::More,
            Expect::Value => self.value(byte),
            Expect::FirstItem if byte == b']' => self.close(Level::List),
            Expect::FirstItem => self.value(byte),
            Expect::FirstKey if byte == b'}' => self.close(Level::Object),
            Expect::FirstKey | Expect::Key if byte == b'"' => {
                self.expect = Expect::String { key: true, escape: false };
                Scanned::Key(self.stack.len())
            }
            Expect::Colon if byte == b':' => {
                self.expect = Expect::Value;
                Scanned::More
            }
            Expect::Separator => self.separator(byte),
            Expect::FirstKey | Expect::Key | Expect::Colon => Scanned::Broken,
        }
    }

    fn within_string(&mut self, byte: u8, key: bool, escape: bool) -> Scanned {
        match byte {
            _ if escape => self.expect = Expect::String { key, escape: false },
            b'\\' => self.expect = Expect::String { key, escape: true },
            b'"' if key => {
                self.expect = Expect::Colon;
                return Scanned::EndOfKey;
            }
            b'"' => self.expect = Expect::Separator,
            0..0x20 => return Scanned::Broken,
            _ => {}
        }
        Scanned::More
    }

    fn value(&mut self, byte: u8) -> Scanned {
        let (level, expect) = match byte {
            b'{' => (Level::Object, Expect::FirstKey),
            b'[' => (Level::List, Expect::FirstItem),
            // A value that is neither an object nor a list has no end of its own.
            _ if self.stack.is_empty() => return Scanned::Broken,
            b'"' => {
                self.expect = Expect::String { key: false, escape: false };
                return Scanned::More;
            }
            b'-' | b'0'..=b'9' | b't' | b'f' | b'n' => {
                self.expect = Expect::Word;
                return Scanned::More;
            }
            _ => return Scanned::Broken,
        };
        if self.stack.len() == MAX_DEPTH {
            return Scanned::Broken;
        }
        self.stack.push(level);
        self.expect = expect;
        Scanned::More
    }

    fn separator(&mut self, byte: u8) -> Scanned {
        match (byte, self.stack.last()) {
            (b',', Some(Level::Object)) => self.expect = Expect::Key,
            (b',', Some(Level::List)) => self.expect = Expect::Value,
            (b'}', _) => return self.close(Level::Object),
            (b']', _) => return self.close(Level::List),
            _ => return Scanned::Broken,
        }
        Scanned::More
    }

    fn close(&mut self, level: Level) -> Scanned {
        if self.stack.pop() != Some(level) {
            return Scanned::Broken;
        }
        self.expect = Expect::Separator;
        if self.stack.is_empty() { Scanned::Whole } else { Scanned::More }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// How many bytes the value has; `Err` with how many were taken when it broke.
    fn scan(text: &str) -> Result<Option<usize>, usize> {
        let mut scanner = Scanner::new();
        for (at, byte) in text.bytes().enumerate() {
            match scanner.step(byte) {
                Scanned::Whole => return Ok(Some(at + 1)),
                Scanned::Broken => return Err(at),
                _ => {}
            }
        }
        Ok(None)
    }

    #[test]
    fn a_value_ends_where_its_bracket_closes() {
        assert_eq!(scan(r#"{"a": [1, {"b": "}\"]"}], "c": null} and more"#), Ok(Some(36)));
        assert_eq!(scan("[ ]x"), Ok(Some(3)));
        assert_eq!(scan("{\n}"), Ok(Some(3)));
        assert_eq!(scan(r#"{"a": "é😀", "b": -1.5e+3}"#), Ok(Some(29)));
        assert_eq!(scan(r#"{"a": tr"#), Ok(None));
    }

    #[test]
    fn what_cannot_be_json_is_refused_where_that_is_certain() {
        for (text, at) in [
            ("{a", 1),
            ("{\"a\" 1", 5),
            ("{\"a\": }", 6),
            ("[1 2", 3),
            ("[1}", 2),
            ("[1,]", 3),
            ("{\"a\": \"\n", 7),
            ("\"text\"", 0),
            ("12", 0),
            ("{\"a\": 1,}", 8),
            ("[\x0c", 1),
        ] {
            assert_eq!(scan(text), Err(at), "{text:?}");
        }
        assert_eq!(scan(&"[".repeat(MAX_DEPTH + 1)), Err(MAX_DEPTH));
    }

    #[test]
    fn keys_are_told_with_their_depth() {
        let mut scanner = Scanner::new();
        let keys: Vec<_> = r#"[{"a": {"b": 1}, "c": "d"}]"#
            .bytes()
            .filter_map(|byte| match scanner.step(byte) {
                Scanned::Key(depth) => Some(depth),
                _ => None,
            })
            .collect();
        assert_eq!(keys, [2, 3, 2]);
    }

    fn json() -> impl Strategy<Value = serde_json::Value> {
        use serde_json::Value;
        let leaf = prop_oneof![
            Just(Value::Null),
            any::<bool>().prop_map(Value::from),
            any::<f64>().prop_map(Value::from),
            any::<i64>().prop_map(Value::from),
            any::<String>().prop_map(Value::from),
        ];
        leaf.prop_recursive(4, 32, 4, |inner| {
            prop_oneof![
                prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
                prop::collection::btree_map(any::<String>(), inner, 0..4)
                    .prop_map(|map| Value::from_iter(map.into_iter().collect::<Vec<_>>())),
            ]
        })
    }

    proptest! {
        #[test]
        fn every_list_is_found_whole(value in json(), pretty in any::<bool>(), rest in "[]} x]{0,4}") {
            let list = serde_json::Value::from(vec![value]);
            let text = if pretty { format!("{list:#}") } else { list.to_string() };
            prop_assert_eq!(scan(&format!("{text}{rest}")), Ok(Some(text.len())));
        }
    }
}
