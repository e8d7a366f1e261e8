//! A session that is watched while an engine drives it: every pass waits for leave.

use infer::{Batch, Result, Session};
use infer_core::testing::Hooks;
use std::{
    sync::{Arc, Condvar, Mutex, MutexGuard},
    time::{Duration, Instant},
};

/// What a session tells, and obeys.
#[derive(Default)]
pub(crate) struct Watch {
    state: Mutex<State>,
    moved: Condvar,
}

#[derive(Default)]
struct State {
    /// Passes that may begin before the next one has to wait; `None` is all of them.
    leave: Option<usize>,
    /// A pass waits for leave.
    is_waiting: bool,
    /// The last step, where there was one.
    last: Option<Step>,
}

/// What lies between the beginnings of two passes, waiting for leave left out.
#[derive(Clone, Copy)]
pub(crate) struct Step {
    /// Tokens that the pass computed.
    pub(crate) tokens: usize,
    /// The pass.
    pub(crate) pass: Duration,
    /// What whoever drives the session does besides, up to the next pass.
    pub(crate) besides: Duration,
    /// What it asks the allocator for meanwhile.
    pub(crate) allocations: u64,
}

impl Watch {
    /// Every pass waits for leave.
    pub(crate) fn closed() -> Arc<Self> {
        let watch = Self::default();
        watch.lock().leave = Some(0);
        Arc::new(watch)
    }

    /// Lets one pass through, and waits until the next one waits for leave: what came between the two.
    pub(crate) fn step(&self) -> Step {
        let mut state = self.wait();
        state.leave = Some(1);
        state.is_waiting = false;
        self.moved.notify_all();
        drop(state);
        self.wait().last.expect("a pass has been made")
    }

    /// Lets all passes through.
    pub(crate) fn release(&self) {
        self.lock().leave = None;
        self.moved.notify_all();
    }

    /// Until a pass waits for leave.
    fn wait(&self) -> MutexGuard<'_, State> {
        let waiting = self.moved.wait_while(self.lock(), |state| !state.is_waiting);
        waiting.expect("no side panics while it holds it")
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().expect("no side panics while it holds it")
    }

    /// A pass is about to begin; `last` is what came before it.
    fn ask(&self, last: Option<Step>) {
        let mut state = self.lock();
        state.last = last;
        while state.leave == Some(0) {
            state.is_waiting = true;
            self.moved.notify_all();
            state = self.moved.wait(state).expect("no side panics while it holds it");
        }
        state.leave = state.leave.map(|leave| leave - 1);
    }
}

/// Hooks of a session that is watched.
pub(crate) struct Watched {
    watch: Arc<Watch>,
    /// The last pass, when it ended, and what the thread had asked the allocator for by then.
    last: Option<(Step, Instant, u64)>,
}

impl Watched {
    pub(crate) fn new(watch: Arc<Watch>) -> Self {
        Self { watch, last: None }
    }
}

impl Hooks for Watched {
    fn decode(&mut self, inner: &mut dyn Session, batch: &Batch) -> Result<()> {
        let (now, allocations) = (Instant::now(), kit::heap_so_far().allocations);
        let last = self.last.take().map(|(step, ended, before)| Step {
            besides: now - ended,
            allocations: allocations - before,
            ..step
        });
        self.watch.ask(last);
        let begun = Instant::now();
        let decoded = inner.decode(batch);
        let ended = Instant::now();
        let step = Step { tokens: batch.token_count(), pass: ended - begun, besides: Duration::ZERO, allocations: 0 };
        self.last = Some((step, ended, kit::heap_so_far().allocations));
        decoded
    }
}
