//! The door by hand: as little as a test needs to make arrays, compute and look.

use std::cell::RefCell;
use std::ffi::{CStr, c_void};
use std::ptr;
use std::rc::Rc;
use std::sync::OnceLock;

use infer_sys::LoadOptions;
use infer_sys::mlx::Api;
use infer_sys::mlx::bindings::*;

/// A status that is not OK, with its message.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Failure {
    pub(crate) status: i32,
    pub(crate) message: String,
}

/// The door in the cache.
pub(crate) fn api() -> Api {
    static API: OnceLock<Api> = OnceLock::new();
    *API.get_or_init(|| Api::load(&LoadOptions::new()).unwrap_or_else(|error| panic!("{error}")))
}

/// Turns a status into a result.
pub(crate) fn check(status: i32) -> Result<(), Failure> {
    if status == INFER_MLX_OK {
        return Ok(());
    }
    // SAFETY: no precondition; the text is read before anything else fails on this thread.
    let message = unsafe { api().last_error() };
    // SAFETY: never NULL, and ends with NUL.
    let message = unsafe { CStr::from_ptr(message) };
    Err(Failure { status, message: message.to_str().expect("messages are cut between characters").to_owned() })
}

/// What is not freed, in the whole process.
pub(crate) fn live() -> infer_mlx_live {
    let mut live = infer_mlx_live::default();
    // SAFETY: the place is there.
    unsafe { api().live(&raw mut live) };
    live
}

/// A stream of this thread, and the operations that tests use, on it.
#[derive(Clone)]
pub(crate) struct Stream(Rc<Owner>);

struct Owner(*mut infer_mlx_stream);

impl Drop for Owner {
    fn drop(&mut self) {
        // SAFETY: it is a stream of the table, freed once.
        unsafe { api().stream_free(self.0) };
    }
}

/// A handle that is freed with this.
pub(crate) struct Array(pub(crate) *mut infer_mlx_array);

impl Drop for Array {
    fn drop(&mut self) {
        // SAFETY: one handle of the table, freed once.
        unsafe { api().arrays_free(&raw const self.0, 1) };
    }
}

/// Calls an entry whose first argument is the place for its result.
pub(crate) fn made(call: impl FnOnce(*mut *mut infer_mlx_array) -> i32) -> Result<Array, Failure> {
    let mut raw = ptr::null_mut();
    check(call(&raw mut raw)).map(|()| Array(raw))
}

pub(crate) fn f32s(values: &[f32], shape: &[i32]) -> Array {
    from(values, shape, INFER_MLX_F32)
}

pub(crate) fn i32s(values: &[i32], shape: &[i32]) -> Array {
    from(values, shape, INFER_MLX_I32)
}

pub(crate) fn from<T: Copy>(values: &[T], shape: &[i32], dtype: infer_mlx_dtype) -> Array {
    let (data, bytes) = (values.as_ptr().cast::<c_void>(), size_of_val(values));
    // SAFETY: the values and the shape are there, with these lengths.
    made(|out| unsafe { api().array_copy_from(out, data, bytes, shape.as_ptr(), shape.len(), dtype as i32) }).unwrap()
}

impl Stream {
    pub(crate) fn new() -> Self {
        let mut raw = ptr::null_mut();
        // SAFETY: the place is there.
        check(unsafe { api().stream_new(INFER_MLX_CPU as i32, 0, &raw mut raw) }).unwrap();
        Self(Rc::new(Owner(raw)))
    }

    pub(crate) fn raw(&self) -> *const infer_mlx_stream {
        self.0.0
    }

    pub(crate) fn unary(&self, op: infer_mlx_unary, a: &Array) -> Result<Array, Failure> {
        // SAFETY: handles that are not freed.
        made(|out| unsafe { api().unary(out, op, a.0, self.raw()) })
    }

    pub(crate) fn binary(&self, op: infer_mlx_binary, a: &Array, b: &Array) -> Result<Array, Failure> {
        // SAFETY: handles that are not freed.
        made(|out| unsafe { api().binary(out, op, a.0, b.0, self.raw()) })
    }

    pub(crate) fn reduce(&self, op: infer_mlx_reduction, a: &Array, axis: i32) -> Result<Array, Failure> {
        // SAFETY: a handle that is not freed.
        made(|out| unsafe { api().reduce(out, op, a.0, axis, false, self.raw()) })
    }

    pub(crate) fn take(&self, a: &Array, indices: &Array, axis: i32) -> Result<Array, Failure> {
        // SAFETY: handles that are not freed.
        made(|out| unsafe { api().take(out, a.0, indices.0, axis, self.raw()) })
    }

    pub(crate) fn transpose(&self, a: &Array, axes: &[i32]) -> Result<Array, Failure> {
        // SAFETY: a handle that is not freed, and axes that are there.
        made(|out| unsafe { api().transpose(out, a.0, axes.as_ptr(), axes.len(), self.raw()) })
    }

    pub(crate) fn full(&self, shape: &[i32], value: f64, dtype: infer_mlx_dtype) -> Result<Array, Failure> {
        // SAFETY: the shape is there.
        made(|out| unsafe { api().full(out, shape.as_ptr(), shape.len(), value, dtype as i32, self.raw()) })
    }

    pub(crate) fn kv_write(&self, buffer: &Array, rows: &Array, axis: i32, offset: i32) -> Result<Array, Failure> {
        // SAFETY: handles that are not freed.
        made(|out| unsafe { api().kv_write(out, buffer.0, rows.0, axis, offset, self.raw()) })
    }

    /// The values of an array in 32-bit floats, whatever its type and how it lies in memory.
    pub(crate) fn values(&self, a: &Array) -> Result<Vec<f32>, Failure> {
        // SAFETY: a handle that is not freed.
        let a = made(|out| unsafe { api().astype(out, a.0, INFER_MLX_F32 as i32, self.raw()) })?;
        // SAFETY: as above.
        let a = made(|out| unsafe { api().contiguous(out, a.0, self.raw()) })?;
        eval(&[&a])?;
        data::<f32>(&a)
    }
}

pub(crate) fn eval(arrays: &[&Array]) -> Result<(), Failure> {
    let raw: Vec<*const infer_mlx_array> = arrays.iter().map(|array| array.0.cast_const()).collect();
    // SAFETY: handles that are not freed.
    check(unsafe { api().eval(raw.as_ptr(), raw.len()) })
}

pub(crate) fn async_eval(arrays: &[&Array]) -> Result<(), Failure> {
    let raw: Vec<*const infer_mlx_array> = arrays.iter().map(|array| array.0.cast_const()).collect();
    // SAFETY: handles that are not freed.
    check(unsafe { api().async_eval(raw.as_ptr(), raw.len()) })
}

/// A copy of the values, as the type that the test knows it to have.
pub(crate) fn data<T: Copy>(a: &Array) -> Result<Vec<T>, Failure> {
    let (mut place, mut bytes) = (ptr::null(), 0);
    // SAFETY: a handle that is not freed, and places that are there.
    check(unsafe { api().array_data(a.0, &raw mut place, &raw mut bytes) })?;
    if bytes == 0 {
        return Ok(Vec::new());
    }
    // SAFETY: so many bytes are there for as long as the handle, aligned by MLX's allocator; every bit pattern of `T` (numbers) is a value.
    let values = unsafe { std::slice::from_raw_parts(place.cast::<T>(), bytes / size_of::<T>()) };
    Ok(values.to_vec())
}

/// Where the values lie.
pub(crate) fn place(a: &Array) -> usize {
    let (mut place, mut bytes) = (ptr::null(), 0);
    // SAFETY: a handle that is not freed, and places that are there.
    check(unsafe { api().array_data(a.0, &raw mut place, &raw mut bytes) }).unwrap();
    place.addr()
}

pub(crate) fn info(a: &Array) -> Result<infer_mlx_array_info, Failure> {
    let mut info = infer_mlx_array_info::default();
    // SAFETY: a handle that is not freed, and a place that is there.
    check(unsafe { api().array_info(a.0, &raw mut info) }).map(|()| info)
}

pub(crate) fn shape(a: &Array) -> Vec<i32> {
    let info = info(a).unwrap();
    if info.shape.is_null() {
        return Vec::new();
    }
    // SAFETY: the header has it live as long as the handle, with `ndim` numbers.
    unsafe { std::slice::from_raw_parts(info.shape, info.ndim as usize) }.to_vec()
}

/// Sent to another thread, for what the door has to say to it.
pub(crate) struct Carried<T>(pub(crate) T);

// SAFETY: the door looks at the thread of every handle itself: that is what the tests are about.
unsafe impl<T> Send for Carried<T> {}

impl<T> Carried<T> {
    pub(crate) fn into_inner(self) -> T {
        self.0
    }
}

thread_local! {
    static LEFT: RefCell<Vec<Array>> = const { RefCell::new(Vec::new()) };
}

/// Keeps an array until the thread's own objects are destroyed.
pub(crate) fn leave_to_the_thread(array: Array) {
    LEFT.with(|left| left.borrow_mut().push(array));
}
