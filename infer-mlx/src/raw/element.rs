//! What can be an element in Rust.

use crate::DType;

mod sealed {
    pub trait Sealed {}
}

/// A type of Rust that is the same bytes as one of MLX's: numbers, [`half::f16`] and [`half::bf16`], `bool`.
pub trait Element: sealed::Sealed + Copy + Send + Sync + 'static {
    /// What it is in an array.
    const DTYPE: DType;
}

// Memory is read by this list, and it is all there is: the trait is sealed. Every type is plain bytes, without padding, of the size that the
// library has for it; any bytes are a value of each but `bool`, which is looked at when it is read.
macro_rules! elements {
    ($($rust:ty => $mlx:ident),* $(,)?) => {$(
        impl sealed::Sealed for $rust {}
        impl Element for $rust {
            const DTYPE: DType = DType::$mlx;
        }
        const _: () = assert!(size_of::<$rust>() == DType::$mlx.bytes());
    )*};
}

elements! {
    bool => Bool, u8 => U8, u16 => U16, u32 => U32, u64 => U64, i8 => I8, i16 => I16, i32 => I32, i64 => I64,
    half::f16 => F16, f32 => F32, f64 => F64, half::bf16 => Bf16,
}
