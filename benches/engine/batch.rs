//! Many streams at once, none like another.

use crate::{
    ours,
    peer::{Ask, Best, Setting, together},
    prompts,
};
use infer::KvLayout;
use infer_benches::{
    Bar, Figure, Run,
    server::Batched,
    turns::{Times, take},
};
use std::time::Duration;

const OURS: usize = 0;
const OURS_SPLIT: usize = 1;
const SERVER: usize = 2;
const SERVER_AGAIN: usize = 3;
const BENCH: usize = 4;

/// How many streams there are, and how many tokens each has.
#[derive(Clone, Copy)]
struct Shape {
    streams: usize,
    prompt: usize,
    count: usize,
}

impl Shape {
    fn of(run: &Run) -> Self {
        if run.quick() {
            Self { streams: 8, prompt: 32, count: 16 }
        } else {
            Self { streams: 32, prompt: 128, count: 64 }
        }
    }

    fn context(self) -> usize {
        self.prompt + self.count
    }

    fn cells(self) -> usize {
        self.streams * self.context()
    }
}

pub(crate) fn measure(run: &mut Run, setting: &Setting) {
    let shape = Shape::of(run);
    let rounds = if run.quick() { 1 } else { 5 };
    run.progress(&format!("batch: {rounds} rounds of {} streams", shape.streams));
    let tokenizer = setting.tokenizer();
    let asks: Vec<Ask> = (0..shape.streams as u64)
        .map(|number| Ask { prompt: prompts::tokens(&*tokenizer, number, shape.prompt), count: shape.count })
        .collect();
    let server = setting.best_server(shape.streams, shape.cells(), &asks);
    let bench = Best::of(&[&["--no-kv-unified"], &["--kv-unified"]], |layout| {
        Duration::from_secs_f64(batched(setting, shape, layout).total())
    });
    let mut peak = 0;
    let times = take::<5>(rounds, |who, _| match who {
        OURS | OURS_SPLIT => {
            let layout = if who == OURS { KvLayout::Unified } else { KvLayout::Split };
            ours(setting, shape, layout, &asks)
        }
        SERVER | SERVER_AGAIN => {
            let server = setting.server(server.options());
            let took = together(&server, &asks);
            peak = peak.max(server.peak().unwrap_or_default());
            took
        }
        _ => Duration::from_secs_f64(batched(setting, shape, bench.options()).total()),
    });
    report(run, &times, shape, &server, &bench);
    run.figure(Figure::new("engine/batch/server peak", peak as f64 / 1e6, "MB"));
}

fn ours(setting: &Setting, shape: Shape, layout: KvLayout, asks: &[Ask]) -> Duration {
    let engine = ours::engine(setting, |builder| {
        let builder = builder.with_sequences(shape.streams).with_context(shape.context()).with_layout(layout);
        if layout == KvLayout::Unified { builder.with_cells(shape.cells()) } else { builder }
    });
    ours::together(&engine, asks)
}

fn batched(setting: &Setting, shape: Shape, layout: &[String]) -> Batched {
    let Shape { streams, prompt, count } = shape;
    let mut options: Vec<String> = layout.to_vec();
    for (name, value) in [("-npl", streams), ("-npp", prompt), ("-ntg", count), ("-c", shape.cells())] {
        options.extend([name.to_owned(), value.to_string()]);
    }
    for name in ["-t", "-tb"] {
        options.extend([name.to_owned(), setting.threads.to_string()]);
    }
    Batched::measure(&setting.path, &options).unwrap_or_else(|error| panic!("{error}"))
}

fn report(run: &mut Run, times: &Times<5>, shape: Shape, server: &Best, bench: &Best) {
    let tokens = shape.cells() as f64;
    let rate = |who: usize| tokens / times.best(who);
    // As many rounds as ours: the best of twice as many would be better by chance.
    let theirs = times.best(SERVER);
    let against_itself = times.best(SERVER) / times.best(SERVER_AGAIN);
    for (who, layout) in [(OURS, "unified"), (OURS_SPLIT, "split")] {
        let mut to_server = Figure::new(format!("engine/batch/{layout}/time"), times.best(who) / theirs, "ours/server")
            .with_against_itself(against_itself)
            .with_note(format!(
                "best of {}, {:.2} s; llama-server {theirs:.2} s with {server}",
                times.rounds(),
                times.best(who)
            ));
        let mut to_bench =
            Figure::new(format!("engine/batch/{layout}/throughput"), rate(who) / rate(BENCH), "ours/bench")
                .with_against_itself(against_itself)
                .with_note(format!("{:.0} tokens/s; llama-batched-bench {:.0} with {bench}", rate(who), rate(BENCH)));
        // The engine's own choice; the other one is for the record.
        if who == OURS_SPLIT {
            to_server = to_server.with_bar(Bar::AtMost(1.0));
            to_bench = to_bench.with_bar(Bar::AtLeast(0.95));
        }
        run.timing(to_server);
        run.timing(to_bench);
    }
}
