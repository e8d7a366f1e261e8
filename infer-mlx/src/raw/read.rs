//! Arrays whose bytes come from a file.

use super::{Failure, Fresh, Runtime, failure::broken, node::number_of};
use crate::DType;
use std::{
    io::{self, Read},
    ops::ControlFlow,
    ptr, slice,
};

/// How much is read at once: it stays in the processor's cache between being cleared and being read into.
const PART: usize = 1 << 20;

/// Why an array was not read.
#[derive(Debug)]
pub(crate) enum Unread {
    /// MLX has no memory for it.
    Refused(Failure),
    Io(io::Error),
    /// Whoever watches it wanted no more.
    Stopped,
}

impl Runtime {
    /// An array of this shape whose bytes come from `source`, straight into the memory that MLX computes with. `watch` is told after every part
    /// how many bytes it had.
    pub(crate) fn read(
        &self,
        source: &mut impl Read,
        shape: &[i32],
        dtype: DType,
        watch: &mut dyn FnMut(usize) -> ControlFlow<()>,
    ) -> Result<Fresh, Unread> {
        let (mut data, mut bytes) = (ptr::null_mut(), 0);
        let (data_out, bytes_out, number) = (&raw mut data, &raw mut bytes, number_of(dtype));
        let fresh = self
            .make(|api, out, _| {
                // SAFETY: a slice of sizes, a type of the table's, and valid places for the handle, the pointer and the number of bytes.
                unsafe { api.array_uninit(out, data_out, bytes_out, shape.as_ptr(), shape.len(), number) }
            })
            .map_err(Unread::Refused)?;
        let elements = shape.iter().try_fold(1_usize, |all, &size| all.checked_mul(usize::try_from(size).ok()?));
        if elements.and_then(|elements| elements.checked_mul(dtype.bytes())) != Some(bytes) {
            return Err(Unread::Refused(broken("the memory of an array is not what its shape says")));
        }
        let mut done = 0;
        while done < bytes {
            let length = PART.min(bytes - done);
            // SAFETY: `done` is below `bytes`, which is how many there are of it.
            let part = unsafe { data.cast::<u8>().add(done) };
            // SAFETY: so many bytes of the array's memory, "that nobody has written", nor looks at "before the handle is used", which it is not
            // before this function has returned.
            unsafe { part.write_bytes(0, length) };
            // SAFETY: as above; they were written just now, and any bytes are `u8`.
            source.read_exact(unsafe { slice::from_raw_parts_mut(part, length) }).map_err(Unread::Io)?;
            done += length;
            if watch(length).is_break() {
                return Err(Unread::Stopped);
            }
        }
        Ok(fresh)
    }
}
