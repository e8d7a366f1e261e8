//! Passes side by side, each on a thread of its own.
//!
//! Threads that divide the operators of a pass among them wait for each other at the end of each. Passes that are computed side by side do
//! not. A call with one pass has its threads divide it, since nobody else would use them.

use super::graph;
use crate::{Model, raw};
use infer_core::{PaddedPasses, Result};
use std::{
    panic,
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicUsize, Ordering},
    },
    thread,
};

/// Sessions of one thread, as many as there are threads: ways into one graph, which is loaded when it is first of use.
pub(super) struct Lanes {
    most: usize,
    weights: Option<Arc<raw::SharedWeights>>,
    sessions: Vec<raw::Session>,
}

impl Lanes {
    /// Up to `most` at once, of a graph whose sessions share these weights.
    pub(super) fn new(most: usize, weights: Option<Arc<raw::SharedWeights>>) -> Self {
        Self { most, weights, sessions: Vec::new() }
    }

    /// Sessions for so many passes: two or more, or none where passes are better computed one by one.
    pub(super) fn sessions(&mut self, model: &Model, passes: usize) -> &mut [raw::Session] {
        let wanted = self.most.min(passes);
        if wanted < 2 {
            return &mut [];
        }
        if let Err(failure) = self.open(model, wanted) {
            tracing::warn!("passes are computed one by one: {failure}");
            self.most = 1;
            self.sessions.clear();
        }
        let there = wanted.min(self.sessions.len());
        &mut self.sessions[..there]
    }

    fn open(&mut self, model: &Model, wanted: usize) -> Result<()> {
        if self.sessions.is_empty() {
            self.sessions.push(graph::load(model, Some(1), self.weights.as_ref())?);
        }
        while self.sessions.len() < wanted {
            let twin = self.sessions[0].twin()?;
            self.sessions.push(twin);
        }
        Ok(())
    }
}

/// Computes all passes: each is run with one of the sessions, this thread's among them, and `place` takes what it gave, one at a time.
///
/// # Errors
/// That of the first pass which fails, as one by one: passes are begun in their order, so those before it are computed. Passes that had not
/// begun by then are not.
pub(super) fn compute<S: Send, T>(
    sessions: &mut [S],
    passes: &PaddedPasses,
    run: impl Fn(&mut S, &[u32]) -> Result<T> + Sync,
    place: impl FnMut(&[u32], T) -> Result<()> + Send,
) -> Result<()> {
    let next = AtomicUsize::new(0);
    let placing = Mutex::new((place, None));
    let work = |session: &mut S| {
        loop {
            let pass = next.fetch_add(1, Ordering::Relaxed);
            if pass >= passes.len() {
                return;
            }
            let ran = run(session, passes.pass(pass));
            let (place, failed) = &mut *placing.lock().unwrap_or_else(PoisonError::into_inner);
            if let Err(failure) = ran.and_then(|given| place(passes.pass(pass), given)) {
                next.store(passes.len(), Ordering::Relaxed);
                if failed.as_ref().is_none_or(|&(before, _)| pass < before) {
                    *failed = Some((pass, failure));
                }
            }
        }
    };
    let Some((own, others)) = sessions.split_first_mut() else { return Ok(()) };
    thread::scope(|scope| {
        let work = &work;
        let spawn = |session| {
            let thread = thread::Builder::new().name("infer encode".to_owned());
            // Where no thread can be had, there are fewer of them.
            thread.spawn_scoped(scope, move || work(session)).ok()
        };
        let others: Vec<_> = others.iter_mut().filter_map(spawn).collect();
        work(own);
        for other in others {
            // Whose subscriber panicked in a lane hears of it as in a run of its own.
            other.join().unwrap_or_else(|payload| panic::resume_unwind(payload));
        }
    });
    let (_, failed) = placing.into_inner().unwrap_or_else(PoisonError::into_inner);
    failed.map_or(Ok(()), |(_, failure)| Err(failure))
}

#[cfg(test)]
mod tests {
    use super::*;
    use infer_core::{Error, ErrorKind, PassRoom};

    const PASSES: usize = 40;

    /// Texts of which each has a pass of its own.
    fn passes() -> PaddedPasses {
        let mut passes = PaddedPasses::default();
        passes.plan(|_| 1, PASSES, PassRoom { tokens: 1, texts: 1, is_masked: true });
        passes
    }

    /// In lanes that count the passes they compute.
    fn computed(run: impl Fn(u32) -> Result<u32> + Sync) -> (Result<()>, Vec<u32>, usize) {
        let (mut lanes, mut placed) = ([0; 3], Vec::new());
        let run = |lane: &mut usize, batch: &[u32]| {
            *lane += 1;
            run(batch[0])
        };
        let outcome = compute(&mut lanes, &passes(), run, |batch, given| {
            assert_eq!(batch, [given]);
            placed.push(given);
            Ok(())
        });
        placed.sort_unstable();
        (outcome, placed, lanes.iter().sum())
    }

    #[test]
    fn each_pass_is_computed_once() {
        let (outcome, placed, runs) = computed(Ok);
        outcome.unwrap();
        assert_eq!(placed, Vec::from_iter(0..PASSES as u32));
        assert_eq!(runs, PASSES);
    }

    #[test]
    fn the_error_of_a_pass_ends_them_all() {
        let barrier = std::sync::Barrier::new(3);
        let (outcome, placed, runs) = computed(|text| {
            barrier.wait();
            Err(Error::invalid_input(format!("text {text}")))
        });
        assert_eq!(outcome.unwrap_err().kind(), ErrorKind::InvalidInput);
        assert!(placed.is_empty());
        assert_eq!(runs, 3, "one a lane");
    }

    #[test]
    fn the_error_is_that_of_the_first_pass_that_fails_whichever_fails_first() {
        let (begun, failed) = (std::sync::Barrier::new(3), std::sync::Barrier::new(2));
        let (outcome, placed, _) = computed(|text| {
            if text < 3 {
                begun.wait();
            }
            match text {
                0 => Ok(text),
                2 => {
                    failed.wait();
                    Err(Error::invalid_input("text 2"))
                }
                1 => {
                    failed.wait();
                    // So that the other is heard of first.
                    thread::sleep(std::time::Duration::from_millis(20));
                    Err(Error::invalid_input("text 1"))
                }
                _ => Ok(text),
            }
        });
        assert!(outcome.unwrap_err().to_string().contains("text 1"));
        assert!(placed.contains(&0));
    }

    #[test]
    fn a_panic_goes_on_where_the_passes_were_asked_for() {
        let own = thread::current().id();
        let begun = std::sync::Barrier::new(3);
        let caught = panic::catch_unwind(|| {
            computed(|text| {
                // So that no lane is through with all of them before the others begin.
                if text < 3 {
                    begun.wait();
                }
                if thread::current().id() == own { Ok(text) } else { panic::panic_any("a subscriber's") }
            })
        });
        assert_eq!(caught.unwrap_err().downcast_ref(), Some(&"a subscriber's"));
    }
}
