//! What cannot be is an error by name, and harms nothing.

use crate::tiny::{feed, llama, logits, model, open, options, session, tokens};
use infer_core::{AdapterSource, Batch, ErrorKind, KvLayout, OpenOptions, Session as _, SessionOptions, Token, Want};
use infer_mlx::{Model, ModelOptions};

#[test]
fn options_out_of_range_are_named() {
    let model = llama();
    let common = SessionOptions::new;
    for (options, kind, says) in [
        (common().with_sequences(0), ErrorKind::InvalidInput, "sequences: 0 is asked for, 1 to 256 is possible"),
        (common().with_sequences(257), ErrorKind::InvalidInput, "sequences: 257"),
        (common().with_context(513), ErrorKind::InvalidInput, "context: 513 is asked for, 1 to 512"),
        (common().with_batch(0), ErrorKind::InvalidInput, "batch: 0"),
        (common().with_threads(0), ErrorKind::InvalidInput, "threads: 0"),
        (common().with_layout(KvLayout::Unified), ErrorKind::Unsupported, "not unified"),
        (common().with_cells(100), ErrorKind::InvalidInput, "cells are chosen"),
        (common().with_adapter(AdapterSource::new("x", "x")), ErrorKind::Unsupported, "adapter \"x\""),
    ] {
        let error = model.session(&options.into()).unwrap_err();
        assert_eq!(error.kind(), kind, "{error}");
        assert!(error.to_string().contains(says), "{error}");
    }
    let error = model.session(&options().with_micro_batch(0)).unwrap_err();
    assert!(error.to_string().contains("micro_batch: 0"), "{error}");
}

#[test]
fn a_model_without_weights_has_no_session() {
    let folder = build_support::fixtures::model("tiny-mlx-llama").unwrap();
    let mlx = crate::kit::mlx();
    let model = Model::open_with(&mlx, folder, &ModelOptions::new().with_vocab_only(true)).unwrap();
    let error = model.session(&options()).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unsupported);
    assert!(error.to_string().contains("vocabulary only"), "{error}");
}

#[test]
fn a_wrong_batch_is_refused_and_the_next_one_is_computed() {
    let (model, other) = (llama(), model("tiny-mlx-qwen2"));
    let (mut session, mut foreign) = (session(&model), session(&other));
    let (seq, theirs) = (open(&mut session), open(&mut foreign));
    let evals = model.mlx().evals();
    for (seq, tokens, want, kind) in [
        (&seq, vec![], Want::Nothing, ErrorKind::InvalidInput),
        (&seq, vec![Token(259)], Want::Nothing, ErrorKind::InvalidInput),
        (&seq, tokens(1, 1), Want::Token, ErrorKind::InvalidInput),
        (&seq, tokens(513, 1), Want::Nothing, ErrorKind::InvalidInput),
        (&theirs, tokens(1, 1), Want::Nothing, ErrorKind::ForeignSequence),
    ] {
        let error = feed(&mut session, seq, &tokens, want).unwrap_err();
        assert_eq!(error.kind(), kind, "{error}");
        assert!(session.outputs().is_empty());
    }
    feed(&mut session, &seq, &tokens(512, 1), Want::Nothing).unwrap();
    assert_eq!(feed(&mut session, &seq, &tokens(1, 1), Want::Nothing).unwrap_err().kind(), ErrorKind::ContextFull);
    assert_eq!(model.mlx().evals() - evals, 1);
    session.truncate(&seq, 100).unwrap();
    logits(&mut session, &seq, &tokens(1, 1));
}

#[test]
fn sequences_are_limited_and_adapters_are_not_there() {
    let model = llama();
    let mut session = model.session(&options().with_sequences(2)).unwrap();
    let (one, _two) = (open(&mut session), open(&mut session));
    assert_eq!(session.open(&OpenOptions::default()).unwrap_err().kind(), ErrorKind::TooManySequences);
    assert_eq!(session.fork(&one, 0).unwrap_err().kind(), ErrorKind::TooManySequences);
    drop(one);
    let error = session.open(&OpenOptions::new().with_adapter("x")).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::InvalidInput);
    let seq = open(&mut session);
    feed(&mut session, &seq, &tokens(3, 1), Want::Nothing).unwrap();
    assert_eq!(session.shift(&seq, 0..1).unwrap_err().kind(), ErrorKind::Unsupported);
    assert_eq!((session.usage().cells, session.usage().sequences), (3, 2));
    let mut batch = Batch::new();
    batch.push(&seq, &tokens(1, 1), Want::Nothing);
    session.truncate(&seq, 2).unwrap();
    assert_eq!(session.decode(&batch).unwrap_err().kind(), ErrorKind::StaleSequence);
}
