//! What a worker's thread and its handles share: the queue, and which job runs.
//!
//! One lock says of each job whether it waits, runs, or is over, so a cancel finds it in one of the three: it takes it out of the queue,
//! raises the interrupt, or does nothing. The interrupt is raised and lowered under that lock, so it never reaches another job.

use super::{Turn, ticket::Slot};
use crate::{
    panics,
    sync::{Condvar, Mutex, thread},
};
use infer_core::{Error, ErrorKind, Interrupt, Result};
use std::{
    collections::VecDeque,
    mem,
    sync::{Arc, OnceLock},
};

pub(super) struct Shared<T> {
    pub(super) name: String,
    bound: usize,
    thread: OnceLock<thread::ThreadId>,
    state: Mutex<State<T>>,
    /// For the worker's thread: there is a job, or an end.
    work: Condvar,
    /// For whoever waits with a job: there is room, or an end.
    room: Condvar,
}

struct State<T> {
    waiting: VecDeque<Waiting<T>>,
    /// The number of the next job.
    next: u64,
    running: Option<u64>,
    interrupt: Option<Interrupt>,
    /// The interrupt was raised for the job that runs.
    raised: bool,
    /// Why there are no jobs any more.
    closed: Option<String>,
}

struct Waiting<T> {
    id: u64,
    job: Box<dyn Job<T>>,
}

/// What a queue holds.
pub(super) trait Job<T>: Send {
    /// Runs it on the worker's thread, and answers. Where it panics, the value is not to be used any more.
    fn run(self: Box<Self>, value: &mut T, shared: &Shared<T>) -> Result<(), Panic>;

    /// Answers without having run.
    fn refuse(self: Box<Self>, error: Error);
}

/// A panic that ends a worker.
pub(super) struct Panic {
    /// Who panicked, where, and with what words.
    pub(super) words: String,
    /// To be told of it, when the value is gone.
    pub(super) answer: Option<Box<dyn FnOnce(Error) + Send>>,
}

/// A closure, and where its answer goes.
pub(super) struct Task<F, R> {
    pub(super) job: F,
    pub(super) slot: Arc<Slot<R>>,
}

impl<T, R: Send + 'static, F: FnOnce(&mut T) -> R + Send> Job<T> for Task<F, R> {
    fn run(self: Box<Self>, value: &mut T, shared: &Shared<T>) -> Result<(), Panic> {
        let Self { job, slot } = *self;
        let done = panics::catch(|| job(value)).map_err(|words| format!("a job of worker `{}` {words}", shared.name));
        // From here on a cancel meets nothing. An interrupt that cannot be lowered would stop the jobs that follow.
        let over = panics::catch(|| shared.finish())
            .map_err(|words| format!("the interrupt of worker `{}` {words}", shared.name));
        match done.and_then(|answer| over.map(|()| answer)) {
            Ok(answer) => {
                slot.fill(Ok(answer));
                Ok(())
            }
            Err(words) => Err(Panic { words, answer: Some(Box::new(move |error| slot.fill(Err(error)))) }),
        }
    }

    fn refuse(self: Box<Self>, error: Error) {
        let Self { job, slot } = *self;
        // What the job holds is gone when its caller hears of it.
        let _ = panics::catch(move || drop(job));
        slot.fill(Err(error));
    }
}

impl<T> Shared<T> {
    pub(super) fn new(name: &str, bound: usize) -> Arc<Self> {
        let state =
            State { waiting: VecDeque::new(), next: 0, running: None, interrupt: None, raised: false, closed: None };
        Arc::new(Self {
            name: name.to_owned(),
            bound,
            thread: OnceLock::new(),
            state: Mutex::new(state),
            work: Condvar::new(),
            room: Condvar::new(),
        })
    }

    /// The worker's thread says who it is, before anyone can ask.
    pub(super) fn adopt(&self) {
        self.thread.get_or_init(|| thread::current().id());
    }

    pub(super) fn interrupt_by(&self, interrupt: Interrupt) {
        self.state.lock().interrupt = Some(interrupt);
    }

    /// Puts a job behind those that wait, and returns its number. Where there is no room it waits for some, if it may.
    pub(super) fn push(&self, job: Box<dyn Job<T>>, may_wait: bool) -> Result<u64, (Box<dyn Job<T>>, Error)> {
        let mut state = self.state.lock();
        loop {
            if let Some(reason) = &state.closed {
                let error = Error::new(ErrorKind::Closed, reason.as_str());
                return Err((job, error));
            }
            if state.waiting.len() < self.bound {
                break;
            }
            // Its own thread would wait for itself.
            if !may_wait || self.is_this_thread() {
                drop(state);
                let message = format!(
                    "{} jobs wait for worker `{}`, which is as many as may; try again later",
                    self.bound, self.name
                );
                return Err((job, Error::new(ErrorKind::QueueFull, message)));
            }
            state = self.room.wait(state);
        }
        let id = state.next;
        state.next += 1;
        state.waiting.push_back(Waiting { id, job });
        drop(state);
        self.work.notify_one();
        Ok(id)
    }

    /// Waits as long as the last turn wants, and returns how many jobs wait then; none where there are to be no more.
    pub(super) fn wait(&self, turn: Turn) -> usize {
        let mut state = self.state.lock();
        let mut late = false;
        while state.closed.is_none() && state.waiting.is_empty() && !late {
            match turn {
                Turn::Again => break,
                Turn::Wait => state = self.work.wait(state),
                Turn::Until(deadline) => (state, late) = self.work.wait_until(state, deadline),
            }
        }
        state.waiting.len()
    }

    /// The next job, which runs from now on.
    pub(super) fn begin(&self) -> Option<Box<dyn Job<T>>> {
        let mut state = self.state.lock();
        let Waiting { id, job } = state.waiting.pop_front()?;
        state.running = Some(id);
        drop(state);
        self.room.notify_one();
        Some(job)
    }

    /// No job runs.
    fn finish(&self) {
        let mut state = self.state.lock();
        state.running = None;
        if mem::take(&mut state.raised)
            && let Some(interrupt) = &state.interrupt
        {
            interrupt.lower();
        }
    }

    pub(super) fn is_open(&self) -> bool {
        self.state.lock().closed.is_none()
    }

    /// From now on there are no new jobs, for this reason; those that waited are the caller's to refuse.
    pub(super) fn close(&self, reason: &str) -> Refused<T> {
        let mut state = self.state.lock();
        let reason = state.closed.get_or_insert_with(|| reason.to_owned()).clone();
        let waiting = mem::take(&mut state.waiting);
        drop(state);
        self.work.notify_one();
        self.room.notify_all();
        Refused { waiting, reason }
    }
}

/// Jobs that waited when a worker was closed.
pub(super) struct Refused<T> {
    waiting: VecDeque<Waiting<T>>,
    reason: String,
}

impl<T> Refused<T> {
    /// Tells them.
    pub(super) fn tell(self) {
        for Waiting { job, .. } in self.waiting {
            job.refuse(Error::new(ErrorKind::Closed, self.reason.as_str()));
        }
    }
}

/// What a ticket knows of its worker, whose value's type it does not.
pub(super) trait Jobs: Send + Sync {
    fn cancel(&self, id: u64);
    fn is_this_thread(&self) -> bool;
}

impl<T> Jobs for Shared<T> {
    fn cancel(&self, id: u64) {
        let mut state = self.state.lock();
        if state.running == Some(id) {
            return state.stop();
        }
        // In the order of their numbers.
        let Ok(at) = state.waiting.binary_search_by_key(&id, |waiting| waiting.id) else { return };
        let Some(Waiting { job, .. }) = state.waiting.remove(at) else { return };
        drop(state);
        self.room.notify_one();
        let message = format!("the job was cancelled before worker `{}` began with it", self.name);
        job.refuse(Error::new(ErrorKind::Cancelled, message));
    }

    fn is_this_thread(&self) -> bool {
        self.thread.get() == Some(&thread::current().id())
    }
}

impl<T> State<T> {
    fn stop(&mut self) {
        if let Some(interrupt) = &self.interrupt
            && !self.raised
        {
            self.raised = true;
            interrupt.raise();
        }
    }
}
