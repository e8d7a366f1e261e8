//! Bindings: values that stay bound from run to run.

mod kit;

use infer_core::ErrorKind;
use infer_onnx::{DType, Input, Tensor, TensorView, TensorViewMut, Value, ValueView};
use kit::{
    load,
    model::{GraphOf, element, node, sequence, tensor, unary, weights},
};
use std::panic::{AssertUnwindSafe, catch_unwind};
use test_kit::Listener;
use tracing::subscriber::with_default;

fn relu() -> Vec<u8> {
    unary("Relu", &tensor(element::F32, [1_i64, 4]))
}

#[test]
fn an_input_of_the_bindings_own_is_changed_between_runs() {
    let mut graph = load(&relu());
    let mut binding = graph.binding().unwrap();
    binding.bind_zeros("x", &[1, 4]).unwrap();
    let mut at = None;
    for step in 0..4_u8 {
        binding.input_mut::<f32>("x").unwrap().copy_from_slice(&[f32::from(step), -1.0, 0.0, 2.0]);
        graph.run_bound(&mut binding).unwrap();
        let y = binding.outputs().tensor("y").unwrap().as_slice::<f32>().unwrap();
        assert_eq!(y, [f32::from(step), 0.0, 0.0, 2.0]);
        // The shape is fixed, so the runtime writes where it wrote before.
        assert_eq!(*at.get_or_insert(y.as_ptr()), y.as_ptr());
    }
}

#[test]
fn outputs_go_into_the_callers_memory() {
    let mut graph = load(&relu());
    let (x, mut y) = ([1.0_f32, -2.0, 3.0, -4.0], [9.0_f32; 4]);
    let mut binding = graph.binding().unwrap();
    binding.bind_input("x", TensorView::new(&[1, 4], &x).unwrap()).unwrap();
    binding.bind_output("y", TensorViewMut::new(&[1, 4], &mut y).unwrap()).unwrap();
    assert!(binding.outputs().get("y").is_err(), "nothing has run");
    graph.run_bound(&mut binding).unwrap();
    assert_eq!(binding.outputs().tensor("y").unwrap().as_slice::<f32>().unwrap(), [1.0, 0.0, 3.0, 0.0]);
    assert!(binding.take("y").is_err(), "it is the caller's");
    drop(binding);
    assert_eq!(y, [1.0, 0.0, 3.0, 0.0]);
}

#[test]
fn outputs_of_open_shape_are_chosen_anew_each_time() {
    let kind = tensor(element::I64, ["n"]);
    let model = GraphOf::new("where")
        .node(&node("NonZero", &["x"], &["y"], &[]))
        .input("x", &kind)
        .output("y", &tensor(element::I64, ["rank", "found"]))
        .model();
    let mut graph = load(&model);
    let mut binding = graph.binding().unwrap();
    binding.bind_zeros("x", &[4]).unwrap();
    for found in [0_usize, 3, 1, 4] {
        for (index, element) in binding.input_mut::<i64>("x").unwrap().iter_mut().enumerate() {
            *element = i64::from(index < found);
        }
        graph.run_bound(&mut binding).unwrap();
        let y = binding.outputs().tensor("y").unwrap();
        assert_eq!((y.shape(), y.as_slice::<i64>().unwrap()), (&[1, found][..], &[0, 1, 2, 3][..found]));
    }
    let Value::Tensor(taken) = binding.take("y").unwrap() else { panic!("a tensor") };
    binding.input_mut::<i64>("x").unwrap().fill(0);
    graph.run_bound(&mut binding).unwrap();
    assert_eq!(taken.view().as_slice::<i64>().unwrap(), [0, 1, 2, 3], "it is nobody else's any more");
}

#[test]
fn what_was_taken_is_not_written_again() {
    let mut graph = load(&relu());
    let mut binding = graph.binding().unwrap();
    binding.bind_zeros("x", &[1, 4]).unwrap();
    binding.input_mut::<f32>("x").unwrap().fill(1.0);
    graph.run_bound(&mut binding).unwrap();
    let Value::Tensor(ones) = binding.take("y").unwrap() else { panic!("a tensor") };
    assert!(binding.take("y").is_err());
    binding.input_mut::<f32>("x").unwrap().fill(2.0);
    graph.run_bound(&mut binding).unwrap();
    assert_eq!(binding.outputs().tensor("y").unwrap().as_slice::<f32>().unwrap(), [2.0; 4]);
    drop((binding, graph));
    assert_eq!(ones.view().as_slice::<f32>().unwrap(), [1.0; 4]);
}

#[test]
fn an_input_handed_through_is_copied() {
    let kind = tensor(element::F32, [2_i64]);
    let mut graph = load(&GraphOf::new("through").input("x", &kind).output("x", &kind).model());
    let mut y = [0.0_f32; 2];
    let mut binding = graph.binding().unwrap();
    binding.bind_zeros("x", &[2]).unwrap();
    for value in [1.0, 2.0] {
        binding.input_mut::<f32>("x").unwrap().fill(value);
        graph.run_bound(&mut binding).unwrap();
        assert_eq!(binding.outputs().tensor("x").unwrap().as_slice::<f32>().unwrap(), [value; 2]);
    }
    // Nothing would be written there.
    let error = binding.bind_output("x", TensorViewMut::new(&[2], &mut y).unwrap()).unwrap_err();
    assert!(error.to_string().contains("handed through"), "{error}");
    graph.run_bound(&mut binding).unwrap();
}

#[test]
fn sequences_and_strings_are_bound_as_copies() {
    let floats = tensor(element::F32, ["n"]);
    let model = GraphOf::new("sequences")
        .node(&node("SequenceInsert", &["s", "x"], &["longer"], &[]))
        .node(&node("Identity", &["t"], &["u"], &[]))
        .input("s", &sequence(&floats))
        .input("x", &floats)
        .input("t", &tensor(element::STRING, ["n"]))
        .output("longer", &sequence(&floats))
        .output("u", &tensor(element::STRING, ["n"]))
        .model();
    let mut graph = load(&model);
    let mut binding = graph.binding().unwrap();
    binding.bind_zeros("x", &[1]).unwrap();
    binding.bind_value("s", &Value::Sequence(vec![])).unwrap();
    binding.bind_value("t", &Tensor::strings(&[1], vec!["text".to_owned()]).unwrap().into()).unwrap();
    for value in [1.0, 2.0] {
        binding.input_mut::<f32>("x").unwrap().fill(value);
        graph.run_bound(&mut binding).unwrap();
        let ValueView::Sequence(longer) = binding.outputs().get("longer").unwrap() else { panic!("a sequence") };
        assert_eq!(longer.len().unwrap(), 1);
        let element = longer.get(0).unwrap();
        assert_eq!(element.as_tensor().unwrap().view().as_slice::<f32>().unwrap(), [value]);
        assert_eq!(binding.outputs().tensor("u").unwrap().to_strings().unwrap(), ["text"]);
    }
}

#[test]
fn what_is_wrong_is_refused_and_changes_nothing() {
    let mut graph = load(&relu());
    let mut other = load(&relu());
    let (long, mut short, mut doubles) = ([0.0_f32; 5], [0.0_f32; 3], [0.0_f64; 4]);
    let mut binding = graph.binding().unwrap();
    let error = graph.run_bound(&mut binding).unwrap_err();
    assert!(error.to_string().contains("\"x\" (float32[1, 4]) was not given"), "{error}");
    binding.bind_zeros("x", &[1, 4]).unwrap();
    let refusals = [
        binding.bind_input("z", TensorView::new(&[1, 5], &long).unwrap()),
        binding.bind_input("x", TensorView::new(&[1, 5], &long).unwrap()),
        binding.bind_zeros("x", &[4]),
        binding.bind_value("x", &Value::Nothing),
        binding.bind_output("y", TensorViewMut::new(&[1, 3], &mut short).unwrap()),
        binding.bind_output("y", TensorViewMut::new(&[1, 4], &mut doubles).unwrap()),
        binding.bind_output("x", TensorViewMut::from_bytes(DType::U8, &[0], &mut []).unwrap()),
        binding.input_mut::<f64>("x").map(drop),
        binding.input_mut::<f32>("z").map(drop),
        other.run_bound(&mut binding),
    ];
    for refusal in refusals {
        assert_eq!(refusal.unwrap_err().kind(), ErrorKind::InvalidInput);
    }
    binding.input_mut::<f32>("x").unwrap().fill(4.0);
    graph.run_bound(&mut binding).unwrap();
    assert_eq!(binding.outputs().tensor("y").unwrap().as_slice::<f32>().unwrap(), [4.0; 4]);
}

#[test]
fn memory_that_is_only_lent_is_not_written() {
    let mut graph = load(&relu());
    let x = [1.0_f32; 4];
    let mut binding = graph.binding().unwrap();
    binding.bind_input("x", TensorView::new(&[1, 4], &x).unwrap()).unwrap();
    assert!(binding.input_mut::<f32>("x").is_err());
    graph.run_bound(&mut binding).unwrap();
    // A plain run between bound ones has nothing to do with them.
    graph.run([("x", Input::from(TensorView::new(&[1, 4], &[7.0_f32; 4]).unwrap()))]).unwrap();
    assert_eq!(binding.outputs().tensor("y").unwrap().as_slice::<f32>().unwrap(), x);
}

#[test]
fn an_output_whose_shape_does_not_fit_is_the_runtimes_error() {
    let mut graph = load(&unary("Relu", &tensor(element::F32, ["n"])));
    let mut y = [0.0_f32; 3];
    let mut binding = graph.binding().unwrap();
    binding.bind_zeros("x", &[2]).unwrap();
    binding.bind_output("y", TensorViewMut::new(&[3], &mut y).unwrap()).unwrap();
    let error = graph.run_bound(&mut binding).unwrap_err();
    assert!(error.to_string().contains("could not run the graph"), "{error}");
    binding.unbind_output("y").unwrap();
    graph.run_bound(&mut binding).unwrap();
    assert_eq!(binding.outputs().tensor("y").unwrap().shape(), [2]);
}

#[test]
fn an_output_that_is_listed_twice_is_one() {
    let kind = tensor(element::F32, [2_i64]);
    let model = GraphOf::new("twice")
        .node(&node("Relu", &["x"], &["y"], &[]))
        .node(&node("Neg", &["x"], &["z"], &[]))
        .input("x", &kind)
        .output("y", &kind)
        .output("y", &kind)
        .output("z", &kind);
    let mut graph = load(&model.model());
    let names: Vec<&str> = graph.declared_outputs().iter().map(|port| port.name()).collect();
    assert_eq!(names, ["y", "z"]);
    let (x, mut memory) = ([1.0_f32, -2.0], [0.0_f32; 2]);
    graph.run([("x", TensorView::new(&[2], &x).unwrap())]).unwrap();
    assert_eq!(graph.outputs().tensor("z").unwrap().as_slice::<f32>().unwrap(), [-1.0, 2.0]);
    let mut binding = graph.binding().unwrap();
    binding.bind_input("x", TensorView::new(&[2], &x).unwrap()).unwrap();
    graph.run_bound(&mut binding).unwrap();
    for (name, value) in [("y", [1.0, 0.0]), ("z", [-1.0, 2.0])] {
        assert_eq!(binding.outputs().tensor(name).unwrap().as_slice::<f32>().unwrap(), value, "{name}");
    }
    binding.bind_output("y", TensorViewMut::new(&[2], &mut memory).unwrap()).unwrap();
    for _ in 0..3 {
        graph.run_bound(&mut binding).unwrap();
    }
    drop(binding);
    assert_eq!(memory, [1.0, 0.0]);
}

/// Takes each line of ONNX Runtime's.
fn listens() -> impl tracing::Subscriber {
    Listener::new(|_| ()).of("onnxruntime")
}

/// Panics at each.
fn panics() -> impl tracing::Subscriber {
    Listener::new(|_| panic!("asked to")).of("onnxruntime")
}

#[test]
fn what_a_run_gave_that_a_panic_cut_short_is_not_written_again() {
    // One who listens when the graph is loaded has the runtime log each run.
    let mut graph = with_default(listens(), || load(&unary("Relu", &tensor(element::F32, ["n"]))));
    let (long, short) = ([1.0_f32, -2.0, 3.0, -4.0], [5.0_f32, -6.0]);
    let mut binding = graph.binding().unwrap();
    binding.bind_input("x", TensorView::new(&[4], &long).unwrap()).unwrap();
    let ran = with_default(panics(), || catch_unwind(AssertUnwindSafe(|| graph.run_bound(&mut binding))));
    assert!(ran.is_err(), "runs are logged");
    assert!(binding.outputs().get("y").is_err());
    binding.bind_input("x", TensorView::new(&[2], &short).unwrap()).unwrap();
    graph.run_bound(&mut binding).unwrap();
    assert_eq!(binding.outputs().tensor("y").unwrap().as_slice::<f32>().unwrap(), [5.0, 0.0]);
}

#[cfg(target_os = "linux")]
#[test]
fn a_load_that_a_panic_cut_short_leaves_nothing_behind() {
    /// Bytes this process has in memory that are no file's.
    fn anonymous() -> u64 {
        let status = std::fs::read_to_string("/proc/self/status").unwrap();
        let line = status.lines().find_map(|line| line.strip_prefix("RssAnon:")).unwrap();
        line.trim().trim_end_matches(" kB").parse::<u64>().unwrap() * 1024
    }

    const NUMBERS: i64 = 4 << 20;
    let model = GraphOf::new("large")
        .weights(&weights("w", element::F32, &[NUMBERS], &[0; 4 * NUMBERS as usize]))
        .node(&node("Add", &["x", "w"], &["y"], &[]))
        .input("x", &tensor(element::F32, [NUMBERS]))
        .output("y", &tensor(element::F32, [NUMBERS]))
        .model();
    let cut_short = || {
        let loaded = with_default(panics(), || catch_unwind(|| drop(load(&model))));
        assert!(loaded.is_err(), "loads are logged");
    };
    cut_short();
    let before = anonymous();
    for _ in 0..16 {
        cut_short();
    }
    let grown = anonymous().saturating_sub(before);
    assert!(grown < 64 << 20, "16 MiB are in each of 16 sessions, and {grown} bytes more are held");
}
