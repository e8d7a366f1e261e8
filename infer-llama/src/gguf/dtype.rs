//! The number formats tensors are stored in.

use std::fmt;

/// The number format of a tensor: plain numbers, or blocks of quantised ones. Only formats the pinned llama.cpp reads exist.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct DType(u32);

/// Id in the file, name, elements a block, bytes a block, and whether llama.cpp can multiply with it. The ids that are left
/// out were withdrawn from the format.
const FORMATS: &[(u32, &str, u64, u64, bool)] = &[
    (0, "F32", 1, 4, true),
    (1, "F16", 1, 2, true),
    (2, "Q4_0", 32, 18, true),
    (3, "Q4_1", 32, 20, true),
    (6, "Q5_0", 32, 22, true),
    (7, "Q5_1", 32, 24, true),
    (8, "Q8_0", 32, 34, true),
    (9, "Q8_1", 32, 36, false),
    (10, "Q2_K", 256, 84, true),
    (11, "Q3_K", 256, 110, true),
    (12, "Q4_K", 256, 144, true),
    (13, "Q5_K", 256, 176, true),
    (14, "Q6_K", 256, 210, true),
    (15, "Q8_K", 256, 292, false),
    (16, "IQ2_XXS", 256, 66, true),
    (17, "IQ2_XS", 256, 74, true),
    (18, "IQ3_XXS", 256, 98, true),
    (19, "IQ1_S", 256, 50, true),
    (20, "IQ4_NL", 32, 18, true),
    (21, "IQ3_S", 256, 110, true),
    (22, "IQ2_S", 256, 82, true),
    (23, "IQ4_XS", 256, 136, true),
    (24, "I8", 1, 1, false),
    (25, "I16", 1, 2, false),
    (26, "I32", 1, 4, false),
    (27, "I64", 1, 8, false),
    (28, "F64", 1, 8, false),
    (29, "IQ1_M", 256, 56, true),
    (30, "BF16", 1, 2, true),
    (34, "TQ1_0", 256, 54, true),
    (35, "TQ2_0", 256, 66, true),
    (39, "MXFP4", 32, 17, true),
    (40, "NVFP4", 64, 36, true),
    (41, "Q1_0", 128, 18, true),
    (42, "Q2_0", 64, 18, true),
];

impl DType {
    /// 32-bit floats.
    pub const F32: Self = Self(0);
    /// 16-bit floats (IEEE 754 half).
    pub const F16: Self = Self(1);
    /// 16-bit floats with the exponent of 32-bit ones.
    pub const BF16: Self = Self(30);
    /// 4-bit floats in blocks of 64, with scales beside the tensor.
    pub const NVFP4: Self = Self(40);
    /// 32-bit integers: tables, never weights.
    pub const I32: Self = Self(26);

    /// The format with this id in the file; `None` for one that llama.cpp does not read.
    #[must_use]
    pub fn from_id(id: u32) -> Option<Self> {
        FORMATS.iter().any(|format| format.0 == id).then_some(Self(id))
    }

    /// The id in the file.
    #[must_use]
    pub const fn id(self) -> u32 {
        self.0
    }

    /// The name people know it by, such as `Q4_K`.
    #[must_use]
    pub fn name(self) -> &'static str {
        self.format().1
    }

    /// Elements that are stored together.
    #[must_use]
    pub fn block(self) -> u64 {
        self.format().2
    }

    /// Bytes of one block.
    #[must_use]
    pub fn block_bytes(self) -> u64 {
        self.format().3
    }

    /// Whether llama.cpp can compute with it. The others are for intermediate results and tables; as a weight they end the
    /// process.
    #[must_use]
    pub fn is_weight(self) -> bool {
        self.format().4
    }

    /// Bytes of `elements` numbers; `None` when they are no whole number of blocks, or too many to count.
    #[must_use]
    pub fn bytes(self, elements: u64) -> Option<u64> {
        if !elements.is_multiple_of(self.block()) {
            return None;
        }
        (elements / self.block()).checked_mul(self.block_bytes())
    }

    fn format(self) -> &'static (u32, &'static str, u64, u64, bool) {
        FORMATS.iter().find(|format| format.0 == self.0).expect("a DType is made from the table only")
    }
}

impl fmt::Display for DType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl fmt::Debug for DType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}
