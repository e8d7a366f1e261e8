use crate::{Backend, Library, backends};
use infer_core::Result;

/// What a model can be computed on, at the moment it was asked.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Device {
    /// The backend that drives it.
    pub backend: Backend,
    /// Short name, such as `CPU` or `Vulkan0`.
    pub name: String,
    /// What it is called by its maker.
    pub description: String,
    /// What it is, in one word: `cpu`, `gpu`, `integrated-gpu`, `accelerator`, `other`.
    pub kind: &'static str,
    /// Bytes of memory that are free; `None` where the runtime does not know.
    pub memory_free: Option<u64>,
    /// Bytes of memory in all; `None` where the runtime does not know.
    pub memory_total: Option<u64>,
}

/// The devices of every backend that is compiled in. `library` says where a backend's native library comes from.
///
/// # Errors
/// [`Library`](crate::ErrorKind::Library) when a native library is missing or another one;
/// [`Runtime`](crate::ErrorKind::Runtime) when a runtime cannot say.
pub fn devices(library: &Library) -> Result<Vec<Device>> {
    backends::devices(library)
}
