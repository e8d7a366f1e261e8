use super::*;
use std::{cell::RefCell, sync::Barrier};

#[test]
fn dropping_closes_what_waits_and_waits_for_what_runs() {
    let (value, drops) = dropped();
    let worker = Worker::spawn("leaving", 8, move || Ok(value)).unwrap();
    let (go, first) = busy(&worker);
    let waits = worker.submit(|_| ());
    let gone = Arc::new(AtomicBool::new(false));
    thread::scope(|scope| {
        let flag = gone.clone();
        scope.spawn(move || {
            drop(worker);
            flag.store(true, SeqCst);
        });
        let error = waits.wait().unwrap_err();
        assert_eq!((error.kind(), &*error.to_string()), (ErrorKind::Closed, "worker `leaving` has been shut down"));
        thread::sleep(Duration::from_millis(10));
        assert!(!gone.load(SeqCst), "a job runs");
        go.send(()).unwrap();
    });
    first.wait().expect("it came to its end");
    assert_eq!(drops.try_iter().count(), 1);
}

#[test]
fn whoever_waits_for_room_or_for_the_end_is_let_go() {
    let worker = Worker::spawn("leaving", 1, || Ok(())).unwrap();
    let (go, first) = busy(&worker);
    let waits = worker.submit(|()| ());
    thread::scope(|scope| {
        let blocked: Vec<_> = (0..3).map(|_| scope.spawn(|| worker.submit(|()| ()).wait())).collect();
        let ends: Vec<_> = (0..2).map(|_| scope.spawn(|| worker.shutdown())).collect();
        for blocked in blocked {
            assert_eq!(kind(blocked.join().unwrap()), ErrorKind::Closed);
        }
        go.send(()).unwrap();
        for end in ends {
            end.join().unwrap();
        }
    });
    assert_eq!(kind(waits.wait()), ErrorKind::Closed);
    first.wait().unwrap();
    assert_eq!(kind(worker.call(|()| ())), ErrorKind::Closed);
}

#[test]
fn the_last_handle_may_be_dropped_in_a_job() {
    let (value, drops) = dropped();
    let worker = Arc::new(Worker::spawn("own", 8, move || Ok(value)).unwrap());
    let id = worker.call(|_| thread::current().id()).unwrap();
    let (own, barrier) = (worker.clone(), Arc::new(Barrier::new(2)));
    let meets = barrier.clone();
    let ticket = worker.submit(move |_| {
        meets.wait(); // the other handle has gone
        let waits = own.submit(|_| ());
        drop(own);
        waits
    });
    drop(worker);
    barrier.wait();
    assert_eq!(kind(ticket.wait().unwrap().wait()), ErrorKind::Closed);
    assert_eq!(drops.recv().unwrap(), id);
}

#[test]
fn the_last_handle_may_be_dropped_with_a_job_by_the_value_and_while_unwinding() {
    // With the closure of a job that never ran, on the worker's own thread after a panic.
    let (value, drops) = dropped();
    let worker = Arc::new(Worker::spawn("own", 8, move || Ok(value)).unwrap());
    let (go, first) = busy(&worker);
    let breaks = worker.submit(|_| panic!("x"));
    let own = worker.clone();
    let held = worker.submit(move |_| drop(own));
    drop(worker);
    go.send(()).unwrap();
    first.wait().unwrap();
    assert_eq!(kind(breaks.wait()), ErrorKind::Panicked);
    assert_eq!(kind(held.wait()), ErrorKind::Closed);
    drops.recv().unwrap();

    // By the value, which holds its own worker.
    type Holder = Dropped<Option<Arc<Worker<RefCell<HolderCell>>>>>;
    struct HolderCell(Holder);
    let (send, drops) = mpsc::channel();
    let worker = Arc::new(Worker::spawn("own", 8, move || Ok(RefCell::new(HolderCell(Dropped(send, None))))).unwrap());
    let own = worker.clone();
    worker.call(move |cell| cell.get_mut().0.1 = Some(own)).unwrap();
    worker.shutdown();
    drop(worker);
    drops.recv().unwrap();

    // While a thread unwinds, and made there, too.
    struct Late(Option<Worker<Dropped>>, Option<Dropped>);
    impl Drop for Late {
        fn drop(&mut self) {
            assert!(thread::panicking());
            let value = self.1.take().unwrap();
            let made = Worker::spawn("late", 1, move || Ok(value)).unwrap();
            assert_eq!(kind(made.call(|_| panic!("x"))), ErrorKind::Panicked);
            self.0.as_ref().unwrap().call(|_| ()).unwrap();
            self.0 = None;
        }
    }
    let ((one, first), (two, second)) = (dropped(), dropped());
    let worker = Worker::spawn("early", 1, move || Ok(one)).unwrap();
    let unwound = thread::spawn(move || {
        let _late = Late(Some(worker), Some(two));
        panic!("unwinds");
    });
    unwound.join().unwrap_err();
    first.try_recv().unwrap();
    second.try_recv().unwrap();
}

#[test]
fn no_turn_begins_after_the_end() {
    let worker = Arc::new(
        Worker::driven(
            "driven",
            4,
            || Ok(0),
            |turns: &mut usize| {
                *turns += 1;
                if *turns == 2 {
                    panic!("a turn after the end")
                }
                Turn::Wait
            },
        )
        .unwrap(),
    );
    let own = worker.clone();
    worker.call(move |_| own.shutdown()).unwrap();
    worker.shutdown();
    assert_eq!(worker.call(|_| ()).unwrap_err().to_string(), "worker `driven` has been shut down");
}
