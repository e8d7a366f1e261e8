//! Tensors that are owned.

use super::{Element, TensorView, check_len, view::Data};
use crate::{DType, raw};
use infer_core::Result;
use std::{fmt, sync::Arc};

/// A tensor of one's own: elements in row-major order, with a shape. Cloning it copies no elements.
///
/// ```
/// use infer_onnx::Tensor;
///
/// let tensor = Tensor::new(&[2, 2], vec![1_i64, 2, 3, 4])?;
/// assert_eq!(tensor.view().as_slice::<i64>()?, [1, 2, 3, 4]);
/// # Ok::<(), infer_core::Error>(())
/// ```
#[derive(Clone)]
pub struct Tensor {
    dtype: DType,
    shape: Vec<usize>,
    data: Arc<Storage>,
}

enum Storage {
    Elements(Box<dyn Bytes>),
    Strings(Vec<String>),
    /// Where the runtime has it.
    Runtime(raw::Value),
}

/// A vector of elements of whatever type.
trait Bytes: Send + Sync {
    fn bytes(&self) -> &[u8];
}

impl<T: Element> Bytes for Vec<T> {
    fn bytes(&self) -> &[u8] {
        raw::as_bytes(self)
    }
}

/// So many bytes, beginning where any element may.
struct Words(Vec<u64>, usize);

impl Bytes for Words {
    fn bytes(&self) -> &[u8] {
        &raw::as_bytes(&self.0)[..self.1]
    }
}

impl Tensor {
    /// A tensor of these elements, of which there must be as many as the shape has.
    ///
    /// # Errors
    /// [`InvalidInput`](infer_core::ErrorKind::InvalidInput) when there are not.
    pub fn new<T: Element>(shape: &[usize], elements: Vec<T>) -> Result<Self> {
        check_len(shape, elements.len())?;
        Ok(Self::of(T::DTYPE, shape, Storage::Elements(Box::new(elements))))
    }

    /// A tensor of strings.
    ///
    /// # Errors
    /// [`InvalidInput`](infer_core::ErrorKind::InvalidInput) when there are not as many as the shape has.
    pub fn strings(shape: &[usize], strings: Vec<String>) -> Result<Self> {
        check_len(shape, strings.len())?;
        Ok(Self::of(DType::String, shape, Storage::Strings(strings)))
    }

    /// A tensor of any type but strings, copied from bytes in the machine's order.
    ///
    /// # Errors
    /// As of [`TensorView::from_bytes`], but for where the bytes begin.
    pub fn from_bytes(dtype: DType, shape: &[usize], bytes: &[u8]) -> Result<Self> {
        let words = Words::copy_of(bytes);
        TensorView::from_bytes(dtype, shape, words.bytes())?;
        Ok(Self::of(dtype, shape, Storage::Elements(Box::new(words))))
    }

    /// What a graph gave, where it is.
    pub(crate) fn of_runtime(value: raw::Value) -> Result<Self> {
        let view = TensorView::of_runtime(&value)?;
        let (dtype, shape) = (view.dtype(), view.shape().to_vec());
        Ok(Self { dtype, shape, data: Arc::new(Storage::Runtime(value)) })
    }

    pub(super) fn copy_of(view: TensorView<'_>) -> Result<Self> {
        let data = match view.bytes() {
            Some(bytes) => Storage::Elements(Box::new(Words::copy_of(bytes))),
            None => Storage::Strings(view.to_strings()?),
        };
        Ok(Self::of(view.dtype(), view.shape(), data))
    }

    fn of(dtype: DType, shape: &[usize], data: Storage) -> Self {
        Self { dtype, shape: shape.to_vec(), data: Arc::new(data) }
    }

    /// What the elements are.
    #[must_use]
    pub fn dtype(&self) -> DType {
        self.dtype
    }

    /// The dimensions, outermost first; a scalar has none.
    #[must_use]
    pub fn shape(&self) -> &[usize] {
        &self.shape
    }

    /// The tensor, borrowed: that is how elements are looked at.
    #[must_use]
    pub fn view(&self) -> TensorView<'_> {
        let data = match &*self.data {
            Storage::Elements(elements) => Data::Bytes(elements.bytes()),
            Storage::Strings(strings) => Data::Strings(strings),
            Storage::Runtime(value) if self.dtype == DType::String => Data::Runtime(value),
            Storage::Runtime(value) => Data::Bytes(value.bytes()),
        };
        TensorView::of(self.dtype, &self.shape, data)
    }
}

impl Words {
    fn copy_of(bytes: &[u8]) -> Self {
        let word = |bytes: &[u8]| {
            let mut word = [0; 8];
            word[..bytes.len()].copy_from_slice(bytes);
            u64::from_ne_bytes(word)
        };
        Self(bytes.chunks(8).map(word).collect(), bytes.len())
    }
}

impl fmt::Debug for Tensor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Tensor({}{:?})", self.dtype, self.shape)
    }
}
