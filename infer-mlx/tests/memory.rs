//! What sequences take of memory, and give back. In a process of its own: MLX counts for all threads together.

mod kit;
#[allow(dead_code, reason = "each test uses a part of it")]
#[path = "session/tiny.rs"]
mod tiny;

use infer_core::{Session as _, Want};
use std::sync::{Mutex, MutexGuard};
use tiny::{feed, llama, logits, open, session, tokens};

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
