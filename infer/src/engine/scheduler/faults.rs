//! Passes that fail: no room, a lost session, or an entry that makes every pass fail it is in.
//!
//! - **No room.** The prefix cache goes first, the least recently used entry before the others; then the youngest text gives its cells up
//!   and waits. It is begun again when another one has ended, so two texts cannot take each other's cells for ever: the older one always goes on.
//!   A text that does not fit alone ends as its [`Overflow`] says.
//! - **The session is lost.** All that was computed is gone, and no text is: they wait for another session. Who was in the batch of two
//!   losses in a row runs alone from then on, until it has had a stretch of good passes; who loses the session alone, and is no further than the
//!   time before, ends with that error.
//! - **Anything else.** The batch's texts are tried in halves, each by itself, until one fails alone: that one ends with the error.
//!
//! Failures that follow no text, such as of a device that goes away now and then, end nothing as long as there is progress between them. A text
//! that many of them in a row have brought no further ends, so there is an end to it.

use super::{Scheduler, copy_of, text::Text, timeline::Happened};
use crate::{FinishReason, Overflow};
use infer_core::{Batch, Error, ErrorKind, Result, Session};
use std::time::Instant;

/// Good passes after which nothing is held against a text any more.
const STRETCH: u8 = 16;
/// A text that so many failed passes in a row have brought no further ends.
const MOST_SETBACKS: u8 = 8;

/// What is held against a text.
#[derive(Clone, Copy, Default)]
pub(super) struct Trial {
    /// Shares passes only with texts of the same group; all that nothing is held against are group 0.
    pub(super) group: u32,
    /// Good passes that are to come before it shares passes with all again.
    left: u8,
    /// So much of it must have been computed before, too: what the pass that failed would have brought it to. Where sequences were spent, it is
    /// many passes until it can be seen whose fault it was.
    until: usize,
    /// Sessions lost in a row while it was in the batch.
    losses: u8,
    /// Good passes since the last one.
    good: u8,
    /// Failed passes that found it no further than the one before.
    setbacks: u8,
    /// How far it had come at the last one: tokens generated, and the most that was computed of it.
    reached: (usize, usize),
    /// The most that was computed of it.
    computed: usize,
}

impl Trial {
    /// A pass it was in has succeeded, and it now holds so much.
    pub(super) fn passed(&mut self, held: usize) {
        self.computed = self.computed.max(held);
        self.good = self.good.saturating_add(1);
        self.left = self.left.saturating_sub(1);
        if held < self.until {
            return;
        }
        if self.left == 0 {
            self.group = 0;
        }
        if self.good >= STRETCH {
            self.losses = 0;
        }
    }

    /// A pass it was in has failed, which would have brought it to `until`, when so many tokens were generated of it.
    fn set_back(&mut self, generated: usize, until: usize) {
        self.until = until;
        let came_further = generated > self.reached.0 || self.computed > self.reached.1;
        self.setbacks = if came_further { 1 } else { self.setbacks.saturating_add(1) };
        self.reached = (generated, self.computed);
    }

    /// A session was lost in a pass it was in, `alone` or not, and it was set back. Says whether it is to blame.
    fn lost(&mut self, alone: bool) -> bool {
        self.losses = self.losses.saturating_add(1);
        self.good = 0;
        alone && self.losses >= 2 && self.setbacks >= 2
    }

    /// A session was lost while it was given a sequence. Says whether it is to blame.
    pub(super) fn lost_alone(&mut self, generated: usize) -> bool {
        self.set_back(generated, 0);
        self.lost(true)
    }

    fn is_hopeless(&self) -> bool {
        self.setbacks >= MOST_SETBACKS
    }

    fn separate(&mut self, group: u32, passes: u8) {
        (self.group, self.left) = (group, passes);
    }
}

impl Scheduler {
    /// The pass over the present batch has failed. Nothing has grown.
    ///
    /// # Errors
    /// [`SessionLost`](ErrorKind::SessionLost) only, of the pass or of what was to be done about it.
    pub(super) fn pass_failed(&mut self, session: &mut dyn Session, error: Error, now: Instant) -> Result<()> {
        self.admission.retry();
        match error.kind() {
            ErrorKind::SessionLost => return Err(error),
            ErrorKind::OutOfCells => self.make_room(session, error, now)?,
            // An interrupt that the engine itself has raised is followed by its end.
            ErrorKind::Cancelled if self.shared.is_stopping() => {}
            ErrorKind::Cancelled => {
                for text in self.running.iter_mut().filter(|text| text.row.is_some()) {
                    text.ended = Some(Ok(FinishReason::Cancelled));
                }
            }
            _ => self.separate(&error, now),
        }
        self.running.iter_mut().for_each(|text| text.row = None);
        self.sweep(now);
        Ok(())
    }

    /// Texts whose cells were lost in a pass wait to be computed again.
    fn sweep(&mut self, now: Instant) {
        self.cache.sweep();
        let spent = |text: &Text| text.seq.as_ref().is_some_and(infer_core::Sequence::is_spent);
        while let Some(at) = self.running.iter().position(|text| text.ended.is_none() && spent(text)) {
            self.requeue(at, now, Happened::Retried);
        }
    }

    /// Tries the texts of a failed batch in halves, or ends the only one.
    fn separate(&mut self, error: &Error, now: Instant) {
        let count = self.batch.len();
        let halves = [self.lanes.new_group(), self.lanes.new_group()];
        let fed = self.running.iter_mut().filter_map(|text| text.row.map(|(row, _)| (text, row)));
        for (nth, (text, row)) in fed.enumerate() {
            text.trial.set_back(text.stats.generated_tokens, end_of(&self.batch, row));
            if count == 1 || text.trial.is_hopeless() {
                text.ended = Some(Err(copy_of(error)));
            } else {
                text.trial.separate(halves[nth * 2 / count], 1);
                text.note(now, Happened::Retried);
            }
        }
    }

    fn make_room(&mut self, session: &mut dyn Session, error: Error, now: Instant) -> Result<()> {
        if self.cache.evict() {
            let needed = self.batch.token_count();
            while session.usage().cells_free < needed && self.cache.evict() {}
            return Ok(());
        }
        let holds = |text: &&Text| text.held() > 0 || text.row.is_some();
        let holders = self.running.iter().filter(holds).count();
        let holding = self.running.iter().enumerate().filter(|(_, text)| holds(text));
        let Some((youngest, _)) = holding.max_by_key(|(_, text)| text.serial) else { return Ok(()) };
        if holders > 1 {
            let held = self.running[youngest].held();
            self.stats.preemptions += 1;
            self.running[youngest].preempted_at = Some(self.admission.left);
            self.requeue(youngest, now, Happened::Preempted { held });
            return Ok(());
        }
        self.does_not_fit(session, youngest, error, now)
    }

    /// Not even alone is there room for it.
    fn does_not_fit(&mut self, session: &mut dyn Session, at: usize, error: Error, now: Instant) -> Result<()> {
        let text = &mut self.running[at];
        text.row = None;
        if text.began.is_none() {
            let tokens = text.log.len();
            let message = format!("the prompt has {tokens} tokens, and there are not the KV cells for them: {error}");
            text.ended = Some(Err(Error::new(ErrorKind::OutOfCells, message)));
            return Ok(());
        }
        match text.call.overflow {
            Overflow::Shift if text.held() > 1 => return self.shift(session, at, now),
            Overflow::Error => text.ended = Some(Err(error)),
            _ => text.ended = Some(Ok(FinishReason::ContextFull)),
        }
        Ok(())
    }

    /// A running text gives up its sequence and waits, before all that are younger.
    pub(super) fn requeue(&mut self, at: usize, now: Instant, why: Happened) {
        let mut text = self.running.remove(at);
        text.unseat();
        text.note(now, why);
        text.behind = None;
        self.begun_before = self.begun_before.max(text.serial);
        let place = self.waiting.partition_point(|other| other.serial < text.serial);
        self.waiting.insert(place, text);
        self.admission.retry();
    }

    /// The session is gone, with all that was computed. Its sequences are dropped; what drives it drops the session next.
    pub(super) fn lose(&mut self, error: Error, now: Instant) {
        tracing::warn!(%error, "the session is lost");
        self.cache.clear();
        let suspects = self.running.iter().filter(|text| text.row.is_some()).count();
        while let Some(text) = self.running.last_mut() {
            if let Some((row, _)) = text.row {
                text.trial.set_back(text.stats.generated_tokens, end_of(&self.batch, row));
                if text.trial.lost(suspects == 1) || text.trial.is_hopeless() {
                    let text = self.running.pop().expect("it is the last one");
                    self.stats.failed += 1;
                    self.publish();
                    text.call.fail(copy_of(&error));
                    continue;
                }
                if text.trial.losses >= 2 {
                    text.trial.separate(self.lanes.new_group(), STRETCH);
                }
            }
            let last = self.running.len() - 1;
            self.requeue(last, now, Happened::SessionLost);
        }
        (self.stats.sequences, self.stats.cells, self.stats.cells_free) = (0, 0, 0);
        self.down = Some(super::Down { attempts: 0, next: now });
    }
}

/// How much the sequence of this entry was to hold.
fn end_of(batch: &Batch, row: usize) -> usize {
    let entry = &batch.entries()[row];
    entry.start() + entry.range().len()
}
