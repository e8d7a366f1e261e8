//! ONNX Runtime behind infer's [`Session`](infer_core::Session), and graphs with named tensors.
#![deny(unsafe_code)]

mod decoder;
mod encoder;
mod error;
mod fingerprint;
mod forward;
mod genai;
mod graph;
pub mod header;
mod kv;
mod load;
mod log;
mod model;
mod onnx;
mod optimum;
mod options;
mod package;
mod pool;
mod providers;
#[allow(unsafe_code, reason = "owners of ONNX Runtime's objects; each block says why it holds")]
mod raw;
mod session;
mod tensor;

pub use encoder::Encoder;
pub use graph::{Binding, Graph, GraphOptions, Optimization, Outputs};
pub use model::Model;
pub use onnx::{Installed, LoadOptions, Onnx};
pub use options::ModelOptions;
pub use package::{Form, Package};
pub use pool::{Pool, PoolGuard, PoolOptions, PoolStats};
pub use providers::{Provider, ProviderUse};
pub use session::Session;
pub use tensor::{
    DType, Dim, Element, Input, Map, MapView, Port, SequenceView, Tensor, TensorView, TensorViewMut, Text, Value,
    ValueType, ValueView,
};
