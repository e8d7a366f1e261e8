//! The door, started.

use super::{call, global};
use crate::error::BACKEND;
use infer_core::{Error, ErrorKind, Result};
use infer_sys::llama::{
    Api,
    bindings::{INFER_LLAMA_TOO_SMALL, ggml_backend_device, infer_llama_device, infer_llama_limits},
};
use std::{
    fmt,
    mem::MaybeUninit,
    ptr::{self, NonNull},
};

/// A door whose library was started: the only way to its entries. `Copy`, `Send` and `Sync`, as [`Api`] is.
#[derive(Clone, Copy)]
pub(crate) struct Door {
    pub(super) api: Api,
    limits: infer_llama_limits,
}

// The limits are plain numbers; `Api` is `Send` and `Sync` itself, so both hold for `Door` without a word of ours.
const _: () = {
    const fn send_sync<T: Send + Sync>() {}
    send_sync::<Door>();
};

impl Door {
    /// Starts the library behind a checked door, once for each.
    pub(crate) fn start(api: Api) -> Result<Self> {
        global::start(api)
    }

    pub(super) fn new(api: Api) -> Result<Self> {
        let mut limits = infer_llama_limits::default();
        // SAFETY: `limits` is a valid place; the library was started.
        call("ask for the limits", |error| unsafe { api.limits(&raw mut limits, error) })?;
        Ok(Self { api, limits })
    }

    pub(crate) fn commit(self) -> &'static str {
        self.api.commit()
    }

    pub(crate) fn llama_version(self) -> &'static str {
        self.api.llama_version()
    }

    pub(crate) fn variant(self) -> &'static str {
        self.api.variant()
    }

    /// Sequences a context can have.
    pub(crate) fn max_sequences(self) -> u32 {
        self.limits.max_sequences
    }

    /// Threads a pass can use.
    pub(crate) fn max_threads(self) -> u32 {
        self.limits.max_threads
    }

    /// Devices a model can be spread over, the processor being one.
    pub(crate) fn max_devices(self) -> usize {
        self.limits.max_devices as usize
    }

    pub(crate) fn supports_mmap(self) -> bool {
        self.limits.supports_mmap
    }

    /// What llama.cpp says of the processor's features and of itself.
    pub(crate) fn system_info(self) -> Result<String> {
        let mut buffer = vec![0_u8; 1024];
        loop {
            let mut len = 0;
            let (start, cap) = (buffer.as_mut_ptr().cast(), buffer.len());
            // SAFETY: `start` and `cap` are those of the buffer, `len` is a valid place.
            let outcome = super::status(|error| unsafe { self.api.system_info(start, cap, &raw mut len, error) });
            match outcome {
                Ok(()) => {
                    buffer.truncate(len);
                    return Ok(String::from_utf8_lossy(&buffer).into_owned());
                }
                Err(failure) if failure.status == INFER_LLAMA_TOO_SMALL && len >= cap => buffer.resize(len + 1, 0),
                Err(failure) => return Err(failure.into_error("ask for the system's features")),
            }
        }
    }

    /// The devices there are, at this moment.
    pub(crate) fn devices(self) -> Result<Vec<Device>> {
        // SAFETY: takes nothing; the library was started.
        let count = unsafe { self.api.device_count() };
        (0..count).map(|index| self.device(index)).collect()
    }

    fn device(self, index: usize) -> Result<Device> {
        let mut place = MaybeUninit::<infer_llama_device>::uninit();
        // SAFETY: `place` is a valid place, which the entry fills when it succeeds; an index out of range is refused.
        call("describe a device", |error| unsafe { self.api.device_info(index, place.as_mut_ptr(), error) })?;
        // SAFETY: the call has succeeded, so the entry has written it.
        let raw = unsafe { place.assume_init() };
        // SAFETY: `llama_door.h`: the strings of a device live as long as the process.
        let text = |pointer| unsafe { super::text(pointer) };
        let Some(handle) = NonNull::new(raw.handle) else {
            let message = format!("device {index} has no handle, which the door promises");
            return Err(Error::new(ErrorKind::Runtime, message).with_backend(BACKEND));
        };
        Ok(Device {
            handle: Handle::new(self.api, handle),
            name: text(raw.name),
            description: text(raw.description),
            backend: text(raw.backend),
            kind: raw.type_,
            memory_free: raw.memory_free,
            memory_total: raw.memory_total,
        })
    }
}

impl fmt::Debug for Door {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.api.fmt(f)
    }
}

/// What a device is to the library it belongs to, whose devices live as long as the process. Never followed here, and given to no other
/// library.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) struct Handle {
    pub(super) device: NonNull<ggml_backend_device>,
    /// Which library's: the address of its table.
    table: usize,
}

impl Handle {
    /// The handle of a device that this library gave.
    pub(super) fn new(api: Api, device: NonNull<ggml_backend_device>) -> Self {
        Self { device, table: ptr::from_ref(api.table()).addr() }
    }

    pub(super) fn is_of(self, api: Api) -> bool {
        self.table == ptr::from_ref(api.table()).addr()
    }
}

/// A device as the library describes it.
pub(crate) struct Device {
    pub(crate) handle: Handle,
    pub(crate) name: String,
    pub(crate) description: String,
    pub(crate) backend: String,
    pub(crate) kind: i32,
    pub(crate) memory_free: u64,
    pub(crate) memory_total: u64,
}
