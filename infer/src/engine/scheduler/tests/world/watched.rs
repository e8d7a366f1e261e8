//! A session that fails as the world says, and remembers what it was asked for.

use super::{Accident, Harm, World};
use infer_core::{
    Batch, Error, ErrorKind, OpenOptions, Result, Sampling, Sequence, Session, Token, Want,
    testing::{Fault, Hooks, IM_START, Step},
};
use std::{
    ops::Range,
    sync::{Arc, Mutex, MutexGuard},
};

/// What all sessions of a world have in common.
#[derive(Clone)]
pub(super) struct Watch(Arc<Mutex<Seen>>);

pub(super) struct Seen {
    world: World,
    passes: u64,
    calls: u64,
    /// What the pass that runs now ends with, when so many entries are computed.
    ends_with: Option<(usize, Fault)>,
    /// Passes that failed, in order.
    pub(super) failures: Vec<Failure>,
    pub(super) losses_in_calls: usize,
}

/// A pass that failed.
pub(super) struct Failure {
    pub(super) kind: ErrorKind,
    /// What its sequences would have held after it.
    pub(super) logs: Vec<Vec<Token>>,
}

impl Watch {
    pub(super) fn new(world: &World) -> Self {
        let (failures, losses_in_calls) = (Vec::new(), 0);
        Self(Arc::new(Mutex::new(Seen {
            world: world.clone(),
            passes: 0,
            calls: 0,
            ends_with: None,
            failures,
            losses_in_calls,
        })))
    }

    pub(super) fn seen(&self) -> MutexGuard<'_, Seen> {
        self.0.lock().unwrap()
    }

    /// For the script of the model whose sessions are watched.
    pub(super) fn hook(&self) -> impl Fn(&Step<'_>) -> Option<Fault> + Send + Sync + 'static {
        let watch = self.clone();
        move |step| {
            let (done, fault) = watch.seen().ends_with?;
            (step.done == done.min(step.entries)).then_some(fault)
        }
    }
}

impl Seen {
    /// How the pass over these sequences, of which this much is fed, is to end.
    fn judge(&self, fed: &[(Vec<Token>, usize)]) -> Option<(usize, Fault)> {
        for (entry, (log, new)) in fed.iter().enumerate() {
            let Some(poison) = poison_of(&self.world, log) else { continue };
            if (log.len() - new..log.len()).contains(&poison.at) {
                let fault = match poison.how {
                    Harm::Lose => Fault::Lose,
                    Harm::Fail => Fault::Error(ErrorKind::Runtime),
                    Harm::Spend => Fault::Spend(ErrorKind::Runtime),
                    Harm::LoseWhenSeated => continue,
                };
                return Some((entry, fault));
            }
        }
        self.world.accidents.iter().find_map(|accident| match *accident {
            Accident::Pass(pass, done, fault) if pass == self.passes => Some((done, fault)),
            _ => None,
        })
    }
}

fn poison_of(world: &World, log: &[Token]) -> Option<super::Poison> {
    match log {
        [IM_START, id, ..] => world.asks[id.index()].poison,
        _ => None,
    }
}

/// Hooks of a session that is watched.
pub(super) struct Watched {
    watch: Watch,
    /// Slot → what its sequence holds.
    logs: Vec<Vec<Token>>,
    is_lost: bool,
}

impl Watched {
    /// For a session of at most so many sequences.
    pub(super) fn new(sequences: usize, watch: Watch) -> Self {
        Self { watch, logs: vec![Vec::new(); sequences], is_lost: false }
    }

    fn check(&self) -> Result<()> {
        if self.is_lost { Err(Error::new(ErrorKind::SessionLost, "lost in a call")) } else { Ok(()) }
    }

    fn fed(&self, batch: &Batch) -> Vec<(Vec<Token>, usize)> {
        let of = |entry: &infer_core::Entry| {
            let mut log = self.logs[entry.slot() as usize].clone();
            assert_eq!(log.len(), entry.start(), "a sequence is as long as what it was fed");
            log.extend_from_slice(batch.tokens(entry));
            (log, entry.range().len())
        };
        batch.entries().iter().map(of).collect()
    }
}

fn slot(seq: &Sequence) -> usize {
    let mut batch = Batch::new();
    batch.push(seq, &[Token(0)], Want::Nothing);
    batch.entries()[0].slot() as usize
}

impl Hooks for Watched {
    fn before(&mut self) -> Result<()> {
        let mut seen = self.watch.seen();
        let call = seen.calls;
        seen.calls += 1;
        let is_accident = |accident: &Accident| matches!(accident, Accident::Call(number) if *number == call);
        if seen.world.accidents.iter().any(is_accident) {
            seen.losses_in_calls += 1;
            self.is_lost = true;
        }
        drop(seen);
        self.check()
    }

    fn open(&mut self, inner: &mut dyn Session, options: &OpenOptions) -> Result<Sequence> {
        let seq = inner.open(options)?;
        self.logs[slot(&seq)].clear();
        Ok(seq)
    }

    fn fork(&mut self, inner: &mut dyn Session, parent: &Sequence, len: usize) -> Result<Sequence> {
        let seq = inner.fork(parent, len)?;
        self.logs[slot(&seq)] = self.logs[slot(parent)][..len].to_vec();
        Ok(seq)
    }

    fn truncate(&mut self, inner: &mut dyn Session, seq: &Sequence, len: usize) -> Result<()> {
        inner.truncate(seq, len)?;
        self.logs[slot(seq)].truncate(len);
        Ok(())
    }

    fn shift(&mut self, inner: &mut dyn Session, seq: &Sequence, dropped: Range<usize>) -> Result<()> {
        inner.shift(seq, dropped.clone())?;
        self.logs[slot(seq)].drain(dropped);
        Ok(())
    }

    fn sample_with(
        &mut self,
        inner: &mut dyn Session,
        seq: &Sequence,
        sampling: &Sampling,
        prompt: &[Token],
    ) -> Result<()> {
        if poison_of(&self.watch.seen().world, prompt).is_some_and(|poison| poison.how == Harm::LoseWhenSeated) {
            self.is_lost = true;
        }
        self.check()?;
        inner.sample_with(seq, sampling, prompt)
    }

    fn decode(&mut self, inner: &mut dyn Session, batch: &Batch) -> Result<()> {
        self.check()?;
        let fed = self.fed(batch);
        let mut seen = self.watch.seen();
        let most = seen.world.settings.batch.unwrap_or(usize::MAX).min(seen.world.batch);
        assert!(batch.token_count() <= most, "a pass of {} tokens, {most} are allowed", batch.token_count());
        seen.ends_with = seen.judge(&fed);
        seen.passes += 1;
        let is_planned = seen.ends_with.is_some();
        drop(seen);
        let decoded = inner.decode(batch);
        let mut seen = self.watch.seen();
        seen.ends_with = None;
        let logs = fed.into_iter().map(|(log, _)| log);
        match &decoded {
            Ok(()) => {
                for (entry, log) in batch.entries().iter().zip(logs) {
                    self.logs[entry.slot() as usize] = log;
                }
            }
            Err(error) => {
                assert!(
                    is_planned || error.kind() == ErrorKind::OutOfCells,
                    "a pass is refused that should not be: {error}"
                );
                seen.failures.push(Failure { kind: error.kind(), logs: logs.collect() });
            }
        }
        decoded
    }
}
