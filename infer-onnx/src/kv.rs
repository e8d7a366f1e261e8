//! The keys and values of a session's sequences.
//!
//! - **Shared**: the graph writes new keys and values into the buffer that it reads the past ones from. Each sequence has a row of it, with
//!   room for a whole context. A step copies nothing, and a cut is a smaller number; a fork copies what it begins with.
//! - **Growing**: a run gives new tensors, one position longer. They are the past of the next run, and nobody writes to them any more: a fork
//!   shares them, and a cut copies what is left. A run's tensors are a sequence's own once the pass has succeeded.
//!
//! Both save a sequence as the same bytes: tensor by tensor (keys and values of layer 0, those of layer 1, …), head by head, position by
//! position.

use crate::{
    decoder::{Cells, Ports},
    error::error,
    raw,
};
use infer_core::{
    ErrorKind, Result,
    state::{Reader, Writer},
};
use std::ops::Range;

pub(crate) enum Kv {
    Shared(raw::Cache),
    Growing(Growing),
}

/// The keys and values of sequences that each have tensors of their own.
pub(crate) struct Growing {
    cells: Cells,
    /// A tensor without a position.
    empty: raw::Frozen,
    slots: Vec<Past>,
    /// What the runs of the present pass gave.
    pending: Vec<(u32, Past)>,
}

/// What a sequence holds: nothing, or a tensor of `len` positions for each of [`Cells::tensors`].
#[derive(Clone, Default)]
struct Past {
    len: usize,
    tensors: Vec<raw::Frozen>,
}

impl Kv {
    /// The pass has succeeded.
    pub(crate) fn commit(&mut self) {
        if let Self::Growing(growing) = self {
            for (slot, past) in growing.pending.drain(..) {
                growing.slots[slot as usize] = past;
            }
        }
    }

    /// The pass has failed, or was broken off.
    pub(crate) fn discard(&mut self) {
        if let Self::Growing(growing) = self {
            growing.pending.clear();
        }
    }

    /// Lets go of what a sequence holds beyond `len` positions. How many bytes were copied for it.
    pub(crate) fn truncate(&mut self, slot: u32, len: usize) -> Result<u64> {
        let Self::Growing(growing) = self else { return Ok(0) };
        let (past, copied) = growing.slots[slot as usize].cut(&growing.cells, len)?;
        growing.slots[slot as usize] = past;
        Ok(copied)
    }

    /// Gives `to` the first `len` positions of `from`. How many bytes were copied for it.
    pub(crate) fn fork(&mut self, from: u32, to: u32, len: usize) -> Result<u64> {
        match self {
            Self::Shared(cache) => Ok(cache.copy(from as usize, to as usize, len)),
            Self::Growing(growing) => {
                let (past, copied) = growing.slots[from as usize].cut(&growing.cells, len)?;
                growing.slots[to as usize] = past;
                Ok(copied)
            }
        }
    }

    /// Writes the `len` positions of a sequence; `check` is asked between pieces whether to go on.
    pub(crate) fn save(
        &self,
        slot: u32,
        len: usize,
        writer: &mut Writer<'_>,
        check: impl Fn() -> Result<()>,
    ) -> Result<()> {
        match self {
            Self::Shared(cache) => {
                let Cells { heads, .. } = *cache.cells();
                for tensor in 0..cache.cells().tensors() {
                    check()?;
                    (0..heads).try_for_each(|head| writer.write(cache.part(tensor, slot as usize, head, len)))?;
                }
            }
            Self::Growing(growing) => {
                for tensor in &growing.slots[slot as usize].tensors {
                    check()?;
                    writer.write(tensor.bytes())?;
                }
            }
        }
        Ok(())
    }

    /// Reads `len` positions of a sequence, in place of what it held. After an error it holds anything: it is to be emptied.
    pub(crate) fn restore(
        &mut self,
        slot: u32,
        len: usize,
        reader: &mut Reader<'_>,
        check: impl Fn() -> Result<()>,
    ) -> Result<()> {
        match self {
            Self::Shared(cache) => {
                let Cells { heads, .. } = *cache.cells();
                for tensor in 0..cache.cells().tensors() {
                    check()?;
                    (0..heads)
                        .try_for_each(|head| reader.read_ahead(cache.part_mut(tensor, slot as usize, head, len)))?;
                }
            }
            Self::Growing(growing) => {
                let Growing { cells, slots, .. } = growing;
                let mut past = Past { len, tensors: Vec::with_capacity(cells.tensors()) };
                for _ in 0..if len > 0 { cells.tensors() } else { 0 } {
                    check()?;
                    let mut tensor = raw::Value::tensor(cells.dtype, &cells.shape(1, len))?;
                    reader.read_ahead(tensor.bytes_mut()?)?;
                    past.tensors.push(tensor.into());
                }
                slots[slot as usize] = past;
            }
        }
        Ok(())
    }
}

impl Growing {
    pub(crate) fn new(cells: Cells, sequences: usize) -> Result<Self> {
        let empty = raw::Value::tensor(cells.dtype, &cells.shape(1, 0))?.into();
        Ok(Self { cells, empty, slots: vec![Past::default(); sequences], pending: Vec::new() })
    }

    /// Runs the graph for one sequence, of which the first `past` positions count, on `inputs`, with `len` tokens. The logits, and how many bytes of
    /// keys and values were copied.
    pub(crate) fn run(
        &mut self,
        session: &mut raw::Session,
        options: &raw::RunOptions,
        ports: &Ports,
        inputs: &[(usize, raw::Value)],
        (slot, past, len): (u32, usize, usize),
    ) -> Result<(raw::Value, u64)> {
        let held = self.pending.iter().rfind(|(other, _)| *other == slot).map(|(_, past)| past);
        let (held, copied) = held.unwrap_or(&self.slots[slot as usize]).cut(&self.cells, past)?;
        let tensor = |at: usize| &**held.tensors.get(at).unwrap_or(&self.empty);
        let past_inputs = ports.past.iter().enumerate().map(|(at, &input)| (input, tensor(at)));
        let all: Vec<_> = inputs.iter().map(|(input, value)| (*input, value)).chain(past_inputs).collect();
        let mut outputs: Vec<_> = ports.present.iter().chain([&ports.logits]).map(|&output| (output, None)).collect();
        session.run(options, &all, &mut outputs)?;
        let missing = || error(ErrorKind::Runtime, "a run gave fewer outputs than it was asked for");
        let logits = outputs.pop().and_then(|(_, logits)| logits).ok_or_else(missing)?;
        let tensors = outputs.into_iter().map(|(_, tensor)| tensor.map(raw::Frozen::from).ok_or_else(missing));
        let present = Past { len: past + len, tensors: tensors.collect::<Result<_>>()? };
        present.check(&self.cells)?;
        self.pending.retain(|(other, _)| *other != slot);
        self.pending.push((slot, present));
        Ok((logits, copied))
    }
}

impl Past {
    /// The first `len` positions, and how many bytes were copied for it. Shared where it is all of them.
    fn cut(&self, cells: &Cells, len: usize) -> Result<(Self, u64)> {
        if len == self.len {
            return Ok((self.clone(), 0));
        }
        if len == 0 {
            return Ok((Self::default(), 0));
        }
        let (whole, part) = (self.len * cells.bytes(), len * cells.bytes());
        let mut tensors = Vec::with_capacity(self.tensors.len());
        for tensor in &self.tensors {
            let mut shorter = raw::Value::tensor(cells.dtype, &cells.shape(1, len))?;
            let heads = tensor.bytes().chunks_exact(whole);
            shorter
                .bytes_mut()?
                .chunks_exact_mut(part)
                .zip(heads)
                .for_each(|(to, from)| to.copy_from_slice(&from[..part]));
            tensors.push(shorter.into());
        }
        let copied = (part * cells.heads * tensors.len()) as u64;
        Ok((Self { len, tensors }, copied))
    }

    /// Whether the graph gave what it was to give.
    fn check(&self, cells: &Cells) -> Result<()> {
        let wanted = cells.shape(1, self.len);
        let other = self.tensors.iter().find(|tensor| tensor.shape() != wanted || tensor.dtype() != Some(cells.dtype));
        match other {
            Some(tensor) => Err(error(
                ErrorKind::InvalidModel,
                format!(
                    "the graph gave keys or values of the shape {:?} where {wanted:?} was expected",
                    tensor.shape()
                ),
            )),
            None => Ok(()),
        }
    }
}

/// Rows of a shared cache that lie side by side.
pub(crate) fn rows(slots: &Range<u32>) -> Range<usize> {
    slots.start as usize..slots.end as usize
}
