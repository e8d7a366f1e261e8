//! A model that fails when it is told to, in the middle of an evaluation.

use crate::{
    Array, LoadOptions, Mlx, Model, Session, SessionOptions,
    kv::{CacheShape, Kv},
    models::Decoder,
    step::Step,
};
use infer_core::{Batch, ErrorKind, OpenOptions, Sampling, Sequence, Session as _, Token, Want};
use std::{cell::Cell, rc::Rc};

/// A decoder whose graph has something wrong in it, behind all of its layers.
struct Failing {
    decoder: Box<dyn Decoder>,
    fails: Rc<Cell<Fails>>,
}

#[derive(Clone, Copy, PartialEq)]
enum Fails {
    Never,
    /// Two shapes that do not fit.
    WhenBuilt,
    /// The same, after so many graphs in which all is well.
    After(u32),
    /// An index outside of what it is an index of: keys and values of all layers are written when it is found.
    WhenEvaluated,
}

impl Decoder for Failing {
    fn layers(&self) -> &[CacheShape] {
        self.decoder.layers()
    }

    fn forward<'s>(&self, step: &mut Step<'_, 's>) -> Array<'s> {
        let hidden = self.decoder.forward(step);
        match self.fails.get() {
            Fails::Never => hidden,
            Fails::WhenBuilt | Fails::After(0) => hidden.reshape(&[7, 7, 7]),
            Fails::After(more) => {
                self.fails.set(Fails::After(more - 1));
                hidden
            }
            Fails::WhenEvaluated => {
                // Which one it is nobody knows before the layers have been computed.
                let index = (hidden.max(-1, false) * 0.0 + 1e6).as_type(crate::DType::I32);
                hidden + hidden.take(index, 0) * 0.0
            }
        }
    }

    fn head<'s>(&self, hidden: Array<'s>) -> Array<'s> {
        self.decoder.head(hidden)
    }
}

fn failing() -> (Model, Rc<Cell<Fails>>) {
    let mlx = Mlx::load(&LoadOptions::new()).unwrap();
    let folder = build_support::fixtures::model("tiny-mlx-llama").unwrap();
    let fails = Rc::new(Cell::new(Fails::Never));
    let model = Model::open(&mlx, folder).unwrap();
    let model = model.with_decoder(|decoder| Box::new(Failing { decoder, fails: fails.clone() }));
    (model, fails)
}

fn tokens(count: u32, seed: u32) -> Vec<Token> {
    (0..count).map(|at| Token((at * 31 + seed * 17) % 250)).collect()
}

fn logits(session: &mut Session, seq: &Sequence, tokens: &[Token]) -> infer_core::Result<Vec<f32>> {
    let mut batch = Batch::new();
    batch.push(seq, tokens, Want::Logits);
    session.decode(&batch)?;
    Ok(session.outputs().logits(0).unwrap().to_vec())
}

/// Lengths, keys and values, samplers: all as it was, whether buffers were written to, exchanged, or shared; and then the same batch
/// is computed.
#[test]
fn a_pass_that_fails_moves_nothing() {
    let (model, fails) = failing();
    let options = SessionOptions::new().with_sequences(4).with_micro_batch(8);
    let (mut session, mut reference) = (model.session(&options).unwrap(), model.session(&options).unwrap());
    let open = |session: &mut Session| session.open(&OpenOptions::default()).unwrap();
    let sampling = Sampling::greedy().with_repetition_penalty(1.5);
    let text = tokens(250, 1);
    let parent = open(&mut session);
    logits(&mut session, &parent, &text).unwrap();
    let fork = session.fork(&parent, 250).unwrap();
    let empty = open(&mut session);
    for seq in [&parent, &fork, &empty] {
        session.sample_with(seq, &sampling, &text).unwrap();
    }
    // One exchanges its buffers, one copies, one has none yet.
    let parts = [(&parent, tokens(9, 2)), (&fork, tokens(3, 3)), (&empty, tokens(30, 4))];
    let mut batch = Batch::new();
    for (seq, tokens) in &parts {
        batch.push(seq, tokens, Want::Logits);
    }
    let (live, usage) = (model.mlx().live(), session.usage());
    for kind in [Fails::WhenBuilt, Fails::WhenEvaluated] {
        fails.set(kind);
        let error = session.decode(&batch).unwrap_err();
        assert_eq!(error.backend(), Some("mlx"), "{error}");
        assert_ne!(error.kind(), ErrorKind::Cancelled);
        assert!(session.outputs().is_empty());
        assert_eq!((parent.len(), fork.len(), empty.len()), (250, 250, 0));
        assert_eq!((model.mlx().live(), session.usage()), (live, usage));
    }
    fails.set(Fails::Never);
    session.decode(&batch).unwrap();
    let found = [0, 1, 2].map(|at| {
        let out = session.outputs();
        (out.logits(at).unwrap().to_vec(), out.token(at))
    });
    for ((seq, tokens), (row, token)) in parts.iter().zip(found) {
        let before = if std::ptr::eq(*seq, &empty) { &[] } else { &text[..] };
        let other = open(&mut reference);
        reference.sample_with(&other, &sampling, &text).unwrap();
        let expected = logits(&mut reference, &other, &[before, tokens].concat()).unwrap();
        let apart = row.iter().zip(&expected).map(|(a, b)| (a - b).abs()).fold(0.0, f32::max);
        assert!(apart < 1e-4, "{apart}");
        assert_eq!(token, reference.outputs().token(0));
    }
}

/// What the folder says, before anything is loaded, is what a session takes, whatever its numbers are and where its layers have windows.
#[test]
fn keys_and_values_take_what_their_folder_says() {
    let mlx = Mlx::load(&LoadOptions::new()).unwrap();
    for name in [
        "tiny-mlx-llama",
        "tiny-mlx-llama-f16",
        "tiny-mlx-llama-bf16",
        "tiny-mlx-llama-4bit",
        "tiny-mlx-llama-mixed",
        "tiny-mlx-mistral-windows",
        "tiny-mlx-qwen2",
        "tiny-mlx-qwen3",
        "tiny-mlx-gemma3-bf16",
        "tiny-mlx-phi3-longrope",
    ] {
        let model = Model::open(&mlx, build_support::fixtures::model(name).unwrap()).unwrap();
        let (kind, rows) = model.package().kv().expect("it is a decoder").clone();
        let mut session = model.session(&SessionOptions::new().with_micro_batch(8)).unwrap();
        let seq = session.open(&OpenOptions::default()).unwrap();
        let context = session.limits.context;
        let all = session.layout.keeps_all();
        assert_eq!(session.layout.most_bytes(context, session.dtype), rows.bytes(kind, context), "{name}");
        for count in [1, 255, 4] {
            logits(&mut session, &seq, &tokens(count.min(context as u32 - seq.len() as u32), 1)).unwrap();
            let (held, most) = (session.kvs.iter().map(Kv::bytes).sum::<u64>(), rows.bytes(kind, seq.len()));
            assert!(
                if all { held == most } else { held <= most },
                "{name}: {held} bytes of {} positions, not {most}",
                seq.len()
            );
        }
    }
}

/// A pass that has made buffers of its own, written behind their end and then failed gives up those; in the ones it shared, rows
/// that others have written count as before.
#[test]
fn a_pass_that_fails_in_buffers_of_its_own_leaves_shared_ones_alone() {
    let (model, fails) = failing();
    let options = SessionOptions::new().with_sequences(4).with_micro_batch(2);
    let (mut session, mut reference) = (model.session(&options).unwrap(), model.session(&options).unwrap());
    let (text, next) = (tokens(15, 1), tokens(1, 2));
    let owner = session.open(&OpenOptions::default()).unwrap();
    logits(&mut session, &owner, &text[..10]).unwrap();
    let copies = session.fork(&owner, 10).unwrap();
    logits(&mut session, &owner, &text[10..]).unwrap();
    let shorter = session.fork(&owner, 12).unwrap();
    // Two tokens in new buffers, up to where the shorter one ends; two behind them; the last two fail.
    fails.set(Fails::After(2));
    logits(&mut session, &copies, &tokens(6, 3)).unwrap_err();
    fails.set(Fails::Never);
    logits(&mut session, &shorter, &tokens(3, 4)).unwrap();
    let row = logits(&mut session, &owner, &next).unwrap();
    let other = reference.open(&OpenOptions::default()).unwrap();
    let expected = logits(&mut reference, &other, &[text, next].concat()).unwrap();
    let apart = row.iter().zip(&expected).map(|(a, b)| (a - b).abs()).fold(0.0, f32::max);
    assert!(apart < 1e-4, "{apart}");
}

/// A session is not made of weights that do not fit together.
#[test]
fn shapes_that_do_not_fit_are_found_when_a_session_is_made() {
    let (model, fails) = failing();
    fails.set(Fails::WhenBuilt);
    let error = model.session(&SessionOptions::new()).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::InvalidModel);
    assert!(error.to_string().contains("reshape"), "{error}");
}
