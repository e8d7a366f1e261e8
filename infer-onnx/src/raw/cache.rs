//! Keys and values that a graph writes where it reads them.

use super::{Binding, RunOptions, Session, Value};
use crate::{
    decoder::{Cells, Ports},
    error::{error, invalid_input},
};
use infer_core::{ErrorKind, Result};
use std::{
    alloc::{self, Layout},
    ops::Range,
    ptr::NonNull,
    slice,
};

/// The keys and values of several sequences, a row each: for each tensor of [`Cells`] memory of `[rows, heads, positions, numbers]`. Runs of rows that
/// lie side by side are bound as one tensor over that part of it, as past and as present at once.
///
/// Memory and binding are in here and nowhere else. A run takes the cache exclusively, and whatever reads or writes the memory borrows
/// it, so neither happens during the other.
///
/// `Send` and not `Sync`, as its parts are.
pub(crate) struct Cache {
    /// Goes first: its values lie in the memory.
    binding: Binding<'static>,
    memory: Vec<Memory>,
    cells: Cells,
    rows: usize,
    /// Bytes of a row in a tensor, and of a head in it.
    row: usize,
    head: usize,
    /// The rows that are bound. None, before the first run.
    bound: Range<usize>,
}

/// Memory that was zeros once. The system gives it page by page, as it is used.
struct Memory {
    start: NonNull<u8>,
    layout: Layout,
    /// Where it begins to be used, and how much of it is.
    offset: usize,
    len: usize,
}

// SAFETY: memory of the allocator's, which is freed from any thread; whoever has it is its only owner.
unsafe impl Send for Memory {}

/// Where rows of memory begin is a multiple of this: vectors are loaded fastest so.
const ALIGN: usize = 64;

impl Cache {
    /// A cache with `rows` rows of `positions` positions, for runs of the session that the binding is of.
    ///
    /// # Errors
    /// [`OutOfMemory`](ErrorKind::OutOfMemory).
    pub(crate) fn new(binding: Binding<'static>, cells: Cells, rows: usize, positions: usize) -> Result<Self> {
        let too_large = || {
            error(
                ErrorKind::OutOfMemory,
                format!(
                    "keys and values of {rows} sequences of {positions} positions are more than there is memory for; ask for a smaller \
                     context or fewer sequences"
                ),
            )
        };
        let head = cells.bytes().checked_mul(positions).ok_or_else(too_large)?;
        let row = head.checked_mul(cells.heads).ok_or_else(too_large)?;
        let len = row.checked_mul(rows).ok_or_else(too_large)?;
        let memory = (0..cells.tensors()).map(|_| Memory::new(len).ok_or_else(too_large)).collect::<Result<_>>()?;
        Ok(Self { binding, memory, cells, rows, row, head, bound: 0..0 })
    }

    pub(crate) fn cells(&self) -> &Cells {
        &self.cells
    }

    /// Runs the graph for some rows, on `inputs` beside them. The logits.
    pub(crate) fn run(
        &mut self,
        session: &mut Session,
        options: &RunOptions,
        rows: Range<usize>,
        ports: &Ports,
        inputs: Vec<(usize, Value)>,
    ) -> Result<Value> {
        self.bind(ports, rows)?;
        for (input, value) in inputs {
            self.binding.bind_input(input, value)?;
        }
        if self.binding.output(ports.logits).is_none() {
            self.binding.bind_output_to_cpu(ports.logits)?;
        }
        session.run_bound(options, &mut self.binding)?;
        let logits = self.binding.take_output(ports.logits)?;
        logits.ok_or_else(|| error(ErrorKind::Runtime, "a run gave no logits"))
    }

    /// Binds the memory of some rows. Nothing is done where they are bound already, as they are from step to step.
    fn bind(&mut self, ports: &Ports, rows: Range<usize>) -> Result<()> {
        if self.bound == rows {
            return Ok(());
        }
        if rows.is_empty() || rows.end > self.rows {
            return Err(invalid_input(format!("rows {rows:?} of {} are to be run", self.rows)));
        }
        self.bound = 0..0;
        let shape = self.cells.shape(rows.len(), self.head / self.cells.bytes().max(1));
        for ((memory, &input), &output) in self.memory.iter().zip(&ports.past).zip(&ports.present) {
            let part = memory.part(rows.start * self.row..rows.end * self.row);
            // SAFETY: that part is inside the memory, which this cache owns and frees after the binding, where the value goes. It is read
            // and written by runs of the binding alone, and by methods that borrow the cache when there is no run.
            let value = unsafe { Value::over_memory(self.cells.dtype, &shape, part) }?;
            self.binding.bind_shared(input, output, value)?;
        }
        self.bound = rows;
        Ok(())
    }

    /// The first `len` positions of one head of a row in one tensor.
    pub(crate) fn part(&self, tensor: usize, row: usize, head: usize, len: usize) -> &[u8] {
        let part = self.memory[tensor].part(self.range(row, head, len));
        // SAFETY: initialised (zeros, or what runs and copies wrote), inside the memory that lives as long as the cache; it is written by
        // methods that take the cache exclusively.
        unsafe { part.as_ref() }
    }

    /// The same, to be written.
    pub(crate) fn part_mut(&mut self, tensor: usize, row: usize, head: usize, len: usize) -> &mut [u8] {
        let mut part = self.memory[tensor].part(self.range(row, head, len));
        // SAFETY: as above, and the cache is borrowed exclusively.
        unsafe { part.as_mut() }
    }

    /// Copies the first `len` positions of a row to another. How many bytes that were.
    pub(crate) fn copy(&mut self, from: usize, to: usize, len: usize) -> u64 {
        let bytes = len * self.cells.bytes();
        if from == to || bytes == 0 {
            return 0;
        }
        for memory in &mut self.memory {
            let whole = memory.bytes_mut();
            for head in 0..self.cells.heads {
                let at = |row: usize| row * self.row + head * self.head;
                whole.copy_within(at(from)..at(from) + bytes, at(to));
            }
        }
        (bytes * self.cells.heads * self.memory.len()) as u64
    }

    fn range(&self, row: usize, head: usize, len: usize) -> Range<usize> {
        let bytes = len * self.cells.bytes();
        assert!(row < self.rows && head < self.cells.heads && bytes <= self.head, "it lies in the cache");
        let start = row * self.row + head * self.head;
        start..start + bytes
    }
}

impl Memory {
    fn new(len: usize) -> Option<Self> {
        let layout = Layout::from_size_align(len.checked_add(ALIGN)?, 1).ok()?;
        // SAFETY: the layout has a size. It has no alignment of its own: then the allocator asks the system for zeros, and does not
        // write them itself.
        let start = NonNull::new(unsafe { alloc::alloc_zeroed(layout) })?;
        let offset = start.addr().get().next_multiple_of(ALIGN) - start.addr().get();
        Some(Self { start, layout, offset, len })
    }

    /// A part of it, as a pointer.
    fn part(&self, range: Range<usize>) -> NonNull<[u8]> {
        assert!(range.start <= range.end && range.end <= self.len, "it lies in the memory");
        // SAFETY: the offset is below `ALIGN` and the range inside `len`; as many bytes together were allocated.
        let start = unsafe { self.start.add(self.offset + range.start) };
        NonNull::slice_from_raw_parts(start, range.len())
    }

    fn bytes_mut(&mut self) -> &mut [u8] {
        let whole = self.part(0..self.len);
        // SAFETY: all of it was zeros once; it is borrowed exclusively.
        unsafe { slice::from_raw_parts_mut(whole.cast::<u8>().as_ptr(), self.len) }
    }
}

impl Drop for Memory {
    fn drop(&mut self) {
        // SAFETY: allocated with this layout, freed once; what lay in it is gone (see `Cache`).
        unsafe { alloc::dealloc(self.start.as_ptr(), self.layout) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_is_aligned_and_zero() {
        let mut memory = Memory::new(100).unwrap();
        assert_eq!(memory.bytes_mut(), [0; 100]);
        assert!(memory.part(0..100).cast::<u8>().addr().get().is_multiple_of(ALIGN));
        memory.bytes_mut()[99] = 1;
        assert_eq!(memory.part(90..100).len(), 10);
        assert!(Memory::new(usize::MAX).is_none() && Memory::new(isize::MAX as usize).is_none());
    }
}
