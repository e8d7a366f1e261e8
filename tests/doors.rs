//! The linked door and the loaded one in one process: two copies of llama.cpp that know nothing of each other.

use infer::{Batch, Library, ModelSource, OpenOptions, Session, Token, Want};
use kit::{greedy::Settings, prompts};
use std::sync::{Arc, Mutex};
use tracing::{Event, Metadata, Subscriber, field, span};

/// Keeps each line of llama.cpp's.
#[derive(Clone, Default)]
struct Lines(Arc<Mutex<Vec<String>>>);

impl Subscriber for Lines {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        metadata.target() == "llama.cpp"
    }
    fn new_span(&self, _: &span::Attributes<'_>) -> span::Id {
        span::Id::from_u64(1)
    }
    fn record(&self, _: &span::Id, _: &span::Record<'_>) {}
    fn record_follows_from(&self, _: &span::Id, _: &span::Id) {}
    fn event(&self, event: &Event<'_>) {
        struct Text<'t>(&'t mut Vec<String>);
        impl field::Visit for Text<'_> {
            fn record_debug(&mut self, _: &field::Field, value: &dyn std::fmt::Debug) {
                self.0.push(format!("{value:?}"));
            }
        }
        event.record(&mut Text(&mut self.0.lock().unwrap()));
    }
    fn enter(&self, _: &span::Id) {}
    fn exit(&self, _: &span::Id) {}
}

/// The lines that a load logs, without what differs from one to the next.
fn log_of(library: Library) -> Vec<String> {
    let path = build_support::fixtures::model("smollm2").unwrap_or_else(|error| panic!("{error}"));
    let lines = Lines::default();
    tracing::subscriber::with_default(lines.clone(), || {
        ModelSource::new(path).with_library(library).with_vocab_only(true).open().unwrap();
    });
    let lines = lines.0.lock().unwrap();
    lines.iter().filter(|line| !line.contains(" ms") && !line.contains(" s")).cloned().collect()
}

#[test]
fn each_door_has_a_log_of_its_own() {
    let (linked, loaded) = (log_of(Library::Linked), log_of(Library::Found));
    assert!(linked.len() > 10, "{linked:?}");
    assert_eq!(linked, loaded);
    assert_eq!(log_of(Library::Linked), linked, "the second did not take it from the first");
}

#[test]
fn both_doors_give_the_same_tokens() {
    let path = build_support::fixtures::model("smollm2").unwrap_or_else(|error| panic!("{error}"));
    let settings = Settings { threads: 1, context: 512, count: 16 };
    let [linked, loaded] = [Library::Linked, Library::Found].map(|library| {
        let source = ModelSource::new(&path).with_library(library);
        source.open().unwrap_or_else(|error| panic!("{error}"))
    });
    // Both are alive at the same time, and take turns.
    let (mut a, mut b) = (settings.session(&*linked, 512), settings.session(&*loaded, 512));
    for prompt in &prompts::all()[..3] {
        let tokens = settings.generate(&*linked, &mut *a, prompt);
        assert_eq!(settings.generate(&*loaded, &mut *b, prompt), tokens, "{prompt:?}");
        assert!(!tokens.is_empty());
    }
}

/// What one door saved the other restores: the state is the library's, not the process's.
#[test]
fn a_state_saved_behind_one_door_is_restored_behind_the_other() {
    let path = build_support::fixtures::model("tiny-llama").unwrap_or_else(|error| panic!("{error}"));
    let settings = Settings { threads: 1, context: 256, count: 1 };
    let [linked, loaded] = [Library::Linked, Library::Found].map(|library| {
        let source = ModelSource::new(&path).with_library(library);
        source.open().unwrap_or_else(|error| panic!("{error}"))
    });
    let (mut a, mut b) = (settings.session(&*linked, 64), settings.session(&*loaded, 64));
    let (prompt, more) = ((0..50).map(Token).collect::<Vec<_>>(), [Token(7), Token(9)]);
    let feed = |session: &mut dyn Session, seq: &infer::Sequence, tokens: &[Token]| {
        let mut batch = Batch::new();
        batch.push(seq, tokens, Want::Logits);
        session.decode(&batch).unwrap();
        session.outputs().logits(0).unwrap().to_vec()
    };
    let seq = a.open(&OpenOptions::default()).unwrap();
    feed(&mut *a, &seq, &prompt);
    let mut state = Vec::new();
    a.save(&seq, &mut state).unwrap();
    let restored = b.restore(&mut &state[..]).unwrap();
    assert_eq!(restored.len(), prompt.len());
    let (there, here) = (feed(&mut *b, &restored, &more), feed(&mut *a, &seq, &more));
    let apart = there.iter().zip(&here).map(|(a, b)| (a - b).abs()).fold(0.0, f32::max);
    assert!(apart < 0.01, "{apart}");
}
