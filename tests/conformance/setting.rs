//! A subject that was opened, and the words that cases are written in.

use crate::subject::{Pace, Subject};
use infer::{
    Batch, Capabilities, ErrorKind, Model, OpenOptions, Result, Sampling, Sequence, Session, SessionOptions, Special,
    Token, Want,
};
use kit::trace::{Trace, apart};
use std::{
    collections::HashMap,
    sync::{LazyLock, Mutex},
};

/// Positions a sequence has in the sessions of [`Setting::session`].
pub(crate) const CONTEXT: usize = 192;
/// Tokens one batch of theirs takes.
pub(crate) const BATCH: usize = 96;
/// Tokens that are fed in one pass where nothing else decides: below 64, from which on llama.cpp adds up in another way.
pub(crate) const PASS: usize = 48;
/// Sequences they have.
pub(crate) const SEQUENCES: usize = 4;

/// Texts to feed: long enough for everything, and unlike each other from the beginning.
const TEXTS: [&str; 4] = [
    "The keeper of the lighthouse counted the ships each evening, and wrote their names into a book that nobody read. \
     When the wind came from the north she lit the lamp early, and the harbour slept better for it.",
    "Once upon a time, in a valley between two mountains, there lived a clockmaker who could not tell the time. Every \
     morning he asked the baker, and every morning the baker asked the church, and the church asked the clockmaker.",
    "In Rust, a lifetime names how long a reference is good for. Most of them are inferred by the compiler, so that few \
     are ever written down; those that are written tell a reader which borrow ends where, and why that is enough.",
    "Two plus two equals four, and three plus three equals six. If every number is added to itself, what comes out is \
     even; and if an even number is halved, the number that was there before comes back, as everybody knows.",
];

/// What every case is given.
pub(crate) struct Setting<'a> {
    pub(crate) subject: &'a Subject,
    pub(crate) model: &'a dyn Model,
}

impl Setting<'_> {
    pub(crate) fn options(&self) -> SessionOptions {
        SessionOptions::new().with_context(CONTEXT).with_batch(BATCH).with_sequences(SEQUENCES).with_threads(1)
    }

    pub(crate) fn session(&self) -> Box<dyn Session> {
        self.model.session(&self.options()).unwrap_or_else(|error| panic!("no session: {error}"))
    }

    /// The first `count` tokens of text `which`, again and again where it is shorter.
    pub(crate) fn text(&self, which: usize, count: usize) -> Vec<Token> {
        let mut tokens = Vec::new();
        self.model.tokenizer().encode(TEXTS[which], Special::NONE, &mut tokens).unwrap();
        tokens.into_iter().cycle().take(count).collect()
    }

    /// The logits after these tokens, computed in a session that does nothing else; for each text once.
    pub(crate) fn alone(&self, tokens: &[Token]) -> Vec<f32> {
        type Rows = HashMap<(&'static str, Vec<Token>), Vec<f32>>;
        static ROWS: LazyLock<Mutex<Rows>> = LazyLock::new(Mutex::default);
        let rows = || ROWS.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
        let text = (self.subject.name, tokens.to_vec());
        if let Some(row) = rows().get(&text) {
            return row.clone();
        }
        let row = self.compute(tokens);
        rows().insert(text, row.clone());
        row
    }

    fn compute(&self, tokens: &[Token]) -> Vec<f32> {
        let mut session = self.session();
        let seq = open(&mut *session);
        for chunk in tokens.chunks(PASS) {
            feed(&mut *session, &seq, chunk, Want::Logits).unwrap();
        }
        session.outputs().logits(0).expect("logits were wanted").to_vec()
    }

    /// The same row, as far as this subject computes the same twice.
    #[track_caller]
    pub(crate) fn near(&self, found: &[f32], wanted: &[f32], what: &str) {
        let (apart, epsilon) = (apart(found, wanted), self.subject.epsilon);
        assert!(apart <= epsilon, "{what}: {apart} apart, more than {epsilon}");
    }

    /// The same row, of a sequence whose cells may lie anywhere.
    #[track_caller]
    pub(crate) fn near_scattered(&self, found: &[f32], wanted: &[f32], what: &str) {
        let (apart, epsilon) = (apart(found, wanted), self.subject.scattered);
        assert!(apart <= epsilon, "{what}: {apart} apart, more than {epsilon}");
    }

    /// Numbers in a hidden state.
    pub(crate) fn width(&self) -> usize {
        self.model.info().width
    }

    /// The same text.
    #[track_caller]
    pub(crate) fn agree(&self, found: &Trace, wanted: &Trace, what: &str) {
        if let Err(why) = wanted.agrees_with(found, self.subject.epsilon) {
            panic!("{what}: {why}");
        }
    }

    /// A few tokens fed to `seq`, which holds `held`, give what computing all of it gives.
    #[track_caller]
    pub(crate) fn goes_on(&self, session: &mut dyn Session, seq: &Sequence, held: &[Token], what: &str) {
        let (found, wanted) = self.continued(session, seq, held);
        self.near(&found, &wanted, what);
    }

    /// The same, of a sequence whose cells may lie anywhere.
    #[track_caller]
    pub(crate) fn goes_on_scattered(&self, session: &mut dyn Session, seq: &Sequence, held: &[Token], what: &str) {
        let (found, wanted) = self.continued(session, seq, held);
        self.near_scattered(&found, &wanted, what);
    }

    #[track_caller]
    fn continued(&self, session: &mut dyn Session, seq: &Sequence, held: &[Token]) -> (Vec<f32>, Vec<f32>) {
        assert_eq!(seq.len(), held.len(), "its length");
        let next = self.text(3, 3);
        (row(session, seq, &next), self.alone(&[held, &next].concat()))
    }

    /// Samplings that differ in kind: the best, one that looks back, a random one, and one with everything else.
    pub(crate) fn samplings(&self) -> Vec<(&'static str, Sampling)> {
        let warm = Sampling::default().with_temperature(0.9).with_top_k(50).with_seed(11);
        let penalised = warm.clone().with_repetition_penalty(1.3).with_presence_penalty(0.4).with_penalty_window(24);
        let mut all = vec![("greedy", Sampling::greedy()), ("penalised", penalised)];
        if self.subject.pace == Pace::Quick {
            let rich = Sampling::default()
                .with_temperature(1.2)
                .with_dynatemp(0.5, 1.0)
                .with_typical_p(0.97)
                .with_top_p(0.98)
                .with_xtc(0.3, 0.05)
                .with_dry_multiplier(0.8)
                .with_seed(5);
            all.extend([("random", warm), ("rich", rich)]);
        }
        all
    }
}

pub(crate) fn open(session: &mut dyn Session) -> Sequence {
    session.open(&OpenOptions::default()).unwrap()
}

/// Appends tokens to one sequence.
pub(crate) fn feed(session: &mut dyn Session, seq: &Sequence, tokens: &[Token], want: Want) -> Result<()> {
    let mut batch = Batch::new();
    batch.push(seq, tokens, want);
    session.decode(&batch)
}

/// The logits after these tokens more.
pub(crate) fn row(session: &mut dyn Session, seq: &Sequence, tokens: &[Token]) -> Vec<f32> {
    feed(session, seq, tokens, Want::Logits).unwrap_or_else(|error| panic!("{error}"));
    session.outputs().logits(0).expect("logits were wanted").to_vec()
}

/// A sequence that holds these tokens.
pub(crate) fn filled(session: &mut dyn Session, tokens: &[Token]) -> Sequence {
    let seq = open(session);
    for chunk in tokens.chunks(PASS) {
        feed(session, &seq, chunk, Want::Nothing).unwrap();
    }
    seq
}

/// Draws `count` tokens: `feed` first, and then what was drawn, one at a time. What was drawn last is not fed.
pub(crate) fn draw(session: &mut dyn Session, seq: &Sequence, feed: &[Token], count: usize) -> Trace {
    let (mut trace, mut next, mut batch) = (Trace::default(), feed.to_vec(), Batch::new());
    while trace.tokens.len() < count {
        batch.clear();
        batch.push(seq, &next, Want::Logits);
        session.decode(&batch).unwrap();
        let out = session.outputs();
        let token = out.token(0).expect("sampling was set");
        trace.rows.push(out.logits(0).expect("logits were wanted").to_vec());
        trace.tokens.push(token.0);
        next = vec![token];
    }
    trace
}

#[track_caller]
pub(crate) fn refused<T>(outcome: Result<T>, kind: ErrorKind, what: &str) {
    match outcome {
        Ok(_) => panic!("{what}: it was taken, and is {kind:?}"),
        Err(error) => assert_eq!(error.kind(), kind, "{what}: {error}"),
    }
}

/// `None` where a fork or a cut of a sequence of `held` positions is `Unsupported`, and may be: where the flag is off, and
/// something is to be kept and something is not.
#[track_caller]
pub(crate) fn unless_unsupported<T>(outcome: Result<T>, always: bool, held: usize, len: usize) -> Option<T> {
    match outcome {
        Ok(done) => Some(done),
        Err(error) => {
            assert_eq!(error.kind(), ErrorKind::Unsupported, "from {held} to {len}: {error}");
            assert!(!always, "from {held} to {len}: the capability says that it works at every length");
            assert!(len > 0 && len < held, "from {held} to {len}: nothing, or everything, can always be kept");
            None
        }
    }
}

/// A fork, where it is possible.
#[track_caller]
pub(crate) fn fork(session: &mut dyn Session, parent: &Sequence, len: usize) -> Option<Sequence> {
    let (held, Capabilities { fork, .. }) = (parent.len(), session.capabilities().clone());
    unless_unsupported(session.fork(parent, len), fork, held, len)
}

/// A cut: whether it was possible.
#[track_caller]
pub(crate) fn cut(session: &mut dyn Session, seq: &Sequence, len: usize) -> bool {
    let (held, Capabilities { truncate, .. }) = (seq.len(), session.capabilities().clone());
    unless_unsupported(session.truncate(seq, len), truncate, held, len).is_some()
}
