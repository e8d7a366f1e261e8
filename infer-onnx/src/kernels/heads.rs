//! `BiasHeads`.

use super::{Arithmetic, Work};

/// `x + bias`, rows of heads beside each other, as heads of rows.
pub(crate) struct BiasHeads<'a> {
    pub(crate) x: &'a [f32],
    pub(crate) bias: &'a [f32],
    /// How many heads a row has.
    pub(crate) heads: usize,
    /// How many rows belong together.
    pub(crate) rows: usize,
    /// Whether the rows of a head become its columns.
    pub(crate) transposed: bool,
    /// Which head of all `y` begins with.
    pub(crate) first: usize,
    pub(crate) y: &'a mut [f32],
}

impl Work for BiasHeads<'_> {
    #[inline(always)]
    fn run<A: Arithmetic>(self) {
        let width = self.bias.len();
        let size = width / self.heads.max(1);
        let heads = self.y.chunks_exact_mut((self.rows * size).max(1));
        for (number, y) in heads.enumerate().map(|(number, y)| (self.first + number, y)) {
            let (group, head) = (number / self.heads, number % self.heads);
            let x = &self.x[group * self.rows * width..][..self.rows * width];
            let bias = &self.bias[head * size..][..size];
            let x = &x[head * size..];
            match size {
                _ if self.transposed => columns(x, bias, width, self.rows, y),
                32 => rows_of::<32>(x, bias, width, y),
                64 => rows_of::<64>(x, bias, width, y),
                _ => rows(x, bias, width, y),
            }
        }
    }
}

/// One head: its rows, of a size that many models have. Known, it is a few instructions.
#[inline(always)]
fn rows_of<const SIZE: usize>(x: &[f32], bias: &[f32], stride: usize, y: &mut [f32]) {
    let Some(bias) = bias.first_chunk::<SIZE>() else { return };
    for (row, y) in y.as_chunks_mut::<SIZE>().0.iter_mut().enumerate() {
        let Some(x) = x[row * stride..].first_chunk::<SIZE>() else { return };
        for at in 0..SIZE {
            y[at] = x[at] + bias[at];
        }
    }
}

/// One head: its rows, of any size.
#[inline(always)]
fn rows(x: &[f32], bias: &[f32], stride: usize, y: &mut [f32]) {
    for (y, x) in y.chunks_exact_mut(bias.len()).zip(x.chunks(stride)) {
        for ((y, x), bias) in y.iter_mut().zip(x).zip(bias) {
            *y = x + bias;
        }
    }
}

/// The side of the squares that columns are made of: what the compiler turns in registers, and a line of the cache is two of them.
const SIDE: usize = 8;

/// One head: its columns.
#[inline(always)]
fn columns(x: &[f32], bias: &[f32], stride: usize, count: usize, y: &mut [f32]) {
    let whole = count - count % SIDE;
    let (biases, rest) = bias.as_chunks::<SIDE>();
    for (square, biases) in biases.iter().enumerate() {
        for first in (0..whole).step_by(SIDE) {
            let turned = turned(&x[first * stride + square * SIDE..], biases, stride);
            for (column, numbers) in turned.iter().enumerate() {
                y[(square * SIDE + column) * count + first..][..SIDE].copy_from_slice(numbers);
            }
        }
    }
    // What no square covers: the last columns, and the last rows of the others.
    let covered = bias.len() - rest.len();
    for (column, bias) in bias.iter().enumerate() {
        let first = if column < covered { whole } else { 0 };
        for (row, y) in y[column * count..][..count].iter_mut().enumerate().skip(first) {
            *y = x[row * stride + column] + bias;
        }
    }
}

/// The columns of one square of `x + bias`.
#[inline(always)]
fn turned(x: &[f32], bias: &[f32; SIDE], stride: usize) -> [[f32; SIDE]; SIDE] {
    let mut rows = [[0.0; SIDE]; SIDE];
    for (row, numbers) in rows.iter_mut().enumerate() {
        if let Some(x) = x[row * stride..].first_chunk::<SIDE>() {
            for at in 0..SIDE {
                numbers[at] = x[at] + bias[at];
            }
        }
    }
    let mut columns = [[0.0; SIDE]; SIDE];
    for (column, numbers) in columns.iter_mut().enumerate() {
        for row in 0..SIDE {
            numbers[row] = rows[row][column];
        }
    }
    columns
}
