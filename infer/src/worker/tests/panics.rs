use super::*;
use std::{panic, sync::atomic::AtomicUsize};

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
    assert!(
        words.contains(&format!("worker/tests/panics.rs:{line}:")) && words.ends_with(": the 5th wheel"),
        "{words}"
    );
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
    assert!(told(|| _ = Vec::<u8>::new().remove(3)).contains("worker/tests/panics.rs:"), "where it was called");
    assert!(told(|| panic::panic_any(7)).ends_with(": with a value that is no text"));
    // No hook sees a payload that goes on, and the place of another panic is not its own.
    let goes_on = told(|| {
        let _ = panic::catch_unwind(|| panic!("caught in the job"));
        panic::resume_unwind(Box::new("goes on"))
    });
    assert_eq!(goes_on, "a job of worker `shaky` panicked: goes on");
    // Caught, looked at, and let go on: the same words.
    let on = told(|| crate::panics::go_on(crate::panics::catch(|| panic!("looked at")).unwrap_err()));
    assert!(on.starts_with("a job of worker `shaky` panicked at ") && on.ends_with(": looked at"), "{on}");
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
        let case = "worker::tests::panics::hooks_of_others_are_called_once_and_for_all_threads";
        let mut child = std::process::Command::new(this);
        let output = test_kit::child::output(child.args([case, "--exact"]).env(NAME, "1"));
        assert!(output.status.success(), "{output:?}");
        return;
    }
    static SEEN: AtomicUsize = AtomicUsize::new(0);
    panic::set_hook(Box::new(|_| _ = SEEN.fetch_add(1, SeqCst)));
    for round in 0..3 {
        let worker = Worker::spawn("shaky", 1, || Ok(())).unwrap();
        assert!(worker.call(|()| panic!("x")).unwrap_err().to_string().contains("worker/tests/panics.rs"));
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
