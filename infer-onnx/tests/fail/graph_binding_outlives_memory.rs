// What is bound is borrowed for as long as the binding lives.
use infer_onnx::{Graph, TensorView};

fn outlives(graph: &mut Graph) {
    let mut binding = graph.binding().unwrap();
    {
        let x = vec![1.0_f32];
        binding.bind_input("x", TensorView::new(&[1], &x).unwrap()).unwrap();
    }
    graph.run_bound(&mut binding).unwrap();
}

fn main() {}
