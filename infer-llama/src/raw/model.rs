//! The owner of a `llama_model`.

use super::{Door, Fresh, Handle, Progress, call, callback::on_progress, text, turns::Turns};
use crate::log;
use infer_core::{Error, ErrorKind, Result};
use infer_sys::llama::bindings::{
    LLAMA_LOAD_MODE_DIRECT_IO, LLAMA_LOAD_MODE_MLOCK, LLAMA_LOAD_MODE_MMAP, LLAMA_LOAD_MODE_MMAP_MLOCK,
    LLAMA_LOAD_MODE_NONE, LLAMA_SPLIT_MODE_LAYER, LLAMA_SPLIT_MODE_NONE, LLAMA_SPLIT_MODE_ROW, infer_llama_model_info,
    llama_load_mode, llama_model, llama_model_params,
};
use std::{
    ffi::{CString, c_char},
    mem::MaybeUninit,
    ptr::{self, NonNull},
    sync::{Arc, Mutex},
};

/// A loaded model, or the vocabulary of one.
pub(crate) struct Model {
    pub(super) door: Door,
    pub(super) ptr: NonNull<llama_model>,
    /// Held while a context is made.
    pub(super) making: Mutex<()>,
    pub(super) turns: Turns,
}

// SAFETY: a model belongs to no thread: `llama_door.h` asks only that objects are not freed twice or while in use, which the
// one owner behind an `Arc` sees to.
unsafe impl Send for Model {}
// SAFETY: `llama_door.h`: "A model is immutable once loaded and may be read from several threads at once"; all that `&Model`
// gives access to is reading entries, making contexts, which is serialised by `making` and changes the model only when a
// RoPE scale is asked for, which `ContextParams` cannot do, and loading and freeing adapters, which `turns` keeps apart from passes and
// from making contexts.
unsafe impl Sync for Model {}

/// Where a model comes from.
pub(crate) enum Source<'s> {
    /// One file, by its path.
    #[cfg(any(not(unix), target_os = "linux"))]
    Path(&'s CString),
    /// The files of a split model, in order.
    Parts(&'s [CString]),
    /// One file that is open. Its position is moved.
    #[cfg(unix)]
    File(std::os::fd::BorrowedFd<'s>),
}

/// How a model is loaded. What is not here is as llama.cpp has it.
pub(crate) struct ModelParams {
    pub(crate) placement: Placement,
    pub(crate) weights: Weights,
    pub(crate) vocab_only: bool,
    pub(crate) check_tensors: bool,
    pub(crate) repack: bool,
}

/// How the weights come into memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Weights {
    Mapped,
    /// Mapped, or where that cannot be copied; and kept there.
    Locked {
        mapped: bool,
    },
    Copied,
    /// Copied past the system's cache.
    Direct,
    /// Not at all: nothing can be computed, and what a context would take can be asked.
    Absent,
}

/// Where the layers go.
#[derive(Default)]
pub(crate) struct Placement {
    /// Of the library that loads; `None`: whatever devices there are.
    pub(crate) devices: Option<Vec<Handle>>,
    /// Layers computed on devices; `None`: all.
    pub(crate) gpu_layers: Option<u32>,
    pub(crate) split: Split,
    /// Of the devices, by its place in the list; for a model that is not split.
    pub(crate) main: u16,
    /// Parts of the sum; those behind the last are 0.
    pub(crate) parts: Option<Vec<f32>>,
}

/// How a model is spread over devices.
#[derive(Clone, Copy, Default)]
pub(crate) enum Split {
    None,
    #[default]
    Layer,
    Row,
}

/// What the library says of a model.
#[derive(Clone, Copy)]
pub(crate) struct Facts {
    pub(crate) has_encoder: bool,
    pub(crate) has_decoder: bool,
    pub(crate) is_recurrent: bool,
    pub(crate) is_hybrid: bool,
    /// Positions of a sliding window; 0: none.
    pub(crate) window: usize,
    /// Numbers in the hidden state that comes out at the end.
    pub(crate) width: usize,
    /// Scores of a classification head; 1 where the file names no classes, also without a head.
    pub(crate) class_outputs: usize,
}

impl Model {
    /// Loads a model. The header has been checked: a file that llama.cpp asserts on ends the process here.
    pub(crate) fn load(
        door: Door,
        source: &Source<'_>,
        params: ModelParams,
        progress: &mut Progress<'_>,
    ) -> Result<Arc<Self>> {
        let mut raw = MaybeUninit::<llama_model_params>::uninit();
        // SAFETY: the place is valid, and the entry fills all of it.
        unsafe { door.api.model_default_params(raw.as_mut_ptr()) };
        // SAFETY: it was filled just now.
        let mut raw = unsafe { raw.assume_init() };
        // Negative means all layers.
        let placement = &params.placement;
        raw.n_gpu_layers = placement.gpu_layers.map_or(-1, |layers| i32::try_from(layers).unwrap_or(i32::MAX));
        raw.split_mode = match placement.split {
            Split::None => LLAMA_SPLIT_MODE_NONE,
            Split::Layer => LLAMA_SPLIT_MODE_LAYER,
            Split::Row => LLAMA_SPLIT_MODE_ROW,
        };
        raw.main_gpu = i32::from(placement.main);
        if placement.devices.iter().flatten().any(|device| !device.is_of(door.api)) {
            return Err(Error::invalid_input("a device of one library was chosen for a model of another"));
        }
        // `llama.h`: "NULL-terminated list of devices".
        let mut devices: Option<Vec<_>> = placement.devices.as_ref().map(|devices| {
            let handles = devices.iter().map(|device| device.device.as_ptr());
            handles.chain([ptr::null_mut()]).collect()
        });
        raw.devices = devices.as_mut().map_or(ptr::null_mut(), Vec::as_mut_ptr);
        // `llama.h`: "size: llama_max_devices()". It is read to its end.
        let parts = placement.parts.as_ref().map(|parts| {
            let mut all = vec![0.0; door.max_devices().max(parts.len())];
            all[..parts.len()].copy_from_slice(parts);
            all
        });
        raw.tensor_split = parts.as_ref().map_or(ptr::null(), Vec::as_ptr);
        raw.load_mode = load_mode(params.weights);
        raw.no_alloc = params.weights == Weights::Absent;
        raw.vocab_only = params.vocab_only;
        raw.check_tensors = params.check_tensors;
        raw.use_extra_bufts = params.repack;
        raw.progress_callback = Some(on_progress);
        raw.progress_callback_user_data = progress.user_data();

        // SAFETY: what a load made and nobody owns yet is freed once.
        let mut fresh = Fresh::new(|model| unsafe { door.api.model_free(model) });
        let (raw, out) = (&raw const raw, fresh.place());
        let load = || {
            call("load the model", |error| match source {
                // SAFETY: a C string, parameters that are valid for the call (the lists they point to, of the form `llama.h` asks for,
                // live to its end; the devices are this library's), and a place for the result. `progress` is not used
                // by anything else before the call returns.
                #[cfg(any(not(unix), target_os = "linux"))]
                Source::Path(path) => unsafe { door.api.model_load_from_file(path.as_ptr(), raw, out, error) },
                Source::Parts(parts) => {
                    let paths: Vec<*const c_char> = parts.iter().map(|part| part.as_ptr()).collect();
                    // SAFETY: parameters that are valid for the call, a place for the result, and as many C strings as `paths` says.
                    // `progress` is not used by anything else before the call returns.
                    unsafe { door.api.model_load_from_splits(paths.as_ptr(), paths.len(), raw, out, error) }
                }
                #[cfg(unix)]
                Source::File(file) => {
                    let fd = std::os::fd::AsRawFd::as_raw_fd(file);
                    // SAFETY: as for parts; the descriptor is borrowed, hence open for the length of the call.
                    unsafe { door.api.model_load_from_fd(fd, raw, out, error) }
                }
            })
        };
        log::during(|call| load().and_then(|()| kept_word(params.weights, call.log())))?;
        Ok(Arc::new(Self { door, ptr: fresh.take(), making: Mutex::new(()), turns: Turns::default() }))
    }

    pub(crate) fn door(&self) -> Door {
        self.door
    }

    /// The device of each layer, the output layer last; nothing of a vocabulary.
    pub(crate) fn layer_devices(&self) -> Result<Vec<Handle>> {
        let (model, mut n) = (self.ptr.as_ptr(), 0);
        // SAFETY: the model lives as long as `self`; `n` is a valid place, and there is none for handles.
        call("ask where the layers are", |error| unsafe {
            self.door.api.model_layer_devices(model, ptr::null_mut(), 0, &raw mut n, error)
        })?;
        let mut handles = vec![ptr::null_mut(); n];
        let (start, cap) = (handles.as_mut_ptr(), handles.len());
        // SAFETY: as above; `start` and `cap` are those of the list.
        call("ask where the layers are", |error| unsafe {
            self.door.api.model_layer_devices(model, start, cap, &raw mut n, error)
        })?;
        Ok(handles.into_iter().filter_map(NonNull::new).map(|device| Handle::new(self.door.api, device)).collect())
    }

    pub(crate) fn facts(&self) -> Result<Facts> {
        let mut info = infer_llama_model_info::default();
        let model = self.ptr.as_ptr();
        // SAFETY: the model lives as long as `self`; `info` is a valid place.
        call("describe the model", |error| unsafe { self.door.api.model_info(model, &raw mut info, error) })?;
        Ok(Facts {
            has_encoder: info.has_encoder,
            has_decoder: info.has_decoder,
            is_recurrent: info.is_recurrent,
            is_hybrid: info.is_hybrid,
            window: usize::try_from(info.n_swa).unwrap_or(0),
            width: usize::try_from(info.n_embd_out).unwrap_or(0),
            class_outputs: info.n_cls_out as usize,
        })
    }

    /// What score `index` of the classification head is called, where the file says it.
    pub(crate) fn class_label(&self, index: u32) -> Result<Option<String>> {
        let (model, mut label) = (self.ptr.as_ptr(), ptr::null());
        let out = &raw mut label;
        // SAFETY: the model lives as long as `self`; the place is valid.
        call("ask for a label", |error| unsafe { self.door.api.model_cls_label(model, index, out, error) })?;
        if label.is_null() {
            return Ok(None);
        }
        // SAFETY: `llama_door.h`: every string got from a model lives as long as the model, and it ends with a NUL.
        Ok(Some(unsafe { text(label) }))
    }
}

impl Drop for Model {
    fn drop(&mut self) {
        // Adapters that were dropped during a pass whose context outlived them.
        self.free_dropped();
        // SAFETY: the pointer came from a load and is freed once, here. Contexts and adapters hold an `Arc` of this, so none is left; neither
        // is a vocabulary pointer, which is only ever taken out for one call.
        unsafe { self.door.api.model_free(self.ptr.as_ptr()) };
    }
}

fn load_mode(weights: Weights) -> llama_load_mode {
    match weights {
        Weights::Mapped => LLAMA_LOAD_MODE_MMAP,
        Weights::Locked { mapped: true } => LLAMA_LOAD_MODE_MMAP_MLOCK,
        Weights::Locked { mapped: false } => LLAMA_LOAD_MODE_MLOCK,
        Weights::Copied | Weights::Absent => LLAMA_LOAD_MODE_NONE,
        Weights::Direct => LLAMA_LOAD_MODE_DIRECT_IO,
    }
}

/// Whether weights that were loaded are as they were to be. Where llama.cpp cannot lock them or read past the cache, it says so in its
/// log and goes on.
fn kept_word(weights: Weights, log: String) -> Result<()> {
    let says = |words: &[&str]| words.iter().any(|words| log.contains(words));
    let (kind, message) = match weights {
        Weights::Locked { .. }
            if says(&["failed to mlock", "failed to VirtualLock", "mlock not supported", "WorkingSetSize failed"]) =>
        {
            (
                ErrorKind::OutOfMemory,
                "the system does not let so much memory be locked; raise the limit (RLIMIT_MEMLOCK, `ulimit -l`), or open the model without \
             locking it",
            )
        }
        Weights::Direct if says(&["Falling back to buffered"]) => (
            ErrorKind::Unsupported,
            "the file cannot be read past the system's cache: its file system does not do that; open the model copied or mapped",
        ),
        _ => return Ok(()),
    };
    Err(Error::new(kind, message).with_log(log))
}
