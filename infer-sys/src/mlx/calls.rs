//! One method an entry of the table.

use std::ffi::{c_char, c_void};

use super::Api;
use super::bindings::*;
use crate::door::entries;

entries! {
    "mlx_door.h", infer_mlx_table from last_error;

    /// Why the last entry of this thread failed.
    fn last_error() -> *const c_char;

    /// What is not freed yet, and what was counted.
    fn live(out: *mut infer_mlx_live);

    /// Devices of a type.
    fn device_count(kind: i32, out: *mut i32) -> i32;

    /// One device.
    fn device_info(kind: i32, index: i32, out: *mut infer_mlx_device) -> i32;

    /// Memory of arrays and of the cache.
    fn memory(out: *mut infer_mlx_memory) -> i32;

    /// Begins to look for the peak anew.
    fn reset_peak_memory() -> i32;

    /// How much freed memory is kept.
    fn set_cache_limit(bytes: u64, previous: *mut u64) -> i32;

    /// Gives freed memory back to the system.
    fn clear_cache() -> i32;

    /// What MLX keeps to while it evaluates.
    fn set_memory_limit(bytes: u64, previous: *mut u64) -> i32;

    /// How much memory the system may not page out.
    fn set_wired_limit(bytes: u64, previous: *mut u64) -> i32;

    /// A stream of this thread.
    fn stream_new(kind: i32, index: i32, out: *mut *mut infer_mlx_stream) -> i32;

    /// Gives a stream back.
    fn stream_free(stream: *mut infer_mlx_stream);

    /// Waits for everything on a stream.
    fn synchronize(stream: *const infer_mlx_stream) -> i32;

    /// Frees many handles at once.
    fn arrays_free(arrays: *const *mut infer_mlx_array, count: usize);

    /// A second handle to an array.
    fn array_share(out: *mut *mut infer_mlx_array, a: *const infer_mlx_array) -> i32;

    /// An array with a copy of the caller's values.
    fn array_copy_from(out: *mut *mut infer_mlx_array, data: *const c_void, bytes: usize, shape: *const i32, ndim: usize, dtype: i32) -> i32;

    /// An array whose memory the caller is to write.
    fn array_uninit(out: *mut *mut infer_mlx_array, data: *mut *mut c_void, bytes: *mut usize, shape: *const i32, ndim: usize, dtype: i32) -> i32;

    /// An array over the caller's memory.
    fn array_over(out: *mut *mut infer_mlx_array, data: *mut c_void, bytes: usize, shape: *const i32, ndim: usize, dtype: i32, deleter: infer_mlx_deleter, context: *mut c_void) -> i32;

    /// Type, shape and state of an array.
    fn array_info(a: *const infer_mlx_array, out: *mut infer_mlx_array_info) -> i32;

    /// The values of an evaluated array.
    fn array_data(a: *const infer_mlx_array, data: *mut *const c_void, bytes: *mut usize) -> i32;

    /// The one value of an evaluated array.
    fn array_item(a: *const infer_mlx_array, out: *mut c_void, bytes: usize) -> i32;

    /// Computes arrays.
    fn eval(arrays: *const *const infer_mlx_array, count: usize) -> i32;

    /// Begins to compute arrays.
    fn async_eval(arrays: *const *const infer_mlx_array, count: usize) -> i32;

    /// An array of one value.
    fn full(out: *mut *mut infer_mlx_array, shape: *const i32, ndim: usize, value: f64, dtype: i32, stream: *const infer_mlx_stream) -> i32;

    /// A range of numbers.
    fn arange(out: *mut *mut infer_mlx_array, start: f64, stop: f64, step: f64, dtype: i32, stream: *const infer_mlx_stream) -> i32;

    /// An elementwise operation on one array.
    fn unary(out: *mut *mut infer_mlx_array, op: u32, a: *const infer_mlx_array, stream: *const infer_mlx_stream) -> i32;

    /// An operation on two arrays.
    fn binary(out: *mut *mut infer_mlx_array, op: u32, a: *const infer_mlx_array, b: *const infer_mlx_array, stream: *const infer_mlx_stream) -> i32;

    /// An operation on an array and a number.
    fn binary_scalar(out: *mut *mut infer_mlx_array, op: u32, a: *const infer_mlx_array, b: f64, reversed: bool, stream: *const infer_mlx_stream) -> i32;

    /// Of two arrays, by a third.
    fn select(out: *mut *mut infer_mlx_array, condition: *const infer_mlx_array, a: *const infer_mlx_array, b: *const infer_mlx_array, stream: *const infer_mlx_stream) -> i32;

    /// Values held between bounds.
    fn clip(out: *mut *mut infer_mlx_array, a: *const infer_mlx_array, low: *const infer_mlx_array, high: *const infer_mlx_array, stream: *const infer_mlx_stream) -> i32;

    /// Another type.
    fn astype(out: *mut *mut infer_mlx_array, a: *const infer_mlx_array, dtype: i32, stream: *const infer_mlx_stream) -> i32;

    /// The same bits as another type.
    fn view(out: *mut *mut infer_mlx_array, a: *const infer_mlx_array, dtype: i32, stream: *const infer_mlx_stream) -> i32;

    /// Another shape.
    fn reshape(out: *mut *mut infer_mlx_array, a: *const infer_mlx_array, shape: *const i32, ndim: usize, stream: *const infer_mlx_stream) -> i32;

    /// Repeated, without a copy, to a shape.
    fn broadcast_to(out: *mut *mut infer_mlx_array, a: *const infer_mlx_array, shape: *const i32, ndim: usize, stream: *const infer_mlx_stream) -> i32;

    /// Axes in another order.
    fn transpose(out: *mut *mut infer_mlx_array, a: *const infer_mlx_array, axes: *const i32, count: usize, stream: *const infer_mlx_stream) -> i32;

    /// More axes, of length 1.
    fn expand_dims(out: *mut *mut infer_mlx_array, a: *const infer_mlx_array, axes: *const i32, count: usize, stream: *const infer_mlx_stream) -> i32;

    /// Fewer axes, of length 1.
    fn squeeze(out: *mut *mut infer_mlx_array, a: *const infer_mlx_array, axes: *const i32, count: usize, stream: *const infer_mlx_stream) -> i32;

    /// Row by row in memory.
    fn contiguous(out: *mut *mut infer_mlx_array, a: *const infer_mlx_array, stream: *const infer_mlx_stream) -> i32;

    /// A part.
    fn slice(out: *mut *mut infer_mlx_array, a: *const infer_mlx_array, start: *const i32, stop: *const i32, step: *const i32, ndim: usize, stream: *const infer_mlx_stream) -> i32;

    /// With a part replaced.
    fn slice_update(out: *mut *mut infer_mlx_array, a: *const infer_mlx_array, update: *const infer_mlx_array, start: *const i32, stop: *const i32, step: *const i32, ndim: usize, stream: *const infer_mlx_stream) -> i32;

    /// Along an axis that there is.
    fn concatenate(out: *mut *mut infer_mlx_array, arrays: *const *const infer_mlx_array, count: usize, axis: i32, stream: *const infer_mlx_stream) -> i32;

    /// Along a new axis.
    fn stack(out: *mut *mut infer_mlx_array, arrays: *const *const infer_mlx_array, count: usize, axis: i32, stream: *const infer_mlx_stream) -> i32;

    /// Parts along an axis.
    fn split(outs: *mut *mut infer_mlx_array, a: *const infer_mlx_array, indices: *const i32, count: usize, axis: i32, stream: *const infer_mlx_stream) -> i32;

    /// Each element several times.
    fn repeat(out: *mut *mut infer_mlx_array, a: *const infer_mlx_array, times: i32, axis: i32, stream: *const infer_mlx_stream) -> i32;

    /// The lower triangle.
    fn tril(out: *mut *mut infer_mlx_array, a: *const infer_mlx_array, k: i32, stream: *const infer_mlx_stream) -> i32;

    /// The upper triangle.
    fn triu(out: *mut *mut infer_mlx_array, a: *const infer_mlx_array, k: i32, stream: *const infer_mlx_stream) -> i32;

    /// Rows by index.
    fn take(out: *mut *mut infer_mlx_array, a: *const infer_mlx_array, indices: *const infer_mlx_array, axis: i32, stream: *const infer_mlx_stream) -> i32;

    /// Elements by index.
    fn take_along_axis(out: *mut *mut infer_mlx_array, a: *const infer_mlx_array, indices: *const infer_mlx_array, axis: i32, stream: *const infer_mlx_stream) -> i32;

    /// With elements replaced by index.
    fn put_along_axis(out: *mut *mut infer_mlx_array, a: *const infer_mlx_array, indices: *const infer_mlx_array, values: *const infer_mlx_array, axis: i32, stream: *const infer_mlx_stream) -> i32;

    /// To one value along an axis.
    fn reduce(out: *mut *mut infer_mlx_array, op: u32, a: *const infer_mlx_array, axis: i32, keepdims: bool, stream: *const infer_mlx_stream) -> i32;

    /// Running values along an axis.
    fn scan(out: *mut *mut infer_mlx_array, op: u32, a: *const infer_mlx_array, axis: i32, reverse: bool, inclusive: bool, stream: *const infer_mlx_stream) -> i32;

    /// Softmax along an axis.
    fn softmax(out: *mut *mut infer_mlx_array, a: *const infer_mlx_array, axis: i32, precise: bool, stream: *const infer_mlx_stream) -> i32;

    /// Sorted along an axis.
    fn sort(out: *mut *mut infer_mlx_array, a: *const infer_mlx_array, axis: i32, stream: *const infer_mlx_stream) -> i32;

    /// The order along an axis.
    fn argsort(out: *mut *mut infer_mlx_array, a: *const infer_mlx_array, axis: i32, stream: *const infer_mlx_stream) -> i32;

    /// The order along an axis as far as one position.
    fn argpartition(out: *mut *mut infer_mlx_array, a: *const infer_mlx_array, kth: i32, axis: i32, stream: *const infer_mlx_stream) -> i32;

    /// The largest along an axis.
    fn topk(out: *mut *mut infer_mlx_array, a: *const infer_mlx_array, k: i32, axis: i32, stream: *const infer_mlx_stream) -> i32;

    /// A product of matrices, added to an array.
    fn addmm(out: *mut *mut infer_mlx_array, c: *const infer_mlx_array, a: *const infer_mlx_array, b: *const infer_mlx_array, alpha: f32, beta: f32, stream: *const infer_mlx_stream) -> i32;

    /// A product with a quantised matrix.
    fn quantized_matmul(out: *mut *mut infer_mlx_array, x: *const infer_mlx_array, w: *const infer_mlx_array, scales: *const infer_mlx_array, biases: *const infer_mlx_array, transpose: bool, group_size: i32, bits: i32, stream: *const infer_mlx_stream) -> i32;

    /// A quantised matrix as numbers.
    fn dequantize(out: *mut *mut infer_mlx_array, w: *const infer_mlx_array, scales: *const infer_mlx_array, biases: *const infer_mlx_array, group_size: i32, bits: i32, stream: *const infer_mlx_stream) -> i32;

    /// A matrix quantised.
    fn quantize(outs: *mut *mut infer_mlx_array, w: *const infer_mlx_array, group_size: i32, bits: i32, stream: *const infer_mlx_stream) -> i32;

    /// Root-mean-square norm of the last axis.
    fn rms_norm(out: *mut *mut infer_mlx_array, x: *const infer_mlx_array, weight: *const infer_mlx_array, eps: f32, stream: *const infer_mlx_stream) -> i32;

    /// Layer norm of the last axis.
    fn layer_norm(out: *mut *mut infer_mlx_array, x: *const infer_mlx_array, weight: *const infer_mlx_array, bias: *const infer_mlx_array, eps: f32, stream: *const infer_mlx_stream) -> i32;

    /// Rotary position embedding.
    fn rope(out: *mut *mut infer_mlx_array, x: *const infer_mlx_array, dims: i32, traditional: bool, base: f32, scale: f32, offset: i32, freqs: *const infer_mlx_array, stream: *const infer_mlx_stream) -> i32;

    /// Rotary position embedding, each of the batch at an offset of its own.
    fn rope_at(out: *mut *mut infer_mlx_array, x: *const infer_mlx_array, dims: i32, traditional: bool, base: f32, scale: f32, offsets: *const infer_mlx_array, freqs: *const infer_mlx_array, stream: *const infer_mlx_stream) -> i32;

    /// Scaled dot-product attention.
    fn attention(out: *mut *mut infer_mlx_array, q: *const infer_mlx_array, k: *const infer_mlx_array, v: *const infer_mlx_array, scale: f32, mask: u32, mask_array: *const infer_mlx_array, stream: *const infer_mlx_stream) -> i32;

    /// New rows in a KV cache.
    fn kv_write(out: *mut *mut infer_mlx_array, buffer: *const infer_mlx_array, rows: *const infer_mlx_array, axis: i32, offset: i32, stream: *const infer_mlx_stream) -> i32;
}
