//! Models and shapes that are small to write down and without end to compute: each in a child process of little memory, which comes to its
//! end with a graph that works or with an error, and works afterwards.

mod kit;

use infer_core::{Error, ErrorKind, Result};
use infer_onnx::{Graph, GraphOptions, Pool, PoolOptions, TensorView};
use kit::{
    load,
    model::{self, GraphOf, Message, element, node, tensor, unary},
    onnx,
};
use test_kit::{Folder, child};

/// Address space of a child.
const ROOM: u64 = 4 << 30;

/// Runs cases, and wants of each an error of this kind with these words.
#[track_caller]
fn refused(test: &str, cases: &[(&str, ErrorKind, &str)], work: impl FnOnce(&str) -> Result<()>) {
    let names: Vec<&str> = cases.iter().map(|(case, ..)| *case).collect();
    let answers = child::cases_within(ROOM, test, &names, |case| {
        let outcome = work(case);
        let mut good = load(&unary("Relu", &tensor(element::F32, [1_i64])));
        good.run([("x", TensorView::new(&[1], &[-1.0_f32]).unwrap())]).unwrap();
        outcome.map_or_else(shown, |()| "taken".to_owned())
    });
    for ((case, kind, words), said) in cases.iter().zip(&answers) {
        assert!(
            said.starts_with(&format!("{kind:?}: ")) && said.contains(words),
            "{case}: {said}, not {kind:?}, {words}"
        );
    }
}

fn shown(error: Error) -> String {
    format!("{:?}: {}", error.kind(), error.to_string().replace('\n', " "))
}

fn options() -> GraphOptions {
    GraphOptions::new().with_threads(1)
}

/// A function of one input and one output, of the domain `local`: these operators, one after the other.
fn function(name: &str, operators: &[&str]) -> Message {
    let mut function = Message::new().bytes(1, name).bytes(4, "v0").bytes(5, format!("v{}", operators.len()));
    for (at, operator) in operators.iter().enumerate() {
        let (from, to) = (format!("v{at}"), format!("v{}", at + 1));
        function = function.message(7, &node(operator, &[&from], &[&to], &[]));
    }
    let opset = |domain: &str, version| Message::new().bytes(1, domain).int(2, version);
    function.message(9, &opset("", 17)).message(9, &opset("local", 1)).bytes(10, "local")
}

/// A model of these functions whose graph calls `local/f`.
fn with_functions(functions: &[Message]) -> Vec<u8> {
    let kind = tensor(element::F32, [1_i64]);
    let graph = GraphOf::new("calls").node(&node("local/f", &["x"], &["y"], &[])).input("x", &kind).output("y", &kind);
    let model = graph.fields().message(8, &Message::new().bytes(1, "local").int(2, 1));
    functions.iter().fold(model, |model, function| model.message(25, function)).into_bytes()
}

/// `f` calls `f0` so often, which calls `f1` as often, …, so many deep.
fn chain(deep: usize, times: usize) -> Vec<Message> {
    let name = |at: usize| if at == 0 { "f".to_owned() } else { format!("f{at}") };
    let called = |at: usize| if at + 1 == deep { "Relu".to_owned() } else { format!("local/{}", name(at + 1)) };
    (0..deep).map(|at| function(&name(at), &vec![called(at).as_str(); times])).collect()
}

#[test]
fn functions_that_are_few_are_written_out() {
    let functions =
        [function("g", &["Neg", "Neg", "local/h"]), function("h", &["Relu"]), function("f", &["local/g"; 3])];
    let mut graph = load(&with_functions(&functions));
    for x in [-2.0_f32, 3.0] {
        graph.run([("x", TensorView::new(&[1], &[x]).unwrap())]).unwrap();
        assert_eq!(graph.outputs().tensor("y").unwrap().as_slice::<f32>().unwrap(), [x.max(0.0)]);
    }
}

#[test]
fn functions_without_end_are_refused() {
    let cases = [
        ("ten to the thirty", ErrorKind::InvalidModel, "nodes when they are written out"),
        ("two to the thirty", ErrorKind::InvalidModel, "nodes when they are written out"),
        ("one that calls itself", ErrorKind::InvalidModel, "in a circle"),
        ("two that call each other", ErrorKind::InvalidModel, "in a circle"),
        ("ten thousand deep", ErrorKind::InvalidModel, "more than 100 deep"),
    ];
    refused("functions_without_end_are_refused", &cases, |case| {
        let functions = match case {
            "ten to the thirty" => chain(30, 10),
            "two to the thirty" => chain(30, 2),
            "one that calls itself" => vec![function("f", &["local/f"])],
            "two that call each other" => vec![function("f", &["local/g"]), function("g", &["local/f", "local/f"])],
            _ => chain(10_000, 1),
        };
        let model = with_functions(&functions);
        let early = infer_onnx::header::read(std::io::Cursor::new(&model), "model.onnx").map(drop);
        let outcome = Graph::from_bytes(&onnx(), &model, &options()).map(drop);
        assert_eq!(early.is_err(), outcome.is_err());
        outcome
    });
}

/// Far deeper than a stack is long, for a reader that does not look.
#[test]
fn graphs_and_types_that_lie_in_each_other_are_refused() {
    const DEEP: usize = 3_000;
    let cases = [
        ("branches", ErrorKind::InvalidModel, "messages lie in each other"),
        ("types", ErrorKind::InvalidModel, "could not load the model"),
    ];
    refused("graphs_and_types_that_lie_in_each_other_are_refused", &cases, |case| {
        let kind = tensor(element::F32, [1_i64]);
        let model = if case == "types" {
            unary("Identity", &(0..DEEP).fold(kind, |inner, _| model::sequence(&inner)))
        } else {
            let inner = GraphOf::new("inner").node(&node("Identity", &["x"], &["y"], &[])).output("y", &kind);
            let deep = (0..DEEP).fold(inner, |inner, _| {
                let branch = model::subgraph("then_branch", inner.message());
                GraphOf::new("outer").node(&node("If", &["c"], &["y"], &[branch])).output("y", &kind)
            });
            deep.model()
        };
        Graph::from_bytes(&onnx(), &model, &options()).map(drop)
    });
}

#[test]
fn tensors_larger_than_memory_are_refused() {
    let cases = [
        ("elements beyond counting", ErrorKind::InvalidInput, "more elements than can be"),
        ("bytes beyond counting", ErrorKind::InvalidInput, "larger than memory can be"),
        ("a terabyte", ErrorKind::OutOfMemory, "can be had"),
        ("five gigabytes", ErrorKind::OutOfMemory, "can be had"),
        ("a thousand million strings", ErrorKind::OutOfMemory, "can be had"),
        ("made by the graph", ErrorKind::OutOfMemory, ""),
    ];
    refused("tensors_larger_than_memory_are_refused", &cases, |case| {
        let kind = if case.contains("strings") { element::STRING } else { element::F64 };
        let any = tensor(kind, ["a", "b", "c"]);
        let mut graph = load(&unary("Identity", &any));
        let mut binding = graph.binding()?;
        match case {
            "elements beyond counting" => binding.bind_zeros("x", &[1 << 40, 1 << 40, 1 << 40]),
            "bytes beyond counting" => binding.bind_zeros("x", &[1 << 30, 1 << 30, 1]),
            "a terabyte" => binding.bind_zeros("x", &[1 << 17, 1 << 20, 1]),
            "five gigabytes" => binding.bind_zeros("x", &[5 << 27, 1, 1]),
            "a thousand million strings" => binding.bind_zeros("x", &[1, 1 << 30, 1]),
            _ => {
                drop(binding);
                let shape = tensor(element::I64, [1_i64]);
                let model = GraphOf::new("zeros")
                    .node(&node("ConstantOfShape", &["n"], &["y"], &[]))
                    .input("n", &shape)
                    .output("y", &tensor(element::F32, ["n"]));
                graph = load(&model.model());
                graph.run([("n", TensorView::new(&[1], &[1_i64 << 40])?)])
            }
        }
    });
}

/// What a model says of the files beside it: absurd numbers are told, tensors that share bytes are nobody's harm.
#[test]
fn places_in_files_that_cannot_be_are_refused() {
    let cases = [
        ("an offset beyond the file", ErrorKind::InvalidModel, "up to byte"),
        ("an offset beyond counting", ErrorKind::InvalidModel, "up to byte"),
        ("an offset of too many digits", ErrorKind::InvalidModel, "the offset of tensor"),
        ("a length beyond counting", ErrorKind::InvalidModel, "up to byte"),
        ("a length below nothing", ErrorKind::InvalidModel, "the length of tensor"),
        ("a length of less than the shape", ErrorKind::InvalidModel, "could not load the model"),
        ("a length of more than the shape", ErrorKind::InvalidModel, "could not load the model"),
        ("a shape of more than the file, and no length", ErrorKind::InvalidModel, "could not load the model"),
        ("a shape beyond counting", ErrorKind::InvalidModel, "could not load the model"),
        ("a shape below nothing", ErrorKind::InvalidModel, "could not load the model"),
    ];
    refused("places_in_files_that_cannot_be_are_refused", &cases, |case| {
        let (mut offset, mut length, mut dims) = ("0", Some("8192"), [2048, 1]);
        match case {
            "an offset beyond the file" => offset = "4096000000000",
            "an offset beyond counting" => offset = "18446744073709551615",
            "an offset of too many digits" => offset = "99999999999999999999999",
            "a length beyond counting" => length = Some("18446744073709551615"),
            "a length below nothing" => length = Some("-8192"),
            "a length of less than the shape" => length = Some("4096"),
            "a length of more than the shape" => dims = [1024, 1],
            "a shape of more than the file, and no length" => (length, dims) = (None, [1 << 30, 1]),
            "a shape beyond counting" => dims = [1 << 62, 1 << 62],
            _ => dims = [-2048, -1],
        }
        let entries: Vec<_> = [("location", "w.bin"), ("offset", offset)]
            .into_iter()
            .chain(length.map(|length| ("length", length)))
            .collect();
        opened(&entries, dims).map(drop)
    });
}

#[test]
fn tensors_may_share_bytes_of_a_file() {
    let entries = [("location", "w.bin"), ("offset", "0"), ("length", "8192")];
    let (mut alone, pool) = opened(&entries, [2048, 1]).unwrap();
    for graph in [&mut alone, &mut *pool.get().unwrap()] {
        graph.run([("x", TensorView::new(&[1], &[1.0_f32]).unwrap())]).unwrap();
        let y = graph.outputs().tensor("y").unwrap().as_slice::<f32>().unwrap().to_vec();
        assert_eq!(y, [1.0; 2048]);
    }
}

/// `y = x + v + w`, where both weights lie in the same place of a file of 8 KiB of zeros; alone, and in a pool, which reads weights itself.
fn opened(entries: &[(&str, &str)], dims: [i64; 2]) -> Result<(Graph, Pool)> {
    let folder = Folder::new();
    folder.file("w.bin", &[0; 8192]);
    let graph = GraphOf::new("external")
        .node(&node("Add", &["x", "v"], &["z"], &[]))
        .node(&node("Add", &["z", "w"], &["y"], &[]))
        .weights(&model::external("v", element::F32, &dims, entries))
        .weights(&model::external("w", element::F32, &dims, entries))
        .input("x", &tensor(element::F32, [1_i64]))
        .output("y", &tensor(element::F32, ["n", "m"]));
    let path = folder.file("model.onnx", &graph.model());
    let alone = Graph::open(&onnx(), &path, &options());
    let pool = Pool::open(&onnx(), &path, &PoolOptions::new(2).with_graph(options()));
    match (alone, pool) {
        (Ok(alone), Ok(pool)) => Ok((alone, pool)),
        (Err(alone), Err(pool)) => {
            assert_eq!(alone.kind(), pool.kind(), "{alone}, and {pool}");
            Err(alone)
        }
        (alone, pool) => panic!("alone {alone:?}, in a pool {pool:?}"),
    }
}
