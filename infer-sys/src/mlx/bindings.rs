// Made from build-support/shim/mlx_door.h by `cargo xtask bindings`. Not edited by hand.

pub const INFER_MLX_DOOR_VERSION: u32 = 1;
pub const INFER_MLX_OK: infer_mlx_status = 0;
pub const INFER_MLX_EXCEPTION: infer_mlx_status = -1;
pub const INFER_MLX_MEMORY: infer_mlx_status = -2;
pub const INFER_MLX_UNKNOWN: infer_mlx_status = -3;
pub const INFER_MLX_ARGUMENT: infer_mlx_status = -4;
pub const INFER_MLX_THREAD: infer_mlx_status = -5;
pub const INFER_MLX_UNEVALUATED: infer_mlx_status = -6;
pub const INFER_MLX_UNSUPPORTED: infer_mlx_status = -7;
pub const INFER_MLX_ENDING: infer_mlx_status = -8;
pub type infer_mlx_status = ::core::ffi::c_int;
pub const INFER_MLX_BOOL: infer_mlx_dtype = 0;
pub const INFER_MLX_U8: infer_mlx_dtype = 1;
pub const INFER_MLX_U16: infer_mlx_dtype = 2;
pub const INFER_MLX_U32: infer_mlx_dtype = 3;
pub const INFER_MLX_U64: infer_mlx_dtype = 4;
pub const INFER_MLX_I8: infer_mlx_dtype = 5;
pub const INFER_MLX_I16: infer_mlx_dtype = 6;
pub const INFER_MLX_I32: infer_mlx_dtype = 7;
pub const INFER_MLX_I64: infer_mlx_dtype = 8;
pub const INFER_MLX_F16: infer_mlx_dtype = 9;
pub const INFER_MLX_F32: infer_mlx_dtype = 10;
pub const INFER_MLX_F64: infer_mlx_dtype = 11;
pub const INFER_MLX_BF16: infer_mlx_dtype = 12;
pub const INFER_MLX_C64: infer_mlx_dtype = 13;
pub type infer_mlx_dtype = ::core::ffi::c_uint;
pub const INFER_MLX_CPU: infer_mlx_device_type = 0;
pub const INFER_MLX_GPU: infer_mlx_device_type = 1;
pub type infer_mlx_device_type = ::core::ffi::c_uint;
pub const INFER_MLX_ABS: infer_mlx_unary = 0;
pub const INFER_MLX_NEGATIVE: infer_mlx_unary = 1;
pub const INFER_MLX_EXP: infer_mlx_unary = 2;
pub const INFER_MLX_LOG: infer_mlx_unary = 3;
pub const INFER_MLX_LOG1P: infer_mlx_unary = 4;
pub const INFER_MLX_SQRT: infer_mlx_unary = 5;
pub const INFER_MLX_RSQRT: infer_mlx_unary = 6;
pub const INFER_MLX_SQUARE: infer_mlx_unary = 7;
pub const INFER_MLX_RECIPROCAL: infer_mlx_unary = 8;
pub const INFER_MLX_SIN: infer_mlx_unary = 9;
pub const INFER_MLX_COS: infer_mlx_unary = 10;
pub const INFER_MLX_TANH: infer_mlx_unary = 11;
pub const INFER_MLX_SIGMOID: infer_mlx_unary = 12;
pub const INFER_MLX_ERF: infer_mlx_unary = 13;
pub const INFER_MLX_FLOOR: infer_mlx_unary = 14;
pub const INFER_MLX_CEIL: infer_mlx_unary = 15;
pub const INFER_MLX_SIGN: infer_mlx_unary = 16;
pub const INFER_MLX_LOGICAL_NOT: infer_mlx_unary = 17;
pub const INFER_MLX_ISNAN: infer_mlx_unary = 18;
pub const INFER_MLX_ISFINITE: infer_mlx_unary = 19;
pub const INFER_MLX_STOP_GRADIENT: infer_mlx_unary = 20;
pub const INFER_MLX_COPY: infer_mlx_unary = 21;
pub const INFER_MLX_SILU: infer_mlx_unary = 22;
pub const INFER_MLX_GELU: infer_mlx_unary = 23;
pub const INFER_MLX_GELU_TANH: infer_mlx_unary = 24;
pub const INFER_MLX_UNARY_COUNT: infer_mlx_unary = 25;
pub type infer_mlx_unary = ::core::ffi::c_uint;
pub const INFER_MLX_ADD: infer_mlx_binary = 0;
pub const INFER_MLX_SUBTRACT: infer_mlx_binary = 1;
pub const INFER_MLX_MULTIPLY: infer_mlx_binary = 2;
pub const INFER_MLX_DIVIDE: infer_mlx_binary = 3;
pub const INFER_MLX_FLOOR_DIVIDE: infer_mlx_binary = 4;
pub const INFER_MLX_REMAINDER: infer_mlx_binary = 5;
pub const INFER_MLX_POWER: infer_mlx_binary = 6;
pub const INFER_MLX_MAXIMUM: infer_mlx_binary = 7;
pub const INFER_MLX_MINIMUM: infer_mlx_binary = 8;
pub const INFER_MLX_LOGADDEXP: infer_mlx_binary = 9;
pub const INFER_MLX_EQUAL: infer_mlx_binary = 10;
pub const INFER_MLX_NOT_EQUAL: infer_mlx_binary = 11;
pub const INFER_MLX_LESS: infer_mlx_binary = 12;
pub const INFER_MLX_LESS_EQUAL: infer_mlx_binary = 13;
pub const INFER_MLX_GREATER: infer_mlx_binary = 14;
pub const INFER_MLX_GREATER_EQUAL: infer_mlx_binary = 15;
pub const INFER_MLX_LOGICAL_AND: infer_mlx_binary = 16;
pub const INFER_MLX_LOGICAL_OR: infer_mlx_binary = 17;
pub const INFER_MLX_BITWISE_AND: infer_mlx_binary = 18;
pub const INFER_MLX_BITWISE_OR: infer_mlx_binary = 19;
pub const INFER_MLX_BITWISE_XOR: infer_mlx_binary = 20;
pub const INFER_MLX_LEFT_SHIFT: infer_mlx_binary = 21;
pub const INFER_MLX_RIGHT_SHIFT: infer_mlx_binary = 22;
pub const INFER_MLX_MATMUL: infer_mlx_binary = 23;
pub const INFER_MLX_BINARY_COUNT: infer_mlx_binary = 24;
pub type infer_mlx_binary = ::core::ffi::c_uint;
pub const INFER_MLX_SUM: infer_mlx_reduction = 0;
pub const INFER_MLX_MEAN: infer_mlx_reduction = 1;
pub const INFER_MLX_MAX: infer_mlx_reduction = 2;
pub const INFER_MLX_MIN: infer_mlx_reduction = 3;
pub const INFER_MLX_PROD: infer_mlx_reduction = 4;
pub const INFER_MLX_ALL: infer_mlx_reduction = 5;
pub const INFER_MLX_ANY: infer_mlx_reduction = 6;
pub const INFER_MLX_LOGSUMEXP: infer_mlx_reduction = 7;
pub const INFER_MLX_ARGMAX: infer_mlx_reduction = 8;
pub const INFER_MLX_ARGMIN: infer_mlx_reduction = 9;
pub const INFER_MLX_REDUCTION_COUNT: infer_mlx_reduction = 10;
pub type infer_mlx_reduction = ::core::ffi::c_uint;
pub const INFER_MLX_CUMSUM: infer_mlx_scan = 0;
pub const INFER_MLX_CUMPROD: infer_mlx_scan = 1;
pub const INFER_MLX_CUMMAX: infer_mlx_scan = 2;
pub const INFER_MLX_CUMMIN: infer_mlx_scan = 3;
pub const INFER_MLX_LOGCUMSUMEXP: infer_mlx_scan = 4;
pub const INFER_MLX_SCAN_COUNT: infer_mlx_scan = 5;
pub type infer_mlx_scan = ::core::ffi::c_uint;
pub const INFER_MLX_MASK_NONE: infer_mlx_mask = 0;
pub const INFER_MLX_MASK_CAUSAL: infer_mlx_mask = 1;
pub const INFER_MLX_MASK_ARRAY: infer_mlx_mask = 2;
pub type infer_mlx_mask = ::core::ffi::c_uint;
#[repr(C)]
#[derive(Debug)]
pub struct infer_mlx_array {
    _unused: [u8; 0],
}
#[repr(C)]
#[derive(Debug)]
pub struct infer_mlx_stream {
    _unused: [u8; 0],
}
#[repr(C)]
#[derive(Debug, Copy, Clone)]
pub struct infer_mlx_device {
    pub type_: i32,
    pub index: i32,
    pub available: bool,
    pub name: [::core::ffi::c_char; 128usize],
    pub architecture: [::core::ffi::c_char; 64usize],
    pub memory_total: u64,
}
impl Default for infer_mlx_device {
    fn default() -> Self {
        let mut s = ::core::mem::MaybeUninit::<Self>::uninit();
        unsafe {
            ::core::ptr::write_bytes(s.as_mut_ptr(), 0, 1);
            s.assume_init()
        }
    }
}
#[repr(C)]
#[derive(Debug, Copy, Clone)]
pub struct infer_mlx_array_info {
    pub dtype: i32,
    pub ndim: u32,
    pub shape: *const i32,
    pub size: u64,
    pub bytes: u64,
    pub evaluated: bool,
    pub row_contiguous: bool,
}
impl Default for infer_mlx_array_info {
    fn default() -> Self {
        let mut s = ::core::mem::MaybeUninit::<Self>::uninit();
        unsafe {
            ::core::ptr::write_bytes(s.as_mut_ptr(), 0, 1);
            s.assume_init()
        }
    }
}
#[repr(C)]
#[derive(Debug, Default, Copy, Clone)]
pub struct infer_mlx_memory {
    pub active: u64,
    pub peak: u64,
    pub cache: u64,
    pub limit: u64,
}
#[repr(C)]
#[derive(Debug, Default, Copy, Clone)]
pub struct infer_mlx_live {
    pub arrays: u64,
    pub streams: u64,
    pub buffers: u64,
    pub evals: u64,
}
pub type infer_mlx_deleter = ::core::option::Option<unsafe extern "C" fn(context: *mut ::core::ffi::c_void)>;
#[repr(C)]
#[derive(Debug, Copy, Clone)]
pub struct infer_mlx_table {
    pub size: u32,
    pub version: u32,
    pub mlx_version: *const ::core::ffi::c_char,
    pub mlx_pinned: *const ::core::ffi::c_char,
    pub mlx_c_version: *const ::core::ffi::c_char,
    pub variant: *const ::core::ffi::c_char,
    pub sizeof_device: u32,
    pub sizeof_array_info: u32,
    pub sizeof_memory: u32,
    pub sizeof_live: u32,
    pub last_error: ::core::option::Option<unsafe extern "C" fn() -> *const ::core::ffi::c_char>,
    pub live: ::core::option::Option<unsafe extern "C" fn(out: *mut infer_mlx_live)>,
    pub device_count: ::core::option::Option<unsafe extern "C" fn(type_: i32, out: *mut i32) -> i32>,
    pub device_info:
        ::core::option::Option<unsafe extern "C" fn(type_: i32, index: i32, out: *mut infer_mlx_device) -> i32>,
    pub memory: ::core::option::Option<unsafe extern "C" fn(out: *mut infer_mlx_memory) -> i32>,
    pub reset_peak_memory: ::core::option::Option<unsafe extern "C" fn() -> i32>,
    pub set_cache_limit: ::core::option::Option<unsafe extern "C" fn(bytes: u64, previous: *mut u64) -> i32>,
    pub clear_cache: ::core::option::Option<unsafe extern "C" fn() -> i32>,
    pub set_memory_limit: ::core::option::Option<unsafe extern "C" fn(bytes: u64, previous: *mut u64) -> i32>,
    pub set_wired_limit: ::core::option::Option<unsafe extern "C" fn(bytes: u64, previous: *mut u64) -> i32>,
    pub stream_new:
        ::core::option::Option<unsafe extern "C" fn(type_: i32, index: i32, out: *mut *mut infer_mlx_stream) -> i32>,
    pub stream_free: ::core::option::Option<unsafe extern "C" fn(stream: *mut infer_mlx_stream)>,
    pub synchronize: ::core::option::Option<unsafe extern "C" fn(stream: *const infer_mlx_stream) -> i32>,
    pub arrays_free: ::core::option::Option<unsafe extern "C" fn(arrays: *const *mut infer_mlx_array, count: usize)>,
    pub array_share:
        ::core::option::Option<unsafe extern "C" fn(out: *mut *mut infer_mlx_array, a: *const infer_mlx_array) -> i32>,
    pub array_copy_from: ::core::option::Option<
        unsafe extern "C" fn(
            out: *mut *mut infer_mlx_array,
            data: *const ::core::ffi::c_void,
            bytes: usize,
            shape: *const i32,
            ndim: usize,
            dtype: i32,
        ) -> i32,
    >,
    pub array_uninit: ::core::option::Option<
        unsafe extern "C" fn(
            out: *mut *mut infer_mlx_array,
            data: *mut *mut ::core::ffi::c_void,
            bytes: *mut usize,
            shape: *const i32,
            ndim: usize,
            dtype: i32,
        ) -> i32,
    >,
    pub array_over: ::core::option::Option<
        unsafe extern "C" fn(
            out: *mut *mut infer_mlx_array,
            data: *mut ::core::ffi::c_void,
            bytes: usize,
            shape: *const i32,
            ndim: usize,
            dtype: i32,
            deleter: infer_mlx_deleter,
            context: *mut ::core::ffi::c_void,
        ) -> i32,
    >,
    pub array_info:
        ::core::option::Option<unsafe extern "C" fn(a: *const infer_mlx_array, out: *mut infer_mlx_array_info) -> i32>,
    pub array_data: ::core::option::Option<
        unsafe extern "C" fn(
            a: *const infer_mlx_array,
            data: *mut *const ::core::ffi::c_void,
            bytes: *mut usize,
        ) -> i32,
    >,
    pub array_item: ::core::option::Option<
        unsafe extern "C" fn(a: *const infer_mlx_array, out: *mut ::core::ffi::c_void, bytes: usize) -> i32,
    >,
    pub eval: ::core::option::Option<unsafe extern "C" fn(arrays: *const *const infer_mlx_array, count: usize) -> i32>,
    pub async_eval:
        ::core::option::Option<unsafe extern "C" fn(arrays: *const *const infer_mlx_array, count: usize) -> i32>,
    pub full: ::core::option::Option<
        unsafe extern "C" fn(
            out: *mut *mut infer_mlx_array,
            shape: *const i32,
            ndim: usize,
            value: f64,
            dtype: i32,
            stream: *const infer_mlx_stream,
        ) -> i32,
    >,
    pub arange: ::core::option::Option<
        unsafe extern "C" fn(
            out: *mut *mut infer_mlx_array,
            start: f64,
            stop: f64,
            step: f64,
            dtype: i32,
            stream: *const infer_mlx_stream,
        ) -> i32,
    >,
    pub unary: ::core::option::Option<
        unsafe extern "C" fn(
            out: *mut *mut infer_mlx_array,
            op: u32,
            a: *const infer_mlx_array,
            stream: *const infer_mlx_stream,
        ) -> i32,
    >,
    pub binary: ::core::option::Option<
        unsafe extern "C" fn(
            out: *mut *mut infer_mlx_array,
            op: u32,
            a: *const infer_mlx_array,
            b: *const infer_mlx_array,
            stream: *const infer_mlx_stream,
        ) -> i32,
    >,
    pub binary_scalar: ::core::option::Option<
        unsafe extern "C" fn(
            out: *mut *mut infer_mlx_array,
            op: u32,
            a: *const infer_mlx_array,
            b: f64,
            reversed: bool,
            stream: *const infer_mlx_stream,
        ) -> i32,
    >,
    pub select: ::core::option::Option<
        unsafe extern "C" fn(
            out: *mut *mut infer_mlx_array,
            condition: *const infer_mlx_array,
            a: *const infer_mlx_array,
            b: *const infer_mlx_array,
            stream: *const infer_mlx_stream,
        ) -> i32,
    >,
    pub clip: ::core::option::Option<
        unsafe extern "C" fn(
            out: *mut *mut infer_mlx_array,
            a: *const infer_mlx_array,
            low: *const infer_mlx_array,
            high: *const infer_mlx_array,
            stream: *const infer_mlx_stream,
        ) -> i32,
    >,
    pub astype: ::core::option::Option<
        unsafe extern "C" fn(
            out: *mut *mut infer_mlx_array,
            a: *const infer_mlx_array,
            dtype: i32,
            stream: *const infer_mlx_stream,
        ) -> i32,
    >,
    pub view: ::core::option::Option<
        unsafe extern "C" fn(
            out: *mut *mut infer_mlx_array,
            a: *const infer_mlx_array,
            dtype: i32,
            stream: *const infer_mlx_stream,
        ) -> i32,
    >,
    pub reshape: ::core::option::Option<
        unsafe extern "C" fn(
            out: *mut *mut infer_mlx_array,
            a: *const infer_mlx_array,
            shape: *const i32,
            ndim: usize,
            stream: *const infer_mlx_stream,
        ) -> i32,
    >,
    pub broadcast_to: ::core::option::Option<
        unsafe extern "C" fn(
            out: *mut *mut infer_mlx_array,
            a: *const infer_mlx_array,
            shape: *const i32,
            ndim: usize,
            stream: *const infer_mlx_stream,
        ) -> i32,
    >,
    pub transpose: ::core::option::Option<
        unsafe extern "C" fn(
            out: *mut *mut infer_mlx_array,
            a: *const infer_mlx_array,
            axes: *const i32,
            count: usize,
            stream: *const infer_mlx_stream,
        ) -> i32,
    >,
    pub expand_dims: ::core::option::Option<
        unsafe extern "C" fn(
            out: *mut *mut infer_mlx_array,
            a: *const infer_mlx_array,
            axes: *const i32,
            count: usize,
            stream: *const infer_mlx_stream,
        ) -> i32,
    >,
    pub squeeze: ::core::option::Option<
        unsafe extern "C" fn(
            out: *mut *mut infer_mlx_array,
            a: *const infer_mlx_array,
            axes: *const i32,
            count: usize,
            stream: *const infer_mlx_stream,
        ) -> i32,
    >,
    pub contiguous: ::core::option::Option<
        unsafe extern "C" fn(
            out: *mut *mut infer_mlx_array,
            a: *const infer_mlx_array,
            stream: *const infer_mlx_stream,
        ) -> i32,
    >,
    pub slice: ::core::option::Option<
        unsafe extern "C" fn(
            out: *mut *mut infer_mlx_array,
            a: *const infer_mlx_array,
            start: *const i32,
            stop: *const i32,
            step: *const i32,
            ndim: usize,
            stream: *const infer_mlx_stream,
        ) -> i32,
    >,
    pub slice_update: ::core::option::Option<
        unsafe extern "C" fn(
            out: *mut *mut infer_mlx_array,
            a: *const infer_mlx_array,
            update: *const infer_mlx_array,
            start: *const i32,
            stop: *const i32,
            step: *const i32,
            ndim: usize,
            stream: *const infer_mlx_stream,
        ) -> i32,
    >,
    pub concatenate: ::core::option::Option<
        unsafe extern "C" fn(
            out: *mut *mut infer_mlx_array,
            arrays: *const *const infer_mlx_array,
            count: usize,
            axis: i32,
            stream: *const infer_mlx_stream,
        ) -> i32,
    >,
    pub stack: ::core::option::Option<
        unsafe extern "C" fn(
            out: *mut *mut infer_mlx_array,
            arrays: *const *const infer_mlx_array,
            count: usize,
            axis: i32,
            stream: *const infer_mlx_stream,
        ) -> i32,
    >,
    pub split: ::core::option::Option<
        unsafe extern "C" fn(
            outs: *mut *mut infer_mlx_array,
            a: *const infer_mlx_array,
            indices: *const i32,
            count: usize,
            axis: i32,
            stream: *const infer_mlx_stream,
        ) -> i32,
    >,
    pub repeat: ::core::option::Option<
        unsafe extern "C" fn(
            out: *mut *mut infer_mlx_array,
            a: *const infer_mlx_array,
            times: i32,
            axis: i32,
            stream: *const infer_mlx_stream,
        ) -> i32,
    >,
    pub tril: ::core::option::Option<
        unsafe extern "C" fn(
            out: *mut *mut infer_mlx_array,
            a: *const infer_mlx_array,
            k: i32,
            stream: *const infer_mlx_stream,
        ) -> i32,
    >,
    pub triu: ::core::option::Option<
        unsafe extern "C" fn(
            out: *mut *mut infer_mlx_array,
            a: *const infer_mlx_array,
            k: i32,
            stream: *const infer_mlx_stream,
        ) -> i32,
    >,
    pub take: ::core::option::Option<
        unsafe extern "C" fn(
            out: *mut *mut infer_mlx_array,
            a: *const infer_mlx_array,
            indices: *const infer_mlx_array,
            axis: i32,
            stream: *const infer_mlx_stream,
        ) -> i32,
    >,
    pub take_along_axis: ::core::option::Option<
        unsafe extern "C" fn(
            out: *mut *mut infer_mlx_array,
            a: *const infer_mlx_array,
            indices: *const infer_mlx_array,
            axis: i32,
            stream: *const infer_mlx_stream,
        ) -> i32,
    >,
    pub put_along_axis: ::core::option::Option<
        unsafe extern "C" fn(
            out: *mut *mut infer_mlx_array,
            a: *const infer_mlx_array,
            indices: *const infer_mlx_array,
            values: *const infer_mlx_array,
            axis: i32,
            stream: *const infer_mlx_stream,
        ) -> i32,
    >,
    pub reduce: ::core::option::Option<
        unsafe extern "C" fn(
            out: *mut *mut infer_mlx_array,
            op: u32,
            a: *const infer_mlx_array,
            axis: i32,
            keepdims: bool,
            stream: *const infer_mlx_stream,
        ) -> i32,
    >,
    pub scan: ::core::option::Option<
        unsafe extern "C" fn(
            out: *mut *mut infer_mlx_array,
            op: u32,
            a: *const infer_mlx_array,
            axis: i32,
            reverse: bool,
            inclusive: bool,
            stream: *const infer_mlx_stream,
        ) -> i32,
    >,
    pub softmax: ::core::option::Option<
        unsafe extern "C" fn(
            out: *mut *mut infer_mlx_array,
            a: *const infer_mlx_array,
            axis: i32,
            precise: bool,
            stream: *const infer_mlx_stream,
        ) -> i32,
    >,
    pub sort: ::core::option::Option<
        unsafe extern "C" fn(
            out: *mut *mut infer_mlx_array,
            a: *const infer_mlx_array,
            axis: i32,
            stream: *const infer_mlx_stream,
        ) -> i32,
    >,
    pub argsort: ::core::option::Option<
        unsafe extern "C" fn(
            out: *mut *mut infer_mlx_array,
            a: *const infer_mlx_array,
            axis: i32,
            stream: *const infer_mlx_stream,
        ) -> i32,
    >,
    pub argpartition: ::core::option::Option<
        unsafe extern "C" fn(
            out: *mut *mut infer_mlx_array,
            a: *const infer_mlx_array,
            kth: i32,
            axis: i32,
            stream: *const infer_mlx_stream,
        ) -> i32,
    >,
    pub topk: ::core::option::Option<
        unsafe extern "C" fn(
            out: *mut *mut infer_mlx_array,
            a: *const infer_mlx_array,
            k: i32,
            axis: i32,
            stream: *const infer_mlx_stream,
        ) -> i32,
    >,
    pub addmm: ::core::option::Option<
        unsafe extern "C" fn(
            out: *mut *mut infer_mlx_array,
            c: *const infer_mlx_array,
            a: *const infer_mlx_array,
            b: *const infer_mlx_array,
            alpha: f32,
            beta: f32,
            stream: *const infer_mlx_stream,
        ) -> i32,
    >,
    pub quantized_matmul: ::core::option::Option<
        unsafe extern "C" fn(
            out: *mut *mut infer_mlx_array,
            x: *const infer_mlx_array,
            w: *const infer_mlx_array,
            scales: *const infer_mlx_array,
            biases: *const infer_mlx_array,
            transpose: bool,
            group_size: i32,
            bits: i32,
            stream: *const infer_mlx_stream,
        ) -> i32,
    >,
    pub dequantize: ::core::option::Option<
        unsafe extern "C" fn(
            out: *mut *mut infer_mlx_array,
            w: *const infer_mlx_array,
            scales: *const infer_mlx_array,
            biases: *const infer_mlx_array,
            group_size: i32,
            bits: i32,
            stream: *const infer_mlx_stream,
        ) -> i32,
    >,
    pub quantize: ::core::option::Option<
        unsafe extern "C" fn(
            outs: *mut *mut infer_mlx_array,
            w: *const infer_mlx_array,
            group_size: i32,
            bits: i32,
            stream: *const infer_mlx_stream,
        ) -> i32,
    >,
    pub rms_norm: ::core::option::Option<
        unsafe extern "C" fn(
            out: *mut *mut infer_mlx_array,
            x: *const infer_mlx_array,
            weight: *const infer_mlx_array,
            eps: f32,
            stream: *const infer_mlx_stream,
        ) -> i32,
    >,
    pub layer_norm: ::core::option::Option<
        unsafe extern "C" fn(
            out: *mut *mut infer_mlx_array,
            x: *const infer_mlx_array,
            weight: *const infer_mlx_array,
            bias: *const infer_mlx_array,
            eps: f32,
            stream: *const infer_mlx_stream,
        ) -> i32,
    >,
    pub rope: ::core::option::Option<
        unsafe extern "C" fn(
            out: *mut *mut infer_mlx_array,
            x: *const infer_mlx_array,
            dims: i32,
            traditional: bool,
            base: f32,
            scale: f32,
            offset: i32,
            freqs: *const infer_mlx_array,
            stream: *const infer_mlx_stream,
        ) -> i32,
    >,
    pub rope_at: ::core::option::Option<
        unsafe extern "C" fn(
            out: *mut *mut infer_mlx_array,
            x: *const infer_mlx_array,
            dims: i32,
            traditional: bool,
            base: f32,
            scale: f32,
            offsets: *const infer_mlx_array,
            freqs: *const infer_mlx_array,
            stream: *const infer_mlx_stream,
        ) -> i32,
    >,
    pub attention: ::core::option::Option<
        unsafe extern "C" fn(
            out: *mut *mut infer_mlx_array,
            q: *const infer_mlx_array,
            k: *const infer_mlx_array,
            v: *const infer_mlx_array,
            scale: f32,
            mask: u32,
            mask_array: *const infer_mlx_array,
            stream: *const infer_mlx_stream,
        ) -> i32,
    >,
    pub kv_write: ::core::option::Option<
        unsafe extern "C" fn(
            out: *mut *mut infer_mlx_array,
            buffer: *const infer_mlx_array,
            rows: *const infer_mlx_array,
            axis: i32,
            offset: i32,
            stream: *const infer_mlx_stream,
        ) -> i32,
    >,
}
impl Default for infer_mlx_table {
    fn default() -> Self {
        let mut s = ::core::mem::MaybeUninit::<Self>::uninit();
        unsafe {
            ::core::ptr::write_bytes(s.as_mut_ptr(), 0, 1);
            s.assume_init()
        }
    }
}
unsafe extern "C" {
    pub fn infer_mlx_api(version: u32) -> *const infer_mlx_table;
}
