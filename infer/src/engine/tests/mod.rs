//! Everything here runs on the scripted model; a real one is in the package `tests`.

#[cfg(feature = "chat")]
mod answers;
mod bad_input;
mod constraints;
mod encodes;
mod ends;
mod requests;
mod streams;
mod untrue;

use super::*;
use crate::{Completion, FinishReason, Generator};
use infer_core::{
    Error, ErrorKind, SessionOptions,
    testing::{Fault, Script, ScriptedModel, Step},
};
use std::{
    sync::{Condvar, Mutex},
    task::{Context, Wake, Waker},
    time::Duration,
};
use test_kit::block_on;

fn builder(script: Script) -> EngineBuilder {
    Engine::builder_with(move || Ok(Box::new(ScriptedModel::new(script))))
}

fn engine(script: Script) -> Engine {
    builder(script).build().unwrap()
}

/// A prompt in which control tokens are written by name, and at most 8 tokens.
fn ask(prompt: &str) -> Request {
    Request::rendered(prompt).with_max_tokens(8).with_ignore_end(true)
}

/// A text that does not end by itself for a long time.
fn endless() -> Request {
    Request::rendered("and so on").with_ignore_end(true)
}

/// What a request comes to by itself.
fn solo(script: &Script, request: &Request) -> Completion {
    let model = ScriptedModel::new(script.clone());
    let mut session = model.session(&SessionOptions::new()).unwrap();
    Generator::new(model.tokenizer()).generate(&mut session, request).unwrap().complete().unwrap()
}

fn kind<T>(result: Result<T>) -> ErrorKind {
    result.map(drop).expect_err("this was to be refused").kind()
}

/// Passes that wait until they may go on.
#[derive(Clone, Default)]
struct Hold(Arc<(Mutex<Held>, Condvar)>);

#[derive(Default)]
struct Held {
    /// Moments of passes that may go by.
    free: usize,
    /// Those that were seen.
    seen: usize,
}

impl Hold {
    /// The first so many moments of passes do not wait; a pass of one text has two, before it and after it.
    fn of(free: usize) -> Self {
        let hold = Self::default();
        hold.close(free);
        hold
    }

    /// A script in which every moment of a pass waits for [`open`](Self::open).
    fn on(&self, script: Script) -> Script {
        let hold = self.clone();
        script.with_hook(move |_: &Step<'_>| {
            hold.pass();
            None::<Fault>
        })
    }

    /// What a moment of a pass does.
    fn pass(&self) {
        let (held, changed) = &*self.0;
        let mut held = held.lock().unwrap();
        held.seen += 1;
        changed.notify_all();
        while held.free == 0 {
            held = changed.wait(held).unwrap();
        }
        if held.free < usize::MAX {
            held.free -= 1;
        }
    }

    fn open(&self) {
        self.close(usize::MAX);
    }

    /// Lets so many moments go by.
    fn close(&self, free: usize) {
        self.0.0.lock().unwrap().free = free;
        self.0.1.notify_all();
    }

    fn seen(&self) -> usize {
        self.0.0.lock().unwrap().seen
    }

    /// Waits until a pass has begun.
    fn wait(&self) {
        let (held, changed) = &*self.0;
        let mut held = held.lock().unwrap();
        while held.seen == 0 {
            held = changed.wait(held).unwrap();
        }
    }
}

/// Looks until something is so.
fn until(what: &str, mut is_so: impl FnMut() -> bool) {
    let begun = Instant::now();
    while !is_so() {
        assert!(begun.elapsed() < Duration::from_secs(60), "it never was so: {what}");
        thread::sleep(Duration::from_micros(200));
    }
}
