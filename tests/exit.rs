//! A process may end at any moment, whatever native objects are alive then: `exit` runs the destructors of C++ and none of
//! Rust.

use infer::{Batch, Library, Model, ModelSource, OpenOptions, Sequence, Session, SessionOptions, Token, Want};
use kit::child;
use std::{ops::ControlFlow, path::PathBuf, process, sync::mpsc, thread};

fn path() -> PathBuf {
    build_support::fixtures::model("smollm2").unwrap_or_else(|error| panic!("{error}"))
}

fn model(library: Library) -> Box<dyn Model> {
    ModelSource::new(path()).with_library(library).open().unwrap()
}

fn session(model: &dyn Model) -> (Box<dyn Session>, Sequence) {
    let mut session = model.session(&SessionOptions::new().with_context(256).with_threads(2)).unwrap();
    let sequence = session.open(&OpenOptions::default()).unwrap();
    (session, sequence)
}

fn pass(session: &mut dyn Session, sequence: &Sequence) {
    let mut batch = Batch::new();
    batch.push(sequence, &[Token(1)], Want::Logits);
    session.decode(&batch).unwrap();
}

/// Runs passes for ever, and tells of the first one.
fn compute(library: Library, first: &mpsc::Sender<()>) {
    let model = model(library);
    let (mut session, sequence) = session(&*model);
    loop {
        pass(&mut *session, &sequence);
        // The other end goes when the process does.
        let _ = first.send(());
        session.truncate(&sequence, 0).unwrap();
    }
}

#[test]
fn a_process_ends_well_whatever_is_alive() {
    const CASES: [&str; 5] = ["idle", "computing", "two doors", "loading", "unwound"];
    let answers = child::cases("a_process_ends_well_whatever_is_alive", &CASES, |case| {
        let (first, seen) = mpsc::channel();
        match case {
            "idle" => {
                let model = model(Library::Linked);
                let (mut session, sequence) = session(&*model);
                pass(&mut *session, &sequence);
                child::answer("ends");
                process::exit(0);
            }
            "computing" => {
                thread::spawn(move || compute(Library::Linked, &first));
                seen.recv().unwrap();
            }
            // Each closes by itself: the one that ends the process stands in neither.
            "two doors" => {
                for library in [Library::Linked, Library::Found] {
                    let first = first.clone();
                    thread::spawn(move || compute(library, &first));
                    seen.recv().unwrap();
                }
            }
            "loading" => {
                thread::spawn(move || {
                    let mut watch = |_| {
                        let _ = first.send(());
                        ControlFlow::Continue(())
                    };
                    drop(ModelSource::new(path()).open_watched(&mut watch).unwrap());
                });
                seen.recv().unwrap();
            }
            "unwound" => {
                let unwound = thread::spawn(|| {
                    let model = model(Library::Linked);
                    let (mut session, sequence) = session(&*model);
                    pass(&mut *session, &sequence);
                    panic!("as it should");
                });
                assert!(unwound.join().is_err());
            }
            other => panic!("there is no case {other:?}"),
        }
        child::answer("ends");
        process::exit(0);
    });
    assert_eq!(answers, ["ends"; CASES.len()]);
}
