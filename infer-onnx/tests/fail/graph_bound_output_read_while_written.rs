// Memory that is bound as an output is the binding's: it is read through it, or afterwards.
use infer_onnx::{Graph, TensorViewMut};

fn reads(graph: &mut Graph) {
    let mut y = vec![0.0_f32];
    let mut binding = graph.binding().unwrap();
    binding.bind_output("y", TensorViewMut::new(&[1], &mut y).unwrap()).unwrap();
    println!("{}", y[0]);
    graph.run_bound(&mut binding).unwrap();
}

fn main() {}
