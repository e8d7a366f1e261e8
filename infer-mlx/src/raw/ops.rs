//! Operations: lazy, each makes a new array. What a shape or a type cannot be is refused by the library.

use super::{Element, Failure, Fresh, Made, Node, Runtime, failure::broken, node::number_of};
use crate::DType;
use infer_sys::mlx::bindings as sys;
use std::ptr;

/// Elementwise, of one array.
#[derive(Clone, Copy, Debug)]
#[repr(u32)]
pub(crate) enum Unary {
    Abs = sys::INFER_MLX_ABS,
    Negative = sys::INFER_MLX_NEGATIVE,
    Exp = sys::INFER_MLX_EXP,
    Log = sys::INFER_MLX_LOG,
    Sqrt = sys::INFER_MLX_SQRT,
    Rsqrt = sys::INFER_MLX_RSQRT,
    Square = sys::INFER_MLX_SQUARE,
    Reciprocal = sys::INFER_MLX_RECIPROCAL,
    Sin = sys::INFER_MLX_SIN,
    Cos = sys::INFER_MLX_COS,
    Tanh = sys::INFER_MLX_TANH,
    Sigmoid = sys::INFER_MLX_SIGMOID,
    Erf = sys::INFER_MLX_ERF,
    Floor = sys::INFER_MLX_FLOOR,
    Ceil = sys::INFER_MLX_CEIL,
    Sign = sys::INFER_MLX_SIGN,
    LogicalNot = sys::INFER_MLX_LOGICAL_NOT,
    IsNan = sys::INFER_MLX_ISNAN,
    IsFinite = sys::INFER_MLX_ISFINITE,
    Silu = sys::INFER_MLX_SILU,
    Gelu = sys::INFER_MLX_GELU,
    GeluTanh = sys::INFER_MLX_GELU_TANH,
}

/// Elementwise, of two arrays that are broadcast together; and the product of matrices.
#[derive(Clone, Copy, Debug)]
#[repr(u32)]
pub(crate) enum Binary {
    Add = sys::INFER_MLX_ADD,
    Subtract = sys::INFER_MLX_SUBTRACT,
    Multiply = sys::INFER_MLX_MULTIPLY,
    Divide = sys::INFER_MLX_DIVIDE,
    FloorDivide = sys::INFER_MLX_FLOOR_DIVIDE,
    Remainder = sys::INFER_MLX_REMAINDER,
    Power = sys::INFER_MLX_POWER,
    Maximum = sys::INFER_MLX_MAXIMUM,
    Minimum = sys::INFER_MLX_MINIMUM,
    Equal = sys::INFER_MLX_EQUAL,
    NotEqual = sys::INFER_MLX_NOT_EQUAL,
    Less = sys::INFER_MLX_LESS,
    LessEqual = sys::INFER_MLX_LESS_EQUAL,
    Greater = sys::INFER_MLX_GREATER,
    GreaterEqual = sys::INFER_MLX_GREATER_EQUAL,
    LogicalAnd = sys::INFER_MLX_LOGICAL_AND,
    LogicalOr = sys::INFER_MLX_LOGICAL_OR,
    MatMul = sys::INFER_MLX_MATMUL,
}

/// Along one axis, to one value.
#[derive(Clone, Copy, Debug)]
#[repr(u32)]
pub(crate) enum Reduction {
    Sum = sys::INFER_MLX_SUM,
    Mean = sys::INFER_MLX_MEAN,
    Max = sys::INFER_MLX_MAX,
    Min = sys::INFER_MLX_MIN,
    Prod = sys::INFER_MLX_PROD,
    All = sys::INFER_MLX_ALL,
    Any = sys::INFER_MLX_ANY,
    LogSumExp = sys::INFER_MLX_LOGSUMEXP,
    ArgMax = sys::INFER_MLX_ARGMAX,
    ArgMin = sys::INFER_MLX_ARGMIN,
}

/// What attention leaves out.
#[derive(Clone, Copy)]
pub(crate) enum Attend<'a> {
    Nothing,
    Causal,
    Array(Node<'a>),
}

/// How rows are turned by their positions.
#[derive(Clone, Copy)]
pub(crate) struct Rope {
    pub(crate) dims: i32,
    pub(crate) traditional: bool,
    /// Counts where there are no `freqs`.
    pub(crate) base: f32,
    pub(crate) scale: f32,
}

/// Makes a method an entry. Arguments that are handles, numbers and slices have nothing more to keep to than that they are what they are, so
/// that one argument holds for all of these.
macro_rules! operations {
    ($($(#[$doc:meta])* fn $name:ident($($arg:ident: $type:ty),*) = $entry:ident($($value:expr),*);)*) => {
        impl Runtime {
            $(
                $(#[$doc])*
                #[inline]
                #[allow(clippy::too_many_arguments, reason = "the entry's")]
                pub(crate) fn $name(&self, $($arg: $type),*) -> Made {
                    self.make(|api, out, stream| {
                        // SAFETY: `out` is a valid place and the stream this thread's (`make`). Nodes are handles that live; a slice is given with
                        // its own length, and read for the call; numbers may be any: what they cannot be is refused behind the entry.
                        unsafe { api.$entry(out, $($value,)* stream) }
                    })
                }
            )*
        }
    };
}

operations! {
    fn full(shape: &[i32], value: f64, dtype: DType) = full(shape.as_ptr(), shape.len(), value, number_of(dtype));
    fn arange(start: f64, stop: f64, dtype: DType) = arange(start, stop, 1.0, number_of(dtype));

    fn unary(op: Unary, a: Node<'_>) = unary(op as u32, a.as_ptr());
    fn any_binary(op: Binary, a: Node<'_>, b: Node<'_>) = binary(op as u32, a.as_ptr(), b.as_ptr());
    fn any_binary_scalar(op: Binary, a: Node<'_>, b: f64, reversed: bool) = binary_scalar(op as u32, a.as_ptr(), b, reversed);
    fn select(condition: Node<'_>, a: Node<'_>, b: Node<'_>) = select(condition.as_ptr(), a.as_ptr(), b.as_ptr());
    fn as_type(a: Node<'_>, dtype: DType) = astype(a.as_ptr(), number_of(dtype));

    fn any_view(a: Node<'_>, dtype: DType) = view(a.as_ptr(), number_of(dtype));

    fn any_reshape(a: Node<'_>, shape: &[i32]) = reshape(a.as_ptr(), shape.as_ptr(), shape.len());
    fn broadcast_to(a: Node<'_>, shape: &[i32]) = broadcast_to(a.as_ptr(), shape.as_ptr(), shape.len());
    fn transpose(a: Node<'_>, axes: &[i32]) = transpose(a.as_ptr(), axes.as_ptr(), axes.len());
    fn expand_dims(a: Node<'_>, axis: i32) = expand_dims(a.as_ptr(), &raw const axis, 1);
    fn squeeze(a: Node<'_>, axis: i32) = squeeze(a.as_ptr(), &raw const axis, 1);
    fn contiguous(a: Node<'_>) = contiguous(a.as_ptr());
    fn concatenate(arrays: &[Node<'_>], axis: i32) = concatenate(Node::list(arrays), arrays.len(), axis);
    fn stack(arrays: &[Node<'_>], axis: i32) = stack(Node::list(arrays), arrays.len(), axis);
    fn repeat(a: Node<'_>, times: i32, axis: i32) = repeat(a.as_ptr(), times, axis);
    fn tril(a: Node<'_>, k: i32) = tril(a.as_ptr(), k);
    fn triu(a: Node<'_>, k: i32) = triu(a.as_ptr(), k);

    /// Indices are looked at when they are computed: `mlx_door.h`, "a place outside the axis fails the evaluation".
    fn take(a: Node<'_>, indices: Node<'_>, axis: i32) = take(a.as_ptr(), indices.as_ptr(), axis);
    /// As `take`.
    fn take_along_axis(a: Node<'_>, indices: Node<'_>, axis: i32) = take_along_axis(a.as_ptr(), indices.as_ptr(), axis);

    fn any_reduce(op: Reduction, a: Node<'_>, axis: i32, keep: bool) = reduce(op as u32, a.as_ptr(), axis, keep);
    fn any_cumsum(a: Node<'_>, axis: i32) = scan(sys::INFER_MLX_CUMSUM, a.as_ptr(), axis, false, true);
    fn any_softmax(a: Node<'_>, axis: i32) = softmax(a.as_ptr(), axis, true);
    fn any_sort(a: Node<'_>, axis: i32) = sort(a.as_ptr(), axis);
    fn any_argsort(a: Node<'_>, axis: i32) = argsort(a.as_ptr(), axis);
    fn any_argpartition(a: Node<'_>, kth: i32, axis: i32) = argpartition(a.as_ptr(), kth, axis);

    /// `c` plus the product of `a` and `b`.
    fn addmm(c: Node<'_>, a: Node<'_>, b: Node<'_>) = addmm(c.as_ptr(), a.as_ptr(), b.as_ptr(), 1.0, 1.0);
    fn any_quantized_matmul(
        x: Node<'_>, w: Node<'_>, scales: Node<'_>, biases: Node<'_>, transpose: bool, group_size: i32, bits: i32
    ) = quantized_matmul(x.as_ptr(), w.as_ptr(), scales.as_ptr(), biases.as_ptr(), transpose, group_size, bits);
    fn any_dequantize(w: Node<'_>, scales: Node<'_>, biases: Node<'_>, group_size: i32, bits: i32) =
        dequantize(w.as_ptr(), scales.as_ptr(), biases.as_ptr(), group_size, bits);
    fn any_rms_norm(x: Node<'_>, weight: Option<Node<'_>>, eps: f32) = rms_norm(x.as_ptr(), Node::or_null(weight), eps);
    fn any_layer_norm(x: Node<'_>, weight: Option<Node<'_>>, bias: Option<Node<'_>>, eps: f32) =
        layer_norm(x.as_ptr(), Node::or_null(weight), Node::or_null(bias), eps);
    /// With the first row at this position.
    fn rope(x: Node<'_>, by: Rope, freqs: Option<Node<'_>>, offset: i32) =
        rope(x.as_ptr(), by.dims, by.traditional, by.base, by.scale, offset, Node::or_null(freqs));
    /// With the first row of each of the batch at a position of its own.
    fn rope_each(x: Node<'_>, by: Rope, freqs: Option<Node<'_>>, offsets: Node<'_>) =
        rope_at(x.as_ptr(), by.dims, by.traditional, by.base, by.scale, offsets.as_ptr(), Node::or_null(freqs));
    /// `buffer` with `rows` from `offset` on along an axis: in its own memory where the library computes on the CPU and the buffer lies row by
    /// row. Memory that was ever handed out by [`data`](Runtime::data) is copied instead; memory that was written so is never handed out.
    fn kv_write(buffer: Node<'_>, rows: Node<'_>, axis: i32, offset: i32) = kv_write(buffer.as_ptr(), rows.as_ptr(), axis, offset);
}

impl Binary {
    /// Whether integers can make the kernel end the process (a division by 0), or never end (a negative power).
    fn can_trap(self) -> bool {
        matches!(self, Self::FloorDivide | Self::Remainder | Self::Power)
    }
}

impl Runtime {
    pub(crate) fn binary(&self, op: Binary, a: Node<'_>, b: Node<'_>) -> Made {
        if op.can_trap() && !self.info(a)?.dtype.is_float() && !self.info(b)?.dtype.is_float() {
            let why = "integers are divided by a number, and have a number as their power: any element could be 0, or negative";
            return Err(Failure::invalid(why.to_owned()));
        }
        self.any_binary(op, a, b)
    }

    /// With a number of the array's type, on the right; or on the left if `reversed`.
    pub(crate) fn binary_scalar(&self, op: Binary, a: Node<'_>, b: f64, reversed: bool) -> Made {
        let least = if matches!(op, Binary::Power) { 0.0 } else { 1.0 };
        if op.can_trap() && (reversed || b < least) && !self.info(a)?.dtype.is_float() {
            let why = format!(
                "integers are divided by a number of 1 or more, and have one of 0 or more as their power: not {b}"
            );
            return Err(Failure::invalid(why));
        }
        self.any_binary_scalar(op, a, b, reversed)
    }

    pub(crate) fn reshape(&self, a: Node<'_>, shape: &[i32]) -> Made {
        // MLX divides by the others to find what is left.
        if shape.contains(&-1) && shape.contains(&0) {
            return Err(Failure::invalid(format!("in {shape:?} any size could stand for -1, since another one is 0")));
        }
        self.any_reshape(a, shape)
    }

    pub(crate) fn reduce(&self, op: Reduction, a: Node<'_>, axis: i32, keep: bool) -> Made {
        self.something(a)?;
        self.any_reduce(op, a, axis, keep)
    }

    pub(crate) fn cumsum(&self, a: Node<'_>, axis: i32) -> Made {
        self.something(a)?;
        self.any_cumsum(a, axis)
    }

    pub(crate) fn softmax(&self, a: Node<'_>, axis: i32) -> Made {
        self.something(a)?;
        self.any_softmax(a, axis)
    }

    pub(crate) fn sort(&self, a: Node<'_>, axis: i32) -> Made {
        self.something(a)?;
        self.any_sort(a, axis)
    }

    pub(crate) fn argsort(&self, a: Node<'_>, axis: i32) -> Made {
        self.something(a)?;
        self.any_argsort(a, axis)
    }

    pub(crate) fn argpartition(&self, a: Node<'_>, kth: i32, axis: i32) -> Made {
        self.something(a)?;
        self.any_argpartition(a, kth, axis)
    }

    pub(crate) fn rms_norm(&self, x: Node<'_>, weight: Option<Node<'_>>, eps: f32) -> Made {
        self.something(x)?;
        self.any_rms_norm(x, weight, eps)
    }

    pub(crate) fn layer_norm(&self, x: Node<'_>, weight: Option<Node<'_>>, bias: Option<Node<'_>>, eps: f32) -> Made {
        self.something(x)?;
        self.any_layer_norm(x, weight, bias, eps)
    }

    /// Along an axis there must be something: some kernels divide by how much it is, or never come to its end.
    fn something(&self, a: Node<'_>) -> Result<(), Failure> {
        if self.info(a)?.elements > 0 {
            return Ok(());
        }
        Err(Failure::invalid("an array without elements has nothing along its axes".to_owned()))
    }

    /// The same bytes as another type.
    pub(crate) fn view(&self, a: Node<'_>, dtype: DType) -> Made {
        let info = self.info(a)?;
        // MLX multiplies without looking.
        let last =
            info.shape.last().map_or(1, |&last| i64::from(last)) * info.dtype.bytes() as i64 / dtype.bytes() as i64;
        if i32::try_from(last).is_err() {
            return Err(Failure::invalid(format!("the last axis would have {last}, which is more than 2147483647")));
        }
        self.any_view(a, dtype)
    }

    /// A copy of these elements, row by row. Another number of them than the shape's is refused.
    pub(crate) fn array<T: Element>(&self, data: &[T], shape: &[i32]) -> Made {
        let (bytes, place, dtype) = (size_of_val(data), data.as_ptr().cast(), number_of(T::DTYPE));
        self.make(|api, out, _| {
            // SAFETY: `out` is a valid place; so many bytes of a slice of plain elements, without padding; and a slice of sizes. Both are read for
            // the call.
            unsafe { api.array_copy_from(out, place, bytes, shape.as_ptr(), shape.len(), dtype) }
        })
    }

    /// From `start` on and before `stop`, of every axis.
    pub(crate) fn slice(&self, a: Node<'_>, start: &[i32], stop: &[i32]) -> Made {
        let (count, steps) = (start.len(), vec![1; start.len()]);
        if stop.len() != count {
            return Err(broken("a slice with another number of ends than of beginnings"));
        }
        self.make(|api, out, stream| {
            // SAFETY: three slices of `count` numbers each; else as in `operations`.
            unsafe { api.slice(out, a.as_ptr(), start.as_ptr(), stop.as_ptr(), steps.as_ptr(), count, stream) }
        })
    }

    /// With what is from `start` on and before `stop`, of every axis, replaced.
    pub(crate) fn slice_update(&self, a: Node<'_>, update: Node<'_>, start: &[i32], stop: &[i32]) -> Made {
        let (count, steps) = (start.len(), vec![1; start.len()]);
        if stop.len() != count {
            return Err(broken("a slice with another number of ends than of beginnings"));
        }
        self.make(|api, out, stream| {
            let (start, stop, steps) = (start.as_ptr(), stop.as_ptr(), steps.as_ptr());
            // SAFETY: three slices of `count` numbers each; else as in `operations`.
            unsafe { api.slice_update(out, a.as_ptr(), update.as_ptr(), start, stop, steps, count, stream) }
        })
    }

    /// The parts between these places of an axis: one more than there are places.
    pub(crate) fn split(&self, a: Node<'_>, at: &[i32], axis: i32) -> Result<Vec<Fresh>, Failure> {
        self.make_list(at.len() + 1, |api, outs, stream| {
            // SAFETY: room for a handle more than there are places (`make_list`); else as in `operations`.
            unsafe { api.split(outs, a.as_ptr(), at.as_ptr(), at.len(), axis, stream) }
        })
    }

    #[allow(clippy::too_many_arguments, reason = "the entry's")]
    pub(crate) fn quantized_matmul(
        &self,
        x: Node<'_>,
        w: Node<'_>,
        scales: Node<'_>,
        biases: Node<'_>,
        transpose: bool,
        group_size: i32,
        bits: i32,
    ) -> Made {
        quantisable(group_size, bits)?;
        self.something(x)?;
        self.something(w)?;
        self.any_quantized_matmul(x, w, scales, biases, transpose, group_size, bits)
    }

    pub(crate) fn dequantize(
        &self,
        w: Node<'_>,
        scales: Node<'_>,
        biases: Node<'_>,
        group_size: i32,
        bits: i32,
    ) -> Made {
        quantisable(group_size, bits)?;
        self.something(w)?;
        self.any_dequantize(w, scales, biases, group_size, bits)
    }

    /// The packed words, the scales and the biases that a matrix is quantised to.
    pub(crate) fn quantize(&self, w: Node<'_>, group_size: i32, bits: i32) -> Result<Vec<Fresh>, Failure> {
        quantisable(group_size, bits)?;
        self.something(w)?;
        self.make_list(3, |api, outs, stream| {
            // SAFETY: room for the three results (`make_list`); else as in `operations`.
            unsafe { api.quantize(outs, w.as_ptr(), group_size, bits, stream) }
        })
    }

    pub(crate) fn attention(&self, q: Node<'_>, k: Node<'_>, v: Node<'_>, scale: f32, mask: Attend<'_>) -> Made {
        // MLX divides by the number of heads.
        self.something(q)?;
        self.something(k)?;
        let (kind, mask) = match mask {
            Attend::Nothing => (sys::INFER_MLX_MASK_NONE, ptr::null()),
            Attend::Causal => (sys::INFER_MLX_MASK_CAUSAL, ptr::null()),
            Attend::Array(mask) => (sys::INFER_MLX_MASK_ARRAY, mask.as_ptr()),
        };
        self.make(|api, out, stream| {
            // SAFETY: as in `operations`; the array of a mask is there if the kind says so, and else NULL, as the header has it.
            unsafe { api.attention(out, q.as_ptr(), k.as_ptr(), v.as_ptr(), scale, kind, mask, stream) }
        })
    }
}

/// What the kernels are made for. MLX divides by some of it before it looks.
fn quantisable(group_size: i32, bits: i32) -> Result<(), Failure> {
    if matches!(group_size, 32 | 64 | 128) && matches!(bits, 2 | 3 | 4 | 5 | 6 | 8) {
        return Ok(());
    }
    let why = format!(
        "groups of {group_size} of {bits} bits: groups have 32, 64 or 128, and elements 2, 3, 4, 5, 6 or 8 bits"
    );
    Err(Failure::invalid(why))
}
