//! Places in the queue, and what draining waits for, in orders of the scheduler's choice: `cargo xtask orders`.

use super::{live::Gate, shared::Shared};
use crate::sync::{
    atomic::{AtomicUsize, Ordering::SeqCst},
    check_orders, thread,
};
use infer_core::{Error, ErrorKind};
use std::{sync::Arc, time::Instant};

#[test]
fn as_many_wait_as_may_and_each_gets_a_place() {
    check_orders(|| {
        let (shared, inside) = (Arc::new(Shared::new()), Arc::new(AtomicUsize::new(0)));
        let threads: Vec<_> = [None, None, None, Some(Instant::now())]
            .into_iter()
            .map(|until| {
                let (shared, inside) = (shared.clone(), inside.clone());
                thread::spawn(move || match shared.enter_by(1, until) {
                    Ok(place) => {
                        assert_eq!(inside.fetch_add(1, SeqCst), 0, "one place");
                        thread::yield_now();
                        inside.fetch_sub(1, SeqCst);
                        drop(place);
                    }
                    // Its time came first.
                    Err(error) => assert!(error.kind() == ErrorKind::QueueFull && until.is_some()),
                })
            })
            .collect();
        for thread in threads {
            thread.join().unwrap();
        }
        assert_eq!(shared.waiting(), 0);
    });
}

#[test]
fn who_waits_for_a_place_is_told_that_there_will_be_none() {
    check_orders(|| {
        let shared = Arc::new(Shared::new());
        let taken = shared.enter(1).unwrap();
        let threads: Vec<_> = (0..3)
            .map(|_| {
                let shared = shared.clone();
                thread::spawn(move || shared.enter_by(1, None).map(drop))
            })
            .collect();
        shared.close();
        for thread in threads {
            let answer = thread.join().unwrap();
            assert_eq!(answer.map_err(|error: Error| error.kind()), Err(ErrorKind::Closed));
        }
        drop(taken);
    });
}

#[test]
fn draining_ends_with_the_last_request() {
    check_orders(|| {
        let gate = Gate::new();
        let requests: Vec<_> = (0..2).map(|_| gate.enter()).collect();
        let told = Arc::new(AtomicUsize::new(0));
        let ends: Vec<_> = requests
            .into_iter()
            .map(|request| {
                let told = told.clone();
                thread::spawn(move || {
                    told.fetch_add(1, SeqCst);
                    drop(request);
                })
            })
            .collect();
        let (early, count) = (gate.clone(), told.clone());
        let early = thread::spawn(move || !early.wait(Some(Instant::now())) || count.load(SeqCst) == 2);
        assert!(gate.wait(None));
        assert_eq!(told.load(SeqCst), 2);
        assert!(early.join().unwrap());
        for end in ends {
            end.join().unwrap();
        }
    });
}
