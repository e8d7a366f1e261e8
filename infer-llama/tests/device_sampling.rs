//! Tokens that are drawn in the graph are those that the host draws, over the linked door.

mod kit;

use infer_core::{
    Batch, ErrorKind, KvLayout, OpenOptions, Sampling, Sequence, Session as _, Special, Token, Tokenizer as _, Want,
    sampling::Sampler,
};
use infer_llama::{Llama, Model, Session, SessionOptions};
use kit::tiny;
use std::{
    panic::{self, AssertUnwindSafe},
    sync::LazyLock,
};
use test_kit::{Folder, Listener, Random};

/// Draws that are nearer to the edge between two tokens, as a share of all, may fall on either: sums are rounded differently.
const EDGE: f64 = 1e-5;
/// Two largest logits that are nearer may change places.
const NEAR: f32 = 1e-4;
const LOGPROB: f32 = 1e-3;

static SMOLLM2: LazyLock<Model> = LazyLock::new(|| {
    Model::open(&Llama::linked().unwrap(), build_support::fixtures::model("smollm2").unwrap()).unwrap()
});

fn options() -> SessionOptions {
    SessionOptions::new().with_context(256).with_threads(1).with_micro_batch(16)
}

fn on_device() -> SessionOptions {
    options().with_device_sampling(true)
}

fn open(session: &mut Session) -> Sequence {
    session.open(&OpenOptions::default()).unwrap()
}

fn story() -> Vec<Token> {
    let mut tokens = Vec::new();
    let text = "Once upon a time there was a small compiler that lived in a forest of";
    SMOLLM2.tokenizer().encode(text, Special::PARSE, &mut tokens).unwrap();
    tokens
}

/// A session without device sampling that is fed the same tokens, and what a host draws there.
struct Host {
    session: Session,
    seq: Sequence,
    sampler: Sampler,
    vocab: usize,
}

impl Host {
    fn new(model: &Model, sampling: &Sampling, prompt: &[Token]) -> Self {
        let mut session = model.session(&options()).unwrap();
        let seq = open(&mut session);
        let vocab = session.limits().vocab;
        Self { seq, sampler: Sampler::new(sampling, prompt, vocab).unwrap(), session, vocab }
    }

    /// Feeds tokens, and compares what came of it elsewhere with what is drawn here.
    #[track_caller]
    fn compare(&mut self, tokens: &[Token], drawn: Token, logprob: f32) {
        let mut batch = Batch::new();
        batch.push(&self.seq, tokens, Want::Logits);
        let start = self.seq.len();
        self.session.decode(&batch).unwrap();
        self.sampler.accept(start, tokens);
        let row = self.session.outputs().logits(0).unwrap();
        assert_eq!(row.len(), self.vocab);
        let mut expected = Vec::new();
        self.sampler.sample(row, self.seq.len(), &mut expected).unwrap();
        if expected[0].token == drawn {
            assert!((expected[0].logprob - logprob).abs() < LOGPROB, "{} for {}", logprob, expected[0].logprob);
            return;
        }
        assert!(self.is_near(drawn, expected[0].token), "{drawn} for {} at {}", expected[0].token, self.seq.len());
    }

    fn is_near(&mut self, drawn: Token, expected: Token) -> bool {
        let row = self.session.outputs().logits(0).unwrap();
        if self.sampler.sampling().is_greedy() {
            return row[expected.index()] - row[drawn.index()] < NEAR;
        }
        let mut all = Vec::new();
        self.sampler.distribution(row, self.seq.len(), &mut all).unwrap();
        all.sort_by_key(|(token, _)| *token);
        let uniform = f64::from(self.sampler.uniform(self.seq.len()));
        let mut edge = 0.0;
        all.iter().any(|&(token, share)| {
            let before = edge;
            edge += f64::from(share);
            token == drawn && before - EDGE < uniform && uniform < edge + EDGE
        })
    }
}

/// Generates on the device and compares each draw.
#[track_caller]
fn compare(model: &Model, sampling: &Sampling, prompt: &[Token], count: usize) -> Vec<Token> {
    let mut session = model.session(&on_device()).unwrap();
    assert!(session.capabilities().device_sampling);
    let seq = open(&mut session);
    session.sample_with(&seq, sampling, prompt).unwrap();
    let mut host = Host::new(model, sampling, prompt);
    let (mut batch, mut feed, mut drawn) = (Batch::new(), prompt.to_vec(), Vec::new());
    for _ in 0..count {
        batch.clear();
        batch.push(&seq, &feed, Want::Token);
        session.decode(&batch).unwrap();
        let out = session.outputs();
        let [sampled] = *out.sampled(0) else { panic!("one token") };
        assert!(out.logits(0).is_none());
        host.compare(&feed, sampled.token, sampled.logprob);
        feed = vec![sampled.token];
        drawn.push(sampled.token);
    }
    drawn
}

#[test]
fn greedy_tokens_are_the_hosts() {
    compare(&SMOLLM2, &Sampling::greedy(), &story(), 64);
}

#[test]
fn seeded_tokens_are_the_hosts() {
    let warm = |temperature: f32, seed: u64| Sampling::default().with_temperature(temperature).with_seed(seed);
    compare(&SMOLLM2, &warm(0.9, 1).with_top_k(40).with_min_p(0.02), &story(), 64);
    compare(&SMOLLM2, &warm(1.2, 2), &story(), 12);
    compare(&SMOLLM2, &warm(1.5, 3).with_min_p(0.1), &story(), 8);
    compare(&SMOLLM2, &warm(1.5, 4).with_top_k(3), &story(), 8);
}

/// 259 tokens are 7 rows of 37, and a temperature may be anything.
#[test]
fn odd_vocabularies_and_extreme_samplings() {
    let folder = Folder::new();
    let path = folder.file("tiny.gguf", &tiny::llama().bytes());
    let model = Model::open(&Llama::linked().unwrap(), path).unwrap();
    let prompt = [72, 101, 108].map(Token);
    let warm = |temperature: f32| Sampling::default().with_temperature(temperature).with_seed(5);
    for sampling in [
        Sampling::greedy(),
        warm(1.0),
        warm(100.0),
        warm(1e-40),
        warm(3.0).with_top_k(1),
        warm(3.0).with_top_k(200),
        warm(3.0).with_top_k(258).with_min_p(1e-9),
        warm(3.0).with_min_p(1.0),
    ] {
        compare(&model, &sampling, &prompt, 40);
    }
}

/// Others are drawn on the host, in one batch with them; and whoever asks for logits gets them.
#[test]
fn both_mix_in_one_batch() {
    let prompt = story();
    let greedy = Sampling::greedy();
    let penalised = Sampling::greedy().with_repetition_penalty(1.3);
    let warm = Sampling::default().with_temperature(1.0).with_seed(9).with_top_p(0.9);
    for layout in [KvLayout::Split, KvLayout::Unified] {
        let mut session = SMOLLM2.session(&on_device().with_sequences(5).with_layout(layout)).unwrap();
        let sequences: Vec<_> = (0..5).map(|_| open(&mut session)).collect();
        let samplings = [&greedy, &penalised, &greedy, &warm, &greedy];
        for (seq, sampling) in sequences.iter().zip(samplings) {
            session.sample_with(seq, sampling, &prompt).unwrap();
        }
        let mut hosts: Vec<_> = samplings.iter().map(|sampling| Host::new(&SMOLLM2, sampling, &prompt)).collect();
        let mut feeds = vec![prompt.clone(); 5];
        let mut batch = Batch::new();
        for step in 0..4 {
            batch.clear();
            for (index, (seq, feed)) in sequences.iter().zip(&feeds).enumerate() {
                // The last one wants to see logits now and then, which come with a token too.
                batch.push(seq, feed, if index == 4 && step % 2 == 1 { Want::Logits } else { Want::Token });
            }
            session.decode(&batch).unwrap();
            let out = session.outputs();
            for (index, host) in hosts.iter_mut().enumerate() {
                let [sampled] = *out.sampled(index) else { panic!("{layout:?}: one token for each") };
                host.compare(&feeds[index], sampled.token, sampled.logprob);
                feeds[index] = vec![sampled.token];
            }
            let shown: Vec<_> = (0..5).filter(|&index| out.logits(index).is_some()).collect();
            assert_eq!(shown, if step % 2 == 1 { vec![4] } else { vec![] }, "{layout:?}");
        }
    }
}

/// What is scored or embedded is computed in calls of its own, in one batch with what is drawn on the device.
#[test]
fn draws_stand_beside_scores_and_hidden_states() {
    let prompt = story();
    let mut session = SMOLLM2.session(&on_device().with_sequences(4)).unwrap();
    let sequences: Vec<_> = (0..4).map(|_| open(&mut session)).collect();
    for seq in &sequences {
        session.sample_with(seq, &Sampling::greedy(), &prompt).unwrap();
    }
    // Drawn on the device first: then what they want changes.
    let mut batch = Batch::new();
    for seq in &sequences {
        batch.push(seq, &prompt[..4], Want::Token);
    }
    session.decode(&batch).unwrap();
    batch.clear();
    for (seq, want) in sequences.iter().zip([Want::Score, Want::Token, Want::Embedding, Want::Token]) {
        batch.push(seq, &prompt[4..], want);
    }
    session.decode(&batch).unwrap();
    let out = session.outputs();
    assert_eq!((out.scores(0).len(), out.embedding(2).is_some()), (prompt.len() - 4, true));
    for index in [1, 3] {
        let [sampled] = *out.sampled(index) else { panic!("one token") };
        Host::new(&SMOLLM2, &Sampling::greedy(), &prompt).compare(&prompt, sampled.token, sampled.logprob);
    }
}

#[test]
fn forks_and_cuts_draw_the_same() {
    let prompt = story();
    let sampling = Sampling::default().with_temperature(0.9).with_seed(11).with_top_k(40);
    let drawn = compare(&SMOLLM2, &sampling, &prompt, 12);
    let log = [&prompt[..], &drawn].concat();
    let mut session = SMOLLM2.session(&on_device().with_sequences(2)).unwrap();
    let seq = open(&mut session);
    let go_on = |session: &mut Session, seq: &Sequence| {
        let mut batch = Batch::new();
        while seq.len() + 1 < log.len() {
            batch.clear();
            batch.push(seq, &log[seq.len()..seq.len().max(prompt.len() - 1) + 1], Want::Token);
            session.decode(&batch).unwrap();
            assert_eq!(session.outputs().token(0), Some(log[seq.len()]), "at {}", seq.len());
        }
    };
    session.sample_with(&seq, &sampling, &prompt).unwrap();
    go_on(&mut session, &seq);
    let fork = session.fork(&seq, prompt.len() + 3).unwrap();
    session.sample_with(&fork, &sampling, &prompt).unwrap();
    go_on(&mut session, &fork);
    session.truncate(&seq, prompt.len() - 2).unwrap();
    go_on(&mut session, &seq);
    drop(fork);
    session.truncate(&seq, prompt.len() + 2).unwrap();
    let mut file = Vec::new();
    session.save(&seq, &mut file).unwrap();
    let restored = session.restore(&mut &file[..]).unwrap();
    session.sample_with(&restored, &sampling, &prompt).unwrap();
    go_on(&mut session, &restored);
}

/// Where nobody sees the logits, the draw has to.
#[test]
fn logits_that_are_not_numbers_are_an_error() {
    let folder = Folder::new();
    let mut gguf = tiny::llama();
    let tensor = gguf.tensors.iter_mut().find(|tensor| tensor.name == "output.weight").unwrap();
    tensor.data[..4].copy_from_slice(&f32::NAN.to_le_bytes());
    let model = Model::open(&Llama::linked().unwrap(), folder.file("nan.gguf", &gguf.bytes())).unwrap();
    let mut session = model.session(&on_device()).unwrap();
    let seq = open(&mut session);
    for sampling in [Sampling::greedy(), Sampling::default().with_temperature(1.0)] {
        session.sample_with(&seq, &sampling, &[]).unwrap();
        let mut batch = Batch::new();
        batch.push(&seq, &[Token(72)], Want::Token);
        let error = session.decode(&batch).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Runtime);
        assert!(error.to_string().contains("not a number"), "{error}");
        assert_eq!(seq.len(), 0);
    }
    let mut batch = Batch::new();
    batch.push(&seq, &[Token(72)], Want::Logits);
    // The host has a look at the logits too.
    assert!(session.decode(&batch).unwrap_err().to_string().contains("not a number"));
}

/// The library sorts the largest, and where some are not numbers there is no order to go by.
#[test]
fn logits_that_are_not_numbers_are_an_error_also_where_they_are_sorted() {
    let folder = Folder::new();
    let mut random = Random(3);
    for nth in 0..40 {
        let mut gguf = tiny::llama();
        let tensor = gguf.tensors.iter_mut().find(|tensor| tensor.name == "output.weight").unwrap();
        let (rows, row) = (tensor.shape[1], tensor.shape[0] as usize * 4);
        for number in (0..rows).filter(|_| random.below(40) < nth) {
            tensor.data[number as usize * row..][..4].copy_from_slice(&f32::NAN.to_le_bytes());
        }
        tensor.data[..4].copy_from_slice(&f32::NAN.to_le_bytes());
        let path = folder.file(&format!("nan-{nth}.gguf"), &gguf.bytes());
        let model = Model::open(&Llama::linked().unwrap(), path).unwrap();
        let mut session = model.session(&on_device()).unwrap();
        let seq = open(&mut session);
        for top_k in [1, 40, rows as usize - 1] {
            let sampling = Sampling::default().with_temperature(1.0).with_top_k(top_k);
            session.sample_with(&seq, &sampling, &[]).unwrap();
            let mut batch = Batch::new();
            batch.push(&seq, &[Token(72)], Want::Token);
            let error = session.decode(&batch).unwrap_err();
            assert!(error.to_string().contains("not a number"), "{error}");
            assert_eq!(seq.len(), 0);
        }
    }
}

/// What the library has attached by then, nobody knows; it is neither freed nor taken for what was there before.
#[test]
fn a_panic_while_a_draw_is_placed_harms_nothing() {
    let prompt = story();
    let [greedy, warm] = [Sampling::greedy(), Sampling::default().with_temperature(1.0).with_seed(2)];
    let mut session = SMOLLM2.session(&on_device()).unwrap();
    let seq = open(&mut session);
    for sampling in [&greedy, &warm, &greedy.clone().with_repetition_penalty(1.2), &warm, &greedy] {
        session.truncate(&seq, 0).unwrap();
        session.sample_with(&seq, sampling, &prompt).unwrap();
        let mut batch = Batch::new();
        batch.push(&seq, &prompt, Want::Token);
        let raised = tracing::subscriber::with_default(Listener::new(|_| panic!("from the subscriber")), || {
            panic::catch_unwind(AssertUnwindSafe(|| session.decode(&batch)))
        });
        assert_eq!(raised.unwrap_err().downcast_ref(), Some(&"from the subscriber"));
        assert_eq!(seq.len(), 0);
        session.decode(&batch).unwrap();
        let [sampled] = *session.outputs().sampled(0) else { panic!("one token") };
        Host::new(&SMOLLM2, sampling, &prompt).compare(&prompt, sampled.token, sampled.logprob);
    }
}

#[test]
fn it_is_off_unless_asked_for() {
    let session = SMOLLM2.session(&options()).unwrap();
    assert!(!session.capabilities().device_sampling);
}
