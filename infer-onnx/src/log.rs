//! What ONNX Runtime logs: into `tracing`, with the target `onnxruntime`.
//!
//! ONNX Runtime calls its one log function from any thread, a whole line at a time. Its levels are one step more talkative than ours: what it calls
//! information has several lines for each run, so that it is debugging here, and its verbose lines are a trace.
//!
//! A line is put together by ONNX Runtime only if somebody wants its level: what is wanted is asked when a session is opened.

use ort::logging::LogLevel;
use std::{
    any::Any,
    cell::{Cell, RefCell},
    mem,
    panic::{self, AssertUnwindSafe},
};
use tracing::level_filters::LevelFilter;

/// The least grave level that a subscriber of this moment may want. Warnings are always logged: whoever comes to listen later hears them.
pub(crate) fn wanted() -> LogLevel {
    match LevelFilter::current() {
        LevelFilter::TRACE => LogLevel::Verbose,
        LevelFilter::DEBUG => LogLevel::Info,
        _ => LogLevel::Warning,
    }
}

thread_local! {
    /// Native calls that are running on this thread, one in the other.
    static CALLS: Cell<usize> = const { Cell::new(0) };
    /// A subscriber panicked while it was called from C. Raised again once the native call has returned.
    static PANIC: RefCell<Option<Box<dyn Any + Send>>> = const { RefCell::new(None) };
}

/// Takes one line: where in ONNX Runtime it comes from, whose it is (a session's or a run's name), and its text. Called from C, so it does not unwind.
pub(crate) fn take(level: LogLevel, id: &str, location: &str, text: &str) {
    if let Err(payload) = panic::catch_unwind(|| emit(level, id, location, text.trim_end())) {
        // On a thread of ONNX Runtime's there is nobody whom it could be told.
        let told = CALLS.try_with(Cell::get).is_ok_and(|calls| calls > 0);
        let mut payload = Some(payload);
        if told {
            let _ = PANIC.try_with(|parked| {
                if let Ok(mut parked) = parked.try_borrow_mut()
                    && parked.is_none()
                {
                    *parked = payload.take();
                }
            });
        }
        if let Some(payload) = payload {
            discard(payload);
        }
    }
}

/// Drops what a panic carried. Its destructor is the caller's code too and may panic, which C must not see either.
fn discard(payload: Box<dyn Any + Send>) {
    if let Err(another) = panic::catch_unwind(AssertUnwindSafe(|| drop(payload))) {
        mem::forget(another);
    }
}

fn emit(level: LogLevel, id: &str, location: &str, text: &str) {
    match level {
        LogLevel::Verbose => tracing::trace!(target: "onnxruntime", id, location, "{text}"),
        LogLevel::Info => tracing::debug!(target: "onnxruntime", id, location, "{text}"),
        LogLevel::Warning => tracing::warn!(target: "onnxruntime", id, location, "{text}"),
        LogLevel::Error | LogLevel::Fatal => tracing::error!(target: "onnxruntime", id, location, "{text}"),
    }
}

/// Runs what only panics where a subscriber did, and drops that panic.
pub(crate) fn quietly(f: impl FnOnce()) {
    if let Err(payload) = panic::catch_unwind(AssertUnwindSafe(f)) {
        discard(payload);
    }
}

/// Runs a native call. A panic of a subscriber, which C must not see, goes on afterwards.
pub(crate) fn during<R>(native: impl FnOnce() -> R) -> R {
    struct Call;
    impl Drop for Call {
        fn drop(&mut self) {
            CALLS.set(CALLS.get() - 1);
        }
    }
    CALLS.set(CALLS.get() + 1);
    let call = Call;
    let result = native();
    drop(call);
    if CALLS.get() == 0
        && let Some(payload) = PANIC.take()
    {
        panic::resume_unwind(payload);
    }
    result
}

#[cfg(test)]
mod tests {
    use super::*;
    use test_kit::heard;

    fn lines(work: impl FnOnce()) -> Vec<String> {
        heard("onnxruntime", work)
    }

    fn say(level: LogLevel, text: &str) {
        take(level, "name", "file:1", text);
    }

    #[test]
    fn levels_become_ours_and_a_line_says_whose_it_is() {
        let seen = lines(|| {
            for level in [LogLevel::Verbose, LogLevel::Info, LogLevel::Warning, LogLevel::Error, LogLevel::Fatal] {
                say(level, "text\n");
            }
        });
        let levels: Vec<&str> = seen.iter().map(|line| line.split_once(' ').unwrap().0).collect();
        assert_eq!(levels, ["TRACE", "DEBUG", "WARN", "ERROR", "ERROR"]);
        assert!(seen[0].contains("id=\"name\"") && seen[0].contains("location=\"file:1\""), "{seen:?}");
        // The end of the line is not part of it.
        assert!(seen[0].starts_with("TRACE text") && !seen[0].contains('\n'), "{seen:?}");
    }

    #[test]
    fn a_panic_of_a_subscriber_waits_until_the_outermost_call_is_over() {
        let seen = lines(|| {
            let mut came_back = false;
            let raised = panic::catch_unwind(AssertUnwindSafe(|| {
                during(|| {
                    during(|| say(LogLevel::Error, "panic!"));
                    came_back = true;
                });
            }));
            assert!(raised.is_err() && came_back);
            during(|| say(LogLevel::Error, "goes on"));
        });
        assert_eq!(seen.len(), 1, "{seen:?}");
    }

    #[test]
    fn a_panic_where_nobody_can_be_told_is_dropped_and_so_is_what_it_carries() {
        let seen = lines(|| {
            say(LogLevel::Error, "panic!");
            say(LogLevel::Error, "bomb!");
            let raised = panic::catch_unwind(|| {
                during(|| {
                    say(LogLevel::Error, "panic!");
                    say(LogLevel::Error, "bomb!");
                });
            });
            assert!(raised.unwrap_err().is::<&str>(), "the first one goes on");
            during(|| say(LogLevel::Error, "goes on"));
        });
        assert_eq!(seen.len(), 1, "{seen:?}");
    }
}
