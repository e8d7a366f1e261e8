//! Which runs of the graph a pass takes.
//!
//! Where the graph writes keys and values into a buffer, all sequences have theirs in one: sequence `i` is its row `i`. A run takes rows that
//! lie side by side, with one token each. A row between two others that has nothing to compute gets a token as well, which is written at its next
//! position: behind all that counts, and overwritten by the next token that is fed to it. That is cheaper than reading all
//! weights once more, if there are few such rows.

use std::ops::Range;

/// Rows with nothing to compute that lie between two that have, at most.
const GAP: u32 = 2;
/// Positions of a row from which on it is not bridged: its attention costs as much as is saved.
pub(super) const LONG: usize = 1024;

/// Cuts `slots`, sorted, into runs of one token a row. `idle` says whether a row may be given a token in vain.
pub(super) fn runs(slots: &[u32], idle: impl Fn(u32) -> bool, out: &mut Vec<Range<u32>>) {
    out.clear();
    for &slot in slots {
        match out.last_mut() {
            Some(run) if slot - run.end <= GAP && (run.end..slot).all(&idle) => run.end = slot + 1,
            _ => out.push(slot..slot + 1),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// First and last row of each run.
    fn cut(slots: &[u32], busy: &[u32]) -> Vec<(u32, u32)> {
        let mut out = vec![7..9, 1..2];
        runs(slots, |slot| !busy.contains(&slot), &mut out);
        out.into_iter().map(|run| (run.start, run.end - 1)).collect()
    }

    #[test]
    fn neighbours_share_a_run_and_small_gaps_are_bridged() {
        assert!(cut(&[], &[]).is_empty());
        assert_eq!(cut(&[0, 1, 2], &[]), [(0, 2)]);
        assert_eq!(cut(&[3], &[]), [(3, 3)]);
        assert_eq!(cut(&[0, 3, 4], &[]), [(0, 4)]);
        assert_eq!(cut(&[0, 4, 5], &[]), [(0, 0), (4, 5)]);
        assert_eq!(cut(&[0, 2, 4], &[1]), [(0, 0), (2, 4)], "a row that is full is not bridged");
    }
}
