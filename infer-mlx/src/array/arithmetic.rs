//! Operators, comparisons, choices.

use crate::{
    Array, DType, Owned,
    operand::{Inner, Operand},
    raw::Binary,
};
use std::ops::{Add, Div, Mul, Neg, Sub};

impl<'s> Array<'s> {
    /// The larger of each two elements.
    #[track_caller]
    #[must_use]
    pub fn maximum(self, rhs: impl Operand<'s>) -> Self {
        self.binary("maximum", Binary::Maximum, rhs, false)
    }

    /// The smaller of each two elements.
    #[track_caller]
    #[must_use]
    pub fn minimum(self, rhs: impl Operand<'s>) -> Self {
        self.binary("minimum", Binary::Minimum, rhs, false)
    }

    /// Each element to the power of the other. The power of integers is a number, of 0 or more.
    #[track_caller]
    #[must_use]
    pub fn pow(self, rhs: impl Operand<'s>) -> Self {
        self.binary("pow", Binary::Power, rhs, false)
    }

    /// How often the other goes into each element: rounded down, and of integers towards 0. Integers are divided by a number, of 1 or more.
    #[track_caller]
    #[must_use]
    pub fn floor_divide(self, rhs: impl Operand<'s>) -> Self {
        self.binary("floor_divide", Binary::FloorDivide, rhs, false)
    }

    /// What is left of each element when the other is taken from it as often as it goes: with the sign of the other. Integers are divided by a number, of 1
    /// or more.
    #[track_caller]
    #[must_use]
    pub fn remainder(self, rhs: impl Operand<'s>) -> Self {
        self.binary("remainder", Binary::Remainder, rhs, false)
    }

    /// Whether each element is equal to the other: of [`DType::Bool`], as with all comparisons.
    #[track_caller]
    #[must_use]
    pub fn eq(self, rhs: impl Operand<'s>) -> Self {
        self.binary("eq", Binary::Equal, rhs, false)
    }

    /// Whether they differ.
    #[track_caller]
    #[must_use]
    pub fn ne(self, rhs: impl Operand<'s>) -> Self {
        self.binary("ne", Binary::NotEqual, rhs, false)
    }

    /// Whether each element is less than the other.
    #[track_caller]
    #[must_use]
    pub fn lt(self, rhs: impl Operand<'s>) -> Self {
        self.binary("lt", Binary::Less, rhs, false)
    }

    /// Whether each element is less than the other, or equal.
    #[track_caller]
    #[must_use]
    pub fn le(self, rhs: impl Operand<'s>) -> Self {
        self.binary("le", Binary::LessEqual, rhs, false)
    }

    /// Whether each element is greater than the other.
    #[track_caller]
    #[must_use]
    pub fn gt(self, rhs: impl Operand<'s>) -> Self {
        self.binary("gt", Binary::Greater, rhs, false)
    }

    /// Whether each element is greater than the other, or equal.
    #[track_caller]
    #[must_use]
    pub fn ge(self, rhs: impl Operand<'s>) -> Self {
        self.binary("ge", Binary::GreaterEqual, rhs, false)
    }

    /// Whether both are true, or not zero.
    #[track_caller]
    #[must_use]
    pub fn logical_and(self, rhs: impl Operand<'s>) -> Self {
        self.binary("logical_and", Binary::LogicalAnd, rhs, false)
    }

    /// Whether one is true, or not zero.
    #[track_caller]
    #[must_use]
    pub fn logical_or(self, rhs: impl Operand<'s>) -> Self {
        self.binary("logical_or", Binary::LogicalOr, rhs, false)
    }

    /// Where this condition holds the elements of `a`, elsewhere those of `b`. A number takes the type of the other one.
    #[track_caller]
    #[must_use]
    pub fn select(self, a: impl Operand<'s>, b: impl Operand<'s>) -> Self {
        let home = super::deeper(super::deeper(self.scope, a.home()), b.home());
        // A number takes the type of the array beside it; two numbers are `F32`.
        let dtype = [a.value().0, b.value().0].iter().find_map(|side| match side {
            Inner::Live(node) => home.runtime().info(*node).ok().map(|info| info.dtype),
            _ => None,
        });
        let dtype = dtype.unwrap_or(DType::F32);
        let side = |value| match value {
            Inner::Number(number) => home.scalar(number, dtype).inner(),
            other => other,
        };
        let others = [a.value().0, b.value().0].map(|value| crate::operand::Value(side(value)));
        self.combine("select", Some(home), others, |runtime, [condition, a, b]| runtime.select(condition, a, b))
    }

    #[track_caller]
    fn binary(self, op: &'static str, kind: Binary, rhs: impl Operand<'s>, reversed: bool) -> Self {
        let Inner::Number(number) = rhs.value().0 else {
            return self.with(
                op,
                &rhs,
                |runtime, a, b| {
                    if reversed { runtime.binary(kind, b, a) } else { runtime.binary(kind, a, b) }
                },
            );
        };
        self.apply(op, |runtime, a| runtime.binary_scalar(kind, a, number.into(), reversed))
    }
}

macro_rules! operators {
    ($($operator:ident $method:ident $kind:ident),* $(,)?) => {$(
        impl<'s, R: Operand<'s>> $operator<R> for Array<'s> {
            type Output = Array<'s>;

            #[track_caller]
            fn $method(self, rhs: R) -> Array<'s> {
                self.binary(stringify!($method), Binary::$kind, rhs, false)
            }
        }

        impl<'s> $operator<Array<'s>> for f32 {
            type Output = Array<'s>;

            #[track_caller]
            fn $method(self, rhs: Array<'s>) -> Array<'s> {
                rhs.binary(stringify!($method), Binary::$kind, self, true)
            }
        }

        impl<'s> $operator<Array<'s>> for &Owned {
            type Output = Array<'s>;

            #[track_caller]
            fn $method(self, rhs: Array<'s>) -> Array<'s> {
                rhs.binary(stringify!($method), Binary::$kind, self, true)
            }
        }
    )*};
}

operators!(Add add Add, Sub sub Subtract, Mul mul Multiply, Div div Divide);

impl<'s> Neg for Array<'s> {
    type Output = Array<'s>;

    #[track_caller]
    fn neg(self) -> Array<'s> {
        self.apply("neg", |runtime, a| runtime.unary(crate::raw::Unary::Negative, a))
    }
}
