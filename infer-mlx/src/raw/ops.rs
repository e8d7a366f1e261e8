//! Operations: lazy, each a new array.

use super::{Failure, Fresh, Made, Node, Runtime};
use crate::DType;

/// Elementwise, of one array.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Unary {
    Abs,
    Negative,
    Exp,
    Log,
    Sqrt,
    Rsqrt,
    Square,
    Reciprocal,
    Sin,
    Cos,
    Tanh,
    Sigmoid,
    Erf,
    Floor,
    Ceil,
    Sign,
    LogicalNot,
    IsNan,
    IsFinite,
    Copy,
    Silu,
    Gelu,
    GeluTanh,
}

/// Elementwise, of two arrays that are broadcast together; and the product of matrices.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Binary {
    Add,
    Subtract,
    Multiply,
    Divide,
    FloorDivide,
    Remainder,
    Power,
    Maximum,
    Minimum,
    Equal,
    NotEqual,
    Less,
    LessEqual,
    Greater,
    GreaterEqual,
    LogicalAnd,
    LogicalOr,
    MatMul,
}

/// Along one axis, to one value.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Reduction {
    Sum,
    Mean,
    Max,
    Min,
    Prod,
    All,
    Any,
    LogSumExp,
    ArgMax,
    ArgMin,
}

/// What attention leaves out.
#[derive(Clone, Copy)]
pub(crate) enum Attend<'a> {
    Nothing,
    Causal,
    Array(Node<'a>),
}

/// How positions are turned.
pub(crate) struct Rope<'a> {
    pub(crate) dims: i32,
    pub(crate) traditional: bool,
    pub(crate) base: Option<f32>,
    pub(crate) scale: f32,
    pub(crate) offset: Result<i32, Node<'a>>,
    pub(crate) freqs: Option<Node<'a>>,
}

impl Runtime {
    pub(crate) fn full(&self, _shape: &[i32], _value: f64, _dtype: DType) -> Made {
        match *self {}
    }

    pub(crate) fn arange(&self, _start: f64, _stop: f64, _dtype: DType) -> Made {
        match *self {}
    }

    pub(crate) fn unary(&self, _op: Unary, _a: Node<'_>) -> Made {
        match *self {}
    }

    pub(crate) fn binary(&self, _op: Binary, _a: Node<'_>, _b: Node<'_>) -> Made {
        match *self {}
    }

    pub(crate) fn binary_scalar(&self, _op: Binary, _a: Node<'_>, _b: f64, _reversed: bool) -> Made {
        match *self {}
    }

    pub(crate) fn select(&self, _condition: Node<'_>, _a: Node<'_>, _b: Node<'_>) -> Made {
        match *self {}
    }

    pub(crate) fn as_type(&self, _a: Node<'_>, _dtype: DType) -> Made {
        match *self {}
    }

    pub(crate) fn reshape(&self, _a: Node<'_>, _shape: &[i32]) -> Made {
        match *self {}
    }

    pub(crate) fn broadcast_to(&self, _a: Node<'_>, _shape: &[i32]) -> Made {
        match *self {}
    }

    pub(crate) fn transpose(&self, _a: Node<'_>, _axes: &[i32]) -> Made {
        match *self {}
    }

    pub(crate) fn expand_dims(&self, _a: Node<'_>, _axis: i32) -> Made {
        match *self {}
    }

    pub(crate) fn squeeze(&self, _a: Node<'_>, _axis: i32) -> Made {
        match *self {}
    }

    pub(crate) fn contiguous(&self, _a: Node<'_>) -> Made {
        match *self {}
    }

    pub(crate) fn slice(&self, _a: Node<'_>, _start: &[i32], _stop: &[i32]) -> Made {
        match *self {}
    }

    pub(crate) fn concatenate(&self, _arrays: &[Node<'_>], _axis: i32) -> Made {
        match *self {}
    }

    pub(crate) fn stack(&self, _arrays: &[Node<'_>], _axis: i32) -> Made {
        match *self {}
    }

    pub(crate) fn repeat(&self, _a: Node<'_>, _times: i32, _axis: i32) -> Made {
        match *self {}
    }

    pub(crate) fn take(&self, _a: Node<'_>, _indices: Node<'_>, _axis: i32) -> Made {
        match *self {}
    }

    pub(crate) fn take_along_axis(&self, _a: Node<'_>, _indices: Node<'_>, _axis: i32) -> Made {
        match *self {}
    }

    pub(crate) fn reduce(&self, _op: Reduction, _a: Node<'_>, _axis: i32, _keep: bool) -> Made {
        match *self {}
    }

    pub(crate) fn cumsum(&self, _a: Node<'_>, _axis: i32) -> Made {
        match *self {}
    }

    pub(crate) fn softmax(&self, _a: Node<'_>, _axis: i32) -> Made {
        match *self {}
    }

    pub(crate) fn sort(&self, _a: Node<'_>, _axis: i32) -> Made {
        match *self {}
    }

    pub(crate) fn argsort(&self, _a: Node<'_>, _axis: i32) -> Made {
        match *self {}
    }

    pub(crate) fn argpartition(&self, _a: Node<'_>, _kth: i32, _axis: i32) -> Made {
        match *self {}
    }

    pub(crate) fn addmm(&self, _c: Node<'_>, _a: Node<'_>, _b: Node<'_>) -> Made {
        match *self {}
    }

    pub(crate) fn quantized_matmul(
        &self,
        _x: Node<'_>,
        _w: Node<'_>,
        _scales: Node<'_>,
        _biases: Node<'_>,
        _transpose: bool,
        _group_size: i32,
        _bits: i32,
    ) -> Made {
        match *self {}
    }

    pub(crate) fn dequantize(
        &self,
        _w: Node<'_>,
        _scales: Node<'_>,
        _biases: Node<'_>,
        _group_size: i32,
        _bits: i32,
    ) -> Made {
        match *self {}
    }

    pub(crate) fn rms_norm(&self, _x: Node<'_>, _weight: Option<Node<'_>>, _eps: f32) -> Made {
        match *self {}
    }

    pub(crate) fn layer_norm(
        &self,
        _x: Node<'_>,
        _weight: Option<Node<'_>>,
        _bias: Option<Node<'_>>,
        _eps: f32,
    ) -> Made {
        match *self {}
    }

    pub(crate) fn rope(&self, _x: Node<'_>, _rope: &Rope<'_>) -> Made {
        match *self {}
    }

    pub(crate) fn attention(&self, _q: Node<'_>, _k: Node<'_>, _v: Node<'_>, _scale: f32, _mask: Attend<'_>) -> Made {
        match *self {}
    }

    pub(crate) fn split(&self, _a: Node<'_>, _at: &[i32], _axis: i32) -> Result<Vec<Fresh>, Failure> {
        match *self {}
    }
}
