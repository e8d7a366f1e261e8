//! A session that is lost.

use infer::{Batch, ErrorKind, Result, Session};
use infer_core::testing::Hooks;

/// Hooks that let a session do for so many passes, and then no more.
pub(super) struct Losing {
    passes: Option<usize>,
    is_lost: bool,
}

impl Losing {
    /// `None` is for ever.
    pub(super) fn after(passes: Option<usize>) -> Self {
        Self { passes, is_lost: false }
    }
}

impl Hooks for Losing {
    fn before(&mut self) -> Result<()> {
        if self.is_lost { Err(ErrorKind::SessionLost.into()) } else { Ok(()) }
    }

    fn decode(&mut self, inner: &mut dyn Session, batch: &Batch) -> Result<()> {
        if let Some(passes) = &mut self.passes {
            self.is_lost |= *passes == 0;
            *passes = passes.saturating_sub(1);
        }
        self.before()?;
        inner.decode(batch)
    }
}
