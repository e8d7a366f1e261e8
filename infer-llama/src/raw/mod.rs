//! The one place with `unsafe`: owners of llama.cpp's objects, with pointers inside and none outside.
//!
//! Each type owns one C object and keeps alive what that object needs; its methods turn a status into a
//! [`Result`](infer_core::Result) that carries what was logged meanwhile. What is asked of a caller in `llama_door.h` is
//! established here or by the types: nothing in this module trusts the crate's other modules with memory safety.

mod api;
mod batch;
mod callback;
mod context;
mod global;
mod model;
mod vocab;

pub(crate) use api::Door;
pub(crate) use batch::Batch;
pub(crate) use callback::Progress;
pub(crate) use context::{Context, ContextParams, KvFormat, Pass};
pub(crate) use model::{Facts, Model, ModelParams, Source};
pub(crate) use vocab::{Family, TokenFacts, VocabFacts};

use crate::{error, log};
use infer_core::Result;
use infer_sys::llama::bindings::{INFER_LLAMA_OK, infer_llama_error};
use std::{
    ffi::{CStr, c_char},
    mem::MaybeUninit,
};

/// Makes one native call. `what` says in an error what was tried.
///
/// The place for the native error is not initialised before the call, of which there may be hundreds a second: the door
/// writes it only when it fails.
#[inline]
fn call(what: &'static str, native: impl FnOnce(*mut infer_llama_error) -> i32) -> Result<()> {
    status(native).map_err(|failure| failure.into_error(what))
}

/// A status that is not OK, with what came with it.
struct Failure {
    status: i32,
    message: String,
    log: String,
}

impl Failure {
    fn into_error(self, what: &str) -> infer_core::Error {
        error::failed(what, self.status, &self.message, self.log)
    }
}

fn status(native: impl FnOnce(*mut infer_llama_error) -> i32) -> Result<(), Failure> {
    let mut place = MaybeUninit::<infer_llama_error>::uninit();
    log::during(|call| {
        let status = native(place.as_mut_ptr());
        if status == INFER_LLAMA_OK {
            return Ok(());
        }
        // SAFETY: projects to a field inside `place`; nothing is read.
        let message = unsafe { &raw const (*place.as_ptr()).message };
        // SAFETY: `llama_door.h`: the error is written when the status is not OK, and its message ends with a NUL.
        let message = unsafe { text(message.cast()) };
        Err(Failure { status, message, log: call.log() })
    })
}

/// A C string as text; what is not UTF-8 in it is replaced.
///
/// # Safety
/// `pointer` is NULL or points to bytes that end with a NUL and do not change meanwhile.
unsafe fn text(pointer: *const c_char) -> String {
    if pointer.is_null() {
        return String::new();
    }
    // SAFETY: it is not NULL; the rest is the caller's promise.
    let text = unsafe { CStr::from_ptr(pointer) };
    text.to_string_lossy().into_owned()
}
