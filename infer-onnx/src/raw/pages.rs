//! Large pages for what a load allocates.
//!
//! A step of a decoder reads all weights once, in pages of 4 KiB from as many places as there are entries in no processor's tables. What the
//! runtime packs lies in memory of the C library, which asks for no large pages; and it has no way to be told to. So the system is asked
//! for them afterwards: it moves what is there.

use std::{fs, ops::Range, ptr};

/// The memory of this process before something is loaded.
pub(crate) struct Before {
    regions: Vec<Range<usize>>,
    /// Bytes of a large page.
    large: usize,
}

/// Of a large page so many parts of `PARTS` must be in memory already: it takes little more than what it replaces.
const THERE: usize = 15;
const PARTS: usize = 16;
/// Where the system has refused so often, it has no large pages to give.
const REFUSALS: usize = 8;

impl Before {
    /// `None` where the system has no large pages, or whoever runs it wants none to be used.
    pub(crate) fn look() -> Option<Self> {
        let said = |what: &str| fs::read_to_string(format!("/sys/kernel/mm/transparent_hugepage/{what}")).ok();
        if said("enabled")?.contains("[never]") {
            return None;
        }
        let large = said("hpage_pmd_size")?.trim().parse().ok()?;
        Some(Self { regions: regions()?, large })
    }

    /// Moves what was allocated since then into large pages, as far as it fills them and the system (Linux 6.1 and later) has any. How many
    /// bytes are in large pages then.
    pub(crate) fn enlarge(&self) -> usize {
        let (mut moved, mut refusals) = (0, 0);
        for new in without(&regions().unwrap_or_default(), &self.regions) {
            let mut start = new.start.next_multiple_of(self.large);
            while start + self.large <= new.end && refusals < REFUSALS {
                if is_there(start, self.large) {
                    if collapse(start, self.large) { moved += self.large } else { refusals += 1 }
                }
                start += self.large;
            }
        }
        moved
    }
}

/// Whether nearly all of this memory is there, and not yet to be given.
fn is_there(start: usize, len: usize) -> bool {
    // SAFETY: it takes a number.
    let page = unsafe { libc::sysconf(libc::_SC_PAGESIZE) };
    let Some(page) = usize::try_from(page).ok().filter(|&page| page > 0) else { return false };
    let mut pages = vec![0_u8; len.div_ceil(page)];
    // SAFETY: it reads nothing at the address, which may be of memory that is gone by now: then it says so. It writes a byte for each page
    // of `len`, and as many are there.
    let failed = unsafe { libc::mincore(ptr::without_provenance_mut(start), len, pages.as_mut_ptr()) };
    let there = pages.iter().filter(|&&page| page & 1 == 1).count();
    failed == 0 && there * PARTS >= pages.len() * THERE
}

/// Asks for a large page in place of many small ones.
fn collapse(start: usize, len: usize) -> bool {
    // SAFETY: advice: what is in the memory, and who may use it how, stays as it is, whoever has it; an address that is not in use any more is
    // an error. Threads that use it meanwhile wait, as for a page that is moved for any other reason.
    unsafe { libc::madvise(ptr::without_provenance_mut(start), len, libc::MADV_COLLAPSE) == 0 }
}

/// The memory of this process that no file backs and that can be written, in the order of addresses.
fn regions() -> Option<Vec<Range<usize>>> {
    let maps = fs::read("/proc/self/maps").ok()?;
    Some(String::from_utf8_lossy(&maps).lines().filter_map(region).collect())
}

/// From a line of `/proc/self/maps`: addresses, what is allowed, offset, device, inode, and sometimes a name.
fn region(line: &str) -> Option<Range<usize>> {
    let mut fields = line.split_ascii_whitespace();
    let (start, end) = fields.next()?.split_once('-')?;
    let (allowed, inode, name) = (fields.next()?, fields.nth(2)?, fields.next());
    let is_data =
        allowed == "rw-p" && inode == "0" && name.is_none_or(|name| name == "[heap]" || name.starts_with("[anon"));
    let address = |text| usize::from_str_radix(text, 16).ok();
    is_data.then_some(address(start)?..address(end)?)
}

/// What of `these` is not in `others`. Both are in the order of addresses.
fn without(these: &[Range<usize>], others: &[Range<usize>]) -> Vec<Range<usize>> {
    let mut left = Vec::new();
    for this in these {
        let mut start = this.start;
        for other in others.iter().filter(|other| other.start < this.end && other.end > this.start) {
            if start < other.start {
                left.push(start..other.start);
            }
            start = start.max(other.end);
        }
        if start < this.end {
            left.push(start..this.end);
        }
    }
    left
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_new_is_what_was_not_there() {
        let all = [0..10, 20..30, 40..50, 60..70];
        assert_eq!(without(&all, &[]), all);
        assert!(without(&all, &all).is_empty());
        let before = [0..5, 8..10, 22..24, 26..30, 35..65];
        assert_eq!(without(&all, &before), [5..8, 20..22, 24..26, 65..70]);
    }

    #[test]
    fn lines_of_the_system_are_read() {
        assert_eq!(region("7f00-7f20 rw-p 00000000 00:00 0 "), Some(0x7f00..0x7f20));
        assert_eq!(region("10-30 rw-p 00000000 00:00 0                          [heap]"), Some(0x10..0x30));
        assert_eq!(region("10-30 rw-p 00000000 00:00 0  [anon:arena of x]"), Some(0x10..0x30));
        for other in [
            "10-30 rw-p 00000000 00:00 0 [stack]",
            "10-30 r--p 00000000 00:00 0 ",
            "10-30 rw-s 00000000 00:00 0 ",
            "10-30 rw-p 00001000 fe:00 12 /usr/lib/x.so",
            "",
            "x-y rw-p 00000000 00:00 0",
        ] {
            assert_eq!(region(other), None, "{other}");
        }
    }

    /// Large pages are the system's to give: that what is in them stays can be told everywhere.
    #[test]
    fn what_is_moved_stays_what_it_was() {
        // Where a large page is half a gigabyte there is no room for some of them.
        let Some(before) = Before::look().filter(|before| before.large <= 1 << 22) else { return };
        let numbers: Vec<u64> = (0..before.large as u64).collect();
        let moved = before.enlarge();
        assert!(moved.is_multiple_of(before.large), "{moved}");
        assert!(numbers.iter().zip(0..).all(|(&number, at)| number == at));
    }
}
