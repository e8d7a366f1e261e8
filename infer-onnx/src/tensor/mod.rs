//! Tensors, and what else goes into a graph and comes out of it.

#[cfg(feature = "ndarray")]
mod array;
mod dtype;
mod element;
mod owned;
mod types;
mod value;
mod view;

pub use dtype::DType;
pub use element::Element;
pub use owned::Tensor;
pub use types::{Dim, Port, ValueType};
pub use value::{Input, Map, MapView, SequenceView, Value, ValueView};
pub(crate) use view::raw_shape;
pub use view::{TensorView, TensorViewMut, Text};

use crate::error::invalid_input;
use infer_core::Result;

/// How many elements a tensor of this shape has.
fn count(shape: &[usize]) -> Result<usize> {
    let product = shape.iter().try_fold(1_usize, |product, &dim| product.checked_mul(dim));
    product.ok_or_else(|| invalid_input(format!("a tensor of shape {shape:?} has more elements than can be counted")))
}

fn check_len(shape: &[usize], len: usize) -> Result<()> {
    let count = count(shape)?;
    if len == count {
        return Ok(());
    }
    Err(invalid_input(format!("a tensor of shape {shape:?} has {count} elements, but {len} are there")))
}
