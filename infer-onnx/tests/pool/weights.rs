//! Weights that the sessions of a pool share: the same results, and less memory.

use crate::{
    kit::{
        model::{self, GraphOf, element, node},
        onnx,
    },
    models::{WIDTH, numbers, run, split, whole},
};
use infer_onnx::{Dim, Graph, Pool, PoolOptions, TensorView, ValueType};
use test_kit::{Folder, child};

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

    /// Many small ones: glibc keeps the end of a thread's arena, as much as twice the largest block that was let go of, which is no weight held
    /// twice and is not to look like one.
    const LAYERS: usize = 32;
    const LARGE: usize = 512;

    #[test]
    fn sessions_hold_as_much_as_one() {
        let folder = Folder::new();
        let path = split(&folder, LAYERS, LARGE);
        let held = |name: &str| -> f64 {
            child::open_in_child(&format!("weights::held::{name}"), &path).unwrap().parse().unwrap()
        };
        let weights = (LAYERS * LARGE * LARGE * 4) as f64;
        let [one, two, four, apart] = ["one", "two", "four", "two_apart"].map(held);
        assert!(two - one < 0.25 * weights, "{one} for one, {two} for two, {weights} of weights");
        assert!(four - one < 0.25 * weights, "{one} for one, {four} for four, {weights} of weights");
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
    fn four() {
        tell(&PoolOptions::new(4));
    }

    #[test]
    fn two_apart() {
        tell(&PoolOptions::new(2).with_shared_weights(false));
    }

    /// In the child: what such a pool adds.
    fn tell(options: &PoolOptions) {
        let Some(path) = child::file() else { return };
        let onnx = onnx();
        let before = anonymous();
        let pool = Pool::open(&onnx, path, options).unwrap();
        let guards: Vec<_> = std::iter::from_fn(|| pool.try_get()).collect();
        for mut guard in guards {
            run(&mut guard, LARGE, 1).unwrap();
        }
        child::answer(&(anonymous() - before).to_string());
    }

    /// Bytes in memory that no file backs.
    fn anonymous() -> usize {
        let status = std::fs::read_to_string("/proc/self/status").unwrap();
        let line = status.lines().find_map(|line| line.strip_prefix("RssAnon:")).unwrap();
        line.trim().strip_suffix("kB").unwrap().trim().parse::<usize>().unwrap() * 1024
    }
}

/// Every output of a run on three tokens with nothing before them, as bytes.
fn bytes(graph: &mut Graph) -> Vec<Vec<u8>> {
    let size = |dim: &Dim| match dim {
        Dim::Fixed(size) => *size,
        Dim::Dynamic(Some(name)) if name.starts_with("past") => 0,
        Dim::Dynamic(Some(name)) if name.starts_with("batch") => 1,
        _ => 3,
    };
    let inputs: Vec<_> = graph.inputs().iter().map(|port| (port.name().to_owned(), port.kind().clone())).collect();
    let tensors: Vec<_> = inputs
        .iter()
        .map(|(name, kind)| {
            let ValueType::Tensor { dtype, dims: Some(dims), .. } = kind else { panic!("{name} is {kind}") };
            let shape: Vec<usize> = dims.iter().map(size).collect();
            let count = shape.iter().product();
            let ones: Vec<u8> = (0..count).flat_map(|_| 1_i64.to_le_bytes()).collect();
            (name, *dtype, shape, ones)
        })
        .collect();
    let views = tensors
        .iter()
        .map(|(name, dtype, shape, ones)| (name.as_str(), TensorView::from_bytes(*dtype, shape, ones).unwrap()));
    graph.run(views).unwrap();
    let outputs = graph.outputs();
    graph.declared_outputs().iter().map(|port| outputs.tensor(port.name()).unwrap().bytes().unwrap().to_vec()).collect()
}

/// Real operators: attention that is fused, weights of four bits, half precision.
#[test]
fn real_models_give_what_they_give_by_themselves() {
    for name in ["tiny-onnx-encoder", "tiny-onnx-int4", "tiny-onnx-f16"] {
        let path = build_support::fixtures::model(name).unwrap().join("model.onnx");
        let results = [true, false].map(|shared| {
            let pool = Pool::open(&onnx(), &path, &PoolOptions::new(2).with_shared_weights(shared)).unwrap();
            let stats = pool.stats();
            assert_eq!(stats.mapped + stats.copied > 0, shared, "{name}: {stats:?}");
            let (mut first, mut second) = (pool.get().unwrap(), pool.get().unwrap());
            [bytes(&mut first), bytes(&mut second)]
        });
        let [[first, second], [third, _]] = results;
        assert!(first == second && first == third, "{name}");
        assert!(first.iter().flatten().any(|&byte| byte != 0), "{name}");
    }
}
