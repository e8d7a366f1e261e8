//! One node that does next to nothing: what a run costs besides.

use crate::{
    model,
    setting::{ModelFile, onnx},
};
use infer_benches::{
    Bar, Figure, Run,
    raw::CGraph,
    turns::{Times, take, timed},
};
use infer_onnx::{Binding, Graph, GraphOptions, Onnx, TensorView, TensorViewMut};
use kit::script::Script;
use std::{hint::black_box, time::Duration};

const SHAPE: [usize; 2] = [1, 64];
const LENGTH: usize = 64;

/// Runs that are timed at once: one alone is too short for the clock.
const BLOCK: usize = 1000;

const BOUND: usize = 0;
const C_BOUND: usize = 1;
const C_BOUND_AGAIN: usize = 2;
const PLAIN: usize = 3;
const C_PLAIN: usize = 4;
const C_PLAIN_AGAIN: usize = 5;
const C_ANEW: usize = 6;
const C_ANEW_AGAIN: usize = 7;
const PYTHON: usize = 8;
const PYTHON_AGAIN: usize = 9;
const PLAIN_BY_TURNS: usize = 10;

pub(crate) fn measure(run: &mut Run) {
    let onnx = &onnx();
    let kind = model::tensor(model::element::F32, SHAPE.map(|size| size as i64));
    let file = ModelFile::new("relu", &model::unary("Relu", &kind));
    let input: Vec<f32> = (0..LENGTH).map(|at| at as f32 / 32.0 - 1.0).collect();
    let expected: Vec<f32> = input.iter().map(|x| x.max(0.0)).collect();
    views(run, onnx);
    allocations(run, onnx, &file, &input);

    let rounds = if run.quick() { 12 } else { 300 };
    run.progress(&format!("one node: {rounds} rounds of {BLOCK} runs"));
    let [mut bound, mut plain, mut by_turns] = [(); 3].map(|()| open(onnx, &file));
    let (buffers, mut turn) = ([input.clone(), input.clone()], 0);
    let mut output = vec![0.0_f32; LENGTH];
    let mut binding = bind(&bound, &SHAPE, &input, &mut output);
    let c = || CGraph::open(file.path(), 1, ["x", "y"], &SHAPE.map(|size| size as i64), input.clone());
    let mut c = [c(), c()];
    let mut python = [(); 2].map(|()| Python::start(&file));
    for c in &mut c {
        assert_eq!(c.run_bound(), expected);
        c.run(|output| assert_eq!(output, expected));
        c.run_anew(|output| assert_eq!(output, expected));
    }
    let times = take::<11>(rounds, |who, _| match who {
        BOUND => block(|| bound.run_bound(&mut binding).unwrap_or_else(|error| panic!("{error}"))),
        PLAIN => block(|| {
            run_plain(&mut plain, &SHAPE, &input);
            black_box(result(&plain));
        }),
        PLAIN_BY_TURNS => block(|| {
            turn = 1 - turn;
            run_plain(&mut by_turns, &SHAPE, &buffers[turn]);
            black_box(result(&by_turns));
        }),
        C_BOUND | C_BOUND_AGAIN => {
            let c = &mut c[who - C_BOUND];
            block(|| {
                black_box(c.run_bound());
            })
        }
        C_PLAIN | C_PLAIN_AGAIN => {
            let c = &mut c[who - C_PLAIN];
            block(|| {
                c.run(|output| {
                    black_box(output);
                });
            })
        }
        C_ANEW | C_ANEW_AGAIN => {
            let c = &mut c[who - C_ANEW];
            block(|| {
                c.run_anew(|output| {
                    black_box(output);
                });
            })
        }
        _ => python[who - PYTHON].run(),
    });
    drop(binding);
    assert_eq!([&output[..], result(&plain), result(&by_turns)], [&expected[..]; 3]);
    report(run, &times);
}

fn open(onnx: &Onnx, file: &ModelFile) -> Graph {
    let options = GraphOptions::new().with_threads(1);
    Graph::open(onnx, file.path(), &options).unwrap_or_else(|error| panic!("{error}"))
}

fn bind<'m>(graph: &Graph, shape: &'m [usize; 2], input: &'m [f32], output: &'m mut [f32]) -> Binding<'m> {
    let mut binding = graph.binding().unwrap_or_else(|error| panic!("{error}"));
    let bound = TensorView::new(shape, input).and_then(|input| binding.bind_input("x", input));
    bound.unwrap_or_else(|error| panic!("{error}"));
    let bound = TensorViewMut::new(shape, output).and_then(|output| binding.bind_output("y", output));
    bound.unwrap_or_else(|error| panic!("{error}"));
    binding
}

fn run_plain(graph: &mut Graph, shape: &[usize], input: &[f32]) {
    let ran = TensorView::new(shape, input).and_then(|input| graph.run([("x", input)]));
    ran.unwrap_or_else(|error| panic!("{error}"));
}

fn result(graph: &Graph) -> &[f32] {
    let output = graph.outputs().tensor("y").and_then(|output| output.as_slice());
    output.unwrap_or_else(|error| panic!("{error}"))
}

fn block(mut step: impl FnMut()) -> Duration {
    timed(|| (0..BLOCK).for_each(|_| step())).0
}

/// `InferenceSession.run` in a process of its own.
struct Python(Script);

impl Python {
    fn start(file: &ModelFile) -> Self {
        let script = Script::start("graph.py", [file.path().as_os_str(), "1".as_ref()]);
        Self(script.unwrap_or_else(|error| panic!("{error}")))
    }

    fn run(&mut self) -> Duration {
        let answer = self.0.ask(&format!("run {BLOCK}")).unwrap_or_else(|error| panic!("{error}"));
        Duration::from_nanos(answer.trim().parse().unwrap_or_else(|_| panic!("{answer:?} is no number of nanoseconds")))
    }
}

/// Outputs are lent where they are: in the caller's memory where they are bound to it, and else in the runtime's, which is no memory of Rust's.
fn views(run: &mut Run, onnx: &Onnx) {
    const LONG: [usize; 2] = [1, 1 << 16];
    let kind = model::tensor(model::element::F32, LONG.map(|size| size as i64));
    let file = ModelFile::new("long", &model::unary("Relu", &kind));
    let mut graph = open(onnx, &file);
    let (input, mut output) = (vec![1.0_f32; LONG[1]], vec![0.0_f32; LONG[1]]);
    let place = output.as_ptr();
    let mut binding = bind(&graph, &LONG, &input, &mut output);
    graph.run_bound(&mut binding).unwrap_or_else(|error| panic!("{error}"));
    let bound = binding.outputs().tensor("y").and_then(|output| output.as_slice::<f32>());
    let moved = usize::from(bound.unwrap_or_else(|error| panic!("{error}")).as_ptr() != place);
    drop(binding);
    let (heap, ()) = kit::heap(|| {
        run_plain(&mut graph, &LONG, &input);
        black_box(result(&graph));
    });
    let copied = usize::from(heap.largest >= size_of_val(&input[..]));
    let note = format!("one bound, one not, whose run asks Rust's allocator for {} bytes at most", heap.largest);
    let figure = Figure::new("onnx/node/copied outputs", (moved + copied) as f64, "outputs");
    run.figure(figure.with_bar(Bar::AtMost(0.0)).with_note(note));
}

/// What runs ask Rust's allocator for.
fn allocations(run: &mut Run, onnx: &Onnx, file: &ModelFile, input: &[f32]) {
    let mut graph = open(onnx, file);
    let mut output = vec![0.0_f32; LENGTH];
    let mut binding = bind(&graph, &SHAPE, input, &mut output);
    let mut runs = || (0..BLOCK).for_each(|_| graph.run_bound(&mut binding).unwrap_or_else(|error| panic!("{error}")));
    runs();
    let (heap, ()) = kit::heap(runs);
    let figure = Figure::new("onnx/node/bound/allocations", heap.allocations as f64, "allocations");
    run.figure(figure.with_bar(Bar::AtMost(0.0)).with_note(format!("in {BLOCK} runs")));
    drop(binding);
    run_plain(&mut graph, &SHAPE, input);
    let (heap, ()) = kit::heap(|| run_plain(&mut graph, &SHAPE, input));
    run.figure(Figure::new("onnx/node/run/allocations", heap.allocations as f64, "allocations").with_note("a run"));
}

fn report(run: &mut Run, times: &Times<11>) {
    let nanoseconds = |seconds: f64| seconds / BLOCK as f64 * 1e9;
    let python = f64::min(times.best(PYTHON), times.best(PYTHON_AGAIN));
    for (name, ours, bar) in [("bound", BOUND, 0.6), ("run", PLAIN, 0.75)] {
        let note = format!(
            "best of {}: {:.0} ns; InferenceSession.run {:.0} ns",
            times.rounds(),
            nanoseconds(times.best(ours)),
            nanoseconds(python)
        );
        run.timing(
            Figure::new(format!("onnx/node/{name}/to Python"), times.best(ours) / python, "ours/Python")
                .with_bar(Bar::AtMost(bar))
                .with_against_itself(times.best(PYTHON) / times.best(PYTHON_AGAIN))
                .with_note(note),
        );
    }
    let mut to_c = |name: &str, ours, c, c_again, how: &str| {
        let alone = f64::midpoint(times.median(c), times.median(c_again));
        let note = format!("median of {}; C{how} {:.0} ns", times.rounds(), nanoseconds(alone));
        run.timing(
            Figure::new(format!("onnx/node/{name}"), times.median(ours) / alone, "ours/C")
                .with_bar(Bar::AtMost(1.15))
                .with_against_itself(times.median(c) / times.median(c_again))
                .with_note(note),
        );
    };
    to_c("bound/to C", BOUND, C_BOUND, C_BOUND_AGAIN, "");
    // A plain run is given memory. It makes a value over it where none of the last two runs was given the same; `InferenceSession.run` makes one
    // each time, and so does the first of these in C.
    let anew = ", which makes a value over the input each time,";
    to_c("run/to C", PLAIN, C_ANEW, C_ANEW_AGAIN, anew);
    to_c("run/to C by turns", PLAIN_BY_TURNS, C_ANEW, C_ANEW_AGAIN, anew);
    to_c("run/to C with a value made once", PLAIN, C_PLAIN, C_PLAIN_AGAIN, "");
}
