//! What a run is told, and how it is stopped.

use super::{
    Api,
    api::some,
    exit::{self, End},
};
use crate::error::{error, invalid_input};
use infer_core::{Error, ErrorKind, Interrupt, Result};
use infer_sys::onnxruntime::OrtRunOptions;
use std::{
    ffi::CString,
    ptr::{self, NonNull},
    sync::{
        Arc, Mutex, PoisonError, Weak,
        atomic::{AtomicBool, Ordering},
    },
};

/// Options of runs, which can be stopped from any thread.
///
/// `Send` and `Sync` because the one thing that changes, the flag inside, is changed under a lock.
pub(crate) struct RunOptions(Arc<Flag>);

/// One `OrtRunOptions`, kept alive by whoever may raise it.
struct Flag {
    api: Api,
    options: NonNull<OrtRunOptions>,
    raised: Mutex<Raised>,
    /// Whether anybody is raised: what a run that nobody stops looks at.
    is_up: AtomicBool,
}

/// Who wants a run to stop. All are levels: while one is up, runs end.
#[derive(Clone, Copy, Default)]
struct Raised {
    interrupt: bool,
    deadline: bool,
    /// The process is ending; never lowered.
    exit: bool,
}

/// Why a run was stopped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Stop {
    Interrupt,
    Deadline,
}

// SAFETY: the options are only read by the library (`Run` takes them as a pointer to const), except for the flag that ends a run, of
// which `onnxruntime_c_api.h` says "If a currently executing session needs to be force terminated, this can be called from another thread to
// force it to fail with an error"; it is called under a lock.
unsafe impl Send for Flag {}
// SAFETY: as above.
unsafe impl Sync for Flag {}

impl RunOptions {
    /// Options whose log lines carry this tag.
    pub(crate) fn new(tag: &str) -> Result<Self> {
        let api = Api::loaded()?;
        let tag = CString::new(tag).map_err(|_| invalid_input(format!("the name {tag:?} of runs has a NUL in it")))?;
        let mut options = ptr::null_mut();
        // SAFETY: `options` is a valid place.
        let status = unsafe { (api.table().CreateRunOptions)(&raw mut options) };
        api.check("make options of runs", status)?;
        let flag = Flag { api, options: some(options)?, raised: Mutex::default(), is_up: AtomicBool::new(false) };
        // SAFETY: the options are ours alone so far; the tag is a C string, which the entry copies.
        let status = unsafe { (api.table().RunOptionsSetRunTag)(flag.options.as_ptr(), tag.as_ptr()) };
        api.check("name runs", status)?;
        let flag = Arc::new(flag);
        let end: Weak<Flag> = Arc::downgrade(&flag);
        exit::tell(end);
        Ok(Self(flag))
    }

    /// Stops runs with these options, from any thread, for as long as it is raised.
    pub(crate) fn interrupt(&self) -> Interrupt {
        let flag = Arc::clone(&self.0);
        Interrupt::new(move |up| flag.set(|raised| raised.interrupt = up))
    }

    /// The same for whoever watches a deadline: a level of its own, so that neither lowers the other's.
    pub(crate) fn deadline(&self) -> Interrupt {
        let flag = Arc::clone(&self.0);
        Interrupt::new(move |up| flag.set(|raised| raised.deadline = up))
    }

    /// Who has a hand on runs with these options, their owner included.
    pub(crate) fn owners(&self) -> usize {
        Arc::strong_count(&self.0)
    }

    /// Who wants runs to stop at this moment.
    pub(crate) fn stop(&self) -> Option<Stop> {
        if !self.0.is_up.load(Ordering::Acquire) {
            return None;
        }
        let raised = *self.0.raised.lock().unwrap_or_else(PoisonError::into_inner);
        match raised {
            Raised { interrupt: true, .. } | Raised { exit: true, .. } => Some(Stop::Interrupt),
            Raised { deadline: true, .. } => Some(Stop::Deadline),
            Raised { .. } => None,
        }
    }

    pub(super) fn as_ptr(&self) -> *const OrtRunOptions {
        self.0.options.as_ptr()
    }
}

impl Stop {
    /// The error of a run that was stopped, or not begun.
    pub(crate) fn into_error(self) -> Error {
        let message = match self {
            Self::Interrupt => "the run was interrupted",
            Self::Deadline => "the run was not over at its deadline",
        };
        error(ErrorKind::Cancelled, message)
    }
}

impl Flag {
    fn set(&self, change: impl FnOnce(&mut Raised)) {
        let mut raised = self.raised.lock().unwrap_or_else(PoisonError::into_inner);
        change(&mut raised);
        let table = self.api.table();
        let is_up = raised.interrupt || raised.deadline || raised.exit;
        self.is_up.store(is_up, Ordering::Release);
        let set = if is_up { table.RunOptionsSetTerminate } else { table.RunOptionsUnsetTerminate };
        // SAFETY: the options live as long as `self`; the lock is held, so the flag ends as the last caller wants it.
        let status = unsafe { set(self.options.as_ptr()) };
        // The entries set a flag and say OK.
        drop(self.api.check("stop a run", status));
    }
}

impl End for Flag {
    fn end(&self) {
        self.set(|raised| raised.exit = true);
    }
}

impl Drop for Flag {
    fn drop(&mut self) {
        // SAFETY: made by `CreateRunOptions`, and nobody has it any more: a run borrows its `RunOptions`.
        unsafe { (self.api.table().ReleaseRunOptions)(self.options.as_ptr()) };
    }
}
