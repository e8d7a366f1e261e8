//! What a tensor's elements are.

use std::fmt;

/// The type of a tensor's elements, as ONNX numbers and names them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[non_exhaustive]
pub enum DType {
    /// 32-bit floating point.
    F32,
    /// 64-bit floating point.
    F64,
    /// 16-bit floating point, IEEE half.
    F16,
    /// 16-bit floating point, the upper half of an [`F32`](Self::F32).
    Bf16,
    /// 8-bit integer with a sign.
    I8,
    /// 8-bit integer without a sign.
    U8,
    /// 16-bit integer with a sign.
    I16,
    /// 16-bit integer without a sign.
    U16,
    /// 32-bit integer with a sign.
    I32,
    /// 32-bit integer without a sign.
    U32,
    /// 64-bit integer with a sign.
    I64,
    /// 64-bit integer without a sign.
    U64,
    /// True or false, a byte each: 1 or 0.
    Bool,
    /// Text of any length.
    String,
    /// Two [`F32`](Self::F32): a real and an imaginary part.
    Complex64,
    /// Two [`F64`](Self::F64): a real and an imaginary part.
    Complex128,
    /// 8-bit floating point, 4 bits of exponent, no infinities.
    F8E4M3Fn,
    /// 8-bit floating point, 4 bits of exponent, no infinities, no negative zero.
    F8E4M3FnUz,
    /// 8-bit floating point, 5 bits of exponent.
    F8E5M2,
    /// 8-bit floating point, 5 bits of exponent, no infinities, no negative zero.
    F8E5M2FnUz,
    /// 8-bit floating point, nothing but an exponent: a power of two.
    F8E8M0,
    /// 4-bit integer without a sign, two a byte, the first in the low half.
    U4,
    /// 4-bit integer with a sign, two a byte, the first in the low half.
    I4,
    /// 4-bit floating point, two a byte, the first in the low half.
    F4E2M1,
    /// 2-bit integer without a sign, four a byte, the first in the lowest bits.
    U2,
    /// 2-bit integer with a sign, four a byte, the first in the lowest bits.
    I2,
}

impl DType {
    /// The name in ONNX's words: `float32`, `int64`, `bfloat16`, ….
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::F32 => "float32",
            Self::F64 => "float64",
            Self::F16 => "float16",
            Self::Bf16 => "bfloat16",
            Self::I8 => "int8",
            Self::U8 => "uint8",
            Self::I16 => "int16",
            Self::U16 => "uint16",
            Self::I32 => "int32",
            Self::U32 => "uint32",
            Self::I64 => "int64",
            Self::U64 => "uint64",
            Self::Bool => "bool",
            Self::String => "string",
            Self::Complex64 => "complex64",
            Self::Complex128 => "complex128",
            Self::F8E4M3Fn => "float8e4m3fn",
            Self::F8E4M3FnUz => "float8e4m3fnuz",
            Self::F8E5M2 => "float8e5m2",
            Self::F8E5M2FnUz => "float8e5m2fnuz",
            Self::F8E8M0 => "float8e8m0",
            Self::U4 => "uint4",
            Self::I4 => "int4",
            Self::F4E2M1 => "float4e2m1",
            Self::U2 => "uint2",
            Self::I2 => "int2",
        }
    }

    /// Bits of one element; `None` for strings, which have no fixed size.
    #[must_use]
    pub const fn bits(self) -> Option<usize> {
        Some(match self {
            Self::String => return None,
            Self::U2 | Self::I2 => 2,
            Self::U4 | Self::I4 | Self::F4E2M1 => 4,
            Self::I8
            | Self::U8
            | Self::Bool
            | Self::F8E4M3Fn
            | Self::F8E4M3FnUz
            | Self::F8E5M2
            | Self::F8E5M2FnUz
            | Self::F8E8M0 => 8,
            Self::F16 | Self::Bf16 | Self::I16 | Self::U16 => 16,
            Self::F32 | Self::I32 | Self::U32 => 32,
            Self::F64 | Self::I64 | Self::U64 | Self::Complex64 => 64,
            Self::Complex128 => 128,
        })
    }

    /// Bytes that so many elements take: whole ones, also where several elements share a byte. `None` for strings, and where the number
    /// is more than can be counted.
    #[must_use]
    pub const fn bytes(self, elements: usize) -> Option<usize> {
        match self.bits() {
            None => None,
            Some(bits) if bits < 8 => Some(elements.div_ceil(8 / bits)),
            Some(bits) => elements.checked_mul(bits / 8),
        }
    }

    /// Whether a byte has several elements.
    pub(crate) fn shares_bytes(self) -> bool {
        self.bits().is_some_and(|bits| bits < 8)
    }

    /// Elements begin at multiples of so many bytes.
    pub(crate) fn align(self) -> usize {
        match self {
            // Two numbers of half the size.
            Self::Complex64 => 4,
            _ => self.bits().map_or(1, |bits| (bits / 8).clamp(1, 8)),
        }
    }
}

impl fmt::Display for DType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn elements_that_share_a_byte_take_whole_bytes() {
        assert_eq!([0, 1, 2, 3].map(|n| DType::I4.bytes(n)), [Some(0), Some(1), Some(1), Some(2)]);
        assert_eq!([4, 5].map(|n| DType::U2.bytes(n)), [Some(1), Some(2)]);
        assert_eq!((DType::F64.bytes(3), DType::String.bytes(3)), (Some(24), None));
        assert_eq!(DType::Complex128.bytes(usize::MAX / 2), None);
    }
}
