use crate::{Error, Result, Token, Vocab};
use std::sync::Arc;

/// Turns tokens into text, one at a time.
///
/// It never gives half a character and never loses a byte: what is not valid UTF-8 becomes U+FFFD exactly as
/// [`String::from_utf8_lossy`] of the whole text would have it, and bytes are held back only while they can still become
/// a character.
#[derive(Clone, Debug)]
pub struct Detokenizer {
    vocab: Arc<Vocab>,
    special: bool,
    leading_space: bool,
    bytes: Vec<u8>,
    text: String,
}

impl Detokenizer {
    /// A detokenizer at the beginning of a text.
    #[must_use]
    pub fn new(vocab: Arc<Vocab>) -> Self {
        Self { vocab, special: false, leading_space: false, bytes: Vec::new(), text: String::new() }
    }

    /// Whether control tokens give their names (`<|im_end|>`); off, they give nothing.
    #[must_use]
    pub fn with_special(mut self, special: bool) -> Self {
        self.special = special;
        self
    }

    /// Whether the space that a SentencePiece vocabulary puts before a text is kept. Turn it on for a text that goes on
    /// from another one, such as the completion of a prompt; it is off at the beginning of a text of its own.
    #[must_use]
    pub fn with_leading_space(mut self, keep: bool) -> Self {
        self.leading_space = keep;
        self
    }

    /// Takes the next token and gives the text that is now certain; often that of the token, sometimes nothing yet.
    ///
    /// # Errors
    /// [`InvalidInput`](crate::ErrorKind::InvalidInput) for a token outside the vocabulary; nothing has changed.
    pub fn push(&mut self, token: Token) -> Result<&str> {
        let mut bytes = std::mem::take(&mut self.bytes);
        let pushed = self.push_bytes(token, &mut bytes);
        self.bytes = bytes;
        pushed?;
        self.text.clear();
        let mut rest = &self.bytes[..];
        loop {
            match std::str::from_utf8(rest) {
                Ok(text) => {
                    self.text.push_str(text);
                    rest = &[];
                    break;
                }
                Err(error) => {
                    let (valid, after) = rest.split_at(error.valid_up_to());
                    self.text.push_str(&String::from_utf8_lossy(valid));
                    rest = after;
                    let Some(len) = error.error_len() else { break };
                    self.text.push(char::REPLACEMENT_CHARACTER);
                    rest = &after[len..];
                }
            }
        }
        let held = self.bytes.len() - rest.len();
        self.bytes.drain(..held);
        Ok(&self.text)
    }

    /// The text is complete: gives what was held back, and is at the beginning of a text again.
    pub fn finish(&mut self) -> &str {
        self.text.clear();
        self.text.push_str(&String::from_utf8_lossy(&self.bytes));
        self.bytes.clear();
        &self.text
    }

    /// Takes the next token and appends the bytes that are now certain to `out`, valid UTF-8 or not.
    ///
    /// # Errors
    /// [`InvalidInput`](crate::ErrorKind::InvalidInput) for a token outside the vocabulary; nothing has changed.
    pub fn push_bytes(&mut self, token: Token, out: &mut Vec<u8>) -> Result<()> {
        let Some(bytes) = self.vocab.bytes(token) else {
            return Err(Error::invalid_input(format!(
                "token {token} is outside the vocabulary of {}",
                self.vocab.len()
            )));
        };
        if self.special || !self.vocab.is_control(token) {
            out.extend_from_slice(bytes);
        }
        Ok(())
    }
}
