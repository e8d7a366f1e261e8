use std::{
    fmt,
    sync::{
        Arc,
        atomic::{AtomicU8, AtomicU32, AtomicU64, AtomicUsize, Ordering},
    },
};

pub(crate) const FREE: u8 = 0;
pub(crate) const OPEN: u8 = 1;
pub(crate) const SPENT: u8 = 2;
pub(crate) const DROPPED: u8 = 3;

/// The part of a session that its handles share: one slot a sequence. Lock-free, so that a handle can be dropped on
/// any thread, also while a pass is running.
pub(crate) struct Table {
    pub(crate) session: u64,
    pub(crate) slots: Box<[Slot]>,
    /// Handles dropped since the session last looked. Lets a step skip the scan when there are none.
    pub(crate) dropped: AtomicU32,
}

#[derive(Default)]
pub(crate) struct Slot {
    pub(crate) state: AtomicU8,
    /// Grows whenever a slot changes hands, so that an entry made for the former sequence is recognised.
    pub(crate) epoch: AtomicU64,
    /// Grows whenever the length changes, so that an entry is recognised whose sequence was cut and has grown back.
    pub(crate) moves: AtomicU64,
    pub(crate) len: AtomicUsize,
}

impl Table {
    pub(crate) fn new(count: u32) -> Self {
        static SESSIONS: AtomicU64 = AtomicU64::new(1);
        Self {
            session: SESSIONS.fetch_add(1, Ordering::Relaxed),
            slots: (0..count).map(|_| Slot::default()).collect(),
            dropped: AtomicU32::new(0),
        }
    }

    pub(crate) fn slot(&self, index: u32) -> &Slot {
        &self.slots[index as usize]
    }
}

/// A sequence of tokens whose keys and values a session holds.
///
/// It is an owned handle with no native pointer in it: `Send + Sync`, free of lifetimes, and dropping it, on any thread
/// and at any time, gives its slot back; the session clears the cells first thing in its next call. It belongs to the
/// session that made it; another one refuses it. It may outlive the session, and is then of no more use.
pub struct Sequence {
    pub(crate) table: Arc<Table>,
    pub(crate) slot: u32,
}

impl Sequence {
    /// How many positions the session holds for it. Only a pass that succeeded makes it grow.
    #[must_use]
    pub fn len(&self) -> usize {
        self.table.slot(self.slot).len.load(Ordering::Acquire)
    }

    /// Whether the session holds nothing for it.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Whether its cells were lost in a pass that failed half-way on a model that cannot go back. A spent sequence is
    /// refused everywhere; feed its tokens to a new one.
    #[must_use]
    pub fn is_spent(&self) -> bool {
        self.table.slot(self.slot).state.load(Ordering::Acquire) == SPENT
    }

    pub(crate) fn ticket(&self) -> Ticket {
        let slot = self.table.slot(self.slot);
        Ticket {
            session: self.table.session,
            slot: self.slot,
            epoch: slot.epoch.load(Ordering::Acquire),
            moves: slot.moves.load(Ordering::Acquire),
        }
    }
}

impl Drop for Sequence {
    fn drop(&mut self) {
        // In this order: whoever sees the count sees the state. A session that reaps the slot in between, and may even
        // have given it to another sequence by the time of the count, then looks once more than it has to.
        self.table.slot(self.slot).state.store(DROPPED, Ordering::Release);
        self.table.dropped.fetch_add(1, Ordering::Release);
    }
}

impl fmt::Debug for Sequence {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Sequence")
            .field("session", &self.table.session)
            .field("slot", &self.slot)
            .field("len", &self.len())
            .finish_non_exhaustive()
    }
}

/// What an entry of a batch remembers of its sequence, in order to recognise it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Ticket {
    pub(crate) session: u64,
    pub(crate) slot: u32,
    pub(crate) epoch: u64,
    pub(crate) moves: u64,
}
