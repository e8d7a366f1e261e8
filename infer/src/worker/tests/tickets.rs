use super::*;
use std::panic;

/// The smallest executor there is: it polls when it is woken, and counts.
fn block_on<F: Future + Unpin>(mut future: F) -> (F::Output, usize) {
    struct Unpark(thread::Thread, AtomicBool);
    impl Wake for Unpark {
        fn wake(self: Arc<Self>) {
            self.1.store(true, SeqCst);
            self.0.unpark();
        }
    }
    let unpark = Arc::new(Unpark(thread::current(), AtomicBool::new(true)));
    let waker = Waker::from(unpark.clone());
    let mut polls = 0;
    loop {
        while !unpark.1.swap(false, SeqCst) {
            thread::park();
        }
        polls += 1;
        if let Poll::Ready(output) = Pin::new(&mut future).poll(&mut Context::from_waker(&waker)) {
            return (output, polls);
        }
    }
}

#[test]
fn a_ticket_is_a_future() {
    let worker = plain();
    for number in 0..500 {
        let (answer, polls) = block_on(worker.submit(move |_| number));
        assert_eq!(answer.unwrap(), number);
        assert!(polls <= 2, "polled {polls} times: once, and once when it was woken");
    }
    let (go, first) = busy(&worker);
    let mut ticket = worker.submit(|_| 5);
    // Polled with one waker and then with another: the last one counts.
    assert!(Pin::new(&mut ticket).poll(&mut Context::from_waker(Waker::noop())).is_pending());
    go.send(()).unwrap();
    assert_eq!(block_on(&mut ticket).0.unwrap(), 5);
    let again = panic::catch_unwind(panic::AssertUnwindSafe(|| block_on(&mut ticket)));
    assert!(again.is_err(), "it is over");
    first.wait().unwrap();
}

#[test]
fn a_ticket_that_was_dropped_keeps_no_waker() {
    let worker = plain();
    let (go, first) = busy(&worker);
    struct Nothing;
    impl Wake for Nothing {
        fn wake(self: Arc<Self>) {}
    }
    let task = Arc::new(Nothing);
    let mut ticket = worker.submit(|_| ());
    let waker = Waker::from(task.clone());
    assert!(Pin::new(&mut ticket).poll(&mut Context::from_waker(&waker)).is_pending());
    drop((waker, ticket));
    assert_eq!(Arc::strong_count(&task), 1);
    go.send(()).unwrap();
    first.wait().unwrap();
}

#[test]
fn workers_and_tickets_cross_threads() {
    fn crosses<T: Send + Sync + Unpin + 'static>(_: &T) {}
    let worker = plain();
    crosses(&worker);
    crosses(&worker.submit(|_| ()));
    // An answer that may move and not be shared.
    crosses(&worker.submit(|_| std::cell::Cell::new(1)));
    assert_eq!(format!("{worker:?}"), r#"Worker { name: "plain", .. }"#);
}
