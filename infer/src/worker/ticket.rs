use super::shared::Jobs;
use crate::{
    panics,
    sync::{Condvar, Mutex},
};
use infer_core::{Error, Result};
use std::{
    fmt,
    future::Future,
    mem,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll, Waker},
    time::Instant,
};

/// The answer to come of a job that was given to a [`Worker`](crate::Worker).
///
/// Wait for it ([`wait`](Self::wait), [`wait_until`](Self::wait_until)) or await it; it needs no runtime. Dropping it detaches: the job runs,
/// and its answer is dropped.
///
/// What the job returned is inside the [`Result`]. An error outside of it says that the job did not come to its end:
/// [`Cancelled`](crate::ErrorKind::Cancelled) before it began, [`Closed`](crate::ErrorKind::Closed) where the worker has ended or was
/// shut down before, [`Panicked`](crate::ErrorKind::Panicked) where this job ended it.
///
/// # Panics
/// As any future, where it is polled or waited for after its answer was taken.
#[must_use = "a ticket that is dropped detaches its job: wait for it, await it, or say that you do not mind with `drop`"]
pub struct Ticket<R> {
    slot: Arc<Slot<R>>,
    /// None where the worker did not take the job.
    id: Option<u64>,
    jobs: Arc<dyn Jobs>,
}

impl<R> Ticket<R> {
    pub(super) fn new(slot: Arc<Slot<R>>, id: Option<u64>, jobs: Arc<dyn Jobs>) -> Self {
        Self { slot, id, jobs }
    }

    /// Blocks until the answer is there.
    ///
    /// # Errors
    /// As [the type](Self) says; and [`InvalidInput`](crate::ErrorKind::InvalidInput) on the worker's own thread where there is no answer yet,
    /// since it would wait for itself. The job is detached then.
    pub fn wait(self) -> Result<R> {
        self.check_thread()?;
        self.slot.wait(None).expect("waits without an end bring an answer")
    }

    /// Blocks until the answer is there; at the deadline the job is [cancelled](Self::cancel), and its answer is still waited for: nothing
    /// runs on unseen. A job that cannot be interrupted, or does not mind, takes the time it takes.
    ///
    /// # Errors
    /// As [`wait`](Self::wait).
    pub fn wait_until(self, deadline: Instant) -> Result<R> {
        self.check_thread()?;
        if let Some(answer) = self.slot.wait(Some(deadline)) {
            return answer;
        }
        self.cancel();
        self.wait()
    }

    /// Stops the job. One that still waits never begins, and is [`Cancelled`](crate::ErrorKind::Cancelled) at once. One that runs is told by
    /// the [`Interrupt`](crate::Interrupt) of the worker's value, where it [has one](crate::Worker::interruptible), and answers what it
    /// makes of that. One that has ended is not touched, nor is the job after it.
    pub fn cancel(&self) {
        if let Some(id) = self.id {
            self.jobs.cancel(id);
        }
    }

    fn check_thread(&self) -> Result<()> {
        if self.jobs.is_this_thread() && self.slot.is_pending() {
            return Err(Error::invalid_input(
                "a job cannot wait for another job of its own worker: await it elsewhere, or do its work here",
            ));
        }
        Ok(())
    }
}

impl<R> Future for Ticket<R> {
    type Output = Result<R>;

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        self.slot.poll(context.waker())
    }
}

impl<R> Drop for Ticket<R> {
    fn drop(&mut self) {
        self.slot.forget();
    }
}

impl<R> fmt::Debug for Ticket<R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Ticket").field("job", &self.id).finish_non_exhaustive()
    }
}

/// Where an answer is put, once, and taken, once.
pub(crate) struct Slot<R> {
    state: Mutex<State<R>>,
    ready: Condvar,
}

enum State<R> {
    Pending(Option<Waker>),
    Done(Result<R>),
    Taken,
}

impl<R> Slot<R> {
    pub(crate) fn new() -> Arc<Self> {
        Arc::new(Self { state: Mutex::new(State::Pending(None)), ready: Condvar::new() })
    }

    /// Answers.
    pub(crate) fn fill(self: Arc<Self>, answer: Result<R>) {
        let before = mem::replace(&mut *self.state.lock(), State::Done(answer));
        self.ready.notify_all();
        if let State::Pending(Some(waker)) = before {
            panics::wake(waker);
        }
        // An answer that nobody wants, and that panics when it is dropped, is no business of the worker's.
        let _ = panics::catch(move || drop(self));
    }

    /// `None` where the deadline came first.
    pub(crate) fn wait(&self, deadline: Option<Instant>) -> Option<Result<R>> {
        let mut state = self.state.lock();
        let mut late = false;
        loop {
            match mem::replace(&mut *state, State::Taken) {
                State::Done(answer) => return Some(answer),
                State::Taken => panic!("the answer of this ticket was taken before"),
                pending @ State::Pending(_) => *state = pending,
            }
            match deadline {
                _ if late => return None,
                Some(deadline) => (state, late) = self.ready.wait_until(state, deadline),
                None => state = self.ready.wait(state),
            }
        }
    }

    pub(crate) fn poll(&self, waker: &Waker) -> Poll<Result<R>> {
        // Cloned, and the one before dropped, while nothing is locked: both may run anything.
        let waker = waker.clone();
        let mut state = self.state.lock();
        let before = match mem::replace(&mut *state, State::Taken) {
            State::Done(answer) => return Poll::Ready(answer),
            State::Taken => panic!("the answer of this ticket was taken before"),
            State::Pending(before) => before,
        };
        *state = State::Pending(Some(waker));
        drop(state);
        drop(before);
        Poll::Pending
    }

    pub(crate) fn is_pending(&self) -> bool {
        matches!(*self.state.lock(), State::Pending(_))
    }

    /// Nobody waits any more: no waker is kept for it.
    pub(crate) fn forget(&self) {
        let mut state = self.state.lock();
        let unwanted = match &mut *state {
            State::Pending(waker) => State::Pending(waker.take()),
            _ => mem::replace(&mut *state, State::Taken),
        };
        drop(state);
        drop(unwanted);
    }
}
