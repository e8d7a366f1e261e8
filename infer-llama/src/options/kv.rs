//! In which numbers the cells of a session are kept.

use std::fmt;

/// The number format of keys or values in the cache.
///
/// The quantised ones come in blocks of 32 numbers, which the size of a head must be a multiple of; values of them need flash
/// attention. `docs/kv_layout.md` says what each costs and brings.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum KvType {
    /// 32-bit floats.
    F32,
    /// 16-bit floats.
    #[default]
    F16,
    /// 16-bit floats with the exponent of 32-bit ones.
    Bf16,
    /// 8.5 bits a number.
    Q8_0,
    /// 6 bits a number.
    Q5_1,
    /// 5.5 bits a number.
    Q5_0,
    /// 5 bits a number.
    Q4_1,
    /// 4.5 bits a number.
    Q4_0,
    /// 4.5 bits a number, spaced as weights are.
    Iq4Nl,
}

impl KvType {
    /// Whether numbers come in blocks with a scale.
    #[must_use]
    pub const fn is_quantised(self) -> bool {
        !matches!(self, Self::F32 | Self::F16 | Self::Bf16)
    }

    /// The name llama.cpp's own programs have for it, such as `q8_0`.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::F32 => "f32",
            Self::F16 => "f16",
            Self::Bf16 => "bf16",
            Self::Q8_0 => "q8_0",
            Self::Q5_1 => "q5_1",
            Self::Q5_0 => "q5_0",
            Self::Q4_1 => "q4_1",
            Self::Q4_0 => "q4_0",
            Self::Iq4Nl => "iq4_nl",
        }
    }
}

impl fmt::Display for KvType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}
