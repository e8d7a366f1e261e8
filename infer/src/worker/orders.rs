//! The worker's state machine in orders of the scheduler's choice: `cargo xtask orders`.
//!
//! Each lock, wait and wake-up is a point at which another thread may go on. What no thread can leave is a deadlock and fails; a loop
//! that is not ended runs out of steps and fails. Panics here are `resume_unwind`, since shuttle takes what its hook sees for a failure.

use super::{Ticket, Turn, Worker};
use crate::sync::{check_orders, thread};
use infer_core::{Error, ErrorKind, Interrupt, Result};
use shuttle::sync::{
    atomic::{AtomicBool, AtomicUsize, Ordering::SeqCst},
    mpsc,
};
use std::{panic, rc::Rc, sync::Arc, time::Instant};

/// A value that may not leave its thread, and of which is known whether it lives.
struct Value {
    flag: Arc<AtomicBool>,
    ran: Vec<usize>,
    ticks: usize,
    drops: Arc<AtomicUsize>,
    home: thread::ThreadId,
    _not_send: Rc<()>,
}

impl Value {
    fn build(drops: &Arc<AtomicUsize>) -> impl FnOnce() -> Result<Self> + Send + 'static {
        let drops = drops.clone();
        move || {
            let home = thread::current().id();
            Ok(Self { flag: Arc::default(), ran: Vec::new(), ticks: 0, drops, home, _not_send: Rc::default() })
        }
    }

    fn interrupt(&mut self) -> Interrupt {
        let flag = self.flag.clone();
        Interrupt::new(move |up| flag.store(up, SeqCst))
    }

    /// A pass that ends when it is interrupted, and never before: a cancel that is lost runs out of steps.
    fn endless(&mut self) -> Result<()> {
        while !self.flag.load(SeqCst) {
            thread::yield_now();
        }
        Err(ErrorKind::Cancelled.into())
    }

    /// A pass of a few steps.
    fn short(&mut self) -> Result<()> {
        for _ in 0..3 {
            if self.flag.load(SeqCst) {
                return Err(ErrorKind::Cancelled.into());
            }
            thread::yield_now();
        }
        Ok(())
    }
}

impl Drop for Value {
    fn drop(&mut self) {
        assert_eq!(thread::current().id(), self.home);
        self.drops.fetch_add(1, SeqCst);
    }
}

fn worker(queue: usize, drops: &Arc<AtomicUsize>) -> Worker<Value> {
    Worker::spawn("model", queue, Value::build(drops)).unwrap()
}

fn kind<R>(answer: &Result<R>) -> Option<ErrorKind> {
    answer.as_ref().err().map(Error::kind)
}

#[test]
fn a_cancel_reaches_its_job_and_no_other() {
    check_orders(|| {
        let drops = Arc::default();
        let worker = worker(8, &drops).interruptible(Value::interrupt).unwrap();
        let before = worker.submit(Value::short);
        let endless = worker.submit(Value::endless);
        let after = worker.submit(Value::short);
        let canceller = thread::spawn(move || {
            endless.cancel();
            endless
        });
        assert!(before.wait().unwrap().is_ok(), "the job before");
        match canceller.join().unwrap().wait() {
            // It never began, or answered itself.
            Err(error) => assert_eq!(error.kind(), ErrorKind::Cancelled),
            Ok(answer) => assert_eq!(kind(&answer), Some(ErrorKind::Cancelled)),
        }
        assert!(after.wait().unwrap().is_ok(), "the job after");
        assert!(!worker.call(|value| value.flag.load(SeqCst)).unwrap());
    });
}

#[test]
fn a_cancel_may_race_with_the_end_of_its_job() {
    check_orders(|| {
        let drops = Arc::default();
        let worker = worker(8, &drops).interruptible(Value::interrupt).unwrap();
        let races = Arc::new(worker.submit(Value::short));
        let cancellers: Vec<_> = (0..2)
            .map(|_| {
                let races = races.clone();
                thread::spawn(move || races.cancel())
            })
            .collect();
        let after: Vec<_> = (0..2).map(|_| worker.submit(Value::short)).collect();
        for after in after {
            assert!(after.wait().unwrap().is_ok(), "nobody has cancelled this one");
        }
        for canceller in cancellers {
            canceller.join().unwrap();
        }
        let races = Arc::into_inner(races).unwrap().wait();
        // It never began, was stopped, or was over before.
        let stopped = races.map_or_else(|error| Some(error.kind()), |answer| kind(&answer));
        assert!(stopped.is_none_or(|kind| kind == ErrorKind::Cancelled));
    });
}

#[test]
fn a_deadline_is_a_cancel_whose_answer_is_waited_for() {
    check_orders(|| {
        let drops = Arc::default();
        let worker = worker(8, &drops).interruptible(Value::interrupt).unwrap();
        let met = worker.submit(Value::short);
        let endless = worker.submit(Value::endless);
        let after = worker.submit(Value::short);
        let waiter = thread::spawn(move || endless.wait_until(Instant::now()));
        // Its deadline may come at any time, too.
        match met.wait_until(Instant::now()) {
            Ok(answer) => assert!(kind(&answer).is_none_or(|kind| kind == ErrorKind::Cancelled)),
            Err(error) => assert_eq!(error.kind(), ErrorKind::Cancelled),
        }
        match waiter.join().unwrap() {
            Ok(answer) => assert_eq!(kind(&answer), Some(ErrorKind::Cancelled)),
            Err(error) => assert_eq!(error.kind(), ErrorKind::Cancelled),
        }
        assert!(after.wait().unwrap().is_ok());
    });
}

#[test]
fn the_last_handle_may_go_in_a_job() {
    check_orders(|| {
        let drops = Arc::<AtomicUsize>::default();
        let worker = Arc::new(worker(2, &drops));
        let other = thread::spawn({
            let worker = worker.clone();
            move || kind(&worker.call(|value| value.ran.push(0)))
        });
        let (done, over) = mpsc::channel();
        let own = worker.clone();
        drop(worker.submit(move |_| {
            drop(own);
            done.send(()).unwrap();
        }));
        drop(worker);
        over.recv().unwrap();
        // Its handle kept the worker open until its job had run.
        assert_eq!(other.join().unwrap(), None);
        while drops.load(SeqCst) == 0 {
            thread::yield_now();
        }
    });
}

#[test]
fn nothing_runs_after_a_panic_and_everybody_is_told() {
    check_orders(|| {
        let drops = Arc::<AtomicUsize>::default();
        let worker = Arc::new(worker(2, &drops));
        let panicked = Arc::<AtomicBool>::default();
        let job = |panicked: &Arc<AtomicBool>| {
            let panicked = panicked.clone();
            move |_: &mut Value| assert!(!panicked.load(SeqCst), "ran after the panic")
        };
        let others: Vec<_> = (0..2)
            .map(|_| {
                let (worker, job, next) = (worker.clone(), job(&panicked), job(&panicked));
                thread::spawn(move || [kind(&worker.call(job)), kind(&worker.submit(next).wait())])
            })
            .collect();
        let flag = panicked.clone();
        let breaks = worker.call(move |_| {
            flag.store(true, SeqCst);
            panic::resume_unwind(Box::new("as planned"))
        });
        let breaks: Result<()> = breaks;
        assert_eq!(breaks.unwrap_err().to_string(), "a job of worker `model` panicked: as planned");
        assert_eq!(drops.load(SeqCst), 1, "the value has gone when the caller hears of it");
        for other in others {
            let [first, second] = other.join().unwrap();
            assert!(first.is_none_or(|kind| kind == ErrorKind::Closed));
            assert!(second.is_none_or(|kind| kind == ErrorKind::Closed) && (first.is_none() || second.is_some()));
        }
        let words = worker.call(|_| ()).unwrap_err().to_string();
        assert_eq!(words, "worker `model` has ended: a job of worker `model` panicked: as planned");
    });
}

#[test]
fn a_narrow_queue_lets_everybody_through() {
    check_orders(|| {
        let drops = Arc::<AtomicUsize>::default();
        let worker = Arc::new(worker(1, &drops));
        let submitters: Vec<_> = (0..3)
            .map(|thread| {
                let worker = worker.clone();
                thread::spawn(move || {
                    let first = worker.submit(move |value| value.ran.push(thread * 2));
                    let second = worker.submit(move |value| value.ran.push(thread * 2 + 1));
                    first.wait().unwrap();
                    second.wait().unwrap();
                })
            })
            .collect();
        for submitter in submitters {
            submitter.join().unwrap();
        }
        let ran = worker.call(|value| value.ran.clone()).unwrap();
        for thread in 0..3 {
            let of_it: Vec<_> = ran.iter().filter(|job| **job / 2 == thread).collect();
            assert!(of_it.is_sorted() && of_it.len() == 2, "{ran:?}");
        }
    });
}

#[test]
fn a_cancelled_job_makes_room() {
    check_orders(|| {
        let drops = Arc::default();
        let worker = Arc::new(worker(1, &drops).interruptible(Value::interrupt).unwrap());
        let endless = worker.submit(Value::endless);
        // Taken when the endless one runs, which nothing ends before the last line.
        let waits = worker.submit(Value::short);
        let submitter = thread::spawn({
            let worker = worker.clone();
            move || worker.submit(Value::short)
        });
        waits.cancel();
        assert_eq!(kind(&waits.wait()), Some(ErrorKind::Cancelled));
        let submitted = submitter.join().unwrap();
        endless.cancel();
        assert_eq!(kind(&endless.wait().unwrap()), Some(ErrorKind::Cancelled));
        assert!(submitted.wait().unwrap().is_ok());
    });
}

#[test]
fn an_end_lets_everybody_go() {
    check_orders(|| {
        let drops = Arc::<AtomicUsize>::default();
        let worker = Arc::new(worker(1, &drops));
        // More of them than there are ends.
        let submitters: Vec<_> = (0..3)
            .map(|_| {
                let worker = worker.clone();
                thread::spawn(move || {
                    let tickets: [Ticket<()>; 2] = [worker.submit(|_| ()), worker.submit(|_| ())];
                    tickets.map(|ticket| kind(&ticket.wait()))
                })
            })
            .collect();
        let other = thread::spawn({
            let (worker, drops) = (worker.clone(), drops.clone());
            move || {
                worker.shutdown();
                assert_eq!(drops.load(SeqCst), 1);
            }
        });
        worker.shutdown();
        assert_eq!(drops.load(SeqCst), 1, "whoever waits for the end has waited for it");
        other.join().unwrap();
        for submitter in submitters {
            let kinds = submitter.join().unwrap();
            assert!(kinds.iter().all(|kind| kind.is_none_or(|kind| kind == ErrorKind::Closed)), "{kinds:?}");
            assert!(kinds[0].is_none() || kinds[1].is_some(), "in their order: {kinds:?}");
        }
    });
}

#[test]
fn whoever_awaits_is_woken() {
    check_orders(|| {
        let drops = Arc::<AtomicUsize>::default();
        let worker = Arc::new(worker(1, &drops));
        let tasks: Vec<_> = (0..2)
            .map(|number| {
                let worker = worker.clone();
                thread::spawn(move || {
                    for round in 0..2 {
                        let ticket = worker.submit(move |_| number + round);
                        assert_eq!(shuttle::future::block_on(ticket).unwrap(), number + round);
                    }
                })
            })
            .collect();
        for task in tasks {
            task.join().unwrap();
        }
    });
}

#[test]
fn a_ticket_may_be_dropped_at_any_time() {
    check_orders(|| {
        let drops = Arc::<AtomicUsize>::default();
        let worker = worker(2, &drops);
        let held = Arc::new(());
        for _ in 0..2 {
            let answer = held.clone();
            drop(worker.submit(move |_| answer));
        }
        drop(worker);
        assert_eq!((Arc::strong_count(&held), drops.load(SeqCst)), (1, 1));
    });
}

#[test]
fn turns_and_jobs_take_turns() {
    const QUEUE: usize = 2;
    check_orders(|| {
        let drops = Arc::<AtomicUsize>::default();
        let turn = |value: &mut Value| {
            value.ticks += 1;
            // Busy for the first few, so that a flood meets them.
            if value.ticks < 4 { Turn::Again } else { Turn::Wait }
        };
        let worker = Arc::new(Worker::driven("model", QUEUE, Value::build(&drops), turn).unwrap());
        let flood: Vec<_> = (0..2)
            .map(|_| {
                let worker = worker.clone();
                thread::spawn(move || {
                    for _ in 0..3 {
                        drop(worker.submit(|value| value.ran.push(value.ticks)));
                    }
                })
            })
            .collect();
        for thread in flood {
            thread.join().unwrap();
        }
        let ran = worker.call(|value| value.ran.clone()).unwrap();
        assert_eq!(ran.len(), 6);
        assert!(ran[0] > 0, "the first turn comes first");
        let together = ran.chunk_by(|one, other| one == other).map(<[_]>::len).max();
        assert!(together.is_some_and(|jobs| jobs <= QUEUE), "{ran:?}");
    });
}

#[test]
fn a_turn_wakes_by_its_time_and_by_jobs() {
    check_orders(|| {
        let drops = Arc::<AtomicUsize>::default();
        let turn = |value: &mut Value| {
            value.ticks += 1;
            match value.ticks {
                // Each of these must come without a job.
                1..5 => Turn::Until(Instant::now()),
                5 => {
                    value.flag.store(true, SeqCst);
                    Turn::Wait
                }
                _ => Turn::Wait,
            }
        };
        let worker = Worker::driven("model", 2, Value::build(&drops), turn).unwrap();
        let flag = worker.call(|value| value.flag.clone()).unwrap();
        while !flag.load(SeqCst) {
            thread::yield_now();
        }
        let before = worker.call(|value| value.ticks).unwrap();
        let after = worker.call(|value| value.ticks).unwrap();
        assert_eq!(after, before + 1, "a turn after each job, and none else");
        drop(worker);
        assert_eq!(drops.load(SeqCst), 1);
    });
}

#[test]
fn a_turn_that_panics_closes_everybody() {
    check_orders(|| {
        let drops = Arc::<AtomicUsize>::default();
        let turn = |value: &mut Value| {
            value.ticks += 1;
            if value.ticks == 3 { panic::resume_unwind(Box::new("as planned")) } else { Turn::Wait }
        };
        let worker = Arc::new(Worker::driven("model", 1, Value::build(&drops), turn).unwrap());
        let callers: Vec<_> = (0..2)
            .map(|_| {
                let worker = worker.clone();
                thread::spawn(move || [kind(&worker.call(|_| ())), kind(&worker.call(|_| ()))])
            })
            .collect();
        let kinds: Vec<_> = callers.into_iter().flat_map(|caller| caller.join().unwrap()).collect();
        let ran = kinds.iter().filter(|kind| kind.is_none()).count();
        assert!((2..=3).contains(&ran) && kinds.iter().flatten().all(|kind| *kind == ErrorKind::Closed), "{kinds:?}");
        worker.shutdown();
        assert_eq!(drops.load(SeqCst), 1);
    });
}
