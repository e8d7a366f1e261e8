//! Other shapes of the same elements.

use crate::{Array, scope::sizes};

impl<'s> Array<'s> {
    /// The dimensions in another order: `axes` names each once.
    #[track_caller]
    #[must_use]
    pub fn transpose(self, axes: &[i32]) -> Self {
        self.apply("transpose", |runtime, a| runtime.transpose(a, axes))
    }

    /// The last two dimensions exchanged.
    #[track_caller]
    #[must_use]
    pub fn t(self) -> Self {
        let Ok(rank @ 2..) = i32::try_from(self.ndim()) else {
            return self.refuse("t", "a matrix has two dimensions at least");
        };
        let axes: Vec<i32> = (0..rank - 2).chain([rank - 1, rank - 2]).collect();
        self.apply("t", |runtime, a| runtime.transpose(a, &axes))
    }

    /// The same elements, row by row, in this shape. One size may be -1: what is left for it.
    #[track_caller]
    #[must_use]
    pub fn reshape(self, shape: &[i32]) -> Self {
        self.apply("reshape", |runtime, a| runtime.reshape(a, shape))
    }

    /// A new dimension of size 1 before this axis.
    #[track_caller]
    #[must_use]
    pub fn expand_dims(self, axis: i32) -> Self {
        self.apply("expand_dims", |runtime, a| runtime.expand_dims(a, axis))
    }

    /// Without this dimension, which is of size 1.
    #[track_caller]
    #[must_use]
    pub fn squeeze(self, axis: i32) -> Self {
        self.apply("squeeze", |runtime, a| runtime.squeeze(a, axis))
    }

    /// Repeated along dimensions of size 1, and along new ones in front, to this shape. Nothing is copied.
    #[track_caller]
    #[must_use]
    pub fn broadcast_to(self, shape: &[usize]) -> Self {
        match sizes(shape) {
            Ok(shape) => self.apply("broadcast_to", |runtime, a| runtime.broadcast_to(a, &shape)),
            Err(why) => self.refuse("broadcast_to", &why),
        }
    }

    /// Each element `times` times along the axis.
    #[track_caller]
    #[must_use]
    pub fn repeat(self, times: i32, axis: i32) -> Self {
        self.apply("repeat", |runtime, a| runtime.repeat(a, times, axis))
    }

    /// The same elements, row by row in memory, as [`data`](Self::data) wants them. Copies where they are not.
    #[track_caller]
    #[must_use]
    pub fn contiguous(self) -> Self {
        self.apply("contiguous", |runtime, a| runtime.contiguous(a))
    }
}
