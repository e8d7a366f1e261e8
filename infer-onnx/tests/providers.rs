//! Execution providers: those that are there, and those that are not.

mod kit;

use infer_core::ErrorKind;
use infer_onnx::{Graph, GraphOptions, Provider, TensorView};
use kit::{
    model::{self, GraphOf, element, node},
    onnx,
};

/// Two nodes in a row.
fn model() -> Vec<u8> {
    let kind = model::tensor(element::F32, [4]);
    GraphOf::new("two")
        .node(&node("Relu", &["x"], &["r"], &[]))
        .node(&node("Neg", &["r"], &["y"], &[]))
        .input("x", &kind)
        .output("y", &kind)
        .model()
}

fn open(options: &GraphOptions) -> infer_core::Result<Graph> {
    Graph::from_bytes(&onnx(), &model(), options)
}

fn options() -> GraphOptions {
    GraphOptions::new().with_threads(1)
}

/// Name, number of nodes, whether it was refused.
fn uses(graph: &Graph) -> Vec<(&str, usize, bool)> {
    graph.providers().iter().map(|one| (one.name(), one.nodes(), one.refusal().is_some())).collect()
}

#[track_caller]
fn runs(mut graph: Graph) {
    graph.run([("x", TensorView::new(&[4], &[1.0_f32, -1.0, 0.0, 2.0]).unwrap())]).unwrap();
    assert_eq!(graph.outputs().tensor("y").unwrap().as_slice::<f32>().unwrap(), [-1.0, 0.0, 0.0, -2.0]);
}

#[test]
fn the_cpu_runs_what_nobody_else_was_asked_for() {
    let graph = open(&options()).unwrap();
    assert_eq!(uses(&graph), [("CPUExecutionProvider", 2, false)]);
    runs(graph);
}

#[test]
fn the_cpu_may_be_named_and_told_something() {
    for arena in ["0", "1"] {
        let graph = open(&options().with_provider(Provider::cpu().with_option("use_arena", arena))).unwrap();
        assert_eq!(uses(&graph), [("CPUExecutionProvider", 2, false)]);
        runs(graph);
    }
    for (key, value) in [("use_arena", "yes"), ("use_arenas", "1")] {
        let wrong = options().with_provider(Provider::cpu().with_option(key, value)).with_fallback(true);
        let error = open(&wrong).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::InvalidInput, "{error}");
        assert!(error.to_string().contains(key) && error.to_string().contains("CPUExecutionProvider"), "{error}");
    }
}

#[test]
fn one_that_takes_no_node_is_there_and_does_nothing() {
    let graph = open(&options().with_provider(Provider::new("azure"))).unwrap();
    assert_eq!(uses(&graph), [("AzureExecutionProvider", 0, false), ("CPUExecutionProvider", 2, false)]);
    runs(graph);
}

#[test]
fn one_that_is_not_in_the_library_is_an_error_that_says_which_are() {
    let names = ["cuda", "tensorrt", "coreml", "xnnpack", "openvino", "dml", "webgpu", "NoSuchExecutionProvider"];
    for provider in names.map(Provider::new) {
        let error = open(&options().with_provider(provider.clone())).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Unsupported, "{error}");
        let text = error.to_string();
        for part in [provider.name(), "CPUExecutionProvider", "AzureExecutionProvider", "fall"] {
            assert!(text.contains(part), "{part:?} is not in {text:?}");
        }
    }
    // Nothing is harmed.
    runs(open(&options()).unwrap());
}

#[test]
fn with_leave_what_is_there_is_used() {
    let asked = options().with_provider(Provider::cuda()).with_provider(Provider::new("azure")).with_fallback(true);
    let graph = open(&asked).unwrap();
    let expected =
        [("CUDAExecutionProvider", 0, true), ("AzureExecutionProvider", 0, false), ("CPUExecutionProvider", 2, false)];
    assert_eq!(uses(&graph), expected);
    let why = graph.providers()[0].refusal().unwrap();
    assert!(why.contains("is not in this library"), "{why}");
    runs(graph);
}

#[test]
fn what_is_asked_for_wrongly_is_an_error_with_leave_too() {
    let twice = options().with_provider(Provider::cpu()).with_provider(Provider::new("CPU")).with_fallback(true);
    let nul = options().with_provider(Provider::new("azure").with_option("a\0b", "1")).with_fallback(true);
    for (wrong, word) in [(twice, "twice"), (nul, "NUL")] {
        let error = open(&wrong).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::InvalidInput, "{error}");
        assert!(error.to_string().contains(word), "{error}");
    }
}

#[test]
fn a_model_that_is_wrong_is_wrong_on_every_provider() {
    let wrong = model::unary("NoSuchOperator", &model::tensor(element::F32, [4]));
    let asked = options().with_provider(Provider::new("azure")).with_fallback(true);
    let error = Graph::from_bytes(&onnx(), &wrong, &asked).unwrap_err();
    assert!(error.to_string().contains("NoSuchOperator"), "{error}");
}
