//! What is one for the whole process: memory and devices.

use super::{Failure, Runtime, failure::check};
use infer_sys::mlx::{
    Api,
    bindings::{self as sys, infer_mlx_device, infer_mlx_memory},
};
use std::mem::MaybeUninit;

/// What the library says of its memory, in bytes.
pub(crate) struct Memory {
    pub(crate) active: u64,
    pub(crate) peak: u64,
    pub(crate) cache: u64,
    pub(crate) limit: u64,
}

/// A device of the library's.
pub(crate) struct Device {
    pub(crate) gpu: bool,
    pub(crate) name: String,
    pub(crate) memory_total: u64,
}

impl Runtime {
    pub(crate) fn memory(&self) -> Result<Memory, Failure> {
        let mut memory = MaybeUninit::<infer_mlx_memory>::uninit();
        // SAFETY: a valid place.
        self.cross(|api| unsafe { api.memory(memory.as_mut_ptr()) })?;
        // SAFETY: the entry has said OK, and has written it.
        let infer_mlx_memory { active, peak, cache, limit } = unsafe { memory.assume_init() };
        Ok(Memory { active, peak, cache, limit })
    }

    pub(crate) fn reset_peak(&self) -> Result<(), Failure> {
        // SAFETY: the entry has no precondition.
        self.cross(|api| unsafe { api.reset_peak_memory() })
    }

    pub(crate) fn clear_cache(&self) -> Result<(), Failure> {
        // SAFETY: as above.
        self.cross(|api| unsafe { api.clear_cache() })
    }

    /// Gives what was set before; so the others.
    pub(crate) fn set_cache_limit(&self, bytes: u64) -> Result<u64, Failure> {
        let mut before = 0;
        // SAFETY: a valid place, and any number.
        self.cross(|api| unsafe { api.set_cache_limit(bytes, &raw mut before) }).map(|()| before)
    }

    pub(crate) fn set_memory_limit(&self, bytes: u64) -> Result<u64, Failure> {
        let mut before = 0;
        // SAFETY: as above.
        self.cross(|api| unsafe { api.set_memory_limit(bytes, &raw mut before) }).map(|()| before)
    }

    pub(crate) fn set_wired_limit(&self, bytes: u64) -> Result<u64, Failure> {
        let mut before = 0;
        // SAFETY: as above.
        self.cross(|api| unsafe { api.set_wired_limit(bytes, &raw mut before) }).map(|()| before)
    }
}

/// The devices of a library, without opening one.
pub(crate) fn devices(api: Api) -> Result<Vec<Device>, Failure> {
    let mut all = Vec::new();
    for kind in [sys::INFER_MLX_GPU, sys::INFER_MLX_CPU] {
        let mut count = 0;
        // SAFETY: a valid place, and a type of the enumeration.
        let status = unsafe { api.device_count(kind as i32, &raw mut count) };
        check(api, status)?;
        for index in 0..count {
            all.push(device(api, kind as i32, index)?);
        }
    }
    Ok(all)
}

fn device(api: Api, kind: i32, index: i32) -> Result<Device, Failure> {
    let mut device = MaybeUninit::<infer_mlx_device>::uninit();
    // SAFETY: a valid place; a device that is not there is refused.
    let status = unsafe { api.device_info(kind, index, device.as_mut_ptr()) };
    check(api, status)?;
    // SAFETY: the entry has said OK, and has written it.
    let device = unsafe { device.assume_init() };
    // Up to the NUL, which the header promises: but nothing is read beyond the field without one.
    let name: Vec<u8> = device.name.iter().map(|&byte| byte as u8).take_while(|&byte| byte != 0).collect();
    Ok(Device {
        gpu: kind == sys::INFER_MLX_GPU as i32,
        name: String::from_utf8_lossy(&name).into_owned(),
        memory_total: device.memory_total,
    })
}
