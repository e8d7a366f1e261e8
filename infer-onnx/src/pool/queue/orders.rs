//! The queue in orders of the scheduler's choice: `cargo xtask orders`. A wake-up that is lost, and a thing that is, are a deadlock.

use super::{Patience, Queue, Refusal};
use shuttle::{
    sync::atomic::{AtomicBool, Ordering::SeqCst},
    thread,
};
use std::{
    sync::Arc,
    time::{Duration, Instant},
};
use test_kit::orders::check_orders;

/// A deadline that is not over when it is looked at: when it comes is the scheduler's choice.
fn some_time() -> Patience {
    Patience::Until(Instant::now() + Duration::from_secs(3600))
}

/// Something of which is known whether somebody has it.
#[derive(Default)]
struct Thing {
    is_had: AtomicBool,
}

/// Uses a thing for a moment, if there is one, and gives it back.
fn turn(queue: &Queue<Thing>, patience: Patience) -> Result<(), Refusal> {
    let thing = queue.take(patience)?;
    assert!(!thing.is_had.swap(true, SeqCst), "somebody else has it");
    thread::yield_now();
    thing.is_had.store(false, SeqCst);
    queue.give(thing);
    Ok(())
}

fn until_waiting<T>(queue: &Queue<T>, count: usize) {
    while queue.count().waiting != count {
        thread::yield_now();
    }
}

#[test]
fn whoever_waits_is_served_and_nothing_is_lost_or_had_twice() {
    for things in [1, 2] {
        check_orders(move || {
            let queue = Arc::new(Queue::new((0..things).map(|_| Thing::default()).collect(), 8));
            let threads: Vec<_> = [Patience::Endless, some_time(), Patience::Endless, Patience::None]
                .into_iter()
                .map(|patience| {
                    let queue = queue.clone();
                    thread::spawn(move || (patience, turn(&queue, patience), turn(&queue, patience)))
                })
                .collect();
            let mut taken = 0;
            for thread in threads {
                let (patience, first, second) = thread.join().unwrap();
                for outcome in [first, second] {
                    assert!(outcome.is_ok() || patience != Patience::Endless && outcome == Err(Refusal::Late));
                    taken += u64::from(outcome.is_ok());
                }
            }
            let count = queue.count();
            assert_eq!((count.idle, count.waiting), (things, 0));
            assert_eq!((count.taken, count.taken + count.refused), (taken, 8));
        });
    }
}

/// A deadline that comes together with what was waited for: it is taken, or it goes to who waits behind.
#[test]
fn what_is_given_to_one_who_gives_up_is_not_lost() {
    check_orders(|| {
        let queue = Arc::new(Queue::new(vec![Thing::default()], 8));
        let thing = queue.take(Patience::None).unwrap();
        let hurried = thread::spawn({
            let queue = queue.clone();
            move || turn(&queue, some_time())
        });
        let patient = thread::spawn({
            let queue = queue.clone();
            move || turn(&queue, Patience::Endless)
        });
        queue.give(thing);
        assert!(matches!(hurried.join().unwrap(), Ok(()) | Err(Refusal::Late)));
        assert_eq!(patient.join().unwrap(), Ok(()));
        assert_eq!((queue.count().idle, queue.count().waiting), (1, 0));
    });
}

#[test]
fn who_came_first_is_served_first() {
    check_orders(|| {
        let queue = Arc::new(Queue::new(vec![()], 2));
        queue.take(Patience::None).unwrap();
        let served = Arc::new(shuttle::sync::Mutex::new(Vec::new()));
        let threads: Vec<_> = (0..2)
            .map(|number| {
                let (other, served) = (queue.clone(), served.clone());
                let waits = thread::spawn(move || {
                    other.take(Patience::Endless).unwrap();
                    served.lock().unwrap().push(number);
                    other.give(());
                });
                until_waiting(&queue, number + 1);
                waits
            })
            .collect();
        // As many wait as may.
        assert_eq!(queue.take(Patience::Endless), Err(Refusal::Full));
        queue.give(());
        // What was given belongs to who waited, awake or not; and when all have had it, it is there again.
        let outcome = queue.take(Patience::None);
        assert!(outcome == Err(Refusal::Late) || queue.count().waited == 2);
        if outcome.is_ok() {
            queue.give(());
        }
        for thread in threads {
            thread.join().unwrap();
        }
        assert_eq!(*served.lock().unwrap(), [0, 1]);
        assert_eq!((queue.count().idle, queue.count().waiting), (1, 0));
    });
}
