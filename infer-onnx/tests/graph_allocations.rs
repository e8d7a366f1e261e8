//! A bound run asks Rust's allocator for nothing.

mod kit;

use infer_onnx::Graph;
use kit::{
    load,
    model::{GraphOf, element, node, tensor, unary},
};
use std::{
    alloc::{GlobalAlloc, Layout, System},
    cell::Cell,
};

thread_local! {
    /// What this thread asked for; other threads of the test program do not matter.
    static ASKED: Cell<usize> = const { Cell::new(0) };
}

struct Counting;

// SAFETY: everything is handed to the system's allocator as it came; counting neither allocates nor unwinds.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        ASKED.set(ASKED.get() + 1);
        // SAFETY: the caller's promise is the one wanted here.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        // SAFETY: as above.
        unsafe { System.dealloc(pointer, layout) }
    }

    unsafe fn realloc(&self, pointer: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        ASKED.set(ASKED.get() + 1);
        // SAFETY: as above.
        unsafe { System.realloc(pointer, layout, size) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// What a hundred runs ask for, after a few.
fn asked(graph: &mut Graph, input: &str, shape: &[usize]) -> usize {
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
    let before = ASKED.get();
    for _ in 0..100 {
        run();
    }
    let asked = ASKED.get() - before;
    assert_eq!(sum, 103.0);
    asked
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
