//! Tensors over memory that is lent for a run.

use super::Value;
use crate::{DType, error::invalid_input, tensor::raw_shape};
use infer_core::Result;
use infer_sys::onnxruntime::OrtValue;

/// A tensor over memory that a caller lends for a run. It may outlive the loan: the next run that is lent the same memory as a tensor of the same
/// type and shape takes it again, since a value that the runtime would make anew has nothing else in it.
///
/// So nothing here reads through it, and a run is given one only while its memory is lent ([`Call`](super::super::Call)).
pub(in crate::raw) struct Lent(Value);

impl Lent {
    /// A tensor over these bytes.
    pub(in crate::raw) fn over(dtype: DType, shape: &[usize], bytes: &[u8]) -> Result<Self> {
        check_elements(dtype, bytes)?;
        // Only read, as an input of a run: see `Value::view`.
        Value::over(dtype, raw_shape(shape)?, bytes.as_ptr().cast_mut(), bytes.len()).map(Self)
    }

    /// Whether it is the tensor that [`over`](Self::over) would make of these bytes.
    pub(in crate::raw) fn is_over(&self, dtype: DType, shape: &[usize], bytes: &[u8]) -> bool {
        // The runtime has kept the address from an earlier loan. It means the memory that is lent now, wherever that came from.
        let address = bytes.as_ptr().expose_provenance();
        let Self(value) = self;
        (value.data.addr(), value.len) == (address, bytes.len())
            && value.dtype() == Some(dtype)
            && value.dims() == shape
            // Bools are looked at each time.
            && check_elements(dtype, bytes).is_ok()
    }

    /// Whether the memory of another tensor overlaps what is lent.
    pub(in crate::raw) fn overlaps(&self, other: &Value) -> bool {
        self.0.overlaps(other)
    }

    pub(in crate::raw) fn as_ptr(&self) -> *const OrtValue {
        self.0.as_ptr()
    }
}

/// Whether bytes are elements of this type.
pub(super) fn check_elements(dtype: DType, bytes: &[u8]) -> Result<()> {
    if dtype == DType::Bool && bytes.iter().any(|&byte| byte > 1) {
        return Err(invalid_input("a tensor of bools has bytes that are neither 0 nor 1"));
    }
    Ok(())
}
