//! Rows of logits, read where the runtime left them.

use crate::{
    DType, Element,
    error::{BACKEND, error},
    raw::{self, as_elements},
};
use half::{bf16, f16};
use infer_core::{
    ErrorKind, Result, Results, Token,
    sampling::{Sampler, log_probability},
};

/// The logits of a run: rows one after the other.
pub(crate) struct Logits {
    value: raw::Value,
    dtype: DType,
    width: usize,
    rows: usize,
}

impl Logits {
    /// # Errors
    /// [`InvalidModel`](ErrorKind::InvalidModel) for another shape than `[batch, at least 1, width]`.
    pub(crate) fn new(value: raw::Value, dtype: DType, batch: usize, width: usize) -> Result<Self> {
        let (shape, found) = (value.shape(), value.dtype());
        let rows = match shape {
            &[rows, each, wide] if usize::try_from(wide) == Ok(width) && usize::try_from(rows) == Ok(batch) => {
                usize::try_from(each).ok().filter(|&each| each > 0).and_then(|each| each.checked_mul(batch))
            }
            _ => None,
        };
        match rows {
            Some(rows) if found == Some(dtype) => Ok(Self { value, dtype, width, rows }),
            _ => Err(error(
                ErrorKind::InvalidModel,
                format!("the graph's logits have the shape {shape:?}, where {batch} rows of {width} were expected"),
            )),
        }
    }

    /// How many rows there are.
    pub(crate) fn rows(&self) -> usize {
        self.rows
    }

    /// # Errors
    /// [`Runtime`](ErrorKind::Runtime) where there is no such row.
    pub(crate) fn row(&self, row: usize) -> Result<Row<'_>> {
        let bytes = self.value.bytes();
        let found = match self.dtype {
            DType::F32 => part(bytes, row, self.width).map(Row::F32),
            DType::F16 => part(bytes, row, self.width).map(Row::F16),
            _ => part(bytes, row, self.width).map(Row::Bf16),
        };
        found.ok_or_else(|| error(ErrorKind::Runtime, format!("there is no row {row} of logits")))
    }
}

fn part<T: Element>(bytes: &[u8], row: usize, width: usize) -> Option<&[T]> {
    let from = row.checked_mul(width)?;
    as_elements(bytes)?.get(from..from.checked_add(width)?)
}

/// One row, in the numbers the graph has.
#[derive(Clone, Copy)]
pub(crate) enum Row<'a> {
    F32(&'a [f32]),
    F16(&'a [f16]),
    Bf16(&'a [bf16]),
}

impl Row<'_> {
    /// Draws a token for `position`, as [`Results::draw`] does.
    pub(crate) fn draw(self, sampler: &mut Sampler, position: usize, results: &mut Results) -> Result<()> {
        match self {
            Self::F32(row) => results.draw(row, sampler, position),
            Self::F16(row) => results.draw(row, sampler, position),
            Self::Bf16(row) => results.draw(row, sampler, position),
        }
    }

    /// Has it shown, as [`Results::add_logits`] does.
    pub(crate) fn add_to(self, results: &mut Results) -> u32 {
        match self {
            Self::F32(row) => results.add_logits(row),
            Self::F16(row) => results.add_logits(row),
            Self::Bf16(row) => results.add_logits(row),
        }
    }

    /// The natural-log probability of a token.
    pub(crate) fn log_probability(self, token: Token) -> Result<f32> {
        let found = match self {
            Self::F32(row) => log_probability(row, token),
            Self::F16(row) => log_probability(row, token),
            Self::Bf16(row) => log_probability(row, token),
        };
        found.map_err(|error| error.with_backend(BACKEND))
    }
}
