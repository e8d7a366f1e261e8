use super::session::ROOM;
use crate::{Error, ErrorKind, KvLayout, Result, Token};
use std::ops::Range;

/// The KV cache of the scripted session: what each slot holds, and how many cells that takes.
///
/// In place of keys and values a position has a digest of every token up to it.
pub(super) struct Cache {
    slots: Box<[Vec<Position>]>,
    /// Cell → how many slots hold it.
    holders: Box<[u32]>,
    free: Vec<u32>,
    layout: KvLayout,
}

#[derive(Clone, Copy)]
struct Position {
    token: Token,
    digest: u64,
    cell: u32,
}

impl Cache {
    pub(super) fn new(slots: usize, context: usize, cells: usize, layout: KvLayout) -> Self {
        let cells = u32::try_from(cells).expect("cells are counted in u32");
        let room = context.min(ROOM);
        Self {
            slots: (0..slots).map(|_| Vec::with_capacity(room)).collect(),
            holders: vec![0; cells as usize].into(),
            free: (0..cells).rev().collect(),
            layout,
        }
    }

    pub(super) fn tokens(&self, slot: u32) -> impl DoubleEndedIterator<Item = Token> + ExactSizeIterator + Clone {
        self.slots[slot as usize].iter().map(|position| position.token)
    }

    /// The digests of all positions.
    pub(super) fn digests(&self, slot: u32) -> impl Iterator<Item = u64> {
        self.slots[slot as usize].iter().map(|position| position.digest)
    }

    /// The digest of the first `len` tokens of a slot; that of no tokens is `seed`.
    pub(super) fn digest(&self, slot: u32, len: usize, seed: u64) -> u64 {
        len.checked_sub(1).map_or(seed, |last| self.slots[slot as usize][last].digest)
    }

    /// Whether these many positions more fit, slot by slot.
    pub(super) fn check_room(&self, wanted: impl Iterator<Item = (u32, usize)>) -> Result<()> {
        let share = self.holders.len() / self.slots.len().max(1);
        let mut unified = self.free.len();
        for (slot, count) in wanted {
            let room = match self.layout {
                KvLayout::Unified => unified,
                KvLayout::Split => share - self.slots[slot as usize].len(),
            };
            if count > room {
                return Err(Error::new(
                    ErrorKind::OutOfCells,
                    format!("{count} cells are needed and {room} are free; drop or truncate sequences"),
                ));
            }
            unified -= count.min(unified);
        }
        Ok(())
    }

    /// Appends a token for which there is room.
    pub(super) fn push(&mut self, slot: u32, token: Token, seed: u64) {
        let held = self.slots[slot as usize].len();
        self.push_digest(slot, token, mix(self.digest(slot, held, seed) ^ u64::from(token.0)));
    }

    /// Appends a token whose digest is known, for which there is room.
    pub(super) fn push_digest(&mut self, slot: u32, token: Token, digest: u64) {
        let cell = self.free.pop().expect("room was checked");
        self.holders[cell as usize] = 1;
        self.slots[slot as usize].push(Position { token, digest, cell });
    }

    pub(super) fn truncate(&mut self, slot: u32, len: usize) {
        let held = self.slots[slot as usize].len();
        self.remove(slot, len.min(held)..held);
    }

    /// Takes positions out and moves those behind them up. Their digests stay: they were made with all tokens in view.
    pub(super) fn remove(&mut self, slot: u32, positions: Range<usize>) {
        for position in self.slots[slot as usize].drain(positions) {
            let holders = &mut self.holders[position.cell as usize];
            *holders -= 1;
            if *holders == 0 {
                self.free.push(position.cell);
            }
        }
    }

    /// Gives the empty slot `to` the first `len` positions of slot `from`.
    pub(super) fn fork(&mut self, from: u32, to: u32, len: usize) {
        for at in 0..len {
            let mut position = self.slots[from as usize][at];
            if self.layout == KvLayout::Split {
                position.cell = self.free.pop().expect("each slot has its own part of the cells");
            }
            self.holders[position.cell as usize] += 1;
            self.slots[to as usize].push(position);
        }
    }

    /// Used and free cells, those that only slots in `dropped` hold counted as free.
    pub(super) fn usage(&self, dropped: &[u32]) -> (usize, usize) {
        let holds = |slot: u32, cell: u32| self.slots[slot as usize].iter().any(|position| position.cell == cell);
        let mut free = self.free.len();
        for (nth, &slot) in dropped.iter().enumerate() {
            for position in &self.slots[slot as usize] {
                let counted = dropped[..nth].iter().any(|&slot| holds(slot, position.cell));
                let gone = dropped.iter().filter(|&&slot| holds(slot, position.cell)).count();
                free += usize::from(!counted && gone == self.holders[position.cell as usize] as usize);
            }
        }
        (self.holders.len() - free, free)
    }
}

/// The finaliser of SplitMix64 (Steele, Lea and Flood 2014): a bijection in which every bit of the result depends on
/// every bit of the argument.
pub(super) const fn mix(x: u64) -> u64 {
    let x = x.wrapping_add(0x9E37_79B9_7F4A_7C15);
    let x = (x ^ (x >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    let x = (x ^ (x >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    x ^ (x >> 31)
}
