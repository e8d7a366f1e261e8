//! A pool of two sessions on two cores, beside one session; and what it takes in memory.

use crate::{
    model::{self, GraphOf, Message, element, node},
    setting::{ModelFile, onnx},
};
use infer_benches::{
    Bar, Figure, Random, Run, memory,
    turns::{take, timed},
};
use infer_onnx::{Onnx, Pool, PoolOptions, TensorView};
use std::{hint::black_box, sync::Barrier, thread, time::Duration};

const ONE: usize = 0;
const ONE_AGAIN: usize = 1;
const TWO: usize = 2;

pub(crate) fn measure(run: &mut Run) {
    let onnx = &onnx();
    throughput(run, onnx);
    held(run, onnx);
}

/// As much work a thread, by one thread and by two. The layers fit into a core's own cache: what is measured are sessions, not the memory.
fn throughput(run: &mut Run, onnx: &Onnx) {
    let (rows, width) = (32, 128);
    let weight = |name: &str, numbers: &[u8]| model::weights(name, element::F32, &[width as i64; 2], numbers);
    let file = ModelFile::new("small", &layers(LAYERS, rows, width, weight));
    let input = vec![0.5_f32; rows * width];
    let (rounds, runs) = if run.quick() { (2, 200) } else { (5, 10_000) };
    run.progress(&format!("pool: {rounds} rounds of {runs} runs a thread"));
    let open = |sessions| {
        let pool = Pool::open(onnx, file.path(), &PoolOptions::new(sessions));
        pool.unwrap_or_else(|error| panic!("{error}"))
    };
    let pools = [open(1), open(1), open(2)];
    let shape = [rows, width];
    let once = |pool: &Pool| {
        let ran = pool.run(|graph| {
            graph.run([("x", TensorView::new(&shape, &input)?)])?;
            black_box(graph.outputs().tensor("y")?.as_slice::<f32>()?);
            Ok(())
        });
        ran.unwrap_or_else(|error| panic!("{error}"));
    };
    let together = |pool: &Pool, threads: usize| -> Duration {
        let begin = Barrier::new(threads + 1);
        thread::scope(|scope| {
            let workers: Vec<_> = (0..threads)
                .map(|_| {
                    scope.spawn(|| {
                        once(pool);
                        begin.wait();
                        (0..runs).for_each(|_| once(pool));
                    })
                })
                .collect();
            begin.wait();
            timed(|| workers.into_iter().for_each(|worker| worker.join().expect("a worker panicked"))).0
        })
    };
    let times = take::<3>(rounds, |who, _| together(&pools[who], if who == TWO { 2 } else { 1 }));
    let one = f64::min(times.best(ONE), times.best(ONE_AGAIN));
    let note = format!(
        "best of {rounds}; {:.1} us a run of one session, two sessions of one thread each on {} CPUs",
        one / runs as f64 * 1e6,
        thread::available_parallelism().map_or(1, usize::from)
    );
    run.timing(
        Figure::new("onnx/pool/two to one", 2.0 * one / times.best(TWO), "two/one")
            .with_bar(Bar::AtLeast(1.7))
            .with_against_itself(times.best(ONE) / times.best(ONE_AGAIN))
            .with_note(note),
    );
}

/// What sessions of large weights in a file hold in memory that no file backs.
fn held(run: &mut Run, onnx: &Onnx) {
    let width = if run.quick() { 512 } else { 2048 };
    let size = width * width * size_of::<f32>();
    run.progress(&format!("pool: weights of {:.0} MB", (LAYERS * size) as f64 / 1e6));
    let mut all = Vec::new();
    let model = layers(LAYERS, 8, width, |name, numbers| {
        let [offset, length] = [all.len(), numbers.len()].map(|number| number.to_string());
        all.extend(numbers);
        let entries = [("location", "weights.bin"), ("offset", &*offset), ("length", &*length)];
        model::external(name, element::F32, &[width as i64; 2], &entries)
    });
    let file = ModelFile::new("large", &model);
    file.beside("weights.bin", &all);
    drop(all);
    let ways = [("one session", 1, true), ("two sessions", 2, true), ("two that share nothing", 2, false)];
    // All stay until the end: what one frees, the next one would take.
    let mut pools = Vec::new();
    for (name, sessions, shared) in ways {
        let before = memory::anonymous().unwrap_or_else(|error| panic!("{error}"));
        let options = PoolOptions::new(sessions).with_shared_weights(shared);
        let pool = Pool::open(onnx, file.path(), &options).unwrap_or_else(|error| panic!("{error}"));
        let after = memory::anonymous().unwrap_or_else(|error| panic!("{error}"));
        let note = format!("weights of {:.1} MB; {:?}", (LAYERS * size) as f64 / 1e6, pool.stats());
        let held = after.saturating_sub(before) as f64 / 1e6;
        run.figure(Figure::new(format!("onnx/pool/held by {name}"), held, "MB").with_note(note));
        pools.push(pool);
    }
}

const LAYERS: usize = 4;

/// So many layers `Relu(x · W)`, each W of `width` × `width`; `weight` makes a tensor of a name and its bytes.
fn layers(count: usize, rows: usize, width: usize, mut weight: impl FnMut(&str, &[u8]) -> Message) -> Vec<u8> {
    let mut random = Random::new(7);
    // What comes out is then about as large as what went in.
    let scale = (24.0 / width as f64).sqrt();
    let mut number = || ((random.below(1 << 20) as f64 / f64::from(1 << 20) - 0.5) * scale) as f32;
    let mut graph = GraphOf::new("layers");
    let mut last = "x".to_owned();
    for layer in 0..count {
        let [name, product] = ["w", "p"].map(|letter| format!("{letter}{layer}"));
        let result = if layer + 1 == count { "y".to_owned() } else { format!("r{layer}") };
        let bytes: Vec<u8> = (0..width * width).flat_map(|_| number().to_le_bytes()).collect();
        graph = graph
            .weights(&weight(&name, &bytes))
            .node(&node("MatMul", &[&last, &name], &[&product], &[]))
            .node(&node("Relu", &[&product], &[&result], &[]));
        last = result;
    }
    let kind = model::tensor(element::F32, [rows as i64, width as i64]);
    graph.input("x", &kind).output("y", &kind).model()
}
