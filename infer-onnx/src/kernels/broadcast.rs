//! Tensors of several shapes as if they were of one, as ONNX has it.

/// `N` shapes that fit each other, and the one that they are together.
///
/// Shapes are aligned at their last axes; an axis that one lacks, or has of size 1, is repeated. What is computed goes by rows, of the last axis.
pub(crate) struct Broadcast<const N: usize> {
    /// The sizes of all axes but the last, outermost first.
    outer: Vec<usize>,
    width: usize,
    /// How far it is from one element of such an axis to the next, for each shape: 0 where it is repeated.
    strides: Vec<[usize; N]>,
    widths: [usize; N],
}

impl<const N: usize> Broadcast<N> {
    /// `None` where they do not fit each other.
    pub(crate) fn new(shapes: [&[usize]; N]) -> Option<Self> {
        let rank = shapes.iter().map(|shape| shape.len()).max().unwrap_or(0).max(1);
        let size = |shape: &[usize], axis: usize| (axis + shape.len()).checked_sub(rank).map_or(1, |axis| shape[axis]);
        let mut sizes = vec![1; rank];
        for (axis, common) in sizes.iter_mut().enumerate() {
            for shape in shapes {
                match (*common, size(shape, axis)) {
                    (_, 1) => {}
                    (1, other) => *common = other,
                    (common, other) if common == other => {}
                    _ => return None,
                }
            }
        }
        let width = sizes.pop()?;
        let widths = shapes.map(|shape| size(shape, rank - 1));
        let mut distances = widths;
        let mut strides = vec![[0; N]; sizes.len()];
        for (axis, strides) in strides.iter_mut().enumerate().rev() {
            for (of, shape) in shapes.into_iter().enumerate() {
                let size = size(shape, axis);
                if size != 1 {
                    strides[of] = distances[of];
                }
                distances[of] *= size;
            }
        }
        Some(Self { outer: sizes, width, strides, widths })
    }

    /// The common shape.
    pub(crate) fn shape(&self) -> impl Iterator<Item = usize> {
        self.outer.iter().copied().chain([self.width])
    }

    /// How many numbers a row of the common shape has.
    pub(crate) fn width(&self) -> usize {
        self.width
    }

    /// How many numbers a row of one of the shapes has, and of the common one.
    #[inline(always)]
    pub(super) fn of(&self, shape: usize) -> (usize, usize) {
        (self.widths[shape], self.width)
    }

    /// Where the rows begin in each tensor, from one of them on; after the last the first comes again.
    #[inline(always)]
    pub(super) fn rows(&self, first: usize) -> Rows<'_, N> {
        let mut rows = Rows { of: self, at: vec![0; self.outer.len()], offsets: [0; N] };
        let mut left = first;
        for (axis, &size) in self.outer.iter().enumerate().rev() {
            rows.at[axis] = left % size.max(1);
            left /= size.max(1);
            for (offset, stride) in rows.offsets.iter_mut().zip(self.strides[axis]) {
                *offset += rows.at[axis] * stride;
            }
        }
        rows
    }
}

/// Rows, one after another.
pub(super) struct Rows<'a, const N: usize> {
    of: &'a Broadcast<N>,
    /// Where in the outer axes the next row is.
    at: Vec<usize>,
    offsets: [usize; N],
}

impl<const N: usize> Iterator for Rows<'_, N> {
    type Item = [usize; N];

    #[inline(always)]
    fn next(&mut self) -> Option<[usize; N]> {
        let now = self.offsets;
        for ((at, &size), strides) in self.at.iter_mut().zip(&self.of.outer).zip(&self.of.strides).rev() {
            *at += 1;
            for (offset, stride) in self.offsets.iter_mut().zip(strides) {
                *offset += stride;
            }
            if *at < size {
                break;
            }
            *at = 0;
            for (offset, stride) in self.offsets.iter_mut().zip(strides) {
                *offset -= stride * size;
            }
        }
        Some(now)
    }
}

/// Rows of one tensor, as wide as those of the common shape.
pub(super) struct Row<'a> {
    numbers: &'a [f32],
    width: usize,
    /// A row of one number as many times as there have to be, where it is repeated.
    repeated: Option<Vec<f32>>,
}

impl<'a> Row<'a> {
    #[inline(always)]
    pub(super) fn new(numbers: &'a [f32], (width, common): (usize, usize)) -> Self {
        Self { numbers, width, repeated: (width != common).then(|| vec![0.0; common]) }
    }

    /// The row that begins there.
    #[inline(always)]
    pub(super) fn at(&mut self, offset: usize) -> &[f32] {
        match &mut self.repeated {
            None => &self.numbers[offset..][..self.width],
            Some(repeated) => {
                repeated.fill(self.numbers[offset]);
                repeated
            }
        }
    }
}
