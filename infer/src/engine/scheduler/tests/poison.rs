//! A session that certain tokens harm.

use infer_core::{
    Batch, Capabilities, Error, ErrorKind, Interrupt, Limits, ModelInfo, OpenOptions, Outputs, Result, Sampling,
    Sequence, Session, Token, Usage,
};
use std::{ops::Range, sync::Arc};

/// A pass that feeds this token loses the session.
pub(super) const DEADLY: Token = Token(1);
/// A pass that feeds this token fails.
pub(super) const BITTER: Token = Token(2);
/// The session is lost when sampling is set for a prompt with this token.
pub(super) const HOSTILE: Token = Token(3);

pub(super) struct Poisoned {
    inner: Box<dyn Session>,
    is_lost: bool,
}

impl Poisoned {
    pub(super) fn new(inner: Box<dyn Session>) -> Self {
        Self { inner, is_lost: false }
    }

    fn check(&self) -> Result<()> {
        if self.is_lost { Err(ErrorKind::SessionLost.into()) } else { Ok(()) }
    }
}

impl Session for Poisoned {
    fn model(&self) -> &Arc<ModelInfo> {
        self.inner.model()
    }

    fn capabilities(&self) -> &Capabilities {
        self.inner.capabilities()
    }

    fn limits(&self) -> &Limits {
        self.inner.limits()
    }

    fn usage(&self) -> Usage {
        self.inner.usage()
    }

    fn interrupt(&self) -> Interrupt {
        self.inner.interrupt()
    }

    fn open(&mut self, options: &OpenOptions) -> Result<Sequence> {
        self.check()?;
        self.inner.open(options)
    }

    fn fork(&mut self, parent: &Sequence, len: usize) -> Result<Sequence> {
        self.check()?;
        self.inner.fork(parent, len)
    }

    fn truncate(&mut self, seq: &Sequence, len: usize) -> Result<()> {
        self.check()?;
        self.inner.truncate(seq, len)
    }

    fn shift(&mut self, seq: &Sequence, dropped: Range<usize>) -> Result<()> {
        self.check()?;
        self.inner.shift(seq, dropped)
    }

    fn sample_with(&mut self, seq: &Sequence, sampling: &Sampling, prompt: &[Token]) -> Result<()> {
        self.is_lost |= prompt.contains(&HOSTILE);
        self.check()?;
        self.inner.sample_with(seq, sampling, prompt)
    }

    fn decode(&mut self, batch: &Batch) -> Result<()> {
        self.check()?;
        if batch.all_tokens().contains(&DEADLY) {
            self.is_lost = true;
            return Err(Error::new(ErrorKind::SessionLost, "a token was deadly"));
        }
        if batch.all_tokens().contains(&BITTER) {
            return Err(Error::new(ErrorKind::Runtime, "a token was bitter"));
        }
        self.inner.decode(batch)
    }

    fn outputs(&self) -> Outputs<'_> {
        self.inner.outputs()
    }
}
