//! What values consist of: elements of sequences, keys and values of maps, strings.

use super::{Contents, Handle, Value, elements_of};
use crate::{
    DType,
    error::{error, invalid_input},
    raw::{Api, api::some},
};
use infer_core::{ErrorKind, Result};
use infer_sys::onnxruntime::{ONNXType, OrtValue};
use std::{ffi::c_int, ptr};

impl Value {
    /// A sequence of these, which are all of one kind.
    pub(crate) fn sequence(elements: Vec<Self>) -> Result<Self> {
        Self::collection(&elements, ONNXType::ONNX_TYPE_SEQUENCE, Contents::Sequence)
    }

    /// A map: a tensor of keys and one of as many values.
    pub(crate) fn map(keys: Self, values: Self) -> Result<Self> {
        Self::collection(&[keys, values], ONNXType::ONNX_TYPE_MAP, Contents::Map)
    }

    /// Of values that nobody else has, since the new one shares their memory.
    fn collection(parts: &[Self], kind: ONNXType, contents: Contents) -> Result<Self> {
        let api = Api::loaded()?;
        if parts.is_empty() || parts.iter().any(|part| part.contents == Contents::Nothing) {
            return Err(invalid_input("a sequence or map cannot be made of nothing"));
        }
        if contents == Contents::Map && parts.iter().any(|part| !matches!(part.contents, Contents::Tensor(_))) {
            return Err(invalid_input("the keys and the values of a map are a tensor each"));
        }
        let pointers: Vec<*const OrtValue> = parts.iter().map(Self::as_ptr).collect();
        let mut value = ptr::null_mut();
        // SAFETY: as many live values as are said; `value` is a valid place.
        let status = unsafe { (api.table().CreateValue)(pointers.as_ptr(), pointers.len(), kind, &raw mut value) };
        api.check("make a sequence or map", status)?;
        let mut value = Self::bare(Handle::new(api, some(value)?), None);
        value.contents = contents;
        Ok(value)
    }

    /// The elements of a tensor of strings. They are bytes to the runtime, so they need not be text.
    pub(crate) fn strings(&self) -> Result<Vec<Vec<u8>>> {
        if self.dtype() != Some(DType::String) {
            return Err(invalid_input("a value that is no tensor of strings was asked for strings"));
        }
        let (api, count) = (self.handle.api, elements_of(self.shape())?);
        if count == 0 {
            return Ok(Vec::new());
        }
        let mut len = 0;
        // SAFETY: a live tensor of strings; `len` is a valid place.
        let status = unsafe { (api.table().GetStringTensorDataLength)(self.as_ptr(), &raw mut len) };
        api.check("ask how long strings are", status)?;
        let (mut bytes, mut offsets) = (vec![0_u8; len], vec![0_usize; count]);
        let (start, places) = (bytes.as_mut_ptr().cast(), offsets.as_mut_ptr());
        // SAFETY: a live tensor of so many strings; both buffers are as long as is said.
        let status = unsafe { (api.table().GetStringTensorContent)(self.as_ptr(), start, len, places, count) };
        api.check("read strings", status)?;
        let ends = offsets[1..].iter().copied().chain([len]);
        let slices = offsets.iter().zip(ends).map(|(&from, to)| bytes.get(from..to).map(<[u8]>::to_vec));
        slices.collect::<Option<_>>().ok_or_else(|| error(ErrorKind::Runtime, "ONNX Runtime gave strings that overlap"))
    }

    /// How many parts there are: of a sequence its elements, of a map two.
    pub(crate) fn count(&self) -> Result<usize> {
        let api = self.handle.api;
        let mut count = 0;
        // SAFETY: a live value; what is no sequence or map is refused; `count` is a valid place.
        let status = unsafe { (api.table().GetValueCount)(self.as_ptr(), &raw mut count) };
        api.check("count the elements of a value", status)?;
        Ok(count)
    }

    /// A part, copied out: of a sequence an element, of a map its keys (0) or values (1).
    pub(crate) fn part(&self, index: usize) -> Result<Self> {
        let count = self.count()?;
        let number = c_int::try_from(index).ok().filter(|_| index < count);
        let Some(number) = number else {
            return Err(invalid_input(format!("element {index} was asked for, but there are {count}")));
        };
        let api = self.handle.api;
        let mut part = ptr::null_mut();
        // SAFETY: a live value with more parts than the index; the allocator lives for ever; `part` is a valid place.
        let status = unsafe { (api.table().GetValue)(self.as_ptr(), number, api.allocator(), &raw mut part) };
        api.check("take an element out of a value", status)?;
        let mut part = Self::bare(Handle::new(api, some(part)?), self.owner.clone());
        part.describe()?;
        Ok(part)
    }
}
