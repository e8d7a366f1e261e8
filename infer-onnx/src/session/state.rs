//! Sequences that are saved and restored: keys and values in the frame of [`infer_core::state`].

use super::Session;
use crate::error::BACKEND;
use infer_core::{
    Result, Sequence,
    state::{Header, Reader, Writer},
};
use std::io::{Read, Write};

impl Session {
    /// All of [`infer_core::Session::save`].
    pub(super) fn save_state(&mut self, seq: &Sequence, to: &mut dyn Write) -> Result<()> {
        self.begin();
        let slot = self.slots.slot(seq)?;
        self.forward.check_interrupt()?;
        let mut header = self.state_header()?;
        let tokens = self.seats.tokens(slot);
        header.tokens = tokens.to_vec();
        header.payload = self.payload(tokens.len());
        let mut writer = Writer::new(to, &header)?;
        self.forward.save(slot, tokens.len(), &mut writer)?;
        writer.finish()
    }

    /// All of [`infer_core::Session::restore`].
    pub(super) fn restore_state(&mut self, from: &mut dyn Read) -> Result<Sequence> {
        self.begin();
        self.forward.check_interrupt()?;
        let mut reader = Reader::new(from, self.limits.context)?;
        let saved = reader.header();
        saved.check(&self.state_header()?)?;
        saved.check_no_adapter()?;
        saved.check_tokens(self.limits.vocab)?;
        saved.check_payload(self.payload(saved.tokens.len()))?;
        let tokens = saved.tokens.clone();
        // Should it fail from here on, dropping the sequence gives back its slot, and whatever it holds.
        let (slot, sequence) = self.take_slot()?;
        // Numbers, at which nobody looks before all of them were verified.
        self.forward.restore(slot, tokens.len(), &mut reader)?;
        reader.finish()?;
        self.slots.set_len(slot, tokens.len());
        self.seats.fill(slot, &tokens);
        Ok(sequence)
    }

    /// Bytes of the keys and values of so many positions.
    fn payload(&self, positions: usize) -> u64 {
        let cells = self.decoder.ports().cells;
        (cells.tensors() * cells.heads * cells.bytes() * positions) as u64
    }

    /// What a state has to have in common with this session.
    fn state_header(&self) -> Result<Header> {
        let cells = self.decoder.ports().cells;
        Ok(Header::of_model(BACKEND, self.decoder.fingerprint()?, &self.info)
            .with_shape("number format of keys and values", cells.dtype)
            .with_shape(
                "keys of a position",
                format!("{} layers of {} heads of {}", cells.layers, cells.heads, cells.size),
            ))
    }
}
