//! What the tests of this crate share.
#![allow(dead_code, reason = "each test uses a part of it")]

pub(crate) mod model;

use infer_onnx::{Graph, GraphOptions, LoadOptions, Onnx};

/// The library.
pub(crate) fn onnx() -> Onnx {
    Onnx::load(&LoadOptions::new()).unwrap()
}

/// A model, loaded with one thread.
#[track_caller]
pub(crate) fn load(model: &[u8]) -> Graph {
    Graph::from_bytes(&onnx(), model, &GraphOptions::new().with_threads(1)).unwrap()
}
