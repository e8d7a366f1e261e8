//! Graphs in words: `y = Operator(x, bias) axis=-1`, line by line.

use super::{
    super::{fuse, read},
    inside,
    model::{GraphOf, Message, attribute, element, int, ints, node, tensor, tensor_value, weights},
};
use crate::header::{Content, Parts};
use std::path::Path;

/// The model of these steps, with ONNX's operators of this version, from `x` to `y`.
pub(super) fn model_of(steps: &str, opset: i64) -> Vec<u8> {
    let version = |domain: &str, version| Message::new().bytes(1, domain).int(2, version);
    let graph = graph_of(steps);
    let model = Message::new().int(1, 8).message(7, graph.message());
    model.message(8, &version("", opset)).message(8, &version("com.microsoft", 1)).into_bytes()
}

/// The graph of these steps, and the weights that they name.
pub(super) fn graph_of(steps: &str) -> GraphOf {
    let kind = tensor(element::F32, ["rows", "columns"]);
    let mut graph = GraphOf::new("steps").input("x", &kind).output("y", &kind);
    for step in lines(steps) {
        let (outputs, rest) = step.split_once(" = ").unwrap();
        let (operator, rest) = rest.split_once('(').unwrap();
        let (inputs, attributes) = rest.split_once(')').unwrap();
        let [outputs, inputs] = [outputs, inputs].map(|names| names.split(',').map(str::trim).collect::<Vec<_>>());
        let inputs = if inputs == [""] { Vec::new() } else { inputs };
        let operator = operator.replace("com.microsoft.", "com.microsoft/");
        let attributes: Vec<_> = attributes.split_whitespace().map(attribute_of).collect();
        graph = graph.node(&node(&operator, &inputs, &outputs, &attributes));
    }
    let is_named =
        |name: &str| steps.split(|letter: char| !letter.is_alphanumeric() && letter != '_').any(|word| word == name);
    known().into_iter().filter(|(name, _)| is_named(name)).fold(graph, |graph, (_, tensor)| graph.weights(&tensor))
}

/// What becomes of a model: its steps, if any.
pub(super) fn fused(model: &[u8]) -> Option<Vec<String>> {
    fuse(model, "m.onnx").unwrap().map(|new| steps_of(&new.model))
}

/// The steps of a model, with the attributes of operators of our own.
pub(super) fn steps_of(model: &[u8]) -> Vec<String> {
    let step = |node: &[u8]| {
        let text = |field| inside(node, field).into_iter().map(String::from_utf8_lossy).collect::<Vec<_>>().join(", ");
        let [inputs, outputs, operator, domain] = [1, 2, 4, 7].map(text);
        let dot = if domain.is_empty() { "" } else { "." };
        let attributes = inside(node, 5).into_iter().filter(|_| domain == "infer").map(attribute_in);
        format!("{outputs} = {domain}{dot}{operator}({inputs}){}", attributes.collect::<String>())
    };
    inside(inside(model, 7)[0], 1).into_iter().map(step).collect()
}

/// A number with its name, which is as long or as short as its type, which is said, wants it.
fn attribute_in(message: &[u8]) -> String {
    let parts = Parts::new(message, Path::new("test")).unwrap();
    let contents: Vec<_> = parts.map(|part| part.map(|part| (part.number, part.content)).unwrap()).collect();
    match contents[..] {
        [(1, Content::Bytes(name)), (2, number), (20, Content::Varint(1))] => {
            format!(" {}={:?}", String::from_utf8_lossy(name), number.float().unwrap())
        }
        [(1, Content::Bytes(name)), (3, Content::Varint(number)), (20, Content::Varint(2))] => {
            format!(" {}={number}", String::from_utf8_lossy(name))
        }
        _ => panic!("this is no attribute of ours"),
    }
}

pub(super) fn lines(text: &str) -> impl Iterator<Item = &str> {
    text.lines().map(str::trim).filter(|line| !line.is_empty())
}

/// A whole number, whole numbers, a number with a point (of a constant, a tensor), or else a text.
fn attribute_of(text: &str) -> Message {
    let (name, value) = text.split_once('=').unwrap();
    let list = value.trim_matches(['[', ']']);
    if let (Ok(number), true) = (value.parse(), value == list) {
        int(name, number)
    } else if let Ok(numbers) = list.split(',').map(str::parse).collect::<Result<Vec<i64>, _>>() {
        ints(name, &numbers)
    } else if let Ok(number) = value.parse::<f32>() {
        if name == "value" {
            tensor_value(name, &number_of("", &[], number))
        } else {
            attribute(name).float(2, number).int(20, 1)
        }
    } else {
        attribute(name).bytes(4, value).int(20, 3)
    }
}

fn number_of(name: &str, dims: &[i64], number: f32) -> Message {
    weights(name, element::F32, dims, &number.to_le_bytes())
}

fn integers_of(name: &'static str, numbers: &[i64]) -> (&'static str, Message) {
    let bytes: Vec<u8> = numbers.iter().flat_map(|number| number.to_le_bytes()).collect();
    (name, weights(name, element::I64, &[numbers.len() as i64], &bytes))
}

/// Weights by name.
fn known() -> Vec<(&'static str, Message)> {
    let floats_of = |name, dims: &[i64]| {
        let bytes = vec![0; 4 * usize::try_from(dims.iter().product::<i64>()).unwrap()];
        (name, weights(name, element::F32, dims, &bytes))
    };
    let number = |name, dims: &[i64], number| (name, number_of(name, dims, number));
    let unpacked =
        |name, dims: &[i64]| dims.iter().fold(Message::new(), |tensor, &dim| tensor.int(1, dim)).bytes(8, name);
    vec![
        floats_of("matrix", &[4, 4]),
        floats_of("to_six", &[4, 6]),
        floats_of("to_one", &[4, 1]),
        floats_of("bias", &[4]),
        floats_of("scale", &[4]),
        floats_of("shift", &[4]),
        floats_of("six", &[6]),
        floats_of("flat", &[1, 4]),
        number("one_wide", &[1], 0.0),
        ("half_bias", weights("half_bias", element::F16, &[4], &[0; 8])),
        ("half_matrix", weights("half_matrix", element::F16, &[4, 4], &[0; 32])),
        number("root", &[], std::f32::consts::SQRT_2),
        number("inverse", &[], std::f32::consts::FRAC_1_SQRT_2),
        number("near_root", &[], 1.4143),
        number("one", &[1], 1.0),
        number("one_of_two_axes", &[1, 1], 1.0),
        number("half", &[], 0.5),
        number("third", &[], 0.333),
        number("two", &[], 2.0),
        number("three", &[], 3.0),
        number("tiny", &[], 1e-12),
        ("one_as_floats", unpacked("one_as_floats", &[]).int(2, element::F32).float(4, 1.0)),
        ("last_as_integers", unpacked("last_as_integers", &[1]).int(2, element::I64).int(7, -1)),
        integers_of("last", &[-1]),
        integers_of("middle", &[1]),
        integers_of("heads", &[0, 0, 2, 2]),
        integers_of("heads_of_any", &[0, -1, 2, 2]),
        integers_of("heads_of_six", &[0, 0, 2, 3]),
        integers_of("heads_of_three_axes", &[0, 2, 2]),
        integers_of("heads_of_a_batch", &[1, 0, 2, 2]),
    ]
}

/// Whether a model can be read at all.
pub(super) fn is_read(model: &[u8]) -> bool {
    read::graph(model, Path::new("test")).unwrap().is_some()
}
