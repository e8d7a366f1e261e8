//! Draws: of logits, sampling, prompt and tokens, and of nothing else.

use crate::setting::{Setting, cut, draw, feed, filled, fork, open, refused};
use infer::{ErrorKind, Sampling, Sequence, Session, Token, Want, sampling::Sampler};
use kit::trace::{Trace, log_softmax};

const DRAWN: usize = 8;

/// Tokens drawn after `prompt`, from a sequence that was opened for it.
fn drawn(session: &mut dyn Session, sampling: &Sampling, prompt: &[Token], count: usize) -> (Sequence, Trace) {
    let seq = open(session);
    session.sample_with(&seq, sampling, prompt).unwrap();
    let trace = draw(session, &seq, prompt, count);
    (seq, trace)
}

/// What a sequence holds after [`drawn`].
fn held(prompt: &[Token], trace: &Trace) -> Vec<Token> {
    let mut held = prompt.to_vec();
    held.extend(trace.tokens[..trace.tokens.len() - 1].iter().map(|&token| Token(token)));
    held
}

fn tail(trace: &Trace, from: usize) -> Trace {
    Trace { tokens: trace.tokens[from..].to_vec(), rows: trace.rows[from..].to_vec() }
}

/// The sampler of the core, given the same rows, draws the same tokens: on every runtime, and wherever it draws.
pub(crate) fn a_draw_is_a_function_of_logits_sampling_and_tokens(at: &Setting<'_>) {
    let prompt = at.text(0, 16);
    let mut session = at.session();
    for (name, sampling) in at.samplings() {
        let (_, trace) = drawn(&mut *session, &sampling, &prompt, DRAWN);
        let mut sampler = Sampler::new(&sampling, &prompt, session.limits().vocab).unwrap();
        let mut again = Trace { tokens: Vec::new(), rows: trace.rows.clone() };
        for (index, row) in trace.rows.iter().enumerate() {
            let (mut sampled, position) = (Vec::new(), prompt.len() + index);
            sampler.sample(row, position, &mut sampled).unwrap();
            again.tokens.push(sampled[0].token.0);
            sampler.accept(position, &[Token(trace.tokens[index])]);
        }
        assert_eq!(again.tokens, trace.tokens, "{name}");
    }
}

/// Also where a device draws, which it does where nobody looks at the logits.
pub(crate) fn a_token_is_the_same_where_logits_are_not_looked_at(at: &Setting<'_>) {
    let prompt = at.text(0, 16);
    let mut session = at.session();
    for (name, sampling) in at.samplings() {
        let (_, wanted) = drawn(&mut *session, &sampling, &prompt, DRAWN);
        let seq = open(&mut *session);
        session.sample_with(&seq, &sampling, &prompt).unwrap();
        let mut next = prompt.clone();
        for (index, row) in wanted.rows.iter().enumerate() {
            feed(&mut *session, &seq, &next, Want::Token).unwrap();
            let (out, logprobs) = (session.outputs(), log_softmax(row));
            let [sampled] = out.sampled(0) else { panic!("{name}: {} tokens", out.sampled(0).len()) };
            assert!(out.logits(0).is_none());
            assert_eq!(sampled.token.0, wanted.tokens[index], "{name}, token {index}");
            let apart = (f64::from(sampled.logprob) - logprobs[sampled.token.index()]).abs();
            let most = f64::from(2.0 * at.subject.epsilon) + 1e-4;
            assert!(apart <= most, "{name}, token {index}: the log-probability is {apart} apart, more than {most}");
            next = vec![sampled.token];
        }
    }
}

pub(crate) fn the_most_probable_tokens_are_those_of_the_logits(at: &Setting<'_>) {
    let prompt = at.text(0, 16);
    let mut session = at.session();
    let seq = open(&mut *session);
    session.sample_with(&seq, &Sampling::greedy().with_logprobs(5), &prompt).unwrap();
    feed(&mut *session, &seq, &prompt, Want::Logits).unwrap();
    let (out, logprobs) = (session.outputs(), log_softmax(session.outputs().logits(0).unwrap()));
    assert_eq!(out.top(0).len(), 5);
    assert_eq!(out.top(0)[0], out.sampled(0)[0]);
    let mut order: Vec<usize> = (0..logprobs.len()).collect();
    order.sort_by(|&one, &other| logprobs[other].total_cmp(&logprobs[one]).then(one.cmp(&other)));
    for (top, &token) in out.top(0).iter().zip(&order) {
        assert_eq!(top.token.index(), token);
        assert!((f64::from(top.logprob) - logprobs[token]).abs() < 1e-3, "{top:?} against {}", logprobs[token]);
    }
}

pub(crate) fn draws_go_on_after_a_rebuild(at: &Setting<'_>) {
    let prompt = at.text(0, 16);
    for (name, sampling) in at.samplings() {
        let (_, whole) = drawn(&mut *at.session(), &sampling, &prompt, DRAWN);
        let log = [&prompt[..], &whole.tokens[..4].iter().map(|&token| Token(token)).collect::<Vec<_>>()].concat();
        // Another session; the sampling is set before, and in the middle of, what is fed.
        for set_at in [0, 9] {
            let mut session = at.session();
            let seq = filled(&mut *session, &log[..set_at]);
            session.sample_with(&seq, &sampling, &prompt).unwrap();
            let rest = draw(&mut *session, &seq, &log[set_at..], DRAWN - 4);
            at.agree(&rest, &tail(&whole, 4), &format!("{name}, set at {set_at}"));
        }
    }
}

pub(crate) fn draws_go_on_after_a_fork(at: &Setting<'_>) {
    let prompt = at.text(0, 16);
    let mut session = at.session();
    for (name, sampling) in at.samplings() {
        let (parent, whole) = drawn(&mut *session, &sampling, &prompt, DRAWN);
        let held = held(&prompt, &whole);
        let Some(child) = fork(&mut *session, &parent, prompt.len() + 3) else { continue };
        // Nothing is inherited: what draws is said anew.
        let next = &held[prompt.len() + 3..prompt.len() + 4];
        refused(feed(&mut *session, &child, next, Want::Token), ErrorKind::InvalidInput, "a token without sampling");
        session.sample_with(&child, &sampling, &prompt).unwrap();
        let rest = draw(&mut *session, &child, next, DRAWN - 4);
        at.agree(&rest, &tail(&whole, 4), name);
    }
}

pub(crate) fn draws_go_on_after_a_cut(at: &Setting<'_>) {
    let prompt = at.text(0, 16);
    let mut session = at.session();
    for (name, sampling) in at.samplings() {
        let (seq, whole) = drawn(&mut *session, &sampling, &prompt, DRAWN);
        let held = held(&prompt, &whole);
        // To nothing always works, and the sampling stays.
        let to = if cut(&mut *session, &seq, prompt.len() + 2) { prompt.len() + 2 } else { 0 };
        session.truncate(&seq, to).unwrap();
        let rest = draw(&mut *session, &seq, &held[to..prompt.len() + 3], DRAWN - 3);
        at.agree(&rest, &tail(&whole, 3), name);
    }
}

pub(crate) fn sampling_that_cannot_be_is_an_error(at: &Setting<'_>) {
    let prompt = at.text(0, 12);
    let mut session = at.session();
    let seq = open(&mut *session);
    refused(feed(&mut *session, &seq, &prompt, Want::Token), ErrorKind::InvalidInput, "a token without sampling");
    assert!(seq.is_empty());
    let beyond = Token(u32::try_from(session.limits().vocab).unwrap());
    let set =
        |session: &mut dyn Session, sampling: &Sampling, prompt: &[Token]| session.sample_with(&seq, sampling, prompt);
    set(&mut *session, &Sampling::greedy(), &prompt).unwrap();
    for (what, sampling) in [
        ("a temperature below 0", Sampling::default().with_temperature(-1.0)),
        ("a temperature that is none", Sampling::default().with_temperature(f32::NAN)),
        ("a share above 1", Sampling::default().with_top_p(1.5)),
        ("a token there is not", Sampling::default().with_logit_bias(beyond, 1.0)),
    ] {
        refused(set(&mut *session, &sampling, &prompt), ErrorKind::InvalidInput, what);
    }
    refused(set(&mut *session, &Sampling::greedy(), &[beyond]), ErrorKind::InvalidInput, "a prompt of such a token");
    // What was set before is still set.
    feed(&mut *session, &seq, &prompt, Want::Token).unwrap();
    assert!(session.outputs().token(0).is_some() && session.outputs().logits(0).is_none());
}
