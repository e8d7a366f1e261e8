//! What an array's elements are.

use std::fmt;

/// The type of an array's elements.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[non_exhaustive]
pub enum DType {
    /// `true` or `false`, a byte each.
    Bool,
    /// 8-bit integer without a sign.
    U8,
    /// 16-bit integer without a sign.
    U16,
    /// 32-bit integer without a sign.
    U32,
    /// 64-bit integer without a sign.
    U64,
    /// 8-bit integer with a sign.
    I8,
    /// 16-bit integer with a sign.
    I16,
    /// 32-bit integer with a sign.
    I32,
    /// 64-bit integer with a sign.
    I64,
    /// 16-bit floating point, 5 bits of exponent.
    F16,
    /// 32-bit floating point.
    F32,
    /// 64-bit floating point: on the CPU only.
    F64,
    /// 16-bit floating point, 8 bits of exponent.
    Bf16,
    /// Two [`F32`](Self::F32): a real and an imaginary part.
    Complex64,
}

impl DType {
    /// The name in MLX's words: `float32`, `int64`, `bfloat16`, ….
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Bool => "bool",
            Self::U8 => "uint8",
            Self::U16 => "uint16",
            Self::U32 => "uint32",
            Self::U64 => "uint64",
            Self::I8 => "int8",
            Self::I16 => "int16",
            Self::I32 => "int32",
            Self::I64 => "int64",
            Self::F16 => "float16",
            Self::F32 => "float32",
            Self::F64 => "float64",
            Self::Bf16 => "bfloat16",
            Self::Complex64 => "complex64",
        }
    }

    /// Bytes of one element.
    #[must_use]
    pub const fn bytes(self) -> usize {
        match self {
            Self::Bool | Self::U8 | Self::I8 => 1,
            Self::U16 | Self::I16 | Self::F16 | Self::Bf16 => 2,
            Self::U32 | Self::I32 | Self::F32 => 4,
            Self::U64 | Self::I64 | Self::F64 | Self::Complex64 => 8,
        }
    }

    /// Whether elements have a fraction.
    #[must_use]
    pub const fn is_float(self) -> bool {
        matches!(self, Self::F16 | Self::F32 | Self::F64 | Self::Bf16)
    }
}

impl fmt::Display for DType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}
