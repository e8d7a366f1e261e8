//! A session that certain tokens harm.

use infer_core::{Batch, Error, ErrorKind, Result, Sampling, Sequence, Session, Token, testing::Hooks};

/// A pass that feeds this token loses the session.
pub(super) const DEADLY: Token = Token(1);
/// A pass that feeds this token fails.
pub(super) const BITTER: Token = Token(2);
/// The session is lost when sampling is set for a prompt with this token.
pub(super) const HOSTILE: Token = Token(3);

/// Hooks of a session that these tokens harm.
#[derive(Default)]
pub(super) struct Poison {
    is_lost: bool,
}

impl Hooks for Poison {
    fn before(&mut self) -> Result<()> {
        if self.is_lost { Err(ErrorKind::SessionLost.into()) } else { Ok(()) }
    }

    fn sample_with(
        &mut self,
        inner: &mut dyn Session,
        seq: &Sequence,
        sampling: &Sampling,
        prompt: &[Token],
    ) -> Result<()> {
        self.is_lost = prompt.contains(&HOSTILE);
        self.before()?;
        inner.sample_with(seq, sampling, prompt)
    }

    fn decode(&mut self, inner: &mut dyn Session, batch: &Batch) -> Result<()> {
        self.before()?;
        if batch.all_tokens().contains(&DEADLY) {
            self.is_lost = true;
            return Err(Error::new(ErrorKind::SessionLost, "a token was deadly"));
        }
        if batch.all_tokens().contains(&BITTER) {
            return Err(Error::new(ErrorKind::Runtime, "a token was bitter"));
        }
        inner.decode(batch)
    }
}
