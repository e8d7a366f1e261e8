//! Any ONNX model: what it takes and gives, and a run on zeros. Then a hundred runs with everything bound, which allocate nothing.
//!
//! `cargo run -p infer-examples --bin onnx_graph -- MODEL.onnx [SIZE]`, where SIZE is for the dimensions that the model leaves open (1).

use infer::onnx::{Dim, Graph, GraphOptions, LoadOptions, Onnx, ValueView};
use std::time::{Duration, Instant};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut arguments = std::env::args().skip(1);
    let path = arguments.next().ok_or("which model? `cargo xtask model magika` prints the folder of one")?;
    let open: usize = arguments.next().map_or(Ok(1), |size| size.parse())?;

    let onnx = Onnx::load(&LoadOptions::new())?;
    let mut graph = Graph::open(&onnx, &path, &GraphOptions::new())?;
    let header = graph.header();
    println!("{path}: by {} {}, opsets {:?}", header.producer(), header.producer_version(), header.opsets());

    // Inputs that belong to the binding, of zeros; where they are not zeros, `binding.input_mut` gives the elements to write.
    let mut binding = graph.binding()?;
    for input in graph.inputs() {
        println!("  takes {} : {}", input.name(), input.kind());
        if input.is_optional() {
            continue;
        }
        let dims = input.kind().dims().unwrap_or_default();
        let size = |dim: &Dim| if let Dim::Fixed(size) = dim { *size } else { open };
        binding.bind_zeros(input.name(), &dims.iter().map(size).collect::<Vec<_>>())?;
    }

    // A run ends at its deadline, or when another thread raises `graph.interrupt()`.
    graph.run_bound_until(Instant::now() + Duration::from_secs(60), &mut binding)?;
    for (name, value) in binding.outputs().iter() {
        match value? {
            ValueView::Tensor(tensor) => println!("  gives {name} : {}{:?}", tensor.dtype(), tensor.shape()),
            other => println!("  gives {name} : {other:?}"),
        }
    }

    let begun = Instant::now();
    for _ in 0..100 {
        graph.run_bound(&mut binding)?;
    }
    println!("{:?} a run", begun.elapsed() / 100);
    Ok(())
}
