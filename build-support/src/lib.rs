//! Pins, fetching, building and caching of the native runtimes behind `infer`.
//!
//! Used by the build script of `infer-sys`, by `cargo xtask` and by `infer setup`; no library needs it at run time.
//!
//! # The order of resolution
//!
//! Whoever wants llama.cpp linked gets it from the first of these that is there; [`choose`] is that list as a pure
//! function, with a test for each row:
//!
//! 1. nothing, when documentation is built or linking was not asked for;
//! 2. the system's library (`INFER_LLAMA_SYSTEM`), a ready library (`INFER_LLAMA_PREFIX`), or a source tree
//!    (`INFER_LLAMA_SOURCE`) that the user names, one of them at a time;
//! 3. the cache's finished build with the same [key](cache::Key), or its archives, lacking only the shim;
//! 4. the source tree inside the package of `infer-sys`, as published;
//! 5. the source tree that `cargo xtask setup` left in the cache;
//! 6. nothing, with a warning that says what was looked for, where, and the ways to provide it.
//!
//! # Who may do what
//!
//! A build script builds, into the [cache]; it never fetches. Fetching (feature `fetch`) is for `cargo xtask setup` and
//! `infer setup`: by pip, with the hashes of `native.toml`. Native compilation runs in a child process ([`Host`]), so that
//! its output is a log and its failure an [`Error`]. The environment is read in [`mod@env`] and nowhere else; lines for
//! cargo are printed in [`cargo`] and nowhere else.

pub mod cache;
pub mod cargo;
pub mod choose;
pub mod compile;
pub mod door;
pub mod env;
mod error;
#[cfg(feature = "fetch")]
pub mod fetch;
pub mod fixtures;
pub mod gguf;
mod host;
pub mod llama;
pub mod made;
pub mod mlx;
pub mod onnxruntime;
pub mod pins;
pub mod programs;
mod progress;
pub mod python;
#[cfg(feature = "fetch")]
pub mod setup;
pub mod tiny;
pub mod toolchain;
pub mod tools;
pub mod tree;
#[cfg(feature = "fetch")]
mod unpack;

pub use error::{Error, Result};
pub use host::{Host, begin};
pub use progress::{Progress, Silent};
