//! Loads that somebody watches.

use crate::error::error;
use infer_core::{ErrorKind, Result};
use ort::session::builder::{LoadCanceler, SessionBuilder};
use std::{
    fmt,
    ops::ControlFlow,
    panic,
    sync::{
        Mutex, PoisonError,
        mpsc::{RecvTimeoutError, channel},
    },
    thread,
    time::Duration,
};

/// How often whoever watches is asked. ONNX Runtime looks at its flag about as often.
const EVERY: Duration = Duration::from_millis(20);

/// A load that can be ended from another thread.
#[derive(Default)]
pub(crate) struct Loading(Mutex<State>);

#[derive(Default)]
struct State {
    is_cancelled: bool,
    running: Option<LoadCanceler>,
}

impl Loading {
    /// Comes before a load with these options.
    ///
    /// # Errors
    /// [`Cancelled`](ErrorKind::Cancelled) where it was ended already.
    pub(crate) fn begin(&self, options: &SessionBuilder) -> Result<()> {
        let mut state = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if state.is_cancelled {
            return Err(cancelled());
        }
        state.running = Some(options.canceler());
        Ok(())
    }

    fn cancel(&self) {
        let mut state = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        state.is_cancelled = true;
        if let Some(Err(error)) = state.running.as_ref().map(LoadCanceler::cancel) {
            tracing::warn!("a load could not be ended, and goes on to its end: {error}");
        }
    }
}

/// The error of a load that whoever watches it has ended.
pub(crate) fn cancelled() -> infer_core::Error {
    error(ErrorKind::Cancelled, "loading was stopped by whoever watches it")
}

/// Loads on a thread of its own, while `watch` is called on this one with `share`, which stands still: the runtime does not say how far it is.
///
/// # Errors
/// Those of `load`; [`Cancelled`](ErrorKind::Cancelled) when `watch` ended it.
pub(crate) fn watched<T: Send>(
    watch: &mut dyn FnMut(f32) -> ControlFlow<()>,
    share: f32,
    load: impl FnOnce(&Loading) -> Result<T> + Send,
) -> Result<T> {
    let loading = Loading::default();
    thread::scope(|scope| {
        // Should `watch` panic, the load is ended before the thread is waited for.
        let guard = Ended(&loading);
        let (done, wait) = channel::<()>();
        let loading = &loading;
        let running = thread::Builder::new().name("infer load".to_owned()).spawn_scoped(scope, move || {
            let _done = done;
            load(loading)
        });
        let running = running.map_err(|why| {
            error(ErrorKind::OutOfMemory, "no thread can be had to load the model on").with_source(why)
        })?;
        let mut was_ended = false;
        while wait.recv_timeout(EVERY) == Err(RecvTimeoutError::Timeout) {
            if !was_ended && watch(share).is_break() {
                was_ended = true;
                loading.cancel();
            }
        }
        let loaded = running.join().unwrap_or_else(|payload| panic::resume_unwind(payload));
        drop(guard);
        if was_ended { Err(cancelled()) } else { loaded }
    })
}

/// Ends a load when it goes.
struct Ended<'l>(&'l Loading);

impl Drop for Ended<'_> {
    fn drop(&mut self) {
        if thread::panicking() {
            self.0.cancel();
        }
    }
}

impl fmt::Debug for Loading {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Loading")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicBool, Ordering};

    /// A load that takes until it is ended.
    fn endless(loading: &Loading) -> Result<()> {
        while !loading.0.lock().unwrap_or_else(PoisonError::into_inner).is_cancelled {
            thread::sleep(Duration::from_millis(1));
        }
        Err(cancelled())
    }

    #[test]
    fn what_is_loaded_comes_back_or_what_went_wrong() {
        let mut go_on = |_| ControlFlow::Continue(());
        assert_eq!(watched(&mut go_on, 0.5, |_| Ok(7)).unwrap(), 7);
        let failed = watched(&mut go_on, 0.5, |_| Err::<(), _>(error(ErrorKind::Io, "no such file"))).unwrap_err();
        assert_eq!(failed.kind(), ErrorKind::Io);
        let gone = panic::catch_unwind(panic::AssertUnwindSafe(|| {
            watched(&mut go_on, 0.5, |_| -> Result<()> { panic!("oh") })
        }));
        assert!(gone.is_err());
    }

    #[test]
    fn whoever_watches_ends_a_load() {
        let mut asked = 0;
        let mut watch = |share| {
            asked += 1;
            assert_eq!(share, 0.25);
            if asked < 3 { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
        };
        assert_eq!(watched(&mut watch, 0.25, endless).unwrap_err().kind(), ErrorKind::Cancelled);
        assert_eq!(asked, 3);
    }

    #[test]
    fn a_panic_of_whoever_watches_ends_it_too() {
        let ended = AtomicBool::new(false);
        let load = |loading: &Loading| {
            let outcome = endless(loading);
            ended.store(true, Ordering::Relaxed);
            outcome
        };
        let panicked = panic::catch_unwind(panic::AssertUnwindSafe(|| watched(&mut |_| panic!("enough"), 0.0, load)));
        assert!(panicked.is_err() && ended.load(Ordering::Relaxed));
    }
}
