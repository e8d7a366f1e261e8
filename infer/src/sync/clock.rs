//! The condition variable of the models. There is no time in them: a deadline is something that may come in any order with the rest.

use shuttle::sync::MutexGuard;
use std::{
    sync::{
        Arc, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
    time::Instant,
};

pub(crate) struct Condvar(Arc<shuttle::sync::Condvar>);

impl Condvar {
    pub(crate) fn new() -> Self {
        Self(Arc::new(shuttle::sync::Condvar::new()))
    }

    pub(crate) fn wait<'a, T>(&self, guard: MutexGuard<'a, T>) -> MutexGuard<'a, T> {
        self.0.wait(guard).unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits until it is notified, or a thread of its own says that the time has come: when that is, is the scheduler's choice. As ever,
    /// others that wait here may be woken for no reason.
    pub(crate) fn wait_until<'a, T>(&self, guard: MutexGuard<'a, T>, _deadline: Instant) -> (MutexGuard<'a, T>, bool) {
        let alarm = Arc::new(Alarm::default());
        let (rings, condvar) = (alarm.clone(), self.0.clone());
        shuttle::thread::spawn(move || {
            // Rung before the wait has begun, it would not be heard.
            while !rings.heard.load(Ordering::SeqCst) {
                shuttle::thread::yield_now();
                rings.rung.store(true, Ordering::SeqCst);
                condvar.notify_all();
            }
        });
        let guard = self.wait(guard);
        alarm.heard.store(true, Ordering::SeqCst);
        (guard, alarm.rung.load(Ordering::SeqCst))
    }

    pub(crate) fn notify_one(&self) {
        self.0.notify_one();
    }

    pub(crate) fn notify_all(&self) {
        self.0.notify_all();
    }
}

#[derive(Default)]
struct Alarm {
    rung: AtomicBool,
    heard: AtomicBool,
}
