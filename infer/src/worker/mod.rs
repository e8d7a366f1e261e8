//! A value pinned to a thread of its own.

mod life;
#[cfg(all(shuttle, test))]
mod orders;
mod shared;
#[cfg(all(test, not(shuttle)))]
mod tests;
mod ticket;

pub(crate) use ticket::Slot;
pub use ticket::Ticket;

use crate::sync::{Mutex, thread};
use infer_core::{Error, ErrorKind, Interrupt, Result};
use shared::{Jobs as _, Shared, Task};
use std::{fmt, sync::Arc, time::Instant};

/// A value on a thread of its own: built there, used there, dropped there. It need not be `Send`.
///
/// Other threads send it jobs: [`call`](Self::call) waits for the answer, [`submit`](Self::submit) returns a [`Ticket`] that can be waited
/// for, awaited and cancelled. What jobs take with them and bring back is `Send`, so nothing of the value leaves its thread.
///
/// ```
/// use infer::Worker;
/// use std::rc::Rc;
///
/// // An `Rc` is not `Send`; the closure that makes it is.
/// let worker = Worker::spawn("words", 8, || Ok(Rc::new(String::from("two and two"))))?;
/// let length = worker.call(|words| words.len())?;
/// assert_eq!(length, 11);
///
/// let ticket = worker.submit(|words| words.to_uppercase());
/// assert_eq!(ticket.wait()?, "TWO AND TWO");
/// # Ok::<(), infer::Error>(())
/// ```
///
/// # A session
///
/// Sessions are not `Send` (`docs/threads.md`): a worker makes them usable from everywhere. With [`interruptible`](Self::interruptible) a
/// cancel or a deadline stops a running pass.
///
/// ```
/// use infer::{Batch, ErrorKind, Model, OpenOptions, Session, SessionOptions, Token, Want, Worker};
/// use std::time::{Duration, Instant};
/// # use infer_core::testing::{Script, ScriptedModel};
/// # let open = || Ok::<_, infer::Error>(Box::new(ScriptedModel::new(Script::new())) as Box<dyn Model>);
///
/// // With a file: let open = || ModelSource::new("model.gguf").open();
/// let worker = Worker::spawn("session", 8, move || open()?.session(&SessionOptions::new()))?
///     .interruptible(|session| session.interrupt())?;
///
/// let passes = worker.submit(|session| -> infer::Result<()> {
///     let sequence = session.open(&OpenOptions::default())?;
///     let mut batch = Batch::new();
///     loop {
///         batch.clear();
///         batch.push(&sequence, &[Token(1)], Want::Nothing);
///         session.decode(&batch)?;
/// #       session.truncate(&sequence, 0)?;
///     }
/// });
/// let answer = passes.wait_until(Instant::now() + Duration::from_millis(20))?;
/// assert_eq!(answer.unwrap_err().kind(), ErrorKind::Cancelled);
/// // The interrupt was lowered when that job ended.
/// assert_eq!(worker.call(|session| session.usage().sequences)?, 0);
/// # Ok::<(), infer::Error>(())
/// ```
///
/// # Panics of others
///
/// A job that panics ends the worker: nothing runs on a value that was left half-way. The value is dropped on its thread, then the caller of
/// that job gets [`Panicked`](ErrorKind::Panicked) with the panic's message and place, and every other one, now and later,
/// [`Closed`](ErrorKind::Closed) with the same words. A turn that panics does the same, and whoever waits gets `Closed`. The panic hook is
/// called as for any panic; the first worker of a process puts one before it that writes down the place.
///
/// # The end
///
/// Dropping a worker, or [`shutdown`](Self::shutdown), waits for the job or the turn that runs, and until the value has been dropped. Jobs that
/// still wait are [`Closed`](ErrorKind::Closed). From the worker's own thread (the last handle was dropped in a job, by a value, with a
/// job's closure) nothing is waited for: the thread ends by itself, after that job.
pub struct Worker<T> {
    shared: Arc<Shared<T>>,
    /// Locked for as long as someone waits for the thread to end, so that all who do wait.
    thread: Mutex<Option<thread::JoinHandle<()>>>,
}

/// What the turn of a [driven](Worker::driven) worker says when it ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Turn {
    /// There is more to do: the next turn comes after the jobs that wait by now.
    Again,
    /// There is nothing to do until a job comes.
    Wait,
    /// There is nothing to do until a job comes, or until this time.
    Until(Instant),
}

impl<T: 'static> Worker<T> {
    /// Starts a thread of this name, builds the value on it, and returns when it is built. At most `queue` jobs wait beside the one that runs.
    ///
    /// Systems show the beginning of the name: 15 bytes on Linux.
    ///
    /// # Errors
    /// What `build` returned; [`Panicked`](ErrorKind::Panicked) where it panicked; [`InvalidInput`](ErrorKind::InvalidInput) for a queue of no
    /// jobs or a name with a NUL; [`Runtime`](ErrorKind::Runtime) where the system starts no thread.
    pub fn spawn(name: &str, queue: usize, build: impl FnOnce() -> Result<T> + Send + 'static) -> Result<Self> {
        Self::driven(name, queue, build, |_| Turn::Wait)
    }

    /// As [`spawn`](Self::spawn), for a value that does something of its own between jobs: a scheduler is a value with a turn, and requests are
    /// jobs.
    ///
    /// The first turn comes before the first job. Between two turns run the jobs that waited when the first of them ended, at most `queue`: a
    /// flood of jobs does not keep turns away, and no job waits for more than one turn.
    ///
    /// ```
    /// use infer::{Turn, Worker};
    ///
    /// /// Counts down, one a turn.
    /// struct Countdown(u32);
    /// impl Countdown {
    ///     fn turn(&mut self) -> Turn {
    ///         self.0 = self.0.saturating_sub(1);
    ///         if self.0 > 0 { Turn::Again } else { Turn::Wait }
    ///     }
    /// }
    ///
    /// let worker = Worker::driven("countdown", 8, || Ok(Countdown(0)), Countdown::turn)?;
    /// worker.call(|countdown| countdown.0 = 1_000)?;
    /// while worker.call(|countdown| countdown.0)? > 0 {}
    /// # Ok::<(), infer::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`spawn`](Self::spawn).
    pub fn driven(
        name: &str,
        queue: usize,
        build: impl FnOnce() -> Result<T> + Send + 'static,
        turn: fn(&mut T) -> Turn,
    ) -> Result<Self> {
        if queue == 0 {
            return Err(Error::invalid_input(format!(
                "the queue of worker `{name}` holds no job; it must hold at least 1"
            )));
        }
        if name.contains('\0') {
            return Err(Error::invalid_input(format!(
                "the name of worker {name:?} has a NUL, which a thread's cannot have"
            )));
        }
        let shared = Shared::new(name, queue);
        let built = Slot::new();
        let life = {
            let (shared, built) = (shared.clone(), built.clone());
            move || life::live(&shared, build, turn, built)
        };
        let thread = thread::Builder::new().name(name.to_owned()).spawn(life).map_err(|error| {
            Error::new(ErrorKind::Runtime, format!("the thread of worker `{name}` could not be started: {error}"))
                .with_source(error)
        })?;
        // Where it fails, dropping the worker waits until the thread has gone.
        let worker = Self { shared, thread: Mutex::new(Some(thread)) };
        built.wait(None).expect("waits without an end bring an answer")?;
        Ok(worker)
    }

    /// Lets [`Ticket::cancel`] and [`Ticket::wait_until`] reach a job that runs: by the interrupt that `hook` takes from the value, usually
    /// [`Session::interrupt`](crate::Session::interrupt). It is raised while the job that is meant runs, and lowered before the next begins.
    ///
    /// The interrupt is raised and lowered under the worker's lock: it must not call the worker.
    ///
    /// # Errors
    /// As [`call`](Self::call).
    pub fn interruptible(self, hook: impl FnOnce(&mut T) -> Interrupt + Send + 'static) -> Result<Self> {
        let interrupt = self.call(hook)?;
        self.shared.interrupt_by(interrupt);
        Ok(self)
    }

    /// Runs a job and returns what it returns.
    ///
    /// # Errors
    /// As [`Ticket`] says; [`InvalidInput`](ErrorKind::InvalidInput) in a job of this worker, which would wait for itself: nothing has run then.
    pub fn call<R: Send + 'static>(&self, job: impl FnOnce(&mut T) -> R + Send + 'static) -> Result<R> {
        if self.shared.is_this_thread() {
            return Err(Error::invalid_input(format!(
                "a job of worker `{}` cannot call it and wait: it has the value already",
                self.shared.name
            )));
        }
        self.submit(job).wait()
    }

    /// Puts a job behind those that wait. While the queue is full it blocks, except in a job of this worker, where the ticket says
    /// [`QueueFull`](ErrorKind::QueueFull).
    ///
    /// Errors are in the ticket: [`Closed`](ErrorKind::Closed) where the worker has ended.
    pub fn submit<R: Send + 'static>(&self, job: impl FnOnce(&mut T) -> R + Send + 'static) -> Ticket<R> {
        let slot = Slot::new();
        let pushed = self.shared.push(Box::new(Task { job, slot: slot.clone() }), true);
        let id = pushed.map_err(|(job, error)| job.refuse(error)).ok();
        Ticket::new(slot, id, self.shared.clone())
    }

    /// As [`submit`](Self::submit), and never blocks.
    ///
    /// # Errors
    /// [`QueueFull`](ErrorKind::QueueFull) where as many jobs wait as may, [`Closed`](ErrorKind::Closed) where the worker has ended. The job has
    /// been dropped.
    pub fn try_submit<R: Send + 'static>(&self, job: impl FnOnce(&mut T) -> R + Send + 'static) -> Result<Ticket<R>> {
        let slot = Slot::new();
        match self.shared.push(Box::new(Task { job, slot: slot.clone() }), false) {
            Ok(id) => Ok(Ticket::new(slot, Some(id), self.shared.clone())),
            Err((_, error)) => Err(error),
        }
    }
}

impl<T> Worker<T> {
    /// Takes no more jobs, answers those that wait with [`Closed`](ErrorKind::Closed), waits for the one that runs and until the value has been
    /// dropped. For a worker that is shared; dropping one does the same.
    ///
    /// On the worker's own thread it waits for nothing.
    pub fn shutdown(&self) {
        self.shared.close(&format!("worker `{}` has been shut down", self.shared.name)).tell();
        if self.shared.is_this_thread() {
            return;
        }
        let mut thread = self.thread.lock();
        if let Some(thread) = thread.take() {
            // It catches whatever panics on it.
            let _ = thread.join();
        }
    }
}

impl<T> Drop for Worker<T> {
    fn drop(&mut self) {
        self.shutdown();
    }
}

impl<T> fmt::Debug for Worker<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Worker").field("name", &self.shared.name).finish_non_exhaustive()
    }
}
