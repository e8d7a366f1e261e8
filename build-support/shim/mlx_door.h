// The door to MLX: one exported function, `infer_mlx_api`, that returns a table of functions.
//
// Everything this project asks of MLX goes through the table. Behind it are MLX's C interface (mlx-c), and what that does not have: handles that
// know their thread, data that is only handed out once it is there, frees of many at once, and a write into a KV cache that copies nothing.
//
// What every entry keeps to
// - Nothing is thrown: an exception becomes a status, and a message that `last_error` has, for the thread it happened on.
// - An entry that can fail returns a status, INFER_MLX_OK or one of the negative codes below. Its out parameters are written when the status is
//   INFER_MLX_OK, and not otherwise.
// - Handles belong to the thread that made them. Used on another one they are refused with INFER_MLX_THREAD, before MLX sees them: MLX keeps the
//   streams of each thread apart, and an array that is bound to another thread's stream ends the process at worst. Only `arrays_free` and
//   `stream_free` may be called from anywhere: what is freed elsewhere goes when its own thread enters the door next, or has ended.
// - When the last stream of a thread is freed, or the thread ends, its streams are waited for and given back. Arrays that were computed by then stay
//   what they are; those that were not are refused from then on with INFER_MLX_THREAD.
// - Operations are lazy: they look at shapes and types and compute nothing. `eval` computes. Axes may count from the end (-1 is the last).
// - A result that is larger than MLX's memory limit is refused with INFER_MLX_MEMORY where it is asked for: MLX itself would write to address 0.
// - A handle must be one that this table returned and that is not yet freed. Pointers to handles, numbers and text may be NULL only where
//   it says so; else the status is INFER_MLX_ARGUMENT.
// - When the process ends by `exit()`, it is waited until every other thread has come out of the door before any static object is destroyed. A
//   thread that enters afterwards waits for the end inside; the one that ends the process is refused.
// - Callbacks must return normally.
#ifndef INFER_MLX_DOOR_H
#define INFER_MLX_DOOR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

// Raised whenever the table or the meaning of an entry changes.
#define INFER_MLX_DOOR_VERSION 1

enum infer_mlx_status {
    INFER_MLX_OK          =  0,
    INFER_MLX_EXCEPTION   = -1, // MLX said no: a shape, a type, a failed computation
    INFER_MLX_MEMORY      = -2, // std::bad_alloc, or a result over the memory limit
    INFER_MLX_UNKNOWN     = -3, // an exception of a type nobody knows
    INFER_MLX_ARGUMENT    = -4, // refused by the door before MLX saw it
    INFER_MLX_THREAD      = -5, // a handle of another thread, or one whose stream is gone
    INFER_MLX_UNEVALUATED = -6, // the data is not there yet
    INFER_MLX_UNSUPPORTED = -7, // this build, or this machine, cannot do that
    INFER_MLX_ENDING      = -8, // the process is ending
};

enum infer_mlx_dtype {
    INFER_MLX_BOOL,
    INFER_MLX_U8,
    INFER_MLX_U16,
    INFER_MLX_U32,
    INFER_MLX_U64,
    INFER_MLX_I8,
    INFER_MLX_I16,
    INFER_MLX_I32,
    INFER_MLX_I64,
    INFER_MLX_F16,
    INFER_MLX_F32,
    INFER_MLX_F64,
    INFER_MLX_BF16,
    INFER_MLX_C64,              // two 32-bit floats
};

enum infer_mlx_device_type {
    INFER_MLX_CPU,
    INFER_MLX_GPU,
};

// Elementwise, of one array.
enum infer_mlx_unary {
    INFER_MLX_ABS,
    INFER_MLX_NEGATIVE,
    INFER_MLX_EXP,
    INFER_MLX_LOG,
    INFER_MLX_LOG1P,
    INFER_MLX_SQRT,
    INFER_MLX_RSQRT,
    INFER_MLX_SQUARE,
    INFER_MLX_RECIPROCAL,
    INFER_MLX_SIN,
    INFER_MLX_COS,
    INFER_MLX_TANH,
    INFER_MLX_SIGMOID,
    INFER_MLX_ERF,
    INFER_MLX_FLOOR,
    INFER_MLX_CEIL,
    INFER_MLX_SIGN,
    INFER_MLX_LOGICAL_NOT,
    INFER_MLX_ISNAN,
    INFER_MLX_ISFINITE,
    INFER_MLX_STOP_GRADIENT,
    INFER_MLX_COPY,
    INFER_MLX_SILU,             // x * sigmoid(x)
    INFER_MLX_GELU,             // x * (1 + erf(x / sqrt 2)) / 2
    INFER_MLX_GELU_TANH,        // x * (1 + tanh(sqrt(2 / pi) * (x + 0.044715 x^3))) / 2
    INFER_MLX_UNARY_COUNT,
};

// Elementwise, of two arrays that are broadcast together; and the product of matrices. The floor of a quotient and the remainder are refused for
// integers (UNSUPPORTED), unless the divisor is a number other than 0 and -1: the processor ends the process where it cannot divide. So is a power,
// unless it is a number that is not negative.
enum infer_mlx_binary {
    INFER_MLX_ADD,
    INFER_MLX_SUBTRACT,
    INFER_MLX_MULTIPLY,
    INFER_MLX_DIVIDE,
    INFER_MLX_FLOOR_DIVIDE,
    INFER_MLX_REMAINDER,
    INFER_MLX_POWER,
    INFER_MLX_MAXIMUM,
    INFER_MLX_MINIMUM,
    INFER_MLX_LOGADDEXP,
    INFER_MLX_EQUAL,
    INFER_MLX_NOT_EQUAL,
    INFER_MLX_LESS,
    INFER_MLX_LESS_EQUAL,
    INFER_MLX_GREATER,
    INFER_MLX_GREATER_EQUAL,
    INFER_MLX_LOGICAL_AND,
    INFER_MLX_LOGICAL_OR,
    INFER_MLX_BITWISE_AND,
    INFER_MLX_BITWISE_OR,
    INFER_MLX_BITWISE_XOR,
    INFER_MLX_LEFT_SHIFT,
    INFER_MLX_RIGHT_SHIFT,
    INFER_MLX_MATMUL,
    INFER_MLX_BINARY_COUNT,
};

// Along one axis, to one value.
enum infer_mlx_reduction {
    INFER_MLX_SUM,
    INFER_MLX_MEAN,
    INFER_MLX_MAX,
    INFER_MLX_MIN,
    INFER_MLX_PROD,
    INFER_MLX_ALL,
    INFER_MLX_ANY,
    INFER_MLX_LOGSUMEXP,
    INFER_MLX_ARGMAX,           // unsigned 32-bit, the first of equals
    INFER_MLX_ARGMIN,
    INFER_MLX_REDUCTION_COUNT,
};

// Along one axis, of every prefix.
enum infer_mlx_scan {
    INFER_MLX_CUMSUM,
    INFER_MLX_CUMPROD,
    INFER_MLX_CUMMAX,
    INFER_MLX_CUMMIN,
    INFER_MLX_LOGCUMSUMEXP,
    INFER_MLX_SCAN_COUNT,
};

// What attention leaves out.
enum infer_mlx_mask {
    INFER_MLX_MASK_NONE,
    INFER_MLX_MASK_CAUSAL,      // query i of L sees the keys up to S - L + i
    INFER_MLX_MASK_ARRAY,       // boolean (true is seen), or added to the scores
};

typedef struct infer_mlx_array infer_mlx_array;
typedef struct infer_mlx_stream infer_mlx_stream;

typedef struct infer_mlx_device {
    int32_t  type;              // enum infer_mlx_device_type
    int32_t  index;             // among those of its type
    bool     available;
    char     name[128];         // ends with NUL; "" where MLX knows none
    char     architecture[64];  // likewise
    uint64_t memory_total;      // bytes; 0 where MLX knows none
} infer_mlx_device;

typedef struct infer_mlx_array_info {
    int32_t         dtype;          // enum infer_mlx_dtype
    uint32_t        ndim;
    const int32_t * shape;          // lives as long as the handle; NULL for a scalar
    uint64_t        size;           // elements
    uint64_t        bytes;
    bool            evaluated;      // it is computed, or being computed after `async_eval`
    bool            row_contiguous; // of an evaluated array: `array_data` gives it
} infer_mlx_array_info;

typedef struct infer_mlx_memory {
    uint64_t active;            // bytes, of arrays
    uint64_t peak;              // the most that `active` was since the last reset
    uint64_t cache;             // freed, and kept for the next array
    uint64_t limit;             // for `active`
} infer_mlx_memory;

// Objects of this table that are not freed yet, in the whole process; and what was counted since it started.
typedef struct infer_mlx_live {
    uint64_t arrays;
    uint64_t streams;
    uint64_t buffers;           // the caller's memory that arrays are over
    uint64_t evals;             // calls of `eval` and `async_eval` that computed something
} infer_mlx_live;

// Gives back memory that an array was over. From any thread, once.
typedef void (*infer_mlx_deleter)(void * context);

typedef struct infer_mlx_table {
    // ---- what a caller checks first; this prefix never changes its shape ----
    uint32_t     size;          // sizeof(infer_mlx_table)
    uint32_t     version;       // INFER_MLX_DOOR_VERSION
    const char * mlx_version;   // what the MLX that was loaded says of itself
    const char * mlx_pinned;    // the MLX the door was compiled against
    const char * mlx_c_version; // of mlx-c, which it is made with
    const char * variant;       // "cpu", "metal", "cuda"
    uint32_t     sizeof_device;
    uint32_t     sizeof_array_info;
    uint32_t     sizeof_memory;
    uint32_t     sizeof_live;

    // ---- the process ----

    // Why the last entry of this thread failed. Ends with NUL; lives until the next failure on this thread. Never NULL.
    const char * (*last_error)(void);
    void    (*live)(infer_mlx_live * out);
    // No stream is made and no device opened.
    int32_t (*device_count)(int32_t type, int32_t * out);
    int32_t (*device_info)(int32_t type, int32_t index, infer_mlx_device * out);
    int32_t (*memory)(infer_mlx_memory * out);
    int32_t (*reset_peak_memory)(void);
    // Bytes; `previous` (may be NULL) takes what was set before. These two wait for the streams of all threads.
    int32_t (*set_cache_limit)(uint64_t bytes, uint64_t * previous);
    int32_t (*clear_cache)(void);
    int32_t (*set_memory_limit)(uint64_t bytes, uint64_t * previous);
    // Memory that the system may not page out. Nothing else here touches it.
    int32_t (*set_wired_limit)(uint64_t bytes, uint64_t * previous);

    // ---- streams: where operations run, of the thread that asks for one ----

    int32_t (*stream_new)(int32_t type, int32_t index, infer_mlx_stream ** out);
    // NULL is a no-op.
    void    (*stream_free)(infer_mlx_stream * stream);
    int32_t (*synchronize)(const infer_mlx_stream * stream);

    // ---- arrays ----

    // `count` handles; those that are NULL are passed over.
    void    (*arrays_free)(infer_mlx_array * const * arrays, size_t count);
    // A second handle to the same array.
    int32_t (*array_share)(infer_mlx_array ** out, const infer_mlx_array * a);
    // A copy of `data`, which has as many bytes as the shape says, row by row.
    int32_t (*array_copy_from)(infer_mlx_array ** out, const void * data, size_t bytes, const int32_t * shape, size_t ndim, int32_t dtype);
    // An array with memory that nobody has written: `*data` is where the caller puts it, all of it, before the handle is used for anything else
    // but being freed. UNSUPPORTED where the memory cannot be written from here.
    int32_t (*array_uninit)(infer_mlx_array ** out, void ** data, size_t * bytes, const int32_t * shape, size_t ndim, int32_t dtype);
    // Over the caller's memory where the device can read it, else of a copy. Whatever the status, `deleter` is called once: when the
    // array and all that share its memory are gone, after the copy, or at once.
    int32_t (*array_over)(infer_mlx_array ** out, void * data, size_t bytes, const int32_t * shape, size_t ndim, int32_t dtype,
                          infer_mlx_deleter deleter, void * context);
    int32_t (*array_info)(const infer_mlx_array * a, infer_mlx_array_info * out);
    // The values of an evaluated array, row by row. They live as long as the handle, and nobody writes them: `kv_write` copies memory that was
    // handed out, and memory that it has written in place is refused here. Waits after `async_eval`.
    int32_t (*array_data)(const infer_mlx_array * a, const void ** data, size_t * bytes);
    // The value of an evaluated array that has one element: `bytes` is the size of its type.
    int32_t (*array_item)(const infer_mlx_array * a, void * out, size_t bytes);
    // Where it fails, arrays of this thread that were made before, and not seen computed, are refused from then on: they may be half done. Seen
    // computed is what this was asked for, and what was used after it had been computed.
    int32_t (*eval)(const infer_mlx_array * const * arrays, size_t count);
    // Returns before the values are there. What fails then is the error of the next entry that waits for it.
    int32_t (*async_eval)(const infer_mlx_array * const * arrays, size_t count);

    // ---- operations: made from nothing ----

    int32_t (*full)(infer_mlx_array ** out, const int32_t * shape, size_t ndim, double value, int32_t dtype, const infer_mlx_stream * stream);
    int32_t (*arange)(infer_mlx_array ** out, double start, double stop, double step, int32_t dtype, const infer_mlx_stream * stream);

    // ---- elementwise ----

    int32_t (*unary)(infer_mlx_array ** out, uint32_t op, const infer_mlx_array * a, const infer_mlx_stream * stream);
    int32_t (*binary)(infer_mlx_array ** out, uint32_t op, const infer_mlx_array * a, const infer_mlx_array * b, const infer_mlx_stream * stream);
    // As `binary`, with a scalar of the other's type on the right, or on the left if `reversed`.
    int32_t (*binary_scalar)(infer_mlx_array ** out, uint32_t op, const infer_mlx_array * a, double b, bool reversed,
                             const infer_mlx_stream * stream);
    // `a` where the condition holds, else `b`.
    int32_t (*select)(infer_mlx_array ** out, const infer_mlx_array * condition, const infer_mlx_array * a, const infer_mlx_array * b,
                      const infer_mlx_stream * stream);
    // Either bound may be NULL.
    int32_t (*clip)(infer_mlx_array ** out, const infer_mlx_array * a, const infer_mlx_array * low, const infer_mlx_array * high,
                    const infer_mlx_stream * stream);
    int32_t (*astype)(infer_mlx_array ** out, const infer_mlx_array * a, int32_t dtype, const infer_mlx_stream * stream);
    // The same bits as another type.
    int32_t (*view)(infer_mlx_array ** out, const infer_mlx_array * a, int32_t dtype, const infer_mlx_stream * stream);

    // ---- shapes ----

    int32_t (*reshape)(infer_mlx_array ** out, const infer_mlx_array * a, const int32_t * shape, size_t ndim, const infer_mlx_stream * stream);
    int32_t (*broadcast_to)(infer_mlx_array ** out, const infer_mlx_array * a, const int32_t * shape, size_t ndim,
                            const infer_mlx_stream * stream);
    // `axes` NULL: all, reversed.
    int32_t (*transpose)(infer_mlx_array ** out, const infer_mlx_array * a, const int32_t * axes, size_t count, const infer_mlx_stream * stream);
    int32_t (*expand_dims)(infer_mlx_array ** out, const infer_mlx_array * a, const int32_t * axes, size_t count,
                           const infer_mlx_stream * stream);
    int32_t (*squeeze)(infer_mlx_array ** out, const infer_mlx_array * a, const int32_t * axes, size_t count, const infer_mlx_stream * stream);
    int32_t (*contiguous)(infer_mlx_array ** out, const infer_mlx_array * a, const infer_mlx_stream * stream);
    // One start, stop and step for each of the `ndim` axes. A range beyond the end is cut.
    int32_t (*slice)(infer_mlx_array ** out, const infer_mlx_array * a, const int32_t * start, const int32_t * stop, const int32_t * step,
                     size_t ndim, const infer_mlx_stream * stream);
    int32_t (*slice_update)(infer_mlx_array ** out, const infer_mlx_array * a, const infer_mlx_array * update, const int32_t * start,
                            const int32_t * stop, const int32_t * step, size_t ndim, const infer_mlx_stream * stream);
    int32_t (*concatenate)(infer_mlx_array ** out, const infer_mlx_array * const * arrays, size_t count, int32_t axis,
                           const infer_mlx_stream * stream);
    int32_t (*stack)(infer_mlx_array ** out, const infer_mlx_array * const * arrays, size_t count, int32_t axis,
                     const infer_mlx_stream * stream);
    // Cut before each of `count` indices along the axis: `outs` takes `count` + 1 arrays.
    int32_t (*split)(infer_mlx_array ** outs, const infer_mlx_array * a, const int32_t * indices, size_t count, int32_t axis,
                     const infer_mlx_stream * stream);
    int32_t (*repeat)(infer_mlx_array ** out, const infer_mlx_array * a, int32_t times, int32_t axis, const infer_mlx_stream * stream);
    int32_t (*tril)(infer_mlx_array ** out, const infer_mlx_array * a, int32_t k, const infer_mlx_stream * stream);
    int32_t (*triu)(infer_mlx_array ** out, const infer_mlx_array * a, int32_t k, const infer_mlx_stream * stream);

    // ---- indices: one that lies outside of its axis is an error of `eval`, where memory is the CPU's; elsewhere it is the nearest inside ----

    int32_t (*take)(infer_mlx_array ** out, const infer_mlx_array * a, const infer_mlx_array * indices, int32_t axis,
                    const infer_mlx_stream * stream);
    int32_t (*take_along_axis)(infer_mlx_array ** out, const infer_mlx_array * a, const infer_mlx_array * indices, int32_t axis,
                               const infer_mlx_stream * stream);
    int32_t (*put_along_axis)(infer_mlx_array ** out, const infer_mlx_array * a, const infer_mlx_array * indices,
                              const infer_mlx_array * values, int32_t axis, const infer_mlx_stream * stream);

    // ---- along an axis ----

    int32_t (*reduce)(infer_mlx_array ** out, uint32_t op, const infer_mlx_array * a, int32_t axis, bool keepdims,
                      const infer_mlx_stream * stream);
    int32_t (*scan)(infer_mlx_array ** out, uint32_t op, const infer_mlx_array * a, int32_t axis, bool reverse, bool inclusive,
                    const infer_mlx_stream * stream);
    // `precise`: in 32 bits, whatever the type.
    int32_t (*softmax)(infer_mlx_array ** out, const infer_mlx_array * a, int32_t axis, bool precise, const infer_mlx_stream * stream);
    int32_t (*sort)(infer_mlx_array ** out, const infer_mlx_array * a, int32_t axis, const infer_mlx_stream * stream);
    int32_t (*argsort)(infer_mlx_array ** out, const infer_mlx_array * a, int32_t axis, const infer_mlx_stream * stream);
    int32_t (*argpartition)(infer_mlx_array ** out, const infer_mlx_array * a, int32_t kth, int32_t axis, const infer_mlx_stream * stream);
    int32_t (*topk)(infer_mlx_array ** out, const infer_mlx_array * a, int32_t k, int32_t axis, const infer_mlx_stream * stream);

    // ---- networks ----

    // alpha * a b + beta * c
    int32_t (*addmm)(infer_mlx_array ** out, const infer_mlx_array * c, const infer_mlx_array * a, const infer_mlx_array * b, float alpha,
                     float beta, const infer_mlx_stream * stream);
    // Of the rows of a quantised matrix, in the affine mode. `group_size` elements share a scale and a bias.
    int32_t (*quantized_matmul)(infer_mlx_array ** out, const infer_mlx_array * x, const infer_mlx_array * w, const infer_mlx_array * scales,
                                const infer_mlx_array * biases, bool transpose, int32_t group_size, int32_t bits,
                                const infer_mlx_stream * stream);
    int32_t (*dequantize)(infer_mlx_array ** out, const infer_mlx_array * w, const infer_mlx_array * scales, const infer_mlx_array * biases,
                          int32_t group_size, int32_t bits, const infer_mlx_stream * stream);
    // Three results: the words, the scales, the biases.
    int32_t (*quantize)(infer_mlx_array ** outs, const infer_mlx_array * w, int32_t group_size, int32_t bits, const infer_mlx_stream * stream);
    // `weight` may be NULL.
    int32_t (*rms_norm)(infer_mlx_array ** out, const infer_mlx_array * x, const infer_mlx_array * weight, float eps,
                        const infer_mlx_stream * stream);
    // `weight` and `bias` may be NULL.
    int32_t (*layer_norm)(infer_mlx_array ** out, const infer_mlx_array * x, const infer_mlx_array * weight, const infer_mlx_array * bias,
                          float eps, const infer_mlx_stream * stream);
    // Of x [batch, ..., length, dims or more], whose first position is `offset`. `base` counts where `freqs` (may be NULL) does not.
    int32_t (*rope)(infer_mlx_array ** out, const infer_mlx_array * x, int32_t dims, bool traditional, float base, float scale, int32_t offset,
                    const infer_mlx_array * freqs, const infer_mlx_stream * stream);
    // As `rope`, with an offset for each of the batch: `offsets` has one element, or as many as the batch.
    int32_t (*rope_at)(infer_mlx_array ** out, const infer_mlx_array * x, int32_t dims, bool traditional, float base, float scale,
                       const infer_mlx_array * offsets, const infer_mlx_array * freqs, const infer_mlx_stream * stream);
    // q [batch, heads, length, dim], k and v [batch, heads of these, source, dim]. `mask` is one of enum infer_mlx_mask; `mask_array` is
    // NULL but for the array.
    int32_t (*attention)(infer_mlx_array ** out, const infer_mlx_array * q, const infer_mlx_array * k, const infer_mlx_array * v, float scale,
                         uint32_t mask, const infer_mlx_array * mask_array, const infer_mlx_stream * stream);
    // `buffer` with `rows` at `offset` along `axis`. Where memory is the CPU's, and the buffer is whole and row by row and was not handed out by
    // `array_data`, nothing of it is copied: the result shares its memory, so that whoever still reads the old handle must not read these rows. Elsewhere it is a copy.
    int32_t (*kv_write)(infer_mlx_array ** out, const infer_mlx_array * buffer, const infer_mlx_array * rows, int32_t axis, int32_t offset,
                        const infer_mlx_stream * stream);
} infer_mlx_table;

#if defined(_WIN32)
#    define INFER_MLX_EXPORT __declspec(dllexport)
#else
#    define INFER_MLX_EXPORT __attribute__((visibility("default")))
#endif

// The table, which lives as long as the process; NULL for a version it does not speak, whatever there is for 0. Callable from any thread. MLX's
// error handler, which would end the process, has been replaced when it returns.
INFER_MLX_EXPORT const infer_mlx_table * infer_mlx_api(uint32_t version);

#ifdef __cplusplus
}
#endif

#endif // INFER_MLX_DOOR_H
