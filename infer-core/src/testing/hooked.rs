//! A session with somebody between it and whoever drives it.

use crate::{
    Batch, Capabilities, Interrupt, Limits, ModelInfo, OpenOptions, Outputs, Result, Sampling, Sequence, Session,
    Token, Usage,
};
use std::{
    fmt,
    io::{Read, Write},
    ops::Range,
    sync::Arc,
};

/// What a [`Hooked`] session does in place of the one inside it. Each method is [`Session`]'s of that name, and what is not written down is
/// left to `inner`.
#[expect(missing_docs, reason = "the methods are `Session`'s, where they are described")]
pub trait Hooks {
    /// Comes before every call that takes `&mut self`, but [`decode`](Self::decode). Where it fails, so does the call.
    fn before(&mut self) -> Result<()> {
        Ok(())
    }

    fn open(&mut self, inner: &mut dyn Session, options: &OpenOptions) -> Result<Sequence> {
        inner.open(options)
    }

    fn fork(&mut self, inner: &mut dyn Session, parent: &Sequence, len: usize) -> Result<Sequence> {
        inner.fork(parent, len)
    }

    fn truncate(&mut self, inner: &mut dyn Session, seq: &Sequence, len: usize) -> Result<()> {
        inner.truncate(seq, len)
    }

    fn shift(&mut self, inner: &mut dyn Session, seq: &Sequence, dropped: Range<usize>) -> Result<()> {
        inner.shift(seq, dropped)
    }

    fn sample_with(
        &mut self,
        inner: &mut dyn Session,
        seq: &Sequence,
        sampling: &Sampling,
        prompt: &[Token],
    ) -> Result<()> {
        inner.sample_with(seq, sampling, prompt)
    }

    fn decode(&mut self, inner: &mut dyn Session, batch: &Batch) -> Result<()> {
        inner.decode(batch)
    }
}

/// A session that does what another one does, but where its [`Hooks`] say otherwise: one that fails, that is lost, or that is watched.
pub struct Hooked<H> {
    inner: Box<dyn Session>,
    hooks: H,
}

impl<H: Hooks> Hooked<H> {
    /// Puts hooks before a session.
    #[must_use]
    pub fn new(inner: Box<dyn Session>, hooks: H) -> Self {
        Self { inner, hooks }
    }
}

impl<H: Hooks> Session for Hooked<H> {
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
        self.hooks.before()?;
        self.hooks.open(&mut self.inner, options)
    }

    fn fork(&mut self, parent: &Sequence, len: usize) -> Result<Sequence> {
        self.hooks.before()?;
        self.hooks.fork(&mut self.inner, parent, len)
    }

    fn truncate(&mut self, seq: &Sequence, len: usize) -> Result<()> {
        self.hooks.before()?;
        self.hooks.truncate(&mut self.inner, seq, len)
    }

    fn shift(&mut self, seq: &Sequence, dropped: Range<usize>) -> Result<()> {
        self.hooks.before()?;
        self.hooks.shift(&mut self.inner, seq, dropped)
    }

    fn sample_with(&mut self, seq: &Sequence, sampling: &Sampling, prompt: &[Token]) -> Result<()> {
        self.hooks.before()?;
        self.hooks.sample_with(&mut self.inner, seq, sampling, prompt)
    }

    fn decode(&mut self, batch: &Batch) -> Result<()> {
        self.hooks.decode(&mut self.inner, batch)
    }

    fn outputs(&self) -> Outputs<'_> {
        self.inner.outputs()
    }

    fn save(&mut self, seq: &Sequence, to: &mut dyn Write) -> Result<()> {
        self.hooks.before()?;
        self.inner.save(seq, to)
    }

    fn restore(&mut self, from: &mut dyn Read) -> Result<Sequence> {
        self.hooks.before()?;
        self.inner.restore(from)
    }
}

impl<H: fmt::Debug> fmt::Debug for Hooked<H> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Hooked").field("hooks", &self.hooks).finish_non_exhaustive()
    }
}
