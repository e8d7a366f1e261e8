//! How tests are run in orders of a checker's choice, and the condition variable they have then (`cargo xtask orders`, which is what sets
//! `--cfg shuttle`). There is no time in them: a deadline is something that may come in any order with the rest.

use shuttle::{
    scheduler::{PctScheduler, RandomScheduler},
    sync::MutexGuard,
};
use std::{
    sync::{
        Arc, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
    time::Instant,
};

/// A condition variable, of a mutex of shuttle's.
pub struct Condvar(Arc<shuttle::sync::Condvar>);

impl Default for Condvar {
    fn default() -> Self {
        Self::new()
    }
}

impl Condvar {
    /// One that nobody waits for.
    pub fn new() -> Self {
        Self(Arc::new(shuttle::sync::Condvar::new()))
    }

    /// Waits until it is notified.
    pub fn wait<'a, T>(&self, guard: MutexGuard<'a, T>) -> MutexGuard<'a, T> {
        self.0.wait(guard).unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits until it is notified, or a thread of its own says that the time has come: when that is, is the scheduler's choice. As ever,
    /// others that wait here may be woken for no reason.
    pub fn wait_until<'a, T>(&self, guard: MutexGuard<'a, T>, _deadline: Instant) -> (MutexGuard<'a, T>, bool) {
        let alarm = Arc::new(Alarm::default());
        let (rings, condvar) = (alarm.clone(), self.0.clone());
        shuttle::thread::spawn(move || {
            // Again and again: rung before the wait has begun, it would not be heard.
            loop {
                shuttle::thread::yield_now();
                if rings.heard.load(Ordering::SeqCst) {
                    break;
                }
                rings.rung.store(true, Ordering::SeqCst);
                condvar.notify_all();
            }
        });
        let guard = self.wait(guard);
        alarm.heard.store(true, Ordering::SeqCst);
        (guard, alarm.rung.load(Ordering::SeqCst))
    }

    /// Wakes one that waits.
    pub fn notify_one(&self) {
        self.0.notify_one();
    }

    /// Wakes all that wait.
    pub fn notify_all(&self) {
        self.0.notify_all();
    }
}

#[derive(Default)]
struct Alarm {
    rung: AtomicBool,
    heard: AtomicBool,
}

/// Runs a test in many orders: at random, which tries deep ones, and by priorities that change seldom, which finds bugs that few changes of
/// threads make ("probabilistic concurrency testing"). The seed is new each time; a failure prints its order, for `shuttle::replay`.
pub fn check_orders(test: impl Fn() + Send + Sync + Copy + 'static) {
    const ORDERS: usize = 2_000;
    let mut config = shuttle::Config::default();
    // Messages are formatted on them.
    config.stack_size = 256 << 10;
    // What goes on for so long waits for something that does not come.
    config.max_steps = shuttle::MaxSteps::FailAfter(50_000);
    shuttle::Runner::new(RandomScheduler::new(ORDERS), config.clone()).run(test);
    shuttle::Runner::new(PctScheduler::new(3, ORDERS), config).run(test);
}

/// A checker that sees nothing proves nothing.
#[test]
#[should_panic(expected = "deadlock")]
fn a_lost_wake_up_is_seen() {
    check_orders(|| {
        let shared = Arc::new((shuttle::sync::Mutex::new(()), Condvar::new(), AtomicBool::new(false)));
        let other = shared.clone();
        shuttle::thread::spawn(move || {
            let (_, condvar, done) = &*other;
            // Not under the lock: it may come between the look and the wait.
            done.store(true, Ordering::SeqCst);
            condvar.notify_one();
        });
        let (mutex, condvar, done) = &*shared;
        let mut guard = mutex.lock().unwrap();
        while !done.load(Ordering::SeqCst) {
            guard = condvar.wait(guard);
        }
    });
}
