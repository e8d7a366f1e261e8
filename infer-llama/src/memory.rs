//! How much memory a session takes.
//!
//! llama.cpp fills a KV cache with zeros when it makes it. One that does not fit is not an error there: the kernel ends the
//! process. So what a session takes is computed beforehand and compared.

use crate::gguf::{Header, Value};

/// Bytes of a cell in the library's lists: its position, how far it was moved, what it may hold beside, and whose it is, a bit for each
/// of 256 sequences.
const CELL: u64 = 52;
/// Bytes of a token in the lists of a batch that are filled when they are made, on either side of the door.
const LISTED: u64 = 8;

/// The dimensions of a model, as far as a session's memory goes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Dims {
    /// Key/value heads of all layers together.
    kv_heads: u64,
    /// Caches with a list of cells each: a second one where some layers look back through a window.
    caches: u64,
    key: u64,
    value: u64,
    /// Numbers in the largest intermediate results for one token.
    token: u64,
    vocab: u64,
}

/// The shape of a session, as far as memory goes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Shape {
    /// Positions of all sequences; a multiple of 256.
    pub(crate) cells: u64,
    /// Sequences, each of which may want logits in one pass.
    pub(crate) sequences: u64,
    /// Rows as long as the vocabulary that are handed out for each: its logits, and with draws on the device three more that the
    /// library keeps for what else such a draw could bring.
    pub(crate) rows: u64,
    /// Rows of logits computed at once.
    pub(crate) outputs: u64,
    /// Tokens a pass can have.
    pub(crate) batch: u64,
    /// Tokens computed at once.
    pub(crate) micro_batch: u64,
    /// Bytes that 32 numbers take, in keys and in values.
    pub(crate) kv_bytes_of_32: (u64, u64),
}

/// What a session takes, in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Need {
    /// Keys and values. Exact where all layers keep every position, which they do here also under a sliding window.
    pub(crate) kv: u64,
    /// Intermediate results and logits: an estimate from below, of the largest tensors of a pass.
    pub(crate) compute: u64,
    /// Lists of cells and of tokens.
    pub(crate) lists: u64,
}

impl Dims {
    /// The sizes of a head: of keys and of values.
    pub(crate) fn heads(self) -> (u64, u64) {
        (self.key, self.value)
    }

    pub(crate) fn of(header: &Header) -> Self {
        let number = |name| header.field(name).and_then(Value::as_u64);
        let width = number("embedding_length").unwrap_or(0);
        let heads = header.per_layer("attention.head_count").unwrap_or_default();
        let kv_heads = header.per_layer("attention.head_count_kv");
        let even = width.checked_div(heads.first().copied().unwrap_or(0)).unwrap_or(0);
        let feed_forward = header.per_layer("feed_forward_length").and_then(|all| all.into_iter().max()).unwrap_or(0);
        Self {
            kv_heads: kv_heads.as_ref().unwrap_or(&heads).iter().fold(0, |sum: u64, &heads| sum.saturating_add(heads)),
            caches: if number("attention.sliding_window").is_some_and(|window| window > 0) { 2 } else { 1 },
            key: number("attention.key_length").unwrap_or(even),
            value: number("attention.value_length").unwrap_or(even),
            token: width.saturating_mul(4).saturating_add(feed_forward.saturating_mul(2)),
            vocab: header.info().vocab as u64,
        }
    }

    /// Saturates rather than overflows: what does not fit in 2^64 bytes fits nowhere.
    pub(crate) fn need(self, shape: Shape) -> Need {
        let (keys, values) = shape.kv_bytes_of_32;
        let bytes = |length: u64, of_32: u64| self.kv_heads.saturating_mul(length).saturating_mul(of_32) / 32;
        let position = bytes(self.key, keys).saturating_add(bytes(self.value, values));
        let rows = shape.sequences.saturating_mul(shape.rows).saturating_add(shape.outputs);
        let logits = self.vocab.saturating_mul(rows);
        let numbers = self.token.saturating_mul(shape.micro_batch).saturating_add(logits);
        // A recurrent model's cells are as many as its sequences.
        let listed = if position > 0 { shape.cells.saturating_mul(self.caches * CELL) } else { 0 };
        Need {
            kv: position.saturating_mul(shape.cells),
            compute: numbers.saturating_mul(4),
            lists: listed.saturating_add(shape.batch.saturating_mul(LISTED)),
        }
    }

    /// What an encoder takes whose passes have this many tokens, and which has as many cells or none.
    pub(crate) fn need_of_encoder(self, tokens: u64, has_cells: bool) -> Need {
        let mut need = self.need(Shape {
            cells: if has_cells { tokens } else { 0 },
            sequences: 0,
            rows: 0,
            outputs: 0,
            batch: tokens,
            micro_batch: tokens,
            kv_bytes_of_32: (64, 64),
        });
        // The library keeps room for logits of all tokens, also where nothing computes any; and who sees whom is a table.
        let logits = self.vocab.saturating_mul(tokens).saturating_mul(if has_cells { 2 } else { 1 });
        let numbers = logits.saturating_add(tokens.saturating_mul(tokens));
        need.compute = need.compute.saturating_add(numbers.saturating_mul(4));
        need
    }
}

impl Need {
    /// With the keys and values of so many of all layers.
    pub(crate) fn with_kv_share(mut self, layers: u64, all: u64) -> Self {
        // Rounded up; without layers there is nothing to share out.
        self.kv = u128::from(self.kv)
            .checked_mul(layers.into())
            .filter(|_| all > 0)
            .map_or(self.kv, |kv| u64::try_from(kv.div_ceil(all.into())).unwrap_or(u64::MAX));
        self
    }

    pub(crate) fn total(self) -> u64 {
        self.kv.saturating_add(self.compute).saturating_add(self.lists)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_and_values_are_shared_out_by_layers() {
        let kv = |layers, all| Need { kv: 100, compute: 7, lists: 0 }.with_kv_share(layers, all).kv;
        assert_eq!([kv(30, 30), kv(0, 30), kv(10, 30), kv(1, 1), kv(0, 0)], [100, 0, 34, 100, 100]);
        let huge = Need { kv: u64::MAX, compute: 0, lists: 0 }.with_kv_share(30, 30);
        assert_eq!(huge.kv, u64::MAX);
    }
}
