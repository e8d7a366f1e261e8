//! A model that is being loaded.

use super::{
    Api,
    exit::{self, End},
};
use infer_sys::onnxruntime::OrtSessionOptions;
use std::{
    ptr::NonNull,
    sync::{Arc, Mutex, PoisonError, Weak},
};

/// A load, which stops when the process ends: a model may take longer to load than the end is put off.
pub(super) struct Load(Arc<Options>);

struct Options {
    api: Api,
    /// The options that the load was begun with, while it runs.
    options: Mutex<Option<NonNull<OrtSessionOptions>>>,
}

// SAFETY: the pointer is only used under the lock, by an entry that raises a flag which the load looks at; the library makes that flag an
// atomic, since it is there for another thread to raise.
unsafe impl Send for Options {}
// SAFETY: as above.
unsafe impl Sync for Options {}

impl Load {
    /// To be held while a session is made with these options.
    ///
    /// # Safety
    /// The options live until this is dropped.
    pub(super) unsafe fn begin(api: Api, options: *mut OrtSessionOptions) -> Self {
        let load = Arc::new(Options { api, options: Mutex::new(NonNull::new(options)) });
        let end: Weak<Options> = Arc::downgrade(&load);
        exit::tell(end);
        Self(load)
    }
}

impl Drop for Load {
    fn drop(&mut self) {
        *self.0.options.lock().unwrap_or_else(PoisonError::into_inner) = None;
    }
}

impl End for Options {
    fn end(&self) {
        let options = self.options.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(options) = *options {
            // SAFETY: they live, since the lock is held and `Load` has not let go of them.
            let status = unsafe { (self.api.table().SessionOptionsSetLoadCancellationFlag)(options.as_ptr(), true) };
            // The entry sets a flag and says OK.
            drop(self.api.check("stop a load", status));
        }
    }
}
