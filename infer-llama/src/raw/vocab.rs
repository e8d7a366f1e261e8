//! A model's vocabulary. It has no owner of its own: it lives and dies with the model.

use super::{Model, call, status};
use infer_core::{Error, ErrorKind, Result, Token};
use infer_sys::llama::bindings::{
    INFER_LLAMA_TOO_SMALL, LLAMA_TOKEN_ATTR_BYTE, LLAMA_TOKEN_ATTR_UNKNOWN, LLAMA_VOCAB_TYPE_BPE,
    LLAMA_VOCAB_TYPE_NONE, LLAMA_VOCAB_TYPE_SPM, LLAMA_VOCAB_TYPE_UGM, LLAMA_VOCAB_TYPE_WPM, infer_llama_token_info,
    infer_llama_vocab_info, llama_vocab,
};
use std::mem::MaybeUninit;

/// Family, size and special tokens of a vocabulary, as the library has them.
#[derive(Clone, Copy)]
pub(crate) struct VocabFacts {
    pub(crate) family: Family,
    pub(crate) tokens: u32,
    pub(crate) bos: Option<Token>,
    pub(crate) eos: Option<Token>,
    pub(crate) eot: Option<Token>,
    pub(crate) sep: Option<Token>,
    pub(crate) pad: Option<Token>,
    pub(crate) add_bos: bool,
    pub(crate) add_eos: bool,
    pub(crate) add_sep: bool,
}

/// The tokenizer's algorithm.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Family {
    None,
    SentencePiece,
    BytePair,
    WordPiece,
    Unigram,
    Other,
}

/// What the library says of a token.
#[derive(Clone, Copy)]
pub(crate) struct TokenFacts {
    pub(crate) is_control: bool,
    pub(crate) is_unknown: bool,
    pub(crate) is_byte: bool,
    pub(crate) is_end: bool,
}

impl Model {
    fn vocab(&self) -> *const llama_vocab {
        // SAFETY: the model lives. The result points into it, and does not leave this module.
        unsafe { self.door.api.model_vocab(self.ptr.as_ptr()) }
    }

    pub(crate) fn vocab_facts(&self) -> Result<VocabFacts> {
        let mut info = infer_llama_vocab_info::default();
        let vocab = self.vocab();
        // SAFETY: the vocabulary lives as long as the model, which is `self`; `info` is a valid place.
        call("describe the vocabulary", |error| unsafe { self.door.api.vocab_info(vocab, &raw mut info, error) })?;
        let token = |id: i32| u32::try_from(id).ok().map(Token);
        Ok(VocabFacts {
            family: match u32::try_from(info.type_).unwrap_or(u32::MAX) {
                LLAMA_VOCAB_TYPE_NONE => Family::None,
                LLAMA_VOCAB_TYPE_SPM => Family::SentencePiece,
                LLAMA_VOCAB_TYPE_BPE => Family::BytePair,
                LLAMA_VOCAB_TYPE_WPM => Family::WordPiece,
                LLAMA_VOCAB_TYPE_UGM => Family::Unigram,
                _ => Family::Other,
            },
            tokens: u32::try_from(info.n_tokens).unwrap_or(0),
            bos: token(info.bos),
            eos: token(info.eos),
            eot: token(info.eot),
            sep: token(info.sep),
            pad: token(info.pad),
            add_bos: info.add_bos,
            add_eos: info.add_eos,
            add_sep: info.add_sep,
        })
    }

    pub(crate) fn token_facts(&self, token: Token) -> Result<TokenFacts> {
        let mut place = MaybeUninit::<infer_llama_token_info>::uninit();
        let (vocab, id) = (self.vocab(), id(token)?);
        // SAFETY: the vocabulary lives, `place` is valid; an id outside the vocabulary is refused.
        call("describe a token", |error| unsafe { self.door.api.vocab_token(vocab, id, place.as_mut_ptr(), error) })?;
        // SAFETY: the call has succeeded, so the entry has written it.
        let info = unsafe { place.assume_init() };
        Ok(TokenFacts {
            is_control: info.is_control,
            is_unknown: info.attr & LLAMA_TOKEN_ATTR_UNKNOWN != 0,
            is_byte: info.attr & LLAMA_TOKEN_ATTR_BYTE != 0,
            is_end: info.is_eog,
        })
    }

    /// Puts the bytes of a token in place of what `piece` holds; a control token's are its name.
    pub(crate) fn piece(&self, token: Token, piece: &mut Vec<u8>) -> Result<()> {
        let (vocab, id) = (self.vocab(), id(token)?);
        piece.clear();
        piece.reserve(64);
        loop {
            let mut len = 0;
            let (start, cap) = (piece.as_mut_ptr().cast(), piece.capacity());
            // SAFETY: the vocabulary lives; `start` and `cap` are the whole allocation of `piece`; `len` is a valid place.
            let outcome = status(|error| unsafe {
                self.door.api.token_to_piece(vocab, id, true, start, cap, &raw mut len, error)
            });
            match outcome {
                Ok(()) if len <= cap => {
                    // SAFETY: the entry has written `len` bytes, and they fit the allocation.
                    unsafe { piece.set_len(len) };
                    return Ok(());
                }
                Err(failure) if failure.status == INFER_LLAMA_TOO_SMALL && len > cap => piece.reserve(len),
                Err(failure) => return Err(failure.into_error("spell out a token")),
                Ok(()) => return Err(overrun("token_to_piece")),
            }
        }
    }

    /// Appends the tokens of a text. After an error `out` is as it was.
    pub(crate) fn tokenize(&self, text: &str, add: bool, parse: bool, out: &mut Vec<Token>) -> Result<()> {
        let vocab = self.vocab();
        let before = out.len();
        out.reserve(text.len() / 4 + 8);
        loop {
            let mut count = 0;
            let room = out.spare_capacity_mut();
            let (start, cap) = (room.as_mut_ptr().cast::<i32>(), room.len());
            let (bytes, len) = (text.as_ptr().cast(), text.len());
            // SAFETY: the vocabulary lives; the text is given with its length, the room with how many tokens fit. A `Token` is a
            // `u32` in memory, of which every value is one, so C may write `i32`s there.
            let outcome = status(|error| unsafe {
                self.door.api.tokenize(vocab, bytes, len, start, cap, add, parse, &raw mut count, error)
            });
            match outcome {
                Ok(()) if count <= cap => {
                    // SAFETY: the entry has written `count` tokens, and they fit the room.
                    unsafe { out.set_len(before + count) };
                    return Ok(());
                }
                Err(failure) if failure.status == INFER_LLAMA_TOO_SMALL && count > cap => out.reserve(count),
                Err(failure) => return Err(failure.into_error("encode a text")),
                Ok(()) => return Err(overrun("tokenize")),
            }
        }
    }
}

fn id(token: Token) -> Result<i32> {
    i32::try_from(token.0).map_err(|_| Error::invalid_input(format!("token {token} is outside every vocabulary")))
}

fn overrun(entry: &str) -> Error {
    Error::new(ErrorKind::Runtime, format!("{entry} says it wrote more than there was room for"))
}
