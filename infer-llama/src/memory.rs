//! How much memory there is, and how much a session takes.
//!
//! llama.cpp fills a KV cache with zeros when it makes it. One that does not fit is not an error there: the kernel ends the
//! process. So what a session takes is computed beforehand and compared.

use crate::{
    gguf::{Header, Value},
    threads::{field, groups},
};
use std::fmt;

/// Bytes this process can still fill, and what sets the limit. `None` where the system does not say.
#[must_use]
pub fn available_memory() -> Option<Available> {
    let limits = [machine(), address_space()].into_iter().flatten().chain(cgroups());
    limits.min_by_key(|available| available.bytes)
}

/// Memory that can still be filled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Available {
    /// How many bytes.
    pub bytes: u64,
    /// What does not let it be more, in words.
    pub limit: &'static str,
}

fn machine() -> Option<Available> {
    let meminfo = std::fs::read_to_string("/proc/meminfo").ok()?;
    Some(Available { bytes: kilobytes(field(&meminfo, "MemAvailable:")?)?, limit: "the machine's memory" })
}

fn address_space() -> Option<Available> {
    let limits = std::fs::read_to_string("/proc/self/limits").ok()?;
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    // "Max address space         unlimited            unlimited            bytes"
    let limit: u64 = field(&limits, "Max address space")?.split_whitespace().next()?.parse().ok()?;
    let used = kilobytes(field(&status, "VmSize:")?)?;
    Some(Available { bytes: limit.saturating_sub(used), limit: "the limit of the address space (RLIMIT_AS)" })
}

fn cgroups() -> impl Iterator<Item = Available> {
    groups("memory").into_iter().filter_map(|group| {
        let read = |name| std::fs::read_to_string(group.path.join(name)).ok();
        let (max, used) = if group.unified {
            (read("memory.max")?, read("memory.current")?)
        } else {
            (read("memory.limit_in_bytes")?, read("memory.usage_in_bytes")?)
        };
        let left = left_in_group(&max, &used, &read("memory.stat").unwrap_or_default())?;
        Some(Available { bytes: left, limit: "the cgroup's memory limit" })
    })
}

/// What a cgroup leaves. Pages of files count as used and are given up when memory is wanted: mapped weights are such.
fn left_in_group(max: &str, used: &str, stat: &str) -> Option<u64> {
    // "max" in version 2; in version 1 no limit is a number near 2^63.
    let max: u64 = max.trim().parse().ok().filter(|&max| max < 1 << 62)?;
    let used: u64 = used.trim().parse().ok()?;
    let pages = |name: &str| field(stat, name).and_then(|pages| pages.parse::<u64>().ok()).unwrap_or(0);
    let files = pages("inactive_file ").saturating_add(pages("active_file "));
    Some(max.saturating_sub(used.saturating_sub(files)))
}

/// `"12345 kB"` in bytes.
fn kilobytes(text: &str) -> Option<u64> {
    text.strip_suffix("kB")?.trim().parse::<u64>().ok()?.checked_mul(1024)
}

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

/// Bytes as people read them.
pub(crate) struct Size(pub(crate) u64);

impl fmt::Display for Size {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            large @ 0x4000_0000.. => write!(f, "{:.1} GiB", large as f64 / f64::from(1 << 30)),
            small => write!(f, "{:.1} MiB", small as f64 / f64::from(1 << 20)),
        }
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

    #[test]
    fn file_pages_of_a_group_can_be_had() {
        let stat = "anon 100\nfile 900\ninactive_file 600\nactive_file 200\nshmem 0\n";
        assert_eq!(left_in_group("1000\n", "950\n", stat), Some(850));
        assert_eq!(left_in_group("1000", "2000", ""), Some(0));
        assert_eq!(left_in_group("max", "950", stat), None);
        assert_eq!(left_in_group("9223372036854771712", "950", stat), None);
    }

    #[test]
    fn kilobytes_of_proc() {
        assert_eq!(kilobytes("8041232 kB"), Some(8_041_232 * 1024));
        assert_eq!(kilobytes("8041232"), None);
    }

    #[test]
    fn this_machine_has_memory() {
        if cfg!(target_os = "linux") {
            assert!(available_memory().is_some_and(|available| available.bytes > 0));
        }
    }
}
