//! Many questions after one long beginning.

use crate::{
    ours,
    peer::{Ask, Setting, together},
    prompts,
};
use infer::KvLayout;
use infer_benches::{Bar, Figure, Run, turns::take};

const OURS: usize = 0;
const OURS_SPLIT: usize = 1;
const SERVER: usize = 2;
const SERVER_AGAIN: usize = 3;

const QUESTION: usize = 16;
const COUNT: usize = 32;

/// Both sides begin from nothing in each round: an engine that was just built, a server that was just started.
pub(crate) fn measure(run: &mut Run, setting: &Setting) {
    let (rounds, streams, system) = if run.quick() { (1, 8, 128) } else { (5, 32, 512) };
    run.progress(&format!("shared: {rounds} rounds of {streams} streams that share {system} tokens"));
    let tokenizer = setting.tokenizer();
    let beginning = prompts::tokens(&*tokenizer, 1000, system);
    let asks: Vec<Ask> = (0..streams as u64)
        .map(|number| Ask {
            prompt: [&beginning[..], &prompts::tokens(&*tokenizer, number, QUESTION)].concat(),
            count: COUNT,
        })
        .collect();
    let context = system + QUESTION + COUNT;
    let server = setting.best_server(streams, streams * context, &asks);
    let mut peak = 0;
    let times = take::<4>(rounds, |who, _| {
        if who == OURS || who == OURS_SPLIT {
            let engine = ours::engine(setting, |builder| {
                let builder = builder.with_sequences(streams).with_context(context);
                if who == OURS_SPLIT {
                    builder.with_layout(KvLayout::Split)
                } else {
                    builder.with_layout(KvLayout::Unified).with_cells(streams * context)
                }
            });
            return ours::together(&engine, &asks);
        }
        let server = setting.server(server.options());
        let took = together(&server, &asks);
        peak = peak.max(server.peak().unwrap_or_default());
        took
    });
    // As many rounds as ours: the best of twice as many would be better by chance.
    let theirs = times.best(SERVER);
    for (who, layout) in [(OURS, "unified"), (OURS_SPLIT, "split")] {
        run.timing(
            Figure::new(format!("engine/shared/{layout}/time"), times.best(who) / theirs, "ours/server")
                .with_bar(Bar::AtMost(0.3))
                .with_against_itself(times.best(SERVER) / times.best(SERVER_AGAIN))
                .with_note(format!(
                    "best of {rounds}, {:.2} s; llama-server {theirs:.2} s with {server}",
                    times.best(who)
                )),
        );
    }
    run.figure(Figure::new("engine/shared/server peak", peak as f64 / 1e6, "MB"));
}
