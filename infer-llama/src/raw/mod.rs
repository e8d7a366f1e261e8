//! The one place with `unsafe`: owners of llama.cpp's objects, with pointers inside and none outside.
//!
//! Each type owns one C object and keeps alive what that object needs; its methods turn a status into a
//! [`Result`](infer_core::Result) that carries what was logged meanwhile. What is asked of a caller in `llama_door.h` is
//! established here or by the types: nothing in this module trusts the crate's other modules with memory safety.

mod adapter;
mod api;
mod batch;
mod callback;
mod context;
mod global;
mod model;
mod sampler;
mod turns;
mod vocab;
mod walk;

pub(crate) use adapter::Adapter;
pub(crate) use api::{Device, Door, Handle};
pub(crate) use batch::Batch;
pub(crate) use callback::Progress;
pub(crate) use context::{Context, ContextParams, Encoder, EncoderParams, KvFormat, Pass};
pub(crate) use model::{Facts, Model, ModelParams, Placement, Source, Split, Weights};
pub(crate) use sampler::{DrawInputs, DrawShape};
pub(crate) use vocab::{Family, TokenFacts, VocabFacts};

use crate::{error, log};
use infer_core::Result;
use infer_sys::llama::bindings::{INFER_LLAMA_OK, infer_llama_error};
use std::{
    ffi::{CStr, c_char},
    mem::{self, MaybeUninit},
    ptr::{self, NonNull},
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

/// A place for an object that a native call makes. Until it is [taken](Self::take) the object is freed with the place: also
/// when a panic (of a `tracing` subscriber that the library's log reached) comes out of the call.
struct Fresh<T, F: FnMut(*mut T)> {
    ptr: *mut T,
    free: F,
}

impl<T, F: FnMut(*mut T)> Fresh<T, F> {
    fn new(free: F) -> Self {
        Self { ptr: ptr::null_mut(), free }
    }

    /// Where the native call is to write.
    fn place(&mut self) -> *mut *mut T {
        &raw mut self.ptr
    }

    /// The object, for an owner that frees it.
    ///
    /// # Panics
    /// When the call has made none, although it said OK.
    fn take(mut self) -> NonNull<T> {
        NonNull::new(mem::replace(&mut self.ptr, ptr::null_mut())).expect("a native call that says OK gives an object")
    }
}

impl<T, F: FnMut(*mut T)> Drop for Fresh<T, F> {
    fn drop(&mut self) {
        if !self.ptr.is_null() {
            (self.free)(self.ptr);
        }
    }
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

#[cfg(test)]
mod tests {
    use super::*;
    use std::cell::Cell;

    #[test]
    fn a_fresh_object_is_freed_unless_it_was_taken() {
        let freed = Cell::new(0);
        let mut object = 7;
        let mut made = || {
            let mut fresh = Fresh::new(|_: *mut i32| freed.set(freed.get() + 1));
            let place = fresh.place();
            // SAFETY: the place is the one inside `fresh`, which lives.
            unsafe { place.write(&raw mut object) };
            fresh
        };
        drop(made());
        assert_eq!(freed.get(), 1);
        let taken = made().take();
        assert_eq!(freed.get(), 1);
        drop(Fresh::new(|_: *mut i32| freed.set(99)));
        assert_eq!((freed.get(), taken.as_ptr() == &raw mut object), (1, true));
    }
}
