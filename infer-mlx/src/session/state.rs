//! Sequences that are saved and restored: keys and values in the frame of [`infer_core::state`].

use super::Session;
use crate::{error::BACKEND, kv::Kv};
use infer_core::{
    Result, Sequence,
    state::{Header, Reader, Writer},
};
use std::{
    collections::BTreeMap,
    io::{Read, Write},
};

impl Session {
    /// All of [`infer_core::Session::save`].
    pub(super) fn save_state(&mut self, seq: &Sequence, to: &mut dyn Write) -> Result<()> {
        self.begin();
        let slot = self.slots.slot(seq)?;
        self.check_interrupt()?;
        let mut header = self.state_header()?;
        header.tokens = self.seats.tokens(slot).to_vec();
        header.payload = self.layout.saved_bytes(header.tokens.len(), self.dtype);
        let mut writer = Writer::new(to, &header)?;
        self.kvs[slot as usize].save(self.model.mlx(), &self.layout, &mut writer, || self.check_interrupt())?;
        writer.finish()
    }

    /// All of [`infer_core::Session::restore`].
    pub(super) fn restore_state(&mut self, from: &mut dyn Read) -> Result<Sequence> {
        self.begin();
        self.check_interrupt()?;
        let mut reader = Reader::new(from, self.limits.context)?;
        let saved = reader.header();
        saved.check(&self.state_header()?)?;
        saved.check_no_adapter()?;
        saved.check_tokens(self.limits.vocab)?;
        saved.check_payload(self.layout.saved_bytes(saved.tokens.len(), self.dtype))?;
        let tokens = saved.tokens.clone();
        // Should it fail from here on, dropping the sequence gives back its slot.
        let (slot, sequence) = self.take_slot()?;
        let shape = (tokens.len(), self.dtype);
        let kv = Kv::restore(self.model.mlx(), &self.layout, shape, &mut reader, || self.check_interrupt())?;
        reader.finish()?;
        self.kvs[slot as usize] = kv;
        self.slots.set_len(slot, tokens.len());
        self.seats.fill(slot, &tokens);
        Ok(sequence)
    }

    /// What a state has to have in common with this session.
    fn state_header(&self) -> Result<Header> {
        Ok(Header::of_model(BACKEND, self.model.fingerprint()?, self.model.info())
            .with_shape("number format of keys and values", self.dtype)
            .with_shape("keys of a position", self.describe_layers()))
    }

    /// Which layers there are, as many as there are of each kind: "30 layers of 3 heads of 64".
    fn describe_layers(&self) -> String {
        let mut kinds = BTreeMap::new();
        for shape in self.layout.shapes() {
            *kinds.entry((shape.window, shape.kv_heads, shape.head_dim)).or_insert(0) += 1;
        }
        let kind = |((window, heads, size), count): ((Option<usize>, usize, usize), usize)| {
            let seen = window.map(|window| format!(" that see {window} positions")).unwrap_or_default();
            format!("{count} layers of {heads} heads of {size}{seen}")
        };
        kinds.into_iter().map(kind).collect::<Vec<_>>().join(", ")
    }
}
