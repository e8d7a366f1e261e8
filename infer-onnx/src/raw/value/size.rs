//! How much a tensor is: elements, bytes, and whether there is room for it.

use super::Shape;
use crate::{
    DType,
    error::{error, invalid_input},
};
use infer_core::{
    ErrorKind, Result,
    machine::{Size, available_memory},
};

/// Bytes of a tensor from which on it is worth asking the system whether there are so many.
const LARGE: usize = 256 << 20;
/// Bytes of an empty string of C++.
const STRING: usize = 32;

/// How many elements a tensor of this shape has.
pub(super) fn elements_of(shape: &[i64]) -> Result<usize> {
    let product = shape.iter().try_fold(1_usize, |product, &dim| product.checked_mul(usize::try_from(dim).ok()?));
    product.ok_or_else(|| no_shape(shape))
}

/// Dimensions as the runtime counts.
pub(super) fn native(shape: &[i64]) -> Result<Shape> {
    Shape::from_native(shape).ok_or_else(|| no_shape(shape))
}

fn no_shape(shape: &[i64]) -> infer_core::Error {
    invalid_input(format!("{shape:?} is no shape: a dimension is negative, or there are more elements than can be"))
}

/// How many bytes it takes; 0 for strings.
pub(super) fn bytes_of(dtype: DType, shape: &[i64]) -> Result<usize> {
    let elements = elements_of(shape)?;
    if dtype == DType::String {
        return Ok(0);
    }
    dtype
        .bytes(elements)
        .filter(|&bytes| isize::try_from(bytes).is_ok())
        .ok_or_else(|| invalid_input(format!("a tensor of {dtype} of shape {shape:?} is larger than memory can be")))
}

/// Whether there is memory for a tensor, where it is large: it is given as it is filled, and past that point it is too late.
pub(super) fn check_room(dtype: DType, shape: &[i64]) -> Result<()> {
    let bytes = match dtype {
        DType::String => elements_of(shape)?.saturating_mul(STRING),
        _ => bytes_of(dtype, shape)?,
    };
    match (bytes >= LARGE).then(available_memory).flatten() {
        Some(available) if bytes as u64 > available.bytes => Err(error(
            ErrorKind::OutOfMemory,
            format!(
                "a tensor of {dtype} of shape {shape:?} takes {}, {} can be had within {}",
                Size(bytes as u64),
                Size(available.bytes),
                available.limit
            ),
        )),
        _ => Ok(()),
    }
}

pub(super) fn sizes_differ(dtype: DType, shape: &[i64], wanted: usize, there: usize) -> infer_core::Error {
    invalid_input(format!("a tensor of {dtype} of shape {shape:?} takes {wanted} bytes, but {there} are there"))
}
