//! Sequences that are computed together are what they are alone; and what a pass costs.

use crate::{
    kit,
    tiny::{anew, assert_same, feed, llama, logits, model, open, options, session, tokens, windowed},
};
use infer_core::{Batch, Sampling, Session as _, Token, Want};

#[test]
fn sequences_of_any_lengths_are_computed_together_as_alone() {
    for model in [llama(), windowed(), model("tiny-mlx-gemma3")] {
        let (mut together, mut alone) = (session(&model), session(&model));
        let mut texts: Vec<_> = (1..).zip([1, 7, 300, 40, 1, 130]).map(|(seed, count)| tokens(count, seed)).collect();
        let sequences: Vec<_> = texts.iter().map(|_| open(&mut together)).collect();
        let mut fed = vec![0; texts.len()];
        for step in 0..6 {
            let mut batch = Batch::new();
            for (at, text) in texts.iter().enumerate() {
                batch.push(&sequences[at], &text[fed[at]..], Want::Logits);
                fed[at] = text.len();
            }
            together.decode(&batch).unwrap();
            for (at, text) in texts.iter_mut().enumerate() {
                assert_same(together.outputs().logits(at).unwrap(), &anew(&mut alone, text));
                // One, two or three more, so that single tokens and longer pieces meet.
                text.extend(tokens(1 + (at + step) % 3, 99));
            }
        }
    }
}

#[test]
fn a_batch_in_pieces_is_the_same_batch() {
    let model = llama();
    let (mut whole, mut cut) = (session(&model), model.session(&options().with_micro_batch(7)).unwrap());
    let texts = [tokens(50, 1), tokens(1, 2), tokens(23, 3)];
    let sequences = texts.each_ref().map(|_| open(&mut cut));
    let mut batch = Batch::new();
    texts.iter().zip(&sequences).for_each(|(text, seq)| _ = batch.push(seq, text, Want::Logits));
    let evals = model.mlx().evals();
    cut.decode(&batch).unwrap();
    assert_eq!(model.mlx().evals() - evals, 74_u64.div_ceil(7));
    for (at, text) in texts.iter().enumerate() {
        assert_same(cut.outputs().logits(at).unwrap(), &anew(&mut whole, text));
    }
}

#[test]
fn a_step_is_one_evaluation_whatever_is_in_it() {
    let model = llama();
    let mut session = session(&model);
    let sequences: Vec<_> = (0..5).map(|_| open(&mut session)).collect();
    for seq in &sequences[..3] {
        session.sample_with(seq, &Sampling::greedy(), &[]).unwrap();
    }
    for wants in [[Want::Nothing; 5], [Want::Token, Want::Token, Want::Logits, Want::Embedding, Want::Score]] {
        let mut batch = Batch::new();
        for (at, (seq, want)) in sequences.iter().zip(wants).enumerate() {
            batch.push(seq, &tokens(1 + 30 * (at % 2), 5), want);
        }
        let evals = model.mlx().evals();
        session.decode(&batch).unwrap();
        assert_eq!(model.mlx().evals() - evals, 1);
    }
}

#[test]
fn scores_are_those_of_the_logits_however_they_are_cut() {
    for model in [llama(), windowed()] {
        let (mut session, mut cut) = (session(&model), model.session(&options().with_micro_batch(5)).unwrap());
        let text = tokens(60, 4);
        let expected: Vec<f32> = (0..text.len())
            .map(|at| if at == 0 { 0.0 } else { log_softmax(&anew(&mut session, &text[..at]), text[at]) })
            .collect();
        for session in [&mut session, &mut cut] {
            let seq = open(session);
            let mut found = Vec::new();
            for part in [&text[..1], &text[1..30], &text[30..31], &text[31..]] {
                feed(session, &seq, part, Want::Score).unwrap();
                found.extend_from_slice(session.outputs().scores(0));
            }
            kit::assert_near(&found, &expected, 1e-4);
            // It goes on as if nothing had been fed twice.
            let next = tokens(1, 9);
            let all = [&text[..], &next].concat();
            assert_same(&logits(session, &seq, &next), &anew(session, &all));
        }
    }
}

fn log_softmax(row: &[f32], token: Token) -> f32 {
    let largest = row.iter().copied().fold(f32::NEG_INFINITY, f32::max);
    let sum: f64 = row.iter().map(|&logit| f64::from(logit - largest).exp()).sum();
    (f64::from(row[token.index()] - largest) - sum.ln()) as f32
}

#[test]
fn a_hidden_state_is_as_wide_as_the_model_and_the_same_in_company() {
    let model = llama();
    let mut session = session(&model);
    let (text, other) = (tokens(20, 1), tokens(9, 2));
    let (one, two) = (open(&mut session), open(&mut session));
    feed(&mut session, &one, &text, Want::Embedding).unwrap();
    let alone = session.outputs().embedding(0).unwrap().to_vec();
    assert_eq!(alone.len(), model.info().width);
    let mut batch = Batch::new();
    let third = open(&mut session);
    batch.push(&two, &other, Want::Logits);
    batch.push(&third, &text, Want::Embedding);
    session.decode(&batch).unwrap();
    assert!(session.outputs().embedding(0).is_none() && session.outputs().logits(1).is_none());
    assert_same(session.outputs().embedding(1).unwrap(), &alone);
}
