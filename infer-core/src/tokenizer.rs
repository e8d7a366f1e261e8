use crate::{Error, Result, Token};
use std::sync::Arc;

/// How special tokens are treated when text is encoded.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Special {
    /// Add the tokens that the model wants around a text (beginning or end of sequence), where it wants any.
    pub add: bool,
    /// Recognise the text of control tokens, such as `<|im_end|>`. Leave it off for text that is not your own: with
    /// it on, a user's text can close a turn.
    pub parse: bool,
}

impl Special {
    /// Text as text, nothing added.
    pub const NONE: Self = Self { add: false, parse: false };
    /// Text as text, with the tokens the model wants around it: for a plain prompt.
    pub const ADD: Self = Self { add: true, parse: false };
    /// Control tokens recognised, nothing added: for the output of a chat template, which writes its own.
    pub const PARSE: Self = Self { add: false, parse: true };
}

/// Turns text into tokens. The way back is plain Rust: [`Detokenizer`](crate::Detokenizer).
pub trait Tokenizer: Send + Sync {
    /// The vocabulary.
    fn vocab(&self) -> &Arc<Vocab>;

    /// Appends the tokens of `text` to `out`.
    ///
    /// # Errors
    /// [`InvalidInput`](crate::ErrorKind::InvalidInput) for a text that is too long;
    /// [`Runtime`](crate::ErrorKind::Runtime) with what a native call said. `out` is then as it was.
    fn encode(&self, text: &str, special: Special, out: &mut Vec<Token>) -> Result<()>;
}

/// The family a vocabulary is of: decides how pieces are joined.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[non_exhaustive]
pub enum VocabKind {
    /// Byte-level byte-pair encoding (GPT-2, Llama 3, Qwen): pieces are joined as they are.
    Bpe,
    /// SentencePiece (Llama 2, Gemma): the first piece of a text may carry a space that was not in it.
    Spm,
    /// WordPiece (BERT): words are joined by spaces, except before punctuation.
    WordPiece,
    /// Anything else: pieces are joined as they are.
    Other,
}

/// What a token is, besides its bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[non_exhaustive]
pub struct TokenFlags {
    /// A control token: structure, not text. Left out of generated text unless asked for.
    pub control: bool,
    /// Ends a generation (end of sequence, end of turn, …).
    pub end: bool,
    /// Stands for a single byte.
    pub byte: bool,
}

impl TokenFlags {
    /// Plain text.
    pub const TEXT: Self = Self { control: false, end: false, byte: false };
    /// A control token.
    pub const CONTROL: Self = Self { control: true, end: false, byte: false };
    /// A control token that ends a generation.
    pub const END: Self = Self { control: true, end: true, byte: false };
    /// A single byte.
    pub const BYTE: Self = Self { control: false, end: false, byte: true };
}

/// Tokens with a role; `None` where the model has none.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[non_exhaustive]
pub struct SpecialTokens {
    /// Beginning of sequence.
    pub bos: Option<Token>,
    /// End of sequence.
    pub eos: Option<Token>,
    /// End of turn.
    pub eot: Option<Token>,
    /// Separator.
    pub sep: Option<Token>,
    /// Padding.
    pub pad: Option<Token>,
    /// Whether encoding with [`Special::add`] puts [`bos`](Self::bos) first.
    pub add_bos: bool,
    /// Whether encoding with [`Special::add`] puts [`eos`](Self::eos) last.
    pub add_eos: bool,
}

/// A vocabulary as plain data: the bytes and flags of each token. Enough for detokenising, stop strings and constraints
/// on any thread, without the model.
#[derive(Clone, Debug, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Vocab {
    kind: VocabKind,
    bytes: Vec<u8>,
    /// Token → where its bytes end; they begin where those of the token before end.
    ends: Vec<u32>,
    flags: Vec<TokenFlags>,
    special: SpecialTokens,
    space_prefix: bool,
    /// What was compiled for it; no part of what it is.
    #[cfg(feature = "constraint")]
    #[cfg_attr(feature = "serde", serde(skip))]
    pub(crate) constraints: crate::constraint::cache::Cache,
}

impl Vocab {
    /// A vocabulary of `pieces`, the bytes and flags of token 0, 1, 2, …. A control token's bytes are its name; the
    /// token for unknown text counts as one. [`space_prefix`](Self::space_prefix) is on for SentencePiece and off for
    /// the others.
    ///
    /// # Errors
    /// [`InvalidModel`](crate::ErrorKind::InvalidModel) when a special token is not among the pieces, or they take 4 GiB or more.
    pub fn new<B: AsRef<[u8]>>(
        kind: VocabKind,
        special: SpecialTokens,
        pieces: impl IntoIterator<Item = (B, TokenFlags)>,
    ) -> Result<Self> {
        let invalid = |message: String| Error::new(crate::ErrorKind::InvalidModel, message);
        let mut vocab = Self {
            kind,
            bytes: Vec::new(),
            ends: Vec::new(),
            flags: Vec::new(),
            special,
            space_prefix: matches!(kind, VocabKind::Spm),
            #[cfg(feature = "constraint")]
            constraints: Default::default(),
        };
        for (piece, flags) in pieces {
            vocab.bytes.extend_from_slice(piece.as_ref());
            let end = u32::try_from(vocab.bytes.len())
                .map_err(|_| invalid("the vocabulary's pieces take 4 GiB or more".into()))?;
            vocab.ends.push(end);
            vocab.flags.push(flags);
        }
        let roles = [
            ("bos", special.bos),
            ("eos", special.eos),
            ("eot", special.eot),
            ("sep", special.sep),
            ("pad", special.pad),
        ];
        for (role, token) in roles {
            if let Some(token) = token.filter(|token| token.index() >= vocab.len()) {
                return Err(invalid(format!("the {role} token is {token}, outside the vocabulary of {}", vocab.len())));
            }
        }
        Ok(vocab)
    }

    /// Says whether encoding puts a space before a text, where the model file has a word on it.
    #[must_use]
    pub fn with_space_prefix(mut self, space_prefix: bool) -> Self {
        self.space_prefix = space_prefix;
        self
    }

    /// Whether encoding puts a space before a text, so that its first word is the same token as within a text;
    /// [`Detokenizer`](crate::Detokenizer) takes it away again.
    #[must_use]
    pub fn space_prefix(&self) -> bool {
        self.space_prefix
    }

    /// The family it is of.
    #[must_use]
    pub fn kind(&self) -> VocabKind {
        self.kind
    }

    /// How many tokens there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.ends.len()
    }

    /// Whether there is no token at all.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.ends.is_empty()
    }

    /// The bytes a token stands for; they need not be valid UTF-8. `None` for an id outside the vocabulary.
    #[must_use]
    pub fn bytes(&self, token: Token) -> Option<&[u8]> {
        let end = *self.ends.get(token.index())?;
        let start = token.index().checked_sub(1).map_or(0, |before| self.ends[before]);
        // `get`: a vocabulary that was deserialised may be wrong in itself.
        self.bytes.get(start as usize..end as usize)
    }

    /// What a token is; plain text for an id outside the vocabulary.
    #[must_use]
    pub fn flags(&self, token: Token) -> TokenFlags {
        self.flags.get(token.index()).copied().unwrap_or_default()
    }

    /// Whether a token ends a generation.
    #[must_use]
    pub fn is_end(&self, token: Token) -> bool {
        self.flags(token).end
    }

    /// Whether a token is structure and not text.
    #[must_use]
    pub fn is_control(&self, token: Token) -> bool {
        self.flags(token).control
    }

    /// The tokens with a role.
    #[must_use]
    pub fn special(&self) -> &SpecialTokens {
        &self.special
    }
}
