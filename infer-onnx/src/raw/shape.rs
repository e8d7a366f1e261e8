//! Dimensions, as the runtime counts and as Rust does.

/// The dimensions of a tensor. Few of them, which is what tensors have, lie in here: then a run asks no memory for them.
pub(crate) struct Shape(Dims);

enum Dims {
    Few { rank: usize, native: [i64; FEW], ours: [usize; FEW] },
    Many { native: Vec<i64>, ours: Vec<usize> },
}

const FEW: usize = 6;

impl Shape {
    /// No dimension: what a scalar has, and what is no tensor.
    pub(crate) const NONE: Self = Self(Dims::Few { rank: 0, native: [0; FEW], ours: [0; FEW] });

    /// From Rust's. `None` where one is larger than can be.
    pub(crate) fn from_ours(dims: &[usize]) -> Option<Self> {
        Self::from(dims.iter().map(|&dim| Some((i64::try_from(dim).ok()?, dim))))
    }

    /// From the runtime's. `None` where one is negative.
    pub(crate) fn from_native(dims: &[i64]) -> Option<Self> {
        Self::from(dims.iter().map(|&dim| Some((dim, usize::try_from(dim).ok()?))))
    }

    fn from(mut dims: impl ExactSizeIterator<Item = Option<(i64, usize)>>) -> Option<Self> {
        let rank = dims.len();
        if rank > FEW {
            let (native, ours) = dims.collect::<Option<_>>()?;
            return Some(Self(Dims::Many { native, ours }));
        }
        let (mut native, mut ours) = ([0; FEW], [0; FEW]);
        for place in native.iter_mut().zip(&mut ours) {
            let Some(dim) = dims.next() else { break };
            (*place.0, *place.1) = dim?;
        }
        Some(Self(Dims::Few { rank, native, ours }))
    }

    /// As the runtime counts; none is negative.
    pub(crate) fn native(&self) -> &[i64] {
        match &self.0 {
            Dims::Few { rank, native, .. } => &native[..*rank],
            Dims::Many { native, .. } => native,
        }
    }

    /// As Rust counts.
    pub(crate) fn ours(&self) -> &[usize] {
        match &self.0 {
            Dims::Few { rank, ours, .. } => &ours[..*rank],
            Dims::Many { ours, .. } => ours,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dimensions_of_every_rank_come_back() {
        for rank in 0..2 * FEW {
            let (ours, native): (Vec<usize>, Vec<i64>) = (0..rank).map(|dim| (dim * 3, dim as i64 * 3)).unzip();
            for shape in [Shape::from_ours(&ours), Shape::from_native(&native)] {
                let shape = shape.unwrap();
                assert_eq!((shape.ours(), shape.native()), (&ours[..], &native[..]));
            }
            let wrong: Vec<i64> = native.iter().copied().chain([-1]).collect();
            assert!(Shape::from_native(&wrong).is_none());
        }
        assert!(Shape::NONE.ours().is_empty() && Shape::NONE.native().is_empty());
        assert!(Shape::from_ours(&[1, usize::MAX]).is_none());
    }
}
