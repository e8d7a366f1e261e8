//! A pool: many threads, sessions that are given back whatever happens, weights that are shared.

mod kit;

use infer_core::{Error, ErrorKind, Result};
use infer_onnx::{Graph, Pool, PoolGuard, PoolOptions, TensorView};
use kit::{
    Folder, child,
    model::{self, GraphOf, element, node},
    onnx,
};
use std::{
    panic::{AssertUnwindSafe, catch_unwind},
    path::PathBuf,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering::SeqCst},
        mpsc,
    },
    thread,
    time::{Duration, Instant},
};

const WIDTH: usize = 64;

/// The numbers of a weight, another one for each layer.
fn numbers(layer: usize, width: usize) -> Vec<u8> {
    let number = |at: usize| ((at * 31 + layer * 7) % 97) as f32 / 970.0 - 0.05;
    (0..width * width).flat_map(|at| number(at).to_le_bytes()).collect()
}

/// Layers `Relu(x · W)`; `weight` makes the tensor of the name and layer.
fn layers(count: usize, width: usize, weight: impl Fn(&str, usize) -> model::Message) -> Vec<u8> {
    let mut graph = GraphOf::new("layers");
    let mut last = "x".to_owned();
    for layer in 0..count {
        let [name, product] = ["w", "p"].map(|letter| format!("{letter}{layer}"));
        let result = if layer + 1 == count { "y".to_owned() } else { format!("r{layer}") };
        graph = graph
            .weights(&weight(&name, layer))
            .node(&node("MatMul", &[&last, &name], &[&product], &[]))
            .node(&node("Relu", &[&product], &[&result], &[]));
        last = result;
    }
    let kind = model::tensor(element::F32, [model::Size::Named("n"), model::Size::Fixed(width as i64)]);
    graph.input("x", &kind).output("y", &kind).model()
}

/// With the weights in the model.
fn whole(count: usize, width: usize) -> Vec<u8> {
    let dims = [width as i64; 2];
    layers(count, width, |name, layer| model::weights(name, element::F32, &dims, &numbers(layer, width)))
}

/// With the weights in a file beside it.
fn split(folder: &Folder, count: usize, width: usize) -> PathBuf {
    let size = width * width * 4;
    let bytes: Vec<u8> = (0..count).flat_map(|layer| numbers(layer, width)).collect();
    folder.file("data/weights.bin", &bytes);
    let (dims, length) = ([width as i64; 2], size.to_string());
    let model = layers(count, width, |name, layer| {
        let offset = (layer * size).to_string();
        let entries = [("location", "data/weights.bin"), ("offset", &*offset), ("length", &*length)];
        model::external(name, element::F32, &dims, &entries)
    });
    folder.file("split.onnx", &model)
}

fn pool(options: PoolOptions) -> Pool {
    Pool::from_bytes(&onnx(), &whole(2, WIDTH), &options).unwrap()
}

fn run(graph: &mut Graph, width: usize, seed: usize) -> Result<Vec<f32>> {
    let input: Vec<f32> = (0..width).map(|at| ((at + seed) % 13) as f32 - 3.0).collect();
    graph.run([("x", TensorView::new(&[1, width], &input)?)])?;
    Ok(graph.outputs().tensor("y")?.as_slice()?.to_vec())
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

#[test]
fn weights_are_shared_where_they_lie() {
    let folder = Folder::new();
    let size = 3 * WIDTH * WIDTH * 4;
    let path = split(&folder, 3, WIDTH);
    let pool = Pool::open(&onnx(), &path, &PoolOptions::new(2)).unwrap();
    assert_eq!((pool.stats().mapped, pool.stats().copied), (size, 0));
    let in_memory = Pool::from_bytes(&onnx(), &whole(3, WIDTH), &PoolOptions::new(2)).unwrap();
    assert_eq!((in_memory.stats().mapped, in_memory.stats().copied), (0, size));
    let apart = Pool::open(&onnx(), &path, &PoolOptions::new(2).with_shared_weights(false)).unwrap();
    assert_eq!((apart.stats().mapped, apart.stats().copied), (0, 0));
    let results = [&pool, &in_memory, &apart].map(|pool| {
        let (mut first, mut second) = (pool.get().unwrap(), pool.get().unwrap());
        let results = [run(&mut first, WIDTH, 5).unwrap(), run(&mut second, WIDTH, 5).unwrap()];
        assert_eq!(results[0], results[1]);
        results[0].clone()
    });
    assert_eq!(results[0], results[1]);
    assert_eq!(results[0], results[2]);
    assert!(results[0].iter().any(|number| *number > 0.0));
}

/// Folded into another one, looked up in, split, used twice, used by nothing: what the runtime makes of a weight is its own affair.
#[test]
fn shared_weights_may_be_taken_apart_by_the_optimiser() {
    let dims = [WIDTH as i64; 2];
    let weight = |name: &str, seed| model::weights(name, element::F32, &dims, &numbers(seed, WIDTH));
    let kind = model::tensor(element::F32, [model::Size::Named("n"), model::Size::Fixed(WIDTH as i64)]);
    let rows: Vec<u8> = [3_i64].iter().flat_map(|row| row.to_le_bytes()).collect();
    let model = GraphOf::new("taken apart")
        .weights(&weight("folded", 1))
        .weights(&weight("table", 2))
        .weights(&weight("twice", 3))
        .weights(&weight("unused", 4))
        .weights(&model::weights("rows", element::I64, &[1], &rows))
        .node(&node("Transpose", &["folded"], &["turned"], &[]))
        .node(&node("Neg", &["turned"], &["constant"], &[]))
        .node(&node("MatMul", &["x", "constant"], &["a"], &[]))
        .node(&node("Gather", &["table", "rows"], &["row"], &[]))
        .node(&node("Add", &["a", "row"], &["b"], &[]))
        .node(&node("MatMul", &["b", "twice"], &["c"], &[]))
        .node(&node("MatMul", &["c", "twice"], &["y"], &[]))
        .input("x", &kind)
        .output("y", &kind)
        .model();
    let folder = Folder::new();
    let path = folder.file("m.onnx", &model);
    let results = [true, false].map(|shared| {
        let pool = Pool::open(&onnx(), &path, &PoolOptions::new(2).with_shared_weights(shared)).unwrap();
        assert_eq!(pool.stats().mapped + pool.stats().copied, if shared { 4 * WIDTH * WIDTH * 4 } else { 0 });
        let (mut first, mut second) = (pool.get().unwrap(), pool.get().unwrap());
        let results = [run(&mut first, WIDTH, 5).unwrap(), run(&mut second, WIDTH, 5).unwrap()];
        assert_eq!(results[0], results[1]);
        results[0].clone()
    });
    assert_eq!(results[0], results[1]);
    assert!(results[0].iter().any(|number| *number != 0.0));
}

/// Large weights, and what pools of them add to a process of its own: an allocator keeps what others have let go of.
#[cfg(target_os = "linux")]
mod held {
    use super::*;

    const LAYERS: usize = 8;
    const LARGE: usize = 1024;

    #[test]
    fn two_sessions_hold_as_much_as_one() {
        let folder = Folder::new();
        let path = split(&folder, LAYERS, LARGE);
        let held =
            |name: &str| -> f64 { child::open_in_child(&format!("held::{name}"), &path).unwrap().parse().unwrap() };
        let weights = (LAYERS * LARGE * LARGE * 4) as f64;
        let [one, two, apart] = ["one", "two", "two_apart"].map(held);
        assert!(two - one < 0.25 * weights, "{one} for one, {two} for two, {weights} of weights");
        // It is the sharing that does it.
        assert!(apart - one > 0.75 * weights, "{one} for one, {apart} for two apart, {weights} of weights");
    }

    #[test]
    fn one() {
        tell(&PoolOptions::new(1));
    }

    #[test]
    fn two() {
        tell(&PoolOptions::new(2));
    }

    #[test]
    fn two_apart() {
        tell(&PoolOptions::new(2).with_shared_weights(false));
    }

    /// In the child: what such a pool adds.
    fn tell(options: &PoolOptions) {
        let Some(path) = std::env::var_os(child::VARIABLE) else { return };
        let onnx = onnx();
        let before = anonymous();
        let pool = Pool::open(&onnx, path, options).unwrap();
        let guards: Vec<_> = std::iter::from_fn(|| pool.try_get()).collect();
        for mut guard in guards {
            run(&mut guard, LARGE, 1).unwrap();
        }
        println!("result: {}", anonymous() - before);
    }

    /// Bytes in memory that no file backs.
    fn anonymous() -> usize {
        let status = std::fs::read_to_string("/proc/self/status").unwrap();
        let line = status.lines().find_map(|line| line.strip_prefix("RssAnon:")).unwrap();
        line.trim().strip_suffix("kB").unwrap().trim().parse::<usize>().unwrap() * 1024
    }
}
