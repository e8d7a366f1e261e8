//! Runs ask Rust's allocator for nothing.

mod kit;

use infer_onnx::{Graph, TensorView};
use kit::{
    load,
    model::{GraphOf, element, node, tensor, unary},
};
use test_kit::{Counting, heap};

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// What a hundred runs ask for, after a few.
fn asked(graph: &mut Graph, input: &str, shape: &[usize]) -> u64 {
    let mut binding = graph.binding().unwrap();
    binding.bind_zeros(input, shape).unwrap();
    let mut sum = 0.0;
    let mut run = || {
        binding.input_mut::<f32>(input).unwrap().fill(1.0);
        graph.run_bound(&mut binding).unwrap();
        sum += binding.outputs().tensor("y").unwrap().as_slice::<f32>().unwrap()[0];
    };
    for _ in 0..3 {
        run();
    }
    let (asked, ()) = heap(|| (0..100).for_each(|_| run()));
    assert_eq!(sum, 103.0);
    asked.allocations
}

#[test]
fn a_bound_run_allocates_nothing() {
    let mut fixed = load(&unary("Relu", &tensor(element::F32, [1_i64, 64])));
    assert_eq!(asked(&mut fixed, "x", &[1, 64]), 0);
}

#[test]
fn nor_where_the_shape_is_open() {
    let kind = tensor(element::F32, ["batch", "width"]);
    let model =
        GraphOf::new("open").node(&node("Relu", &["in"], &["y"], &[])).input("in", &kind).output("y", &kind).model();
    assert_eq!(asked(&mut load(&model), "in", &[2, 3]), 0);
}

#[test]
fn a_plain_run_allocates_nothing_whatever_it_is_lent() {
    let mut graph = load(&unary("Relu", &tensor(element::F32, ["batch", "width"])));
    let buffers = [[1.0_f32; 6], [2.0; 6]];
    let mut sum = 0.0;
    let mut run = |step: usize| {
        let shape: &[usize] = if step.is_multiple_of(3) { &[2, 3] } else { &[3, 2] };
        graph.run([("x", TensorView::new(shape, &buffers[step / 2 % 2]).unwrap())]).unwrap();
        sum += graph.outputs().tensor("y").unwrap().as_slice::<f32>().unwrap()[0];
    };
    (0..4).for_each(&mut run);
    let (asked, ()) = heap(|| (0..100).for_each(&mut run));
    assert_eq!((asked.allocations, sum), (0, 156.0));
}
