//! Ends runs that are not over in time.

use crate::{error::error, raw};
use infer_core::{ErrorKind, Interrupt, Result};
use std::{
    sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError},
    thread::{Builder, JoinHandle},
    time::Instant,
};

/// Runs with an eye on the clock; `watch` is there from the first time on.
pub(super) fn watched(
    watch: &mut Option<Watch>,
    options: &raw::RunOptions,
    deadline: Instant,
    run: impl FnOnce() -> Result<()>,
) -> Result<()> {
    if Instant::now() >= deadline {
        return Err(raw::Stop::Deadline.into_error());
    }
    let watch = match watch {
        Some(watch) => watch,
        None => watch.insert(Watch::new(options.deadline())?),
    };
    watch.until(deadline, run)
}

/// A thread that raises an interrupt when it is time. It sleeps otherwise.
pub(super) struct Watch {
    shared: Arc<Shared>,
    thread: Option<JoinHandle<()>>,
}

struct Shared {
    interrupt: Interrupt,
    order: Mutex<Order>,
    changed: Condvar,
}

/// What the thread is to do.
enum Order {
    Sleep,
    Until(Instant),
    End,
}

impl Watch {
    pub(super) fn new(interrupt: Interrupt) -> Result<Self> {
        let shared = Arc::new(Shared { interrupt, order: Mutex::new(Order::Sleep), changed: Condvar::new() });
        let watched = Arc::clone(&shared);
        let thread =
            Builder::new().name("infer-deadline".to_owned()).spawn(move || watched.watch()).map_err(|why| {
                error(ErrorKind::OutOfMemory, "the system starts no thread that could watch a deadline")
                    .with_source(why)
            })?;
        Ok(Self { shared, thread: Some(thread) })
    }

    /// Runs `f`, with the interrupt raised from the deadline on, and lowered afterwards.
    pub(super) fn until<R>(&self, deadline: Instant, f: impl FnOnce() -> R) -> R {
        /// Also when `f` panics, the interrupt is lowered.
        struct Armed<'w>(&'w Shared);
        impl Drop for Armed<'_> {
            fn drop(&mut self) {
                // Lowered while the thread cannot raise it.
                let mut order = self.0.lock();
                *order = Order::Sleep;
                self.0.interrupt.lower();
            }
        }
        let armed = Armed(&self.shared);
        *self.shared.lock() = Order::Until(deadline);
        self.shared.changed.notify_one();
        let result = f();
        drop(armed);
        result
    }
}

impl Shared {
    fn watch(&self) {
        let mut order = self.lock();
        loop {
            order = match *order {
                Order::End => return,
                Order::Sleep => self.changed.wait(order).unwrap_or_else(PoisonError::into_inner),
                Order::Until(deadline) => {
                    let left = deadline.saturating_duration_since(Instant::now());
                    if left.is_zero() {
                        self.interrupt.raise();
                        *order = Order::Sleep;
                        order
                    } else {
                        self.changed.wait_timeout(order, left).unwrap_or_else(PoisonError::into_inner).0
                    }
                }
            };
        }
    }

    fn lock(&self) -> MutexGuard<'_, Order> {
        self.order.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        *self.shared.lock() = Order::End;
        self.shared.changed.notify_one();
        if let Some(thread) = self.thread.take() {
            // It has nothing that panics.
            drop(thread.join());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::{
        sync::atomic::{AtomicBool, Ordering},
        time::Duration,
    };

    #[test]
    fn raises_when_it_is_time_and_lowers_afterwards() {
        let flag = Arc::new(AtomicBool::new(false));
        let set = Arc::clone(&flag);
        let watch = Watch::new(Interrupt::new(move |up| set.store(up, Ordering::SeqCst))).unwrap();
        let raised = || flag.load(Ordering::SeqCst);
        for _ in 0..3 {
            let far = Instant::now() + Duration::from_secs(3600);
            assert!(!watch.until(far, raised), "not yet");
            watch.until(Instant::now() + Duration::from_millis(2), || {
                while !raised() {
                    std::thread::yield_now();
                }
            });
            assert!(!raised(), "the next run is not meant");
        }
    }
}
