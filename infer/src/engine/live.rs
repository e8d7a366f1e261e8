//! Which requests have not ended yet: what draining an engine waits for.

use crate::sync::{Condvar, Mutex};
use std::{sync::Arc, time::Instant};

/// Counts requests from when they are made until their readers were told how they ended.
pub(crate) struct Gate {
    live: Mutex<usize>,
    none: Condvar,
}

/// One of them.
pub(crate) struct Live(Arc<Gate>);

impl Gate {
    pub(crate) fn new() -> Arc<Self> {
        Arc::new(Self { live: Mutex::new(0), none: Condvar::new() })
    }

    pub(crate) fn enter(self: &Arc<Self>) -> Live {
        *self.live.lock() += 1;
        Live(self.clone())
    }

    /// Waits until there are none, or until this time. Says whether there are none.
    pub(crate) fn wait(&self, until: Option<Instant>) -> bool {
        let mut live = self.live.lock();
        let mut late = false;
        while *live > 0 && !late {
            match until {
                None => live = self.none.wait(live),
                Some(until) => (live, late) = self.none.wait_until(live, until),
            }
        }
        *live == 0
    }
}

impl Drop for Live {
    fn drop(&mut self) {
        let mut live = self.0.live.lock();
        *live -= 1;
        if *live == 0 {
            self.0.none.notify_all();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::{thread, time::Duration};

    #[test]
    fn waits_for_all_and_no_longer_than_it_may() {
        let gate = Gate::new();
        assert!(gate.wait(None));
        let (first, second) = (gate.enter(), gate.enter());
        assert!(!gate.wait(Some(Instant::now() + Duration::from_millis(5))));
        thread::scope(|scope| {
            let waiting = scope.spawn(|| gate.wait(None));
            drop(first);
            assert!(!gate.wait(Some(Instant::now())));
            drop(second);
            assert!(waiting.join().unwrap());
        });
    }
}
