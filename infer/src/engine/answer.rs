//! The result to come of something that is no stream.

use super::live::Live;
use crate::{panics, worker::Slot};
use infer_core::{Error, ErrorKind, Result};
use std::{
    fmt,
    future::Future,
    pin::Pin,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    task::{Context, Poll},
    thread::{self, ThreadId},
    time::Instant,
};

/// The answer to come of a request to an [`Engine`](crate::Engine) that is no stream: vectors, scores.
///
/// Wait for it or await it; it needs no runtime. Dropping it cancels the request: what is not computed yet is not computed.
///
/// # Panics
/// As any future, where it is polled after its answer was taken.
#[must_use = "an answer that is dropped is cancelled: wait for it or await it"]
pub struct Answer<T> {
    slot: Arc<Slot<T>>,
    is_cancelled: Arc<AtomicBool>,
    /// The engine's own thread, where nobody may wait for it.
    engine: Option<ThreadId>,
}

/// The engine's end of it. Dropped without an answer, it says that the engine was shut down.
pub(crate) struct Reply<T> {
    slot: Option<Arc<Slot<T>>>,
    is_cancelled: Arc<AtomicBool>,
    /// Given up when the answer is there.
    _live: Live,
}

/// Both ends of an answer to come from the engine on this thread.
pub(crate) fn answer<T>(engine: ThreadId, live: Live) -> (Reply<T>, Answer<T>) {
    let (slot, is_cancelled) = (Slot::new(), Arc::new(AtomicBool::new(false)));
    let reply = Reply { slot: Some(slot.clone()), is_cancelled: is_cancelled.clone(), _live: live };
    (reply, Answer { slot, is_cancelled, engine: Some(engine) })
}

impl<T> Answer<T> {
    pub(crate) fn failed(error: Error) -> Self {
        let slot = Slot::new();
        slot.clone().fill(Err(error));
        Self { slot, is_cancelled: Arc::default(), engine: None }
    }

    /// Blocks until it is there.
    ///
    /// # Errors
    /// Those of the call that returned it; [`Closed`](ErrorKind::Closed) where the engine was shut down before.
    pub fn wait(self) -> Result<T> {
        self.check_thread()?;
        self.slot.wait(None).expect("waits without an end bring an answer")
    }

    /// Blocks until it is there, or until this time.
    ///
    /// # Errors
    /// As [`wait`](Self::wait); [`Cancelled`](ErrorKind::Cancelled) where the time came first. The request is cancelled then.
    pub fn wait_until(self, deadline: Instant) -> Result<T> {
        self.check_thread()?;
        let late =
            || Err(Error::new(ErrorKind::Cancelled, "the answer was not there in time, and the request was cancelled"));
        self.slot.wait(Some(deadline)).unwrap_or_else(late)
    }

    fn check_thread(&self) -> Result<()> {
        if self.engine == Some(thread::current().id()) && self.slot.is_pending() {
            return Err(Error::invalid_input(
                "the engine's own thread cannot wait for its answer: await it, or wait on another thread",
            ));
        }
        Ok(())
    }
}

impl<T> Future for Answer<T> {
    type Output = Result<T>;

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        self.slot.poll(context.waker())
    }
}

impl<T> Drop for Answer<T> {
    fn drop(&mut self) {
        self.is_cancelled.store(true, Ordering::Release);
        self.slot.forget();
    }
}

impl<T> fmt::Debug for Answer<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Answer")
    }
}

impl<T> Reply<T> {
    pub(crate) fn answer(mut self, answer: Result<T>) {
        if let Some(slot) = self.slot.take() {
            slot.fill(answer);
        }
    }

    /// Set when nobody wants it any more.
    pub(crate) fn cancelled(&self) -> Arc<AtomicBool> {
        self.is_cancelled.clone()
    }
}

impl<T> Drop for Reply<T> {
    fn drop(&mut self) {
        if let Some(slot) = self.slot.take() {
            slot.fill(Err(panics::ended("it had answered")));
        }
    }
}
