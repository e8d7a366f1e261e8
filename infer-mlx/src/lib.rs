//! MLX behind infer's [`Session`](infer_core::Session), and arrays that live in scopes.
#![deny(unsafe_code)]

mod array;
mod dtype;
mod error;
mod mlx;
mod operand;
mod owned;
mod poison;
#[allow(unsafe_code, reason = "owners of MLX's objects; each block says why it holds")]
mod raw;
pub mod safetensors;
mod scope;

pub use array::{Array, Mask, RopeOffset};
pub use dtype::DType;
pub use mlx::{Available, Device, Installed, Live, LoadOptions, MemoryUse, Mlx};
pub use operand::Operand;
pub use owned::Owned;
pub use raw::Element;
pub use scope::Scope;
