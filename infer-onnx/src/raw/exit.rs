//! The end of the process: `exit()` runs the destructors of ONNX Runtime's static objects, whatever other threads are doing. One that computes
//! then reads freed memory. So the door closes first: runs are told to stop, it is waited until the last thread has come out, and
//! whoever comes later does not get in.

use std::{
    cell::Cell,
    ffi::c_int,
    sync::{
        Mutex, PoisonError, Weak,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
    thread,
    time::{Duration, Instant},
};

/// Longer than it takes a run to see that it is to stop; not for ever, since a thread inside may wait for the one that called `exit()`.
const PATIENCE: Duration = Duration::from_secs(5);

// None of these has a destructor, so they can be used until the very end.
static CLOSED: AtomicBool = AtomicBool::new(false);
static INSIDE: AtomicUsize = AtomicUsize::new(0);
static VISITS: AtomicUsize = AtomicUsize::new(0);
static RUNNING: Mutex<Vec<Weak<dyn End>>> = Mutex::new(Vec::new());

thread_local! {
    /// How many native calls this thread is in: what takes a log line may call again.
    static DEPTH: Cell<usize> = const { Cell::new(0) };
    static EXITING: Cell<bool> = const { Cell::new(false) };
}

/// What can be told that the process ends.
pub(super) trait End: Send + Sync {
    /// Stops what runs, for good.
    fn end(&self);
}

/// Has `end` told when the process ends, for as long as it lives.
pub(super) fn tell(end: Weak<dyn End>) {
    let mut running = RUNNING.lock().unwrap_or_else(PoisonError::into_inner);
    running.retain(|end| end.strong_count() > 0);
    running.push(end);
}

/// A thread that is in a native call.
pub(super) struct Visit(());

impl Visit {
    /// Comes in, or never returns: when the process is ending on another thread. The thread that ends it may come in still, as what it calls is
    /// of its own making.
    pub(super) fn enter() -> Self {
        let depth = DEPTH.get();
        DEPTH.set(depth + 1);
        if depth == 0 {
            INSIDE.fetch_add(1, Ordering::SeqCst);
            if CLOSED.load(Ordering::SeqCst) && !EXITING.get() {
                INSIDE.fetch_sub(1, Ordering::SeqCst);
                loop {
                    thread::sleep(Duration::from_secs(60 * 60));
                }
            }
        }
        Self(())
    }
}

impl Drop for Visit {
    fn drop(&mut self) {
        let depth = DEPTH.get() - 1;
        DEPTH.set(depth);
        if depth > 0 {
            return;
        }
        // What exit() calls, it calls in the reverse order of registration, destructors of static objects included. Some of these are made when
        // they are first used, so the door is put before them again: after the 1st visit, the 2nd, the 4th, …. Two threads at once may count one
        // visit for both: no number is left out, and the door may be put there twice.
        let visits = VISITS.load(Ordering::Relaxed) + 1;
        VISITS.store(visits, Ordering::Relaxed);
        if visits.is_power_of_two() {
            close_before_exit();
        }
        INSIDE.fetch_sub(1, Ordering::SeqCst);
    }
}

/// Has the door closed before everything that was registered to be done at exit so far.
fn close_before_exit() {
    unsafe extern "C" {
        fn atexit(function: extern "C" fn()) -> c_int;
    }
    // SAFETY: the function is there until the process ends, for code is never unloaded, and does not unwind. When there is no room for it, an
    // earlier registration has to do.
    let _ = unsafe { atexit(close) };
}

/// Called by `exit()`, on the thread that called it.
extern "C" fn close() {
    EXITING.set(true);
    CLOSED.store(true, Ordering::SeqCst);
    // Whoever holds the lock is another thread, in the few lines above: it is not waited for if it does not come.
    if let Ok(running) = RUNNING.try_lock() {
        running.iter().filter_map(Weak::upgrade).for_each(|end| end.end());
    }
    // What takes a log line may have called exit(): its own thread does not come out any more.
    let own = usize::from(DEPTH.get() > 0);
    let begun = Instant::now();
    while INSIDE.load(Ordering::SeqCst) > own && begun.elapsed() < PATIENCE {
        thread::sleep(Duration::from_millis(1));
    }
}
