//! A session that is lost.

use infer::{
    Batch, Capabilities, ErrorKind, Interrupt, Limits, ModelInfo, OpenOptions, Outputs, Result, Sampling, Sequence,
    Session, Token, Usage,
};
use std::{ops::Range, sync::Arc};

/// Another session for so many passes, and then none.
pub(super) struct Losing {
    inner: Box<dyn Session>,
    /// `None` is for ever.
    passes: Option<usize>,
    is_lost: bool,
}

impl Losing {
    pub(super) fn new(inner: Box<dyn Session>, passes: Option<usize>) -> Self {
        Self { inner, passes, is_lost: false }
    }

    fn check(&self) -> Result<()> {
        if self.is_lost { Err(ErrorKind::SessionLost.into()) } else { Ok(()) }
    }
}

impl Session for Losing {
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
        self.check()?;
        self.inner.sample_with(seq, sampling, prompt)
    }

    fn decode(&mut self, batch: &Batch) -> Result<()> {
        if let Some(passes) = &mut self.passes {
            self.is_lost |= *passes == 0;
            *passes = passes.saturating_sub(1);
        }
        self.check()?;
        self.inner.decode(batch)
    }

    fn outputs(&self) -> Outputs<'_> {
        self.inner.outputs()
    }
}
