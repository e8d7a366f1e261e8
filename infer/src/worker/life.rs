//! The life of a worker's thread: it builds the value, runs jobs and turns, and drops the value.

use super::{
    Turn,
    shared::{Panic, Shared},
    ticket::Slot,
};
use crate::panics;
use infer_core::{Error, ErrorKind, Result};
use std::sync::Arc;

pub(super) fn live<T>(
    shared: &Shared<T>,
    build: impl FnOnce() -> Result<T>,
    turn: fn(&mut T) -> Turn,
    built: Arc<Slot<()>>,
) {
    panics::watch();
    shared.adopt();
    let mut value = match panics::catch(build) {
        Ok(Ok(value)) => value,
        Ok(Err(error)) => return built.fill(Err(error)),
        Err(words) => {
            let words = format!("building the value of worker `{}` {words}", shared.name);
            return built.fill(Err(Error::new(ErrorKind::Panicked, words)));
        }
    };
    built.fill(Ok(()));
    let end = work(shared, &mut value, turn);
    // No job is taken any more, whatever the value does when it is dropped; and when callers hear of a panic, it has been.
    let refused =
        end.as_ref().err().map(|panic| shared.close(&format!("worker `{}` has ended: {}", shared.name, panic.words)));
    let _ = panics::catch(move || drop(value));
    if let Err(Panic { words, answer: Some(answer) }) = end {
        answer(Error::new(ErrorKind::Panicked, words));
    }
    if let Some(refused) = refused {
        refused.tell();
    }
}

/// Jobs and turns until the worker is closed or something panics. Between two turns run the jobs that waited when the first had ended and no
/// more: as many as the queue holds cannot starve turns, and one turn is all that a job waits for.
fn work<T>(shared: &Shared<T>, value: &mut T, turn: fn(&mut T) -> Turn) -> Result<(), Panic> {
    while shared.is_open() {
        let next = panics::catch(|| turn(value))
            .map_err(|words| Panic { words: format!("the turn of worker `{}` {words}", shared.name), answer: None })?;
        for _ in 0..shared.wait(next) {
            // Fewer where some were cancelled, or the worker closed.
            let Some(job) = shared.begin() else { break };
            job.run(value, shared)?;
        }
    }
    Ok(())
}
