//! The one place with `unsafe`: owners of ONNX Runtime's objects, with pointers inside and none outside.
//!
//! Each type owns one C object and keeps alive what that object needs; its methods turn a status into a
//! [`Result`](infer_core::Result). What `onnxruntime_c_api.h` asks of a caller is established here or by the types: nothing in this module trusts
//! the crate's other modules with memory safety.
//!
//! `ort` loads the library, makes the environment and fills session options; what is on the way of each call (values, runs, bindings)
//! goes through the library's table directly, since `ort`'s `run` allocates, and its bindings copy borrowed inputs.

mod api;
mod binding;
mod cache;
mod cast;
mod cpu;
mod exit;
mod frozen;
mod global;
mod load;
pub(crate) mod operators;
#[cfg(target_os = "linux")]
mod pages;
mod providers;
mod run_options;
mod session;
mod shape;
#[cfg(test)]
mod tests;
mod trim;
mod type_info;
mod value;
mod weights;

pub(crate) use api::{Api, dtype_of};
pub(crate) use binding::Binding;
pub(crate) use cache::Cache;
pub(crate) use cast::{as_bytes, as_bytes_mut, as_elements, as_elements_mut};
#[cfg(test)]
pub(crate) use cpu::Cpu;
pub(crate) use frozen::Frozen;
pub(crate) use global::{Started, start, started};
#[cfg(target_os = "linux")]
pub(crate) use pages::Before;
pub(crate) use providers::{append, available};
pub(crate) use run_options::{RunOptions, Stop};
pub(crate) use session::{Call, Outputs, Session};
pub(crate) use shape::Shape;
pub(crate) use trim::trim;
pub(crate) use value::{Borrowed, Contents, Value};
pub(crate) use weights::{Mapped, SharedWeights};
