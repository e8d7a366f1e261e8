mod cancels;
mod ends;
mod panics;
mod tickets;
mod turns;

use super::{Ticket, Turn, Worker};
use infer_core::{Error, ErrorKind, Interrupt, Result};
use std::{
    cell::RefCell,
    future::Future,
    panic,
    pin::Pin,
    rc::Rc,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering::SeqCst},
        mpsc,
    },
    task::{Context, Poll, Wake, Waker},
    thread::{self, ThreadId},
    time::{Duration, Instant},
};

/// Says where it is dropped, and that it is.
struct Dropped<T = ()>(mpsc::Sender<ThreadId>, T);

impl<T> Drop for Dropped<T> {
    fn drop(&mut self) {
        let _ = self.0.send(thread::current().id());
    }
}

fn dropped() -> (Dropped, mpsc::Receiver<ThreadId>) {
    let (send, receive) = mpsc::channel();
    (Dropped(send, ()), receive)
}

fn plain() -> Worker<Rc<RefCell<Vec<u32>>>> {
    Worker::spawn("plain", 8, || Ok(Rc::default())).unwrap()
}

fn kind<R>(answer: Result<R>) -> ErrorKind {
    answer.err().expect("an error").kind()
}

/// A job that runs until it is let go.
fn busy<T: 'static>(worker: &Worker<T>) -> (mpsc::Sender<()>, Ticket<()>) {
    let (begun, begins) = mpsc::channel();
    let (go, wait) = mpsc::channel();
    let ticket = worker.submit(move |_| {
        begun.send(()).unwrap();
        let _ = wait.recv();
    });
    begins.recv().unwrap();
    (go, ticket)
}

const LONG: Duration = Duration::from_secs(600);

#[test]
fn a_value_lives_on_its_own_thread_from_the_beginning_to_the_end() {
    let (value, drops) = dropped();
    let (build, built) = mpsc::channel();
    let worker = Worker::spawn("infer-test", 8, move || {
        build.send(thread::current().id()).unwrap();
        Ok((Rc::new(0_u32), value))
    })
    .unwrap();
    let name = worker.call(|_| thread::current().name().map(str::to_owned)).unwrap();
    assert_eq!(name.as_deref(), Some("infer-test"));
    let id = worker.call(|_| thread::current().id()).unwrap();
    assert_ne!(id, thread::current().id());
    assert_eq!(built.recv().unwrap(), id);
    drop(worker);
    assert_eq!(drops.try_recv().unwrap(), id);
}

#[test]
fn jobs_run_in_the_order_in_which_they_came() {
    let worker = plain();
    let tickets: Vec<_> = (0..100).map(|number| worker.submit(move |value| value.borrow_mut().push(number))).collect();
    drop(tickets); // detached, and run all the same
    assert_eq!(worker.call(|value| value.borrow().clone()).unwrap(), (0..100).collect::<Vec<_>>());
}

#[test]
fn what_cannot_be_started_is_an_error_and_leaves_no_thread() {
    let (value, drops) = dropped();
    let built = Worker::<()>::spawn("fails", 1, move || {
        let _value = value;
        Err(Error::invalid_input("no such model"))
    });
    assert_eq!(built.unwrap_err().to_string(), "no such model");
    drops.try_recv().unwrap();

    let line = line!() + 1;
    let built = Worker::<()>::spawn("breaks", 1, || panic!("half {}", "built"));
    let error = built.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Panicked);
    let words = error.to_string();
    assert!(words.starts_with("building the value of worker `breaks` panicked at "), "{words}");
    assert!(words.contains(&format!("worker/tests/mod.rs:{line}:")) && words.ends_with(": half built"), "{words}");

    assert_eq!(kind(Worker::spawn("none", 0, || Ok(()))), ErrorKind::InvalidInput);
    assert_eq!(kind(Worker::spawn("a\0b", 1, || Ok(()))), ErrorKind::InvalidInput);
}

#[test]
fn a_full_queue_refuses_or_waits() {
    let worker = Worker::spawn("narrow", 2, || Ok(())).unwrap();
    let (go, first) = busy(&worker);
    let waiting = [worker.try_submit(|()| 1).unwrap(), worker.submit(|()| 2)];
    let refused = worker.try_submit(|()| 3);
    assert_eq!(kind(refused), ErrorKind::QueueFull);

    let submitted = AtomicBool::new(false);
    thread::scope(|scope| {
        let late = scope.spawn(|| {
            let ticket = worker.submit(|()| 4);
            submitted.store(true, SeqCst);
            ticket.wait()
        });
        thread::sleep(Duration::from_millis(20));
        assert!(!submitted.load(SeqCst), "there was no room");
        go.send(()).unwrap();
        assert_eq!(late.join().unwrap().unwrap(), 4);
    });
    first.wait().unwrap();
    assert_eq!(waiting.map(|ticket| ticket.wait().unwrap()), [1, 2]);
}

#[test]
fn a_worker_does_not_wait_for_itself() {
    let worker = Arc::new(Worker::spawn("own", 1, || Ok(())).unwrap());
    let own = worker.clone();
    let kinds = worker.call(move |()| {
        let called = kind(own.call(|()| ()));
        let later = own.submit(|()| 1);
        let full = kind(own.submit(|()| 2).wait());
        let waited = kind(own.submit(|()| 3).wait_until(Instant::now()));
        (called, full, waited, kind(later.wait()))
    });
    let expected = (ErrorKind::InvalidInput, ErrorKind::QueueFull, ErrorKind::QueueFull, ErrorKind::InvalidInput);
    assert_eq!(kinds.unwrap(), expected);
    // Awaited elsewhere it comes.
    let own = worker.clone();
    let later = worker.call(move |()| own.submit(|()| 4)).unwrap();
    assert_eq!(later.wait().unwrap(), 4);
}
