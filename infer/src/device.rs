use crate::{Backend, Library, backends};
use infer_core::Result;
use std::path::PathBuf;

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

/// The devices of every backend that is compiled in and whose library is there. `library` says where a backend's native library comes from;
/// a library by its path is of one backend.
///
/// # Errors
/// [`Library`](crate::ErrorKind::Library) when there is no native library of any backend;
/// [`Runtime`](crate::ErrorKind::Runtime) when a runtime cannot say.
pub fn devices(library: &Library) -> Result<Vec<Device>> {
    backends::devices(library)
}

/// A native library that is there, and what it can compute on.
#[derive(Debug)]
#[non_exhaustive]
pub struct Installed {
    /// The backend it is of.
    pub backend: Backend,
    /// Where it was found, in words: "linked into this program", "the cache", ….
    pub place: String,
    /// The file, where it is one of its own.
    pub path: Option<PathBuf>,
    /// What it calls its version: "1.32.0"; `None` of one that cannot be used.
    pub version: Option<String>,
    /// How it was built: `cpu`, `vulkan`, …; `None` of one that does not say, as ONNX Runtime's, or cannot be used.
    pub variant: Option<String>,
    /// Its devices, or what is wrong with it.
    pub devices: Result<Vec<Device>>,
}

/// The native libraries of every backend that is compiled in: the one that is linked in, and those that could be loaded. Each is
/// opened to ask it; one that does harm when it is opened is found out in a child process.
#[must_use]
pub fn installed() -> Vec<Installed> {
    backends::installed()
}

/// A backend: what a model would be computed on where nothing else is asked for, and what is there besides.
#[derive(Debug)]
#[non_exhaustive]
pub struct Runtime {
    /// The backend.
    pub backend: Backend,
    /// The devices of the library that is used by default ([`Library::Default`]), or why there is none: it is not compiled in, not set up, or an
    /// environment variable names what cannot be used. The error says what to do.
    pub devices: Result<Vec<Device>>,
    /// All libraries of it that are there, as [`installed`] lists them; those that can not be used among them.
    pub libraries: Vec<Installed>,
}

/// Every backend there is, with what this program can use of it. Libraries are opened as [`installed`] does it.
#[must_use]
pub fn runtimes() -> Vec<Runtime> {
    Backend::ALL.iter().map(|&backend| backends::runtime(backend)).collect()
}
