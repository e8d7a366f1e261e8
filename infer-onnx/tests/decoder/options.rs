//! What can be asked of a session, and what a folder may say of its graph.

use crate::kit::{FORMS, copy, feed, growing, open, open_in, options, shared, text};
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
    let (form, copy) = (shared(), copy(shared()));
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

/// What is saved is the same bytes, however they lie.
#[test]
fn a_state_fits_either_form() {
    let (form, copy) = (shared(), copy(shared()));
    copy.replace("genai_config.json", "\"past_present_share_buffer\": true", "\"past_present_share_buffer\": false");
    let mut sessions = [form.session(), open(copy.path()).unwrap().session(&options()).unwrap()];
    let mut log = text(1, 11);
    let mut seq = open_in(&mut sessions[0]);
    feed(&mut sessions[0], &seq, &log);
    for (from, to) in [(0, 1), (1, 0), (0, 1)] {
        let mut state = Vec::new();
        sessions[from].save(&seq, &mut state).unwrap();
        seq = sessions[to].restore(&mut &state[..]).unwrap();
        log.extend(text(2, 3));
        let row = feed(&mut sessions[to], &seq, &text(2, 3));
        form.near(&row, &log, &format!("restored in session {to}"));
    }
}

#[test]
fn a_state_of_another_model_is_refused() {
    let mut session = shared().session();
    let seq = open_in(&mut session);
    feed(&mut session, &seq, &text(1, 4));
    let mut state = Vec::new();
    session.save(&seq, &mut state).unwrap();
    for form in &FORMS[1..] {
        let error = form.session().restore(&mut &state[..]).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::InvalidInput, "{}: {error}", form.name);
        assert!(error.to_string().contains("another model"), "{}: {error}", form.name);
    }
}

#[test]
fn a_tokenizer_of_another_model_is_refused() {
    let copy = copy(shared());
    let logits = u32::try_from(shared().model().info().vocab).unwrap();
    let path = copy.path().join("tokenizer.json");
    let mut file: serde_json::Value = serde_json::from_slice(&std::fs::read(&path).unwrap()).unwrap();
    file["model"]["vocab"]["ab"] = logits.into();
    std::fs::write(&path, file.to_string()).unwrap();
    let error = open(copy.path()).and_then(|model| model.session(&options())).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::InvalidModel, "{error}");
    let message = error.to_string();
    assert!(message.contains(&logits.to_string()) && message.contains(&(logits + 1).to_string()), "{message}");
}

#[test]
fn a_configuration_of_another_graph_is_refused_by_name() {
    for (from, to, word) in [
        ("\"vocab_size\": 259", "\"vocab_size\": 260", "logits"),
        ("\"num_hidden_layers\": 2", "\"num_hidden_layers\": 3", "layers"),
        ("\"num_key_value_heads\": 2", "\"num_key_value_heads\": 4", "heads"),
        ("\"input_ids\": \"input_ids\"", "\"input_ids\": \"tokens\"", "tokens"),
        ("\"logits\": \"logits\"", "\"logits\": \"scores\"", "scores"),
        ("present.%d.key", "present.%d.keys", "present.0.keys"),
    ] {
        let copy = copy(shared());
        copy.replace("genai_config.json", from, to);
        let error = open(copy.path()).unwrap_err();
        assert!(matches!(error.kind(), ErrorKind::InvalidModel | ErrorKind::Unsupported), "{to}: {error:?}");
        assert!(error.to_string().contains(word), "{to}: {error}");
    }
}

/// A graph that gives new tensors refuses to write into a buffer, and nobody is harmed.
#[test]
fn a_graph_that_cannot_share_says_so() {
    let copy = copy(growing());
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
