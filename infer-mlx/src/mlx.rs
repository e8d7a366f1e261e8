//! The library.

mod options;

pub use options::LoadOptions;

use crate::{
    Owned, Scope,
    array::failed,
    error::{BACKEND, error},
    raw,
    scope::evaluate,
};
use infer_core::{ErrorKind, Result};
use infer_sys::mlx;
use std::{fmt, path::PathBuf, rc::Rc};

/// MLX on this thread, with a stream that computes for it. As cheap to clone as a reference; the library itself is never unloaded.
#[derive(Clone)]
pub struct Mlx {
    runtime: Rc<raw::Runtime>,
}

/// A library that can be loaded, and what it computes on.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Available {
    /// What the library calls its version: "0.32.2".
    pub version: &'static str,
    /// What it was built for: "cpu", "metal", "cuda".
    pub variant: &'static str,
    /// The devices that it finds here, those that it would use first.
    pub devices: Vec<Device>,
}

/// What arrays are computed on.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Device {
    /// What the system calls it; empty where MLX does not know.
    pub name: String,
    /// Whether it is a GPU.
    pub gpu: bool,
    /// Bytes of memory it has; 0 where MLX does not know.
    pub memory: u64,
}

/// A shared library that is there.
#[derive(Debug)]
#[non_exhaustive]
pub struct Installed {
    /// Where it was found, in words: "the cache", ….
    pub place: String,
    /// The file.
    pub path: PathBuf,
    /// What it is and what it computes on, or what is wrong with it. It is opened for that, and not started.
    pub library: Result<Available>,
}

/// Objects that are there, by kind.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Live {
    /// Arrays of scopes.
    pub arrays: usize,
    /// Arrays with an owner of their own.
    pub owned: usize,
}

/// What MLX says of its memory, in bytes. One for all threads of the process.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct MemoryUse {
    /// Of arrays.
    pub active: u64,
    /// The most that `active` was since the last [`Mlx::reset_peak`].
    pub peak: u64,
    /// Freed, and kept for the next array.
    pub cache: u64,
    /// What `active` may come to.
    pub limit: u64,
}

impl Mlx {
    /// The shared library, found as the options say, or the one that this process has loaded already; with a stream of this thread.
    ///
    /// All that is loaded on a thread is the same: one stream, one count of everything. A process uses one library.
    ///
    /// # Errors
    /// [`Library`](infer_core::ErrorKind::Library) when there is none, or none that serves: with every place that was looked in, what was found there and
    /// what was wanted; or when this process has loaded another one than these options name.
    pub fn load(options: &LoadOptions) -> Result<Self> {
        let library = raw::open(options.as_sys(), options.names_one())?;
        Ok(Self { runtime: raw::of_this_thread(library)? })
    }

    /// What [`load`](Self::load) would find. The library is opened, but nothing is started: no stream, no device, no memory.
    ///
    /// # Errors
    /// As [`load`](Self::load).
    pub fn available(options: &LoadOptions) -> Result<Available> {
        Available::of(raw::open(options.as_sys(), options.names_one())?)
    }

    /// Every shared library there is, of those that [`load`](Self::load) could find, whatever its variant.
    #[must_use]
    pub fn installed(options: &LoadOptions) -> Vec<Installed> {
        let all = mlx::Api::installed(options.as_sys()).into_iter();
        all.map(|one| Installed {
            place: one.place().to_owned(),
            path: one.path().to_owned(),
            library: match one.door() {
                Ok(library) => Available::of(library),
                Err(refusal) => {
                    let remedy = one.remedy().map_or(String::new(), |remedy| format!("\n{remedy}"));
                    Err(error(ErrorKind::Library, format!("{refusal}{remedy}")))
                }
            },
        })
        .collect()
    }

    /// What the library calls its version: "0.32.2".
    #[must_use]
    pub fn version(&self) -> &'static str {
        self.runtime.api().version()
    }

    /// What the library was built for: "cpu", "metal", "cuda".
    #[must_use]
    pub fn variant(&self) -> &'static str {
        self.runtime.api().variant()
    }

    /// Whether a write into a KV cache copies nothing.
    pub(crate) fn writes_in_place(&self) -> bool {
        self.runtime.on_cpu()
    }

    /// A new scope, around which is nothing.
    #[must_use]
    pub fn scope(&self) -> Scope<'_> {
        Scope::outermost(&self.runtime)
    }

    /// Computes arrays that outlive scopes, as [`Scope::eval`] does with its own.
    ///
    /// # Errors
    /// As [`Scope::eval`].
    pub fn eval<'a>(&self, arrays: impl IntoIterator<Item = &'a Owned>) -> Result<()> {
        evaluate(&self.runtime, arrays.into_iter().map(Owned::inner), true)
    }

    /// The objects of this thread that are there, by kind.
    #[must_use]
    pub fn live(&self) -> Live {
        let (arrays, owned) = self.runtime.live();
        Live { arrays, owned }
    }

    /// How often arrays were evaluated on this thread, since it has the library.
    #[must_use]
    pub fn evals(&self) -> u64 {
        self.runtime.evals()
    }

    /// How often the library was called on this thread, since it has the library.
    #[must_use]
    pub fn crossings(&self) -> u64 {
        self.runtime.crossings()
    }

    /// What MLX says of its memory.
    ///
    /// # Errors
    /// What MLX says.
    pub fn memory(&self) -> Result<MemoryUse> {
        let memory = self.runtime.memory().map_err(|failure| failed("ask for the memory", failure))?;
        Ok(MemoryUse { active: memory.active, peak: memory.peak, cache: memory.cache, limit: memory.limit })
    }

    /// Begins to look for the peak anew.
    ///
    /// # Errors
    /// What MLX says.
    pub fn reset_peak(&self) -> Result<()> {
        self.runtime.reset_peak().map_err(|failure| failed("reset the peak", failure))
    }

    /// Gives memory that was freed, and kept for the next array, back to the system.
    ///
    /// # Errors
    /// What MLX says.
    pub fn clear_cache(&self) -> Result<()> {
        self.runtime.clear_cache().map_err(|failure| failed("clear the cache", failure))
    }

    /// How many bytes of freed memory are kept for the next arrays, in the whole process. Returns what it was before.
    ///
    /// # Errors
    /// What MLX says.
    pub fn set_cache_limit(&self, bytes: u64) -> Result<u64> {
        self.runtime.set_cache_limit(bytes).map_err(|failure| failed("set the cache limit", failure))
    }

    /// How many bytes arrays may come to, in the whole process: MLX waits for memory to be freed before it goes on. Returns what it was before.
    ///
    /// # Errors
    /// What MLX says.
    pub fn set_memory_limit(&self, bytes: u64) -> Result<u64> {
        self.runtime.set_memory_limit(bytes).map_err(|failure| failed("set the memory limit", failure))
    }

    /// How many bytes the system may not page out. Nothing else here touches that limit: it is the whole machine's, and asked for by whoever
    /// owns the machine. Returns what it was before.
    ///
    /// # Errors
    /// What MLX says; [`Unsupported`](infer_core::ErrorKind::Unsupported) where the library or the machine has no such limit.
    pub fn set_wired_limit(&self, bytes: u64) -> Result<u64> {
        self.runtime.set_wired_limit(bytes).map_err(|failure| failed("set the wired limit", failure))
    }
}

impl Available {
    fn of(library: mlx::Api) -> Result<Self> {
        let devices = raw::devices(library).map_err(|failure| failed("list the devices", failure))?;
        let devices = devices.into_iter().map(|one| Device { name: one.name, gpu: one.gpu, memory: one.memory_total });
        Ok(Self { version: library.version(), variant: library.variant(), devices: devices.collect() })
    }
}

impl fmt::Debug for Mlx {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Mlx").field("backend", &BACKEND).field("version", &self.version()).finish_non_exhaustive()
    }
}
