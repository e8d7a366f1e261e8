use super::{Ticket, Turn, Worker};
use infer_core::{Error, ErrorKind, Interrupt, Result};
use std::{
    cell::RefCell,
    future::Future,
    panic,
    pin::Pin,
    rc::Rc,
    sync::{
        Arc, Barrier,
        atomic::{AtomicBool, AtomicUsize, Ordering::SeqCst},
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
    assert!(words.contains(&format!("worker/tests.rs:{line}:")) && words.ends_with(": half built"), "{words}");

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
fn a_cancelled_job_that_waits_never_begins_and_makes_room() {
    let worker = Worker::spawn("narrow", 1, || Ok(())).unwrap();
    let (go, first) = busy(&worker);
    let (held, drops) = dropped();
    let ticket = worker.submit(move |()| drop(held));
    assert_eq!(kind(worker.try_submit(|()| ())), ErrorKind::QueueFull);
    ticket.cancel();
    assert_eq!(drops.try_recv().unwrap(), thread::current().id(), "the job is gone, and did not run");
    assert_eq!(kind(ticket.wait()), ErrorKind::Cancelled);
    let next = worker.try_submit(|()| 7).unwrap();
    first.cancel(); // there is no interrupt: nothing happens
    go.send(()).unwrap();
    first.wait().unwrap();
    assert_eq!(next.wait().unwrap(), 7);
}

/// What a runtime is: it computes until it is done or its flag is up.
struct Native(Arc<AtomicBool>);

impl Native {
    fn worker() -> Worker<Self> {
        let worker = Worker::spawn("native", 64, || Ok(Self(Arc::default()))).unwrap();
        worker
            .interruptible(|native| {
                let flag = native.0.clone();
                Interrupt::new(move |up| flag.store(up, SeqCst))
            })
            .unwrap()
    }

    fn compute(&mut self, time: Duration) -> Result<()> {
        let begin = Instant::now();
        while begin.elapsed() < time {
            if self.0.load(SeqCst) {
                return Err(ErrorKind::Cancelled.into());
            }
            std::hint::spin_loop();
        }
        Ok(())
    }
}

const LONG: Duration = Duration::from_secs(600);

#[test]
fn a_deadline_and_a_cancel_reach_the_job_that_runs() {
    let worker = Native::worker();
    let runs = worker.submit(|native| native.compute(LONG));
    let waits = worker.submit(|native| native.compute(LONG));
    assert_eq!(kind(waits.wait_until(Instant::now())), ErrorKind::Cancelled, "it never began");
    let answer = runs.wait_until(Instant::now() + Duration::from_millis(5)).unwrap();
    assert_eq!(kind(answer), ErrorKind::Cancelled, "the job's own answer");

    let (begun, begins) = mpsc::channel();
    let runs = worker.submit(move |native| {
        begun.send(()).unwrap();
        native.compute(LONG)
    });
    begins.recv().unwrap();
    runs.cancel();
    runs.cancel(); // twice is once
    assert_eq!(kind(runs.wait().unwrap()), ErrorKind::Cancelled);
    worker.call(|native| native.compute(Duration::from_micros(10))).unwrap().unwrap();
    let met = worker.submit(|native| native.compute(Duration::ZERO));
    met.wait_until(Instant::now() + LONG).unwrap().unwrap();
}

#[test]
fn a_cancel_that_races_with_the_end_of_its_job_never_hits_the_next() {
    let worker = Native::worker();
    for round in 0..3_000 {
        let time = Duration::from_micros(round % 20);
        let races = worker.submit(move |native| native.compute(time));
        let next = worker.submit(|native| native.compute(Duration::from_micros(10)));
        races.cancel();
        let _ = races.wait();
        next.wait().unwrap().expect("nobody has cancelled this one");
    }
}

#[test]
fn a_panic_comes_back_with_its_place_and_ends_the_worker() {
    let (value, drops) = dropped();
    let worker = Worker::spawn("shaky", 8, move || Ok(value)).unwrap();
    let (go, first) = busy(&worker);
    let line = line!() + 1;
    let breaks = worker.submit(|_| -> u32 { panic!("the {}th wheel", 5) });
    let ran = Arc::new(AtomicBool::new(false));
    let after = {
        let ran = ran.clone();
        worker.submit(move |_| ran.store(true, SeqCst))
    };
    go.send(()).unwrap();
    first.wait().unwrap();

    let error = breaks.wait().unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Panicked);
    let words = error.to_string();
    assert!(words.starts_with("a job of worker `shaky` panicked at "), "{words}");
    assert!(words.contains(&format!("worker/tests.rs:{line}:")) && words.ends_with(": the 5th wheel"), "{words}");
    assert_ne!(drops.try_recv().expect("the value is gone by then"), thread::current().id());

    for answer in [after.wait(), worker.call(|_| ()), worker.submit(|_| ()).wait(), worker.try_submit(|_| ()).map(drop)]
    {
        let error = answer.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Closed);
        assert_eq!(error.to_string(), format!("worker `shaky` has ended: {words}"));
    }
    assert!(!ran.load(SeqCst), "nothing runs on a value that panicked");
    worker.shutdown();
}

#[test]
fn a_panic_of_any_kind_is_told() {
    let told = |job: fn()| {
        let worker = Worker::spawn("shaky", 1, || Ok(())).unwrap();
        worker.call(move |()| job()).unwrap_err().to_string()
    };
    assert!(told(|| panic!("a literal")).ends_with(": a literal"));
    assert!(told(|| _ = Vec::<u8>::new().remove(3)).contains("worker/tests.rs:"), "where it was called");
    assert!(told(|| panic::panic_any(7)).ends_with(": with a value that is no text"));
    // No hook sees a payload that goes on, and the place of another panic is not its own.
    let goes_on = told(|| {
        let _ = panic::catch_unwind(|| panic!("caught in the job"));
        panic::resume_unwind(Box::new("goes on"))
    });
    assert_eq!(goes_on, "a job of worker `shaky` panicked: goes on");
    // A payload that panics when it is dropped.
    struct Bomb;
    impl Drop for Bomb {
        fn drop(&mut self) {
            panic!("a payload")
        }
    }
    assert!(told(|| panic::panic_any(Bomb)).ends_with(": with a value that is no text"));
}

#[test]
fn panics_of_drops_and_wakers_are_contained() {
    struct Bomb(mpsc::Sender<()>);
    impl Drop for Bomb {
        fn drop(&mut self) {
            let _ = self.0.send(());
            panic!("a bomb")
        }
    }
    // The value's drop.
    let (send, drops) = mpsc::channel();
    let bomb = Bomb(send.clone());
    drop(Worker::spawn("bomb", 1, move || Ok(bomb)).unwrap());
    drops.try_recv().unwrap();
    // What a refused job holds: it is answered.
    let worker = Worker::spawn("bomb", 2, || Ok(())).unwrap();
    let (go, first) = busy(&worker);
    let (one, two) = (Bomb(send.clone()), Bomb(send.clone()));
    let cancelled = worker.submit(move |()| drop(one));
    let closed = worker.submit(move |()| drop(two));
    cancelled.cancel();
    assert_eq!(kind(cancelled.wait()), ErrorKind::Cancelled);
    thread::scope(|scope| {
        scope.spawn(|| worker.shutdown());
        assert_eq!(kind(closed.wait()), ErrorKind::Closed);
        go.send(()).unwrap();
    });
    first.wait().unwrap();
    assert_eq!(drops.try_iter().count(), 2);
    // An answer that nobody wants, and a waker: the worker goes on.
    struct Loud;
    impl Wake for Loud {
        fn wake(self: Arc<Self>) {
            panic!("a waker")
        }
    }
    let worker = Worker::spawn("bomb", 2, || Ok(())).unwrap();
    let (go, _first) = busy(&worker);
    let bomb = Bomb(send);
    drop(worker.submit(move |()| bomb));
    let mut ticket = worker.submit(|()| 3);
    let waker = Waker::from(Arc::new(Loud));
    assert!(Pin::new(&mut ticket).poll(&mut Context::from_waker(&waker)).is_pending());
    go.send(()).unwrap();
    assert_eq!(ticket.wait().unwrap(), 3);
    assert_eq!(worker.call(|()| 4).unwrap(), 4);
    assert_eq!(drops.try_iter().count(), 1);
}

#[test]
fn hooks_of_others_are_called_once_and_for_all_threads() {
    const NAME: &str = "INFER_TEST_HOOKS";
    if std::env::var_os(NAME).is_none() {
        // The hook is the process's, and so are the other tests'.
        let this = std::env::current_exe().unwrap();
        let case = "worker::tests::hooks_of_others_are_called_once_and_for_all_threads";
        let output = std::process::Command::new(this).args([case, "--exact"]).env(NAME, "1").output().unwrap();
        assert!(output.status.success(), "{output:?}");
        return;
    }
    static SEEN: AtomicUsize = AtomicUsize::new(0);
    panic::set_hook(Box::new(|_| _ = SEEN.fetch_add(1, SeqCst)));
    for round in 0..3 {
        let worker = Worker::spawn("shaky", 1, || Ok(())).unwrap();
        assert!(worker.call(|()| panic!("x")).unwrap_err().to_string().contains("worker/tests.rs"));
        thread::spawn(|| panic!("y")).join().unwrap_err();
        assert_eq!(SEEN.load(SeqCst), 2 * (round + 1));
    }
    // Whoever replaces it takes the place away, and no more.
    panic::set_hook(Box::new(|_| {}));
    let worker = Worker::spawn("shaky", 1, || Ok(())).unwrap();
    let error = worker.call(|()| panic!("x")).unwrap_err();
    assert_eq!(error.to_string(), "a job of worker `shaky` panicked: x");
}

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

/// What a driven worker's value counts.
#[derive(Default)]
struct Counts {
    turns: usize,
    /// How many turns there had been at each job.
    jobs: Vec<usize>,
}

#[test]
fn neither_jobs_nor_turns_starve() {
    let worker = Worker::driven(
        "driven",
        4,
        || Ok(Counts::default()),
        |counts| {
            counts.turns += 1;
            Turn::Again
        },
    )
    .unwrap();
    let over = AtomicBool::new(false);
    thread::scope(|scope| {
        for _ in 0..3 {
            scope.spawn(|| {
                while !over.load(SeqCst) {
                    drop(worker.submit(|counts| counts.jobs.push(counts.turns)));
                }
            });
        }
        let patience = Instant::now() + Duration::from_secs(60);
        let enough = |counts: &mut Counts| counts.turns > 2_000 && counts.jobs.len() > 500;
        while !worker.call(enough).unwrap() && Instant::now() < patience {}
        over.store(true, SeqCst);
    });
    let (turns, jobs) = worker.call(|counts| (counts.turns, std::mem::take(&mut counts.jobs))).unwrap();
    assert!(turns > 2_000 && jobs.len() > 500, "{turns} turns, {} jobs", jobs.len());
    // No more between two turns than the queue holds; the calls of above are not among them.
    assert!(jobs.chunk_by(|one, other| one == other).all(|between| between.len() <= 4));
}

#[test]
fn a_turn_waits_for_a_job_or_for_a_time() {
    let waits = Worker::driven(
        "waits",
        4,
        || Ok(0),
        |turns: &mut usize| {
            *turns += 1;
            Turn::Wait
        },
    )
    .unwrap();
    thread::sleep(Duration::from_millis(10));
    assert_eq!(waits.call(|turns| *turns).unwrap(), 1, "the first one comes before the first job");
    assert_eq!(waits.call(|turns| *turns).unwrap(), 2);

    struct Beat(Vec<Instant>, Duration);
    let beats = |every: Duration| {
        Worker::driven(
            "beats",
            4,
            move || Ok(Beat(Vec::new(), every)),
            |beat: &mut Beat| {
                beat.0.push(Instant::now());
                Turn::Until(Instant::now() + beat.1)
            },
        )
        .unwrap()
    };
    let often = beats(Duration::from_millis(2));
    while often.call(|beat| beat.0.len()).unwrap() < 3 {
        thread::sleep(Duration::from_millis(5));
    }
    let seldom = beats(LONG);
    assert_eq!(seldom.call(|beat| beat.0.len()).unwrap(), 1);
    assert_eq!(seldom.call(|beat| beat.0.len()).unwrap(), 2, "a job does not wait for the time");
    drop(seldom); // nor does the end
}

#[test]
fn a_turn_that_panics_ends_the_worker() {
    let (value, drops) = dropped();
    let worker = Worker::driven(
        "turns",
        4,
        move || Ok((value, false)),
        |(_, fails)| {
            assert!(!*fails, "out of turn");
            Turn::Wait
        },
    )
    .unwrap();
    let id = worker.call(|_| thread::current().id()).unwrap();
    let (go, first) = busy(&worker);
    let sets = worker.submit(|(_, fails)| *fails = true);
    go.send(()).unwrap();
    first.wait().unwrap();
    sets.wait().unwrap();
    assert_eq!(drops.recv().unwrap(), id);
    let error = worker.call(|_| ()).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Closed);
    let words = error.to_string();
    assert!(words.starts_with("worker `turns` has ended: the turn of worker `turns` panicked at "), "{words}");
    assert!(words.ends_with(": out of turn"), "{words}");
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

#[test]
fn an_interrupt_that_panics_ends_the_worker() {
    let worker = Worker::spawn("native", 4, || Ok(Arc::new(AtomicBool::new(false)))).unwrap();
    let worker = worker
        .interruptible(|flag| {
            let flag = flag.clone();
            Interrupt::new(move |up| {
                assert!(up, "it does not go down");
                flag.store(true, SeqCst);
            })
        })
        .unwrap();
    let (begun, begins) = mpsc::channel();
    let runs = worker.submit(move |flag| {
        begun.send(()).unwrap();
        while !flag.load(SeqCst) {
            thread::yield_now();
        }
    });
    begins.recv().unwrap();
    runs.cancel();
    let error = runs.wait().unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Panicked);
    assert!(error.to_string().starts_with("the interrupt of worker `native` panicked at "), "{error}");
    assert_eq!(kind(worker.call(|_| ())), ErrorKind::Closed);
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
