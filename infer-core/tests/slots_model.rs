//! [`Slots`] against a model that is too simple to be wrong, over random histories; and handles dropped on other threads
//! while the session works.

use infer_core::{Batch, Capabilities, ErrorKind, Limits, Sequence, Slots, Token, Want};
use proptest::{collection::vec, prelude::*};
use std::{collections::HashSet, sync::mpsc, thread};

const SLOTS: u32 = 4;
const CONTEXT: usize = 12;

/// One step of a history. The numbers choose among the handles, batches and lengths there are at that point.
#[derive(Clone, Debug)]
enum Step {
    Open,
    Fork {
        parent: usize,
        len: usize,
    },
    Drop {
        handle: usize,
        elsewhere: bool,
    },
    Truncate {
        handle: usize,
        len: usize,
    },
    Spend {
        handle: usize,
    },
    /// A new batch with these entries: handle and number of tokens.
    Push {
        entries: Vec<(usize, usize)>,
    },
    /// Check a batch that was pushed at some time, and commit it if it passes.
    Decode {
        batch: usize,
    },
    Reap,
}

fn step() -> impl Strategy<Value = Step> {
    let number = 0..64usize;
    prop_oneof![
        3 => Just(Step::Open),
        2 => (number.clone(), number.clone()).prop_map(|(parent, len)| Step::Fork { parent, len }),
        2 => (number.clone(), any::<bool>()).prop_map(|(handle, elsewhere)| Step::Drop { handle, elsewhere }),
        2 => (number.clone(), number.clone()).prop_map(|(handle, len)| Step::Truncate { handle, len }),
        1 => number.clone().prop_map(|handle| Step::Spend { handle }),
        4 => vec((number.clone(), 0..4usize), 1..4).prop_map(|entries| Step::Push { entries }),
        6 => number.prop_map(|batch| Step::Decode { batch }),
        1 => Just(Step::Reap),
    ]
}

/// What the model knows of a sequence. `version` changes with everything that makes entries stale.
#[derive(Clone, Debug, PartialEq)]
struct Known {
    id: usize,
    version: usize,
    len: usize,
    spent: bool,
}

struct World {
    slots: Slots,
    limits: Limits,
    live: Vec<(Sequence, Known)>,
    batches: Vec<(Batch, Vec<(Known, usize)>)>,
    /// Dropped and not yet reaped.
    dropped: HashSet<u32>,
    opened: usize,
}

impl World {
    fn new() -> Self {
        Self {
            slots: Slots::new(SLOTS),
            limits: Limits::new(CONTEXT, 8, SLOTS as usize, 10),
            live: Vec::new(),
            batches: Vec::new(),
            dropped: HashSet::new(),
            opened: 0,
        }
    }

    fn reap(&mut self) {
        let mut cleared = HashSet::new();
        self.slots.reap(|slot| assert!(cleared.insert(slot), "slot {slot} was cleared twice"));
        assert_eq!(cleared, std::mem::take(&mut self.dropped));
    }

    fn open(&mut self, len: usize) {
        self.reap();
        match self.slots.open() {
            Ok((slot, seq)) => {
                assert!(self.live.len() < SLOTS as usize);
                assert_eq!((seq.len(), self.slots.slot(&seq).unwrap()), (0, slot));
                self.slots.set_len(slot, len);
                self.live.push((seq, Known { id: self.opened, version: 0, len, spent: false }));
                self.opened += 1;
            }
            Err(error) => {
                assert_eq!(error.kind(), ErrorKind::TooManySequences);
                assert_eq!(self.live.len(), SLOTS as usize);
            }
        }
    }

    fn handle(&self, number: usize) -> Option<usize> {
        (!self.live.is_empty()).then(|| number % self.live.len())
    }

    fn take(&mut self, step: Step) -> Option<()> {
        match step {
            Step::Open => self.open(0),
            Step::Fork { parent, len } => {
                let (_, known) = &self.live[self.handle(parent)?];
                if !known.spent {
                    self.open(len % (known.len + 1));
                }
            }
            Step::Drop { handle, elsewhere } => {
                let (seq, known) = self.live.swap_remove(self.handle(handle)?);
                // A spent sequence has a slot as well; only `Slots::slot` does not tell it.
                let slot = (0..SLOTS).find(|&slot| known_slot(&self.slots, &seq) == Some(slot));
                assert_eq!(slot.is_none(), known.spent);
                let before: HashSet<u32> = self.slots.dropped().collect();
                if elsewhere {
                    thread::spawn(move || drop(seq)).join().unwrap();
                } else {
                    drop(seq);
                }
                let new: Vec<u32> = self.slots.dropped().filter(|slot| !before.contains(slot)).collect();
                assert_eq!(new.len(), 1);
                assert!(slot.is_none_or(|slot| slot == new[0]));
                self.dropped.insert(new[0]);
            }
            Step::Truncate { handle, len } => {
                self.reap();
                let at = self.handle(handle)?;
                let (seq, known) = &mut self.live[at];
                let slot = self.slots.slot(seq);
                assert_eq!(slot.is_err(), known.spent);
                let len = len % (known.len + 1);
                if let Ok(slot) = slot {
                    self.slots.set_len(slot, len);
                    known.version += usize::from(known.len != len);
                    known.len = len;
                }
            }
            Step::Spend { handle } => {
                let at = self.handle(handle)?;
                let (seq, known) = &mut self.live[at];
                if let Ok(slot) = self.slots.slot(seq) {
                    self.slots.spend(slot);
                    *known = Known { spent: true, len: 0, version: known.version + 1, ..*known };
                }
            }
            Step::Push { entries } => {
                let (mut batch, mut expected) = (Batch::new(), Vec::new());
                for (handle, count) in entries {
                    let (seq, known) = &self.live[self.handle(handle)?];
                    batch.push(seq, &vec![Token(1); count], Want::Nothing);
                    expected.push((known.clone(), count));
                }
                self.batches.push((batch, expected));
            }
            Step::Decode { batch } => self.decode(batch)?,
            Step::Reap => self.reap(),
        }
        Some(())
    }

    fn decode(&mut self, batch: usize) -> Option<()> {
        if self.batches.is_empty() {
            return None;
        }
        self.reap();
        let (batch, entries) = &self.batches[batch % self.batches.len()];
        let right = |(known, count): &(Known, usize)| {
            let current = self.live.iter().any(|(_, now)| now == known);
            current && !known.spent && *count > 0 && known.len + count <= CONTEXT
        };
        let distinct = entries.iter().map(|(known, _)| known.id).collect::<HashSet<_>>().len() == entries.len();
        let tokens: usize = entries.iter().map(|(_, count)| count).sum();
        let expected = distinct && tokens <= self.limits.batch && entries.iter().all(right);
        let outcome = self.slots.check(batch, &self.limits, &Capabilities::default());
        assert_eq!(outcome.is_ok(), expected, "{entries:?}: {outcome:?}");
        if expected {
            self.slots.commit(batch);
            for (fed, count) in entries {
                let (_, known) = self.live.iter_mut().find(|(_, known)| known.id == fed.id).unwrap();
                known.len += count;
                known.version += 1;
            }
        }
        Some(())
    }

    fn invariants(&self) {
        assert_eq!(self.slots.open_count(), self.live.len());
        assert_eq!(self.slots.dropped().collect::<HashSet<_>>(), self.dropped);
        let mut slots = HashSet::new();
        for (seq, known) in &self.live {
            assert_eq!((seq.len(), seq.is_spent()), (known.len, known.spent));
            if let Some(slot) = known_slot(&self.slots, seq) {
                assert!(slots.insert(slot), "two live handles on slot {slot}");
                assert!(!self.dropped.contains(&slot));
                assert_eq!(self.slots.len(slot), known.len);
            }
        }
    }
}

fn known_slot(slots: &Slots, seq: &Sequence) -> Option<u32> {
    slots.slot(seq).ok()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 512, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn do_what_the_model_does(steps in vec(step(), 1..80)) {
        let mut world = World::new();
        for step in steps {
            world.take(step); // a step that has nothing to act on is none
            world.invariants();
        }
    }
}

/// Two threads drop handles while a third opens, spends, reaps and uses them. Each slot that was opened is cleared once,
/// nothing is lost, and no slot is handed out while its handle lives.
#[test]
fn handles_may_be_dropped_on_other_threads_at_any_time() {
    const OPENED: usize = 20_000;
    let mut slots = Slots::new(SLOTS);
    let limits = Limits::new(usize::MAX, usize::MAX, SLOTS as usize, 10);
    let (mut opened, mut cleared, mut waited) = (0, 0, 0);
    thread::scope(|scope| {
        let (senders, receivers): (Vec<_>, Vec<_>) = (0..2).map(|_| mpsc::channel::<Sequence>()).unzip();
        for handles in receivers {
            scope.spawn(move || {
                for (nth, handle) in handles.into_iter().enumerate() {
                    if nth % 3 == 0 {
                        thread::yield_now();
                    }
                    assert!(handle.len() <= 1);
                    drop(handle);
                }
            });
        }
        let mut batch = Batch::new();
        while opened < OPENED {
            slots.reap(|_| cleared += 1);
            let Ok((slot, seq)) = slots.open() else {
                waited += 1;
                assert!(waited < 10_000_000, "a slot is lost: {opened} were opened, {cleared} cleared");
                thread::yield_now();
                continue;
            };
            (opened, waited) = (opened + 1, 0);
            assert_eq!((seq.len(), seq.is_spent()), (0, false), "slot {slot} came back used");
            batch.clear();
            batch.push(&seq, &[Token(1)], Want::Nothing);
            if opened % 2 == 0 {
                // Dropped before, during or after the pass.
                senders[opened % 4 / 2].send(seq).unwrap();
                if slots.check(&batch, &limits, &Capabilities::default()).is_ok() {
                    slots.commit(&batch);
                }
                if opened % 3 == 0 {
                    slots.spend(slot);
                }
            } else {
                slots.check(&batch, &limits, &Capabilities::default()).unwrap();
                slots.commit(&batch);
                senders[opened % 4 / 2].send(seq).unwrap();
            }
            let (open, dropped) = (slots.open_count(), slots.dropped().count());
            assert!(open <= SLOTS as usize && dropped <= SLOTS as usize);
        }
    });
    slots.reap(|_| cleared += 1);
    assert_eq!((opened, cleared), (OPENED, OPENED));
    assert_eq!((slots.open_count(), slots.dropped().count()), (0, 0));
    let all: Vec<_> = (0..SLOTS).map(|_| slots.open().unwrap()).collect();
    assert!(all.iter().all(|(_, seq)| seq.is_empty()));
}
