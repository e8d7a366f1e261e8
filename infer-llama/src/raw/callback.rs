//! Functions that llama.cpp calls. None of them unwinds into C.

use std::{
    any::Any,
    ffi::c_void,
    ops::ControlFlow,
    panic::{self, AssertUnwindSafe},
    ptr,
    sync::atomic::{AtomicBool, Ordering},
};

/// What watches a load. The caller's closure runs inside C: its panic is caught there, the load is stopped, and the panic
/// goes on where the load was called.
pub(crate) struct Progress<'f> {
    watch: &'f mut dyn FnMut(f32) -> ControlFlow<()>,
    stopped: bool,
    panic: Option<Box<dyn Any + Send>>,
}

impl<'f> Progress<'f> {
    pub(crate) fn new(watch: &'f mut dyn FnMut(f32) -> ControlFlow<()>) -> Self {
        Self { watch, stopped: false, panic: None }
    }

    /// Whether the closure asked for the load to stop.
    pub(crate) fn was_stopped(&self) -> bool {
        self.stopped
    }

    /// Lets a panic of the closure go on. To be called when C is no longer on the stack.
    pub(crate) fn resume_panic(&mut self) {
        if let Some(payload) = self.panic.take() {
            panic::resume_unwind(payload);
        }
    }

    /// What [`on_progress`] is to be given. Valid while `self` is, and while nothing else uses it.
    pub(super) fn user_data(&mut self) -> *mut c_void {
        ptr::from_mut(self).cast()
    }

    fn tell(&mut self, done: f32) -> bool {
        if self.stopped || self.panic.is_some() {
            return false;
        }
        match panic::catch_unwind(AssertUnwindSafe(|| (self.watch)(done))) {
            Ok(ControlFlow::Continue(())) => true,
            Ok(ControlFlow::Break(())) => {
                self.stopped = true;
                false
            }
            Err(payload) => {
                self.panic = Some(payload);
                false
            }
        }
    }
}

/// Called by llama.cpp while it loads, on the thread that loads. `false` ends the load.
///
/// # Safety
/// `data` comes from [`Progress::user_data`], of a `Progress` that nothing else uses now.
pub(super) unsafe extern "C" fn on_progress(done: f32, data: *mut c_void) -> bool {
    // SAFETY: the caller's promise; `'_` is a lifetime inside the closure's, since the load is a call within it.
    let progress = unsafe { &mut *data.cast::<Progress<'_>>() };
    progress.tell(done)
}

/// Polled by llama.cpp's threads while they compute. `true` ends the pass.
///
/// # Safety
/// `data` points to an `AtomicBool` that lives.
pub(super) unsafe extern "C" fn on_abort(data: *mut c_void) -> bool {
    // SAFETY: the caller's promise. An atomic may be read from any thread.
    let raised = unsafe { &*data.cast::<AtomicBool>() };
    raised.load(Ordering::Relaxed)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_panic_stops_the_load_and_goes_on_afterwards() {
        let mut calls = 0;
        let mut watch = |_| {
            calls += 1;
            panic!("asked to")
        };
        let mut progress = Progress::new(&mut watch);
        let data = progress.user_data();
        // SAFETY: `data` comes from `progress`, which is not used in between.
        let first = unsafe { on_progress(0.0, data) };
        // SAFETY: as above.
        let second = unsafe { on_progress(0.5, data) };
        assert!(!first && !second && !progress.was_stopped());
        assert!(panic::catch_unwind(AssertUnwindSafe(|| progress.resume_panic())).is_err());
        assert_eq!(calls, 1);
    }

    #[test]
    fn a_break_stops_the_load() {
        let mut watch = |done| if done < 0.5 { ControlFlow::Continue(()) } else { ControlFlow::Break(()) };
        let mut progress = Progress::new(&mut watch);
        assert!(progress.tell(0.1));
        assert!(!progress.tell(0.6) && !progress.tell(0.1) && progress.was_stopped());
        progress.resume_panic();
    }
}
