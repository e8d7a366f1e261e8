//! States that are saved and restored, or `Unsupported`.

use crate::setting::{SEQUENCES, Setting, draw, filled, open, refused};
use infer::{ErrorKind, Sequence, Session, Token};
use std::io::{self, Read, Write};

/// The state of a sequence; `None` where there is no such thing, which has to be an error then.
fn save(session: &mut dyn Session, seq: &Sequence) -> Option<Vec<u8>> {
    let mut state = Vec::new();
    if session.capabilities().save {
        session.save(seq, &mut state).unwrap();
        return Some(state);
    }
    refused(session.save(seq, &mut state), ErrorKind::Unsupported, "saving");
    refused(session.restore(&mut &state[..]), ErrorKind::Unsupported, "restoring");
    assert!(state.is_empty());
    None
}

pub(crate) fn restored_goes_on_as_if_nothing_had_happened(at: &Setting<'_>) {
    let text = at.text(0, 40);
    let mut session = at.session();
    let seq = filled(&mut *session, &text);
    let Some(state) = save(&mut *session, &seq) else { return };
    at.goes_on(&mut *session, &seq, &text, "the one that was saved");
    let here = session.restore(&mut &state[..]).unwrap();
    at.goes_on(&mut *session, &here, &text, "restored beside it");
    let mut other = at.session();
    for (name, sampling) in at.samplings() {
        let prompt = &text[..30];
        let draws = |session: &mut dyn Session, seq: &Sequence| {
            session.sample_with(seq, &sampling, prompt).unwrap();
            draw(session, seq, &text[3..5], 5)
        };
        let whole = filled(&mut *other, &text);
        let whole = draws(&mut *other, &whole);
        let restored = other.restore(&mut &state[..]).unwrap();
        assert_eq!(restored.len(), text.len());
        at.agree(&draws(&mut *other, &restored), &whole, name);
    }
}

pub(crate) fn states_lie_one_after_the_other_in_a_stream(at: &Setting<'_>) {
    let texts = [at.text(0, 21), at.text(1, 7), Vec::<Token>::new()];
    let mut session = at.session();
    let mut stream = Vec::new();
    for text in &texts {
        let seq = filled(&mut *session, text);
        let Some(state) = save(&mut *session, &seq) else { return };
        stream.extend(state);
    }
    stream.extend(b"and what is not ours");
    let mut from = &stream[..];
    for text in &texts {
        let seq = session.restore(&mut from).unwrap();
        at.goes_on(&mut *session, &seq, text, &format!("the one of {}", text.len()));
    }
    assert_eq!(from, b"and what is not ours");
}

/// Half-way through a writer or a reader, as at the beginning.
pub(crate) fn saving_and_restoring_can_be_interrupted_and_can_fail(at: &Setting<'_>) {
    let text = at.text(0, 30);
    let mut session = at.session();
    let seq = filled(&mut *session, &text);
    let Some(state) = save(&mut *session, &seq) else { return };
    let (used, interrupt) = (session.usage(), session.interrupt());
    interrupt.raise();
    refused(session.save(&seq, &mut Vec::new()), ErrorKind::Cancelled, "saving while it is raised");
    refused(session.restore(&mut &state[..]), ErrorKind::Cancelled, "restoring while it is raised");
    interrupt.lower();
    let error = session.save(&seq, &mut Failing { good: state.len() / 2 }).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Io, "{error}");
    assert!(
        std::error::Error::source(&error).is_some_and(|source| source.to_string().contains("as planned")),
        "{error:?}"
    );
    let mut breaks = (&state[..state.len() / 2]).chain(Failing { good: 0 });
    refused(session.restore(&mut breaks), ErrorKind::Io, "a reader that fails");
    assert_eq!(session.usage(), used, "nothing is left of what failed");
    let restored = session.restore(&mut &state[..]).unwrap();
    at.goes_on(&mut *session, &restored, &text, "after all that");
    at.goes_on(&mut *session, &seq, &text, "the one that was saved");
}

/// Takes so many bytes, gives none, and then fails.
struct Failing {
    good: usize,
}

impl Write for Failing {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let taken = bytes.len().min(self.good);
        self.good -= taken;
        if taken == 0 && !bytes.is_empty() { Err(io::Error::other("as planned")) } else { Ok(taken) }
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Read for Failing {
    fn read(&mut self, _: &mut [u8]) -> io::Result<usize> {
        Err(io::Error::other("as planned"))
    }
}

pub(crate) fn damaged_states_are_refused(at: &Setting<'_>) {
    let text = at.text(0, 12);
    let mut session = at.session();
    let seq = filled(&mut *session, &text);
    let Some(state) = save(&mut *session, &seq) else { return };
    let used = session.usage();
    for flip in 0..400 {
        let (mut damaged, at) = (state.clone(), flip * (state.len() - 1) / 399);
        damaged[at] ^= 1 << (flip % 8);
        refused(session.restore(&mut &damaged[..]), ErrorKind::InvalidInput, &format!("a bit of byte {at}"));
    }
    for end in [0, 1, 7, 8, 20, state.len() / 2, state.len() - 1] {
        refused(session.restore(&mut &state[..end]), ErrorKind::InvalidInput, &format!("{end} bytes of it"));
    }
    refused(
        session.restore(&mut &b"anything at all, and long enough to be a header of something"[..]),
        ErrorKind::InvalidInput,
        "another file",
    );
    assert_eq!(session.usage(), used, "nothing is left of what was refused");
    at.goes_on(&mut *session, &seq, &text, "the one that was saved");
    let good = session.restore(&mut &state[..]).unwrap();
    at.goes_on(&mut *session, &good, &text, "the good one");
}

pub(crate) fn restoring_into_a_full_session_is_an_error(at: &Setting<'_>) {
    let text = at.text(0, 12);
    let mut session = at.session();
    let seq = filled(&mut *session, &text);
    let Some(state) = save(&mut *session, &seq) else { return };
    let mut others: Vec<_> = (1..SEQUENCES).map(|_| open(&mut *session)).collect();
    refused(session.restore(&mut &state[..]), ErrorKind::TooManySequences, "one too many");
    others.pop();
    let restored = session.restore(&mut &state[..]).unwrap();
    at.goes_on(&mut *session, &restored, &text, "in the place of another");
    // A session with a shorter context has no room for it.
    let short = at.options().with_context(8);
    let mut short = at.model.session(&short).unwrap();
    refused(short.restore(&mut &state[..]), ErrorKind::ContextFull, "longer than the context");
    assert_eq!((short.usage().sequences, short.usage().cells), (0, 0));
}
