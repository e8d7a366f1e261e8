//! Which waiting texts are begun, and with what.
//!
//! First come, first served: nobody passes a text that finds no sequence or no cells. A text is passed only while it waits for what a
//! running one is just computing and it begins with as well; a sequence is kept for it meanwhile.

use super::{
    Scheduler, copy_of, prefix,
    prefix::PrefixCache,
    text::{Aim, Text},
    timeline::Happened,
};
use infer_core::{Error, ErrorKind, OpenOptions, Result, Sequence, Session};
use std::time::Instant;

/// Cells that are kept free for each running text, so that what was just admitted need not go at once.
const MARGIN: usize = 8;

/// What admission remembers from step to step.
#[derive(Default)]
pub(super) struct Admission {
    /// The first one that may be begun found no room, and nothing has changed since.
    is_full: bool,
    /// Some wait for what others compute.
    is_any_behind: bool,
    /// When somebody last found no room.
    full_at: Option<Instant>,
    /// Texts that have ended after they ran.
    pub(super) left: u64,
}

impl Admission {
    /// Something has changed: there may be room.
    pub(super) fn retry(&mut self) {
        self.is_full = false;
    }
}

/// What can be done for a waiting text.
enum Verdict {
    Begin(Option<Found>),
    /// Another one is computing what it begins with.
    Behind(u64, usize),
    /// There is no room.
    Full,
}

/// A sequence that holds a beginning of a text.
#[derive(Clone, Copy)]
struct Found {
    donor: Donor,
    len: usize,
}

#[derive(Clone, Copy)]
enum Donor {
    Cached(usize),
    Running(usize),
}

impl Scheduler {
    /// Begins what there is room for.
    ///
    /// # Errors
    /// [`SessionLost`](ErrorKind::SessionLost) only.
    pub(super) fn admit(&mut self, session: &mut dyn Session, now: Instant) -> Result<()> {
        if self.waiting.is_empty() || (self.admission.is_full && !self.admission.is_any_behind) {
            return Ok(());
        }
        let mut kept = Kept::default();
        self.admission.is_any_behind = false;
        let mut at = 0;
        while at < self.waiting.len() && at <= self.limits.sequences {
            if self.waiting[at].call.is_over.get() {
                self.waiting.remove(at);
                self.stats.failed += 1;
                continue;
            }
            match self.judge(session, at, &kept) {
                Verdict::Begin(found) => self.begin(session, at, found, now)?,
                Verdict::Behind(serial, len) => {
                    let text = &mut self.waiting[at];
                    text.behind = Some((serial, len));
                    kept.sequences += 1;
                    kept.cells += text.log.len() - len;
                    self.admission.is_any_behind = true;
                    at += 1;
                }
                Verdict::Full => {
                    self.admission.is_full = true;
                    self.admission.full_at = Some(now);
                    break;
                }
            }
        }
        Ok(())
    }

    fn judge(&self, session: &dyn Session, at: usize, kept: &Kept) -> Verdict {
        let text = &self.waiting[at];
        if let Some((serial, len)) = text.behind
            && self.running.iter().any(|other| other.serial == serial && other.held() < len)
        {
            return Verdict::Behind(serial, len);
        }
        // Whatever is wrong with a text that cannot even be begun alone, beginning it says so.
        let is_alone = self.running.is_empty() && at == 0;
        if !is_alone && text.preempted_at == Some(self.admission.left) && !self.running.is_empty() {
            return Verdict::Full;
        }
        let usage = session.usage();
        let sequences = usage.sequences_free + self.cache.len();
        // All completions of a request are begun together, so that they can share what is computed.
        let wanted = if text.index == 0 && text.admitted.is_none() { text.call.n } else { 1 };
        if !is_alone && sequences < kept.sequences + wanted {
            return Verdict::Full;
        }
        let seats = self.settings.sequences.unwrap_or(usize::MAX);
        if !is_alone && self.running.len() + kept.sequences + wanted > seats {
            return Verdict::Full;
        }
        let found = self.find(text);
        if let Some((serial, len)) = self.promised(text, found.map_or(0, |found| found.len)) {
            return Verdict::Behind(serial, len);
        }
        let is_a_cell_a_position = usage.cells + usage.cells_free > self.limits.sequences;
        if !is_alone && is_a_cell_a_position {
            let outstanding: usize = self.running.iter().map(|text| text.lacks() + MARGIN).sum();
            let needed = text.log.len() - found.map_or(0, |found| found.len) + wanted;
            if usage.cells_free + self.cache.held() < needed + outstanding + kept.cells {
                return Verdict::Full;
            }
        }
        Verdict::Begin(found)
    }

    /// The sequence that holds the longest beginning of a text.
    fn find(&self, text: &Text) -> Option<Found> {
        let wanted = text.reusable();
        let adapter = text.call.adapter;
        let cached = self.cache.longest(wanted, adapter, prefix::LEAST - 1, false);
        let mut best = cached.map(|(index, len)| Found { donor: Donor::Cached(index), len });
        for (index, donor) in self.running.iter().enumerate() {
            if donor.call.adapter != adapter || !donor.is_exact() {
                continue;
            }
            let least = text.least_reuse(&donor.call).max(best.map_or(0, |best| best.len + 1));
            let held = donor.held();
            if held < least || wanted.len() < least || donor.log[least - 1] != wanted[least - 1] {
                continue;
            }
            let len = prefix::common(&donor.log[..held], wanted);
            if len >= least {
                best = Some(Found { donor: Donor::Running(index), len });
            }
        }
        best
    }

    /// The running text that is about to hold a longer beginning than `found`, by enough to wait for it.
    fn promised(&self, text: &Text, found: usize) -> Option<(u64, usize)> {
        let wanted = text.reusable();
        let mut best = None;
        let mut longest = found;
        for donor in self.running.iter().filter(|donor| !donor.is_decoding && donor.is_exact()) {
            let is_sibling = donor.call.id == text.call.id;
            if donor.call.adapter != text.call.adapter || !(self.capabilities.fork || is_sibling) {
                continue;
            }
            let len = prefix::common(&donor.log, wanted);
            if len > longest && len >= found + text.least_reuse(&donor.call) && donor.held() < len {
                longest = len;
                best = Some((donor.serial, len));
            }
        }
        best
    }

    /// Gives a waiting text a sequence. An error is that text's own end, unless the session is lost.
    fn begin(&mut self, session: &mut dyn Session, at: usize, found: Option<Found>, now: Instant) -> Result<()> {
        let seated = self.seat(session, at, found);
        let mut text = self.waiting.remove(at).expect("it was looked at");
        match seated {
            Ok(seq) => {
                let cached = seq.len();
                text.be_seated(seq);
                self.begun(text, cached, now);
                Ok(())
            }
            Err(error) if error.kind() == ErrorKind::SessionLost => {
                if text.trial.lost_alone(text.stats.generated_tokens) {
                    self.stats.failed += 1;
                    self.publish();
                    text.call.fail(copy_of(&error));
                } else {
                    self.waiting.insert(at, text);
                }
                Err(error)
            }
            Err(error) => {
                self.stats.failed += 1;
                self.publish();
                text.call.fail(error);
                Ok(())
            }
        }
    }

    fn begun(&mut self, mut text: Text, cached: usize, now: Instant) {
        text.behind = None;
        text.preempted_at = None;
        text.served = self.served;
        text.note(now, Happened::Admitted { tokens: text.log.len(), cached });
        if text.admitted.is_none() {
            text.admitted = Some(now);
            text.stats.queue = now.saturating_duration_since(text.call.made);
            text.stats.cached_tokens = cached.min(text.prompt);
        }
        // Who waited for room has its turn now, and not from when it came.
        let made = text.call.made;
        text.since = if self.admission.full_at.is_some_and(|full| made <= full) { now } else { made };
        if cached > 0 {
            self.stats.prefix_hits += 1;
            self.stats.cached_tokens += cached as u64;
        }
        text.call.span.in_scope(|| tracing::debug!(index = text.index, cached, "completion begun"));
        let call = text.call.clone();
        self.running.push(text);
        // It is seen to run before it is seen to wait no more.
        self.publish();
        call.leave_queue();
    }

    /// A sequence for a waiting text, which holds as much of it as was found, with its sampling set.
    fn seat(&mut self, session: &mut dyn Session, at: usize, found: Option<Found>) -> Result<Sequence> {
        let seq = match found {
            Some(found) => self.reuse(session, at, found)?,
            None => None,
        };
        let text = &self.waiting[at];
        let seq = match seq {
            Some(seq) => seq,
            None => {
                make_way(session, &mut self.cache, 0);
                session.open(&self.options_of(text))?
            }
        };
        if let Aim::Generate { sampling, .. } = &text.aim {
            session.sample_with(&seq, sampling, &text.log[..text.prompt])?;
        }
        Ok(seq)
    }

    fn options_of(&self, text: &Text) -> OpenOptions {
        let mut options = OpenOptions::default();
        options.adapter.clone_from(&self.adapters[text.call.adapter as usize]);
        options
    }

    /// The found sequence itself, or a fork of it; `None` where the model can do neither.
    fn reuse(&mut self, session: &mut dyn Session, at: usize, found: Found) -> Result<Option<Sequence>> {
        let taken = self.reuse_at(session, found)?;
        if taken.is_some() || self.capabilities.fork {
            return Ok(taken);
        }
        // It cannot be cut there. One that is a beginning as a whole need not be.
        let text = &self.waiting[at];
        let whole = self.cache.longest(text.reusable(), text.call.adapter, prefix::LEAST - 1, true);
        match whole {
            Some((index, len)) => self.reuse_at(session, Found { donor: Donor::Cached(index), len }),
            None => Ok(None),
        }
    }

    fn reuse_at(&mut self, session: &mut dyn Session, Found { donor, len }: Found) -> Result<Option<Sequence>> {
        let index = match donor {
            Donor::Running(index) => {
                make_way(session, &mut self.cache, 0);
                let parent = self.running[index].seq.as_ref().expect("a running text has a sequence");
                return possibly(session.fork(parent, len));
            }
            Donor::Cached(index) => index,
        };
        // From here on it is the newest one, which making way for others does not touch.
        let held = self.cache.touch(index).log.len();
        let tail = held - len;
        make_way(session, &mut self.cache, 1);
        let is_free = session.usage().sequences_free > 0;
        if is_free && tail * 8 > held {
            return possibly(session.fork(&self.cache.newest().expect("it was touched").seq, len));
        }
        // Little or nothing is lost by taking the sequence itself; or there is no other.
        if tail > 0 {
            let seq = &self.cache.newest().expect("it was touched").seq;
            if possibly(session.truncate(seq, len))?.is_none() {
                return Ok(None);
            }
        }
        Ok(self.cache.take_newest().map(|entry| entry.seq))
    }
}

/// Sequences and cells that are kept for those who wait for what another one computes.
#[derive(Default)]
struct Kept {
    sequences: usize,
    cells: usize,
}

/// Sees to it that a sequence can be opened, by dropping what was used least recently, but for the `spared` newest ones.
fn make_way(session: &mut dyn Session, cache: &mut PrefixCache, spared: usize) {
    while session.usage().sequences_free == 0 && cache.len() > spared && cache.evict() {}
}

/// `None` for what the model cannot do, or has no room for: it is computed then.
fn possibly<T>(done: Result<T, Error>) -> Result<Option<T>> {
    match done {
        Ok(done) => Ok(Some(done)),
        Err(error) if error.kind() == ErrorKind::SessionLost => Err(error),
        Err(error) => {
            tracing::trace!(%error, "a sequence could not be shared");
            Ok(None)
        }
    }
}
