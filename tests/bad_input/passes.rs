//! Batches, sequences and tokens that cannot be, on a session that goes on working.

use super::{alone, feed, model, open, options, said, tokens};
use infer::{Batch, Detokenizer, ErrorKind, OpenOptions, Sampling, Session as _, Special, Token, Tokenizer as _, Want};
use infer_core::KvLayout;
use infer_llama::{Model, Session};
use kit::child;

#[test]
fn passes_that_cannot_be_are_refused() {
    const CASES: &[&str] = &[
        "over the batch",
        "a token outside the vocabulary",
        "a token with the highest bit",
        "no tokens",
        "two rows of one sequence",
        "a sequence of another session",
        "a dropped sequence",
        "more positions than the context",
    ];
    let answers = child::cases("passes::passes_that_cannot_be_are_refused", CASES, |case| {
        let (_folder, model) = model();
        let mut session = model.session(&options().with_batch(8)).unwrap();
        let seq = open(&mut session);
        feed(&mut session, &seq, &tokens(5)).unwrap();
        let answer = refused(case, &model, &mut session);
        let next = feed(&mut session, &seq, &[Token(5)]).unwrap();
        let apart = next.iter().zip(alone(&model, &tokens(6))).map(|(a, b)| (a - b).abs()).fold(0.0, f32::max);
        assert!(apart < 1e-3, "{case} changed a sequence that has nothing to do with it: {apart}");
        answer
    });
    assert!(answers.iter().all(|answer| answer == "refused"), "{answers:?}");
}

fn refused(case: &str, model: &Model, session: &mut Session) -> String {
    let other = open(session);
    let mut one = |tokens: &[Token], kind, word| said(feed(session, &other, tokens), kind, &[word]);
    let mut batch = Batch::new();
    match case {
        "over the batch" => one(&tokens(9), ErrorKind::InvalidInput, "9"),
        "a token outside the vocabulary" => one(&[Token(259)], ErrorKind::InvalidInput, "259"),
        "a token with the highest bit" => one(&[Token(u32::MAX)], ErrorKind::InvalidInput, "4294967295"),
        "no tokens" => one(&[], ErrorKind::InvalidInput, ""),
        "more positions than the context" => {
            for _ in 0..32 {
                feed(session, &other, &tokens(8)).unwrap();
            }
            said(feed(session, &other, &tokens(1)), ErrorKind::ContextFull, &[])
        }
        "two rows of one sequence" => {
            batch.push(&other, &tokens(1), Want::Logits);
            batch.push(&other, &tokens(1), Want::Logits);
            said(session.decode(&batch), ErrorKind::InvalidInput, &[])
        }
        "a sequence of another session" => {
            let mut foreign = model.session(&options()).unwrap();
            let theirs = open(&mut foreign);
            said(feed(session, &theirs, &tokens(1)), ErrorKind::ForeignSequence, &[])
        }
        "a dropped sequence" => {
            batch.push(&other, &tokens(1), Want::Logits);
            drop(other);
            said(session.decode(&batch), ErrorKind::StaleSequence, &[])
        }
        other => panic!("there is no case {other:?}"),
    }
}

/// A part of a sequence, copied between streams of cells of their own: llama.cpp aborts. Here it is a copy and a cut.
#[test]
fn a_part_of_a_sequence_is_forked_in_every_layout() {
    let answers =
        child::cases("passes::a_part_of_a_sequence_is_forked_in_every_layout", &["split", "unified"], |case| {
            let (_folder, model) = model();
            let layout = if case == "split" { KvLayout::Split } else { KvLayout::Unified };
            let mut session = model.session(&options().with_layout(layout)).unwrap();
            let seq = open(&mut session);
            feed(&mut session, &seq, &tokens(9)).unwrap();
            let child = session.fork(&seq, 4).unwrap();
            let full = said(session.fork(&seq, 4), ErrorKind::TooManySequences, &[]);
            let long = said(session.fork(&seq, 10), ErrorKind::InvalidInput, &["9", "10"]);
            let row = feed(&mut session, &child, &tokens(6)[4..]).unwrap();
            let apart = row.iter().zip(alone(&model, &tokens(6))).map(|(a, b)| (a - b).abs()).fold(0.0, f32::max);
            format!("{full} {long} {}", apart < 1e-2)
        });
    assert!(answers.iter().all(|answer| answer == "refused refused true"), "{answers:?}");
}

#[test]
fn tokens_outside_the_vocabulary_have_no_text() {
    let answers = child::cases("passes::tokens_outside_the_vocabulary_have_no_text", &["all"], |_| {
        let (_folder, model) = model();
        let vocab = model.tokenizer().vocab();
        for token in [259, 1 << 30, u32::MAX].map(Token) {
            assert!(vocab.bytes(token).is_none() && !vocab.is_end(token));
            let mut text = Detokenizer::new(vocab.clone());
            assert_eq!(said(text.push(token).map(str::to_owned), ErrorKind::InvalidInput, &["outside"]), "refused");
        }
        let mut session = model.session(&options()).unwrap();
        let seq = open(&mut session);
        let biased = Sampling::default().with_logit_bias(Token(259), 1.0);
        let bias = said(session.sample_with(&seq, &biased, &[]), ErrorKind::InvalidInput, &["259"]);
        let mut options = OpenOptions::default();
        options.adapter = Some("nobody".into());
        let adapter = said(session.open(&options), ErrorKind::InvalidInput, &["nobody"]);
        let mut out = Vec::new();
        model.tokenizer().encode("\0é\u{10ffff}", Special::PARSE, &mut out).unwrap();
        format!("{bias} {adapter} {}", out.len())
    });
    assert!(answers.iter().all(|answer| answer.starts_with("refused refused ")), "{answers:?}");
}
