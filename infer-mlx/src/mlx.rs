//! The library.

mod options;

pub use options::LoadOptions;

use crate::{
    Owned, Scope,
    error::{BACKEND, error},
    raw,
};
use infer_core::{ErrorKind, Result};
use std::{fmt, path::PathBuf, rc::Rc};

/// MLX on this thread, with a stream that computes for it. As cheap to clone as a reference; the library itself is never unloaded.
#[derive(Clone)]
pub struct Mlx {
    runtime: Rc<raw::Runtime>,
}

/// A library that could be loaded.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Available {
    /// The file.
    pub path: PathBuf,
    /// What the library calls its version: "0.32.2".
    pub version: String,
    /// What it was built for: "cpu", "metal", ….
    pub variant: String,
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
    /// The shared library, found as the options say, or the one that this process has loaded already; and a stream of this thread.
    ///
    /// # Errors
    /// [`Library`](ErrorKind::Library) when there is none, or none that serves.
    pub fn load(options: &LoadOptions) -> Result<Self> {
        let _ = (options.as_sys(), options.names_one());
        Err(error(ErrorKind::Library, "this build has no door to MLX"))
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
        let scope = self.scope();
        scope.eval(arrays.into_iter().map(|owned| scope.enter(owned)))
    }
}

impl fmt::Debug for Mlx {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Mlx").field("backend", &BACKEND).finish_non_exhaustive()
    }
}
