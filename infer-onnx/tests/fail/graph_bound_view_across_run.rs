// What a bound run gave is gone with the next one.
use infer_onnx::{Binding, Graph};

fn stale(graph: &mut Graph, binding: &mut Binding<'_>) {
    graph.run_bound(binding).unwrap();
    let y = binding.outputs().tensor("y").unwrap();
    graph.run_bound(binding).unwrap();
    println!("{y:?}");
}

fn main() {}
