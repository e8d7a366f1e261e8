//! Requests at random on engines, a third of them cancelled or dropped half-way.

use infer::{Engine, EngineStats, FinishReason, Generation, KvLayout, Model, Request, Result, Sampling, Token};
use infer_benches::{Bar, Figure, Random, Run, growth::rounds};
use infer_core::testing::{Script, ScriptedModel};
use std::{
    path::Path,
    thread,
    time::{Duration, Instant},
};

/// What may be added, in parts of what was held before.
const MOST: f64 = 0.02;
/// And what may be added in any case, in bytes: pages that the allocators of several threads take by the way. Requests that kept their
/// tokens would add more.
const PAGES: f64 = 1e6;
/// Longer than an engine takes to notice that nobody reads any more.
const PATIENCE: Duration = Duration::from_secs(60);

/// How many requests there are and how large they are.
struct Load {
    waves: usize,
    /// Requests that are made at once; all have ended before the next wave.
    wave: usize,
    /// Tokens of a prompt, and of a text, at most.
    prompt: u64,
    count: u64,
    /// Tokens of a text that is to be cancelled: too many for it to end before.
    long: usize,
    /// Ids of tokens are below this.
    vocab: u64,
}

/// 10,000 on the scripted session.
pub(crate) fn scripted(run: &mut Run) -> Result<()> {
    let load = Load { waves: 500, wave: 20, prompt: 96, count: 48, long: 160, vocab: 256 };
    run.progress(&format!("{} requests at random on the scripted session", load.waves * load.wave));
    // Fewer cells than the texts may need: some have to wait for others.
    let builder = || {
        let open = || Ok(Box::new(ScriptedModel::new(Script::new())) as Box<dyn Model>);
        Engine::builder_with(open).with_sequences(12).with_context(256).with_cells(640)
    };
    let engines = [builder().build()?, builder().with_prefix_cache(0).build()?];
    soak(run, "soak/requests/scripted", &engines, &load)
}

/// 300 on a model, with its cells in either layout.
pub(crate) fn on_model(run: &mut Run, path: &Path) -> Result<()> {
    let load = Load { waves: 50, wave: 6, prompt: 64, count: 24, long: 64, vocab: 40_000 };
    run.progress(&format!("{} requests at random on SmolLM2", load.waves * load.wave));
    let builder = || Engine::builder(path).with_sequences(4).with_context(128).with_threads(1);
    let unified = builder().with_layout(KvLayout::Unified).with_cells(192).build()?;
    let split = builder().with_layout(KvLayout::Split).with_prefix_cache(0).build()?;
    soak(run, "soak/requests/smollm2", &[unified, split], &load)
}

/// The engines take turns, wave by wave.
fn soak(run: &mut Run, what: &str, engines: &[Engine; 2], load: &Load) -> Result<()> {
    let mut random = Random::new(1);
    let growth = rounds(run.quick(), load.waves, |round| wave(&engines[round % 2], load, &mut random))?;
    let leaked: usize = engines.iter().map(|engine| leaked(&idle(engine))).sum();
    let stats = engines.each_ref().map(Engine::stats);
    let sum = |count: fn(&EngineStats) -> u64| stats.iter().map(count).sum::<u64>();
    let note = format!(
        "{} finished, {} cancelled; {} prefix hits, {} preemptions",
        sum(|stats| stats.finished),
        sum(|stats| stats.cancelled),
        sum(|stats| stats.prefix_hits),
        sum(|stats| stats.preemptions)
    );
    run.figure(
        Figure::new(format!("{what}/leaked"), leaked as f64, "cells").with_bar(Bar::AtMost(0.0)).with_note(note),
    );
    growth.tell(run, what, f64::max(MOST * growth.held_before(), PAGES));
    Ok(())
}

/// Requests that are all made at once, and have all ended, one way or the other, when this returns.
fn wave(engine: &Engine, load: &Load, random: &mut Random) -> Result<()> {
    let (mut cancelled, mut whole) = (Vec::new(), Vec::new());
    for _ in 0..load.wave {
        let request = request(load, random);
        if random.below(3) == 0 {
            cancelled.push(engine.generate(request.with_max_tokens(load.long)));
        } else {
            whole.push(engine.generate(request));
        }
    }
    for mut generation in cancelled {
        for _ in 0..random.below(4) {
            generation.wait().transpose()?;
        }
        // Half of them are dropped.
        if random.below(2) == 0 {
            generation.cancel();
            read(generation, true)?;
        }
    }
    for generation in whole {
        read(generation, false)?;
    }
    idle(engine);
    Ok(())
}

/// Reads all that is left of it: it ends as it was asked to, or is cancelled before.
fn read(generation: Generation, may_be_cancelled: bool) -> Result<()> {
    for piece in generation {
        let ended = piece?.finish.map(|finish| finish.reason);
        let as_asked = matches!(ended, None | Some(FinishReason::Length | FinishReason::StopToken(_)));
        assert!(as_asked || may_be_cancelled && ended == Some(FinishReason::Cancelled), "it ended by {ended:?}");
    }
    Ok(())
}

/// Prompts share their beginnings with one in four of the others.
fn request(load: &Load, random: &mut Random) -> Request {
    let family = random.below(4);
    let (length, own) = (1 + random.below(load.prompt), random.below(load.prompt));
    let mut shared = Random::new(family);
    let prompt: Vec<Token> = (0..length)
        .map(|at| {
            let drawn = if at < own { shared.below(load.vocab) } else { random.below(load.vocab) };
            Token(u32::try_from(drawn).expect("a vocabulary fits"))
        })
        .collect();
    let sampling = Sampling::default().with_temperature(random.below(3) as f32 / 2.0).with_seed(random.any());
    let count = 1 + random.below(load.count) as usize;
    let request = Request::tokens(prompt).with_sampling(sampling).with_max_tokens(count).with_ignore_end(true);
    let request = request.with_n(1 + random.below(2) as usize);
    if random.below(4) == 0 { request.with_stop_token(Token(random.below(load.vocab) as u32)) } else { request }
}

/// The figures of an engine when nothing is left to do.
fn idle(engine: &Engine) -> EngineStats {
    let end = Instant::now() + PATIENCE;
    loop {
        let stats = engine.stats();
        if stats.waiting + stats.prefilling + stats.running == 0 {
            return stats;
        }
        assert!(Instant::now() < end, "requests that nobody reads are still there:\n{stats}");
        thread::sleep(Duration::from_millis(1));
    }
}

/// Cells in use that the prefix cache does not account for.
fn leaked(stats: &EngineStats) -> usize {
    stats.cells.saturating_sub(stats.cells_cached)
}
