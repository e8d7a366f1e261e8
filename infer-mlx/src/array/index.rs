//! Parts.

use crate::{
    Array,
    operand::{Inner, Operand},
    raw,
};
use std::ops::{Bound, RangeBounds};

impl<'s> Array<'s> {
    /// A range of one axis. Its ends may count from the end of the axis (-1 is before the last), and must lie in it.
    #[track_caller]
    #[must_use]
    pub fn slice(self, axis: i32, range: impl RangeBounds<i32>) -> Self {
        let shape = self.shape();
        let Some(axis) = axis_of(axis, shape.len()) else {
            return self.refuse("slice", &format!("there is no axis {axis}"));
        };
        let size = shape[axis];
        let Some((start, stop)) = ends(&range, size) else {
            let range = (range.start_bound().cloned(), range.end_bound().cloned());
            return self.refuse("slice", &format!("{range:?} is no range of axis {axis}, which has {size}"));
        };
        let (mut starts, mut stops) = (vec![0; shape.len()], shape.to_vec());
        (starts[axis], stops[axis]) = (start, stop);
        self.apply("slice", |runtime, a| runtime.slice(a, &starts, &stops))
    }

    /// A range of every axis: from `start` on, and before `stop`.
    #[track_caller]
    #[must_use]
    pub fn slice_many(self, start: &[i32], stop: &[i32]) -> Self {
        let shape = self.shape();
        if start.len() != shape.len() || stop.len() != shape.len() || !within(start, stop, shape) {
            return self.refuse("slice_many", &format!("{start:?} to {stop:?} is no part of it"));
        }
        self.apply("slice_many", |runtime, a| runtime.slice(a, start, stop))
    }

    /// Of the last two dimensions what is on and below the diagonal `k` (0 is the main one, larger ones are above it); zeros elsewhere.
    #[track_caller]
    #[must_use]
    pub fn tril(self, k: i32) -> Self {
        self.apply("tril", |runtime, a| runtime.tril(a, k))
    }

    /// Of the last two dimensions what is on and above the diagonal `k`; zeros elsewhere.
    #[track_caller]
    #[must_use]
    pub fn triu(self, k: i32) -> Self {
        self.apply("triu", |runtime, a| runtime.triu(a, k))
    }

    /// With the elements from `start` on, of every axis, replaced by those of `with`.
    #[track_caller]
    #[must_use]
    pub fn slice_update(self, with: impl Operand<'s>, start: &[i32]) -> Self {
        let shape = self.shape();
        self.with("slice_update", &with, |runtime, a, with| {
            let part = runtime.info(with)?.shape;
            let stop: Vec<i32> = start.iter().zip(part).map(|(&start, &part)| start.saturating_add(part)).collect();
            if start.len() != shape.len() || part.len() != shape.len() || !within(start, &stop, shape) {
                return Err(raw::Failure::invalid(format!("{start:?} to {stop:?} is no part of it")));
            }
            runtime.slice_update(a, with, start, &stop)
        })
    }

    /// A buffer with these rows from `offset` on along an axis: in its own memory where MLX computes on the CPU, so that the rows that were
    /// there are gone for whoever has the buffer. Its elements are not given out as data any more.
    #[track_caller]
    #[must_use]
    pub(crate) fn kv_write(self, rows: Array<'s>, axis: i32, offset: i32) -> Self {
        self.with("kv_write", &rows, |runtime, buffer, rows| runtime.kv_write(buffer, rows, axis, offset))
    }

    /// The parts of these sizes, one after the other along an axis, which they make up together.
    #[track_caller]
    #[must_use]
    pub fn split(self, axis: i32, sizes: &[usize]) -> Vec<Self> {
        let all_fail = |array: Self| vec![array; sizes.len()];
        let shape = self.shape();
        let Inner::Live(node) = self.inner() else { return all_fail(self) };
        let Some(place) = axis_of(axis, shape.len()) else {
            return all_fail(self.refuse("split", &format!("there is no axis {axis}")));
        };
        let Some(cuts) = cuts(sizes, shape[place]) else {
            let why = format!("{sizes:?} do not make up axis {axis}, which has {}", shape[place]);
            return all_fail(self.refuse("split", &why));
        };
        let parts = self.scope.runtime().split(node, &cuts, axis);
        match parts {
            Ok(parts) => parts.into_iter().map(|part| self.scope.put(part)).collect(),
            Err(failure) => all_fail(self.scope.take_in("split", &[node], Err(failure))),
        }
    }

    /// The elements, or whole rows, at these indices of an axis, which take the place of that axis.
    #[track_caller]
    #[must_use]
    pub fn take(self, indices: impl Operand<'s>, axis: i32) -> Self {
        self.with("take", &indices, |runtime, a, indices| runtime.take(a, indices, axis))
    }

    /// Of each row along the axis the elements at that row's indices.
    #[track_caller]
    #[must_use]
    pub fn take_along_axis(self, indices: impl Operand<'s>, axis: i32) -> Self {
        self.with("take_along_axis", &indices, |runtime, a, indices| runtime.take_along_axis(a, indices, axis))
    }
}

/// Whether these are ranges of the axes.
fn within(start: &[i32], stop: &[i32], shape: &[i32]) -> bool {
    let within = |((&start, &stop), &size)| 0 <= start && start <= stop && stop <= size;
    start.iter().zip(stop).zip(shape).all(within)
}

/// An axis that may count from the end.
pub(super) fn axis_of(axis: i32, rank: usize) -> Option<usize> {
    let rank = i64::try_from(rank).ok()?;
    let from_start = if axis < 0 { i64::from(axis) + rank } else { axis.into() };
    (0..rank).contains(&from_start).then_some(from_start as usize)
}

/// Where a range begins and ends in an axis of this size.
fn ends(range: &impl RangeBounds<i32>, size: i32) -> Option<(i32, i32)> {
    let place = |at: i32| if at < 0 { at.checked_add(size) } else { Some(at) };
    let start = match range.start_bound() {
        Bound::Included(&at) => place(at)?,
        Bound::Excluded(&at) => place(at)?.checked_add(1)?,
        Bound::Unbounded => 0,
    };
    let stop = match range.end_bound() {
        Bound::Included(&at) => place(at)?.checked_add(1)?,
        Bound::Excluded(&at) => place(at)?,
        Bound::Unbounded => size,
    };
    (0 <= start && start <= stop && stop <= size).then_some((start, stop))
}

/// Where parts of these sizes begin, but the first; if they make up an axis of `size` together.
fn cuts(sizes: &[usize], size: i32) -> Option<Vec<i32>> {
    let mut ends = Vec::with_capacity(sizes.len());
    let mut end = 0i32;
    for &part in sizes {
        end = end.checked_add(i32::try_from(part).ok()?)?;
        ends.push(end);
    }
    (end == size).then(|| {
        ends.pop();
        ends
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_make_up_their_axis() {
        assert_eq!(cuts(&[2, 0, 3], 5), Some(vec![2, 2]));
        assert_eq!(cuts(&[5], 5), Some(vec![]));
        assert_eq!(cuts(&[], 0), Some(vec![]));
        for sizes in [&[2, 2][..], &[2, 4], &[], &[usize::MAX, 6], &[i32::MAX as usize, 6]] {
            assert_eq!(cuts(sizes, 5), None, "{sizes:?}");
        }
    }

    #[test]
    fn ranges_lie_in_the_axis_or_are_refused() {
        assert_eq!(ends(&(1..3), 4), Some((1, 3)));
        assert_eq!(ends(&(..=3), 4), Some((0, 4)));
        assert_eq!(ends(&(-2..), 4), Some((2, 4)));
        assert_eq!(ends(&(..-1), 4), Some((0, 3)));
        assert_eq!(ends(&(4..), 4), Some((4, 4)));
        assert_eq!(ends(&(..), 0), Some((0, 0)));
        let third = 3;
        for (range, size) in [(0..5, 4), (-5..2, 4), (third..2, 4), (i32::MIN..0, 4)] {
            assert_eq!(ends(&range, size), None, "{range:?}");
        }
        assert_eq!(ends(&(..=i32::MAX), i32::MAX), None);
    }

    #[test]
    fn an_axis_counts_from_either_end() {
        assert_eq!([0, 2, -1, -3].map(|axis| axis_of(axis, 3)), [Some(0), Some(2), Some(2), Some(0)]);
        assert_eq!([3, -4, i32::MIN].map(|axis| axis_of(axis, 3)), [None; 3]);
        assert_eq!(axis_of(0, 0), None);
    }
}
