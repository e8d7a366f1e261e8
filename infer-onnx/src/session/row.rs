//! Rows of logits, read where the runtime left them.

use crate::{
    DType, Element,
    error::error,
    raw::{self, as_elements},
};
use half::{bf16, f16, slice::HalfFloatSliceExt};
use infer_core::{ErrorKind, Result, Sampled, Token, sampling::Sampler};

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
    /// Draws a token for `position`.
    pub(crate) fn sample(self, sampler: &mut Sampler, position: usize, out: &mut Vec<Sampled>) -> Result<()> {
        match self {
            Self::F32(row) => sampler.sample(row, position, out),
            Self::F16(row) => sampler.sample(row, position, out),
            Self::Bf16(row) => sampler.sample(row, position, out),
        }
    }

    /// Appends the most probable tokens, as many as the sampling asks for.
    pub(crate) fn top(self, sampler: &mut Sampler, out: &mut Vec<Sampled>) -> Result<()> {
        match self {
            Self::F32(row) => sampler.top(row, out),
            Self::F16(row) => sampler.top(row, out),
            Self::Bf16(row) => sampler.top(row, out),
        }
    }

    /// Appends the row.
    pub(crate) fn append_to(self, out: &mut Vec<f32>) {
        let from = out.len();
        match self {
            Self::F32(row) => out.extend_from_slice(row),
            Self::F16(row) => {
                out.resize(from + row.len(), 0.0);
                row.convert_to_f32_slice(&mut out[from..]);
            }
            Self::Bf16(row) => {
                out.resize(from + row.len(), 0.0);
                row.convert_to_f32_slice(&mut out[from..]);
            }
        }
    }
}

/// The natural-log probability of a token by a row of logits, which is summed in 64 bits: a vocabulary is long.
pub(crate) fn log_probability(row: &[f32], token: Token) -> Result<f32> {
    let largest = row.iter().copied().fold(f32::NEG_INFINITY, f32::max);
    let sum: f64 = row.iter().map(|&logit| f64::from(logit - largest).exp()).sum();
    let score = f64::from(row[token.index()] - largest) - sum.ln();
    if score.is_nan() {
        let message =
            "the logits that are to be scored are not numbers; the model or what was restored for it is damaged";
        return Err(error(ErrorKind::Runtime, message));
    }
    Ok(score as f32)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn probabilities_sum_to_one_whatever_the_logits_are() {
        for shift in [0.0, 1e4, -1e4] {
            let row: Vec<f32> = (0..1000).map(|i| shift + (i % 17) as f32 * 0.25).collect();
            let sum: f64 = (0..1000).map(|token| f64::from(log_probability(&row, Token(token)).unwrap()).exp()).sum();
            assert!((sum - 1.0).abs() < 1e-4, "{sum}");
        }
        assert_eq!(log_probability(&[0.0, f32::NEG_INFINITY], Token(1)).unwrap(), f32::NEG_INFINITY);
        assert!(log_probability(&[0.0, f32::NAN], Token(0)).is_err());
    }

    #[test]
    fn rows_of_16_bits_draw_as_those_of_32() {
        let wide = [0.5_f32, -2.0, 3.0, 1.0];
        let (half, brain) = (wide.map(f16::from_f32), wide.map(bf16::from_f32));
        let sampling = infer_core::Sampling::greedy().with_logprobs(2);
        let mut found = Vec::new();
        for row in [Row::F32(&wide), Row::F16(&half), Row::Bf16(&brain)] {
            let (mut sampler, mut out) = (Sampler::new(&sampling, &[], 4).unwrap(), Vec::new());
            row.sample(&mut sampler, 0, &mut out).unwrap();
            row.top(&mut sampler, &mut out).unwrap();
            let mut widened = vec![9.0];
            row.append_to(&mut widened);
            assert_eq!(widened[1..], wide);
            found.push(out);
        }
        assert_eq!(found[0].iter().map(|one| one.token.0).collect::<Vec<_>>(), [2, 2, 3]);
        assert!(found[1] == found[0] && found[2] == found[0]);
    }
}
