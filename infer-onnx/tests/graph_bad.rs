//! Models that are wrong, each opened in a child process: an abort, a signal or a hang is a failed case, and so is an error that does not
//! name the file and say what is wrong.

mod kit;

use infer_core::{ErrorKind, Result};
use infer_onnx::{Graph, GraphOptions};
use kit::{
    load,
    model::{self, GraphOf, element, node, tensor, unary},
    onnx,
};
use std::path::Path;
use test_kit::{Folder, child};

/// Not a case by itself: what the children run.
#[test]
fn open() {
    let Some(path) = child::file() else { return };
    match open_twice(&path) {
        Ok(()) => child::answer("a graph"),
        Err(error) => child::answer(&format!("{:?}: {}", error.kind(), error.to_string().replace('\n', " "))),
    }
}

/// And afterwards a good one, which shows that nothing was harmed.
fn open_twice(path: &Path) -> Result<()> {
    let options = GraphOptions::new().with_threads(1);
    let opened = Graph::open(&onnx(), path, &options).map(drop);
    let mut good = load(&unary("Relu", &tensor(element::F32, [1_i64])));
    good.run([("x", infer_onnx::TensorView::new(&[1], &[-1.0_f32])?)])?;
    assert_eq!(good.outputs().tensor("y")?.as_slice::<f32>()?, [0.0]);
    opened
}

/// Opens a file of these bytes and wants an error of this kind whose text has all of `words`, and the file's name.
#[track_caller]
fn refused(bytes: &[u8], kind: ErrorKind, words: &[&str]) {
    let folder = Folder::new();
    let said = child::open_in_child("open", &folder.file("bad.onnx", bytes)).unwrap_or_else(|end| panic!("{end}"));
    assert!(said.starts_with(&format!("{kind:?}: ")), "{said}, not {kind:?}");
    for word in words.iter().chain([&"bad.onnx"]) {
        assert!(said.contains(word), "no {word:?} in {said}");
    }
}

fn floats() -> model::Message {
    tensor(element::F32, ["n"])
}

#[test]
fn the_model_these_are_made_of_is_good() {
    let folder = Folder::new();
    let said = child::open_in_child("open", &folder.file("good.onnx", &unary("Relu", &floats()))).unwrap();
    assert_eq!(said, "a graph");
}

#[test]
fn what_is_no_model() {
    refused(b"", ErrorKind::InvalidModel, &["it is no ONNX model"]);
    refused(b"<html>Not found</html>", ErrorKind::InvalidModel, &["it is no ONNX model", "at byte"]);
    refused(&[0xff; 100], ErrorKind::InvalidModel, &["it is no ONNX model", "at byte"]);
    refused(b"GGUF\x03\0\0\0", ErrorKind::InvalidModel, &["it is no ONNX model"]);
}

#[test]
fn a_model_that_ends_too_early_anywhere() {
    let whole = unary("Relu", &floats());
    for len in [1, whole.len() / 4, whole.len() / 2, whole.len() - 1] {
        refused(&whole[..len], ErrorKind::InvalidModel, &["onnx"]);
    }
}

#[test]
fn a_graph_with_a_cycle() {
    let model = GraphOf::new("cycle")
        .node(&node("Add", &["x", "b"], &["a"], &[]))
        .node(&node("Relu", &["a"], &["b"], &[]))
        .input("x", &floats())
        .output("b", &floats());
    refused(&model.model(), ErrorKind::InvalidModel, &["could not load the model"]);
}

#[test]
fn operators_that_nobody_knows() {
    for operator in ["Frobnicate", "org.example/Frobnicate", "ai.onnx.ml/Frobnicate"] {
        let model = GraphOf::new("unknown")
            .node(&node(operator, &["x"], &["y"], &[]))
            .input("x", &floats())
            .output("y", &floats());
        refused(&model.model(), ErrorKind::InvalidModel, &["could not load the model", "Frobnicate"]);
    }
}

#[test]
fn an_operator_with_the_wrong_number_of_inputs() {
    let model =
        GraphOf::new("add").node(&node("Add", &["x"], &["y"], &[])).input("x", &floats()).output("y", &floats());
    refused(&model.model(), ErrorKind::InvalidModel, &["could not load the model", "Add"]);
}

#[test]
fn a_type_that_does_not_fit() {
    let model = GraphOf::new("types")
        .node(&node("Relu", &["x"], &["y"], &[]))
        .input("x", &floats())
        .output("y", &tensor(element::F64, ["n"]));
    refused(&model.model(), ErrorKind::InvalidModel, &["could not load the model", "y"]);
}

#[test]
fn graphs_inside_each_other_without_end() {
    let mut inner = GraphOf::new("inner").node(&node("Identity", &["x"], &["y"], &[])).output("y", &floats());
    for depth in 0..60 {
        let branches =
            [model::subgraph("then_branch", inner.message()), model::subgraph("else_branch", inner.message())];
        let one = if depth < 12 { &branches[..] } else { &branches[..1] };
        inner = GraphOf::new("outer").node(&node("If", &["c"], &["y"], one)).output("y", &floats());
    }
    refused(&inner.model(), ErrorKind::InvalidModel, &["more than 100 messages lie in each other"]);
}

#[test]
fn weights_of_another_size_than_their_shape() {
    let model = GraphOf::new("weights")
        .node(&node("Add", &["x", "w"], &["y"], &[]))
        .weights(&model::weights("w", element::F32, &[1 << 40], &[0; 8]))
        .input("x", &floats())
        .output("y", &floats());
    refused(&model.model(), ErrorKind::InvalidModel, &["could not load the model"]);
}
