//! Tokens that are drawn where the logits are computed are those that the host draws.

use crate::tiny::{feed, llama, model, open, options, tokens};

use infer_core::{
    Batch, Constraint, ErrorKind, Sampling, Session as _, Special, Token, Tokenizer as _, Want, sampling::Sampler,
};
use infer_mlx::{Model, Session};

/// Draws that are nearer to the edge between two tokens, as a share of all, may fall on either: sums are rounded differently.
const EDGE: f64 = 1e-5;
/// Two largest logits that are nearer may change places.
const CLOSE: f32 = 1e-4;

fn drawing(model: &Model) -> Session {
    let session = model.session(&options().with_context(256).with_device_sampling(true)).unwrap();
    assert!(session.capabilities().device_sampling);
    session
}

/// What a host draws from the logits of the same tokens.
struct Host {
    session: Session,
    seq: infer_core::Sequence,
    sampler: Sampler,
}

impl Host {
    fn new(model: &Model, sampling: &Sampling, prompt: &[Token]) -> Self {
        let mut session = model.session(&options().with_context(256)).unwrap();
        assert!(!session.capabilities().device_sampling);
        let seq = open(&mut session);
        let sampler = Sampler::for_vocab(sampling, prompt, model.tokenizer().vocab()).unwrap();
        Self { session, seq, sampler }
    }

    #[track_caller]
    fn compare(&mut self, fed: &[Token], drawn: &[infer_core::Sampled]) {
        let start = self.seq.len();
        feed(&mut self.session, &self.seq, fed, Want::Logits).unwrap();
        self.sampler.accept(start, fed);
        let (row, position) = (self.session.outputs().logits(0).unwrap(), self.seq.len());
        let mut expected = Vec::new();
        self.sampler.sample(row, position, &mut expected).unwrap();
        if expected[0].token == drawn[0].token {
            assert!((expected[0].logprob - drawn[0].logprob).abs() < 1e-3);
            assert!(expected.iter().map(|one| one.token).eq(drawn.iter().map(|one| one.token)), "what is forced");
            return;
        }
        let (drawn, expected) = (drawn[0].token, expected[0].token);
        let mut all = Vec::new();
        self.sampler.distribution(row, position, &mut all).unwrap();
        all.sort_by_key(|(token, _)| *token);
        let (uniform, mut edge) = (f64::from(self.sampler.uniform(position)), 0.0);
        let is_close = all.iter().any(|&(token, share)| {
            let before = edge;
            edge += f64::from(share);
            token == drawn && before - EDGE < uniform && uniform < edge + EDGE
        });
        let is_near = self.sampler.sampling().is_greedy() && row[expected.index()] - row[drawn.index()] < CLOSE;
        assert!(is_close || is_near, "{drawn} for {expected} at {position}");
    }
}

/// Generates on the device and compares each draw.
#[track_caller]
fn compare(model: &Model, sampling: &Sampling, prompt: &[Token], count: usize) {
    let mut session = drawing(model);
    let seq = open(&mut session);
    session.sample_with(&seq, sampling, prompt).unwrap();
    let mut host = Host::new(model, sampling, prompt);
    let mut fed = prompt.to_vec();
    for _ in 0..count {
        feed(&mut session, &seq, &fed, Want::Token).unwrap();
        let out = session.outputs();
        assert!(out.logits(0).is_none() && !out.sampled(0).is_empty(), "{:?}", out.error(0));
        host.compare(&fed, out.sampled(0));
        fed = vec![out.token(0).unwrap()];
    }
}

fn warm(temperature: f32) -> Sampling {
    Sampling::default().with_temperature(temperature).with_seed(7)
}

#[test]
fn tokens_are_the_hosts() {
    let (model, prompt) = (llama(), tokens(9, 1));
    for sampling in [
        Sampling::greedy(),
        Sampling::greedy().with_top_k(5).with_logit_bias(Token(3), 2.0),
        warm(1.0),
        warm(100.0),
        warm(1e-40),
        warm(0.8).with_min_p(0.1),
        warm(1.5).with_top_k(1),
        warm(1.5).with_top_k(40),
        warm(1.5).with_top_k(258),
        warm(1.5).with_top_k(9999),
        warm(1.2).with_top_p(0.6),
        warm(1.2).with_top_p(0.0),
        warm(3.0).with_top_k(50).with_top_p(0.9).with_min_p(0.02),
        warm(3.0).with_min_p(1.0),
        warm(1.0).with_logit_bias(Token(5), f32::NEG_INFINITY).with_logit_bias(Token(9), 4.0).with_top_p(0.7),
    ] {
        compare(&model, &sampling, &prompt, 24);
    }
}

/// A constraint's mask goes in with the random number; what it forces comes out with the token.
#[test]
fn constrained_tokens_are_the_hosts() {
    let (model, prompt) = (llama(), tokens(9, 1));
    let list = Constraint::json_schema(r#"{"type": "array", "items": {"const": "yes"}, "minItems": 2, "maxItems": 9}"#);
    for sampling in [warm(1.0), Sampling::greedy(), warm(1.0).with_top_k(4).with_logit_bias(Token(b'y'.into()), 1.0)] {
        compare(&model, &sampling.clone().with_constraint(Constraint::regex("[a-f]{40}")), &prompt, 24);
        compare(&model, &sampling.clone().with_constraint(list.clone()), &prompt, 12);
        // One with a budget is the host's: a token may be found to be too late when it was drawn.
        compare(&model, &sampling.with_constraint(list.clone().with_budget(30)), &prompt, 10);
    }
}

/// Vocabularies of tens of thousands, and logits as they are in earnest.
#[test]
fn tokens_of_a_real_model_are_the_hosts() {
    let smollm2 = model("smollm2-mlx");
    let mut prompt = Vec::new();
    let text = "Once upon a time there was a small compiler that lived in a forest of";
    smollm2.tokenizer().encode(text, Special::PARSE, &mut prompt).unwrap();
    compare(&smollm2, &Sampling::greedy(), &prompt, 6);
    compare(&smollm2, &warm(1.0).with_top_k(40).with_top_p(0.95).with_min_p(0.01), &prompt, 6);
    compare(&smollm2, &warm(1.3), &prompt, 4);
}

/// All kinds in one batch, with what the host draws, scores and hidden states.
#[test]
fn they_mix_in_one_batch_in_one_evaluation() {
    let (model, prompt) = (llama(), tokens(12, 3));
    let samplings = [
        warm(1.0).with_top_k(9),
        Sampling::greedy().with_repetition_penalty(1.3),
        Sampling::greedy(),
        warm(0.7),
        warm(1.0).with_logit_bias(Token(1), 3.0),
        Sampling::greedy().with_logprobs(3),
        warm(1.0).with_top_p(0.8),
    ];
    let mut session = drawing(&model);
    let sequences: Vec<_> = samplings.iter().map(|_| open(&mut session)).collect();
    let mut hosts: Vec<_> = samplings.iter().map(|sampling| Host::new(&model, sampling, &prompt)).collect();
    for (seq, sampling) in sequences.iter().zip(&samplings) {
        session.sample_with(seq, sampling, &prompt).unwrap();
    }
    let scored = open(&mut session);
    let mut fed = vec![prompt; samplings.len()];
    for _ in 0..5 {
        let mut batch = Batch::new();
        for (seq, fed) in sequences.iter().zip(&fed) {
            batch.push(seq, fed, Want::Token);
        }
        let last = batch.push(&scored, &tokens(3, 1), Want::Score);
        let evals = model.mlx().evals();
        session.decode(&batch).unwrap();
        assert_eq!(model.mlx().evals() - evals, 1);
        let out = session.outputs();
        assert_eq!(out.scores(last).len(), 3);
        assert_eq!(out.top(5).len(), 3);
        for (at, host) in hosts.iter_mut().enumerate() {
            host.compare(&fed[at], out.sampled(at));
            fed[at] = vec![out.token(at).unwrap()];
        }
    }
}

/// What cannot be drawn is an error of its entry, or of the pass.
#[test]
fn what_is_forbidden_is_not_drawn() {
    let model = llama();
    let mut session = drawing(&model);
    let (one, other) = (open(&mut session), open(&mut session));
    session.sample_with(&one, &warm(1.0).with_constraint(Constraint::regex("[0-9]{8}")), &[]).unwrap();
    session.sample_with(&other, &warm(1.0), &[]).unwrap();
    let text = [b'1', b'x'].map(|byte| Token(byte.into()));
    let mut batch = Batch::new();
    batch.push(&one, &text, Want::Token);
    batch.push(&other, &text, Want::Token);
    session.decode(&batch).unwrap();
    let out = session.outputs();
    assert_eq!(out.error(0).unwrap().kind(), ErrorKind::InvalidConstraint);
    assert!(out.token(0).is_none() && out.token(1).is_some() && out.error(1).is_none());
    assert_eq!((one.len(), other.len()), (2, 2), "the pass is done");
    session.truncate(&one, 1).unwrap();
    feed(&mut session, &one, &text[..1], Want::Token).unwrap();
    assert!(session.outputs().token(0).is_some_and(|token| (48..58).contains(&token.0)), "cut, it goes on");

    let mut nothing = Sampling::greedy();
    nothing.logit_bias = (0..259).map(|token| (Token(token), f32::NEG_INFINITY)).collect();
    for sampling in
        [nothing.clone(), nothing.clone().with_temperature(1.0), nothing.with_temperature(1.0).with_top_k(3)]
    {
        session.sample_with(&other, &sampling, &[]).unwrap();
        let error = feed(&mut session, &other, &text, Want::Token).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Runtime);
        assert!(error.to_string().contains("forbids every token"), "{error}");
        assert_eq!(other.len(), 2);
    }
}
