//! Constraints: what is drawn keeps to them, and a sequence goes on with its own whatever was done to it.

use crate::setting::{Setting, cut, feed, filled, fork, open, refused};
use infer::{Batch, Constraint, ErrorKind, OpenOptions, Sampling, Sequence, Session, Token, Vocab, Want};
use std::fmt::Write as _;

const DRAWN: usize = 10;

/// Texts that every vocabulary can write, being made of its own tokens: the first two, or the third, again and again.
fn expression(vocab: &Vocab, words: &[Token]) -> String {
    let word = |token: Token| {
        let text = String::from_utf8_lossy(vocab.bytes(token).unwrap()).into_owned();
        text.chars().fold(String::new(), |mut all, c| {
            let _ = write!(all, r"\x{{{:x}}}", u32::from(c));
            all
        })
    };
    let [a, b, c] = [0, 1, 2].map(|index| word(words[index]));
    format!("({a}{b}|{c}){{20,}}")
}

fn sampling(at: &Setting<'_>) -> Sampling {
    let tokenizer = at.model.tokenizer();
    let vocab = tokenizer.vocab();
    let mut words = at.text(1, 40);
    words.retain(|&token| {
        !vocab.is_control(token) && std::str::from_utf8(vocab.bytes(token).unwrap()).is_ok_and(|text| !text.is_empty())
    });
    words.sort_unstable();
    words.dedup();
    let constraint = Constraint::regex(expression(vocab, &words));
    Sampling::default().with_temperature(1.0).with_seed(3).with_constraint(constraint)
}

/// What `count` draws give, and what was fed: those that are forced with the one before, or drawn again.
fn drawn(session: &mut dyn Session, seq: &Sequence, first: &[Token], count: usize, together: bool) -> Vec<Token> {
    let (mut next, mut all, mut batch) = (first.to_vec(), Vec::new(), Batch::new());
    while all.len() < count {
        batch.clear();
        let entry = batch.push(seq, &next, Want::Token);
        session.decode(&batch).unwrap();
        let found = session.outputs().sampled(entry);
        assert!(session.outputs().error(entry).is_none() && !found.is_empty());
        assert!(found[0].logprob <= 0.0 && found[1..].iter().all(|forced| forced.logprob.is_nan()));
        let found = if together { found } else { &found[..1] };
        next = found.iter().map(|sampled| sampled.token).collect();
        all.extend_from_slice(&next);
    }
    all.truncate(count);
    all
}

pub(crate) fn constrained_draws_keep_to_the_constraint(at: &Setting<'_>) {
    let prompt = at.text(0, 16);
    let (mut session, sampling) = (at.session(), sampling(at));
    let seq = open(&mut *session);
    session.sample_with(&seq, &sampling, &prompt).unwrap();
    let drawn = drawn(&mut *session, &seq, &prompt, DRAWN, true);
    // A sampler by itself finds that each may follow those before it.
    let tokenizer = at.model.tokenizer();
    let mut sampler = infer::sampling::Sampler::for_vocab(&sampling, &[], tokenizer.vocab()).unwrap();
    let (row, mut may_follow) = (vec![0.0_f32; tokenizer.vocab().len()], Vec::new());
    for (index, &token) in drawn.iter().enumerate() {
        sampler.distribution(&row, index, &mut may_follow).unwrap();
        assert!(may_follow.iter().any(|&(other, _)| other == token), "token {index} of {drawn:?}");
        sampler.accept(index, &[token]);
    }
}

pub(crate) fn constrained_draws_go_on_whatever_was_done(at: &Setting<'_>) {
    let prompt = at.text(0, 16);
    let (mut session, sampling) = (at.session(), sampling(at));
    let seq = open(&mut *session);
    session.sample_with(&seq, &sampling, &prompt).unwrap();
    let all = drawn(&mut *session, &seq, &prompt, DRAWN, false);
    let kept = 4;
    let log = [&prompt[..], &all[..kept]].concat();
    let check = |session: &mut dyn Session, seq: &Sequence, from: usize, what: &str| {
        let next = drawn(session, seq, &log[from..], 1, false);
        let mut allowed = Vec::new();
        let tokenizer = at.model.tokenizer();
        let mut sampler = infer::sampling::Sampler::for_vocab(&sampling, &[], tokenizer.vocab()).unwrap();
        sampler.accept(0, &all[..kept]);
        sampler.distribution(&vec![0.0_f32; tokenizer.vocab().len()], kept, &mut allowed).unwrap();
        assert!(allowed.iter().any(|&(token, _)| token == next[0]), "{what}: {next:?}");
        if at.subject.epsilon == 0.0 {
            assert_eq!(next[0], all[kept], "{what}");
        }
    };
    // Another sequence, the sampling set in the middle of what is fed.
    let rebuilt = filled(&mut *session, &log[..9]);
    session.sample_with(&rebuilt, &sampling, &prompt).unwrap();
    check(&mut *session, &rebuilt, 9, "rebuilt");
    drop(rebuilt);
    if let Some(child) = fork(&mut *session, &seq, log.len() - 1) {
        session.sample_with(&child, &sampling, &prompt).unwrap();
        check(&mut *session, &child, log.len() - 1, "forked");
    }
    let to = if cut(&mut *session, &seq, log.len() - 1) { log.len() - 1 } else { 0 };
    session.truncate(&seq, to).unwrap();
    check(&mut *session, &seq, to, "cut");
}

pub(crate) fn a_bad_constraint_is_an_error_of_sample_with(at: &Setting<'_>) {
    let prompt = at.text(0, 8);
    let mut session = at.session();
    let seq = open(&mut *session);
    session.sample_with(&seq, &Sampling::greedy(), &prompt).unwrap();
    for (what, constraint) in [
        ("an expression that is none", Constraint::regex("(")),
        ("a schema that is not JSON", Constraint::json_schema("{")),
        ("a keyword there is not", Constraint::json_schema(r#"{"minlength": 3}"#)),
        ("a grammar without a beginning", Constraint::lark("x: \"a\"")),
        ("a grammar that is none", Constraint::gbnf("root ::= [")),
        ("nothing that could be written", Constraint::regex(r"[^\x00-\x{10ffff}]")),
    ] {
        let sampling = Sampling::greedy().with_constraint(constraint);
        refused(session.sample_with(&seq, &sampling, &prompt), ErrorKind::InvalidConstraint, what);
    }
    // What was set before is still set.
    feed(&mut *session, &seq, &prompt, Want::Token).unwrap();
    assert!(session.outputs().token(0).is_some());
}

pub(crate) fn a_text_against_its_constraint_fails_alone(at: &Setting<'_>) {
    let prompt = at.text(0, 8);
    let (mut session, sampling) = (at.session(), sampling(at));
    let (wrong, right) = (open(&mut *session), session.open(&OpenOptions::default()).unwrap());
    for seq in [&wrong, &right] {
        session.sample_with(seq, &sampling, &prompt).unwrap();
    }
    let tokenizer = at.model.tokenizer();
    let end = (0..).map(Token).find(|&token| tokenizer.vocab().is_end(token)).unwrap();
    let mut batch = Batch::new();
    let entries =
        [batch.push(&wrong, &[&prompt[..], &[end]].concat(), Want::Token), batch.push(&right, &prompt, Want::Token)];
    session.decode(&batch).unwrap();
    let outputs = session.outputs();
    assert_eq!(outputs.error(entries[0]).map(infer::Error::kind), Some(ErrorKind::InvalidConstraint));
    assert!(outputs.sampled(entries[0]).is_empty() && outputs.error(entries[1]).is_none());
    assert!(outputs.token(entries[1]).is_some());
    assert_eq!((wrong.len(), right.len()), (prompt.len() + 1, prompt.len()), "the pass is done");
}
