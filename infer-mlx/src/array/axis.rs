//! Along an axis.

use crate::{Array, raw::Reduction};

macro_rules! reductions {
    ($($(#[$doc:meta])* $name:ident $op:ident),* $(,)?) => {
        impl<'s> Array<'s> {$(
            $(#[$doc])*
            #[track_caller]
            #[must_use]
            pub fn $name(self, axis: i32, keep: bool) -> Self {
                self.apply(stringify!($name), |runtime, a| runtime.reduce(Reduction::$op, a, axis, keep))
            }
        )*}
    };
}

reductions! {
    /// The sum along an axis, which is kept with size 1 or gone.
    sum Sum,
    /// The mean along an axis, which is kept with size 1 or gone.
    mean Mean,
    /// The largest along an axis, which is kept with size 1 or gone.
    max Max,
    /// The smallest along an axis, which is kept with size 1 or gone.
    min Min,
    /// The product along an axis, which is kept with size 1 or gone.
    prod Prod,
    /// Whether all are true along an axis, which is kept with size 1 or gone.
    all All,
    /// Whether one is true along an axis, which is kept with size 1 or gone.
    any Any,
    /// The logarithm of the sum of e to the power of each, along an axis, which is kept with size 1 or gone.
    logsumexp LogSumExp,
    /// Where the largest is along an axis, which is kept with size 1 or gone: of [`DType::U32`](crate::DType::U32), the first of equals.
    argmax ArgMax,
    /// Where the smallest is along an axis, which is kept with size 1 or gone: of [`DType::U32`](crate::DType::U32), the first of equals.
    argmin ArgMin,
}

impl<'s> Array<'s> {
    /// e to the power of each over their sum along the axis, computed in 32 bits whatever the type.
    #[track_caller]
    #[must_use]
    pub fn softmax(self, axis: i32) -> Self {
        self.apply("softmax", |runtime, a| runtime.softmax(a, axis))
    }

    /// Sums of all elements up to each one along the axis.
    #[track_caller]
    #[must_use]
    pub fn cumsum(self, axis: i32) -> Self {
        self.apply("cumsum", |runtime, a| runtime.cumsum(a, axis))
    }

    /// The elements along the axis, the smallest first.
    #[track_caller]
    #[must_use]
    pub fn sort(self, axis: i32) -> Self {
        self.apply("sort", |runtime, a| runtime.sort(a, axis))
    }

    /// Where the elements along the axis are, the smallest first: of [`DType::U32`](crate::DType::U32).
    #[track_caller]
    #[must_use]
    pub fn argsort(self, axis: i32) -> Self {
        self.apply("argsort", |runtime, a| runtime.argsort(a, axis))
    }

    /// As [`argsort`](Self::argsort) at the index `kth`; before it are the smaller ones, behind it the larger ones, in any order.
    #[track_caller]
    #[must_use]
    pub fn argpartition(self, kth: i32, axis: i32) -> Self {
        self.apply("argpartition", |runtime, a| runtime.argpartition(a, kth, axis))
    }
}
