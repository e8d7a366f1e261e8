//! Passes that are not as the others: with hidden states, or not to be stopped.

use super::{Context, Pass, cells::position};
use crate::raw::{Batch, call, callback::on_abort};
use infer_core::{Error, ErrorKind, Result};
use std::{ptr, slice, sync::Arc};

impl Context {
    /// Runs one pass that nobody stops.
    pub(crate) fn decode_unstopped(&mut self, batch: &mut Batch) -> Result<Pass> {
        self.give_hidden(false)?;
        self.poll(false)?;
        self.pass(batch)
    }

    /// Runs one pass that gives the hidden state at each place of the batch, all of which want a row; `each` is called with them, in
    /// order, if it is done.
    pub(crate) fn decode_hidden(&mut self, batch: &mut Batch, mut each: impl FnMut(&[f32])) -> Result<Pass> {
        let count = batch.wanted();
        self.give_hidden(true)?;
        self.poll(self.stoppable)?;
        let pass = self.pass(batch)?;
        if pass == Pass::Done {
            (0..count).try_for_each(|place| self.hidden(place, &mut each))?;
        }
        Ok(pass)
    }

    fn hidden(&mut self, place: usize, each: &mut impl FnMut(&[f32])) -> Result<()> {
        let place = position(place)?;
        let (mut row, mut len) = (ptr::null(), 0);
        let (api, context) = self.parts();
        let (out, out_len) = (&raw mut row, &raw mut len);
        // SAFETY: the context lives and is this thread's alone; both places are valid; an index without a row is refused.
        call("read a hidden state", |error| unsafe { api.embeddings(context, place, out, out_len, error) })?;
        if row.is_null() || !row.is_aligned() {
            return Err(Error::new(ErrorKind::Runtime, "the library gives no hidden state where one was wanted"));
        }
        // SAFETY: the door says that the row has this length, and that it is valid until the next call with this context, which
        // `self` is borrowed for.
        each(unsafe { slice::from_raw_parts(row, len) });
        Ok(())
    }

    /// Has the passes to come give hidden states, or not. All tokens of a pass that does have a row, and the library asserts that there
    /// are no more rows than it was made for: a panic that leaves a call with them on must not leave them on for the next pass.
    pub(super) fn give_hidden(&mut self, on: bool) -> Result<()> {
        if self.hidden == Some(on) {
            return Ok(());
        }
        self.hidden = None;
        let (api, context) = self.parts();
        // SAFETY: the context lives and is this thread's alone.
        call("ask for hidden states", |error| unsafe { api.set_embeddings(context, on, error) })?;
        self.hidden = Some(on);
        Ok(())
    }

    /// Has the passes to come look at the flag that stops them, or not.
    pub(super) fn poll(&mut self, on: bool) -> Result<()> {
        if self.polled == Some(on) {
            return Ok(());
        }
        self.polled = None;
        let (api, context) = self.parts();
        let (callback, data) = match on {
            true => (Some(on_abort as _), Arc::as_ptr(&self.stop).cast_mut().cast()),
            false => (None, ptr::null_mut()),
        };
        // SAFETY: the context lives and is this thread's alone; what the callback is given lives in `stop` as long as the context.
        call("set what stops a pass", |error| unsafe { api.set_abort_callback(context, callback, data, error) })?;
        self.polled = Some(on);
        Ok(())
    }
}
