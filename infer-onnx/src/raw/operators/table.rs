//! How the runtime is told of an operator: by a table, `OrtCustomOp` of `onnxruntime_c_api.h`.
//!
//! `ort` makes such tables too, and hands the kernel to each run as `&mut`. Here several threads run one session at once, which share its kernels.

use super::{
    Cpu, Kind,
    context::{Context, Node, Output},
};
use crate::{error::error, graph::words, raw::Api};
use infer_core::{Error, ErrorKind, Result};
use infer_sys::onnxruntime::{
    ONNXTensorElementDataType, ORT_API_VERSION, OrtApi, OrtCustomOp, OrtCustomOpInputOutputCharacteristic,
    OrtErrorCode, OrtKernelContext, OrtKernelInfo, OrtMemType, OrtStatusPtr,
};
use std::{
    ffi::{CString, c_char, c_int, c_void},
    panic::{AssertUnwindSafe, catch_unwind},
    process, ptr,
};

/// The table of an operator.
pub(super) fn of<K: Kind>() -> &'static OrtCustomOp {
    const {
        &OrtCustomOp {
            version: ORT_API_VERSION,
            GetName: Some(name::<K>),
            GetExecutionProviderType: Some(provider),
            GetStartVersion: Some(version),
            GetEndVersion: Some(version),
            GetInputTypeCount: Some(inputs::<K>),
            GetInputType: Some(element),
            GetInputCharacteristic: Some(required),
            GetInputMemoryType: Some(memory),
            GetOutputTypeCount: Some(one),
            GetOutputType: Some(element),
            GetOutputCharacteristic: Some(required),
            CreateKernelV2: Some(create::<K>),
            KernelComputeV2: Some(compute::<K>),
            KernelDestroy: Some(destroy::<K>),
            // There are none of variable number.
            GetVariadicInputMinArity: Some(none),
            GetVariadicInputHomogeneity: Some(none),
            GetVariadicOutputMinArity: Some(none),
            GetVariadicOutputHomogeneity: Some(none),
            // What the other two do better.
            CreateKernel: None,
            KernelCompute: None,
            // `operators.rs` says why.
            InferOutputShapeFn: None,
            GetMayInplace: None,
            ReleaseMayInplace: None,
            GetAliasMap: None,
            ReleaseAliasMap: None,
        }
    }
}

unsafe extern "system" fn name<K: Kind>(_: *const OrtCustomOp) -> *const c_char {
    K::NAME.as_ptr()
}

/// The CPU's.
unsafe extern "system" fn provider(_: *const OrtCustomOp) -> *const c_char {
    ptr::null()
}

unsafe extern "system" fn version(_: *const OrtCustomOp) -> c_int {
    super::VERSION.into()
}

unsafe extern "system" fn inputs<K: Kind>(_: *const OrtCustomOp) -> usize {
    K::INPUTS
}

unsafe extern "system" fn one(_: *const OrtCustomOp) -> usize {
    1
}

unsafe extern "system" fn none(_: *const OrtCustomOp) -> c_int {
    0
}

unsafe extern "system" fn element(_: *const OrtCustomOp, _: usize) -> ONNXTensorElementDataType {
    ONNXTensorElementDataType::ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT
}

unsafe extern "system" fn required(_: *const OrtCustomOp, _: usize) -> OrtCustomOpInputOutputCharacteristic {
    OrtCustomOpInputOutputCharacteristic::INPUT_OUTPUT_REQUIRED
}

unsafe extern "system" fn memory(_: *const OrtCustomOp, _: usize) -> OrtMemType {
    OrtMemType::OrtMemTypeDefault
}

unsafe extern "system" fn create<K: Kind>(
    _: *const OrtCustomOp,
    _: *const OrtApi,
    info: *const OrtKernelInfo,
    kernel: *mut *mut c_void,
) -> OrtStatusPtr {
    status::<K>(|api| {
        // SAFETY: the runtime gives the description of a node, which lives until this call has ended.
        let node = unsafe { Node::new(api, info) };
        let made = Box::into_raw(Box::new(K::of(&node)?));
        // SAFETY: the runtime gives the place for it.
        unsafe { kernel.write(made.cast()) };
        Ok(())
    })
}

unsafe extern "system" fn compute<K: Kind>(kernel: *mut c_void, context: *mut OrtKernelContext) -> OrtStatusPtr {
    status::<K>(|api| {
        // SAFETY: it was made by `create` of the same table, and is destroyed when the session is, which is not while it runs. It is only ever read, by
        // several threads at once, and a `Kind` is `Sync`.
        let kind = unsafe { &*kernel.cast::<K>().cast_const() };
        // SAFETY: the runtime gives the context of this call, which lives until the call has ended; the operator has one output, of `f32`, on the CPU, as the
        // table says.
        let context = unsafe { Context::new(api, context) };
        let inputs = (0..K::INPUTS).map(|index| context.input(index)).collect::<Result<Vec<_>>>()?;
        kind.compute(Cpu::best(), &inputs, Output::new(&context, &inputs))
    })
}

unsafe extern "system" fn destroy<K: Kind>(kernel: *mut c_void) {
    // SAFETY: made by `create` of the same table, and destroyed once. Kinds are numbers, whose drop does nothing.
    drop(unsafe { Box::from_raw(kernel.cast::<K>()) });
}

/// What is called by C: no panic comes out of it, and an error has the operator's name.
fn status<K: Kind>(work: impl FnOnce(Api) -> Result<()>) -> OrtStatusPtr {
    // The table was registered through it.
    let Ok(api) = Api::loaded() else { process::abort() };
    // What a panic leaves half done is an output that nobody is given.
    let outcome = catch_unwind(AssertUnwindSafe(|| work(api))).unwrap_or_else(|_| Err(bug()));
    let Err(failure) = outcome else { return OrtStatusPtr(ptr::null_mut()) };
    let code = match failure.kind() {
        ErrorKind::InvalidInput => OrtErrorCode::ORT_INVALID_ARGUMENT,
        _ => OrtErrorCode::ORT_FAIL,
    };
    let text = format!("{}: {}", K::NAME.to_string_lossy(), words(&failure)).replace('\0', " ");
    let text = CString::new(text).unwrap_or_default();
    // SAFETY: a C string, which is copied.
    unsafe { (api.table().CreateStatus)(code, text.as_ptr()) }
}

/// What a panic becomes: its message is where panics are written to.
pub(super) fn bug() -> Error {
    error(ErrorKind::Runtime, "the kernel panicked, which is a bug of infer")
}
