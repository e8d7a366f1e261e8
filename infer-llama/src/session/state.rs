//! Sequences that are saved and restored: the library's bytes in the frame of [`infer_core::state`].

use super::Session;
use crate::error::BACKEND;
use infer_core::{
    Error, ErrorKind, KvLayout, OpenOptions, Result, Sequence, Session as _,
    state::{Header, Reader, Writer},
};
use std::{
    io::{Read, Write},
    sync::atomic::{AtomicBool, Ordering},
};

/// Bytes that are written before it is looked at the interrupt again.
const PIECE: usize = 1 << 20;
/// Bytes of the longest number in a state that the library looks at while it reads, as the door says.
const NUMBER: usize = size_of::<u64>();

impl Session {
    /// All of [`infer_core::Session::save`].
    pub(super) fn save_state(&mut self, seq: &Sequence, to: &mut dyn Write) -> Result<()> {
        self.begin();
        let slot = self.slots.slot(seq)?;
        self.check_states()?;
        let mut header = self.state_header()?;
        header.adapter = self.adapters.used(self.adapted[slot as usize])?;
        header.tokens = self.seats.tokens(slot).to_vec();
        header.payload = self.context.state_len(slot)?;
        let mut writer = Writer::new(to, &header)?;
        let stop = self.stop.clone();
        self.context.write_state(slot, &mut |bytes| {
            for piece in bytes.chunks(PIECE) {
                check_stop(&stop, "saved")?;
                writer.write(piece)?;
            }
            Ok(())
        })?;
        writer.finish()
    }

    /// All of [`infer_core::Session::restore`].
    pub(super) fn restore_state(&mut self, from: &mut dyn Read) -> Result<Sequence> {
        self.begin();
        self.check_states()?;
        let mut reader = Reader::new(from, self.limits.context)?;
        let saved = reader.header();
        saved.check(&self.state_header()?)?;
        saved.check_tokens(self.limits.vocab)?;
        let tokens = saved.tokens.clone();
        let mut options = OpenOptions::default();
        if let Some(adapter) = &saved.adapter {
            self.adapters.check_used(adapter)?;
            options.adapter = Some(adapter.name.clone());
        }
        // Should it fail from here on, dropping the sequence gives back its slot, and whatever cells it has got.
        let sequence = self.open(&options)?;
        let slot = self.slots.slot(&sequence)?;
        self.check_room(tokens.len())?;
        let stop = self.stop.clone();
        let mut refused = false;
        // What the library looks at is verified before: counts, positions, sizes, each a number on its own. Keys and values go straight into
        // cells that nobody looks at before all of them were verified, and that are given up, and cleared, if they are not.
        let read = self.context.read_state(slot, tokens.len(), &mut |into| {
            let read = check_stop(&stop, "restored").and_then(|()| match into.len() {
                ..=NUMBER => reader.read_exact(into),
                _ => reader.read_ahead(into),
            });
            refused = read.is_err();
            read
        });
        match read {
            Ok(()) => reader.finish()?,
            // What came out of the frame is right as it is, and the library has looked at it.
            Err(error) if !refused && error.kind() == ErrorKind::Runtime => return Err(does_not_fit(error)),
            Err(error) => return Err(error),
        }
        self.cells.grow(slot, tokens.len());
        self.slots.set_len(slot, tokens.len());
        self.seats.fill(slot, &tokens);
        Ok(sequence)
    }

    fn check_states(&self) -> Result<()> {
        if self.capabilities.save {
            return Ok(());
        }
        let message = "this library cannot give or take the state of this model's sequences; compute them again";
        Err(Error::unsupported(message).with_backend(BACKEND))
    }

    /// What a state has to have in common with this session.
    fn state_header(&self) -> Result<Header> {
        let layout = if self.layout == KvLayout::Split {
            format!("split between {} sequences", self.limits.sequences)
        } else {
            self.layout.to_string()
        };
        let (keys, values) = self.kv_types;
        Ok(Header::of_model(BACKEND, self.model.fingerprint()?, self.model.info())
            .with_shape("layout of the cells", layout)
            .with_shape("number format of keys", keys)
            .with_shape("number format of values", values))
    }

    /// Whether there are cells for so many positions more. Where each sequence has its own, there are.
    fn check_room(&self, positions: usize) -> Result<()> {
        let free = self.total.saturating_sub(self.cells.used());
        if self.layout == KvLayout::Split || self.model.facts().is_recurrent || positions <= free {
            return Ok(());
        }
        let message =
            format!("the saved state takes {positions} cells and {free} are free; drop or truncate sequences");
        Err(Error::new(ErrorKind::OutOfCells, message).with_backend(BACKEND))
    }
}

fn check_stop(stop: &AtomicBool, what: &str) -> Result<()> {
    if stop.load(Ordering::Relaxed) {
        let message = format!("interrupted while a sequence is {what}");
        return Err(Error::new(ErrorKind::Cancelled, message).with_backend(BACKEND));
    }
    Ok(())
}

/// The library says why in its log.
fn does_not_fit(error: Error) -> Error {
    let log = error.log().unwrap_or_default().to_owned();
    Error::invalid_input("the saved state does not fit this session")
        .with_backend(BACKEND)
        .with_log(log)
        .with_source(error)
}
