// What a run gave is borrowed from the graph.
use infer_onnx::{Graph, TensorView};

fn outlives(mut graph: Graph, x: TensorView<'_>) -> TensorView<'static> {
    graph.run([("x", x)]).unwrap();
    graph.outputs().tensor("y").unwrap()
}

fn main() {}
