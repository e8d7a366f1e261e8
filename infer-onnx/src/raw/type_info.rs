//! What the inputs and outputs of a graph are declared as.

use super::{
    Api,
    api::{dtype_of, some},
};
use crate::{
    DType,
    error::error,
    tensor::{Dim, ValueType},
};
use infer_core::{ErrorKind, Result};
use infer_sys::onnxruntime::{ONNXType, OrtTensorTypeAndShapeInfo, OrtTypeInfo};
use std::{
    ffi::CStr,
    ptr::{self, NonNull},
};

/// One `OrtTypeInfo`, released with it.
pub(super) struct TypeInfo {
    api: Api,
    info: NonNull<OrtTypeInfo>,
}

impl TypeInfo {
    /// Of a pointer that an entry gave ownership of.
    pub(super) fn new(api: Api, info: *mut OrtTypeInfo) -> Result<Self> {
        Ok(Self { api, info: some(info)? })
    }

    /// The whole of it, in our words.
    pub(super) fn read(&self) -> Result<ValueType> {
        let mut kind = 0_i32;
        // SAFETY: the info lives; the place is as large as the enumeration, which is `repr(i32)`, and takes numbers it does not have.
        let status = unsafe { (self.api.table().GetOnnxTypeFromTypeInfo)(self.as_ptr(), (&raw mut kind).cast()) };
        self.api.check("ask for a type", status)?;
        const TENSOR: i32 = ONNXType::ONNX_TYPE_TENSOR as i32;
        const SPARSE: i32 = ONNXType::ONNX_TYPE_SPARSETENSOR as i32;
        const SEQUENCE: i32 = ONNXType::ONNX_TYPE_SEQUENCE as i32;
        const MAP: i32 = ONNXType::ONNX_TYPE_MAP as i32;
        const OPTIONAL: i32 = ONNXType::ONNX_TYPE_OPTIONAL as i32;
        match kind {
            TENSOR => self.tensor(),
            SPARSE => Ok(ValueType::Sparse),
            SEQUENCE => self.sequence(),
            MAP => self.map(),
            OPTIONAL => self.optional(),
            _ => Ok(ValueType::Opaque),
        }
    }

    fn tensor(&self) -> Result<ValueType> {
        let mut tensor = ptr::null();
        // SAFETY: the info lives; `tensor` is a valid place, and what is put there is a part of the info.
        let status = unsafe { (self.api.table().CastTypeInfoToTensorInfo)(self.as_ptr(), &raw mut tensor) };
        self.api.check("ask for the type of a tensor", status)?;
        let tensor = some(tensor.cast_mut())?.as_ptr();
        let mut element = 0_i32;
        // SAFETY: the info of a tensor that lives; the place is as in `read`.
        let status = unsafe { (self.api.table().GetTensorElementType)(tensor, (&raw mut element).cast()) };
        self.api.check("ask for the type of elements", status)?;
        Ok(ValueType::Tensor { dtype: known(element)?, dims: self.dims(tensor)? })
    }

    /// The dimensions: `None` where the model does not say how many there are.
    fn dims(&self, tensor: *const OrtTensorTypeAndShapeInfo) -> Result<Option<Vec<Dim>>> {
        let (api, table) = (self.api, self.api.table());
        // SAFETY: the info of a tensor that lives (the caller's borrow).
        if !unsafe { (table.TensorTypeAndShape_HasShape)(tensor) } {
            return Ok(None);
        }
        let mut rank = 0;
        // SAFETY: the info of a tensor that lives (the caller's borrow), a valid place.
        let status = unsafe { (table.GetDimensionsCount)(tensor, &raw mut rank) };
        api.check("ask for a rank", status)?;
        let mut sizes = vec![0_i64; rank];
        // SAFETY: as above; the buffer is as long as is said.
        let status = unsafe { (table.GetDimensions)(tensor, sizes.as_mut_ptr(), rank) };
        api.check("ask for dimensions", status)?;
        let mut names = vec![ptr::null(); rank];
        // SAFETY: as above.
        let status = unsafe { (table.GetSymbolicDimensions)(tensor, names.as_mut_ptr(), rank) };
        api.check("ask for the names of dimensions", status)?;
        let dims = sizes.iter().zip(names).map(|(&size, name)| match usize::try_from(size) {
            Ok(size) => Dim::Fixed(size),
            Err(_) if name.is_null() => Dim::Dynamic(None),
            Err(_) => {
                // SAFETY: not NULL: a C string inside the info, which lives.
                let name = unsafe { CStr::from_ptr(name) }.to_string_lossy();
                Dim::Dynamic(Some(name.into_owned()).filter(|name| !name.is_empty()))
            }
        });
        Ok(Some(dims.collect()))
    }

    fn sequence(&self) -> Result<ValueType> {
        let (mut sequence, mut element) = (ptr::null(), ptr::null_mut());
        // SAFETY: the info lives; what is put into the valid place is a part of it.
        let status = unsafe { (self.api.table().CastTypeInfoToSequenceTypeInfo)(self.as_ptr(), &raw mut sequence) };
        self.api.check("ask for the type of a sequence", status)?;
        // SAFETY: the info of a sequence that lives, a valid place.
        let status = unsafe { (self.api.table().GetSequenceElementType)(sequence, &raw mut element) };
        self.api.check("ask for the type of a sequence's elements", status)?;
        Ok(ValueType::Sequence(Box::new(Self::new(self.api, element)?.read()?)))
    }

    fn map(&self) -> Result<ValueType> {
        let (mut map, mut key, mut value) = (ptr::null(), 0_i32, ptr::null_mut());
        // SAFETY: the info lives; what is put into the valid place is a part of it.
        let status = unsafe { (self.api.table().CastTypeInfoToMapTypeInfo)(self.as_ptr(), &raw mut map) };
        self.api.check("ask for the type of a map", status)?;
        // SAFETY: the info of a map that lives; the place is as in `read`.
        let status = unsafe { (self.api.table().GetMapKeyType)(map, (&raw mut key).cast()) };
        self.api.check("ask for the type of a map's keys", status)?;
        // SAFETY: as above.
        let status = unsafe { (self.api.table().GetMapValueType)(map, &raw mut value) };
        self.api.check("ask for the type of a map's values", status)?;
        let value = Box::new(Self::new(self.api, value)?.read()?);
        Ok(ValueType::Map { key: known(key)?, value })
    }

    fn optional(&self) -> Result<ValueType> {
        let (mut optional, mut inner) = (ptr::null(), ptr::null_mut());
        // SAFETY: the info lives; what is put into the valid place is a part of it.
        let status = unsafe { (self.api.table().CastTypeInfoToOptionalTypeInfo)(self.as_ptr(), &raw mut optional) };
        self.api.check("ask for the type of an optional value", status)?;
        // SAFETY: the info of an optional value that lives, a valid place.
        let status = unsafe { (self.api.table().GetOptionalContainedTypeInfo)(optional, &raw mut inner) };
        self.api.check("ask for the type inside an optional value", status)?;
        Ok(ValueType::Optional(Box::new(Self::new(self.api, inner)?.read()?)))
    }

    fn as_ptr(&self) -> *const OrtTypeInfo {
        self.info.as_ptr()
    }
}

impl Drop for TypeInfo {
    fn drop(&mut self) {
        // SAFETY: given to us by an entry that gives ownership, and released once.
        unsafe { (self.api.table().ReleaseTypeInfo)(self.info.as_ptr()) };
    }
}

fn known(element: i32) -> Result<DType> {
    dtype_of(element).ok_or_else(|| {
        let message = format!("the graph has elements of kind {element} of ONNX Runtime, which is not known here");
        error(ErrorKind::Unsupported, message)
    })
}
