//! How the text of a WordPiece vocabulary is cleaned.
//!
//! llama.cpp goes over the whole text three times, each time looking at the bytes beside a space. Each pass needs no
//! more than the three bytes before, so here they run one behind the other on a stream: what a pass cannot decide yet it
//! holds back.

/// The three passes.
#[derive(Clone, Debug, Default)]
pub(super) struct Cleaner {
    punctuation: Punctuation,
    apostrophe: LoneApostrophe,
    contraction: Contraction,
}

impl Cleaner {
    /// Takes a piece of the text and appends what is certain to `out`.
    pub(super) fn push(&mut self, piece: &[u8], out: &mut Vec<u8>) {
        let Self { punctuation, apostrophe, contraction } = self;
        for &byte in piece {
            punctuation.push(byte, &mut |byte| apostrophe.push(byte, &mut |byte| contraction.push(byte, out)));
        }
    }

    /// The text is complete: appends what was held back, and begins anew.
    pub(super) fn finish(&mut self, out: &mut Vec<u8>) {
        let Self { punctuation, apostrophe, contraction } = self;
        punctuation.finish(&mut |byte| apostrophe.push(byte, &mut |byte| contraction.push(byte, out)));
        apostrophe.finish(&mut |byte| contraction.push(byte, out));
        contraction.finish(out);
    }
}

/// Takes away the space in ` ?`, ` !`, ` .` and ` ,`.
#[derive(Clone, Debug, Default)]
struct Punctuation {
    space: bool,
}

impl Punctuation {
    fn push(&mut self, byte: u8, out: &mut impl FnMut(u8)) {
        if self.space && !matches!(byte, b'?' | b'!' | b'.' | b',') {
            out(b' ');
        }
        self.space = byte == b' ';
        if !self.space {
            out(byte);
        }
    }

    fn finish(&mut self, out: &mut impl FnMut(u8)) {
        if std::mem::take(&mut self.space) {
            out(b' ');
        }
    }
}

/// Takes away both spaces in ` ' `.
#[derive(Clone, Debug, Default)]
enum LoneApostrophe {
    #[default]
    Text,
    Space,
    SpaceApostrophe,
}

impl LoneApostrophe {
    fn push(&mut self, byte: u8, out: &mut impl FnMut(u8)) {
        *self = match (&*self, byte) {
            (Self::Text, b' ') => Self::Space,
            (Self::Space, b'\'') => Self::SpaceApostrophe,
            (Self::Space, b' ') => {
                out(b' ');
                Self::Space
            }
            // The space after it is gone, and counts as none for what follows.
            (Self::SpaceApostrophe, b' ') => {
                out(b'\'');
                Self::Text
            }
            (held, _) => {
                held.held().iter().for_each(|&byte| out(byte));
                out(byte);
                Self::Text
            }
        };
    }

    fn held(&self) -> &'static [u8] {
        match self {
            Self::Text => b"",
            Self::Space => b" ",
            Self::SpaceApostrophe => b" '",
        }
    }

    fn finish(&mut self, out: &mut impl FnMut(u8)) {
        std::mem::take(self).held().iter().for_each(|&byte| out(byte));
    }
}

/// Takes away the space in ` 's`, ` 'm`, ` 're` and ` 've`; ` 't`, ` 'd` and ` 'll` keep it.
#[derive(Clone, Debug, Default)]
enum Contraction {
    #[default]
    Text,
    Space,
    SpaceApostrophe,
    /// ` 'r` or ` 'v`.
    SpaceApostropheLetter(u8),
}

impl Contraction {
    fn push(&mut self, byte: u8, out: &mut Vec<u8>) {
        *self = match (&*self, byte) {
            (Self::Space, b'\'') => Self::SpaceApostrophe,
            (Self::SpaceApostrophe, b'r' | b'v') => Self::SpaceApostropheLetter(byte),
            (Self::SpaceApostrophe, b's' | b'm') => {
                out.extend_from_slice(&[b'\'', byte]);
                Self::Text
            }
            (&Self::SpaceApostropheLetter(letter), b'e') => {
                out.extend_from_slice(&[b'\'', letter, b'e']);
                Self::Text
            }
            _ => {
                self.release(out);
                if byte == b' ' {
                    Self::Space
                } else {
                    out.push(byte);
                    Self::Text
                }
            }
        };
    }

    fn release(&self, out: &mut Vec<u8>) {
        match *self {
            Self::Text => {}
            Self::Space => out.push(b' '),
            Self::SpaceApostrophe => out.extend_from_slice(b" '"),
            Self::SpaceApostropheLetter(letter) => out.extend_from_slice(&[b' ', b'\'', letter]),
        }
    }

    fn finish(&mut self, out: &mut Vec<u8>) {
        std::mem::take(self).release(out);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn cleaned<'a>(pieces: impl IntoIterator<Item = &'a [u8]>) -> Vec<u8> {
        let (mut cleaner, mut out) = (Cleaner::default(), Vec::new());
        for piece in pieces {
            cleaner.push(piece, &mut out);
        }
        cleaner.finish(&mut out);
        out
    }

    /// The three passes over a whole text, each position decided from the text before the pass.
    fn whole(text: &[u8]) -> Vec<u8> {
        let remove = |text: &[u8], removed: &dyn Fn(usize) -> bool| -> Vec<u8> {
            (0..text.len()).filter(|&at| !removed(at)).map(|at| text[at]).collect()
        };
        let first = remove(text, &|at| text[at] == b' ' && text.get(at + 1).is_some_and(|next| b"?!.,".contains(next)));
        let mut gone = vec![false; first.len()];
        for at in 0..first.len() {
            if first[at..].starts_with(b" ' ") && !gone[at] {
                (gone[at], gone[at + 2]) = (true, true);
            }
        }
        let second = remove(&first, &|at| gone[at]);
        let endings: [&[u8]; 4] = [b" 's", b" 'm", b" 're", b" 've"];
        remove(&second, &|at| endings.iter().any(|ending| second[at..].starts_with(ending)))
    }

    /// What llama.cpp made of these texts.
    #[test]
    fn cleans_as_llama_cpp_does() {
        for (text, expected) in [
            (" hello , world !", " hello, world!"),
            (" it ' s", " it's"),
            (" it 's", " it's"),
            (" don 't we 'll", " don 't we 'll"),
            (" they 're we 've i 'm", " they're we've i'm"),
            (" ' ' ' ", "'''"),
            (" ' ' x", "'' x"),
            ("  .  ?", " . ?"),
            (" ?", "?"),
            (" 'r", " 'r"),
            (" 'r ,", " 'r,"),
            (" ", " "),
            ("", ""),
        ] {
            assert_eq!(String::from_utf8(cleaned([text.as_bytes()])).unwrap(), expected, "{text:?}");
        }
    }

    proptest! {
        #[test]
        fn any_split_gives_what_three_passes_over_the_whole_give(pieces in prop::collection::vec("[ '?.smrevtld]{0,4}", 0..10)) {
            let text = pieces.concat();
            let split = cleaned(pieces.iter().map(|piece| piece.as_bytes()));
            prop_assert_eq!(String::from_utf8(split), String::from_utf8(whole(text.as_bytes())), "{:?}", text);
        }
    }
}
