//! ONNX Runtime's C interface.
//!
//! Unlike the other doors this one is not generated here: the bindings are those of [`ort-sys`](ort_sys), kept by hand by the authors of `ort`, which
//! the runtime crate above stands on too; a second set beside them could only differ.

pub use ort_sys::*;
