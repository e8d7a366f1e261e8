//! What is refused in a `tokenizer.json` before the `tokenizers` crate sees it: it takes such files at their word, and some of them would cost
//! memory or time without bound, or a stack.

use super::file::{Merge, Model};
use serde_json::{Map, Value};

/// How deep a part may be nested: a list in a list, mostly. The deepest in use have 6.
const MAX_DEPTH: usize = 24;
/// How many objects a part may have. The largest in use have some 50.
const MAX_OBJECTS: usize = 1024;
/// How long a list may be, outside the vocabulary.
const MAX_LIST: usize = 256;
/// How many regular expressions there may be, and how long they may be in bytes.
const MAX_REGEXES: usize = 32;
const MAX_REGEX: usize = 32 << 10;
/// How many times longer than a text what is made of it may be.
const MAX_GROWTH: usize = 4096;
/// The longest piece of a model that keeps its pieces in a tree, which is as deep as they are long, in bytes.
const MAX_PIECE: usize = 1024;
/// The longest word that WordPiece may look at: the work grows with its square. The model's own limit is 100 nearly everywhere.
const MAX_WORD: usize = 4096;

/// Refuses a normalizer, pre-tokenizer, post-processor or decoder that is larger than it can be meant to be.
pub(super) fn check_part(part: &Value) -> Result<(), String> {
    let mut seen = Seen { objects: 0, regexes: 0, growth: 1 };
    seen.look(part, 0)
}

/// What a part has had so far.
struct Seen {
    objects: usize,
    regexes: usize,
    growth: usize,
}

impl Seen {
    fn look(&mut self, value: &Value, depth: usize) -> Result<(), String> {
        if depth > MAX_DEPTH {
            return Err(format!("it is nested more than {MAX_DEPTH} deep"));
        }
        match value {
            Value::Array(list) if list.len() > MAX_LIST => {
                Err(format!("a list of {} elements; at most {MAX_LIST} are taken", list.len()))
            }
            Value::Array(list) => list.iter().try_for_each(|one| self.look(one, depth + 1)),
            Value::Object(fields) => {
                self.objects += 1;
                if self.objects > MAX_OBJECTS {
                    return Err(format!("it has more than {MAX_OBJECTS} objects"));
                }
                self.object(fields)?;
                fields.values().try_for_each(|field| self.look(field, depth + 1))
            }
            _ => Ok(()),
        }
    }

    fn object(&mut self, fields: &Map<String, Value>) -> Result<(), String> {
        if let Some(regex) = fields.get("Regex").and_then(Value::as_str) {
            self.regexes += 1;
            if self.regexes > MAX_REGEXES || regex.len() > MAX_REGEX {
                return Err(format!(
                    "more than {MAX_REGEXES} regular expressions, or one of more than {MAX_REGEX} bytes"
                ));
            }
        }
        match fields.get("type").and_then(Value::as_str) {
            Some("FixedLength") if fields.get("length").and_then(Value::as_u64) == Some(0) => {
                Err("it cuts a text into pieces of no length".into())
            }
            Some("Replace") => self.grow(replaced(fields)),
            Some("Prepend") => self.grow(1 + text(fields, "prepend").chars().count()),
            _ => Ok(()),
        }
    }

    /// Counts what makes a text `times` as long.
    fn grow(&mut self, times: usize) -> Result<(), String> {
        self.growth = self.growth.saturating_mul(times);
        if self.growth > MAX_GROWTH {
            return Err(format!("it can make a text more than {MAX_GROWTH} times as long"));
        }
        Ok(())
    }
}

/// How many times as long a text can become where a pattern is replaced.
fn replaced(fields: &Map<String, Value>) -> usize {
    let content = text(fields, "content").chars().count();
    let pattern = fields.get("pattern").and_then(|pattern| pattern.get("String")).and_then(Value::as_str);
    match pattern.map(|pattern| pattern.chars().count()) {
        Some(length @ 1..) => content.div_ceil(length).max(1),
        // A pattern that can match nothing is found beside every character.
        _ => 1 + content,
    }
}

fn text<'f>(fields: &'f Map<String, Value>, name: &str) -> &'f str {
    fields.get(name).and_then(Value::as_str).unwrap_or_default()
}

/// Refuses a model that would cost more than its size, or that the crate would read outside of its pieces.
pub(super) fn check_model(model: &Model) -> Result<(), String> {
    match model {
        Model::Bpe(bpe) => {
            let prefix = bpe.continuing_subword_prefix.as_deref().unwrap_or_default();
            let without = |merge: &&Merge| !merge.pair().is_some_and(|(_, second)| second.starts_with(prefix));
            match bpe.merges.iter().filter(|merge| !merge.is_comment()).find(without) {
                Some(Merge::Pair(first, second)) => {
                    Err(format!("model: the merge of {first:?} and {second:?}, which does not begin with {prefix:?}"))
                }
                Some(Merge::Line(line)) => Err(format!(
                    "model: {line:?} is no merge of two pieces, of which the second begins with {prefix:?}"
                )),
                None => Ok(()),
            }
        }
        Model::WordPiece(words) => match words.max_input_chars_per_word {
            Some(most) if most > MAX_WORD => {
                Err(format!("model: words of up to {most} characters; at most {MAX_WORD} are taken"))
            }
            _ => Ok(()),
        },
        Model::Unigram(unigram) => match unigram.vocab.iter().position(|(piece, _)| piece.len() > MAX_PIECE) {
            Some(id) => Err(format!("model: token {id} has more than {MAX_PIECE} bytes")),
            None => Ok(()),
        },
        Model::WordLevel(_) => Ok(()),
    }
}

impl Merge {
    /// The two pieces; `None` where a line is not of two.
    pub(super) fn pair(&self) -> Option<(&str, &str)> {
        match self {
            Self::Pair(first, second) => Some((first, second)),
            Self::Line(line) => line.split_once(' ').filter(|(_, second)| !second.contains(' ')),
        }
    }

    /// Whether it is the line that older lists begin with.
    pub(super) fn is_comment(&self) -> bool {
        matches!(self, Self::Line(line) if line.starts_with("#version"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn refused(part: Value) -> String {
        check_part(&part).unwrap_err()
    }

    #[test]
    fn what_is_in_use_is_taken() {
        let part = json!({"type": "Sequence", "normalizers": [
            {"type": "Prepend", "prepend": "▁"},
            {"type": "Replace", "pattern": {"String": " "}, "content": "▁"},
            {"type": "Replace", "pattern": {"Regex": " {2,}"}, "content": " "},
        ]});
        check_part(&part).unwrap();
    }

    #[test]
    fn what_would_cost_without_bound_is_refused() {
        let mut deep = json!({"type": "Lowercase"});
        for _ in 0..MAX_DEPTH {
            deep = json!({"type": "Sequence", "normalizers": [deep]});
        }
        assert!(refused(deep).contains("deep"));
        let double = json!({"type": "Replace", "pattern": {"String": "a"}, "content": "aa"});
        let many = vec![double; 13];
        assert!(refused(json!({"type": "Sequence", "normalizers": many})).contains("times as long"));
        let beside = json!({"type": "Replace", "pattern": {"String": ""}, "content": "a".repeat(MAX_GROWTH)});
        assert!(refused(beside).contains("times as long"));
        assert!(refused(json!({"type": "FixedLength", "length": 0})).contains("no length"));
        assert!(refused(json!({"ids": vec![1; MAX_LIST + 1]})).contains("list of 257"));
        assert!(refused(json!({"pattern": {"Regex": "a".repeat(MAX_REGEX + 1)}})).contains("regular expressions"));
    }
}
