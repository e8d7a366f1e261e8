use super::*;

/// A pass takes a moment, so that there is something to interrupt.
fn slow() -> Script {
    Script::new().with_hook(|_| {
        thread::sleep(Duration::from_micros(200));
        None
    })
}

fn is_closed(generation: Generation) -> bool {
    let mut last = None;
    for piece in generation {
        last = Some(piece);
    }
    matches!(last, Some(Err(error)) if error.kind() == ErrorKind::Closed)
}

#[test]
fn live_streams_of_a_dropped_engine_end_with_an_error() {
    let engine = builder(slow()).with_sequences(2).build().unwrap();
    let mut all: Vec<_> = (0..5).map(|_| engine.generate(endless().with_max_tokens(100_000))).collect();
    assert!(all[0].wait().unwrap().is_ok());
    let readers: Vec<_> = all.drain(..2).map(|one| thread::spawn(move || is_closed(one))).collect();
    drop(engine);
    assert!(readers.into_iter().all(|reader| reader.join().unwrap()));
    assert!(all.into_iter().all(is_closed));
}

#[test]
fn use_after_shutdown_is_closed() {
    let engine = engine(Script::new());
    let other = engine.clone();
    engine.shutdown();
    engine.shutdown();
    assert_eq!(kind(other.generate(ask("too late")).complete()), ErrorKind::Closed);
    assert_eq!(kind(other.score("too late").wait()), ErrorKind::Closed);
    assert_eq!(kind(other.embed(["too late"]).wait()), ErrorKind::Closed);
    assert_eq!(other.tokenize("in time", Special::NONE).unwrap().len(), 7);
    assert_eq!(other.stats().running, 0);
    other.drain();
}

#[test]
fn a_drained_engine_lets_what_runs_end_and_takes_no_more() {
    let hold = Hold::default();
    let engine = builder(hold.on(Script::new())).with_sequences(1).build().unwrap();
    let (running, waiting) = (engine.generate(ask("this runs")), engine.generate(ask("this waits")));
    let score = engine.score("this too");
    hold.wait();
    assert!(!engine.drain_until(Instant::now() + Duration::from_millis(5)));
    assert_eq!(kind(engine.generate(ask("too late")).complete()), ErrorKind::Closed);
    hold.open();
    engine.drain();
    assert!(engine.drain_until(Instant::now()));
    engine.shutdown();
    for one in [running, waiting] {
        assert_eq!(one.complete().unwrap().tokens.len(), 8);
    }
    score.wait().unwrap();
}

#[test]
fn shutdown_stops_the_pass_that_runs() {
    let hold = Hold::default();
    let engine = engine(hold.on(Script::new()));
    let generation = engine.generate(endless());
    hold.wait();
    thread::scope(|scope| {
        let shutdown = scope.spawn(|| engine.shutdown());
        until("the worker is closed", || kind_of_submit(&engine) == Some(ErrorKind::Closed));
        hold.open();
        shutdown.join().unwrap();
    });
    assert_eq!(hold.seen(), 1, "the pass ended at the moment it was held at, and no other began");
    assert!(is_closed(generation));
}

fn kind_of_submit(engine: &Engine) -> Option<ErrorKind> {
    engine.0.worker.try_submit(|_| ()).err().map(|error| error.kind())
}

#[test]
fn a_waiting_caller_is_told_of_the_end() {
    let hold = Hold::default();
    let engine = builder(hold.on(Script::new())).with_sequences(1).with_queue(1, WhenFull::Wait).build().unwrap();
    let _running = engine.generate(endless());
    hold.wait();
    let _waiting = engine.generate(endless());
    thread::scope(|scope| {
        let caller = scope.spawn(|| kind(engine.generate(endless()).complete()));
        let shutdown = scope.spawn(|| engine.shutdown());
        assert_eq!(caller.join().unwrap(), ErrorKind::Closed);
        hold.open();
        shutdown.join().unwrap();
    });
}

/// Drops what it holds when it is woken.
struct Drops(Mutex<Option<Engine>>);

impl Wake for Drops {
    fn wake(self: Arc<Self>) {
        let engine = self.0.lock().unwrap().take();
        if let Some(engine) = engine {
            assert!(!engine.drain_until(Instant::now() + Duration::from_secs(60)), "its own thread does not wait");
            engine.shutdown();
        }
    }
}

#[test]
fn may_be_dropped_on_its_own_thread() {
    let engine = engine(slow());
    let mut generation = engine.generate(endless());
    let waker = Waker::from(Arc::new(Drops(Mutex::new(Some(engine)))));
    let mut stream = std::pin::Pin::new(&mut generation);
    while futures_core::Stream::poll_next(stream.as_mut(), &mut Context::from_waker(&waker)).is_ready() {}
    assert!(is_closed(generation), "nothing hangs");
}

#[test]
fn may_be_dropped_by_a_job_of_its_own_or_with_one() {
    let first = engine(Script::new());
    let inside = first.clone();
    let done = first.0.worker.submit(move |_| drop(inside));
    drop(first);
    // Run, or refused by the drop that came first.
    drop(done.wait());

    let hold = Hold::default();
    let second = engine(hold.on(Script::new()));
    let generation = second.generate(endless());
    hold.wait();
    let holder = second.clone();
    drop(second.0.worker.submit(move |_| drop(holder)));
    drop(second);
    hold.open();
    assert!(is_closed(generation));
}

#[test]
fn may_be_dropped_while_another_thread_reads() {
    for _ in 0..20 {
        let engine = engine(slow());
        let other = engine.clone();
        let generation = engine.generate(endless());
        let reader = thread::spawn(move || is_closed(generation));
        let dropper = thread::spawn(move || drop(other));
        drop(engine);
        dropper.join().unwrap();
        assert!(reader.join().unwrap());
    }
}

#[test]
fn a_progress_function_may_end_it_and_may_drop_another_engine() {
    let path = std::env::temp_dir().join(format!("infer-engine-{}.gguf", std::process::id()));
    std::fs::write(&path, b"GGUF\x03\0\0\0").unwrap();
    let mut other = Some(engine(slow()));
    let generation = other.as_ref().unwrap().generate(endless());
    let built = Engine::builder(&path)
        .with_progress(move |_| {
            drop(other.take());
            std::ops::ControlFlow::Break(())
        })
        .build();
    std::fs::remove_file(&path).unwrap();
    assert!(built.is_err());
    assert!(is_closed(generation), "the function was dropped with what it held");
}

#[test]
fn a_panic_ends_the_engine_and_says_itself_to_everybody() {
    let hold = Hold::default();
    let holds = hold.clone();
    let engine = builder(Script::new().with_hook(move |step| {
        holds.pass();
        assert!(step.pass < 3, "this pass panics");
        None
    }))
    .with_sequences(1)
    .build()
    .unwrap();
    let running = engine.generate(endless());
    hold.wait();
    // It is taken between this pass and the next.
    let waiting = engine.generate(endless());
    hold.open();
    for generation in [running, waiting] {
        let error = generation.complete().unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Panicked);
        assert!(error.to_string().contains("this pass panics"), "{error}");
    }
    until("the worker has ended", || kind_of_submit(&engine) == Some(ErrorKind::Closed));
    let error = engine.generate(endless()).complete().unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Closed);
    assert!(error.to_string().contains("this pass panics"), "{error}");
    engine.drain();
    engine.shutdown();
}

#[test]
fn its_own_thread_does_not_wait_for_itself() {
    let engine = engine(Script::new());
    // While it is busy all of these come, and none of them is followed by a step but the last.
    let (begun, begins) = std::sync::mpsc::channel();
    let (go, gate) = std::sync::mpsc::channel::<()>();
    let busy = engine.0.worker.submit(move |_| {
        begun.send(()).unwrap();
        gate.recv().unwrap_err();
    });
    begins.recv().unwrap();
    let mut generation = engine.generate(ask("later"));
    let score = engine.score("later");
    let answered = engine.0.worker.submit(move |_| (kind(generation.wait().unwrap()), kind(score.wait()), generation));
    drop(go);
    busy.wait().unwrap();
    let (_, _, generation) = answered.wait().unwrap();
    generation.complete().unwrap();
}
