//! What can be asked of a session, and what a folder may say of its graph.

use crate::kit::{Copy, feed, growing, open, open_in, options, shared, text};
use infer_core::{AdapterSource, ErrorKind, KvLayout, Session as _, SessionOptions};

#[test]
fn options_that_cannot_be_are_errors_by_name() {
    let model = shared().model();
    let trained = model.info().context;
    for (what, kind, options) in [
        ("layout", ErrorKind::Unsupported, options().with_layout(KvLayout::Unified)),
        ("cells", ErrorKind::InvalidInput, options().with_cells(64)),
        ("adapter", ErrorKind::Unsupported, options().with_adapter(AdapterSource::new("one", "one.gguf"))),
        ("context", ErrorKind::InvalidInput, options().with_context(trained + 1)),
        ("sequences", ErrorKind::InvalidInput, options().with_sequences(0)),
        ("batch", ErrorKind::InvalidInput, options().with_batch(0)),
        ("threads", ErrorKind::InvalidInput, options().with_threads(0)),
    ] {
        let error = model.session(&options).expect_err(what);
        assert_eq!(error.kind(), kind, "{what}: {error}");
    }
    let session = model.session(&SessionOptions::new().with_threads(1).with_layout(KvLayout::Split)).unwrap();
    assert_eq!(session.limits().context, trained);
    assert_eq!(session.limits().vocab, model.info().vocab);
    assert_eq!(session.usage().cells_free, trained);
}

/// The operator works either way: what the configuration says decides.
#[test]
fn a_graph_that_can_share_need_not() {
    let (form, copy) = (shared(), Copy::of(shared().name));
    copy.replace("genai_config.json", "\"past_present_share_buffer\": true", "\"past_present_share_buffer\": false");
    let model = open(copy.path()).unwrap();
    let mut session = model.session(&options()).unwrap();
    let (seq, log) = (open_in(&mut session), text(1, 30));
    for part in log.chunks(7) {
        feed(&mut session, &seq, part);
    }
    let child = session.fork(&seq, 30).unwrap();
    assert_eq!(session.kv_bytes_copied(), 0, "its tensors are new ones");
    let row = feed(&mut session, &child, &text(2, 2));
    form.near(&row, &[log, text(2, 2)].concat(), "a graph that shares, not sharing");
}

/// A graph that gives new tensors refuses to write into a buffer, and nobody is harmed.
#[test]
fn a_graph_that_cannot_share_says_so() {
    let copy = Copy::of(growing().name);
    let info = growing().model().info().clone();
    let config = format!(
        r#"{{"model": {{"type": "llama", "context_length": {}, "vocab_size": {}, "decoder": {{"filename": "model.onnx",
            "num_attention_heads": {}, "num_key_value_heads": {}, "num_hidden_layers": {}, "head_size": {}}}}},
            "search": {{"past_present_share_buffer": true}}}}"#,
        info.context,
        info.vocab,
        info.heads,
        info.kv_heads,
        info.layers,
        info.width / info.heads
    );
    std::fs::write(copy.path().join("genai_config.json"), config).unwrap();
    let model = open(copy.path()).unwrap();
    let mut session = model.session(&options()).unwrap();
    let seq = open_in(&mut session);
    let mut batch = infer_core::Batch::new();
    batch.push(&seq, &text(1, 3), infer_core::Want::Logits);
    for _ in 0..2 {
        let error = session.decode(&batch).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Runtime, "{error:?}");
        assert!(error.to_string().contains("past_present_share_buffer"), "{error:?}");
        assert!(seq.is_empty() && !seq.is_spent());
    }
}

#[test]
fn a_session_may_move_to_another_thread() {
    fn send<T: Send>(value: T) -> T {
        value
    }
    for form in [shared(), growing()] {
        let mut session = send(form.session());
        let row = std::thread::spawn(move || {
            let seq = open_in(&mut session);
            feed(&mut session, &seq, &text(5, 9))
        });
        form.near(&row.join().unwrap(), &text(5, 9), "on another thread");
    }
}
