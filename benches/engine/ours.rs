//! The engine's side of a load.

use crate::peer::{Ask, Setting};
use infer::{Engine, EngineBuilder, Piece, Request, Sampling};
use std::{
    sync::Barrier,
    thread,
    time::{Duration, Instant},
};

/// An engine that has just been built, with as many threads as every side has.
pub(crate) fn engine(setting: &Setting, set: impl FnOnce(EngineBuilder) -> EngineBuilder) -> Engine {
    let builder = set(Engine::builder(setting.path.as_path()).with_threads(setting.threads));
    builder.build().unwrap_or_else(|error| panic!("{error}"))
}

/// What is asked for, as a request.
pub(crate) fn request(ask: &Ask) -> Request {
    let request = Request::tokens(ask.prompt.clone()).with_max_tokens(ask.count);
    request.with_sampling(Sampling::greedy()).with_ignore_end(true)
}

/// The pieces of one text.
pub(crate) fn generate(engine: &Engine, ask: &Ask) -> impl Iterator<Item = Piece> {
    let generation = engine.generate(request(ask));
    generation.into_iter().map(|piece| piece.unwrap_or_else(|error| panic!("{error}")))
}

/// How long the engine takes for all of these at once, read by a thread each.
pub(crate) fn together(engine: &Engine, asks: &[Ask]) -> Duration {
    let start = Barrier::new(asks.len() + 1);
    thread::scope(|scope| {
        for ask in asks {
            let start = &start;
            scope.spawn(move || {
                start.wait();
                let tokens: usize = generate(engine, ask).map(|piece| piece.tokens.len()).sum();
                assert_eq!(tokens, ask.count, "the engine made other tokens than it was asked for");
            });
        }
        start.wait();
        Instant::now()
    })
    .elapsed()
}
