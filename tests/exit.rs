//! A process may end at any moment, whatever native objects are alive then: `exit` runs the destructors of C++ and none of
//! Rust.

use infer::{Batch, Model, ModelSource, OpenOptions, Sequence, Session, SessionOptions, Token, Want};
use kit::child;
use std::{ops::ControlFlow, path::PathBuf, process, sync::mpsc, thread};

fn path() -> PathBuf {
    build_support::fixtures::model("smollm2").unwrap_or_else(|error| panic!("{error}"))
}

fn model() -> Box<dyn Model> {
    infer::open(path()).unwrap()
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
fn compute(first: &mpsc::Sender<()>) {
    let model = model();
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
    const CASES: [&str; 4] = ["idle", "computing", "loading", "unwound"];
    let answers = child::cases("a_process_ends_well_whatever_is_alive", &CASES, |case| {
        let (first, seen) = mpsc::channel();
        match case {
            "idle" => {
                let model = model();
                let (mut session, sequence) = session(&*model);
                pass(&mut *session, &sequence);
                child::answer("ends");
                process::exit(0);
            }
            "computing" => {
                thread::spawn(move || compute(&first));
                seen.recv().unwrap();
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
                    let model = model();
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
