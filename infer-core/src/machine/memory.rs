//! How much memory there is.

use super::cgroup::{field, groups};
use crate::{Error, ErrorKind, Result};
use std::fmt;

/// Bytes this process can still fill, and what sets the limit. `None` where the system does not say.
#[must_use]
pub fn available_memory() -> Option<Available> {
    let limits = [machine(), address_space()].into_iter().flatten().chain(cgroups());
    limits.min_by_key(|available| available.bytes)
}

/// Checks that `bytes` can be had, where the system says how many can: before they are taken bit by bit, and the process ended in the middle.
///
/// The error is made of `taker`, what takes them, up to the verb ("lists of 4096 cells take"), and of `advice`, what to do.
///
/// # Errors
/// [`OutOfMemory`](ErrorKind::OutOfMemory), with what can be had and what sets the limit.
pub fn check_memory(bytes: u64, taker: impl FnOnce() -> String, advice: &str) -> Result<()> {
    match available_memory() {
        Some(available) if bytes > available.bytes => Err(too_much(bytes, available, &taker(), advice)),
        _ => Ok(()),
    }
}

fn too_much(bytes: u64, available: Available, taker: &str, advice: &str) -> Error {
    let Available { bytes: most, limit } = available;
    let message = format!("{taker} {}, {} can be had within {limit}; {advice}", Size(bytes), Size(most));
    Error::new(ErrorKind::OutOfMemory, message)
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

/// A number of bytes, shown as people read it: `1.5 GiB`, `12.0 MiB`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Size(pub u64);

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
    fn what_cannot_be_had_is_told_with_its_limit() {
        let limit = Available { bytes: 3 << 20, limit: "the cgroup's memory limit" };
        let error = too_much(5 << 30, limit, "4 texts take", "ask for fewer");
        assert_eq!(error.kind(), ErrorKind::OutOfMemory);
        let text = "4 texts take 5.0 GiB, 3.0 MiB can be had within the cgroup's memory limit; ask for fewer";
        assert!(error.to_string().contains(text), "{error}");
        check_memory(0, || unreachable!("nothing can always be had"), "").unwrap();
    }

    #[test]
    fn this_machine_has_memory() {
        if cfg!(target_os = "linux") {
            assert!(available_memory().is_some_and(|available| available.bytes > 0));
        }
    }
}
