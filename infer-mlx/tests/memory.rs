//! What sequences take of memory, and give back. In a process of its own: MLX counts for all threads together.

mod kit;
#[allow(dead_code, reason = "each test uses a part of it")]
#[path = "session/tiny.rs"]
mod tiny;

use infer_core::{Session as _, Want};
#[cfg(target_os = "linux")]
use infer_mlx::{Array, DType, Mask};
use std::sync::{Mutex, MutexGuard};
use tiny::{anew, feed, llama, logits, open, session, tokens};

/// One test at a time.
fn alone() -> MutexGuard<'static, ()> {
    static ALONE: Mutex<()> = Mutex::new(());
    ALONE.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
}

/// What is freed with scopes is freed, and keys and values with their sequence.
#[test]
fn nothing_is_left_of_sequences_that_are_dropped() {
    let _alone = alone();
    let model = llama();
    let (live, active) = (model.mlx().live(), model.mlx().memory().unwrap().active);
    let mut session = session(&model);
    for round in 0..3 {
        let seq = open(&mut session);
        feed(&mut session, &seq, &tokens(300, round), Want::Nothing).unwrap();
        let fork = session.fork(&seq, 200).unwrap();
        logits(&mut session, &fork, &tokens(1, 1));
        logits(&mut session, &seq, &tokens(1, 1));
        assert_eq!(model.mlx().live().arrays, live.arrays, "scopes have ended");
        assert!(model.mlx().live().owned > live.owned);
        drop((seq, fork));
        drop(open(&mut session));
        assert_eq!(model.mlx().live(), live);
        assert_eq!(model.mlx().memory().unwrap().active, active);
    }
}

/// Keys and values are written where they belong: a step makes no buffers but every 256 positions.
#[test]
fn a_step_takes_no_memory_that_stays() {
    let _alone = alone();
    let model = llama();
    let mut session = session(&model);
    let seq = open(&mut session);
    feed(&mut session, &seq, &tokens(100, 1), Want::Nothing).unwrap();
    let active = |model: &infer_mlx::Model| model.mlx().memory().unwrap().active;
    let before = active(&model);
    for at in 0..156 {
        feed(&mut session, &seq, &tokens(1, at), Want::Nothing).unwrap();
        assert_eq!(active(&model), before, "position {}", seq.len());
    }
    feed(&mut session, &seq, &tokens(1, 1), Want::Nothing).unwrap();
    assert!(active(&model) > before);
}

/// 4 GiB each, made of a single 1: results, and what the door's own kernels keep while they compute.
#[cfg(target_os = "linux")]
const TOO_MUCH: [fn(Array<'_>) -> Array<'_>; 9] = [
    |one| square(one).contiguous(),
    |one| square(one).sort(0),
    |one| square(one).argsort(-1),
    |one| one.scope().stack(&[square(one); 2], 0),
    |one| one.broadcast_to(&[1 << 15, 1]).matmul(one.broadcast_to(&[1, 1 << 15])),
    // A copy of a matrix, and of keys, that lie neither in rows nor in columns.
    |one| one.broadcast_to(&[1, 1 << 15]).matmul(square(one)),
    |one| {
        let keys = one.broadcast_to(&[1, 1, 1 << 15, 1 << 15]);
        one.broadcast_to(&[1, 1, 1, 1 << 15]).attention(keys, keys, 1.0, Mask::None)
    },
    // The scores of two queries.
    |one| {
        let keys = one.broadcast_to(&[1, 1, 1 << 29, 1]);
        one.broadcast_to(&[1, 1, 2, 1]).attention(keys, keys, 1.0, Mask::None)
    },
    // Rows of few bits, unpacked.
    |one| {
        let scope = one.scope();
        let parts = [(1 << 24, DType::U32), (1 << 21, DType::F32), (1 << 21, DType::F32)];
        let [words, scales, biases] = parts.map(|(count, dtype)| scope.zeros(&[1, count], dtype).own());
        one.broadcast_to(&[1, 1 << 28]).quantized_matmul(&words, &scales, &biases, true, 128, 2)
    },
];

#[cfg(target_os = "linux")]
fn square(one: Array<'_>) -> Array<'_> {
    one.broadcast_to(&[1 << 15, 1 << 15])
}

/// The address space of a process that has too little for them.
#[cfg(target_os = "linux")]
const ROOM: u64 = 3_000_000 << 10;

/// Memory that the system refuses, though MLX's own limit is far away, is an error of whoever evaluates, is counted nowhere, and everything
/// stays usable.
#[cfg(target_os = "linux")]
#[test]
fn memory_that_the_system_refuses_is_an_error() {
    test_kit::child::cases_within(
        ROOM,
        "memory_that_the_system_refuses_is_an_error",
        &["too much", "cached"],
        |case| {
            match case {
                "too much" => asks_for_too_much(),
                _ => asks_for_what_is_cached(),
            }
            "done".to_owned()
        },
    );
}

#[cfg(target_os = "linux")]
fn asks_for_too_much() {
    use infer_core::ErrorKind;

    let model = llama();
    let mut session = session(&model);
    let seq = open(&mut session);
    feed(&mut session, &seq, &tokens(20, 1), Want::Nothing).unwrap();
    let scope = model.mlx().scope();
    let cells = model.mlx().live();
    for (index, of) in TOO_MUCH.iter().enumerate() {
        let before = model.mlx().memory().unwrap();
        model.mlx().reset_peak().unwrap();
        let inner = scope.nest();
        let outcome = inner.eval([of(inner.ones(&[1], DType::F32))]);
        let is_refused = outcome.as_ref().is_err_and(|error| error.kind() == ErrorKind::OutOfMemory);
        assert!(is_refused, "{index}: {outcome:?}");
        drop(inner);
        let memory = model.mlx().memory().unwrap();
        assert_eq!(memory.active, before.active, "{index}: what was refused is not there");
        assert!(memory.peak < ROOM, "{index}: and never was: {memory:?}");
        assert_eq!(kit::values(scope.ones(&[4], DType::F32) + 1.0), [2.0; 4], "and everything is usable");
        assert_eq!(model.mlx().live().owned, cells.owned);
    }
    let next = tokens(2, 2);
    let row = logits(&mut session, &seq, &next);
    let expected = anew(&mut session, &[tokens(20, 1), next].concat());
    assert!(row.iter().zip(&expected).all(|(a, b)| (a - b).abs() <= tiny::NEAR));
}

/// What MLX keeps for later is given, though the system would have no more of it.
#[cfg(target_os = "linux")]
fn asks_for_what_is_cached() {
    let mlx = kit::mlx();
    mlx.set_cache_limit(1 << 32).unwrap();
    let compute = |bytes: u64| {
        let scope = mlx.scope();
        let rows = usize::try_from(bytes >> 22).unwrap();
        scope.eval([scope.ones(&[1], DType::F32).broadcast_to(&[rows, 1 << 20]).contiguous()])
    };
    compute(ROOM / 2).unwrap();
    compute(ROOM / 2).unwrap();
    let error = compute(ROOM / 2 + (64 << 20)).unwrap_err();
    assert_eq!(error.kind(), infer_core::ErrorKind::OutOfMemory, "what is kept is too small for this");
}

/// A model whose layers are more than the machine holds, each of their weights less: a file with a hole where they would be. It is refused
/// before any of it is read.
#[test]
fn weights_that_are_more_than_there_is_are_refused() {
    use infer_core::ErrorKind;
    use serde_json::{Map, Value, json};
    use std::fs;

    const INNER: u64 = 1 << 22;
    let _alone = alone();
    let folder = test_kit::Folder::copy_of(build_support::fixtures::model("tiny-mlx-llama").unwrap());
    let [config, weights] = ["config.json", "model.safetensors"].map(|name| folder.path().join(name));
    let mut settings: Value = serde_json::from_slice(&fs::read(&config).unwrap()).unwrap();
    let width = settings["hidden_size"].as_u64().unwrap();
    let available = infer_core::machine::available_memory().expect("the system says it").bytes;
    let layers = available / (3 * INNER * width * 4) + 1;
    (settings["intermediate_size"], settings["num_hidden_layers"]) = (json!(INNER), json!(layers));
    fs::write(&config, settings.to_string()).unwrap();

    let (mut header, mut end) = (Map::new(), 0);
    let mut put = |name: String, shape: Vec<u64>| {
        let shape = match name.as_str() {
            down if down.ends_with("down_proj.weight") => vec![width, INNER],
            wide if wide.contains(".mlp.") => vec![INNER, width],
            _ => shape,
        };
        let bytes = shape.iter().product::<u64>() * 4;
        header.insert(name, json!({"dtype": "F32", "shape": shape, "data_offsets": [end, end + bytes]}));
        end += bytes;
    };
    for tensor in infer_mlx::safetensors::open(&weights).unwrap().tensors() {
        let shape: Vec<u64> = tensor.shape().iter().map(|&size| size as u64).collect();
        match tensor.name().strip_prefix("model.layers.0.") {
            Some(part) => (0..layers).for_each(|layer| put(format!("model.layers.{layer}.{part}"), shape.clone())),
            None if tensor.name().starts_with("model.layers.") => {}
            None => put(tensor.name().to_owned(), shape),
        }
    }
    let header = Value::Object(header).to_string();
    fs::write(&weights, [&(header.len() as u64).to_le_bytes(), header.as_bytes()].concat()).unwrap();
    fs::File::options().append(true).open(&weights).unwrap().set_len(8 + header.len() as u64 + end).unwrap();

    let error = infer_mlx::Model::open(&kit::mlx(), folder.path()).unwrap_err();
    let text = error.to_string();
    assert!(error.kind() == ErrorKind::OutOfMemory && text.contains("the weights take"), "{text}");
    anew(&mut session(&llama()), &tokens(3, 1));
}
