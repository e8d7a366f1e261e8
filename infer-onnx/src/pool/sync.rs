//! The mutex and the condition variable of the pool's queue: the standard library's, and shuttle's where the queue is checked in thousands
//! of orders (`cargo xtask orders`).

#[cfg(not(all(shuttle, test)))]
pub(super) use std::sync::{Mutex, MutexGuard};
#[cfg(all(shuttle, test))]
pub(super) use {
    shuttle::sync::{Mutex, MutexGuard},
    test_kit::orders::Condvar,
};

#[cfg(not(all(shuttle, test)))]
use std::{sync::PoisonError, time::Instant};

/// A condition variable. Waits may end for no reason, as the standard library's do: look again.
#[cfg(not(all(shuttle, test)))]
pub(super) struct Condvar(std::sync::Condvar);

#[cfg(not(all(shuttle, test)))]
impl Condvar {
    pub(super) fn new() -> Self {
        Self(std::sync::Condvar::new())
    }

    pub(super) fn wait<'a, T>(&self, guard: MutexGuard<'a, T>) -> MutexGuard<'a, T> {
        self.0.wait(guard).unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits until `deadline` at the latest; whether it has come is said beside the guard.
    pub(super) fn wait_until<'a, T>(&self, guard: MutexGuard<'a, T>, deadline: Instant) -> (MutexGuard<'a, T>, bool) {
        let left = deadline.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return (guard, true);
        }
        let (guard, _) = self.0.wait_timeout(guard, left).unwrap_or_else(PoisonError::into_inner);
        (guard, Instant::now() >= deadline)
    }

    pub(super) fn notify_one(&self) {
        self.0.notify_one();
    }
}
