//! What a session says of itself, and adapters.

use crate::setting::{Setting, feed, filled, open, refused, row, unless_unsupported};
use infer::{AdapterSource, Batch, ErrorKind, OpenOptions, Want};
use kit::trace::apart;

/// A flag that is on works at every length, of every sequence; one that is off is `Unsupported` at one at least.
pub(crate) fn capabilities_tell_the_truth(at: &Setting<'_>) {
    // Long, and fed in pieces, so that a window was left behind.
    let text = at.text(0, 120);
    let mut session = at.session();
    let able = session.capabilities().clone();
    let fed = |session: &mut dyn infer::Session| {
        let seq = open(session);
        text.chunks(20).for_each(|part| feed(session, &seq, part, Want::Nothing).unwrap());
        seq
    };
    assert_eq!(able.device_sampling, at.subject.draws);
    let seq = fed(&mut *session);
    // Where two go on from what they share, one of them may have copied no more of it than it needs.
    let other = session.fork(&seq, text.len()).unwrap();
    let mut unsupported = [0, 0];
    for seq in [&other, &seq] {
        feed(&mut *session, seq, &text[..9], Want::Nothing).unwrap();
        for len in (0..=seq.len()).step_by(8) {
            let fork = unless_unsupported(session.fork(seq, len), able.fork, seq.len(), len);
            unsupported[0] += usize::from(fork.is_none());
            drop(fork);
            let whole = session.fork(seq, seq.len()).unwrap();
            let cut = unless_unsupported(session.truncate(&whole, len), able.truncate, seq.len(), len);
            unsupported[1] += usize::from(cut.is_none());
        }
    }
    drop(other);
    for (name, able, unsupported) in [("fork", able.fork, unsupported[0]), ("truncate", able.truncate, unsupported[1])]
    {
        assert_eq!(able, unsupported == 0, "{name} is {able}, and {unsupported} lengths were Unsupported");
    }
    for (want, able) in [(Want::Logits, able.logits), (Want::Embedding, able.embedding), (Want::Score, able.score)] {
        let outcome = feed(&mut *session, &seq, &text[..2], want);
        if able { outcome.unwrap() } else { refused(outcome, ErrorKind::Unsupported, &format!("{want:?}")) }
    }
    let mut state = Vec::new();
    let outcome = session.save(&seq, &mut state);
    if able.save {
        outcome.unwrap()
    } else {
        refused(outcome, ErrorKind::Unsupported, "saving")
    }
    let outcome = session.shift(&seq, 1..3);
    if able.shift { outcome.unwrap() } else { refused(outcome, ErrorKind::Unsupported, "a shift") }
}

fn with(adapter: &str) -> OpenOptions {
    let mut options = OpenOptions::default();
    options.adapter = Some(adapter.into());
    options
}

pub(crate) fn adapters_are_the_sessions(at: &Setting<'_>) {
    let mut session = at.session();
    refused(session.open(&with("nobody")), ErrorKind::InvalidInput, "a name nobody has");
    let nowhere = AdapterSource::new("nowhere", std::env::temp_dir().join("there is no such adapter.gguf"));
    let Some(adapters) = at.subject.adapters else {
        // It either has no adapters at all, or none at that place.
        let outcome = at.model.session(&at.options().with_adapter(nowhere));
        assert!(outcome.is_err() || at.subject.name.starts_with("scripted"));
        return;
    };
    let [right, wrong] = adapters();
    let error = at.model.session(&at.options().with_adapter(wrong)).err().expect("an adapter for another model");
    assert_eq!(error.kind(), ErrorKind::InvalidModel, "{error}");
    let error = at.model.session(&at.options().with_adapter(nowhere)).err().expect("a file that is not there");
    assert_eq!(error.kind(), ErrorKind::Io, "{error}");
    let twice = at.options().with_adapter(right.clone()).with_adapter(right.clone());
    refused(at.model.session(&twice), ErrorKind::InvalidInput, "two of one name");
    let mut session = at.model.session(&at.options().with_adapter(right.clone())).unwrap();
    refused(session.open(&with("nobody")), ErrorKind::InvalidInput, "a name nobody has");
    let seq = session.open(&with(&right.name)).unwrap();
    row(&mut *session, &seq, &at.text(0, 5));
}

pub(crate) fn adapters_change_what_is_computed(at: &Setting<'_>) {
    let Some(adapters) = at.subject.adapters else { return };
    let [right, _] = adapters();
    let text = at.text(0, 20);
    let bare = at.alone(&text);
    let adapted = |scale: f32| {
        let options = at.options().with_adapter(right.clone().with_scale(scale));
        let mut session = at.model.session(&options).unwrap();
        let seq = session.open(&with(&right.name)).unwrap();
        row(&mut *session, &seq, &text)
    };
    let whole = adapted(1.0);
    assert!(apart(&whole, &bare) > 0.1, "an adapter changes something");
    assert!(apart(&adapted(0.5), &whole) > 0.05, "half of it is something else");
    at.near(&adapted(0.0), &bare, "nothing of it is the bare model");

    // Side by side in one session, pass after pass; not in one pass.
    let mut session = at.model.session(&at.options().with_adapter(right.clone())).unwrap();
    let (plain, other) = (filled(&mut *session, &text[..9]), session.open(&with(&right.name)).unwrap());
    feed(&mut *session, &other, &text[..11], Want::Nothing).unwrap();
    let mut batch = Batch::new();
    batch.push(&plain, &text[9..], Want::Logits);
    batch.push(&other, &text[11..], Want::Logits);
    refused(session.decode(&batch), ErrorKind::InvalidInput, "two adapters in one pass");
    assert_eq!((plain.len(), other.len()), (9, 11));
    at.near(&row(&mut *session, &other, &text[11..]), &whole, "the adapted one");
    at.near(&row(&mut *session, &plain, &text[9..]), &bare, "the bare one");
    // A fork has its parent's.
    let child = session.fork(&other, text.len()).unwrap();
    let (found, wanted) = (row(&mut *session, &child, &text[..2]), row(&mut *session, &other, &text[..2]));
    at.near(&found, &wanted, "a fork of the adapted one");
    // And so has what was saved; where there is no such adapter it cannot be restored.
    if !session.capabilities().save {
        return;
    }
    let mut state = Vec::new();
    session.save(&child, &mut state).unwrap();
    let restored = session.restore(&mut &state[..]).unwrap();
    let (found, wanted) = (row(&mut *session, &restored, &text[..2]), row(&mut *session, &other, &text[..2]));
    at.near(&found, &wanted, "the adapted one, saved and restored");
    let mut bare = at.session();
    refused(bare.restore(&mut &state[..]), ErrorKind::InvalidInput, "an adapter that is not there");
    assert_eq!(bare.usage().sequences, 0);
}
