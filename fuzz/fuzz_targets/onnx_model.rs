//! An ONNX model: read or refused in words, in bounded memory; and no file that it names is overlooked, wherever a tensor lies in it.
#![no_main]

#[path = "../../infer-onnx/tests/kit/model.rs"]
#[allow(dead_code, reason = "the tests use the rest")]
mod model;

use infer_core::ErrorKind;
use infer_fuzz::{input::Bytes, seeds};
use infer_onnx::header::{self, Header};
use libfuzzer_sys::fuzz_target;
use model::{GraphOf, Message, element, external, node, subgraph, tensor_value};
use std::{hint::black_box, io::Cursor};

#[global_allocator]
static ALLOCATOR: test_kit::Counting = test_kit::Counting;

/// For files of a megabyte: the texts, and the names of files once more in an index.
const MOST: usize = 64 << 20;
/// What errors call the file.
const NAME: &str = "a-fuzzed-file";

fuzz_target!(init: seeds::write_if_asked(first), |input: &[u8]| {
    let (peak, ()) = test_kit::peak(|| match header::read(Cursor::new(input), NAME) {
        Ok(header) => ask(&header),
        Err(error) => {
            assert_eq!(error.kind(), ErrorKind::InvalidModel, "{error}");
            assert!(error.to_string().starts_with(NAME), "{error}");
        }
    });
    assert!(peak < MOST, "{peak} bytes at a time");
    is_found(&mut Bytes(input));
});

fn ask(header: &Header) {
    black_box((header.producer(), header.graph_name(), header.description()));
    for (domain, version) in header.opsets() {
        assert!(header.opsets().iter().any(|(name, number)| name == domain && number == version));
        assert!(header.opset(domain).is_some());
    }
    for (key, _) in header.metadata() {
        assert!(header.value(key).is_some());
    }
    for (index, file) in header.files().iter().enumerate() {
        assert!(header.files()[..index].iter().all(|other| other.location() != file.location()), "each is there once");
    }
}

/// Hides a tensor in a file where the input says, among whatever bytes it has, and looks for it.
fn is_found(input: &mut Bytes<'_>) {
    let tensor = external("w", element::F32, &[1], &[("location", "the/file"), ("length", "4")]);
    let sparse = Message::new().message(1, &tensor);
    let mut graph = match input.byte() % 6 {
        0 => GraphOf::new("g").weights(&tensor),
        1 => of_node(&tensor_value("value", &tensor)),
        2 => of_node(&Message::new().message(10, &tensor)),
        3 => of_node(&Message::new().message(22, &sparse)),
        4 => of_node(&Message::new().message(23, &sparse)),
        _ => with(GraphOf::new("g"), 15, &sparse),
    };
    for _ in 0..input.byte() % 30 {
        graph = of_node(&subgraph("body", graph.message()));
    }
    let noise = input.take(usize::MAX);
    let fields = match noise.first().map_or(0, |byte| byte % 4) {
        0 => graph.fields(),
        1 => GraphOf::new("g").fields().message(20, &Message::new().message(2, graph.message())),
        2 => GraphOf::new("g").fields().message(25, &Message::new().message(7, &inside(&graph))),
        _ => GraphOf::new("g").fields().message(25, &Message::new().message(11, &subgraph("body", graph.message()))),
    };
    let model = Message::new().bytes(6, noise).bytes(4711, noise).into_bytes();
    let model = [model, fields.into_bytes()].concat();
    let header = header::read(Cursor::new(model), NAME).expect("it is a model");
    assert!(header.files().iter().any(|file| file.location() == "the/file"), "it names a file");
}

/// A graph of one node that has this attribute.
fn of_node(attribute: &Message) -> GraphOf {
    GraphOf::new("g").node(&node("Operator", &[], &["y"], std::slice::from_ref(attribute)))
}

/// A node with this graph in it.
fn inside(graph: &GraphOf) -> Message {
    node("Operator", &[], &["y"], &[subgraph("body", graph.message())])
}

/// A graph with one more field.
fn with(graph: GraphOf, field: u32, value: &Message) -> GraphOf {
    GraphOf::from_message(graph.message().clone().message(field, value))
}

/// Models that run, and one with its weights in a file.
fn first() -> Vec<Vec<u8>> {
    let kind = model::tensor(element::F32, [2_i64]);
    let weights = external("w", element::F32, &[2], &[("location", "w.bin"), ("offset", "4"), ("length", "8")]);
    vec![model::unary("Relu", &kind), model::adding(), GraphOf::new("g").weights(&weights).model(), Vec::new()]
}
