//! From the numbers a pass brings to the vectors of its texts.

use crate::DType;
use half::{bf16, f16};
use infer_core::Pooling;

/// Rows of numbers as the runtime has them, of `width` numbers each.
pub(super) struct Rows<'v> {
    dtype: DType,
    bytes: &'v [u8],
    width: usize,
}

impl<'v> Rows<'v> {
    /// `None` for numbers of a format that hidden states do not come in.
    pub(super) fn new(dtype: DType, bytes: &'v [u8], width: usize) -> Option<Self> {
        matches!(dtype, DType::F32 | DType::F16 | DType::Bf16 | DType::F64).then_some(Self { dtype, bytes, width })
    }

    /// Numbers in a row.
    pub(super) fn width(&self) -> usize {
        self.width
    }

    /// Puts the numbers of a row into those of `vector`, one by one. Nothing happens where there is no such row.
    fn put(&self, row: usize, vector: &mut [f32], put: impl Fn(&mut f32, f32)) {
        match self.dtype {
            DType::F16 => self.read(row, vector, |bytes| f16::from_ne_bytes(bytes).to_f32(), put),
            DType::Bf16 => self.read(row, vector, |bytes| bf16::from_ne_bytes(bytes).to_f32(), put),
            DType::F64 => self.read(row, vector, |bytes| f64::from_ne_bytes(bytes) as f32, put),
            _ => self.read(row, vector, f32::from_ne_bytes, put),
        }
    }

    fn read<const N: usize>(
        &self,
        row: usize,
        vector: &mut [f32],
        number: impl Fn([u8; N]) -> f32,
        put: impl Fn(&mut f32, f32),
    ) {
        let (numbers, _) = self.bytes.as_chunks::<N>();
        let numbers = numbers.get(row * self.width..).unwrap_or_default();
        for (place, &bytes) in vector.iter_mut().zip(numbers) {
            put(place, number(bytes));
        }
    }

    /// Row `row`, as it is.
    pub(super) fn copy(&self, row: usize, vector: &mut [f32]) {
        self.put(row, vector, |place, number| *place = number);
    }

    /// What becomes of the `count` rows from `first` on, which are the tokens of one text, at least one. `vector` has the numbers of one
    /// row; with [`Pooling::None`] those of all of them.
    pub(super) fn pool(&self, pooling: Pooling, first: usize, count: usize, vector: &mut [f32]) {
        match pooling {
            Pooling::None => {
                for (row, vector) in (first..).zip(vector.chunks_exact_mut(self.width)) {
                    self.copy(row, vector);
                }
            }
            Pooling::Mean => {
                vector.fill(0.0);
                (first..first + count).for_each(|row| self.put(row, vector, |sum, number| *sum += number));
                vector.iter_mut().for_each(|sum| *sum /= count as f32);
            }
            Pooling::Max => {
                self.copy(first, vector);
                // Not `f32::max`, which hides what is not a number.
                let put = |most: &mut f32, number: f32| {
                    if number > *most || number.is_nan() {
                        *most = number;
                    }
                };
                (first + 1..first + count).for_each(|row| self.put(row, vector, put));
            }
            Pooling::Last => self.copy(first + count - 1, vector),
            _ => self.copy(first, vector),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Five rows of two numbers, all of which a half holds.
    const NUMBERS: [f32; 10] = [9.0, 9.0, 1.0, -8.0, 3.5, 2.0, -0.5, 4.0, 7.0, 7.0];

    fn pooled(dtype: DType, bytes: &[u8], pooling: Pooling) -> Vec<f32> {
        let mut vector = vec![f32::NAN; if pooling == Pooling::None { 6 } else { 2 }];
        Rows::new(dtype, bytes, 2).unwrap().pool(pooling, 1, 3, &mut vector);
        vector
    }

    #[test]
    fn the_rows_of_a_text_are_pooled_and_no_others() {
        for (pooling, wanted) in [
            (Pooling::None, &NUMBERS[2..8]),
            (Pooling::Mean, &[4.0 / 3.0, -2.0 / 3.0]),
            (Pooling::Cls, &[1.0, -8.0]),
            (Pooling::Last, &[-0.5, 4.0]),
            (Pooling::Max, &[3.5, 4.0]),
        ] {
            let f32s = NUMBERS.map(f32::to_ne_bytes).concat();
            assert_eq!(pooled(DType::F32, &f32s, pooling), wanted, "{pooling:?}");
            let f16s = NUMBERS.map(|number| f16::from_f32(number).to_ne_bytes()).concat();
            assert_eq!(pooled(DType::F16, &f16s, pooling), wanted, "{pooling:?}");
            let bf16s = NUMBERS.map(|number| bf16::from_f32(number).to_ne_bytes()).concat();
            assert_eq!(pooled(DType::Bf16, &bf16s, pooling), wanted, "{pooling:?}");
            let f64s = NUMBERS.map(|number| f64::from(number).to_ne_bytes()).concat();
            assert_eq!(pooled(DType::F64, &f64s, pooling), wanted, "{pooling:?}");
        }
        assert!(Rows::new(DType::I64, &[], 2).is_none());
    }

    #[test]
    fn what_is_not_a_number_is_not_hidden_by_a_larger_one() {
        let rows = [1.0, f32::NAN, 2.0].map(f32::to_ne_bytes).concat();
        let mut vector = [0.0];
        Rows::new(DType::F32, &rows, 1).unwrap().pool(Pooling::Max, 0, 3, &mut vector);
        assert!(vector[0].is_nan());
    }
}
