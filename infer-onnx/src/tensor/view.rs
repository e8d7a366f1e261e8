//! Tensors that are borrowed.

use super::{Element, check_len};
use crate::{
    DType, Tensor,
    error::{error, invalid_input},
    raw,
};
use infer_core::{ErrorKind, Result};
use std::fmt;

/// A tensor that lies somewhere else: in the caller's memory, or where the runtime wrote it. Copying it copies no elements.
///
/// The elements are in row-major order, without gaps: the last dimension is the one whose elements lie side by side.
///
/// ```
/// use infer_onnx::TensorView;
///
/// let pixels = [0.0_f32, 0.5, 1.0, 0.25, 0.5, 0.75];
/// let view = TensorView::new(&[2, 3], &pixels)?;
/// assert_eq!((view.shape(), view.len()), (&[2, 3][..], 6));
/// assert_eq!(view.as_slice::<f32>()?[3], 0.25);
///
/// let error = TensorView::new(&[2, 2], &pixels).unwrap_err();
/// assert!(error.to_string().contains("4 elements, but 6 are there"), "{error}");
/// assert!(view.as_slice::<f64>().is_err(), "they are no float64");
/// # Ok::<(), infer_core::Error>(())
/// ```
#[derive(Clone, Copy)]
pub struct TensorView<'a> {
    dtype: DType,
    shape: &'a [usize],
    data: Data<'a>,
}

/// Where the elements are.
#[derive(Clone, Copy)]
pub(super) enum Data<'a> {
    Bytes(&'a [u8]),
    Texts(&'a [&'a str]),
    Strings(&'a [String]),
    /// Strings of the runtime's.
    Runtime(&'a raw::Value),
}

impl<'a> TensorView<'a> {
    /// A view of these elements, of which there must be as many as the shape has.
    ///
    /// # Errors
    /// [`InvalidInput`](ErrorKind::InvalidInput) when there are not.
    pub fn new<T: Element>(shape: &'a [usize], elements: &'a [T]) -> Result<Self> {
        check_len(shape, elements.len())?;
        Ok(Self { dtype: T::DTYPE, shape, data: Data::Bytes(raw::as_bytes(elements)) })
    }

    /// A view of elements of any type but strings, as bytes in the machine's order: the way in for types that Rust does not have.
    ///
    /// # Errors
    /// [`InvalidInput`](ErrorKind::InvalidInput) when there are not as many bytes as the shape takes, when they do not begin where such an
    /// element may, or when they are no elements (a bool that is neither 0 nor 1).
    pub fn from_bytes(dtype: DType, shape: &'a [usize], bytes: &'a [u8]) -> Result<Self> {
        check_bytes(dtype, shape, bytes)?;
        if dtype == DType::Bool && bytes.iter().any(|&byte| byte > 1) {
            return Err(invalid_input("a tensor of bools has bytes that are neither 0 nor 1"));
        }
        Ok(Self { dtype, shape, data: Data::Bytes(bytes) })
    }

    /// A view of strings: `&[&str]` or `&[String]`.
    ///
    /// ```
    /// use infer_onnx::TensorView;
    ///
    /// let names = TensorView::strings(&[2], &["one", "two"])?;
    /// assert_eq!(names.to_strings()?, ["one", "two"]);
    /// # Ok::<(), infer_core::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`InvalidInput`](ErrorKind::InvalidInput) when there are not as many as the shape has.
    pub fn strings<S: Text + 'a>(shape: &'a [usize], strings: &'a [S]) -> Result<Self> {
        check_len(shape, strings.len())?;
        Ok(Self { dtype: DType::String, shape, data: S::erase(strings).0 })
    }

    /// A tensor of the runtime's.
    pub(crate) fn of_runtime(value: &'a raw::Value) -> Result<Self> {
        let dtype = value.dtype().ok_or_else(|| invalid_input("the value is no tensor"))?;
        let data = if dtype == DType::String { Data::Runtime(value) } else { Data::Bytes(value.bytes()) };
        Ok(Self { dtype, shape: value.dims(), data })
    }

    /// Of parts that were looked at.
    pub(super) fn of(dtype: DType, shape: &'a [usize], data: Data<'a>) -> Self {
        Self { dtype, shape, data }
    }

    /// What the elements are.
    #[must_use]
    pub fn dtype(&self) -> DType {
        self.dtype
    }

    /// The dimensions, outermost first; a scalar has none.
    #[must_use]
    pub fn shape(&self) -> &'a [usize] {
        self.shape
    }

    /// How many elements there are: the product of the dimensions.
    #[must_use]
    pub fn len(&self) -> usize {
        self.shape.iter().product()
    }

    /// Whether there are none: a dimension is zero.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The elements.
    ///
    /// # Errors
    /// [`InvalidInput`](ErrorKind::InvalidInput) when they are of another type.
    pub fn as_slice<T: Element>(&self) -> Result<&'a [T]> {
        let Some(bytes) = self.bytes().filter(|_| self.dtype == T::DTYPE) else {
            return Err(invalid_input(format!("the elements are {}, not {}", self.dtype, T::DTYPE)));
        };
        let wrong = || error(ErrorKind::Runtime, format!("a tensor of {} has bytes that are none", self.dtype));
        raw::as_elements(bytes).ok_or_else(wrong)
    }

    /// The elements as bytes in the machine's order; `None` for strings.
    #[must_use]
    pub fn bytes(&self) -> Option<&'a [u8]> {
        match self.data {
            Data::Bytes(bytes) => Some(bytes),
            _ => None,
        }
    }

    /// The elements of a tensor of strings, copied.
    ///
    /// # Errors
    /// [`InvalidInput`](ErrorKind::InvalidInput) when they are of another type; [`Runtime`](ErrorKind::Runtime) when the graph gave one that is no
    /// text: see [`to_byte_strings`](Self::to_byte_strings).
    pub fn to_strings(&self) -> Result<Vec<String>> {
        match self.data {
            Data::Texts(texts) => Ok(texts.iter().map(|&text| text.to_owned()).collect()),
            Data::Strings(strings) => Ok(strings.to_vec()),
            Data::Bytes(_) | Data::Runtime(_) => {
                let strings = self.to_byte_strings()?.into_iter().enumerate().map(|(index, bytes)| {
                    String::from_utf8(bytes).map_err(|why| {
                        error(ErrorKind::Runtime, format!("string {index} is no UTF-8")).with_source(why)
                    })
                });
                strings.collect()
            }
        }
    }

    /// The same as bytes, which need not be text.
    ///
    /// # Errors
    /// [`InvalidInput`](ErrorKind::InvalidInput) when the elements are of another type.
    pub fn to_byte_strings(&self) -> Result<Vec<Vec<u8>>> {
        match self.data {
            Data::Texts(texts) => Ok(texts.iter().map(|text| text.as_bytes().to_vec()).collect()),
            Data::Strings(strings) => Ok(strings.iter().map(|string| string.as_bytes().to_vec()).collect()),
            Data::Runtime(value) => value.strings(),
            Data::Bytes(_) => Err(invalid_input(format!("the elements are {}, not strings", self.dtype))),
        }
    }

    /// The tensor, copied.
    ///
    /// # Errors
    /// As of [`to_strings`](Self::to_strings).
    pub fn to_tensor(&self) -> Result<Tensor> {
        Tensor::copy_of(*self)
    }

    /// The value that a run is given: over this memory where it can be, of a copy where the elements are strings.
    pub(crate) fn to_raw(self) -> Result<raw::Borrowed<'a>> {
        match self.data {
            Data::Bytes(bytes) => raw::Value::view(self.dtype, raw_shape(self.shape)?.native(), bytes),
            _ => self.to_raw_copy().map(Into::into),
        }
    }

    /// The same in memory of the runtime's own, always copied.
    pub(crate) fn to_raw_copy(self) -> Result<raw::Value> {
        let shape = raw_shape(self.shape)?;
        let shape = shape.native();
        match self.data {
            Data::Bytes(bytes) => raw::Value::view(self.dtype, shape, bytes)?.copied(),
            Data::Texts(texts) => raw::Value::from_strings(shape, texts),
            Data::Strings(strings) => raw::Value::from_strings(shape, strings),
            Data::Runtime(value) => value.copied(),
        }
    }
}

impl fmt::Debug for TensorView<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "TensorView({}{:?})", self.dtype, self.shape)
    }
}

/// Memory of the caller's that a graph writes a tensor into: see [`Binding::bind_output`](crate::Binding::bind_output).
pub struct TensorViewMut<'a> {
    dtype: DType,
    shape: &'a [usize],
    bytes: &'a mut [u8],
}

impl<'a> TensorViewMut<'a> {
    /// Memory for these elements, of which there must be as many as the shape has.
    ///
    /// # Errors
    /// [`InvalidInput`](ErrorKind::InvalidInput) when there are not, and for bools, of which not any byte is one: give bytes for them.
    pub fn new<T: Element>(shape: &'a [usize], elements: &'a mut [T]) -> Result<Self> {
        check_len(shape, elements.len())?;
        let bytes = raw::as_bytes_mut(elements)
            .ok_or_else(|| invalid_input("bools are written into bytes: `TensorViewMut::from_bytes`"))?;
        Ok(Self { dtype: T::DTYPE, shape, bytes })
    }

    /// Memory for elements of any type but strings, as bytes.
    ///
    /// # Errors
    /// [`InvalidInput`](ErrorKind::InvalidInput) when there are not as many bytes as the shape takes, or they do not begin where such an
    /// element may.
    pub fn from_bytes(dtype: DType, shape: &'a [usize], bytes: &'a mut [u8]) -> Result<Self> {
        check_bytes(dtype, shape, bytes)?;
        Ok(Self { dtype, shape, bytes })
    }

    /// What the elements are.
    #[must_use]
    pub fn dtype(&self) -> DType {
        self.dtype
    }

    /// The dimensions, outermost first.
    #[must_use]
    pub fn shape(&self) -> &'a [usize] {
        self.shape
    }

    pub(crate) fn into_raw(self) -> Result<raw::Borrowed<'a>> {
        raw::Value::view_mut(self.dtype, raw_shape(self.shape)?.native(), self.bytes)
    }
}

impl fmt::Debug for TensorViewMut<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "TensorViewMut({}{:?})", self.dtype, self.shape)
    }
}

mod sealed {
    /// Where strings are, without their type.
    pub struct Erased<'a>(pub(super) super::Data<'a>);
}

/// What strings can be given as: `&str` or `String`.
pub trait Text: Sized {
    #[doc(hidden)]
    fn erase<'a>(strings: &'a [Self]) -> sealed::Erased<'a>
    where
        Self: 'a;
}

impl Text for &str {
    fn erase<'a>(strings: &'a [Self]) -> sealed::Erased<'a>
    where
        Self: 'a,
    {
        sealed::Erased(Data::Texts(strings))
    }
}

impl Text for String {
    fn erase<'a>(strings: &'a [Self]) -> sealed::Erased<'a>
    where
        Self: 'a,
    {
        sealed::Erased(Data::Strings(strings))
    }
}

/// A shape as the runtime counts.
pub(crate) fn raw_shape(shape: &[usize]) -> Result<raw::Shape> {
    raw::Shape::from_ours(shape).ok_or_else(|| invalid_input(format!("{shape:?} has a dimension larger than can be")))
}

fn check_bytes(dtype: DType, shape: &[usize], bytes: &[u8]) -> Result<()> {
    let Some(wanted) = dtype.bytes(super::count(shape)?) else {
        return Err(invalid_input(format!("a tensor of {dtype} of shape {shape:?} is not made of bytes")));
    };
    if bytes.len() != wanted {
        let (is, message) = (bytes.len(), format!("a tensor of {dtype} of shape {shape:?} takes {wanted} bytes"));
        return Err(invalid_input(format!("{message}, but {is} are there")));
    }
    let align = dtype.align();
    if !bytes.is_empty() && !bytes.as_ptr().addr().is_multiple_of(align) {
        return Err(invalid_input(format!(
            "elements of {dtype} begin at multiples of {align} bytes, and these do not"
        )));
    }
    Ok(())
}
