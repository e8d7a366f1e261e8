//! ONNX Runtime behind infer's [`Session`](infer_core::Session), and graphs with named tensors.
#![deny(unsafe_code)]
