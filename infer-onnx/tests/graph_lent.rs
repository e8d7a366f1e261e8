//! What runs are lent, one after another: the same memory, other memory, and none.

mod kit;

use infer_core::ErrorKind;
use infer_onnx::{DType, Graph, Tensor, TensorView};
use kit::{
    load,
    model::{self, GraphOf, element, node, sum_with_default, tensor, unary},
};

/// `x` as it comes out of `graph`, which gives it back.
#[track_caller]
fn relu(graph: &mut Graph, shape: &[usize], x: &[f32]) -> Vec<f32> {
    graph.run([("x", TensorView::new(shape, x).unwrap())]).unwrap();
    let y = graph.outputs().tensor("y").unwrap();
    assert_eq!(y.shape(), shape);
    y.as_slice().unwrap().to_vec()
}

/// A run that is lent what the last one was takes the same value, which reads what is there now.
#[test]
fn memory_that_is_lent_again_is_read_again() {
    let mut graph = load(&unary("Relu", &model::tensor_of(element::F32)));
    let (mut one, two) = (vec![1.0_f32, -1.0, 2.0, 3.0], [5.0_f32, 6.0, 7.0, -8.0]);
    for step in [4.0, 9.0, 16.0] {
        one[0] = step;
        assert_eq!(relu(&mut graph, &[4], &one), [step, 0.0, 2.0, 3.0]);
        assert_eq!(relu(&mut graph, &[4], &one), [step, 0.0, 2.0, 3.0]);
        // Another one in its turn; the same one in other shapes, and a part of it.
        assert_eq!(relu(&mut graph, &[4], &two), [5.0, 6.0, 7.0, 0.0]);
        assert_eq!(relu(&mut graph, &[2, 2], &one), [step, 0.0, 2.0, 3.0]);
        assert_eq!(relu(&mut graph, &[4, 1], &one), [step, 0.0, 2.0, 3.0]);
        assert_eq!(relu(&mut graph, &[2], &one[..2]), [step, 0.0]);
        assert!(relu(&mut graph, &[0], &one[..0]).is_empty());
    }
}

/// Where memory was freed, another may lie: of another shape, or of the same one and with other contents.
#[test]
fn memory_that_lies_where_another_was_is_its_own() {
    let mut graph = load(&unary("Relu", &model::tensor_of(element::F32)));
    let mut met = 0;
    let mut last = std::ptr::null();
    for round in 0..200_usize {
        let x = vec![round as f32; 1024];
        met += usize::from(x.as_ptr() == last);
        last = x.as_ptr();
        let shape: &[usize] = if round.is_multiple_of(3) { &[32, 32] } else { &[1024] };
        assert_eq!(relu(&mut graph, shape, &x), x);
    }
    assert!(met > 0, "no memory came twice: this has shown nothing");
}

/// The same bytes as elements of another type are another tensor, and no input of this graph.
#[test]
fn what_was_lent_before_is_looked_at_where_it_differs() {
    let kind = tensor(element::F32, [model::Size::Named("n"), 2.into()]);
    let mut graph = load(&unary("Relu", &kind));
    let bits = [0_u32; 4];
    let bytes: Vec<u8> = bits.iter().flat_map(|bits| bits.to_ne_bytes()).collect();
    let aligned = Tensor::from_bytes(DType::F32, &[2, 2], &bytes).unwrap();
    let bytes = aligned.view().bytes().unwrap();
    let run = |graph: &mut Graph, dtype, shape: &[usize]| {
        graph.run([("x", TensorView::from_bytes(dtype, shape, bytes).unwrap())])
    };
    for _ in 0..2 {
        run(&mut graph, DType::F32, &[2, 2]).unwrap();
        for (dtype, shape, words) in [
            (DType::I32, &[2, 2][..], "the type of the elements differs"),
            (DType::F32, &[1, 4], "dimension 1 differs"),
            (DType::F32, &[4], "it has 1 dimensions, not 2"),
        ] {
            let error = run(&mut graph, dtype, shape).unwrap_err();
            assert!(error.kind() == ErrorKind::InvalidInput && error.to_string().contains(words), "{error}");
            assert_eq!(graph.outputs().iter().count(), 0);
        }
    }
}

/// What an earlier run was lent is not there for one that is given nothing.
#[test]
fn what_was_lent_before_is_not_given_again() {
    let mut graph = load(&sum_with_default());
    let values = [1.0_f32, 2.0];
    let x = TensorView::new(&[2], &values).unwrap();
    let sum = |graph: &Graph| graph.outputs().tensor("y").unwrap().as_slice::<f32>().unwrap().to_vec();
    for _ in 0..2 {
        // In either order.
        graph.run([("b", x), ("x", x)]).unwrap();
        assert_eq!(sum(&graph), [2.0, 4.0]);
        graph.run([("x", x)]).unwrap();
        assert_eq!(sum(&graph), [11.0, 22.0]);
        let error = graph.run([("b", x)]).unwrap_err();
        assert!(error.to_string().contains("the input \"x\" (float32[2]) was not given"), "{error}");
        let error = graph.run([("x", x), ("x", x)]).unwrap_err();
        assert!(error.to_string().contains("given twice"), "{error}");
    }
}

/// A graph that goes from thread to thread takes its kept room along.
#[test]
fn threads_run_it_by_turns() {
    let mut graph = load(&unary("Relu", &tensor(element::F32, ["n"])));
    let shared = [1.0_f32, -1.0];
    for _ in 0..3 {
        assert_eq!(relu(&mut graph, &[2], &shared), [1.0, 0.0]);
        graph = std::thread::scope(|scope| {
            let run = scope.spawn(|| {
                let own = vec![-2.0_f32, 2.0];
                assert_eq!(relu(&mut graph, &[2], &own), [0.0, 2.0]);
                assert_eq!(relu(&mut graph, &[2], &shared), [1.0, 0.0]);
                graph
            });
            run.join().unwrap()
        });
    }
}

/// A caller's iterator that panics half way leaves nothing behind.
#[test]
fn inputs_that_panic_leave_the_graph_as_it_was() {
    let kind = tensor(element::F32, [2_i64]);
    let model = GraphOf::new("add")
        .node(&node("Add", &["a", "b"], &["y"], &[]))
        .input("a", &kind)
        .input("b", &kind)
        .output("y", &kind)
        .model();
    let mut graph = load(&model);
    let values = [1.0_f32, 2.0];
    let x = TensorView::new(&[2], &values).unwrap();
    let inputs = (0..2).map(|place| if place == 0 { ("a", x) } else { panic!("asked to") });
    let run = std::panic::AssertUnwindSafe(|| graph.run(inputs));
    assert!(std::panic::catch_unwind(run).is_err());
    let error = graph.run([("b", x)]).unwrap_err();
    assert!(error.to_string().contains("the input \"a\" (float32[2]) was not given"), "{error}");
    graph.run([("b", x), ("a", x)]).unwrap();
    assert_eq!(graph.outputs().tensor("y").unwrap().as_slice::<f32>().unwrap(), [2.0, 4.0]);
}
