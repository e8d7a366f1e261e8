//! MLX behind infer's [`Session`](infer_core::Session), and arrays that live in scopes.
//!
//! # In one minute
//!
//! - [`Mlx`] is the library on this thread, found and loaded at run time.
//! - A [`Scope`] is where arrays live: all that was made in it is freed with it, in one call.
//! - An [`Array`] is a value that is computed when it is wanted. It is `Copy`, and operations on it return no [`Result`](infer_core::Result).
//! - An [`Owned`] is an array that outlives scopes: a weight, a cache.
//!
//! ```
//! use infer_mlx::{Array, DType, LoadOptions, Mlx, Owned};
//!
//! struct Layer { up: Owned, down: Owned, norm: Owned }
//!
//! impl Layer {
//!     fn forward<'s>(&self, x: Array<'s>) -> Array<'s> {
//!         x + x.rms_norm(&self.norm, 1e-5).matmul(&self.up).silu().matmul(&self.down)
//!     }
//! }
//!
//! # fn main() -> infer_core::Result<()> {
//! let mlx = Mlx::load(&LoadOptions::new())?;
//! let scope = mlx.scope();
//! let weight = |rows, columns| scope.full(0.1, &[rows, columns], DType::F32).own();
//! let layer = Layer { up: weight(4, 8), down: weight(8, 4), norm: scope.ones(&[4], DType::F32).own() };
//!
//! let x = scope.array(&[1.0f32, 2.0, 3.0, 4.0], &[1, 4]);
//! let y = layer.forward(x);
//! scope.eval([y])?; // Nothing was computed before.
//! assert!(y.data::<f32>()?[0] > 1.0);
//!
//! let wrong = layer.forward(x.t());
//! let error = scope.eval([wrong]).unwrap_err().to_string();
//! assert!(error.starts_with("rms_norm of float32[4, 1] and float32[4] at "), "{error}");
//! # Ok(())
//! # }
//! ```
//!
//! # How long an array lives
//!
//! **A result lives with its shortest-lived operand.** Arrays of a scope and of the ones around it may be mixed; the result is freed with the
//! innermost of them. The compiler keeps to it: an array that would outlive its scope does not compile, nor does one on another thread.
//!
//! | to have | call |
//! | --- | --- |
//! | the result of two outer arrays freed early | [`Scope::enter`] one of them first |
//! | an array in the scope around this one | [`Scope::keep`] |
//! | an array for as long as one likes | [`Array::own`] |
//! | a scope of one's own in a function | `x.scope().nest()` |
//!
//! **Keep after `eval`.** An array that is not computed yet is a formula, and has all that goes into it: to `keep` or `own` one keeps the whole
//! graph, its weights too. Computed, it has its own memory only. [`Owned::detach`] computes what was kept too early, and lets the rest go.
//! Parts (`slice`, `split`, `reshape`) share the memory of what they are part of; `contiguous` copies a part out of it.
//!
//! # Errors that are told later
//!
//! An operation whose operands do not fit gives an array that *is* the error: with the operation, the types and shapes of its operands, and the place in the
//! source that called it. Whatever is made of it is the same error, and whoever wants a value is told: [`Scope::eval`], [`Array::data`],
//! [`Array::item`], and [`Array::check`], which computes nothing. So layers read as their formulas; what they must not do is to take sizes from
//! [`Array::shape`], which is empty for such an array.
//!
//! Indices are numbers that only the computation knows: one outside its axis fails [`eval`](Scope::eval).
//!
//! # Why it is made this way
//!
//! **Threads.** MLX binds streams and what is to be computed to the thread that made them. So nothing here is `Send`; each thread loads the library for
//! itself, which costs it a stream and nothing more, and `infer::Worker` is a thread that owns such a value.
//!
//! **Freed in one call.** A pass makes hundreds of arrays. A scope frees its own together, in one crossing, and the next scope uses its list again:
//! nothing is allocated for it in steady state.
//!
//! **Data only when it is there.** Elements are lent as a slice of MLX's own memory, which borrows the scope, after it was looked at that they
//! are computed, of this type, and lie row by row.
//!
//! **`unsafe` is in one module.** `raw` owns MLX's objects and argues each block. The rest has no pointers and no C types.
#![deny(unsafe_code)]

mod array;
mod config;
mod dtype;
mod encoder;
mod error;
mod fingerprint;
mod kv;
mod linear;
mod mlx;
mod model;
mod models;
mod operand;
mod options;
mod owned;
mod package;
mod poison;
#[allow(unsafe_code, reason = "owners of MLX's objects; each block says why it holds")]
mod raw;
mod rope;
pub mod safetensors;
mod sampling;
mod scope;
mod session;
mod step;
mod weights;

pub use array::{Array, Mask, RopeOffset};
pub use dtype::DType;
pub use encoder::Encoder;
pub use mlx::{Available, Device, Installed, Live, LoadOptions, MemoryUse, Mlx};
pub use model::Model;
pub use operand::Operand;
pub use options::{ModelOptions, SessionOptions};
pub use owned::Owned;
pub use package::Package;
pub use raw::Element;
pub use scope::Scope;
pub use session::Session;
