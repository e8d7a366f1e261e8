//! What can be an element of a tensor in Rust.

use crate::DType;

mod sealed {
    pub trait Sealed {}
}

/// A type of Rust that is the same bytes as one of ONNX's: numbers, [`half::f16`] and [`half::bf16`], `bool`.
///
/// Strings are none of these: see [`TensorView::strings`](crate::TensorView::strings).
pub trait Element: sealed::Sealed + Copy + Send + Sync + 'static {
    /// What it is in a tensor.
    const DTYPE: DType;

    /// Whether any bytes make one: of all but `bool`.
    #[doc(hidden)]
    const ANY_BYTES: bool = true;
}

macro_rules! elements {
    ($($rust:ty => $onnx:ident),* $(,)?) => {$(
        impl sealed::Sealed for $rust {}
        impl Element for $rust {
            const DTYPE: DType = DType::$onnx;
        }
    )*};
}

elements! {
    f32 => F32, f64 => F64, half::f16 => F16, half::bf16 => Bf16,
    i8 => I8, u8 => U8, i16 => I16, u16 => U16, i32 => I32, u32 => U32, i64 => I64, u64 => U64,
}

impl sealed::Sealed for bool {}
impl Element for bool {
    const DTYPE: DType = DType::Bool;
    const ANY_BYTES: bool = false;
}
