//! Loops over a session, written by hand: what an engine is compared with.

use crate::peer::Setting;
use infer::{Batch, OpenOptions, Sampled, Sampling, Sequence, Session, SessionOptions, Token, Want};

/// A session with one sequence.
pub(crate) struct ByHand {
    session: Box<dyn Session>,
    sequence: Sequence,
    batch: Batch,
}

impl ByHand {
    /// # Panics
    /// When the session cannot be made.
    pub(crate) fn new(setting: &Setting, context: usize) -> Self {
        let options = SessionOptions::new().with_context(context).with_threads(setting.threads);
        let mut session = setting.model.session(&options).unwrap_or_else(|error| panic!("{error}"));
        let sequence = session.open(&OpenOptions::default()).unwrap_or_else(|error| panic!("{error}"));
        Self { session, sequence, batch: Batch::new() }
    }

    /// Begins a text: the sequence is emptied, and its tokens are drawn so from here on.
    ///
    /// # Panics
    /// When the sampling is refused.
    pub(crate) fn begin(&mut self, sampling: &Sampling, prompt: &[Token]) {
        self.session.truncate(&self.sequence, 0).expect("cutting to 0 always works");
        self.session.sample_with(&self.sequence, sampling, prompt).unwrap_or_else(|error| panic!("{error}"));
    }

    /// Feeds these tokens, and returns what was drawn.
    ///
    /// # Panics
    /// When the pass fails.
    pub(crate) fn step(&mut self, tokens: &[Token]) -> &[Sampled] {
        self.batch.clear();
        let entry = self.batch.push(&self.sequence, tokens, Want::Token);
        self.session.decode(&self.batch).unwrap_or_else(|error| panic!("{error}"));
        self.session.outputs().sampled(entry)
    }
}
