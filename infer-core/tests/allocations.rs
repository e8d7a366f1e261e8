//! A step in steady state allocates nothing: neither the batch nor the slots, the sampler nor the outputs.

use infer_core::{
    Batch, Model, OpenOptions, Sampling, Sequence, SessionOptions, Token, Want,
    testing::{Script, ScriptedModel},
};
use std::{
    alloc::{GlobalAlloc, Layout, System},
    cell::Cell,
};

thread_local! {
    /// How often this thread has allocated. Other threads (the harness's) do not disturb the count.
    static ALLOCATIONS: Cell<usize> = const { Cell::new(0) };
}

/// The system's allocator, counting.
struct Counting;

impl Counting {
    fn count() {
        // A thread that is ending has no counter any more; nothing is measured there.
        let _ = ALLOCATIONS.try_with(|count| count.set(count.get() + 1));
    }
}

// SAFETY: every method hands its arguments to `System` unchanged, and returns what that returns; counting is a
// constant-initialised thread-local without a destructor, so it does not allocate.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        Self::count();
        // SAFETY: the caller guarantees a layout of non-zero size, which is all `System::alloc` asks for.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, memory: *mut u8, layout: Layout) {
        // SAFETY: the caller guarantees that `memory` came from this allocator, hence from `System`, with this layout.
        unsafe { System.dealloc(memory, layout) }
    }

    unsafe fn realloc(&self, memory: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        Self::count();
        // SAFETY: the caller guarantees that `memory` came from `System` with this layout, and that `size` is non-zero
        // and does not overflow when rounded up.
        unsafe { System.realloc(memory, layout, size) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

fn allocations_of(work: impl FnOnce()) -> usize {
    let before = ALLOCATIONS.get();
    work();
    ALLOCATIONS.get() - before
}

struct Running {
    seq: Sequence,
    next: Token,
    entry: usize,
}

fn steps(sampling: &Sampling) -> usize {
    let model = ScriptedModel::new(Script::new());
    let mut session = model.session(&SessionOptions::new().with_sequences(32)).unwrap();
    let mut running: Vec<Running> = (0..32)
        .map(|i| Running { seq: session.open(&OpenOptions::default()).unwrap(), next: Token(i), entry: 0 })
        .collect();
    for Running { seq, .. } in &running {
        session.sample_with(seq, sampling, &[]).unwrap();
    }
    let mut batch = Batch::new();
    let mut step = || {
        batch.clear();
        for r in &mut running {
            r.entry = batch.push(&r.seq, &[r.next], Want::Token);
        }
        session.decode(&batch).unwrap();
        let outputs = session.outputs();
        for r in &mut running {
            r.next = outputs.token(r.entry).unwrap();
        }
        assert_eq!(session.usage().sequences, 32);
    };
    for _ in 0..3 {
        step();
    }
    allocations_of(|| (0..100).for_each(|_| step()))
}

#[test]
fn a_step_in_steady_state_has_none() {
    assert!(allocations_of(|| drop(Vec::<u8>::with_capacity(1))) == 1, "the count does not count");
    assert_eq!(steps(&Sampling::greedy()), 0, "greedy");
    let drawn = Sampling::greedy().with_temperature(0.8).with_top_k(40).with_top_p(0.95).with_min_p(0.05);
    assert_eq!(steps(&drawn), 0, "drawn");
    let penalised = drawn.with_repetition_penalty(1.1).with_frequency_penalty(0.1).with_logit_bias(Token(65), -1.0);
    assert_eq!(steps(&penalised), 0, "penalised");
}
