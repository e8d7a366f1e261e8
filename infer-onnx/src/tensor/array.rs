//! Tensors as arrays of `ndarray`.

use super::{Element, TensorView};
use crate::error::{error, invalid_input};
use infer_core::{ErrorKind, Result};
use ndarray::{ArrayRef, ArrayView, Dimension, IxDyn};

impl<'a> TensorView<'a> {
    /// A view of an array's elements, which must lie in the standard order: row-major, without gaps.
    ///
    /// ```
    /// use infer_onnx::TensorView;
    /// use ndarray::array;
    ///
    /// let array = array![[1.0_f32, 2.0], [3.0, 4.0]];
    /// assert_eq!(TensorView::from_array(&array)?.shape(), [2, 2]);
    ///
    /// let error = TensorView::from_array(&array.t()).unwrap_err();
    /// assert!(error.to_string().contains("as_standard_layout"), "{error}");
    /// assert_eq!(TensorView::from_array(&array.t().as_standard_layout())?.as_slice::<f32>()?, [1.0, 3.0, 2.0, 4.0]);
    /// # Ok::<(), infer_core::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`InvalidInput`](ErrorKind::InvalidInput) when they do not: nothing is copied unasked.
    pub fn from_array<T: Element, D: Dimension>(array: &'a ArrayRef<T, D>) -> Result<Self> {
        let Some(elements) = array.as_slice() else {
            let message = format!(
                "an array of shape {:?} does not lie in the standard order (it is transposed, sliced or reversed); copy it into that with \
                 `as_standard_layout()`",
                array.shape()
            );
            return Err(invalid_input(message));
        };
        Self::new(array.shape(), elements)
    }

    /// The tensor as an array, not copied.
    ///
    /// # Errors
    /// [`InvalidInput`](ErrorKind::InvalidInput) when its elements are of another type.
    pub fn as_array<T: Element>(&self) -> Result<ArrayView<'a, T, IxDyn>> {
        let elements = self.as_slice::<T>()?;
        ArrayView::from_shape(IxDyn(self.shape()), elements)
            .map_err(|why| error(ErrorKind::InvalidInput, "the tensor is no array of `ndarray`").with_source(why))
    }
}
