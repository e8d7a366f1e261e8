//! Many texts on one session, a forward pass a step.
//!
//! Each text is a log: its prompt, and what was drawn after it. Its sequence holds a beginning of the log, and there is one rule:
//! **feed `log[sequence.len()..]`**. A running text lacks the token that was drawn last, a new one its prompt, one that took over a beginning
//! from the prefix cache the rest of it; one that was preempted, or whose session was lost, lacks everything, and comes to the same tokens
//! again, since draws are a function of the tokens and the seed. So nothing is ever saved or repaired here: what goes wrong drops a
//! sequence, and the rule does the rest.
//!
//! A step, [`Scheduler::turn`]:
//!
//! 1. **Reap.** Streams that nobody reads any more, that were cancelled, or whose deadline has passed, end before anything is computed.
//! 2. **Admit** ([`admission`]) waiting texts while there are sequences and cells, with the longest beginning that a finished ([`prefix`]) or
//!    running sequence holds. Further completions of a request, and texts that share a long beginning, wait for the first one to compute it.
//! 3. **Fill** ([`fill`]) the batch: what running texts lack, then chunks of prompts, as much as the step's time allows ([`pace`]). Texts of
//!    one adapter share a pass ([`lanes`]).
//! 4. **Decode**: one pass. What can go wrong with it is [`faults`]' business; a context that is full [`shift`]'s.
//! 5. **Deliver** what was drawn to the streams, and keep the sequences of texts that have ended for others.

mod admission;
mod checks;
mod faults;
mod fill;
mod lanes;
mod metrics;
mod pace;
mod prefix;
mod shift;
#[cfg(test)]
mod tests;
mod text;
mod timeline;

pub use self::{
    metrics::{EngineStats, StepTimes},
    timeline::{Happened, Timeline, TimelineEvent},
};

use self::{admission::Admission, fill::Fed, lanes::Lanes, pace::Pace, prefix::PrefixCache, text::Text};
use super::{channel::Wish, settings::Settings, shared::Shared};
use crate::{FinishReason, Overflow, Turn};
use infer_core::{Batch, Capabilities, Error, Limits, Model, Result, Session, Vocab};
use std::{
    collections::VecDeque,
    mem,
    sync::Arc,
    time::{Duration, Instant},
};

/// Makes the session, and another one when it is lost.
pub(crate) type SessionFactory = Box<dyn FnMut(&dyn Model) -> Result<Box<dyn Session>>>;

/// Tries to make another session before the texts that wait for it end.
const ATTEMPTS: u32 = 3;
/// Between the first two tries; each further time twice as long.
const BETWEEN: Duration = Duration::from_millis(if cfg!(test) { 1 } else { 100 });
/// Waiting texts that a step looks at, to see whether anybody still wants them.
const LOOKED_AT: usize = 256;

/// See the [module](self). Field order is drop order: sequences, then the session, then the model.
pub(crate) struct Scheduler {
    running: Vec<Text>,
    /// Those that have just ended: they are counted, then told. Empty between steps.
    leaving: Vec<(Text, End)>,
    /// In the order they came.
    waiting: VecDeque<Text>,
    cache: PrefixCache,
    batch: Batch,
    /// `None` while a step works with it, and after it was lost.
    session: Option<Box<dyn Session>>,
    make: SessionFactory,
    model: Box<dyn Model>,
    vocab: Arc<Vocab>,
    limits: Limits,
    capabilities: Capabilities,
    settings: Settings,
    shared: Arc<Shared>,
    /// Names of adapters by the number that texts have; the first is none.
    adapters: Vec<Option<String>>,
    admission: Admission,
    lanes: Lanes,
    pace: Pace,
    stats: EngineStats,
    down: Option<Down>,
    serials: u64,
    /// Grows whenever a text is preferred to others that found no room in the batch.
    served: u64,
    /// For so many steps running texts have paused for prompts of their burst.
    paused: u32,
    /// The waiting text to be looked at next.
    looked_at: usize,
    /// Of the waiting texts that had begun before, none has a larger serial.
    begun_before: u64,
}

/// What the reader of a text that has ended is told.
enum End {
    Reason(FinishReason),
    Error(Error),
}

/// The session is lost, and another one is to be made.
struct Down {
    attempts: u32,
    next: Instant,
}

impl Scheduler {
    /// A scheduler for a model, with the session that `make` makes of it.
    ///
    /// # Errors
    /// Those of `make`.
    pub(crate) fn new(
        model: Box<dyn Model>,
        mut make: SessionFactory,
        settings: Settings,
        shared: Arc<Shared>,
    ) -> Result<Self> {
        let session = make(&*model)?;
        shared.set_interrupt(session.interrupt());
        let mut stats = EngineStats::new(Instant::now());
        stats.sequences_total = session.limits().sequences;
        Ok(Self {
            running: Vec::new(),
            leaving: Vec::new(),
            waiting: VecDeque::new(),
            cache: PrefixCache::new(settings.cache),
            batch: Batch::new(),
            limits: session.limits().clone(),
            capabilities: session.capabilities().clone(),
            vocab: model.tokenizer().vocab().clone(),
            session: Some(session),
            make,
            model,
            settings,
            shared,
            adapters: vec![None],
            admission: Admission::default(),
            lanes: Lanes::default(),
            pace: Pace::new(settings.step_time),
            stats,
            down: None,
            serials: 0,
            served: 0,
            paused: 0,
            looked_at: 0,
            begun_before: 0,
        })
    }

    /// Nothing runs and nothing waits.
    pub(crate) fn is_idle(&self) -> bool {
        self.running.is_empty() && self.waiting.is_empty()
    }

    /// Ends every request with this error, and forgets what was kept of earlier ones.
    pub(crate) fn stop(&mut self, error: &Error) {
        let texts: Vec<_> = self.running.drain(..).chain(self.waiting.drain(..)).collect();
        self.stats.failed += texts.len() as u64;
        self.publish();
        for text in texts {
            text.call.fail(copy_of(error));
        }
        self.cache.clear();
        self.publish();
    }

    /// A step: what can be done now is done, and at most one pass is run.
    pub(crate) fn turn(&mut self) -> Turn {
        if self.shared.is_stopping() {
            // Whoever stops it ends what there is.
            return Turn::Wait;
        }
        let now = Instant::now();
        self.reap(now);
        if self.is_idle() {
            if let Some(session) = self.session.take() {
                // What was dropped just now is free.
                self.observe(&*session);
                self.session = Some(session);
            }
            self.publish();
            return Turn::Wait;
        }
        let mut session = match self.session.take().map_or_else(|| self.rebuild(now), Ok) {
            Ok(session) => session,
            Err(turn) => return turn,
        };
        match self.step(&mut *session, now) {
            Ok(()) => {
                self.session = Some(session);
                self.publish();
                Turn::Again
            }
            Err(lost) => {
                // In this order: its sequences, then it.
                self.lose(lost, now);
                drop(session);
                self.publish();
                Turn::Again
            }
        }
    }

    /// # Errors
    /// [`SessionLost`](infer_core::ErrorKind::SessionLost) only.
    fn step(&mut self, session: &mut dyn Session, now: Instant) -> Result<()> {
        self.admit(session, now)?;
        if self.shift_full(session, now)? {
            self.conclude(session, now);
        }
        let fed = self.fill();
        if self.batch.is_empty() {
            self.conclude(session, now);
            return Ok(());
        }
        let begun = Instant::now();
        let pass = session.decode(&self.batch);
        let now = Instant::now();
        match pass {
            Ok(()) => self.deliver(session, fed, now, now.saturating_duration_since(begun)),
            Err(error) => self.pass_failed(session, error, now)?,
        }
        self.observe(session);
        self.conclude(session, now);
        Ok(())
    }

    /// Ends what nobody wants any more, or not any longer.
    fn reap(&mut self, now: Instant) {
        let mut is_any = false;
        for text in &mut self.running {
            text.ended = judge(text, now).map(Ok);
            is_any |= text.ended.is_some();
        }
        if is_any && let Some(session) = self.session.take() {
            self.conclude(&*session, now);
            self.session = Some(session);
        }
        let from = if self.looked_at < self.waiting.len() { self.looked_at } else { 0 };
        self.looked_at = from + LOOKED_AT;
        let mut is_any = false;
        for text in self.waiting.iter_mut().skip(from).take(LOOKED_AT) {
            let Some(reason) = judge(text, now) else { continue };
            self.stats.count_end(text.call.is_over.get(), reason);
            text.ended = Some(Ok(reason));
            is_any = true;
        }
        if is_any {
            self.publish();
            self.admission.retry();
            self.waiting.retain_mut(|text| match text.ended.take() {
                Some(Ok(reason)) => {
                    text.report(reason, now);
                    false
                }
                _ => true,
            });
        }
    }

    /// Makes another session in place of one that was lost.
    fn rebuild(&mut self, now: Instant) -> Result<Box<dyn Session>, Turn> {
        let down = self.down.get_or_insert(Down { attempts: 0, next: now });
        if now < down.next {
            return Err(Turn::Until(down.next));
        }
        match (self.make)(&*self.model) {
            Ok(session) => {
                self.down = None;
                self.stats.rebuilt += 1;
                self.shared.set_interrupt(session.interrupt());
                self.limits = session.limits().clone();
                self.capabilities = session.capabilities().clone();
                tracing::info!("another session was made");
                Ok(session)
            }
            Err(error) => {
                down.attempts += 1;
                tracing::warn!(%error, attempt = down.attempts, "no other session could be made");
                if down.attempts < ATTEMPTS {
                    down.next = now + BETWEEN * 2_u32.pow(down.attempts - 1);
                    return Err(Turn::Until(down.next));
                }
                // A later request tries again.
                self.down = None;
                self.stop(&error);
                Err(Turn::Wait)
            }
        }
    }

    /// Hands out what the pass brought.
    fn deliver(&mut self, session: &dyn Session, fed: Fed, now: Instant, took: Duration) {
        let outputs = session.outputs();
        let mut tokens = 0;
        for text in &mut self.running {
            let Some((row, want)) = text.row.take() else { continue };
            let held = text.held();
            if !text.is_decoding {
                let tokens = self.batch.entries()[row].range().len();
                text.note(now, Happened::Prefill { tokens, steps: 1 });
            }
            text.trial.passed(held);
            tokens += text.take(outputs, row, want, now);
        }
        self.pace.measured(fed.running, fed.prompts, took);
        self.stats.prefilled_tokens += fed.prompts as u64;
        self.stats.count_step(now, took, tokens);
    }

    /// Sees texts off that have ended. They are counted, and their cells given up or kept, before anybody is told: who has read an end finds
    /// it in the figures.
    fn conclude(&mut self, session: &dyn Session, now: Instant) {
        let mut at = 0;
        while let Some(text) = self.running.get_mut(at) {
            let Some(ended) = text.ended.take() else {
                at += 1;
                continue;
            };
            let text = self.running.remove(at);
            let end = match ended {
                Ok(FinishReason::ContextFull) if text.call.overflow == Overflow::Error => {
                    End::Error(checks::context_full(&text, self.limits.context, self.model.info()))
                }
                Ok(reason) => End::Reason(reason),
                Err(error) => End::Error(error),
            };
            self.leave(text, end);
        }
        if self.leaving.is_empty() {
            return;
        }
        self.admission.retry();
        self.observe(session);
        self.publish();
        for (mut text, end) in self.leaving.drain(..) {
            match end {
                End::Reason(reason) => text.report(reason, now),
                End::Error(error) => text.call.tell(error),
            }
        }
    }

    fn leave(&mut self, mut text: Text, end: End) {
        self.admission.left += 1;
        match end {
            End::Reason(reason) => {
                self.stats.count_end(text.call.is_over.get(), reason);
                // What nobody reads any more gives its cells up at once.
                if text.call.wish() != Wish::Forget {
                    self.keep(&mut text);
                }
            }
            End::Error(_) => {
                self.stats.failed += 1;
                if text.call.is_over.replace(true) {
                    // Another completion has failed, and the request with it.
                    return;
                }
            }
        }
        text.seq = None;
        self.leaving.push((text, end));
    }

    /// Keeps what was computed of a text for others that begin like it.
    fn keep(&mut self, text: &mut Text) {
        if !text.is_exact() {
            return;
        }
        let Some(seq) = text.seq.take_if(|seq| !seq.is_spent()) else { return };
        let mut log = mem::take(&mut text.log);
        log.truncate(seq.len());
        log.shrink_to_fit();
        let supersede = self.capabilities.fork && self.capabilities.truncate;
        self.cache.keep(prefix::Entry { log, seq, adapter: text.call.adapter }, supersede);
    }

    fn observe(&mut self, session: &dyn Session) {
        let usage = session.usage();
        self.stats.sequences = usage.sequences;
        self.stats.cells = usage.cells;
        self.stats.cells_free = usage.cells_free;
    }

    fn publish(&mut self) {
        let decoding = self.running.iter().filter(|text| text.is_decoding).count();
        self.stats.running = decoding;
        self.stats.prefilling = self.running.len() - decoding;
        self.stats.cells_cached = self.cache.held();
        // What is in the queue is counted where it is asked for.
        let again = self.waiting.iter().take_while(|text| text.serial <= self.begun_before);
        self.stats.waiting = again.filter(|text| text.admitted.is_some()).count();
        self.shared.publish(&self.stats);
    }
}

/// Whether a text is to end, for its reader's sake.
fn judge(text: &Text, now: Instant) -> Option<FinishReason> {
    match text.call.wish() {
        // Another completion has failed, and the request with it; nobody reads what is reported.
        _ if text.call.is_over.get() => Some(FinishReason::Cancelled),
        Wish::Forget | Wish::Cancel => Some(FinishReason::Cancelled),
        Wish::Go if text.call.deadline.is_some_and(|deadline| now >= deadline) => Some(FinishReason::Deadline),
        Wish::Go => None,
    }
}

/// The same error once more, for another request.
fn copy_of(error: &Error) -> Error {
    Error::new(error.kind(), error.to_string())
}
