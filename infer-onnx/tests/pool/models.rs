//! Models of layers, and how they are run.

use crate::kit::model::{self, GraphOf, element, node};
use infer_core::Result;
use infer_onnx::{Graph, TensorView};
use std::path::PathBuf;
use test_kit::Folder;

/// Of the small ones.
pub(crate) const WIDTH: usize = 64;

/// The numbers of a weight, another one for each layer.
pub(crate) fn numbers(layer: usize, width: usize) -> Vec<u8> {
    let number = |at: usize| ((at * 31 + layer * 7) % 97) as f32 / 970.0 - 0.05;
    (0..width * width).flat_map(|at| number(at).to_le_bytes()).collect()
}

/// Layers `Relu(x · W)`; `weight` makes the tensor of the name and layer.
pub(crate) fn layers(count: usize, width: usize, weight: impl Fn(&str, usize) -> model::Message) -> Vec<u8> {
    let mut graph = GraphOf::new("layers");
    let mut last = "x".to_owned();
    for layer in 0..count {
        let [name, product] = ["w", "p"].map(|letter| format!("{letter}{layer}"));
        let result = if layer + 1 == count { "y".to_owned() } else { format!("r{layer}") };
        graph = graph
            .weights(&weight(&name, layer))
            .node(&node("MatMul", &[&last, &name], &[&product], &[]))
            .node(&node("Relu", &[&product], &[&result], &[]));
        last = result;
    }
    let kind = model::tensor(element::F32, [model::Size::Named("n"), model::Size::Fixed(width as i64)]);
    graph.input("x", &kind).output("y", &kind).model()
}

/// With the weights in the model.
pub(crate) fn whole(count: usize, width: usize) -> Vec<u8> {
    let dims = [width as i64; 2];
    layers(count, width, |name, layer| model::weights(name, element::F32, &dims, &numbers(layer, width)))
}

/// With the weights in a file beside it.
pub(crate) fn split(folder: &Folder, count: usize, width: usize) -> PathBuf {
    let size = width * width * 4;
    let bytes: Vec<u8> = (0..count).flat_map(|layer| numbers(layer, width)).collect();
    folder.file("data/weights.bin", &bytes);
    let (dims, length) = ([width as i64; 2], size.to_string());
    let model = layers(count, width, |name, layer| {
        let offset = (layer * size).to_string();
        let entries = [("location", "data/weights.bin"), ("offset", &*offset), ("length", &*length)];
        model::external(name, element::F32, &dims, &entries)
    });
    folder.file("split.onnx", &model)
}

pub(crate) fn run(graph: &mut Graph, width: usize, seed: usize) -> Result<Vec<f32>> {
    let input: Vec<f32> = (0..width).map(|at| ((at + seed) % 13) as f32 - 3.0).collect();
    graph.run([("x", TensorView::new(&[1, width], &input)?)])?;
    Ok(graph.outputs().tensor("y")?.as_slice()?.to_vec())
}
