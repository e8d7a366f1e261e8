//! Contexts that are full, of texts that are to go on.

use super::{
    Scheduler,
    text::{Aim, Text},
    timeline::Happened,
};
use crate::Overflow;
use infer_core::{ErrorKind, Result, Session};
use std::{ops::Range, time::Instant};

/// Tokens at the beginning that stay: what begins a text for the model, on whose first positions much attention rests.
const KEPT: usize = 4;

impl Scheduler {
    /// Makes room in contexts that what is to be fed next would overrun. Says whether there were any.
    ///
    /// # Errors
    /// [`SessionLost`](ErrorKind::SessionLost) only.
    pub(super) fn shift_full(&mut self, session: &mut dyn Session, now: Instant) -> Result<bool> {
        let mut is_any = false;
        // Backwards, since one may leave.
        for at in (0..self.running.len()).rev() {
            let text = &self.running[at];
            if text.call.overflow == Overflow::Shift && text.log.len() > self.limits.context && text.held() > 1 {
                self.shift(session, at, now)?;
                is_any = true;
            }
        }
        Ok(is_any)
    }

    /// Drops the older half of what a text holds, but for its first few tokens.
    ///
    /// # Errors
    /// [`SessionLost`](ErrorKind::SessionLost) only; any other one is the text's own end.
    pub(super) fn shift(&mut self, session: &mut dyn Session, at: usize, now: Instant) -> Result<()> {
        let text = &mut self.running[at];
        let dropped = dropped(text);
        let moved = move_up(session, text, dropped.clone());
        text.log.drain(dropped.clone());
        text.prompt -= text.prompt.saturating_sub(dropped.start).min(dropped.len());
        text.shifts += 1;
        text.is_shifted = true;
        text.note(now, Happened::Shifted { dropped: dropped.len() });
        if let Aim::Generate { sampling, .. } = &mut text.aim {
            // The positions come again, and their random numbers must not.
            sampling.seed = sampling.seed.wrapping_add(0x9E37_79B9_7F4A_7C15);
        }
        match moved.and_then(|()| sample(session, text)) {
            Ok(()) => {}
            Err(error) if error.kind() == ErrorKind::SessionLost => return Err(error),
            // Positions that others share cannot be moved, say: what is left is computed anew.
            Err(error) if error.kind() == ErrorKind::Unsupported => self.requeue(at, now, Happened::Retried),
            Err(error) => text.ended = Some(Err(error)),
        }
        Ok(())
    }
}

fn move_up(session: &mut dyn Session, text: &Text, dropped: Range<usize>) -> Result<()> {
    let seq = text.seq.as_ref().expect("a running text has a sequence");
    session.shift(seq, dropped)
}

fn sample(session: &mut dyn Session, text: &Text) -> Result<()> {
    let (Some(seq), Aim::Generate { sampling, .. }) = (&text.seq, &text.aim) else { return Ok(()) };
    session.sample_with(seq, sampling, &text.log[..text.prompt])
}

/// The positions that go.
fn dropped(text: &Text) -> Range<usize> {
    let held = text.held();
    let kept = KEPT.min(text.prompt).min(held / 2);
    kept..kept + (held - kept).div_ceil(2)
}
