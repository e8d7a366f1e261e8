//! What the linked door and the loaded one log goes to whoever loads through it.
//!
//! In a program of its own: `tracing` asks only one thread's subscriber about a place that logs, where there has been only one
//! subscriber yet, and it must not be another test's thread without any.

use infer::{Library, ModelSource};
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
