//! Things that threads take turns with. Who asked first is served first, and a bounded number of threads waits.
//!
//! One lock guards it, held for a few moves of pointers: nobody holds it while a thing is used. What is given back goes to whoever waits
//! longest, by name, so nobody who comes later can be faster.

#[cfg(all(shuttle, test))]
mod orders;

use super::sync::{Condvar, Mutex, MutexGuard};
use std::{
    collections::VecDeque,
    sync::{Arc, PoisonError},
    time::Instant,
};

/// How long to wait for a thing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Patience {
    /// Not at all.
    None,
    /// Until then.
    Until(Instant),
    /// As long as it takes.
    Endless,
}

/// Why there was none.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Refusal {
    /// As many wait as may.
    Full,
    /// None was free in time.
    Late,
}

/// How a queue stands, and what it has seen.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Count {
    /// Things that nobody has.
    pub(super) idle: usize,
    /// Threads that wait for one.
    pub(super) waiting: usize,
    /// How often a thing was taken.
    pub(super) taken: u64,
    /// How often whoever took it had waited.
    pub(super) waited: u64,
    /// How often there was none.
    pub(super) refused: u64,
}

pub(super) struct Queue<T> {
    bound: usize,
    state: Mutex<State<T>>,
}

struct State<T> {
    /// The one that was used last is on top: its memory is still in the caches.
    idle: Vec<T>,
    /// Nobody waits while a thing is idle.
    waiting: VecDeque<Waiting>,
    /// Things that were given to one who waits, and has not woken yet.
    given: Vec<(u64, T)>,
    next: u64,
    taken: u64,
    waited: u64,
    refused: u64,
}

struct Waiting {
    id: u64,
    woken: Arc<Condvar>,
}

impl<T> Queue<T> {
    /// A queue of these things, for which `bound` threads may wait at once.
    pub(super) fn new(things: Vec<T>, bound: usize) -> Self {
        let given = Vec::with_capacity(things.len());
        let state = State { idle: things, waiting: VecDeque::new(), given, next: 0, taken: 0, waited: 0, refused: 0 };
        Self { bound, state: Mutex::new(state) }
    }

    /// How many threads may wait at once.
    pub(super) fn bound(&self) -> usize {
        self.bound
    }

    /// Takes one, for the caller to [`give`](Self::give) back.
    pub(super) fn take(&self, patience: Patience) -> Result<T, Refusal> {
        let mut state = self.lock();
        if let Some(thing) = state.idle.pop() {
            state.taken += 1;
            return Ok(thing);
        }
        let refusal = match patience {
            Patience::None => Some(Refusal::Late),
            Patience::Until(deadline) if deadline <= Instant::now() => Some(Refusal::Late),
            _ => (state.waiting.len() >= self.bound).then_some(Refusal::Full),
        };
        if let Some(refusal) = refusal {
            state.refused += 1;
            return Err(refusal);
        }
        let (id, woken) = (state.next, Arc::new(Condvar::new()));
        state.next += 1;
        state.waiting.push_back(Waiting { id, woken: woken.clone() });
        self.wait(state, id, &woken, patience)
    }

    /// Gives one back, or adds one: to who waits longest, else to nobody.
    pub(super) fn give(&self, thing: T) {
        let mut state = self.lock();
        match state.waiting.pop_front() {
            Some(Waiting { id, woken }) => {
                state.given.push((id, thing));
                drop(state);
                woken.notify_one();
            }
            None => state.idle.push(thing),
        }
    }

    pub(super) fn count(&self) -> Count {
        let state = self.lock();
        Count {
            idle: state.idle.len(),
            waiting: state.waiting.len(),
            taken: state.taken,
            waited: state.waited,
            refused: state.refused,
        }
    }

    fn wait(
        &self,
        mut state: MutexGuard<'_, State<T>>,
        id: u64,
        woken: &Condvar,
        patience: Patience,
    ) -> Result<T, Refusal> {
        let mut is_late = false;
        loop {
            // Also where the deadline has passed: what was given to this thread is nobody else's.
            if let Some(at) = state.given.iter().position(|(other, _)| *other == id) {
                state.taken += 1;
                state.waited += 1;
                return Ok(state.given.swap_remove(at).1);
            }
            if is_late {
                state.waiting.retain(|waiting| waiting.id != id);
                state.refused += 1;
                return Err(Refusal::Late);
            }
            (state, is_late) = match patience {
                Patience::Until(deadline) => woken.wait_until(state, deadline),
                _ => (woken.wait(state), false),
            };
        }
    }

    /// Nothing that may panic runs under the lock, and what is inside is whole between any two lines.
    fn lock(&self) -> MutexGuard<'_, State<T>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(all(test, not(shuttle)))]
mod tests {
    use super::*;
    use std::{
        sync::atomic::{AtomicUsize, Ordering::SeqCst},
        thread,
        time::Duration,
    };

    /// Until so many threads wait.
    fn until_waiting<T>(queue: &Queue<T>, count: usize) {
        while queue.count().waiting != count {
            thread::yield_now();
        }
    }

    #[test]
    fn what_was_used_last_is_used_next() {
        let queue = Queue::new(vec!['a', 'b'], 1);
        let first = queue.take(Patience::None).unwrap();
        queue.give(first);
        assert_eq!(queue.take(Patience::None), Ok(first));
        assert_eq!(queue.count(), Count { idle: 1, taken: 2, ..Count::default() });
    }

    #[test]
    fn who_came_first_is_served_first() {
        let queue = Queue::new(vec![()], 8);
        queue.take(Patience::None).unwrap();
        let order = Mutex::new(Vec::new());
        thread::scope(|scope| {
            for number in 0..8 {
                let (queue, order) = (&queue, &order);
                scope.spawn(move || {
                    queue.take(Patience::Endless).unwrap();
                    order.lock().unwrap().push(number);
                    queue.give(());
                });
                until_waiting(queue, number + 1);
            }
            queue.give(());
        });
        assert_eq!(order.into_inner().unwrap(), [0, 1, 2, 3, 4, 5, 6, 7]);
        assert_eq!(queue.count(), Count { idle: 1, taken: 9, waited: 8, ..Count::default() });
    }

    #[test]
    fn whoever_comes_while_others_wait_waits_behind_them() {
        let queue = Queue::new(vec![()], 1);
        queue.take(Patience::None).unwrap();
        thread::scope(|scope| {
            let waits = scope.spawn(|| queue.take(Patience::Endless));
            until_waiting(&queue, 1);
            queue.give(());
            // It belongs to the one that waits, woken or not.
            assert_eq!(queue.take(Patience::None), Err(Refusal::Late));
            assert_eq!(waits.join().unwrap(), Ok(()));
        });
    }

    #[test]
    fn no_more_wait_than_may() {
        let queue = Queue::new(vec![()], 1);
        queue.take(Patience::None).unwrap();
        thread::scope(|scope| {
            let waits = scope.spawn(|| queue.take(Patience::Endless));
            until_waiting(&queue, 1);
            assert_eq!(queue.take(Patience::Endless), Err(Refusal::Full));
            queue.give(());
            assert_eq!(waits.join().unwrap(), Ok(()));
        });
        assert_eq!(queue.count(), Count { taken: 2, waited: 1, refused: 1, ..Count::default() });
    }

    #[test]
    fn who_is_late_waits_no_more() {
        let queue = Queue::new(vec![()], 1);
        queue.take(Patience::None).unwrap();
        let soon = Instant::now() + Duration::from_millis(20);
        assert_eq!(queue.take(Patience::Until(soon)), Err(Refusal::Late));
        assert!(Instant::now() >= soon);
        // Its place is free again, and what is given back is there for others.
        queue.give(());
        assert_eq!(queue.count(), Count { idle: 1, taken: 1, refused: 1, ..Count::default() });
        assert_eq!(queue.take(Patience::Until(soon)), Ok(()), "what is there is there, also after the deadline");
    }

    #[test]
    fn nothing_is_lost_or_had_twice_where_threads_give_up_all_the_time() {
        let queue = Queue::new((0..3).map(|_| AtomicUsize::new(0)).collect(), 64);
        let served = AtomicUsize::new(0);
        thread::scope(|scope| {
            for thread in 0..8_u64 {
                let (queue, served) = (&queue, &served);
                scope.spawn(move || {
                    for round in 0..2_000 {
                        let patience = match (thread + round) % 4 {
                            0 => Patience::None,
                            1 => Patience::Until(Instant::now() + Duration::from_micros(round % 60)),
                            _ => Patience::Endless,
                        };
                        let Ok(thing) = queue.take(patience) else { continue };
                        assert_eq!(thing.fetch_add(1, SeqCst), 0, "somebody else has it");
                        if round % 7 == 0 {
                            thread::yield_now();
                        }
                        thing.fetch_sub(1, SeqCst);
                        served.fetch_add(1, SeqCst);
                        queue.give(thing);
                    }
                });
            }
        });
        let count = queue.count();
        assert_eq!((count.idle, count.waiting), (3, 0));
        assert_eq!((count.taken, count.taken + count.refused), (served.into_inner() as u64, 16_000));
        assert!(count.waited > 0);
    }
}
