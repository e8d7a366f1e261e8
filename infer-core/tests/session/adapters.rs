use super::*;
use infer_core::AdapterSource;

fn adapted(sources: &[(&str, f32)]) -> Result<Scripted> {
    let source = |&(name, scale): &(&str, f32)| AdapterSource::new(name, "no file is opened").with_scale(scale);
    let options = SessionOptions::new().with_sequences(4);
    ScriptedModel::default().scripted(&sources.iter().map(source).fold(options, SessionOptions::with_adapter))
}

fn open_with(session: &mut dyn Session, adapter: Option<&str>) -> Result<Sequence> {
    let mut options = OpenOptions::default();
    options.adapter = adapter.map(str::to_owned);
    session.open(&options)
}

/// The logits of a sequence that was opened so, alone in its session.
fn alone(adapter: Option<&str>, text: &str) -> Vec<f32> {
    let mut session = adapted(&[("a", 1.0), ("b", 0.5), ("off", 0.0)]).unwrap();
    let seq = open_with(&mut session, adapter).unwrap();
    logits(&mut session, &seq, &tokens(text))
}

#[test]
fn make_another_model_of_it_unless_they_count_nothing() {
    let [bare, a, b] = [None, Some("a"), Some("b")].map(|adapter| alone(adapter, "text"));
    assert!(bare != a && bare != b && a != b);
    assert_eq!(alone(Some("off"), "text"), bare);
    let mut session = adapted(&[("a", 0.25)]).unwrap();
    let seq = open_with(&mut session, Some("a")).unwrap();
    assert_ne!(logits(&mut session, &seq, &tokens("text")), a, "the scale counts");
}

#[test]
fn stay_with_their_sequences() {
    let mut session = adapted(&[("a", 1.0), ("b", 0.5), ("off", 0.0)]).unwrap();
    let [a, b, bare] = [Some("a"), Some("b"), None].map(|name| open_with(&mut session, name).unwrap());
    for seq in [&a, &b, &bare] {
        feed(&mut session, seq, &tokens("te"), Want::Nothing).unwrap();
    }
    let fork = session.fork(&a, 1).unwrap();
    assert_eq!(logits(&mut session, &fork, &tokens("ext")), alone(Some("a"), "text"));
    drop(fork);
    let mut file = Vec::new();
    session.save(&b, &mut file).unwrap();
    let restored = session.restore(&mut &file[..]).unwrap();
    for (seq, adapter) in [(&a, Some("a")), (&b, Some("b")), (&bare, None), (&restored, Some("b"))] {
        assert_eq!(logits(&mut session, seq, &tokens("xt")), alone(adapter, "text"), "{adapter:?}");
    }
    let error = adapted(&[("a", 1.0)]).unwrap().restore(&mut &file[..]).unwrap_err();
    assert!(error.kind() == ErrorKind::InvalidInput && error.to_string().contains("\"b\""), "{error}");
    let error = adapted(&[("b", 0.25)]).unwrap().restore(&mut &file[..]).unwrap_err();
    assert!(error.kind() == ErrorKind::InvalidInput && error.to_string().contains("another scale"), "{error}");
}

#[test]
fn do_not_mix_in_a_batch() {
    let mut session = adapted(&[("a", 1.0)]).unwrap();
    let adapted = open_with(&mut session, Some("a")).unwrap();
    let bare = open(&mut session);
    let mut batch = Batch::new();
    batch.push(&bare, &tokens("text"), Want::Logits);
    batch.push(&adapted, &tokens("text"), Want::Logits);
    let error = session.decode(&batch).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::InvalidInput);
    for words in ["entry 0", "no adapter", "entry 1", "adapter \"a\""] {
        assert!(error.to_string().contains(words), "{error}");
    }
    assert_eq!((bare.len(), adapted.len()), (0, 0));
}

#[test]
fn have_names_that_are_known_and_differ() {
    assert_eq!(kind(adapted(&[("a", 1.0), ("a", 2.0)])), ErrorKind::InvalidInput);
    assert_eq!(kind(adapted(&[("a", f32::NAN)])), ErrorKind::InvalidInput);
    let mut session = adapted(&[("a", 1.0)]).unwrap();
    assert_eq!(kind(open_with(&mut session, Some("b"))), ErrorKind::InvalidInput);
    assert_eq!(session.usage().sequences, 0);
}
