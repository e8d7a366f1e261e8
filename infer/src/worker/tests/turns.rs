use super::*;

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
