//! A step in steady state allocates nothing: neither the batch nor the slots, the sampler nor the outputs.

use infer_core::{
    Batch, Detokenizer, Model, OpenOptions, Sampling, Sequence, SessionOptions, SpecialTokens, StopStrings, Token,
    TokenFlags, Vocab, VocabKind, Want,
    sampling::{Sampler, uniform},
    testing::{Script, ScriptedModel},
};
use std::sync::Arc;
use test_kit::{Counting, heap};

#[global_allocator]
static ALLOCATOR: Counting = Counting;

fn allocations_of(work: impl FnOnce()) -> u64 {
    heap(work).0.allocations
}

struct Running {
    seq: Sequence,
    next: Token,
    entry: usize,
}

fn steps(sampling: &Sampling) -> u64 {
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
    assert_eq!(steps(&Sampling::greedy()), 0, "greedy");
    let drawn = Sampling::greedy().with_temperature(0.8).with_top_k(40).with_top_p(0.95).with_min_p(0.05);
    assert_eq!(steps(&drawn), 0, "drawn");
    let penalised = drawn.with_repetition_penalty(1.1).with_frequency_penalty(0.1).with_logit_bias(Token(65), -1.0);
    assert_eq!(steps(&penalised), 0, "penalised");
    let dry = penalised.with_dry_multiplier(0.8).with_typical_p(0.9).with_xtc(0.5, 0.1).with_dynatemp(0.5, 1.0);
    assert_eq!(steps(&dry.with_top_n_sigma(2.0).with_logprobs(5)), 0, "everything");
}

/// Draws from rows of a real vocabulary's size, where every way to find candidates is taken.
#[test]
fn a_draw_in_steady_state_has_none() {
    let rows: Vec<Vec<f32>> = (0..4).map(|row| (0..49_152).map(|at| 12.0 * uniform(row, at)).collect()).collect();
    let hot = Sampling::greedy().with_temperature(1.5);
    for sampling in [
        Sampling::greedy(),
        Sampling::greedy().with_logprobs(20),
        hot.clone(),
        hot.clone().with_top_k(40).with_top_p(0.95),
        hot.clone().with_top_p(0.9),
        hot.clone().with_min_p(0.01).with_logit_bias(Token(3), 2.0),
        hot.clone().with_frequency_penalty(0.1).with_penalty_window(usize::MAX),
        hot.clone().with_typical_p(0.9),
        hot.clone().with_top_n_sigma(1.0).with_top_p(0.99),
        hot.clone().with_xtc(0.5, 0.0001),
        hot.clone().with_dynatemp(0.5, 2.0),
        hot.with_dry_multiplier(0.8).with_dry_allowed_length(0).with_dry_window(usize::MAX).with_logprobs(20),
    ] {
        let mut sampler = Sampler::new(&sampling, &[Token(1)], 49_152).unwrap();
        let (mut drawn, mut top) = (Vec::with_capacity(1), Vec::new());
        let mut draw = |position: usize| {
            drawn.clear();
            top.clear();
            sampler.sample(&rows[position % rows.len()], position, &mut drawn).unwrap();
            sampler.top(&rows[position % rows.len()], &mut top).unwrap();
            sampler.accept(position, &[drawn[0].token]);
        };
        (1..9).for_each(&mut draw);
        assert_eq!(allocations_of(|| (9..60).for_each(&mut draw)), 0, "{sampling:?}");
    }
}

#[test]
fn text_in_steady_state_has_none() {
    let pieces = [&b" hello"[..], b"\xF0\x9F", b"\x98\x80", b"\xFF", b" 's", b"."];
    for kind in [VocabKind::Bpe, VocabKind::Spm, VocabKind::WordPiece] {
        let with_flags = pieces.map(|piece| (piece, TokenFlags::TEXT));
        let vocab = Arc::new(Vocab::new(kind, SpecialTokens::default(), with_flags).unwrap());
        let mut text = Detokenizer::new(vocab);
        let mut stop = StopStrings::new(["hell no", "\n\n"]).unwrap();
        let mut all = |rounds: usize| {
            for id in (0..6).cycle().take(6 * rounds) {
                stop.push(text.push(Token(id)).unwrap());
            }
            stop.push(text.finish());
            stop.finish();
        };
        all(2);
        assert_eq!(allocations_of(|| all(20)), 0, "{kind:?}");
    }
}
