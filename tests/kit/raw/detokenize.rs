use infer_sys::llama::{
    Api,
    bindings::{INFER_LLAMA_OK, INFER_LLAMA_TOO_SMALL, infer_llama_error, llama_model},
};
use std::{ffi::CString, path::Path, ptr};

/// `llama_detokenize`, straight on the table: what the detokenizer of a WordPiece vocabulary is compared with.
#[derive(Debug)]
pub struct LlamaDetokenizer {
    api: Api,
    model: *mut llama_model,
}

impl LlamaDetokenizer {
    /// Loads the vocabulary of a model. The library has been set up by whoever opened a model before.
    ///
    /// # Panics
    /// When that fails.
    pub fn open(path: &Path) -> Self {
        let api = Api::linked().unwrap_or_else(|error| panic!("{error}"));
        let path = CString::new(path.to_str().expect("a path of the cache is Unicode")).expect("a path has no NUL");
        let mut params = std::mem::MaybeUninit::uninit();
        // SAFETY: the entry writes the whole struct that it is given.
        unsafe { api.model_default_params(params.as_mut_ptr()) };
        // SAFETY: the entry has just written it.
        let mut params = unsafe { params.assume_init() };
        params.vocab_only = true;
        let (mut model, mut error) = (ptr::null_mut(), infer_llama_error::default());
        // SAFETY: the path is a C string, the parameters are the defaults but for one flag, the outs are valid.
        let status = unsafe { api.model_load_from_file(path.as_ptr(), &params, &raw mut model, &raw mut error) };
        assert_eq!(status, INFER_LLAMA_OK, "{path:?}");
        Self { api, model }
    }

    /// The text of `tokens`; `special` renders control tokens too.
    ///
    /// # Panics
    /// When the native call fails.
    pub fn text(&self, tokens: &[u32], special: bool) -> Vec<u8> {
        let tokens: Vec<i32> = tokens.iter().map(|&token| token as i32).collect();
        let mut buffer = vec![0_u8; 16];
        loop {
            let (status, len) = self.detokenize(&tokens, special, &mut buffer);
            match status {
                INFER_LLAMA_OK => {
                    buffer.truncate(len);
                    return buffer;
                }
                INFER_LLAMA_TOO_SMALL => buffer.resize(len, 0),
                status => panic!("llama_detokenize: status {status}"),
            }
        }
    }

    fn detokenize(&self, tokens: &[i32], special: bool, buffer: &mut [u8]) -> (i32, usize) {
        let (mut len, mut error) = (0, infer_llama_error::default());
        // SAFETY: the model is alive until `self` is dropped, and a loaded vocabulary may be asked for at any time.
        let vocab = unsafe { self.api.model_vocab(self.model) };
        // SAFETY: the vocabulary lives as long as the model; tokens and buffer are as long as it is told; the outs are valid.
        let status = unsafe {
            self.api.detokenize(
                vocab,
                tokens.as_ptr(),
                tokens.len(),
                false,
                special,
                buffer.as_mut_ptr().cast(),
                buffer.len(),
                &raw mut len,
                &raw mut error,
            )
        };
        (status, len)
    }
}

impl Drop for LlamaDetokenizer {
    fn drop(&mut self) {
        // SAFETY: it was loaded by this table, is freed once, and has no contexts.
        unsafe { self.api.model_free(self.model) }
    }
}
