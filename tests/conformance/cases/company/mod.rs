//! Texts in company: whatever an engine does for many requests at once, each comes to what it would have come to alone, by hand, however its
//! tokens are drawn.
//!
//! Alone is another session that is fed the prompt and then, one by one, the very tokens that the engine has drawn. So every token is compared,
//! also those behind a near-tie: its log-probability, and, where the best one was to be drawn, whether it is the best but for what logits of the
//! subject may be apart. Where that is nothing, the whole text must be that of a [`Generator`].

mod losing;

use crate::{
    setting::{BATCH, CONTEXT, PASS, Setting, feed, open},
    subject::Pace,
};
use infer::{
    Completion, Engine, EngineBuilder, EngineStats, FinishReason, Generation, Generator, KvLayout, Request, Sampling,
    SessionOptions, Token, Want,
};
use infer_core::testing::Hooked;
use kit::trace::log_softmax;
use losing::Losing;
use std::{
    sync::{Arc, Mutex},
    thread,
    time::{Duration, Instant},
};

pub(crate) fn an_engines_texts_are_as_alone(at: &Setting<'_>) {
    // Two more than run at once, some longer than a pass, and the shortest of chunks.
    let running = Running::new(at, |builder| builder.with_sequences(3).with_batch(32).with_step_time(Duration::ZERO));
    let texts = [at.text(0, 50), at.text(1, 9), at.text(2, 30), at.text(3, 70), at.text(0, 3)];
    let asked = texts.map(|text| running.ask(text, 1));
    let texts = asked.len() as u64;
    asked.into_iter().for_each(|one| drop(one.compare(at)));
    let stats = running.end();
    assert_eq!((stats.finished, stats.failed, stats.preemptions), (texts, 0, 0));
}

pub(crate) fn what_an_engine_reuses_is_as_computed(at: &Setting<'_>) {
    let running = Running::new(at, |builder| builder.with_sequences(3));
    let shared = at.text(0, 40);
    let question = |which: usize| [&shared[..], &at.text(which, 8)[..]].concat();
    // At once, when the first has ended, and one that goes on where another one has ended.
    let asked = [question(1), question(2)].map(|text| running.ask(text, 1));
    asked.into_iter().for_each(|one| drop(one.compare(at)));
    let first = running.ask(question(3), 1);
    let (prompt, completions) = (first.prompt.clone(), first.complete());
    let said = completions[0].tokens.iter().map(|sampled| sampled.token);
    let on = [prompt, said.collect(), at.text(1, 5)].concat();
    running.ask(on, 1).compare(at);
    let least = if running.engine.capabilities().is_some_and(|able| able.fork) { 3 } else { 1 };
    let stats = running.end();
    assert!(stats.prefix_hits >= least, "{} texts were begun with what was there", stats.prefix_hits);
}

/// Of the real model; the quick ones are filled with longer texts.
pub(crate) fn texts_that_were_preempted_are_as_alone(at: &Setting<'_>) {
    if at.subject.pace == Pace::Quick || layout(at) == KvLayout::Split {
        return;
    }
    // llama.cpp has no fewer cells. They are not enough, also when some texts have still to be begun; each begins as no other does.
    let (cells, texts, prompt, drawn) = (256, 10, 17, 13);
    let running = Running::new(at, |builder| builder.with_sequences(texts).with_cells(cells).with_prefix_cache(0));
    let text = |which: usize| at.text(which % 4, 60)[which / 4 * 20..][..prompt].to_vec();
    let asked: Vec<_> = (0..texts).map(|which| running.ask_for(text(which), 1, drawn)).collect();
    asked.into_iter().for_each(|one| drop(one.compare(at)));
    let stats = running.end();
    assert!(stats.preemptions > 0, "there was room for all: {stats}");
    assert_eq!((stats.finished, stats.failed), (texts as u64, 0));
}

pub(crate) fn completions_of_one_prompt_are_as_alone(at: &Setting<'_>) {
    let running = Running::new(at, |builder| builder.with_sequences(4));
    let one = running.ask(at.text(2, 30), 3);
    let completions = one.compare(at);
    assert!(completions.iter().any(|one| one.tokens != completions[0].tokens), "each has its own seed");
    let can_fork = running.engine.capabilities().is_some_and(|able| able.fork);
    let stats = running.end();
    if can_fork {
        assert_eq!(
            (stats.prefilled_tokens, stats.cached_tokens),
            (32, 58),
            "the prompt is computed once, but for the last token"
        );
    }
}

pub(crate) fn who_leaves_frees_its_cells_and_harms_nobody(at: &Setting<'_>) {
    let running = Running::new(at, |builder| builder.with_sequences(4).with_prefix_cache(0));
    let mut asked: Vec<_> = (0..4).map(|which| running.ask_for(at.text(which, 20 + which), 1, 40)).collect();
    let (mut dropped, cancelled) = (asked.remove(1), asked.remove(1));
    dropped.generation.wait().expect("there is more").unwrap();
    drop(dropped);
    cancelled.generation.cancel();
    let (prompt, request) = (cancelled.prompt.clone(), cancelled.request.clone());
    let said = cancelled.complete().remove(0);
    assert!(matches!(said.finish, FinishReason::Cancelled | FinishReason::Length), "{}", said.finish);
    at.is_faithful(&prompt, &request, &said);
    asked.into_iter().for_each(|one| drop(one.compare(at)));
    let begun = Instant::now();
    while (running.engine.stats().sequences, running.engine.stats().cells) != (0, 0) {
        assert!(begun.elapsed() < Duration::from_secs(60), "cells are left: {}", running.engine.stats());
        thread::sleep(Duration::from_millis(1));
    }
    let stats = running.end();
    assert_eq!((stats.finished + stats.cancelled, stats.failed, stats.running, stats.waiting), (4, 0, 0, 0));
}

pub(crate) fn texts_of_lost_sessions_are_as_alone(at: &Setting<'_>) {
    let mut made = 0_usize;
    let running = Running::made_by(
        at,
        |builder| builder.with_sequences(3),
        move |session| {
            made += 1;
            // While prompts are computed, and later on among running texts.
            let passes = [Some(2), Some(9)].get(made - 1).copied().flatten();
            Box::new(Hooked::new(session, Losing::after(passes)))
        },
    );
    let asked = [at.text(0, 30), at.text(1, 40), at.text(2, 12)].map(|text| running.ask_for(text, 1, 12));
    asked.into_iter().for_each(|one| drop(one.compare(at)));
    let stats = running.end();
    assert_eq!((stats.rebuilt, stats.finished, stats.failed), (2, 3, 0), "{stats}");
}

/// How the subject's cells lie.
fn layout(at: &Setting<'_>) -> KvLayout {
    if at.subject.name.ends_with("_split") { KvLayout::Split } else { KvLayout::Unified }
}

type Afterwards = Arc<Mutex<Option<Box<dyn FnOnce() + Send>>>>;

/// An engine over a subject.
struct Running {
    engine: Engine,
    /// What is to be looked at when the model is closed.
    afterwards: Afterwards,
    draws: Vec<Sampling>,
    tokens: usize,
    asked: std::cell::Cell<usize>,
}

/// A request, and its answer to come.
struct Asked {
    prompt: Vec<Token>,
    request: Request,
    generation: Generation,
}

impl Running {
    fn new(at: &Setting<'_>, adjust: impl FnOnce(EngineBuilder) -> EngineBuilder) -> Self {
        Self::made_by(at, adjust, |session| session)
    }

    /// With sessions that are wrapped in something.
    fn made_by(
        at: &Setting<'_>,
        adjust: impl FnOnce(EngineBuilder) -> EngineBuilder,
        mut wrap: impl FnMut(Box<dyn infer::Session>) -> Box<dyn infer::Session> + Send + 'static,
    ) -> Self {
        let (open, afterwards) = (at.subject.open, Afterwards::default());
        let to = afterwards.clone();
        let builder = Engine::builder_with(move || {
            let opened = open();
            *to.lock().unwrap() = Some(opened.afterwards);
            Ok(opened.model)
        });
        let builder = builder.with_context(CONTEXT).with_batch(BATCH).with_layout(layout(at)).with_threads(1);
        let builder = builder.with_sessions(move |model, options| Ok(wrap(model.session(options)?)));
        let engine = adjust(builder).build().unwrap_or_else(|error| panic!("no engine: {error}"));
        let draws = at.samplings().into_iter().map(|(_, sampling)| sampling).collect();
        let tokens = if at.subject.pace == Pace::Quick { 12 } else { 5 };
        Self { engine, afterwards, draws, tokens, asked: 0.into() }
    }

    fn ask(&self, prompt: Vec<Token>, n: usize) -> Asked {
        self.ask_for(prompt, n, self.tokens)
    }

    /// Each time with another sampling.
    fn ask_for(&self, prompt: Vec<Token>, n: usize, tokens: usize) -> Asked {
        let asked = self.asked.replace(self.asked.get() + 1);
        let sampling = match n {
            1 => self.draws[asked % self.draws.len()].clone(),
            _ => Sampling::default().with_temperature(1.0).with_seed(3),
        };
        let request = Request::tokens(prompt.clone())
            .with_max_tokens(tokens)
            .with_sampling(sampling)
            .with_n(n)
            .with_ignore_end(true);
        Asked { prompt, generation: self.engine.generate(request.clone()), request }
    }

    /// Closes the model, whose vocabulary goes with the last handle. Returns the figures of the last step, which is over by then.
    fn end(self) -> EngineStats {
        self.engine.shutdown();
        let stats = self.engine.stats();
        drop(self.engine);
        let afterwards = self.afterwards.lock().unwrap().take();
        afterwards.expect("the model was opened")();
        stats
    }
}

impl Asked {
    fn complete(self) -> Vec<Completion> {
        self.generation.complete_all().unwrap_or_else(|error| panic!("{error}"))
    }

    /// Compares what comes with what each completion comes to alone.
    fn compare(self, at: &Setting<'_>) -> Vec<Completion> {
        let (prompt, request) = (self.prompt.clone(), self.request.clone());
        let completions = self.complete();
        assert_eq!(completions.len(), request.n);
        for (seed, completion) in (request.sampling.seed..).zip(&completions) {
            let sampling = request.sampling.clone().with_seed(seed);
            let request = request.clone().with_sampling(sampling).with_n(1);
            at.is_faithful(&prompt, &request, completion);
            at.is_whole(&request, completion);
        }
        completions
    }
}

impl Setting<'_> {
    /// Each token is one that the model gave this log-probability after those before it.
    fn is_faithful(&self, prompt: &[Token], request: &Request, completion: &Completion) {
        let mut session = self.session();
        let seq = open(&mut *session);
        let is_greedy = request.sampling == Sampling::greedy();
        // Logits that may be that far apart are the same number; of two of them a difference is made.
        let apart = 2.0 * f64::from(self.subject.scattered.max(self.subject.epsilon)) + 1e-5;
        let (stats, drawn) = (completion.stats, completion.tokens.len());
        assert_eq!((stats.prompt_tokens, stats.generated_tokens), (prompt.len(), drawn));
        let (last, chunks) = prompt.split_last().expect("a prompt has tokens");
        for chunk in chunks.chunks(PASS) {
            feed(&mut *session, &seq, chunk, Want::Nothing).unwrap();
        }
        let mut next = *last;
        for (place, sampled) in completion.tokens.iter().enumerate() {
            feed(&mut *session, &seq, &[next], Want::Logits).unwrap();
            let row = log_softmax(session.outputs().logits(0).expect("logits were wanted"));
            let (found, wanted) = (f64::from(sampled.logprob), row[sampled.token.index()]);
            assert!((found - wanted).abs() <= apart, "token {place} of {prompt:?}: {found} in company, {wanted} alone");
            if is_greedy {
                let best = row.iter().copied().fold(f64::NEG_INFINITY, f64::max);
                assert!(best - wanted <= apart, "token {place} of {prompt:?} is not the best: {wanted}, {best} is");
            }
            next = sampled.token;
        }
    }

    /// It has as many tokens as were asked for; where logits are the same to the bit, it is the same text.
    fn is_whole(&self, request: &Request, completion: &Completion) {
        let (drawn, reason) = (completion.tokens.len(), completion.finish);
        assert_eq!((Some(drawn), reason), (request.max_tokens, FinishReason::Length));
        if self.subject.epsilon > 0.0 || self.subject.scattered > 0.0 {
            return;
        }
        let mut session = self.model.session(&SessionOptions::new().with_context(CONTEXT).with_batch(BATCH)).unwrap();
        let mut generator = Generator::new(self.model.tokenizer());
        let alone = generator.generate(&mut *session, request).unwrap().complete().unwrap();
        assert_eq!((&completion.text, &completion.tokens), (&alone.text, &alone.tokens));
    }
}
