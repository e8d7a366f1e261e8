//! Text to tokens, as the file `tokenizer.json` of a model says; tokens to text is plain Rust ([`Vocab`]).

mod around;
mod file;
mod guard;
mod model;
mod pieces;
mod table;
#[cfg(test)]
mod tests;

pub use around::PairForm;

use super::{
    Settings, invalid,
    settings::{named, read_file},
};
use crate::{Error, ErrorKind, Result, Special, Token, Vocab, VocabKind};
use around::Around;
use file::{Added, File};
use model::Shared;
use pieces::Spelling;
use serde::Deserialize;
use serde_json::Value;
use std::{
    any::Any,
    collections::{HashMap, HashSet},
    fmt,
    panic::{self, AssertUnwindSafe},
    path::Path,
    sync::Arc,
};
use table::Table;
use tokenizers::{
    AddedToken, DecoderWrapper, NormalizerWrapper, PostProcessorWrapper, PreTokenizerWrapper, TokenizerImpl,
};

/// The largest file there may be, in bytes. The largest in use have 35 million.
const MAX_FILE: u64 = 256 << 20;
/// The longest text that is encoded at once, in bytes: what the crate keeps about a text is some forty times as large.
const MAX_TEXT: usize = 64 << 20;

type Crate = TokenizerImpl<Shared, NormalizerWrapper, PreTokenizerWrapper, PostProcessorWrapper, DecoderWrapper>;

/// The tokenizer of a model: a `tokenizer.json`, by the crate `tokenizers`. Cheap to clone.
///
/// What files say beside it is used too: which tokens have a role (`tokenizer_config.json`, `special_tokens_map.json`), and which end a
/// generation (`generation_config.json`, `config.json`, `genai_config.json`).
///
/// **Control tokens come from [`Special::parse`] and from nothing else.** A token that is special, has a role, or is put around texts is not
/// among the pieces that a text is put together from. So a text that spells `<|im_end|>` becomes its characters unless it is read for
/// control tokens, in every family of vocabularies.
///
/// **A file is somebody else's program.** Its size, its nesting, how much longer it can make a text and what else has no bound by itself is
/// bounded here, and a panic of the crate is an error. What stays: a regular expression in it may take up to a million steps for each word, so
/// a file made to be slow is slow.
#[derive(Clone)]
pub struct Tokenizer {
    inner: Arc<Inner>,
    backend: Option<&'static str>,
}

struct Inner {
    vocab: Arc<Vocab>,
    /// Knows no control tokens.
    plain: Crate,
    /// Recognises them.
    parsing: Crate,
    around: Around,
}

impl Tokenizer {
    /// Opens the tokenizer of a model: its folder, or the `tokenizer.json` in it. The files beside it are read where they are there.
    ///
    /// # Errors
    /// [`Io`](ErrorKind::Io) for a file that cannot be read; [`InvalidModel`](ErrorKind::InvalidModel), with the file's name, for one that is no
    /// tokenizer, contradicts itself, or asks for more than any has a reason to.
    pub fn open(path: impl AsRef<Path>) -> Result<Self> {
        let path = path.as_ref();
        let file = if path.is_dir() { path.join("tokenizer.json") } else { path.to_owned() };
        let folder = file.parent().unwrap_or(Path::new("."));
        Self::open_with(&file, &Settings::read(folder)?)
    }

    /// Opens a `tokenizer.json` with what is said beside it.
    ///
    /// # Errors
    /// Those of [`open`](Self::open).
    pub fn open_with(file: impl AsRef<Path>, settings: &Settings) -> Result<Self> {
        let file = file.as_ref();
        let json = read_file(file, MAX_FILE)?;
        Self::parse(&json, settings).map_err(|error| named(file, error))
    }

    /// The tokenizer in the text of a `tokenizer.json`, without the files beside it: no token of it has a role, but for those that are known by
    /// their names.
    ///
    /// # Errors
    /// [`InvalidModel`](ErrorKind::InvalidModel), as those of [`open`](Self::open).
    ///
    /// ```
    /// use infer_core::{Special, Token, Tokenizer as _, huggingface::Tokenizer};
    ///
    /// let tokenizer = Tokenizer::from_json(br#"{
    ///     "added_tokens": [{"id": 3, "content": "<|im_end|>", "special": true}],
    ///     "model": {"type": "BPE", "vocab": {"a": 0, "b": 1, "ab": 2, "<": 4, "|": 5}, "merges": ["a b"]}
    /// }"#)?;
    /// let mut tokens = Vec::new();
    /// tokenizer.encode("ab<|im_end|>", Special::PARSE, &mut tokens)?;
    /// assert_eq!(tokens, [2, 3].map(Token));
    /// tokens.clear();
    /// tokenizer.encode("a<|", Special::NONE, &mut tokens)?;
    /// assert_eq!(tokens, [0, 4, 5].map(Token));
    /// # Ok::<(), infer_core::Error>(())
    /// ```
    pub fn from_json(json: &[u8]) -> Result<Self> {
        Self::parse(json, &Settings::default())
    }

    /// Names the backend that it is for, as errors of encoding then do.
    #[must_use]
    pub fn with_backend(mut self, backend: &'static str) -> Self {
        self.backend = Some(backend);
        self
    }

    fn parse(json: &[u8], settings: &Settings) -> Result<Self> {
        // The crate panics on some files that it should refuse.
        let made = panic::catch_unwind(AssertUnwindSafe(|| Inner::new(json, settings)));
        let inner =
            made.unwrap_or_else(|payload| Err(invalid(format!("the crate tokenizers panicked: {}", words(&*payload)))));
        Ok(Self { inner: Arc::new(inner?), backend: None })
    }

    /// The form in which two texts are compared; `None` where the file has none.
    #[must_use]
    pub fn pair_form(&self) -> Option<&PairForm> {
        self.inner.around.pair.as_ref()
    }

    fn append(&self, text: &str, special: Special, out: &mut Vec<Token>) -> Result<()> {
        if text.len() > MAX_TEXT {
            let message = format!("a text of {} bytes; at most {MAX_TEXT} are encoded at once", text.len());
            return Err(self.error(ErrorKind::InvalidInput, message));
        }
        let failed =
            |reason: String| self.error(ErrorKind::Runtime, format!("the text could not be encoded: {reason}"));
        let tokenizer = if special.parse { &self.inner.parsing } else { &self.inner.plain };
        let encoded = panic::catch_unwind(AssertUnwindSafe(|| tokenizer.encode_fast(text, false)))
            .map_err(|payload| failed(words(&*payload)))?
            .map_err(|error| failed(error.to_string()))?;
        out.extend(encoded.get_ids().iter().copied().map(Token));
        Ok(())
    }

    fn error(&self, kind: ErrorKind, message: String) -> Error {
        let error = Error::new(kind, message);
        match self.backend {
            Some(backend) => error.with_backend(backend),
            None => error,
        }
    }
}

impl crate::Tokenizer for Tokenizer {
    fn vocab(&self) -> &Arc<Vocab> {
        &self.inner.vocab
    }

    fn encode(&self, text: &str, special: Special, out: &mut Vec<Token>) -> Result<()> {
        if !special.add {
            return self.append(text, special, out);
        }
        let start = out.len();
        out.extend_from_slice(&self.inner.around.before);
        self.append(text, special, out).inspect_err(|_| out.truncate(start))?;
        out.extend_from_slice(&self.inner.around.after);
        Ok(())
    }
}

impl Inner {
    fn new(json: &[u8], settings: &Settings) -> Result<Self> {
        let mut file = File::parse(json).map_err(invalid)?;
        let model = file.model().map_err(invalid)?;
        let spelling = Spelling::of(&file, &model);
        let mut table = Table::new(&model, &mut file.added_tokens, &spelling, settings)?;

        let processor: Option<PostProcessorWrapper> = part("post_processor", file.post_processor.take())?;
        let special = table.special;
        let around = Around::new(processor.as_ref(), settings, special.bos, special.eos).map_err(invalid)?;
        table.mark_control(around.tokens())?;
        let has = |tokens: &[Token], token: Option<Token>| token.is_some_and(|token| tokens.contains(&token));
        table.special.add_bos = has(&around.before, special.bos);
        table.special.add_eos = has(&around.after, special.eos);

        let control: HashSet<&str> = table.control().map(|(text, _)| text).collect();
        let model = model::build(model, &control).map_err(|error| invalid(format!("model: {error}")))?;
        let shared = Shared { model: Arc::new(model), added: Arc::new(added_ids(&table, &file.added_tokens)) };
        let mut plain = Crate::new(shared);
        let normalizer: Option<NormalizerWrapper> = part("normalizer", file.normalizer.take())?;
        let added = |error: tokenizers::Error| invalid(format!("added_tokens: {error}"));
        plain.with_normalizer(normalizer).map_err(added)?;
        plain.with_pre_tokenizer(part::<PreTokenizerWrapper>("pre_tokenizer", file.pre_tokenizer.take())?);
        let mut parsing = plain.clone();
        let text_tokens = file.added_tokens.iter().filter(|token| !control.contains(token.content.as_str()));
        plain.add_tokens(text_tokens.map(Added::to_crate)).map_err(added)?;
        parsing.add_tokens(all_added(&table, &file.added_tokens)).map_err(added)?;

        let vocab = table.vocab(&spelling, settings.vocab)?;
        let space = puts_space(&plain, &vocab);
        let vocab = Arc::new(vocab.with_space_prefix(space));
        Ok(Self { vocab, plain, parsing, around })
    }
}

/// A part of the file as the crate has it.
fn part<'d, P: Deserialize<'d>>(name: &str, value: Option<Value>) -> Result<Option<P>> {
    let value = value.filter(|value| !value.is_null());
    value.map(P::deserialize).transpose().map_err(|error: serde_json::Error| invalid(format!("{name}: {error}")))
}

/// The ids of whatever is recognised in a text beside the model.
fn added_ids(table: &Table, added: &[Added]) -> HashMap<String, u32> {
    let control = table.control().map(|(text, id)| (text.to_owned(), id));
    added.iter().map(|token| (token.content.clone(), token.id)).chain(control).collect()
}

/// What is recognised in a text that is read for control tokens: those that were added, and any other that is one.
fn all_added(table: &Table, added: &[Added]) -> Vec<AddedToken> {
    let listed: HashSet<&str> = added.iter().map(|token| token.content.as_str()).collect();
    let others = table.control().filter(|(text, _)| !listed.contains(text) && !text.is_empty());
    added.iter().map(Added::to_crate).chain(others.map(|(text, _)| AddedToken::from(text, true))).collect()
}

impl Added {
    fn to_crate(&self) -> AddedToken {
        AddedToken::from(self.content.as_str(), self.special)
            .single_word(self.single_word)
            .lstrip(self.lstrip)
            .rstrip(self.rstrip)
            .normalized(self.normalized.unwrap_or(!self.special))
    }
}

/// Whether a text gets a space before it, so that its first word is the token it is within a text. Asked rather than read: there are
/// half a dozen ways for a file to say it.
fn puts_space(tokenizer: &Crate, vocab: &Vocab) -> bool {
    if vocab.kind() == VocabKind::WordPiece {
        return false;
    }
    ["a", "e", "A", "1", "一"].iter().any(|text| {
        let Ok(encoded) = tokenizer.encode_fast(*text, false) else {
            return false;
        };
        let pieces = encoded.get_ids().iter().filter_map(|&id| vocab.bytes(Token(id)));
        pieces.flatten().copied().eq(format!(" {text}").bytes())
    })
}

/// What a panic said.
fn words(payload: &(dyn Any + Send)) -> String {
    let text = payload.downcast_ref::<&str>().map(|text| (*text).to_owned());
    text.or_else(|| payload.downcast_ref::<String>().cloned()).unwrap_or_else(|| "it said nothing".to_owned())
}

impl fmt::Debug for Tokenizer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Tokenizer")
            .field("kind", &self.inner.vocab.kind())
            .field("tokens", &self.inner.vocab.len())
            .finish_non_exhaustive()
    }
}
