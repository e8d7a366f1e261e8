//! Text to tokens, by the library; tokens to text is plain Rust ([`Vocab`]).

use crate::{Llama, Model, ModelOptions, convert, error::BACKEND, raw};
use infer_core::{Error, ErrorKind, Result, Special, SpecialTokens, Token, TokenFlags, Vocab};
use std::{fmt, panic, path::Path, sync::Arc, thread};

/// Characters of a text that are encoded on the caller's own stack, whatever the vocabulary.
const SHALLOW: usize = 1024;
/// Stack that a character may take: more than twice of what the deepest pattern was seen to take.
const STACK_A_CHARACTER: usize = 1024;
/// The largest stack there may be. Only what is used of it takes memory.
const MOST_STACK: usize = 256 << 20;

/// The tokenizer of a model. Cheap to clone, and keeps alive what it needs: it may outlive the [`Model`] it came from.
///
/// It is `Send + Sync`: the library's vocabulary is not changed once it is loaded, and encoding takes it `const`.
#[derive(Clone)]
pub struct Tokenizer {
    model: Arc<raw::Model>,
    vocab: Arc<Vocab>,
    encodes: bool,
    /// Whether a text is first cut into words by a pattern, as byte-pair encoding does.
    cuts: bool,
}

impl Tokenizer {
    /// Opens only the tokenizer of a model file: quick, and without its weights, which need not even be there.
    ///
    /// # Errors
    /// Those of [`Model::open`].
    ///
    /// ```
    /// # #[cfg(feature = "link")]
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let path = build_support::fixtures::model("smollm2")?;
    /// use infer_core::{Special, Tokenizer as _};
    /// use infer_llama::{Llama, Tokenizer};
    ///
    /// let tokenizer = Tokenizer::open(&Llama::linked()?, path)?;
    /// let mut tokens = Vec::new();
    /// tokenizer.encode("Two and two", Special::NONE, &mut tokens)?;
    /// let bytes: Vec<u8> = tokens.iter().flat_map(|&token| tokenizer.vocab().bytes(token).unwrap()).copied().collect();
    /// assert_eq!(bytes, b"Two and two");
    /// # Ok(())
    /// # }
    /// # #[cfg(not(feature = "link"))]
    /// # fn main() {}
    /// ```
    pub fn open(llama: &Llama, path: impl AsRef<Path>) -> Result<Self> {
        Ok(Model::open_with(llama, path, &ModelOptions::new().with_vocab_only(true))?.tokenizer().clone())
    }

    pub(crate) fn new(model: Arc<raw::Model>, space_prefix: Option<bool>, name: &str) -> Result<Self> {
        let facts = model.vocab_facts()?;
        check_roles(&facts, name)?;
        let mut special = SpecialTokens::default();
        special.bos = facts.bos;
        special.eos = facts.eos;
        special.eot = facts.eot;
        special.sep = facts.sep;
        special.pad = facts.pad;
        special.add_bos = facts.add_bos;
        special.add_eos = facts.add_eos;
        let encodes = facts.family != raw::Family::None;
        let mut pieces = Vec::with_capacity(facts.tokens as usize);
        let mut piece = Vec::new();
        for token in (0..facts.tokens).map(Token) {
            // Without a vocabulary there are ids and nothing behind them: asking about one ends the process.
            let flags = if encodes {
                model.piece(token, &mut piece)?;
                flags(model.token_facts(token)?)
            } else {
                TokenFlags::TEXT
            };
            pieces.push((piece.clone().into_boxed_slice(), flags));
        }
        let mut vocab = Vocab::new(convert::vocab_kind(facts.family), special, pieces)?;
        if let Some(space_prefix) = space_prefix {
            vocab = vocab.with_space_prefix(space_prefix);
        }
        let cuts = facts.family == raw::Family::BytePair;
        Ok(Self { model, vocab: Arc::new(vocab), encodes, cuts })
    }

    /// Encodes on a stack that is deep enough. Words are cut out by a pattern, and the library's matcher calls itself once or more for
    /// each character of a word: a few thousand of them, which anybody can send, run over the stack of a thread and end the
    /// process.
    fn tokenize(&self, text: &str, special: Special, out: &mut Vec<Token>) -> Result<()> {
        let tokenize = |out| self.model.tokenize(text, special.add, special.parse, out);
        if !self.cuts || text.len() <= SHALLOW {
            return tokenize(out);
        }
        let stack = deepest(text)?.max(SHALLOW).saturating_mul(STACK_A_CHARACTER);
        thread::scope(|scope| {
            let deep = thread::Builder::new().name("infer encode".to_owned()).stack_size(stack);
            let running = deep.spawn_scoped(scope, || tokenize(out)).map_err(|error| {
                let message = format!("no thread with a stack of {stack} bytes can be had to encode the text: {error}");
                Error::new(ErrorKind::OutOfMemory, message).with_backend(BACKEND).with_source(error)
            })?;
            running.join().unwrap_or_else(|payload| panic::resume_unwind(payload))
        })
    }
}

/// The most characters one word can have: all of the text where that can be afforded; else those between two changes from space to
/// no space or back.
fn deepest(text: &str) -> Result<usize> {
    const MOST: usize = MOST_STACK / STACK_A_CHARACTER;
    let all = text.chars().count();
    if all <= MOST {
        return Ok(all);
    }
    let (mut longest, mut run, mut spaces) = (0, 0, false);
    for character in text.chars() {
        if character.is_whitespace() != spaces {
            (run, spaces) = (0, !spaces);
        }
        run += 1;
        longest = longest.max(run);
    }
    if longest <= MOST {
        return Ok(MOST);
    }
    Err(Error::invalid_input(format!(
        "the text has {longest} characters without a space (or only spaces) between them; at most {MOST} can be encoded"
    ))
    .with_backend(BACKEND))
}

impl infer_core::Tokenizer for Tokenizer {
    fn vocab(&self) -> &Arc<Vocab> {
        &self.vocab
    }

    fn encode(&self, text: &str, special: Special, out: &mut Vec<Token>) -> Result<()> {
        if !self.encodes {
            let message = "the model file has no vocabulary: its tokens cannot be made of text";
            return Err(Error::unsupported(message).with_backend(BACKEND));
        }
        // The library counts bytes and tokens in 31 bits, and adds a few tokens of its own.
        const MOST: usize = i32::MAX as usize - 1024;
        if text.len() > MOST {
            return Err(Error::invalid_input(format!(
                "a text of {} bytes; at most {MOST} are encoded at once",
                text.len()
            )));
        }
        let before = out.len();
        self.tokenize(text, special, out)?;
        // A damaged vocabulary may have no token for something, which the library shows as -1.
        if let Some(token) = out[before..].iter().copied().find(|token| token.index() >= self.vocab.len()) {
            out.truncate(before);
            let message = format!(
                "the vocabulary has no token for a part of the text (the library says {})",
                token.0.cast_signed()
            );
            return Err(Error::new(ErrorKind::Runtime, message).with_backend(BACKEND));
        }
        Ok(())
    }
}

fn flags(facts: raw::TokenFacts) -> TokenFlags {
    let mut flags = TokenFlags::TEXT;
    flags.control = facts.is_control || facts.is_unknown;
    flags.byte = facts.is_byte;
    flags.end = facts.is_end;
    flags
}

/// The library asserts that a token it is told to add exists.
fn check_roles(facts: &raw::VocabFacts, name: &str) -> Result<()> {
    let words = facts.family == raw::Family::WordPiece;
    let roles = [
        ("add_bos_token", facts.add_bos || words, facts.bos, "bos_token_id"),
        ("add_eos_token", facts.add_eos, facts.eos, "eos_token_id"),
        ("add_sep_token", facts.add_sep || words, facts.sep, "seperator_token_id"),
    ];
    for (flag, wanted, token, id) in roles {
        if wanted && token.is_none() {
            return Err(Error::new(
                ErrorKind::InvalidModel,
                format!("{name}: tokenizer.ggml.{flag} holds, and there is no tokenizer.ggml.{id}"),
            ));
        }
    }
    Ok(())
}

impl fmt::Debug for Tokenizer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Tokenizer")
            .field("kind", &self.vocab.kind())
            .field("tokens", &self.vocab.len())
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_word_is_as_long_as_the_text_or_ends_at_a_space() {
        const MOST: usize = MOST_STACK / STACK_A_CHARACTER;
        assert_eq!(deepest("é b").unwrap(), 3);
        assert_eq!(deepest(&"ab ".repeat(MOST)).unwrap(), MOST);
        assert_eq!(deepest(&"é".repeat(MOST)).unwrap(), MOST);
        for text in ["é".repeat(MOST + 1), " \n".repeat(MOST)] {
            let error = deepest(&format!("x {text} ")).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::InvalidInput);
        }
    }
}
