//! The owner of a `llama_adapter_lora`.

use super::{Context, Fresh, Model, call};
use infer_core::{Error, Result};
use infer_sys::llama::bindings::llama_adapter_lora;
use std::{
    fs::File,
    ptr::{self, NonNull},
    sync::Arc,
};

/// An adapter of a model: loaded, and not yet in use.
pub(crate) struct Adapter {
    ptr: NonNull<llama_adapter_lora>,
    /// Freed after the adapter, as `llama_door.h` asks; and where it is written down.
    model: Arc<Model>,
}

// SAFETY: an adapter belongs to no thread: `llama_door.h` asks only that it is freed once, alone with its model, while no context has
// it set. The first two `Model::free_adapter` sees to; the third, that contexts keep an `Arc` of those they may have set.
unsafe impl Send for Adapter {}
// SAFETY: nothing of it changes once it is loaded; contexts read it during passes.
unsafe impl Sync for Adapter {}

impl Adapter {
    /// Loads the adapter in an open file, whose position is moved. Its header has been checked against the model's: shapes that do
    /// not fit end the process in the middle of a pass.
    ///
    /// Waits until no pass of the model runs, and lets none begin meanwhile.
    pub(crate) fn load(model: Arc<Model>, file: &File) -> Result<Arc<Self>> {
        let api = model.door.api;
        let alone = model.alone()?;
        // SAFETY: what a load made and nobody owns yet is freed once, while the model is held alone.
        let mut fresh = Fresh::new(|adapter| unsafe { api.adapter_free(adapter) });
        let (native, out) = (model.ptr.as_ptr(), fresh.place());
        #[cfg(unix)]
        call("load the adapter", |error| {
            let fd = std::os::fd::AsRawFd::as_raw_fd(file);
            // SAFETY: the model lives and is held alone, which loading an adapter needs; the descriptor is open for the length of the
            // call; `out` is a valid place.
            unsafe { api.adapter_load_from_fd(native, fd, out, error) }
        })?;
        #[cfg(not(unix))]
        {
            let _ = (file, native, out, call::<fn(*mut _) -> i32>);
            return Err(Error::unsupported("adapters are loaded on Unix only"));
        }
        let ptr = fresh.take();
        drop(alone);
        Ok(Arc::new(Self { ptr, model }))
    }
}

impl Drop for Adapter {
    fn drop(&mut self) {
        self.model.free_adapter(self.ptr);
    }
}

impl Context {
    /// Computes the passes to come with this one of the adapters it was made with, so strong; `None`: with none.
    pub(crate) fn set_adapter(&mut self, adapter: Option<(usize, f32)>) -> Result<()> {
        self.forget_rows();
        let (mut pointers, mut scales) = ([ptr::null_mut()], [0.0]);
        let mut count = 0;
        if let Some((index, scale)) = adapter {
            let Some(adapter) = self.adapters.get(index) else {
                return Err(Error::invalid_input(format!("adapter {index} of {}", self.adapters.len())));
            };
            (pointers, scales, count) = ([adapter.ptr.as_ptr()], [scale], 1);
        }
        let (api, context) = (self.model.door.api, self.ptr.as_ptr());
        call("set the adapter", |error|
            // SAFETY: the context lives and is this thread's alone; the arrays have as many elements as `count` says or more; the adapter
            // is of the context's model, which `Context::new` saw to, and lives as long as the context.
            unsafe { api.adapters_set(context, pointers.as_ptr(), scales.as_ptr(), count, error) })
    }
}

impl Adapter {
    /// Whether it is an adapter of this model.
    pub(super) fn is_of(&self, model: &Arc<Model>) -> bool {
        Arc::ptr_eq(&self.model, model)
    }
}
