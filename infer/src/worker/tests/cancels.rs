use super::*;

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
