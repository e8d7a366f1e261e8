//! What constraints will allow, found while a pass runs.
//!
//! A thread of the session's own does it, where the pass leaves a core for one; what it has not begun when the pass is
//! done, the session's thread does. It is started for the first constraint, and ends with the session.

use super::Session;
use infer_core::{Batch, sampling::LookAhead};
use std::{
    fmt,
    panic::{AssertUnwindSafe, catch_unwind},
    sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError},
    thread::{self, JoinHandle},
};

impl Session {
    /// Before a pass: has what its draws will need of constraints found while it runs.
    pub(super) fn look_ahead(&mut self, batch: &Batch) {
        let Self { seats, ahead: Some(ahead), .. } = self else { return };
        for entry in batch.entries().iter().filter(|&entry| super::pass::wants_row(entry)) {
            let Some(sampler) = seats.sampler_mut(entry.slot()) else { continue };
            if let Some(job) = sampler.look_ahead(entry.start(), batch.tokens(entry)) {
                ahead.begin(entry.slot(), job);
            }
        }
    }

    /// After a pass, whatever came of it: gives back what was found. Of a sequence that is gone, it is gone too.
    pub(super) fn rejoin(&mut self) {
        let Self { seats, ahead: Some(ahead), .. } = self else { return };
        ahead.finish(|slot, found| {
            if let Some(sampler) = seats.sampler_mut(slot) {
                sampler.rejoin(found);
            }
        });
    }
}

/// The thread, and what it shares.
#[derive(Default)]
pub(super) struct Ahead {
    shared: Arc<Shared>,
    thread: Option<JoinHandle<()>>,
    /// Whether anything was begun and not finished.
    is_busy: bool,
}

#[derive(Default)]
struct Shared {
    state: Mutex<State>,
    /// There is more to do, or something is done.
    changed: Condvar,
}

#[derive(Default)]
struct State {
    /// By slot.
    todo: Vec<(u32, LookAhead)>,
    done: Vec<(u32, LookAhead)>,
    is_running: bool,
    is_closed: bool,
}

impl Shared {
    /// Nothing panics while it is held.
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn wait<'s>(&self, state: MutexGuard<'s, State>) -> MutexGuard<'s, State> {
        self.changed.wait(state).unwrap_or_else(PoisonError::into_inner)
    }

    fn work(&self) {
        let mut state = self.lock();
        while !state.is_closed {
            let Some((slot, mut job)) = state.todo.pop() else {
                state = self.wait(state);
                continue;
            };
            state.is_running = true;
            drop(state);
            // One that panics is lost, and made anew by its sampler.
            let found = catch_unwind(AssertUnwindSafe(move || {
                job.run();
                (slot, job)
            }));
            state = self.lock();
            state.is_running = false;
            state.done.extend(found.ok());
            self.changed.notify_all();
        }
    }
}

impl Ahead {
    fn begin(&mut self, slot: u32, job: LookAhead) {
        self.is_busy = true;
        self.shared.lock().todo.push((slot, job));
        if self.thread.is_none() {
            let shared = self.shared.clone();
            // Without it, all is done here when the pass is.
            self.thread = thread::Builder::new().name("infer-constraints".into()).spawn(move || shared.work()).ok();
        }
        self.shared.changed.notify_all();
    }

    fn finish(&mut self, mut give_back: impl FnMut(u32, LookAhead)) {
        if !std::mem::take(&mut self.is_busy) {
            return;
        }
        let mut state = self.shared.lock();
        loop {
            if let Some((slot, mut job)) = state.todo.pop() {
                drop(state);
                job.run();
                give_back(slot, job);
                state = self.shared.lock();
            } else if state.is_running {
                state = self.shared.wait(state);
            } else {
                break;
            }
        }
        state.done.drain(..).for_each(|(slot, found)| give_back(slot, found));
    }
}

impl Drop for Ahead {
    fn drop(&mut self) {
        self.shared.lock().is_closed = true;
        self.shared.changed.notify_all();
        if let Some(thread) = self.thread.take() {
            // It has nothing to say: its panics were caught.
            drop(thread.join());
        }
    }
}

impl fmt::Debug for Ahead {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Ahead").finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use infer_core::{Constraint, Sampling, Token, sampling::Sampler, testing::byte_vocab};

    #[test]
    fn what_is_begun_is_given_back_by_whichever_thread_did_it() {
        let vocab = Arc::new(byte_vocab());
        let sampling = Sampling::greedy().with_constraint(Constraint::regex("[a-c]{40}"));
        let mut samplers: Vec<Sampler> = (0..9).map(|_| Sampler::for_vocab(&sampling, &[], &vocab).unwrap()).collect();
        let row: Vec<f32> = (0..vocab.len()).map(|token| (token % 5) as f32).collect();
        let mut ahead = Ahead::default();
        for at in 0..40 {
            for (slot, sampler) in (0..).zip(&mut samplers) {
                ahead.begin(slot, sampler.look_ahead(at, &[]).unwrap());
            }
            let mut back = Vec::new();
            ahead.finish(|slot, found| {
                samplers[slot as usize].rejoin(found);
                back.push(slot);
            });
            back.sort_unstable();
            assert_eq!(back, (0..9).collect::<Vec<_>>());
            let mut drawn = Vec::new();
            for sampler in &mut samplers {
                sampler.sample(&row, at, &mut drawn).unwrap();
                sampler.accept(at, &[drawn[drawn.len() - 1].token]);
            }
            assert!(drawn.iter().all(|sampled| sampled.token == Token(b'c'.into())), "99 % 5 is the most");
        }
        ahead.begin(0, samplers[0].look_ahead(40, &[]).unwrap());
        drop(ahead);
    }
}
