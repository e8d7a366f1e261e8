//! What an operator is given when it is made and when it runs.

use super::table::bug;
use crate::{
    error::invalid_input,
    raw::{Api, api::some},
};
use infer_core::Result;
use infer_sys::onnxruntime::{ONNXTensorElementDataType, OrtKernelContext, OrtKernelInfo, OrtValue};
use std::{
    borrow::Cow,
    ffi::{CStr, c_void},
    marker::PhantomData,
    panic::{AssertUnwindSafe, catch_unwind},
    ptr, slice,
    sync::{Mutex, PoisonError},
};

/// A node of a graph, for which a kernel is made.
pub(super) struct Node<'a> {
    api: Api,
    info: *const OrtKernelInfo,
    _call: PhantomData<&'a ()>,
}

impl Node<'_> {
    /// # Safety
    /// The description lives as long as this.
    pub(super) unsafe fn new(api: Api, info: *const OrtKernelInfo) -> Self {
        Self { api, info, _call: PhantomData }
    }

    /// The attribute of this name.
    pub(super) fn float(&self, name: &CStr) -> Result<f32> {
        let mut number = 0.0;
        // SAFETY: the node lives; a C string, a valid place.
        let status =
            unsafe { (self.api.table().KernelInfoGetAttribute_float)(self.info, name.as_ptr(), &raw mut number) };
        self.api.check("read an attribute", status)?;
        Ok(number)
    }

    /// The attribute of this name.
    pub(super) fn integer(&self, name: &CStr) -> Result<i64> {
        let mut number = 0;
        // SAFETY: as above.
        let status =
            unsafe { (self.api.table().KernelInfoGetAttribute_int64)(self.info, name.as_ptr(), &raw mut number) };
        self.api.check("read an attribute", status)?;
        Ok(number)
    }
}

/// One run of an operator.
pub(super) struct Context<'a> {
    api: Api,
    context: *mut OrtKernelContext,
    _call: PhantomData<&'a ()>,
}

/// An input.
pub(super) struct Tensor<'a> {
    pub(super) shape: Vec<usize>,
    pub(super) numbers: Cow<'a, [f32]>,
}

impl<'a> Context<'a> {
    /// # Safety
    /// The context lives as long as this, and is of an operator on the CPU with one output, of `f32`.
    pub(super) unsafe fn new(api: Api, context: *mut OrtKernelContext) -> Self {
        Self { api, context, _call: PhantomData }
    }

    /// The input with this number.
    pub(super) fn input(&self, index: usize) -> Result<Tensor<'a>> {
        let (table, mut value) = (self.api.table(), ptr::null());
        // SAFETY: the context lives; a valid place.
        let status = unsafe { (table.KernelContext_GetInput)(self.context, index, &raw mut value) };
        self.api.check("ask for an input", status)?;
        let value = some(value.cast_mut())?.as_ptr().cast_const();
        let (mut element, mut dims, mut rank) = (0_i32, ptr::null(), 0);
        // SAFETY: an input lives as long as the call; valid places, the first as large as the enumeration, which is `repr(i32)`.
        let status = unsafe {
            let element = (&raw mut element).cast();
            (table.GetTensorElementTypeAndShapeDataReference)(value, element, &raw mut dims, &raw mut rank)
        };
        self.api.check("ask for the shape of an input", status)?;
        if element != ONNXTensorElementDataType::ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT as i32 {
            return Err(invalid_input(format!("input {index} has elements of kind {element}, not float32")));
        }
        let dims: &[i64] = match rank {
            0 => &[],
            // SAFETY: the entry gives as many dimensions as it says, which live as long as the value and are copied now.
            _ => unsafe { slice::from_raw_parts(some(dims.cast_mut())?.as_ptr(), rank) },
        };
        let shape: Option<Vec<usize>> = dims.iter().map(|&size| usize::try_from(size).ok()).collect();
        let shape = shape.ok_or_else(|| invalid_input(format!("input {index} has the shape {dims:?}")))?;
        let len: usize = shape.iter().product();
        if len == 0 {
            return Ok(Tensor { shape, numbers: Cow::Borrowed(&[]) });
        }
        let mut data = ptr::null();
        // SAFETY: a tensor of numbers that lives, and a valid place.
        let status = unsafe { (table.GetTensorData)(value, &raw mut data) };
        self.api.check("ask for the memory of an input", status)?;
        let data = some(data.cast_mut())?.cast::<f32>();
        let numbers = if data.is_aligned() {
            // SAFETY: a tensor of `f32` on the CPU (the table asks for it) has as many as its shape says, one behind the other; they are aligned. They are there as
            // long as the call, and nobody writes to the inputs of an operator meanwhile: the output is looked at in `Output::write`.
            Cow::Borrowed(unsafe { slice::from_raw_parts(data.as_ptr().cast_const(), len) })
        } else {
            // Weights that the runtime maps lie as they do in their file.
            // SAFETY: as above, of bytes.
            let bytes =
                unsafe { slice::from_raw_parts(data.as_ptr().cast_const().cast::<u8>(), len * size_of::<f32>()) };
            Cow::Owned(bytes.as_chunks().0.iter().map(|&number| f32::from_ne_bytes(number)).collect())
        };
        Ok(Tensor { shape, numbers })
    }

    /// The output, of this shape; nothing is in it yet that counts.
    ///
    /// # Safety
    /// Asked for once.
    unsafe fn output(&self, shape: &[usize]) -> Result<*mut [f32]> {
        let dims: Vec<i64> = shape.iter().map(|&size| size as i64).collect();
        let (table, mut value) = (self.api.table(), ptr::null_mut::<OrtValue>());
        // SAFETY: the context lives; as many dimensions as is said, a valid place.
        let status =
            unsafe { (table.KernelContext_GetOutput)(self.context, 0, dims.as_ptr(), dims.len(), &raw mut value) };
        self.api.check("ask for the output", status)?;
        let len = shape.iter().product();
        if len == 0 {
            return Ok(ptr::slice_from_raw_parts_mut(ptr::NonNull::dangling().as_ptr(), 0));
        }
        let mut data = ptr::null_mut();
        // SAFETY: the output lives as long as the call; a valid place.
        let status = unsafe { (table.GetTensorMutableData)(some(value)?.as_ptr(), &raw mut data) };
        self.api.check("ask for the memory of the output", status)?;
        Ok(ptr::slice_from_raw_parts_mut(some(data)?.cast::<f32>().as_ptr(), len))
    }

    /// Runs `work` for each number below `total`, on the threads of the session.
    fn for_each<F: Fn(usize) + Sync>(&self, total: usize, work: &F) -> Result<()> {
        /// # Safety
        /// `work` is an `F` that lives.
        unsafe extern "C" fn call<F: Fn(usize)>(work: *mut c_void, number: usize) {
            // SAFETY: the caller's promise; it is shared between the threads, which `for_each` asks of `F`.
            let work = unsafe { &*work.cast::<F>().cast_const() };
            work(number);
        }
        let data = ptr::from_ref(work).cast_mut().cast();
        // SAFETY: the context lives; `call` is of the type of `work`, which lives until all is done, which this entry waits for. A `total` of batches of 0 leaves
        // their number to the runtime.
        let status = unsafe { (self.api.table().KernelContext_ParallelFor)(self.context, call::<F>, total, 0, data) };
        self.api.check("divide work among threads", status)
    }
}

/// Where an output goes.
pub(super) struct Output<'a> {
    context: &'a Context<'a>,
    inputs: &'a [Tensor<'a>],
}

/// So many numbers are work enough for a thread to be asked.
const BLOCK: usize = 16 * 1024;

impl<'a> Output<'a> {
    /// Of the same call as the inputs, which are all there are.
    pub(super) fn new(context: &'a Context<'a>, inputs: &'a [Tensor<'a>]) -> Self {
        Self { context, inputs }
    }

    /// Makes the output, of this shape. It is written by rows of so many numbers, in parts: each is given which row it begins with. Parts may be written on
    /// several threads at once.
    pub(super) fn write(self, shape: &[usize], row: usize, part: impl Fn(usize, &mut [f32]) + Sync) -> Result<()> {
        // SAFETY: `self` is used up.
        let y = unsafe { self.context.output(shape)? };
        if y.is_empty() {
            return Ok(());
        }
        // The runtime does this for operators that say they can, and these do not; a caller could have bound both to one place.
        if self.inputs.iter().any(|input| overlap(&*input.numbers, y)) {
            return Err(invalid_input("the output was to be written where an input is"));
        }
        // SAFETY: `f32` as many as its shape says, aligned, in memory that is this call's alone: no input's, as was just seen. What is in it is bytes, of which
        // any are numbers.
        let y = unsafe { &mut *y };
        let rows = (BLOCK / row.max(1)).max(1);
        if y.len() <= rows * row {
            part(0, y);
            return Ok(());
        }
        // A lock is nothing beside a part, and nobody has to be trusted to ask for each once.
        let parts: Vec<_> = y.chunks_mut(rows * row).map(Mutex::new).collect();
        let panicked = Mutex::new(false);
        self.context.for_each(parts.len(), &|number: usize| {
            let compute = || {
                let Some(y) = parts.get(number) else { return };
                part(number * rows, &mut y.lock().unwrap_or_else(PoisonError::into_inner));
            };
            // It is called by C.
            if catch_unwind(AssertUnwindSafe(compute)).is_err() {
                *panicked.lock().unwrap_or_else(PoisonError::into_inner) = true;
            }
        })?;
        if panicked.into_inner().unwrap_or(true) { Err(bug()) } else { Ok(()) }
    }
}

fn overlap(x: *const [f32], y: *const [f32]) -> bool {
    let end = |numbers: *const [f32]| numbers.addr() + numbers.len() * size_of::<f32>();
    !x.is_empty() && x.addr() < end(y) && y.addr() < end(x)
}
