//! A session that is watched while an engine drives it: every pass waits for leave.

use infer::{
    Batch, Capabilities, Interrupt, Limits, ModelInfo, OpenOptions, Outputs, Result, Sampling, Sequence, Session,
    Token, Usage,
};
use std::{
    io::{Read, Write},
    ops::Range,
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

/// The session.
pub(crate) struct Watched {
    inner: Box<dyn Session>,
    watch: Arc<Watch>,
    /// The last pass, when it ended, and what the thread had asked the allocator for by then.
    last: Option<(Step, Instant, u64)>,
}

impl Watched {
    pub(crate) fn new(inner: Box<dyn Session>, watch: Arc<Watch>) -> Self {
        Self { inner, watch, last: None }
    }
}

impl Session for Watched {
    fn decode(&mut self, batch: &Batch) -> Result<()> {
        let (now, allocations) = (Instant::now(), kit::heap_so_far().allocations);
        let last = self.last.take().map(|(step, ended, before)| Step {
            besides: now - ended,
            allocations: allocations - before,
            ..step
        });
        self.watch.ask(last);
        let begun = Instant::now();
        let decoded = self.inner.decode(batch);
        let ended = Instant::now();
        let step = Step { tokens: batch.token_count(), pass: ended - begun, besides: Duration::ZERO, allocations: 0 };
        self.last = Some((step, ended, kit::heap_so_far().allocations));
        decoded
    }

    fn model(&self) -> &Arc<ModelInfo> {
        self.inner.model()
    }

    fn capabilities(&self) -> &Capabilities {
        self.inner.capabilities()
    }

    fn limits(&self) -> &Limits {
        self.inner.limits()
    }

    fn usage(&self) -> Usage {
        self.inner.usage()
    }

    fn interrupt(&self) -> Interrupt {
        self.inner.interrupt()
    }

    fn open(&mut self, options: &OpenOptions) -> Result<Sequence> {
        self.inner.open(options)
    }

    fn fork(&mut self, parent: &Sequence, len: usize) -> Result<Sequence> {
        self.inner.fork(parent, len)
    }

    fn truncate(&mut self, seq: &Sequence, len: usize) -> Result<()> {
        self.inner.truncate(seq, len)
    }

    fn shift(&mut self, seq: &Sequence, dropped: Range<usize>) -> Result<()> {
        self.inner.shift(seq, dropped)
    }

    fn sample_with(&mut self, seq: &Sequence, sampling: &Sampling, prompt: &[Token]) -> Result<()> {
        self.inner.sample_with(seq, sampling, prompt)
    }

    fn outputs(&self) -> Outputs<'_> {
        self.inner.outputs()
    }

    fn save(&mut self, seq: &Sequence, to: &mut dyn Write) -> Result<()> {
        self.inner.save(seq, to)
    }

    fn restore(&mut self, from: &mut dyn Read) -> Result<Sequence> {
        self.inner.restore(from)
    }
}
