//! Doors to the native inference runtimes: bindings, linking, loading.
//!
//! A *door* is a table of C functions behind one exported symbol. The same table can be
//!
//! - **linked**: built into this program as one relocatable object whose only global symbol is the door, so that a second copy of the same
//!   runtime in the process cannot clash with it;
//! - **loaded**: taken from a shared library at run time, so that building needs no C or C++ toolchain;
//! - **faked**: written in Rust, for tests of what native code would have to misbehave to show, and for Miri.
//!
//! Whichever way it comes, a door is compared with what this crate was made for (version, size, struct sizes, pinned commit) before
//! anybody can call through it.
//!
//! This crate has C names and no logic of its own: who owns a native object, and what its errors mean, is the business of the runtime crates
//! above it.
//!
//! | feature | default | what it adds |
//! | --- | --- | --- |
//! | `llama` | no | the [`llama`] module: bindings and the faked door |
//! | `llama-link` | no | llama.cpp built and linked: `llama::Api::linked` |
//! | `llama-load` | no | llama.cpp from a shared library: `llama::Api::load` |
//! | `onnxruntime` | no | the [`onnxruntime`] module: ONNX Runtime's bindings, kept by the authors of `ort`, and the library from a file: `onnxruntime::Api::load` |
//! | `mlx` | no | the [`mlx`] module: bindings of the door to MLX, and the library from a file: `mlx::Api::load` |
//!
//! Features only add. With several of them on, a constructor chooses.

#[cfg(any(feature = "llama", feature = "mlx"))]
mod door;
#[cfg(any(feature = "llama", feature = "mlx", feature = "onnxruntime"))]
mod error;
#[cfg(any(feature = "llama-load", feature = "mlx", feature = "onnxruntime"))]
mod library;
#[cfg(feature = "llama")]
pub mod llama;
#[cfg(feature = "mlx")]
pub mod mlx;
#[cfg(feature = "onnxruntime")]
pub mod onnxruntime;

#[cfg(any(feature = "llama", feature = "mlx", feature = "onnxruntime"))]
pub use error::{LoadError, Looked, Refusal};
#[cfg(any(feature = "llama-load", feature = "mlx", feature = "onnxruntime"))]
pub use library::{CACHE_VARIABLE, Installed, LoadOptions};
