//! What the linked door and the loaded one log goes to whoever loads through it.
//!
//! In a program of its own: `tracing` asks only one thread's subscriber about a place that logs, where there has been only one
//! subscriber yet, and it must not be another test's thread without any.

use infer::{Library, ModelSource};
use std::sync::{Arc, Mutex, MutexGuard};
use test_kit::{Listener, text};

/// The lines that a load logs, without what differs from one to the next.
fn log_of(library: Library) -> Vec<String> {
    let path = build_support::fixtures::model("smollm2").unwrap_or_else(|error| panic!("{error}"));
    let lines = Arc::new(Mutex::new(Vec::new()));
    let kept = lines.clone();
    let listener = Listener::new(move |event| kept.lock().unwrap().push(text(event))).of("llama.cpp");
    tracing::subscriber::with_default(listener, || {
        ModelSource::new(path).with_library(library).with_vocab_only(true).open().unwrap();
    });
    let lines: MutexGuard<'_, Vec<String>> = lines.lock().unwrap();
    lines.iter().filter(|line| !line.contains(" ms") && !line.contains(" s")).cloned().collect()
}

#[test]
fn each_door_has_a_log_of_its_own() {
    let (linked, loaded) = (log_of(Library::Linked), log_of(Library::Found));
    assert!(linked.len() > 10, "{linked:?}");
    assert_eq!(linked, loaded);
    assert_eq!(log_of(Library::Linked), linked, "the second did not take it from the first");
}
