//! What a value that the runtime gave is, and where.

use super::{Contents, Handle, Value, bytes_of, elements_of, native, sizes_differ};
use crate::{
    DType,
    error::error,
    raw::{
        Shape,
        api::{dtype_of, some},
    },
};
use infer_core::{ErrorKind, Result};
use infer_sys::onnxruntime::{ONNXType, OrtMemoryInfoDeviceType, OrtValue};
use std::{
    ptr::{self, NonNull},
    slice,
};

impl Value {
    /// Puts another value of a run in the place of this one; its memory for the dimensions is kept.
    pub(in crate::raw) fn replace(&mut self, value: NonNull<OrtValue>) -> Result<()> {
        self.handle = Handle::new(self.handle.api, value);
        self.ours = false;
        self.describe()
    }

    /// Asks the runtime what the value is, and where.
    pub(in crate::raw) fn describe(&mut self) -> Result<()> {
        (self.contents, self.data, self.len) = (Contents::Nothing, ptr::null_mut(), 0);
        self.shape = Shape::NONE;
        let (api, value) = (self.handle.api, self.handle.as_ptr());
        let mut there = 0;
        // SAFETY: a live value, a valid place.
        let status = unsafe { (api.table().HasValue)(value, &raw mut there) };
        api.check("ask whether a value is there", status)?;
        if there == 0 {
            return Ok(());
        }
        let mut is_tensor = 0;
        // SAFETY: as above.
        let status = unsafe { (api.table().IsTensor)(value, &raw mut is_tensor) };
        api.check("ask whether a value is a tensor", status)?;
        if is_tensor == 0 { self.describe_collection() } else { self.describe_tensor() }
    }

    fn describe_collection(&mut self) -> Result<()> {
        const SEQUENCE: i32 = ONNXType::ONNX_TYPE_SEQUENCE as i32;
        const MAP: i32 = ONNXType::ONNX_TYPE_MAP as i32;
        let mut kind = 0_i32;
        // SAFETY: a live value; the place is as large as the enumeration, which is `repr(i32)`, and takes numbers it does not have.
        let status = unsafe { (self.handle.api.table().GetValueType)(self.as_ptr(), (&raw mut kind).cast()) };
        self.handle.api.check("ask what a value is", status)?;
        self.contents = match kind {
            SEQUENCE => Contents::Sequence,
            MAP => Contents::Map,
            other => {
                let message =
                    format!("a value is neither tensor, sequence nor map, but of kind {other} of ONNX Runtime");
                return Err(error(ErrorKind::Unsupported, message));
            }
        };
        Ok(())
    }

    fn describe_tensor(&mut self) -> Result<()> {
        let (api, value) = (self.handle.api, self.handle.as_ptr());
        let (mut element, mut dims, mut rank) = (0_i32, ptr::null(), 0);
        // SAFETY: a live tensor; valid places, the first as large as the enumeration (see `describe_collection`).
        let status = unsafe {
            (api.table().GetTensorElementTypeAndShapeDataReference)(
                value,
                (&raw mut element).cast(),
                &raw mut dims,
                &raw mut rank,
            )
        };
        api.check("ask for the shape of a tensor", status)?;
        if rank > 0 {
            let first: *const i64 = some(dims.cast_mut())?.as_ptr();
            // SAFETY: the entry gives as many dimensions as it says, which live as long as the value does and are copied now.
            let dims = unsafe { slice::from_raw_parts(first, rank) };
            elements_of(dims)?;
            self.shape = native(dims)?;
        }
        let Some(dtype) = dtype_of(element) else {
            let message = format!("a tensor has elements of kind {element} of ONNX Runtime, which is not known here");
            return Err(error(ErrorKind::Unsupported, message));
        };
        if dtype != DType::String {
            self.find_data(dtype)?;
        }
        self.contents = Contents::Tensor(dtype);
        Ok(())
    }

    /// Asks where the elements are.
    fn find_data(&mut self, dtype: DType) -> Result<()> {
        let (api, value) = (self.handle.api, self.handle.as_ptr());
        let mut memory = ptr::null();
        // SAFETY: a live tensor, a valid place.
        let status = unsafe { (api.table().GetTensorMemoryInfo)(value, &raw mut memory) };
        api.check("ask where a tensor is", status)?;
        let mut device = 0_i32;
        // SAFETY: the memory info is the tensor's and lives; the place is as large as the enumeration (see `describe_collection`).
        unsafe { (api.table().MemoryInfoGetDeviceType)(memory, (&raw mut device).cast()) };
        if device != OrtMemoryInfoDeviceType::OrtMemoryInfoDeviceType_CPU as i32 {
            return Err(error(
                ErrorKind::Unsupported,
                "a tensor is in memory of a device, and only the host's is read",
            ));
        }
        // The elements of a tensor lie one behind the other, so that it takes the bytes of one times their number; the runtime, too, knows no
        // size but what it computes of type and shape. How it packs elements that share a byte, only it can say.
        let len = bytes_of(dtype, self.shape())?;
        if dtype.shares_bytes() {
            self.check_size(dtype, len)?;
        }
        if len > 0 {
            let mut data = ptr::null_mut();
            // SAFETY: a live tensor of numbers, a valid place.
            let status = unsafe { (api.table().GetTensorMutableData)(value, &raw mut data) };
            api.check("ask for the memory of a tensor", status)?;
            (self.data, self.len) = (some(data)?.as_ptr().cast(), len);
        }
        Ok(())
    }

    /// Whether the runtime says the same of how large a tensor is.
    pub(in crate::raw) fn check_size(&self, dtype: DType, expected: usize) -> Result<()> {
        let (api, mut len) = (self.handle.api, 0);
        // SAFETY: a live tensor of numbers, a valid place.
        let status = unsafe { (api.table().GetTensorSizeInBytes)(self.as_ptr(), &raw mut len) };
        api.check("ask how large a tensor is", status)?;
        if len == expected { Ok(()) } else { Err(sizes_differ(dtype, self.shape(), expected, len)) }
    }
}
