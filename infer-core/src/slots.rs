use crate::{
    Batch, Capabilities, Entry, Error, ErrorKind, Limits, Result, Sequence, Usage, Want,
    sequence::{DROPPED, FREE, OPEN, SPENT, Slot, Table},
};
use std::{
    fmt,
    ops::Range,
    sync::{Arc, atomic::Ordering},
};

/// The session's side of its sequences: identity, lengths, and the check of a batch. For backends.
///
/// It is the same for every backend, so that each mistake gets the same error everywhere, and it is the only place
/// where a length changes. A backend calls [`reap`](Self::reap) first thing in every `&mut self` method,
/// [`check`](Self::check) before native code sees a batch, and [`commit`](Self::commit) when the pass has succeeded.
pub struct Slots {
    table: Arc<Table>,
    /// Slot → the number of the last check that met it: finds duplicates without clearing anything.
    met: Box<[u64]>,
    checks: u64,
}

impl Slots {
    /// Slots for `count` sequences at once.
    #[must_use]
    pub fn new(count: u32) -> Self {
        Self { table: Arc::new(Table::new(count)), met: vec![0; count as usize].into(), checks: 0 }
    }

    /// Takes a free slot.
    ///
    /// # Errors
    /// [`TooManySequences`](ErrorKind::TooManySequences) when there is none.
    pub fn open(&mut self) -> Result<(u32, Sequence)> {
        let free = self.table.slots.iter().position(|slot| slot.state.load(Ordering::Acquire) == FREE);
        let Some(index) = free else {
            return Err(Error::new(
                ErrorKind::TooManySequences,
                format!(
                    "all {} sequences of this session are open; drop one, or make the session with more",
                    self.table.slots.len()
                ),
            ));
        };
        self.table.slots[index].state.store(OPEN, Ordering::Release);
        let index = u32::try_from(index).expect("slots are counted in u32");
        Ok((index, Sequence { table: self.table.clone(), slot: index }))
    }

    /// The slot of a sequence of this session.
    ///
    /// # Errors
    /// [`ForeignSequence`](ErrorKind::ForeignSequence) for a sequence of another session,
    /// [`StaleSequence`](ErrorKind::StaleSequence) for a spent one.
    pub fn slot(&self, seq: &Sequence) -> Result<u32> {
        if !Arc::ptr_eq(&self.table, &seq.table) {
            return Err(ErrorKind::ForeignSequence.into());
        }
        if seq.is_spent() {
            return Err(spent());
        }
        Ok(seq.slot)
    }

    /// Frees the slots whose handle was dropped. `clear` is called with each, to empty its native cells.
    pub fn reap(&mut self, mut clear: impl FnMut(u32)) {
        if self.table.dropped.swap(0, Ordering::Acquire) == 0 {
            return;
        }
        for (index, slot) in (0..).zip(&self.table.slots) {
            if slot.state.load(Ordering::Acquire) == DROPPED {
                clear(index);
                renew(slot);
                slot.state.store(FREE, Ordering::Release);
            }
        }
    }

    /// The positions held in a slot.
    ///
    /// # Panics
    /// When `slot` is not one of this session's.
    #[must_use]
    pub fn len(&self, slot: u32) -> usize {
        self.table.slot(slot).len.load(Ordering::Acquire)
    }

    /// States the positions held in a slot, after a truncation, a fork or a restore.
    ///
    /// # Panics
    /// When `slot` is not one of this session's.
    pub fn set_len(&mut self, slot: u32, len: usize) {
        let slot = self.table.slot(slot);
        if slot.len.load(Ordering::Acquire) != len {
            slot.moves.fetch_add(1, Ordering::AcqRel);
            slot.len.store(len, Ordering::Release);
        }
    }

    /// The positions held in a slot, `dropped` of which are to be taken out.
    ///
    /// # Errors
    /// [`InvalidInput`](ErrorKind::InvalidInput) for a range that is empty or reaches beyond them.
    ///
    /// # Panics
    /// When `slot` is not one of this session's.
    pub fn check_shift(&self, slot: u32, dropped: &Range<usize>) -> Result<usize> {
        let held = self.len(slot);
        if dropped.is_empty() || dropped.end > held {
            return Err(Error::invalid_input(format!(
                "positions {} to {} are to be taken out of a sequence of {held}",
                dropped.start, dropped.end
            )));
        }
        Ok(held)
    }

    /// The positions held in a slot, of which the first `len` are to be kept or forked.
    ///
    /// # Errors
    /// [`InvalidInput`](ErrorKind::InvalidInput) where there are fewer.
    ///
    /// # Panics
    /// When `slot` is not one of this session's.
    pub fn check_cut(&self, slot: u32, len: usize) -> Result<usize> {
        let held = self.len(slot);
        if len > held {
            return Err(Error::invalid_input(format!("the sequence has {held} positions, fewer than {len}")));
        }
        Ok(held)
    }

    /// What is in use where each sequence has room for a whole context, and a cell is a position of one sequence.
    #[must_use]
    pub fn usage(&self, limits: &Limits) -> Usage {
        let open = self.open_count();
        let held: usize = (0..).zip(&self.table.slots).map(|(slot, _)| self.len(slot)).sum();
        let dropped: usize = self.dropped().map(|slot| self.len(slot)).sum();
        let used = held.saturating_sub(dropped);
        Usage::new(open, limits.sequences - open, used, limits.context * limits.sequences - used)
    }

    /// Marks a slot whose cells were lost: its sequence is refused from now on, and the slot is free when the handle
    /// is dropped. The backend has emptied the cells already.
    ///
    /// # Panics
    /// When `slot` is not one of this session's.
    pub fn spend(&mut self, slot: u32) {
        let slot = self.table.slot(slot);
        renew(slot);
        // A handle dropped meanwhile must stay dropped, or its slot would never be free again.
        let _ = slot.state.compare_exchange(OPEN, SPENT, Ordering::AcqRel, Ordering::Acquire);
    }

    /// How many sequences are open; dropped ones are not counted, whether they were reaped or not.
    #[must_use]
    pub fn open_count(&self) -> usize {
        let held = |slot: &&Slot| matches!(slot.state.load(Ordering::Acquire), OPEN | SPENT);
        self.table.slots.iter().filter(held).count()
    }

    /// The slots whose sequences were dropped and not yet reaped: their cells count as free.
    pub fn dropped(&self) -> impl Iterator<Item = u32> {
        let dropped = |(_, slot): &(u32, &Slot)| slot.state.load(Ordering::Acquire) == DROPPED;
        (0..).zip(&self.table.slots).filter(dropped).map(|(index, _)| index)
    }

    /// Checks everything that native code could trip over.
    ///
    /// # Errors
    /// Each names the entry by its index. [`InvalidInput`](ErrorKind::InvalidInput): no entry, an entry without tokens, a
    /// token outside the vocabulary, two entries of one sequence, more tokens than a batch takes.
    /// [`ForeignSequence`](ErrorKind::ForeignSequence), [`StaleSequence`](ErrorKind::StaleSequence),
    /// [`ContextFull`](ErrorKind::ContextFull), and [`Unsupported`](ErrorKind::Unsupported) for something wanted that
    /// this session cannot give.
    pub fn check(&mut self, batch: &Batch, limits: &Limits, capabilities: &Capabilities) -> Result<()> {
        if batch.is_empty() {
            return Err(Error::invalid_input("the batch has no entry; push at least one token of one sequence"));
        }
        if batch.token_count() > limits.batch {
            return Err(Error::invalid_input(format!(
                "the batch has {} tokens, this session takes {} a pass; feed the prompt in chunks",
                batch.token_count(),
                limits.batch
            )));
        }
        self.checks += 1;
        for (index, entry) in batch.entries().iter().enumerate() {
            self.check_sequence(index, entry)?;
            check_tokens(index, entry, batch, limits)?;
            check_want(index, entry.want(), capabilities)?;
        }
        Ok(())
    }

    fn check_sequence(&mut self, index: usize, entry: &Entry) -> Result<()> {
        let ticket = entry.ticket;
        if ticket.session != self.table.session {
            return Err(Error::new(
                ErrorKind::ForeignSequence,
                format!("entry {index} of the batch is of a sequence of another session"),
            ));
        }
        let slot = self.table.slot(ticket.slot);
        let state = slot.state.load(Ordering::Acquire);
        let stale = |why: String| Error::new(ErrorKind::StaleSequence, format!("entry {index} of the batch: {why}"));
        if state == SPENT {
            return Err(stale(
                "the sequence's cells were lost in a failed pass; feed its tokens to a new sequence".into(),
            ));
        }
        if state != OPEN || slot.epoch.load(Ordering::Acquire) != ticket.epoch {
            return Err(stale("its sequence was dropped after it was pushed".into()));
        }
        let len = slot.len.load(Ordering::Acquire);
        if len != entry.start() {
            return Err(stale(format!(
                "its sequence had {} positions when it was pushed and has {len} now; build the batch anew",
                entry.start()
            )));
        }
        if slot.moves.load(Ordering::Acquire) != ticket.moves {
            return Err(stale(format!(
                "its sequence was cut after it was pushed, and has grown to {len} positions again; build the batch anew"
            )));
        }
        if std::mem::replace(&mut self.met[ticket.slot as usize], self.checks) == self.checks {
            return Err(Error::invalid_input(format!(
                "entry {index} of the batch is the second one of its sequence; push all its tokens in one entry"
            )));
        }
        Ok(())
    }

    /// The pass has succeeded: every sequence of the batch grows by what was fed. The batch is one that
    /// [`check`](Self::check) has just passed.
    ///
    /// # Panics
    /// When the batch has an entry that a check would have refused as foreign.
    pub fn commit(&mut self, batch: &Batch) {
        for entry in batch.entries() {
            self.set_len(entry.slot(), entry.start() + entry.range().len());
        }
    }
}

impl fmt::Debug for Slots {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Slots")
            .field("session", &self.table.session)
            .field("open", &self.open_count())
            .finish_non_exhaustive()
    }
}

/// Makes every entry that was pushed for the slot's present sequence stale.
fn renew(slot: &Slot) {
    slot.epoch.fetch_add(1, Ordering::AcqRel);
    slot.len.store(0, Ordering::Release);
}

fn spent() -> Error {
    Error::new(
        ErrorKind::StaleSequence,
        "the sequence's cells were lost in a failed pass; feed its tokens to a new sequence",
    )
}

fn check_tokens(index: usize, entry: &Entry, batch: &Batch, limits: &Limits) -> Result<()> {
    let tokens = batch.tokens(entry);
    if tokens.is_empty() {
        return Err(Error::invalid_input(format!("entry {index} of the batch has no tokens")));
    }
    if tokens.len() > limits.context.saturating_sub(entry.start()) {
        return Err(Error::new(
            ErrorKind::ContextFull,
            format!(
                "entry {index} of the batch: {} positions and {} new tokens exceed the context of {}",
                entry.start(),
                tokens.len(),
                limits.context
            ),
        ));
    }
    if let Some(at) = tokens.iter().position(|token| token.index() >= limits.vocab) {
        return Err(Error::invalid_input(format!(
            "entry {index} of the batch: token {} at {at} is outside the vocabulary of {}",
            tokens[at], limits.vocab
        )));
    }
    Ok(())
}

fn check_want(index: usize, want: Want, capabilities: &Capabilities) -> Result<()> {
    let able = match want {
        Want::Nothing | Want::Token => true,
        Want::Logits => capabilities.logits,
        Want::Embedding => capabilities.embedding,
        Want::Score => capabilities.score,
    };
    if able {
        return Ok(());
    }
    Err(Error::unsupported(format!("entry {index} of the batch wants {want:?}, which this session does not give")))
}
