//! Keys and values: their number formats, and the room they take.

use super::{Dims, product, sum};
use crate::{Error, Result};
use std::{fmt, str::FromStr};

/// The number format of a KV cache, by ggml's name.
///
/// ```
/// use infer_core::cost::KvType;
///
/// assert_eq!("q8_0".parse::<KvType>()?, KvType::Q8_0);
/// assert_eq!(KvType::Q8_0.bytes(128), 136);
/// # Ok::<_, infer_core::Error>(())
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize), serde(rename_all = "snake_case"))]
#[non_exhaustive]
pub enum KvType {
    /// 4 bytes an element.
    F32,
    /// 2 bytes an element.
    #[default]
    F16,
    /// 2 bytes an element, the range of f32.
    Bf16,
    /// Blocks of 32: a scale and 8 bits an element, 34 bytes.
    Q8_0,
    /// Blocks of 32: a scale and 4 bits an element, 18 bytes.
    Q4_0,
    /// Blocks of 32: a scale, a minimum and 4 bits an element, 20 bytes.
    Q4_1,
    /// Blocks of 32: a scale and 5 bits an element, 22 bytes.
    Q5_0,
    /// Blocks of 32: a scale, a minimum and 5 bits an element, 24 bytes.
    Q5_1,
    /// Blocks of 32: a scale and 4 bits an element on an uneven grid, 18 bytes.
    Iq4Nl,
}

impl KvType {
    /// Every format.
    pub const ALL: [Self; 9] =
        [Self::F32, Self::F16, Self::Bf16, Self::Q8_0, Self::Q4_0, Self::Q4_1, Self::Q5_0, Self::Q5_1, Self::Iq4Nl];

    /// The name, as ggml writes it.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::F32 => "f32",
            Self::F16 => "f16",
            Self::Bf16 => "bf16",
            Self::Q8_0 => "q8_0",
            Self::Q4_0 => "q4_0",
            Self::Q4_1 => "q4_1",
            Self::Q5_0 => "q5_0",
            Self::Q5_1 => "q5_1",
            Self::Iq4Nl => "iq4_nl",
        }
    }

    /// Elements a block.
    #[must_use]
    pub const fn block_elements(self) -> usize {
        match self {
            Self::F32 | Self::F16 | Self::Bf16 => 1,
            _ => 32,
        }
    }

    /// Bytes a block.
    #[must_use]
    pub const fn block_bytes(self) -> usize {
        match self {
            Self::F32 => 4,
            Self::F16 | Self::Bf16 => 2,
            Self::Q8_0 => 34,
            Self::Q4_0 | Self::Iq4Nl => 18,
            Self::Q4_1 => 20,
            Self::Q5_0 => 22,
            Self::Q5_1 => 24,
        }
    }

    /// Bytes that a row of `elements` takes; the last block is a whole one.
    #[must_use]
    pub const fn bytes(self, elements: u64) -> u64 {
        elements.div_ceil(self.block_elements() as u64).saturating_mul(self.block_bytes() as u64)
    }
}

/// The rows of keys and values that a sequence has, layer by layer, of a runtime that takes them as they are needed: in steps, and of a layer
/// with a window no more than that needs.
///
/// ```
/// use infer_core::cost::{KvRows, KvType};
///
/// // Two layers of 2 x 64 numbers a position, one of which holds 100 rows at most, in steps of 32 rows.
/// let rows = KvRows::new(32).with_layer(128, None).with_layer(128, Some(100));
/// assert_eq!(rows.bytes(KvType::F16, 1), 2 * 128 * (32 + 32));
/// assert_eq!(rows.bytes(KvType::F16, 1000), 2 * 128 * (1024 + 128));
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KvRows {
    step: usize,
    /// The numbers of a position, and the most positions that are held.
    layers: Vec<(usize, Option<usize>)>,
}

impl KvRows {
    /// Of no layer yet. Rows come and go `step` at a time.
    ///
    /// # Panics
    /// `step` is 0.
    #[must_use]
    pub const fn new(step: usize) -> Self {
        assert!(step > 0, "a step of no rows");
        Self { step, layers: Vec::new() }
    }

    /// Adds a layer, whose keys and values of a position are so many numbers together, and which holds `most` positions at most.
    #[must_use]
    pub fn with_layer(mut self, numbers: usize, most: Option<usize>) -> Self {
        self.layers.push((numbers, most));
        self
    }

    /// Rows by which a layer grows.
    #[must_use]
    pub const fn step(&self) -> usize {
        self.step
    }

    /// Whether some layer holds fewer than all positions of so many.
    #[must_use]
    pub fn has_window(&self, positions: usize) -> bool {
        self.layers.iter().any(|(_, most)| most.is_some_and(|most| most < positions))
    }

    /// The most numbers that a sequence of so many positions comes to have.
    #[must_use]
    pub fn numbers(&self, positions: usize) -> u64 {
        let layer = |&(numbers, most): &(usize, Option<usize>)| {
            let rows = most.map_or(positions, |most| positions.min(most));
            product(&[numbers, rows.checked_next_multiple_of(self.step).unwrap_or(usize::MAX)])
        };
        self.layers.iter().map(layer).fold(0, u64::saturating_add)
    }

    /// The bytes of [`numbers`](Self::numbers) in this format.
    #[must_use]
    pub fn bytes(&self, kind: KvType, positions: usize) -> u64 {
        kind.bytes(self.numbers(positions))
    }

    /// The bytes of one position, over all layers.
    #[must_use]
    pub fn bytes_per_position(&self, kind: KvType) -> u64 {
        kind.bytes(self.layers.iter().fold(0, |sum: u64, &(numbers, _)| sum.saturating_add(numbers as u64)))
    }
}

impl fmt::Display for KvType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

impl FromStr for KvType {
    type Err = Error;

    /// # Errors
    /// [`InvalidInput`](crate::ErrorKind::InvalidInput) with the names there are.
    fn from_str(name: &str) -> Result<Self> {
        Self::ALL.into_iter().find(|kind| kind.as_str().eq_ignore_ascii_case(name)).ok_or_else(|| {
            let names = Self::ALL.map(Self::as_str).join(", ");
            Error::invalid_input(format!("`{name}` is no format of a KV cache; there are {names}"))
        })
    }
}

impl Dims {
    /// Bytes of KV cache that one position of one sequence takes: layers × KV heads × head width × bytes an element, for
    /// keys and for values. None for an [`encoder`](Self::encoder).
    ///
    /// In quantised formats the keys of one layer are a row of whole blocks of 32.
    #[must_use]
    pub fn kv_bytes_per_position(&self, keys: KvType, values: KvType) -> u64 {
        if self.encoder {
            return 0;
        }
        let row = product(&[self.kv_heads, self.head_dim]);
        sum(&[keys.bytes(row), values.bytes(row)]).saturating_mul(self.layers as u64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_go_both_ways() {
        for kind in KvType::ALL {
            assert_eq!(kind.to_string().parse::<KvType>().unwrap(), kind);
        }
        assert_eq!("Q8_0".parse::<KvType>().unwrap(), KvType::Q8_0);
        let error = "i8".parse::<KvType>().unwrap_err().to_string();
        assert!(error.contains("`i8`") && error.contains("q8_0"), "{error}");
    }

    #[test]
    fn rows_come_in_steps_and_a_window_holds_no_more_than_it_needs() {
        let rows = KvRows::new(256).with_layer(10, None).with_layer(1, Some(1100));
        for (positions, numbers, has_window) in [
            (0, 0, false),
            (1, 11 * 256, false),
            (256, 11 * 256, false),
            (257, 11 * 512, false),
            (1200, 11 * 1280, true),
            (9000, 92_160 + 1280, true),
        ] {
            assert_eq!((rows.numbers(positions), rows.has_window(positions)), (numbers, has_window), "{positions}");
        }
        assert_eq!(rows.bytes(KvType::F32, 1), 4 * 11 * 256);
        assert_eq!((rows.bytes_per_position(KvType::Bf16), rows.step()), (22, 256));
        assert_eq!(rows.numbers(usize::MAX), u64::MAX);
    }

    #[test]
    fn a_row_is_whole_blocks() {
        assert_eq!(KvType::F16.bytes(128), 256);
        assert_eq!(KvType::Q8_0.bytes(1024), 1088);
        assert_eq!(KvType::Q4_0.bytes(33), 36);
        assert_eq!(KvType::F32.bytes(u64::MAX), u64::MAX);
    }
}
