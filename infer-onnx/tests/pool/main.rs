//! A pool: many threads, sessions that are given back whatever happens, weights that are shared.

#[path = "../kit/mod.rs"]
mod kit;
mod models;
mod weights;

use infer_core::{Error, ErrorKind, Result};
use infer_onnx::{Graph, Pool, PoolGuard, PoolOptions, TensorView};
use kit::{model, onnx};
use models::{WIDTH, run, whole};
use std::{
    panic::{AssertUnwindSafe, catch_unwind},
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering::SeqCst},
        mpsc,
    },
    thread,
    time::{Duration, Instant},
};

fn pool(options: PoolOptions) -> Pool {
    Pool::from_bytes(&onnx(), &whole(2, WIDTH), &options).unwrap()
}

fn alone(seed: usize) -> Vec<f32> {
    let mut graph = kit::load(&whole(2, WIDTH));
    run(&mut graph, WIDTH, seed).unwrap()
}

fn until_waiting(pool: &Pool, threads: usize) {
    while pool.stats().waiting != threads {
        thread::yield_now();
    }
}

#[test]
fn what_may_cross_threads_does() {
    fn send<T: Send + 'static>() {}
    fn shared<T: Send + Sync + Clone + 'static>() {}
    shared::<Pool>();
    shared::<PoolOptions>();
    send::<PoolGuard>();
}

#[test]
fn many_threads_get_what_one_gets() {
    let pool = pool(PoolOptions::new(3));
    let expected: Vec<Vec<f32>> = (0..13).map(alone).collect();
    thread::scope(|scope| {
        for first in 0..8 {
            let (pool, expected) = (pool.clone(), &expected);
            scope.spawn(move || {
                for round in 0..50 {
                    let seed = (first * 5 + round) % 13;
                    assert_eq!(pool.run(|graph| run(graph, WIDTH, seed)).unwrap(), expected[seed]);
                }
            });
        }
    });
    let stats = pool.stats();
    assert_eq!((stats.sessions, stats.idle, stats.waiting, stats.lent, stats.refused), (3, 3, 0, 400, 0));
}

#[test]
fn no_more_are_lent_than_there_are() {
    let pool = pool(PoolOptions::new(2).with_queue(0));
    let first = pool.get().unwrap();
    let second = pool.get_until(Instant::now()).unwrap();
    assert!(pool.try_get().is_none());
    let error = pool.get().unwrap_err();
    assert_eq!(error.kind(), ErrorKind::QueueFull, "{error}");
    let soon = Instant::now() + Duration::from_millis(5);
    let late = pool.get_until(soon).unwrap_err();
    assert_eq!(late.kind(), ErrorKind::QueueFull, "nobody may wait: {late}");
    drop(first);
    assert!(pool.try_get().is_some());
    drop(second);
    assert_eq!(pool.stats().idle, 2);
}

#[test]
fn who_waits_is_served_in_order_or_told_that_it_is_late() {
    let pool = pool(PoolOptions::new(1).with_queue(8));
    let held = pool.get().unwrap();
    let error = pool.get_until(Instant::now() + Duration::from_millis(5)).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Cancelled, "{error}");
    let (told, hears) = mpsc::channel();
    thread::scope(|scope| {
        for number in 0..4 {
            let (pool, told) = (&pool, told.clone());
            scope.spawn(move || {
                let guard = pool.get().unwrap();
                told.send(number).unwrap();
                drop(guard);
            });
            until_waiting(pool, number + 1);
        }
        drop(held);
    });
    assert_eq!(hears.try_iter().collect::<Vec<_>>(), [0, 1, 2, 3]);
    assert_eq!(pool.stats().waited, 4);
}

#[test]
fn a_panic_gives_the_session_back() {
    let pool = pool(PoolOptions::new(1));
    for _ in 0..3 {
        let ended = catch_unwind(AssertUnwindSafe(|| {
            pool.run(|graph| -> Result<()> {
                run(graph, WIDTH, 0)?;
                panic!("in the middle of it")
            })
        }));
        assert!(ended.is_err());
    }
    thread::scope(|scope| {
        let waits = scope.spawn(|| {
            let guard = pool.get().unwrap();
            until_waiting(&pool, 1);
            let _guard = guard;
            panic!("while another one waits")
        });
        while pool.stats().idle == 1 {
            thread::yield_now();
        }
        assert_eq!(pool.run(|graph| run(graph, WIDTH, 4)).unwrap(), alone(4));
        assert!(waits.join().is_err());
    });
    assert_eq!(pool.stats().idle, 1);
}

#[test]
fn an_error_of_a_run_stays_with_it() {
    let pool = pool(PoolOptions::new(1));
    let error = pool.run(|graph| run(graph, WIDTH + 1, 0)).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::InvalidInput, "{error}");
    let error = pool.run(|_| Err::<(), _>(Error::invalid_input("the caller's own"))).unwrap_err();
    assert_eq!(error.to_string(), "the caller's own");
    assert_eq!(pool.run(|graph| run(graph, WIDTH, 1)).unwrap(), alone(1));
}

#[test]
fn the_next_one_sees_nothing_of_the_last_one() {
    let pool = pool(PoolOptions::new(1));
    pool.run(|graph| run(graph, WIDTH, 1).map(drop)).unwrap();
    assert!(pool.get().unwrap().outputs().tensor("y").is_err(), "outputs of somebody else");
}

#[test]
fn an_interrupt_reaches_who_has_the_graph_and_nobody_after() {
    let onnx = onnx();
    let pool = Pool::from_bytes(&onnx, &model::adding(), &PoolOptions::new(1)).unwrap();
    let x = [1.0_f32; 1024];
    let add = |graph: &mut Graph, times: i64| -> Result<f32> {
        let times = [times];
        graph.run([("n", TensorView::new(&[], &times)?), ("x", TensorView::new(&[1024], &x)?)])?;
        Ok(graph.outputs().tensor("y")?.as_slice::<f32>()?[0])
    };
    let (interrupts, taken) = mpsc::channel();
    thread::scope(|scope| {
        let endless = scope.spawn(|| {
            pool.run(|graph| {
                interrupts.send(graph.interrupt()).unwrap();
                add(graph, i64::MAX)
            })
        });
        let interrupt = taken.recv().unwrap();
        interrupt.raise();
        let error = endless.join().unwrap().unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Cancelled, "{error}");
        // Raised for ever, and it is the same session.
        assert_eq!(pool.run(|graph| add(graph, 3)).unwrap(), 4.0);
        pool.run(|graph| {
            interrupt.lower();
            interrupt.raise();
            add(graph, 3)
        })
        .unwrap();
    });
    // Raised by one that is gone, also where a deadline was watched.
    pool.run(|graph| {
        let far = Instant::now() + Duration::from_secs(3600);
        let one = [1_i64];
        graph.run_until(far, [("n", TensorView::new(&[], &one)?), ("x", TensorView::new(&[1024], &x)?)])?;
        graph.interrupt().raise();
        Ok(())
    })
    .unwrap();
    assert_eq!(pool.run(|graph| add(graph, 3)).unwrap(), 4.0);
}

#[test]
fn what_is_lent_outlives_the_pool() {
    let pool = pool(PoolOptions::new(2));
    let (mut guard, other) = (pool.get().unwrap(), pool.clone());
    let waits = Arc::new(AtomicUsize::new(0));
    let _second = pool.get().unwrap();
    let waiter = thread::spawn({
        let waits = waits.clone();
        move || {
            let mut graph = other.get().unwrap();
            waits.fetch_add(1, SeqCst);
            run(&mut graph, WIDTH, 2)
        }
    });
    until_waiting(&pool, 1);
    drop(pool);
    assert_eq!(run(&mut guard, WIDTH, 3).unwrap(), alone(3));
    assert_eq!(waits.load(SeqCst), 0);
    drop(guard);
    assert_eq!(waiter.join().unwrap().unwrap(), alone(2));
}

#[test]
fn a_pool_of_nothing_is_an_error() {
    let error = Pool::from_bytes(&onnx(), &whole(1, WIDTH), &PoolOptions::new(0)).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::InvalidInput);
    assert!(Pool::from_bytes(&onnx(), b"no model", &PoolOptions::new(2)).is_err());
    assert!(Pool::open(&onnx(), "/no/such/model.onnx", &PoolOptions::new(2)).is_err());
}
