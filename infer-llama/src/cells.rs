//! Which cells of the KV cache are in use.
//!
//! llama.cpp does not say. What each operation does to its cells is known, though, so they can be counted: a token takes one,
//! a fork in the unified layout shares those of its prefix, and a cell is free when its last sequence lets go of it.

use std::ops::Range;

/// The cells of all sequences of a session. In steady state it allocates nothing.
pub(crate) struct Cells {
    /// Whether a fork shares cells, or takes new ones.
    shared: bool,
    /// Cell → how many sequences hold it.
    holders: Vec<u32>,
    free: Vec<u32>,
    /// Slot → the cells of its positions.
    held: Vec<Vec<u32>>,
}

impl Cells {
    /// Room for `total` cells, where the memory for it can be had: it is not touched before it is used.
    pub(crate) fn new(sequences: usize, total: usize, shared: bool) -> Self {
        let mut holders = Vec::new();
        drop(holders.try_reserve_exact(total));
        Self { shared, holders, free: Vec::new(), held: vec![Vec::new(); sequences] }
    }

    /// Cells that some sequence holds.
    pub(crate) fn used(&self) -> usize {
        self.holders.len() - self.free.len()
    }

    /// Cells that nobody would hold any more without these slots.
    pub(crate) fn held_only_by(&self, slots: impl Iterator<Item = u32>) -> usize {
        // Cells that several of them share are found when the last of their holders is met.
        let mut left: std::collections::HashMap<u32, u32> = std::collections::HashMap::new();
        let mut freed = 0;
        for slot in slots {
            for &cell in &self.held[slot as usize] {
                let holders = left.entry(cell).or_insert(self.holders[cell as usize]);
                *holders -= 1;
                freed += usize::from(*holders == 0);
            }
        }
        freed
    }

    /// A slot was opened: room for the positions it can have, as in [`new`](Self::new).
    pub(crate) fn reserve(&mut self, slot: u32, positions: usize) {
        drop(self.held[slot as usize].try_reserve_exact(positions));
    }

    /// A sequence grew.
    pub(crate) fn grow(&mut self, slot: u32, tokens: usize) {
        for _ in 0..tokens {
            let cell = self.take();
            self.held[slot as usize].push(cell);
        }
    }

    /// A sequence was cut.
    pub(crate) fn cut(&mut self, slot: u32, len: usize) {
        let held = self.held[slot as usize].len();
        self.remove(slot, len.min(held)..held);
    }

    /// Whether another sequence holds a cell of this one's from position `from` on.
    pub(crate) fn is_any_shared(&self, slot: u32, from: usize) -> bool {
        self.held[slot as usize][from..].iter().any(|&cell| self.holders[cell as usize] > 1)
    }

    /// Positions were taken out of a sequence.
    pub(crate) fn remove(&mut self, slot: u32, positions: Range<usize>) {
        let Self { holders, free, held, .. } = self;
        for cell in held[slot as usize].drain(positions) {
            let holders = &mut holders[cell as usize];
            *holders -= 1;
            if *holders == 0 {
                free.push(cell);
            }
        }
    }

    /// A sequence was forked.
    pub(crate) fn fork(&mut self, from: u32, to: u32, len: usize) {
        if !self.shared {
            self.grow(to, len);
            return;
        }
        for position in 0..len {
            let cell = self.held[from as usize][position];
            self.holders[cell as usize] += 1;
            self.held[to as usize].push(cell);
        }
    }

    fn take(&mut self) -> u32 {
        if let Some(cell) = self.free.pop() {
            self.holders[cell as usize] = 1;
            return cell;
        }
        self.holders.push(1);
        u32::try_from(self.holders.len() - 1).expect("a session has fewer than 2^32 cells")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_shared_prefix_counts_once() {
        let mut cells = Cells::new(3, 100, true);
        cells.grow(0, 10);
        cells.fork(0, 1, 6);
        cells.fork(1, 2, 4);
        assert_eq!(cells.used(), 10);
        cells.grow(1, 5);
        assert_eq!(cells.used(), 15);
        cells.cut(0, 0);
        assert_eq!(cells.used(), 11, "the four behind the fork are free");
        assert_eq!(cells.held_only_by([1].into_iter()), 7);
        assert_eq!(cells.held_only_by([1, 2].into_iter()), 11);
        cells.cut(1, 0);
        assert_eq!(cells.used(), 4);
        cells.cut(2, 0);
        assert_eq!(cells.used(), 0);
    }

    #[test]
    fn a_copied_prefix_counts_twice() {
        let mut cells = Cells::new(2, 100, false);
        cells.grow(0, 10);
        cells.fork(0, 1, 6);
        assert_eq!(cells.used(), 16);
        cells.cut(1, 2);
        assert_eq!(cells.used(), 12);
    }
}
