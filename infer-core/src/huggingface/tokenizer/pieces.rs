//! The bytes that each token stands for.

use super::file::{File, Model};
use serde_json::Value;

/// The character that stands for a space where the file does not name another.
const METASPACE: char = '▁';

/// How a token's text says which bytes it stands for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Spelling {
    /// A character a byte, those that cannot be seen moved behind the others.
    ByteLevel,
    /// A character stands for a space; `<0xE2>` for a byte where that is so.
    Metaspace { space: char, bytes: bool },
    /// A piece that goes on a word begins so; a space stands before the others.
    WordPiece { prefix: String },
    /// As it is. A piece that ends a word may end so.
    Plain { suffix: Option<String>, bytes: bool },
}

impl Spelling {
    /// How the tokens of this file are spelled.
    pub(super) fn of(file: &File<'_>, model: &Model) -> Self {
        let parts = || [&file.normalizer, &file.pre_tokenizer, &file.decoder].into_iter().flatten();
        if let Model::WordPiece(words) = model {
            let prefix = words.continuing_subword_prefix.clone().unwrap_or_else(|| "##".to_owned());
            return Self::WordPiece { prefix };
        }
        if parts().any(|part| find(part, "ByteLevel").is_some()) {
            return Self::ByteLevel;
        }
        let (suffix, mut bytes) = match model {
            Model::Bpe(bpe) => (bpe.end_of_word_suffix.clone(), bpe.byte_fallback),
            Model::Unigram(unigram) => (None, unigram.byte_fallback),
            Model::WordPiece(_) | Model::WordLevel(_) => (None, false),
        };
        bytes |= file.decoder.as_ref().is_some_and(|decoder| find(decoder, "ByteFallback").is_some());
        let named = parts().find_map(|part| find(part, "Metaspace"));
        if let Some(metaspace) = named {
            let space = metaspace.get("replacement").and_then(Value::as_str).and_then(|text| text.chars().next());
            return Self::Metaspace { space: space.unwrap_or(METASPACE), bytes };
        }
        let replaces =
            |part: &Value| find(part, "Replace").is_some_and(|replace| replace.to_string().contains(METASPACE));
        if parts().any(replaces) {
            return Self::Metaspace { space: METASPACE, bytes };
        }
        Self::Plain { suffix, bytes }
    }

    /// The bytes of a token of the model, and whether it stands for a single one because text had none that fits better.
    pub(super) fn bytes(&self, text: &str) -> (Vec<u8>, bool) {
        match self {
            Self::ByteLevel => {
                let mut bytes = Vec::with_capacity(text.len());
                for character in text.chars() {
                    match byte(character) {
                        Some(byte) => bytes.push(byte),
                        None => bytes.extend_from_slice(character.encode_utf8(&mut [0; 4]).as_bytes()),
                    }
                }
                (bytes, false)
            }
            Self::WordPiece { prefix } => match text.strip_prefix(prefix.as_str()) {
                Some(rest) => (rest.as_bytes().to_vec(), false),
                // What stands in brackets is a name, and no word.
                None if text.starts_with('[') && text.ends_with(']') => (text.as_bytes().to_vec(), false),
                None => (format!(" {text}").into_bytes(), false),
            },
            Self::Metaspace { bytes: true, .. } | Self::Plain { bytes: true, .. } if named(text).is_some() => {
                (named(text).into_iter().collect(), true)
            }
            Self::Metaspace { space, .. } => (text.replace(*space, " ").into_bytes(), false),
            Self::Plain { suffix: Some(suffix), .. } if !suffix.is_empty() => {
                match text.strip_suffix(suffix.as_str()) {
                    Some(word) => (format!("{word} ").into_bytes(), false),
                    None => (text.as_bytes().to_vec(), false),
                }
            }
            Self::Plain { .. } => (text.as_bytes().to_vec(), false),
        }
    }
}

/// The first object of this type in a part, itself included.
fn find<'v>(part: &'v Value, kind: &str) -> Option<&'v Value> {
    match part {
        Value::Object(fields) if fields.get("type").and_then(Value::as_str) == Some(kind) => Some(part),
        Value::Object(fields) => fields.values().find_map(|field| find(field, kind)),
        Value::Array(list) => list.iter().find_map(|one| find(one, kind)),
        _ => None,
    }
}

/// The byte that a character of a byte-level token stands for. Those of Latin 1 that can be seen stand for themselves; the other bytes, in
/// their order, are the characters from U+0100 on.
fn byte(character: char) -> Option<u8> {
    let is_seen = |byte: u8| matches!(byte, b'!'..=b'~' | 0xA1..=0xAC | 0xAE..=0xFF);
    match u32::from(character) {
        code @ ..0x100 => u8::try_from(code).ok().filter(|&byte| is_seen(byte)),
        code => (0..=255).filter(|&byte| !is_seen(byte)).nth(code as usize - 0x100),
    }
}

/// The byte in `<0xE2>`.
fn named(text: &str) -> Option<u8> {
    let digits = text.strip_prefix("<0x")?.strip_suffix('>')?;
    (digits.len() == 2).then(|| u8::from_str_radix(digits, 16).ok())?
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_byte_has_a_character_of_its_own() {
        let mut bytes: Vec<u8> = (0..0x200).filter_map(char::from_u32).filter_map(byte).collect();
        assert_eq!(bytes.len(), 256);
        bytes.sort_unstable();
        bytes.dedup();
        assert_eq!(bytes.len(), 256);
        assert_eq!(
            (byte('Ġ'), byte('Ċ'), byte('a'), byte('é'), byte('\u{AD}')),
            (Some(32), Some(10), Some(97), Some(233), None)
        );
        assert_eq!((byte('Ń'), byte('€'), byte(' ')), (Some(0xAD), None, None));
    }

    #[test]
    fn pieces_are_spelled_in_four_ways() {
        let spelled = |spelling: &Spelling, text| spelling.bytes(text);
        let byte_level = Spelling::ByteLevel;
        assert_eq!(spelled(&byte_level, "ĠÃ©"), (b" \xC3\xA9".to_vec(), false));
        assert_eq!(spelled(&byte_level, "€"), ("€".as_bytes().to_vec(), false));
        let spaces = Spelling::Metaspace { space: '▁', bytes: true };
        assert_eq!(spelled(&spaces, "▁a▁b"), (b" a b".to_vec(), false));
        assert_eq!(spelled(&spaces, "<0xE2>"), (b"\xE2".to_vec(), true));
        assert_eq!(spelled(&spaces, "<0xG2>"), (b"<0xG2>".to_vec(), false));
        let words = Spelling::WordPiece { prefix: "##".to_owned() };
        assert_eq!(spelled(&words, "##ing"), (b"ing".to_vec(), false));
        assert_eq!(spelled(&words, "go"), (b" go".to_vec(), false));
        assert_eq!(spelled(&words, "[CLS]"), (b"[CLS]".to_vec(), false));
        let plain = Spelling::Plain { suffix: Some("</w>".to_owned()), bytes: false };
        assert_eq!(spelled(&plain, "go</w>"), (b"go ".to_vec(), false));
        assert_eq!(spelled(&plain, "<0xE2>"), (b"<0xE2>".to_vec(), false));
    }
}
