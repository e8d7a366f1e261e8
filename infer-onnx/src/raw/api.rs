//! The library's table, once it is loaded.

use crate::{
    DType,
    error::{self, error},
};
use infer_core::{ErrorKind, Result};
use infer_sys::onnxruntime::{
    ONNXTensorElementDataType, OrtAllocator, OrtAllocatorType, OrtApi, OrtMemType, OrtMemoryInfo, OrtStatus,
    OrtStatusPtr,
};
use ort::environment::Environment;
use std::{
    ffi::{CStr, c_char},
    fmt, mem,
    ptr::{self, NonNull},
    sync::OnceLock,
};

/// The table of the loaded library, with the two objects that nearly every call wants.
///
/// One a process, for ever: the library is never closed, and the owner of the environment (`global.rs`) never lets go of it, so what is
/// made with the table can be freed on any thread at any time. So it is a reference, which whatever is made with it keeps.
#[derive(Clone, Copy)]
pub(crate) struct Api(&'static Loaded);

struct Loaded {
    table: &'static OrtApi,
    allocator: NonNull<OrtAllocator>,
    memory: NonNull<OrtMemoryInfo>,
}

// SAFETY: the table is a constant that nobody writes. The allocator is the library's default one, of which `onnxruntime_c_api.h` says
// "Always returns the same pointer to the same default allocator", and which sessions use from all their threads; the memory info is made once, never changed and
// never freed.
unsafe impl Send for Loaded {}
// SAFETY: as above: nothing here is changed through a shared reference.
unsafe impl Sync for Loaded {}

static LOADED: OnceLock<Loaded> = OnceLock::new();

impl Api {
    /// Takes the table of the library whose environment this is, the first time; afterwards it is there for [`loaded`](Self::loaded).
    ///
    /// The environment must be kept until the process ends.
    pub(crate) fn start(_: &Environment) -> Result<Self> {
        if let Some(loaded) = LOADED.get() {
            return Ok(Self(loaded));
        }
        // There is an environment, so `ort` has a table already: it neither loads nor panics here.
        let table = ort::api();
        let mut allocator = ptr::null_mut();
        // SAFETY: `allocator` is a valid place; the entry takes nothing else.
        let status = unsafe { (table.GetAllocatorWithDefaultOptions)(&raw mut allocator) };
        check(table, "ask for the default allocator", status)?;
        let mut memory = ptr::null_mut();
        let (kind, place) = (OrtAllocatorType::OrtArenaAllocator, OrtMemType::OrtMemTypeDefault);
        // SAFETY: `memory` is a valid place, and the enumerations are the library's own.
        let status = unsafe { (table.CreateCpuMemoryInfo)(kind, place, &raw mut memory) };
        check(table, "describe the memory of the CPU", status)?;
        let loaded = Loaded { table, allocator: some(allocator)?, memory: some(memory)? };
        // Should two threads come here at once, one memory info is lost: a few bytes, once.
        Ok(Self(LOADED.get_or_init(|| loaded)))
    }

    /// The table, if the library is loaded.
    pub(crate) fn loaded() -> Result<Self> {
        LOADED.get().map(Self).ok_or_else(|| {
            error(ErrorKind::Library, "ONNX Runtime is not loaded in this process; call `Onnx::load` first")
        })
    }

    pub(super) fn table(self) -> &'static OrtApi {
        self.0.table
    }

    /// The library's default allocator: of the CPU, for ever.
    pub(super) fn allocator(self) -> *mut OrtAllocator {
        self.0.allocator.as_ptr()
    }

    /// What the memory of the CPU is to the library.
    pub(super) fn memory(self) -> *const OrtMemoryInfo {
        self.0.memory.as_ptr()
    }

    /// Turns a status into a result. `what` says in an error what was tried.
    #[inline]
    pub(super) fn check(self, what: &str, status: OrtStatusPtr) -> Result<()> {
        if status.0.is_null() { Ok(()) } else { check(self.table(), what, status) }
    }

    /// Frees memory that an entry got from the default allocator.
    ///
    /// # Safety
    /// `memory` is NULL, or was given by an entry that was told to use [`allocator`](Self::allocator), and is not used any more.
    pub(super) unsafe fn free<T>(self, memory: *mut T) {
        if memory.is_null() {
            return;
        }
        // SAFETY: the caller's promise; the allocator lives for ever.
        let status = unsafe { (self.table().AllocatorFree)(self.allocator(), memory.cast()) };
        // Freeing has no way to fail that a caller could do anything about.
        drop(check(self.table(), "free memory", status));
    }

    /// A C string that an entry got from the default allocator: read, and freed.
    ///
    /// # Safety
    /// As [`free`](Self::free), and it ends with a NUL.
    pub(super) unsafe fn take_text(self, text: *mut c_char) -> String {
        if text.is_null() {
            return String::new();
        }
        // SAFETY: not NULL, and the caller's promise.
        let owned = unsafe { CStr::from_ptr(text) }.to_string_lossy().into_owned();
        // SAFETY: the caller's promise; it was copied.
        unsafe { self.free(text) };
        owned
    }
}

impl fmt::Debug for Api {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Api")
    }
}

#[cold]
#[inline(never)]
fn check(table: &'static OrtApi, what: &str, status: OrtStatusPtr) -> Result<()> {
    let Some(status) = NonNull::new(status.0) else { return Ok(()) };
    /// `GetErrorCode`, whose number is not believed to be one of those that the enumeration has today: a later library may have more.
    type GetErrorCode = unsafe extern "system" fn(*const OrtStatus) -> i32;
    // SAFETY: both are pointers to the same function, and the enumeration is `repr(i32)`: it is returned as an `i32` is.
    let code_of: GetErrorCode = unsafe { mem::transmute(table.GetErrorCode) };
    // SAFETY: the status was just given by an entry of this table and is freed below.
    let code = unsafe { code_of(status.as_ptr()) };
    // SAFETY: as above.
    let text = unsafe { (table.GetErrorMessage)(status.as_ptr()) };
    // SAFETY: "Get error string from OrtStatus": a C string inside the status, which lives.
    let text = unsafe { CStr::from_ptr(text) }.to_string_lossy();
    let failure = error::failed(what, code, &text);
    // SAFETY: it is ours alone, and neither code nor text are used after.
    unsafe { (table.ReleaseStatus)(status.as_ptr()) };
    Err(failure)
}

/// What an entry gave that said OK.
pub(super) fn some<T>(pointer: *mut T) -> Result<NonNull<T>> {
    NonNull::new(pointer).ok_or_else(|| error(ErrorKind::Runtime, "ONNX Runtime said OK and gave nothing"))
}

use ONNXTensorElementDataType as E;

/// Our types of elements and the library's, whose numbers are ONNX's up to 23 and its own from there.
const ELEMENTS: [(DType, E); 26] = [
    (DType::F32, E::ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT),
    (DType::I64, E::ONNX_TENSOR_ELEMENT_DATA_TYPE_INT64),
    (DType::F16, E::ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT16),
    (DType::I32, E::ONNX_TENSOR_ELEMENT_DATA_TYPE_INT32),
    (DType::U8, E::ONNX_TENSOR_ELEMENT_DATA_TYPE_UINT8),
    (DType::I8, E::ONNX_TENSOR_ELEMENT_DATA_TYPE_INT8),
    (DType::U16, E::ONNX_TENSOR_ELEMENT_DATA_TYPE_UINT16),
    (DType::I16, E::ONNX_TENSOR_ELEMENT_DATA_TYPE_INT16),
    (DType::String, E::ONNX_TENSOR_ELEMENT_DATA_TYPE_STRING),
    (DType::Bool, E::ONNX_TENSOR_ELEMENT_DATA_TYPE_BOOL),
    (DType::F64, E::ONNX_TENSOR_ELEMENT_DATA_TYPE_DOUBLE),
    (DType::U32, E::ONNX_TENSOR_ELEMENT_DATA_TYPE_UINT32),
    (DType::U64, E::ONNX_TENSOR_ELEMENT_DATA_TYPE_UINT64),
    (DType::Complex64, E::ONNX_TENSOR_ELEMENT_DATA_TYPE_COMPLEX64),
    (DType::Complex128, E::ONNX_TENSOR_ELEMENT_DATA_TYPE_COMPLEX128),
    (DType::Bf16, E::ONNX_TENSOR_ELEMENT_DATA_TYPE_BFLOAT16),
    (DType::F8E4M3Fn, E::ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT8E4M3FN),
    (DType::F8E4M3FnUz, E::ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT8E4M3FNUZ),
    (DType::F8E5M2, E::ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT8E5M2),
    (DType::F8E5M2FnUz, E::ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT8E5M2FNUZ),
    (DType::U4, E::ONNX_TENSOR_ELEMENT_DATA_TYPE_UINT4),
    (DType::I4, E::ONNX_TENSOR_ELEMENT_DATA_TYPE_INT4),
    (DType::F4E2M1, E::ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT4E2M1),
    (DType::U2, E::ONNX_TENSOR_ELEMENT_DATA_TYPE_UINT2),
    (DType::I2, E::ONNX_TENSOR_ELEMENT_DATA_TYPE_INT2),
    (DType::F8E8M0, E::ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT8E8M0),
];

/// The library's word for a type of elements.
pub(super) fn element_of(dtype: DType) -> E {
    let row = ELEMENTS.iter().find(|row| row.0 == dtype);
    row.map_or(E::ONNX_TENSOR_ELEMENT_DATA_TYPE_UNDEFINED, |row| row.1)
}

/// Our word for the number that the library gave; `None` for one we do not know.
pub(crate) fn dtype_of(element: i32) -> Option<DType> {
    ELEMENTS.iter().find(|row| row.1 as i32 == element).map(|row| row.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_type_there_and_back() {
        for (number, name) in [(1, "float32"), (23, "float4e2m1"), (24, "uint2"), (26, "float8e8m0")] {
            assert_eq!(dtype_of(number).unwrap().as_str(), name);
        }
        for number in 1..=26 {
            let dtype = dtype_of(number).unwrap();
            assert_eq!(element_of(dtype) as i32, number, "{dtype}");
        }
        assert_eq!((dtype_of(0), dtype_of(27)), (None, None));
    }
}
