//! Functions of each element.

use crate::{Array, DType, raw::Unary};

macro_rules! functions {
    ($($(#[$doc:meta])* $name:ident $op:ident),* $(,)?) => {
        impl<'s> Array<'s> {$(
            $(#[$doc])*
            #[track_caller]
            #[must_use]
            pub fn $name(self) -> Self {
                self.apply(stringify!($name), |runtime, a| runtime.unary(Unary::$op, a))
            }
        )*}
    };
}

functions! {
    /// The size of each element without its sign.
    abs Abs,
    /// e to the power of each element.
    exp Exp,
    /// The natural logarithm.
    log Log,
    /// The square root.
    sqrt Sqrt,
    /// 1 over the square root.
    rsqrt Rsqrt,
    /// Each element times itself.
    square Square,
    /// 1 over each element.
    reciprocal Reciprocal,
    /// The sine, of radians.
    sin Sin,
    /// The cosine, of radians.
    cos Cos,
    /// The hyperbolic tangent.
    tanh Tanh,
    /// 1 / (1 + e^-x).
    sigmoid Sigmoid,
    /// The error function.
    erf Erf,
    /// The next whole number below.
    floor Floor,
    /// The next whole number above.
    ceil Ceil,
    /// -1, 0 or 1.
    sign Sign,
    /// Whether each element is false, or zero.
    logical_not LogicalNot,
    /// Whether each element is not a number.
    is_nan IsNan,
    /// Whether each element is a number, and no infinity.
    is_finite IsFinite,
    /// x · sigmoid(x).
    silu Silu,
    /// x · (1 + erf(x / √2)) / 2.
    gelu Gelu,
    /// x · (1 + tanh(√(2/π) · (x + 0.044715 x³))) / 2.
    gelu_tanh GeluTanh,
}

impl<'s> Array<'s> {
    /// The elements as another type.
    #[track_caller]
    #[must_use]
    pub fn as_type(self, dtype: DType) -> Self {
        self.apply("as_type", |runtime, a| runtime.as_type(a, dtype))
    }

    /// The same bytes as elements of another type, of which the last axis has as many more or fewer as they are smaller or larger.
    #[track_caller]
    #[must_use]
    pub fn view(self, dtype: DType) -> Self {
        if dtype == DType::Bool && self.dtype() != DType::Bool {
            return self.refuse("view", "not all bytes are false or true: compare them with 0 instead");
        }
        self.apply("view", |runtime, a| runtime.view(a, dtype))
    }
}
