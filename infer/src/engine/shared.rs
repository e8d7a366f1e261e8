//! What the engine's handles and its scheduler both look at, without asking one another.

use super::scheduler::EngineStats;
use crate::sync::{Condvar, Mutex, MutexGuard};
use infer_core::{Error, ErrorKind, Interrupt, Result};
use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Instant,
};

/// One an engine: the places of the queue, the figures of the last step, and the interrupt of the present session.
pub(crate) struct Shared {
    queue: Mutex<Queue>,
    /// A place was given up, or there will be none any more.
    moved: Condvar,
    stats: Mutex<EngineStats>,
    interrupt: Mutex<Option<Interrupt>>,
    encoder_interrupt: Mutex<Option<Interrupt>>,
    is_stopping: AtomicBool,
}

#[derive(Default)]
struct Queue {
    waiting: usize,
    is_closed: bool,
}

impl Shared {
    pub(crate) fn new() -> Self {
        Self {
            queue: Mutex::new(Queue::default()),
            moved: Condvar::new(),
            stats: Mutex::new(EngineStats::default()),
            interrupt: Mutex::new(None),
            encoder_interrupt: Mutex::new(None),
            is_stopping: AtomicBool::new(false),
        }
    }

    /// A place in the queue, where fewer than `most` requests are waiting.
    ///
    /// # Errors
    /// [`QueueFull`](ErrorKind::QueueFull); [`Closed`](ErrorKind::Closed) after [`close`](Self::close).
    pub(crate) fn enter(self: &Arc<Self>, most: usize) -> Result<Place> {
        self.take(self.queue.lock(), most)
    }

    /// As [`enter`](Self::enter), but waits for a place, until this time at the latest.
    pub(crate) fn enter_by(self: &Arc<Self>, most: usize, until: Option<Instant>) -> Result<Place> {
        let mut queue = self.queue.lock();
        while queue.waiting >= most && !queue.is_closed {
            let Some(until) = until else {
                queue = self.moved.wait(queue);
                continue;
            };
            let (again, is_over) = self.moved.wait_until(queue, until);
            queue = again;
            if is_over {
                break;
            }
        }
        self.take(queue, most)
    }

    fn take(self: &Arc<Self>, mut queue: MutexGuard<'_, Queue>, most: usize) -> Result<Place> {
        if queue.is_closed {
            return Err(Error::new(
                ErrorKind::Closed,
                "the engine takes no more requests: it has been drained or shut down",
            ));
        }
        if queue.waiting >= most {
            let message = format!("{} requests are waiting, as many as may; try again later", queue.waiting);
            return Err(Error::new(ErrorKind::QueueFull, message));
        }
        queue.waiting += 1;
        Ok(Place(self.clone()))
    }

    /// Requests that wait to be begun.
    pub(crate) fn waiting(&self) -> usize {
        self.queue.lock().waiting
    }

    /// Nobody gets a place any more; who waits for one is told.
    pub(crate) fn close(&self) {
        self.queue.lock().is_closed = true;
        self.moved.notify_all();
    }

    /// The engine is to end: a pass that is running ends now, and none is begun.
    pub(crate) fn stop(&self) {
        self.close();
        let (session, encoder) = (self.interrupt.lock(), self.encoder_interrupt.lock());
        self.is_stopping.store(true, Ordering::Release);
        for interrupt in [&*session, &*encoder].into_iter().flatten() {
            interrupt.raise();
        }
    }

    pub(crate) fn is_stopping(&self) -> bool {
        self.is_stopping.load(Ordering::Acquire)
    }

    /// From now on this is what stops a pass of the session.
    pub(crate) fn set_interrupt(&self, interrupt: Interrupt) {
        self.replace(&self.interrupt, interrupt);
    }

    /// From now on this is what stops a pass of the encoder.
    pub(crate) fn set_encoder_interrupt(&self, interrupt: Interrupt) {
        self.replace(&self.encoder_interrupt, interrupt);
    }

    fn replace(&self, present: &Mutex<Option<Interrupt>>, interrupt: Interrupt) {
        let mut present = present.lock();
        if self.is_stopping() {
            interrupt.raise();
        }
        *present = Some(interrupt);
    }

    /// The figures as of the last step.
    pub(crate) fn stats(&self) -> EngineStats {
        // First: what leaves the queue meanwhile is in the figures already.
        let waiting = self.waiting();
        let mut stats = self.stats.lock().clone();
        stats.waiting += waiting;
        stats.seen_at(Instant::now())
    }

    pub(crate) fn publish(&self, stats: &EngineStats) {
        self.stats.lock().clone_from(stats);
    }
}

/// A request's place in the queue. Dropping it lets another one in.
pub(crate) struct Place(Arc<Shared>);

impl Drop for Place {
    fn drop(&mut self) {
        self.0.queue.lock().waiting -= 1;
        self.0.moved.notify_one();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn as_many_wait_as_may() {
        let shared = Arc::new(Shared::new());
        let first = shared.enter(2).unwrap();
        let _second = shared.enter(2).unwrap();
        assert_eq!(shared.enter(2).map(drop).unwrap_err().kind(), ErrorKind::QueueFull);
        let soon = Some(Instant::now());
        assert_eq!(shared.enter_by(2, soon).map(drop).unwrap_err().kind(), ErrorKind::QueueFull);
        drop(first);
        let _third = shared.enter_by(2, soon).unwrap();
        assert_eq!(shared.waiting(), 2);
    }

    #[test]
    fn who_waits_gets_a_place_or_is_told_that_there_will_be_none() {
        let shared = Arc::new(Shared::new());
        let taken = shared.enter(1).unwrap();
        std::thread::scope(|scope| {
            let next = scope.spawn(|| shared.enter_by(1, None));
            drop(taken);
            let next = next.join().unwrap().unwrap();
            let never = scope.spawn(|| shared.enter_by(1, None).map(drop));
            shared.close();
            assert_eq!(never.join().unwrap().unwrap_err().kind(), ErrorKind::Closed);
            drop(next);
        });
        assert_eq!(shared.enter(1).map(drop).unwrap_err().kind(), ErrorKind::Closed);
    }
}
