//! A door by hand: as little as a test needs to load, decode and look.

#![allow(dead_code, unreachable_pub, reason = "each test binary uses a part of it")]

pub mod gguf;
pub mod rules;

use std::ffi::{CStr, CString, c_char, c_void};
use std::path::Path;
use std::ptr;
use std::sync::Mutex;

use infer_sys::llama::Api;
use infer_sys::llama::bindings::{
    INFER_LLAMA_OK, INFER_LLAMA_TOO_SMALL, ggml_log_level, infer_llama_error, llama_batch, llama_context,
    llama_context_params, llama_model, llama_model_params, llama_vocab,
};

/// A status that is not OK, with its message.
#[derive(Debug, PartialEq, Eq)]
pub struct Failure {
    pub status: i32,
    pub message: String,
}

/// The same door, which logs nothing.
pub fn quiet(api: Api) -> Api {
    unsafe extern "C" fn drop_it(_: ggml_log_level, _: *const c_char, _: *mut c_void) {}
    static DONE: Mutex<Vec<usize>> = Mutex::new(Vec::new());
    let table = ptr::from_ref(api.table()).addr();
    let mut done = DONE.lock().unwrap();
    if !done.contains(&table) {
        // SAFETY: the callback does nothing, and no other thread is inside this door before this has returned.
        unsafe { api.log_set(Some(drop_it), ptr::null_mut()) };
        done.push(table);
    }
    api
}

/// Runs an entry that reports failures.
pub fn check(call: impl FnOnce(*mut infer_llama_error) -> i32) -> Result<(), Failure> {
    let mut error = infer_llama_error::default();
    let status = call(&raw mut error);
    if status == INFER_LLAMA_OK {
        return Ok(());
    }
    assert_eq!(status, error.code);
    let bytes: Vec<u8> = error.message.iter().take_while(|byte| **byte != 0).map(|byte| *byte as u8).collect();
    Err(Failure { status, message: String::from_utf8(bytes).expect("messages are cut between characters") })
}

pub struct Model {
    pub api: Api,
    pub raw: *mut llama_model,
}

impl Model {
    pub fn load(api: Api, path: &Path, set: impl FnOnce(&mut llama_model_params)) -> Result<Self, Failure> {
        // SAFETY: `backend_init` may be called again and again.
        check(|error| unsafe { api.backend_init(error) })?;
        let path = CString::new(path.to_str().expect("a path in UTF-8")).expect("no NUL");
        let params = model_params(api, set);
        let mut raw = ptr::null_mut();
        // SAFETY: a string, parameters and places to write, all of this function.
        check(|error| unsafe { api.model_load_from_file(path.as_ptr(), &raw const params, &raw mut raw, error) })?;
        Ok(Self { api, raw })
    }

    pub fn vocab(&self) -> *const llama_vocab {
        // SAFETY: the model is alive as long as this.
        unsafe { self.api.model_vocab(self.raw) }
    }

    pub fn tokenize(&self, text: &str) -> Result<Vec<i32>, Failure> {
        let mut tokens = vec![0; 4];
        loop {
            let mut n = 0;
            let outcome = check(|error| {
                // SAFETY: the vocabulary lives as long as the model; text and buffer are as long as it is told.
                unsafe {
                    self.api.tokenize(
                        self.vocab(),
                        text.as_ptr().cast(),
                        text.len(),
                        tokens.as_mut_ptr(),
                        tokens.len(),
                        false,
                        false,
                        &raw mut n,
                        error,
                    )
                }
            });
            match outcome {
                Err(failure) if failure.status == INFER_LLAMA_TOO_SMALL && n > tokens.len() => tokens.resize(n, 0),
                Err(failure) => return Err(failure),
                Ok(()) => {
                    tokens.truncate(n);
                    return Ok(tokens);
                }
            }
        }
    }

    pub fn context(&self, set: impl FnOnce(&mut llama_context_params)) -> Result<Context<'_>, Failure> {
        let mut params = llama_context_params::default();
        // SAFETY: a place to write.
        unsafe { self.api.context_default_params(&raw mut params) };
        params.n_ctx = 64;
        params.n_batch = 32;
        params.n_ubatch = 32;
        params.n_threads = 1;
        params.n_threads_batch = 1;
        set(&mut params);
        let mut raw = ptr::null_mut();
        // SAFETY: the model is alive, and outlives the context by its borrow.
        check(|error| unsafe { self.api.context_new(self.raw, &raw const params, &raw mut raw, error) })?;
        Ok(Context { api: self.api, raw, _model: self })
    }
}

impl Drop for Model {
    fn drop(&mut self) {
        // SAFETY: made by this table, freed here only; contexts borrow it and are gone.
        unsafe { self.api.model_free(self.raw) };
    }
}

pub fn model_params(api: Api, set: impl FnOnce(&mut llama_model_params)) -> llama_model_params {
    let mut params = llama_model_params::default();
    // SAFETY: a place to write.
    unsafe { api.model_default_params(&raw mut params) };
    set(&mut params);
    params
}

pub struct Context<'model> {
    pub api: Api,
    pub raw: *mut llama_context,
    _model: &'model Model,
}

impl Context<'_> {
    /// Decodes tokens of one sequence, all of them with a row; the status and llama.cpp's result.
    pub fn decode(&mut self, seq: i32, from: i32, tokens: &[i32]) -> Result<i32, Failure> {
        self.decode_shared(&[seq], from, tokens)
    }

    /// Decodes tokens that belong to several sequences at once.
    pub fn decode_shared(&mut self, sequences: &[i32], from: i32, tokens: &[i32]) -> Result<i32, Failure> {
        let mut tokens = tokens.to_vec();
        let n = tokens.len();
        let mut pos: Vec<i32> = (from..).take(n).collect();
        let mut counts = vec![sequences.len() as i32; n];
        let mut sequences = sequences.to_vec();
        let mut seqs = vec![sequences.as_mut_ptr(); n];
        let mut outputs = vec![1_i8; n];
        let batch = llama_batch {
            n_tokens: n as i32,
            token: tokens.as_mut_ptr(),
            embd: ptr::null_mut(),
            pos: pos.as_mut_ptr(),
            n_seq_id: counts.as_mut_ptr(),
            seq_id: seqs.as_mut_ptr(),
            logits: outputs.as_mut_ptr(),
        };
        let mut result = 0;
        // SAFETY: the context is alive, and the arrays are as long as the batch says.
        check(|error| unsafe { self.api.decode(self.raw, &raw const batch, &raw mut result, error) })?;
        Ok(result)
    }

    pub fn clear(&mut self) -> Result<(), Failure> {
        // SAFETY: the context is alive.
        check(|error| unsafe { self.api.memory_clear(self.raw, false, error) })
    }

    pub fn save(&mut self, seq: i32) -> Result<Vec<u8>, Failure> {
        let mut len = 0;
        // SAFETY: the context is alive; a place to write.
        check(|error| unsafe { self.api.state_seq_size(self.raw, seq, 0, &raw mut len, error) })?;
        let mut bytes = vec![0; len];
        // SAFETY: as above, with a buffer of the length told.
        check(|error| unsafe {
            self.api.state_seq_get(self.raw, seq, 0, bytes.as_mut_ptr(), bytes.len(), &raw mut len, error)
        })?;
        assert_eq!(len, bytes.len());
        Ok(bytes)
    }

    pub fn restore(&mut self, seq: i32, bytes: &[u8]) -> Result<usize, Failure> {
        let mut used = 0;
        // SAFETY: the context is alive; bytes as long as told, and a place to write.
        check(|error| unsafe {
            self.api.state_seq_set(self.raw, seq, 0, bytes.as_ptr(), bytes.len(), &raw mut used, error)
        })?;
        Ok(used)
    }

    pub fn update(&mut self) -> Result<(), Failure> {
        // SAFETY: the context is alive.
        check(|error| unsafe { self.api.memory_update(self.raw, error) })
    }

    pub fn state_len(&mut self, seq: i32) -> Result<u64, Failure> {
        let mut len = 0;
        // SAFETY: the context is alive; no callback, and a place to write.
        check(|error| unsafe { self.api.state_seq_write(self.raw, seq, None, ptr::null_mut(), &raw mut len, error) })?;
        Ok(len)
    }

    /// The length told, and the bytes given.
    pub fn save_in_pieces(&mut self, seq: i32) -> Result<(u64, Vec<u8>), Failure> {
        let (mut len, mut bytes) = (0, Vec::new());
        let data = (&raw mut bytes).cast();
        check(|error| {
            // SAFETY: the context is alive; `take` is given the vector, which nothing else uses meanwhile; a place to write.
            unsafe { self.api.state_seq_write(self.raw, seq, Some(take), data, &raw mut len, error) }
        })?;
        Ok((len, bytes))
    }

    pub fn restore_in_pieces(&mut self, seq: i32, last: i32, mut bytes: &[u8]) -> Result<u64, Failure> {
        let mut len = 0;
        let data = (&raw mut bytes).cast();
        check(|error| {
            // SAFETY: the context is alive; `give` is given the slice, which nothing else uses meanwhile; a place to write.
            unsafe { self.api.state_seq_read(self.raw, seq, last, Some(give), data, &raw mut len, error) }
        })?;
        Ok(len)
    }

    pub fn logits(&mut self, index: i32) -> Result<Vec<f32>, Failure> {
        let (mut row, mut len) = (ptr::null(), 0);
        // SAFETY: the context is alive; places to write.
        check(|error| unsafe { self.api.logits(self.raw, index, &raw mut row, &raw mut len, error) })?;
        assert!(!row.is_null());
        // SAFETY: the door says that the row has this length, and nothing is called in between.
        Ok(unsafe { std::slice::from_raw_parts(row, len) }.to_vec())
    }

    pub fn fork(&mut self, from: i32, to: i32, len: i32) -> Result<(), Failure> {
        // SAFETY: the context is alive.
        check(|error| unsafe { self.api.memory_seq_cp(self.raw, from, to, 0, len, error) })
    }

    pub fn remove(&mut self, seq: i32, from: i32) -> Result<bool, Failure> {
        let mut removed = false;
        // SAFETY: the context is alive; a place to write.
        check(|error| unsafe { self.api.memory_seq_rm(self.raw, seq, from, -1, &raw mut removed, error) })?;
        Ok(removed)
    }

    pub fn last_position(&mut self, seq: i32) -> Result<i32, Failure> {
        let mut pos = 0;
        // SAFETY: the context is alive; a place to write.
        check(|error| unsafe { self.api.memory_seq_pos_max(self.raw, seq, &raw mut pos, error) })?;
        Ok(pos)
    }
}

/// # Safety
/// Bytes that are there, and a `Vec<u8>` that nothing else uses.
unsafe extern "C" fn take(bytes: *const u8, size: usize, data: *mut c_void) -> bool {
    // SAFETY: the caller's promise.
    let all = unsafe { &mut *data.cast::<Vec<u8>>() };
    // SAFETY: the caller's promise.
    all.extend_from_slice(unsafe { std::slice::from_raw_parts(bytes, size) });
    true
}

/// # Safety
/// Bytes that may be written, and a `&[u8]` that nothing else uses.
unsafe extern "C" fn give(bytes: *mut u8, size: usize, data: *mut c_void) -> bool {
    // SAFETY: the caller's promise.
    let rest = unsafe { &mut *data.cast::<&[u8]>() };
    let Some((now, later)) = rest.split_at_checked(size) else { return false };
    // SAFETY: the caller's promise; they are none of ours.
    unsafe { bytes.copy_from_nonoverlapping(now.as_ptr(), size) };
    *rest = later;
    true
}

impl Drop for Context<'_> {
    fn drop(&mut self) {
        // SAFETY: made by this table, freed here only.
        unsafe { self.api.context_free(self.raw) };
    }
}

/// A string that an entry fills into a buffer.
pub fn string(call: impl Fn(*mut c_char, usize, *mut usize, *mut infer_llama_error) -> i32) -> String {
    let mut len = 0;
    let short = check(|error| call(ptr::null_mut(), 0, &raw mut len, error)).expect_err("no buffer is too small");
    assert_eq!(short.status, INFER_LLAMA_TOO_SMALL);
    let mut buffer = vec![0; len + 1];
    check(|error| call(buffer.as_mut_ptr(), buffer.len(), &raw mut len, error))
        .expect("the buffer is as large as asked");
    // SAFETY: the entry wrote a string with its NUL.
    let text = unsafe { CStr::from_ptr(buffer.as_ptr()) };
    text.to_str().expect("UTF-8").to_owned()
}
