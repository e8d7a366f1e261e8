//! The faked vocabulary: every byte is a token, and a few are special.

use std::ffi::{CString, c_char};

use super::support::{Failure, Outcome, array, fill, finish, get, put};
use crate::llama::bindings::{
    LLAMA_TOKEN_ATTR_BYTE, LLAMA_TOKEN_ATTR_CONTROL, LLAMA_TOKEN_ATTR_NORMAL, LLAMA_VOCAB_TYPE_SPM, infer_llama_error,
    infer_llama_token_info, infer_llama_vocab_info, llama_token_attr, llama_vocab,
};

const BYTES: i32 = 256;
const BOS: i32 = BYTES;
const EOS: i32 = BYTES + 1;
const EOT: i32 = BYTES + 2;

/// What a `llama_vocab` is here.
#[derive(Debug)]
pub(super) struct Vocab {
    texts: Vec<CString>,
}

impl Vocab {
    pub(super) fn new(extra: i32) -> Self {
        let mut texts: Vec<CString> = (0..=u8::MAX).map(|byte| text(format!("<0x{byte:02X}>"))).collect();
        texts.extend(["<s>", "</s>", "<eot>"].map(|name| text(name.to_owned())));
        texts.extend((0..extra).map(|n| text(format!("<extra_{n}>"))));
        Self { texts }
    }

    pub(super) fn len(&self) -> i32 {
        self.texts.len() as i32
    }

    fn text(&self, token: i32) -> Outcome<&CString> {
        usize::try_from(token)
            .ok()
            .and_then(|index| self.texts.get(index))
            .ok_or_else(|| Failure::argument(format!("token {token} is outside the vocabulary of {}", self.len())))
    }

    /// The bytes a token stands for; none for a special one, unless asked for.
    fn piece(&self, token: i32, special: bool) -> Outcome<Vec<u8>> {
        let text = self.text(token)?;
        Ok(match u8::try_from(token) {
            Ok(byte) => vec![byte],
            Err(_) if is_control(token) && !special => Vec::new(),
            Err(_) => text.as_bytes().to_vec(),
        })
    }
}

fn text(text: String) -> CString {
    CString::new(text).unwrap_or_default()
}

fn is_control(token: i32) -> bool {
    (BOS..=EOT).contains(&token)
}

fn attr(token: i32) -> llama_token_attr {
    if token < BYTES {
        LLAMA_TOKEN_ATTR_BYTE
    } else if is_control(token) {
        LLAMA_TOKEN_ATTR_CONTROL
    } else {
        LLAMA_TOKEN_ATTR_NORMAL
    }
}

/// # Safety
///
/// `vocab` is NULL or came from `model_vocab` of a model not yet freed.
unsafe fn vocab<'a>(vocab: *const llama_vocab) -> Outcome<&'a Vocab> {
    // SAFETY: `model_vocab` made the pointer from a `Vocab` that lives as long as the model and is never written.
    unsafe { get(vocab.cast::<Vocab>(), "vocab") }
}

pub(super) unsafe extern "C" fn vocab_info(
    pointer: *const llama_vocab,
    out: *mut infer_llama_vocab_info,
    error: *mut infer_llama_error,
) -> i32 {
    // SAFETY: the caller passes a vocabulary of this table.
    let outcome = unsafe { vocab(pointer) }.and_then(|vocab| {
        let info = infer_llama_vocab_info {
            type_: LLAMA_VOCAB_TYPE_SPM as i32,
            n_tokens: vocab.len(),
            bos: BOS,
            eos: EOS,
            eot: EOT,
            sep: -1,
            nl: i32::from(b'\n'),
            pad: -1,
            mask: -1,
            fim_pre: -1,
            fim_suf: -1,
            fim_mid: -1,
            fim_pad: -1,
            fim_rep: -1,
            fim_sep: -1,
            add_bos: true,
            add_eos: false,
            add_sep: false,
        };
        // SAFETY: `out` is the caller's, valid for writing or NULL.
        unsafe { put(out, info) }
    });
    // SAFETY: `error` is the caller's, valid for writing or NULL.
    unsafe { finish(error, outcome) }
}

pub(super) unsafe extern "C" fn vocab_token(
    pointer: *const llama_vocab,
    token: i32,
    out: *mut infer_llama_token_info,
    error: *mut infer_llama_error,
) -> i32 {
    // SAFETY: the caller passes a vocabulary of this table.
    let outcome = unsafe { vocab(pointer) }.and_then(|vocab| {
        let info = infer_llama_token_info {
            text: vocab.text(token)?.as_ptr(),
            score: 0.0,
            attr: attr(token),
            is_eog: token == EOS || token == EOT,
            is_control: is_control(token),
        };
        // SAFETY: `out` is the caller's, valid for writing or NULL.
        unsafe { put(out, info) }
    });
    // SAFETY: `error` is the caller's, valid for writing or NULL.
    unsafe { finish(error, outcome) }
}

#[allow(clippy::too_many_arguments, reason = "the signature is the table's")]
pub(super) unsafe extern "C" fn tokenize(
    pointer: *const llama_vocab,
    text: *const c_char,
    text_len: usize,
    tokens: *mut i32,
    cap: usize,
    add_special: bool,
    parse_special: bool,
    n: *mut usize,
    error: *mut infer_llama_error,
) -> i32 {
    // SAFETY: the caller passes a vocabulary of this table.
    let outcome = unsafe { vocab(pointer) }.and_then(|vocab| {
        // SAFETY: the text is the caller's, `text_len` bytes of it.
        let mut rest = unsafe { array(text.cast::<u8>(), text_len, "text") }?;
        let mut found = Vec::with_capacity(rest.len() + 1);
        if add_special {
            found.push(BOS);
        }
        while let [byte, after @ ..] = rest {
            let special = (BOS..vocab.len())
                .find(|token| parse_special && vocab.text(*token).is_ok_and(|text| rest.starts_with(text.as_bytes())));
            match special {
                Some(token) => {
                    found.push(token);
                    rest = &rest[vocab.text(token)?.as_bytes().len()..];
                }
                None => {
                    found.push(i32::from(*byte));
                    rest = after;
                }
            }
        }
        // SAFETY: the buffer and `n` are the caller's, valid for what it says of them or NULL.
        unsafe { fill(tokens, cap, n, &found) }
    });
    // SAFETY: `error` is the caller's, valid for writing or NULL.
    unsafe { finish(error, outcome) }
}

pub(super) unsafe extern "C" fn token_to_piece(
    pointer: *const llama_vocab,
    token: i32,
    special: bool,
    buf: *mut c_char,
    cap: usize,
    len: *mut usize,
    error: *mut infer_llama_error,
) -> i32 {
    // SAFETY: the caller passes a vocabulary of this table.
    let outcome = unsafe { vocab(pointer) }.and_then(|vocab| {
        let piece = vocab.piece(token, special)?;
        // SAFETY: the buffer and `len` are the caller's, valid for what it says of them or NULL.
        unsafe { fill(buf.cast::<u8>(), cap, len, &piece) }
    });
    // SAFETY: `error` is the caller's, valid for writing or NULL.
    unsafe { finish(error, outcome) }
}

#[allow(clippy::too_many_arguments, reason = "the signature is the table's")]
pub(super) unsafe extern "C" fn detokenize(
    pointer: *const llama_vocab,
    tokens: *const i32,
    n_tokens: usize,
    remove_special: bool,
    unparse_special: bool,
    buf: *mut c_char,
    cap: usize,
    len: *mut usize,
    error: *mut infer_llama_error,
) -> i32 {
    // SAFETY: the caller passes a vocabulary of this table.
    let outcome = unsafe { vocab(pointer) }.and_then(|vocab| {
        // SAFETY: the tokens are the caller's, `n_tokens` of them.
        let mut tokens = unsafe { array(tokens, n_tokens, "tokens") }?;
        if remove_special && let [BOS, rest @ ..] = tokens {
            tokens = rest;
        }
        let mut bytes = Vec::new();
        for token in tokens {
            bytes.extend(vocab.piece(*token, unparse_special)?);
        }
        // SAFETY: the buffer and `len` are the caller's, valid for what it says of them or NULL.
        unsafe { fill(buf.cast::<u8>(), cap, len, &bytes) }
    });
    // SAFETY: `error` is the caller's, valid for writing or NULL.
    unsafe { finish(error, outcome) }
}
