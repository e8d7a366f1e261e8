use crate::{Error, Result, Token, Vocab, VocabKind};
use std::sync::Arc;

mod spaces;
#[cfg(test)]
mod tests;

use spaces::Cleaner;

/// Turns tokens into text, one at a time.
///
/// It never gives half a character and never loses a byte: what is not valid UTF-8 becomes U+FFFD exactly as
/// [`String::from_utf8_lossy`] of the whole text would have it, and bytes are held back only while they can still become
/// a character. [`push_bytes`](Self::push_bytes) has the bytes as they are.
///
/// Pieces are joined as the [kind](Vocab::kind) of vocabulary wants it. Byte-level BPE: as they are. Where encoding puts
/// a space before a text ([`Vocab::space_prefix`]) that space is taken away again. WordPiece: spaces before `? ! . ,` and
/// around apostrophes are cleaned as llama.cpp does it, which may hold back a few bytes.
///
/// It allocates only while its buffers grow to the length of the longest piece.
///
/// ```
/// use infer_core::{Detokenizer, SpecialTokens, Token, TokenFlags, Vocab, VocabKind};
/// use std::sync::Arc;
///
/// let pieces = [(&b"na\xC3"[..], TokenFlags::TEXT), (b"\xAFve", TokenFlags::TEXT), (b"<end>", TokenFlags::END)];
/// let vocab = Arc::new(Vocab::new(VocabKind::Bpe, SpecialTokens::default(), pieces)?);
/// let mut text = Detokenizer::new(vocab);
/// assert_eq!(text.push(Token(0))?, "na");
/// assert_eq!(text.push(Token(1))?, "ïve");
/// assert_eq!(text.push(Token(2))?, "");
/// assert_eq!(text.finish(), "");
/// # Ok::<_, infer_core::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct Detokenizer {
    vocab: Arc<Vocab>,
    special: bool,
    /// Control tokens that give their names all the same; sorted.
    shown: Vec<Token>,
    keep_leading_space: bool,
    /// A text has begun: its first piece of text has come.
    begun: bool,
    cleaner: Option<Cleaner>,
    /// Bytes that are not given as text yet: between calls, the beginning of a character.
    bytes: Vec<u8>,
    text: String,
}

impl Detokenizer {
    /// Enough for most pieces of most vocabularies.
    const RESERVE: usize = 256;

    /// At the beginning of a text of its own.
    #[must_use]
    pub fn new(vocab: Arc<Vocab>) -> Self {
        let cleaner = matches!(vocab.kind(), VocabKind::WordPiece).then(Cleaner::default);
        Self {
            vocab,
            special: false,
            shown: Vec::new(),
            keep_leading_space: false,
            begun: false,
            cleaner,
            bytes: Vec::with_capacity(Self::RESERVE),
            text: String::with_capacity(Self::RESERVE),
        }
    }

    /// Whether control tokens give their names (`<|im_end|>`); off, they give nothing.
    #[must_use]
    pub fn with_special(mut self, special: bool) -> Self {
        self.special = special;
        self
    }

    /// Control tokens that give their names although others do not: those whose name is one of `texts`, or a part of one. So
    /// a text keeps the marks it is to be taken apart by, such as `<|python_tag|>` or `[TOOL_CALLS]`, which are control tokens
    /// in one vocabulary and plain ones in another. It looks through the whole vocabulary once.
    #[must_use]
    pub fn with_shown<'t>(mut self, texts: impl IntoIterator<Item = &'t str>) -> Self {
        let texts: Vec<&str> = texts.into_iter().collect();
        let named = |token: &Token| match std::str::from_utf8(self.vocab.bytes(*token).unwrap_or_default()) {
            Ok(name) => !name.is_empty() && texts.iter().any(|text| text.contains(name)),
            Err(_) => false,
        };
        let control = (0..).map(Token).take(self.vocab.len()).filter(|&token| self.vocab.is_control(token));
        self.shown = if texts.is_empty() { Vec::new() } else { control.filter(named).collect() };
        self
    }

    /// Whether the space that encoding puts before a text is kept. Turn it on for a text that goes on from another one,
    /// such as the completion of a prompt: there the space is the model's own. It is off for a text of its own.
    #[must_use]
    pub fn with_leading_space(mut self, keep: bool) -> Self {
        self.keep_leading_space = keep;
        self
    }

    /// The vocabulary.
    #[must_use]
    pub fn vocab(&self) -> &Arc<Vocab> {
        &self.vocab
    }

    /// Takes the next token and gives the text that is certain now; often that of the token, sometimes nothing yet.
    ///
    /// # Errors
    /// [`InvalidInput`](crate::ErrorKind::InvalidInput) for a token outside the vocabulary; nothing has changed.
    pub fn push(&mut self, token: Token) -> Result<&str> {
        self.take(token)?;
        self.text.clear();
        let held = decode(&self.bytes, &mut self.text);
        self.bytes.drain(..self.bytes.len() - held);
        Ok(&self.text)
    }

    /// The text is complete: gives what was held back, and is at the beginning of a text again.
    pub fn finish(&mut self) -> &str {
        self.end();
        self.text.clear();
        if decode(&self.bytes, &mut self.text) > 0 {
            self.text.push(char::REPLACEMENT_CHARACTER);
        }
        self.bytes.clear();
        &self.text
    }

    /// Takes the next token and appends the bytes that are certain now to `out`, valid UTF-8 or not.
    ///
    /// # Errors
    /// [`InvalidInput`](crate::ErrorKind::InvalidInput) for a token outside the vocabulary; nothing has changed.
    pub fn push_bytes(&mut self, token: Token, out: &mut Vec<u8>) -> Result<()> {
        self.take(token)?;
        out.append(&mut self.bytes);
        Ok(())
    }

    /// [`finish`](Self::finish) for [`push_bytes`](Self::push_bytes).
    pub fn finish_bytes(&mut self, out: &mut Vec<u8>) {
        self.end();
        out.append(&mut self.bytes);
    }

    /// The text of all these tokens, from beginning to end.
    ///
    /// # Errors
    /// [`InvalidInput`](crate::ErrorKind::InvalidInput) for a token outside the vocabulary.
    pub fn decode(&mut self, tokens: &[Token]) -> Result<String> {
        self.reset();
        let mut bytes = Vec::new();
        for &token in tokens {
            self.push_bytes(token, &mut bytes)?;
        }
        self.finish_bytes(&mut bytes);
        // Most text is valid, and then it is not copied.
        Ok(String::from_utf8(bytes).unwrap_or_else(|error| String::from_utf8_lossy(error.as_bytes()).into_owned()))
    }

    /// Forgets the text so far: is at the beginning of a text again.
    pub fn reset(&mut self) {
        self.end();
        self.bytes.clear();
    }

    /// Appends what the token certainly gives to `self.bytes`.
    fn take(&mut self, token: Token) -> Result<()> {
        let Some(mut piece) = self.vocab.bytes(token) else {
            let len = self.vocab.len();
            return Err(Error::invalid_input(format!("token {token} is outside the vocabulary of {len}")));
        };
        if self.vocab.is_control(token) && !self.special && self.shown.binary_search(&token).is_err() {
            return Ok(());
        }
        if !self.begun && !piece.is_empty() {
            self.begun = true;
            if self.vocab.space_prefix() && !self.keep_leading_space {
                piece = piece.strip_prefix(b" ").unwrap_or(piece);
            }
        }
        match &mut self.cleaner {
            Some(cleaner) => cleaner.push(piece, &mut self.bytes),
            None => self.bytes.extend_from_slice(piece),
        }
        Ok(())
    }

    fn end(&mut self) {
        self.begun = false;
        if let Some(cleaner) = &mut self.cleaner {
            cleaner.finish(&mut self.bytes);
        }
    }
}

/// Appends the text of `bytes` to `out`, and returns how many bytes at the end may yet become a character.
fn decode(bytes: &[u8], out: &mut String) -> usize {
    let mut chunks = bytes.utf8_chunks().peekable();
    while let Some(chunk) = chunks.next() {
        out.push_str(chunk.valid());
        let invalid = chunk.invalid();
        if chunks.peek().is_none() && is_beginning(invalid) {
            return invalid.len();
        }
        if !invalid.is_empty() {
            out.push(char::REPLACEMENT_CHARACTER);
        }
    }
    0
}

/// Whether bytes that are no character can become one when more follow.
fn is_beginning(bytes: &[u8]) -> bool {
    std::str::from_utf8(bytes).is_err_and(|error| error.error_len().is_none())
}
