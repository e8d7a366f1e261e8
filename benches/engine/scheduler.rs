//! What the engine itself takes a step, beside the passes: a scripted session, which has no weights, and 64 streams.

use crate::{
    peer::Setting,
    watched::{Step, Watch, Watched},
};
use infer::{Engine, Generation, Model, Request, Sampling, Token};
use infer_benches::{Bar, Figure, Run};
use infer_core::testing::{Hooked, Script, ScriptedModel};
use std::{
    sync::atomic::{AtomicBool, Ordering},
    thread,
    time::Duration,
};

const STREAMS: usize = 64;
const PROMPT: usize = 16;
/// Steps that count: those in which every stream has one token.
const STEADY: usize = 180;
/// Of these, the first ones warm up.
const WARM: usize = 40;

pub(crate) fn measure(run: &mut Run, _: &Setting) {
    run.progress(&format!("scheduler: {STEADY} steps of {STREAMS} scripted streams"));
    let unread = steps(|_, _| {});
    // One thread takes what there is of each in turn.
    let read = steps(|generations, stop| {
        while !stop.load(Ordering::Acquire) {
            for generation in &mut *generations {
                generation.wait();
            }
        }
    });
    let besides = |steps: &[Step]| {
        let mut times: Vec<Duration> = steps.iter().map(|step| step.besides).collect();
        times.sort();
        (times[times.len() / 2], times.iter().sum::<Duration>() / times.len() as u32)
    };
    let ((median, mean), (read_median, _)) = (besides(&unread), besides(&read));
    let micros = |time: Duration| time.as_secs_f64() * 1e6;
    let note = format!(
        "median of {} steps without their passes; mean {:.1}; with a thread that reads them all {:.1}",
        unread.len(),
        micros(mean),
        micros(read_median)
    );
    run.timing(Figure::new("engine/scheduler/step", micros(median), "us").with_bar(Bar::Below(20.0)).with_note(note));
    for (name, steps) in [("allocations", &unread), ("allocations/read", &read)] {
        let allocations: u64 = steps.iter().map(|step| step.allocations).sum();
        run.figure(
            Figure::new(format!("engine/scheduler/{name}"), allocations as f64, "allocations")
                .with_bar(Bar::AtMost(0.0))
                .with_note(format!("of the engine's thread, besides passes, for {} tokens", steps.len() * STREAMS)),
        );
    }
}

/// Steps in which all streams have one token each, while `reader` does what it does with them until it is told to stop.
fn steps(reader: impl FnOnce(&mut [Generation], &AtomicBool) + Send) -> Vec<Step> {
    let watch = Watch::closed();
    let watched = watch.clone();
    let engine = Engine::builder_with(|| Ok(Box::new(ScriptedModel::new(Script::new())) as Box<dyn Model>))
        .with_sequences(STREAMS)
        .with_context(512)
        .with_cells(STREAMS * 512)
        .with_sessions(move |model, options| {
            Ok(Box::new(Hooked::new(model.session(options)?, Watched::new(watched.clone()))))
        })
        .build()
        .unwrap_or_else(|error| panic!("{error}"));
    let mut generations: Vec<Generation> = (0..STREAMS as u32).map(|number| engine.generate(request(number))).collect();
    let stop = AtomicBool::new(false);
    thread::scope(|scope| {
        let reading = scope.spawn(|| reader(&mut generations, &stop));
        let mut steady = Vec::with_capacity(WARM + STEADY);
        while steady.len() < WARM + STEADY {
            let step = watch.step();
            if step.tokens == STREAMS {
                steady.push(step);
            }
        }
        stop.store(true, Ordering::Release);
        watch.release();
        reading.join().expect("a reader does not panic");
        steady.split_off(WARM)
    })
}

/// Texts of the same length, each of other tokens.
fn request(number: u32) -> Request {
    let prompt: Vec<Token> = (0..PROMPT as u32).map(|at| Token((number * 37 + at * 11) % 250)).collect();
    Request::tokens(prompt).with_max_tokens(400).with_ignore_end(true).with_sampling(Sampling::greedy())
}
