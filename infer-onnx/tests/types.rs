//! Which types may cross threads, and what must not compile.

use infer_onnx::{Binding, Graph, GraphOptions, Onnx, Tensor, TensorView, Value, header::Header};

fn send<T: Send + 'static>() {}
fn send_sync<T: Send + Sync + 'static>() {}

#[test]
fn what_may_cross_threads_does() {
    send_sync::<Onnx>();
    send_sync::<GraphOptions>();
    send_sync::<Header>();
    send_sync::<Tensor>();
    send_sync::<TensorView<'static>>();
    send_sync::<Value>();
    send::<Graph>();
    send::<Binding<'static>>();
}

#[test]
fn misuse_does_not_compile() {
    trybuild::TestCases::new().compile_fail("tests/fail/graph_*.rs");
}
