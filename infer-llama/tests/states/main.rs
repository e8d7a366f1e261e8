//! Saved and restored sequences, over the linked door.

mod continued;
mod forged;
#[path = "../kit/mod.rs"]
mod kit;
#[path = "../kit/linked.rs"]
mod linked;
mod refused;

use infer_core::{Error, ErrorKind, KvLayout, Sequence, Session as _, Token};
use infer_llama::{Model, Session};
use linked::{feed, open, options, session};

const DECODERS: [&str; 4] = ["tiny-llama", "tiny-gemma3", "tiny-mamba", "tiny-lfm2"];

fn saved(session: &mut Session, seq: &Sequence) -> Vec<u8> {
    let mut state = Vec::new();
    session.save(seq, &mut state).unwrap();
    state
}

fn restored(session: &mut Session, mut state: &[u8]) -> Result<Sequence, Error> {
    session.restore(&mut state)
}

/// A session with a sequence of `tokens`, and that sequence's state.
fn some_state(model: &Model, tokens: &[Token]) -> (Session, Sequence, Vec<u8>) {
    let mut session = session(model, &options().with_layout(KvLayout::Unified));
    let seq = open(&mut session);
    feed(&mut session, &seq, tokens);
    let state = saved(&mut session, &seq);
    (session, seq, state)
}

/// Nothing of a refused state is left: sequences and cells are as they were, and a restore of the right one works.
#[track_caller]
fn assert_refused(session: &mut Session, state: &[u8], kind: ErrorKind, why: &str) {
    let before = session.usage();
    let error = restored(session, state).unwrap_err();
    assert_eq!(error.kind(), kind, "{error}");
    assert!(format!("{error:?}").contains(why), "{error:?}, which does not say {why:?}");
    assert_eq!(session.usage(), before);
}
