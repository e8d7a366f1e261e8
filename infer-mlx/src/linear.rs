//! Matrices of a model, in floating point or quantised: what multiplies, and what is looked up.

#[cfg(test)]
mod tests;

use crate::{Array, config::Affine, weights::Weight};

/// `x Wᵀ + b`.
pub(crate) struct Linear {
    pub(crate) matrix: Matrix,
    pub(crate) bias: Option<Weight>,
}

/// A matrix `W` of as many rows as there are results.
#[derive(Clone)]
pub(crate) enum Matrix {
    /// `Wᵀ`: a view of the matrix as it is stored.
    Float(Weight),
    /// `W` in few bits.
    Quantized(Quantized),
}

/// Rows of whole numbers of a few bits, with a scale and a bias for each group of neighbours.
#[derive(Clone)]
pub(crate) struct Quantized {
    pub(crate) packed: Weight,
    pub(crate) scales: Weight,
    pub(crate) biases: Weight,
    pub(crate) affine: Affine,
}

/// A row of numbers for each token.
pub(crate) struct Embedding {
    pub(crate) rows: Rows,
    /// The same matrix, to multiply with: models whose output layer is their embedding.
    pub(crate) matrix: Matrix,
}

/// The rows of an embedding.
pub(crate) enum Rows {
    Float(Weight),
    Quantized(Quantized),
}

impl Linear {
    pub(crate) fn forward<'s>(&self, x: Array<'s>) -> Array<'s> {
        match (&self.matrix, &self.bias) {
            (matrix, None) => matrix.times(x),
            (Matrix::Float(transposed), Some(bias)) => x.addmm(bias.owned(), transposed.owned()),
            (matrix, Some(bias)) => matrix.times(x) + bias.owned(),
        }
    }
}

impl Matrix {
    /// `x Wᵀ`.
    pub(crate) fn times<'s>(&self, x: Array<'s>) -> Array<'s> {
        match self {
            Self::Float(transposed) => x.matmul(transposed.owned()),
            Self::Quantized(Quantized { packed, scales, biases, affine }) => {
                let (packed, scales, biases) = (packed.owned(), scales.owned(), biases.owned());
                x.quantized_matmul(packed, scales, biases, true, affine.group_size as i32, affine.bits as i32)
            }
        }
    }
}

impl Embedding {
    /// The rows of these tokens, `[tokens, width]`.
    pub(crate) fn forward<'s>(&self, tokens: Array<'s>) -> Array<'s> {
        match &self.rows {
            Rows::Float(rows) => tokens.scope().enter(rows.owned()).take(tokens, 0),
            Rows::Quantized(Quantized { packed, scales, biases, affine }) => {
                let rows = |table: &Weight| tokens.scope().enter(table.owned()).take(tokens, 0);
                rows(packed).dequantize(rows(scales), rows(biases), affine.group_size as i32, affine.bits as i32)
            }
        }
    }
}
