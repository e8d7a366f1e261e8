//! The mutex, condition variable, atomics and threads of this crate. What threads of this crate share goes through here and nowhere else.
//!
//! They are the standard library's, and shuttle's where the state machines are checked (`cargo xtask orders`): there every lock, wait and
//! wake-up is a point at which another thread may go on, and thousands of orders are tried.

#[cfg(all(shuttle, test))]
pub(crate) use shuttle::{sync::MutexGuard, sync::atomic, thread};
#[cfg(not(all(shuttle, test)))]
pub(crate) use std::{sync::MutexGuard, sync::atomic, thread};
#[cfg(all(shuttle, test))]
pub(crate) use test_kit::orders::{Condvar, check_orders};

#[cfg(all(shuttle, test))]
use shuttle::sync as given;
#[cfg(not(all(shuttle, test)))]
use std::sync as given;

use std::sync::PoisonError;
#[cfg(not(all(shuttle, test)))]
use std::time::Instant;

/// A mutex that nothing poisons. Whoever holds it leaves what is inside whole before anything that may panic: jobs, wakers, drops of
/// others' values run when it is released.
pub(crate) struct Mutex<T>(given::Mutex<T>);

impl<T> Mutex<T> {
    pub(crate) fn new(value: T) -> Self {
        Self(given::Mutex::new(value))
    }

    pub(crate) fn lock(&self) -> MutexGuard<'_, T> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A condition variable. Waits may end for no reason, as the standard library's do: look again.
#[cfg(not(all(shuttle, test)))]
pub(crate) struct Condvar(given::Condvar);

#[cfg(not(all(shuttle, test)))]
impl Condvar {
    pub(crate) fn new() -> Self {
        Self(given::Condvar::new())
    }

    pub(crate) fn wait<'a, T>(&self, guard: MutexGuard<'a, T>) -> MutexGuard<'a, T> {
        self.0.wait(guard).unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits until `deadline` at the latest; whether it has come is said beside the guard.
    pub(crate) fn wait_until<'a, T>(&self, guard: MutexGuard<'a, T>, deadline: Instant) -> (MutexGuard<'a, T>, bool) {
        let left = deadline.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return (guard, true);
        }
        let (guard, _) = self.0.wait_timeout(guard, left).unwrap_or_else(PoisonError::into_inner);
        (guard, Instant::now() >= deadline)
    }

    pub(crate) fn notify_one(&self) {
        self.0.notify_one();
    }

    pub(crate) fn notify_all(&self) {
        self.0.notify_all();
    }
}
