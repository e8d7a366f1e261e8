//! What models can be computed on.

use crate::{Llama, convert};
use infer_core::Result;

/// A device the library can compute on, at the moment it was asked.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Device {
    /// Short name, such as `CPU` or `Vulkan0`.
    pub name: String,
    /// What it is called by its maker.
    pub description: String,
    /// The part of the library that drives it.
    pub backend: String,
    /// What it is.
    pub kind: DeviceKind,
    /// Memory that is free, in bytes; 0 where the library does not know.
    pub memory_free: u64,
    /// Memory in all, in bytes; 0 where the library does not know.
    pub memory_total: u64,
}

/// What a device is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum DeviceKind {
    /// The processor.
    Cpu,
    /// A graphics processor with memory of its own.
    Gpu,
    /// A graphics processor that shares the machine's memory.
    IntegratedGpu,
    /// Something that computes for the processor, such as a matrix library.
    Accelerator,
    /// Something else.
    Other,
}

impl Llama {
    /// The devices there are.
    ///
    /// # Errors
    /// [`Runtime`](infer_core::ErrorKind::Runtime) when the library cannot say.
    pub fn devices(&self) -> Result<Vec<Device>> {
        let devices = self.door.devices()?.into_iter().map(|device| Device {
            name: device.name,
            description: device.description,
            backend: device.backend,
            kind: convert::device_kind(device.kind),
            memory_free: device.memory_free,
            memory_total: device.memory_total,
        });
        Ok(devices.collect())
    }
}
