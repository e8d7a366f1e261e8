//! The state of a sequence, piece by piece: the library calls for each.

use super::{Context, call};
use infer_core::{Error, Result};
use std::{
    any::Any,
    ffi::c_void,
    panic::{self, AssertUnwindSafe},
    ptr, slice,
};

/// Takes the next bytes of a state.
type Take<'f> = dyn FnMut(&[u8]) -> Result<()> + 'f;
/// Fills in the next bytes of a state.
type Give<'f> = dyn FnMut(&mut [u8]) -> Result<()> + 'f;

/// What stands on the other side while the library walks through a state. The first error, or panic, ends the walk; either goes
/// on where the walk was begun.
struct Walk<'f, F: ?Sized> {
    step: &'f mut F,
    error: Option<Error>,
    panic: Option<Box<dyn Any + Send>>,
}

impl<'f, F: ?Sized> Walk<'f, F> {
    fn new(step: &'f mut F) -> Self {
        Self { step, error: None, panic: None }
    }

    /// What the trampolines are to be given. Valid while `self` is, and while nothing else uses it.
    fn user_data(&mut self) -> *mut c_void {
        ptr::from_mut(self).cast()
    }

    fn step(&mut self, run: impl FnOnce(&mut F) -> Result<()>) -> bool {
        if self.error.is_some() || self.panic.is_some() {
            return false;
        }
        match panic::catch_unwind(AssertUnwindSafe(|| run(self.step))) {
            Ok(Ok(())) => return true,
            Ok(Err(error)) => self.error = Some(error),
            Err(payload) => self.panic = Some(payload),
        }
        false
    }

    /// The outcome of the walk: of what stopped it, the first.
    fn end<T>(self, outcome: Result<T>) -> Result<T> {
        if let Some(payload) = self.panic {
            panic::resume_unwind(payload);
        }
        self.error.map_or(outcome, Err)
    }
}

/// # Safety
/// `bytes` and `size` are those of bytes that live and do not change meanwhile; `data` comes from [`Walk::user_data`] of a
/// `Walk<'_, Take<'_>>` that nothing else uses now.
unsafe extern "C" fn on_write(bytes: *const u8, size: usize, data: *mut c_void) -> bool {
    // SAFETY: the caller's promise; the walk is a call within the closure's lifetime.
    let walk = unsafe { &mut *data.cast::<Walk<'_, Take<'_>>>() };
    // SAFETY: the caller's promise.
    let bytes = unsafe { slice::from_raw_parts(bytes, size) };
    walk.step(|take| take(bytes))
}

/// # Safety
/// `bytes` and `size` are those of bytes that nothing else uses now, which were written once; `data` comes from
/// [`Walk::user_data`] of a `Walk<'_, Give<'_>>` that nothing else uses now.
unsafe extern "C" fn on_read(bytes: *mut u8, size: usize, data: *mut c_void) -> bool {
    // SAFETY: the caller's promise; the walk is a call within the closure's lifetime.
    let walk = unsafe { &mut *data.cast::<Walk<'_, Give<'_>>>() };
    // SAFETY: the caller's promise.
    let bytes = unsafe { slice::from_raw_parts_mut(bytes, size) };
    walk.step(|give| give(bytes))
}

impl Context {
    /// Carries out what the library puts off until the next pass; that plans a graph, so it is done inside the model, with others. A walk
    /// begins with it: the library then finds nothing left to do, and the caller's code, which the walk runs, keeps nobody out of the
    /// model. `Unsupported` where the library cannot be told to, or keeps its state in a way that is not known here.
    pub(crate) fn settle(&mut self) -> Result<()> {
        let model = self.model.clone();
        let _shared = model.shared()?;
        let (api, context) = self.parts();
        // SAFETY: the context lives and is this thread's alone.
        call("bring the memory up to date", |error| unsafe { api.memory_update(context, error) })
    }

    /// How many bytes the state of a sequence has.
    pub(crate) fn state_len(&mut self, sequence: u32) -> Result<u64> {
        self.settle()?;
        let sequence = self.sequence(sequence)?;
        let (api, context) = self.parts();
        let mut len = 0;
        let out = &raw mut len;
        call("measure a state", |error|
            // SAFETY: the context lives and is this thread's alone; the sequence is one it has; without a callback nothing is given
            // out; the place is valid.
            unsafe { api.state_seq_write(context, sequence, None, ptr::null_mut(), out, error) })?;
        Ok(len)
    }

    /// Gives out the state of a sequence, from where it lies.
    pub(crate) fn write_state(&mut self, sequence: u32, take: &mut Take<'_>) -> Result<()> {
        self.settle()?;
        let sequence = self.sequence(sequence)?;
        let (api, context) = self.parts();
        let mut len = 0;
        let out = &raw mut len;
        let mut walk = Walk::new(take);
        let data = walk.user_data();
        let outcome = call("write a state", |error|
            // SAFETY: the context lives and is this thread's alone; the sequence is one it has; the callback does not unwind, and
            // its data are not used by anything else before the call returns; the place is valid.
            unsafe { api.state_seq_write(context, sequence, Some(on_write), data, out, error) });
        walk.end(outcome)
    }

    /// Takes in the state of a sequence that has `len` positions. It is empty afterwards where that fails.
    pub(crate) fn read_state(&mut self, sequence: u32, len: usize, give: &mut Give<'_>) -> Result<()> {
        self.settle()?;
        let sequence = self.sequence(sequence)?;
        let last = super::context::position(len)? - 1;
        let (api, context) = self.parts();
        let mut taken = 0;
        let out = &raw mut taken;
        let mut walk = Walk::new(give);
        let data = walk.user_data();
        let outcome = call("restore a state", |error|
            // SAFETY: the context lives and is this thread's alone; the sequence is one it has; the callback does not unwind, and
            // its data are not used by anything else before the call returns; the place is valid.
            unsafe { api.state_seq_read(context, sequence, last, Some(on_read), data, out, error) });
        walk.end(outcome)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_error_ends_the_walk_and_is_kept() {
        let mut calls = 0;
        let mut take = |bytes: &[u8]| {
            calls += 1;
            if bytes.len() < 3 { Ok(()) } else { Err(Error::invalid_input("too long")) }
        };
        let mut walk = Walk::<Take<'_>>::new(&mut take);
        let data = walk.user_data();
        let bytes = [0_u8; 3];
        let answers = [2, 3, 1].map(|size| {
            // SAFETY: there are that many bytes; `data` comes from `walk`, which is not used in between.
            unsafe { on_write(bytes.as_ptr(), size, data) }
        });
        assert_eq!(answers, [true, false, false]);
        assert_eq!(walk.end(Ok(())).unwrap_err().to_string(), "too long");
        assert_eq!(calls, 2);
    }

    #[test]
    fn a_panic_ends_the_walk_and_goes_on_afterwards() {
        let mut give = |_: &mut [u8]| panic!("asked to");
        let mut walk = Walk::<Give<'_>>::new(&mut give);
        let data = walk.user_data();
        let mut bytes = [0_u8; 3];
        // SAFETY: there are that many bytes; `data` comes from `walk`, which is not used in between.
        let answer = unsafe { on_read(bytes.as_mut_ptr(), 3, data) };
        assert!(!answer);
        assert!(panic::catch_unwind(AssertUnwindSafe(|| walk.end(Ok(())))).is_err());
    }
}
