//! What llama.cpp logs: into `tracing`, and into the error of the call that failed.
//!
//! llama.cpp has one log function for the whole process, calls it from any thread, and passes fragments: a line may come in
//! several calls, of which the later ones have the level "continued". Here fragments are put together again, for each thread
//! by itself, and every line becomes one event with the target `llama.cpp`. A line that was never ended goes out when the
//! next one begins, when the native call returns, or when its thread ends.
//!
//! While a native call runs, the lines of its own thread are also kept, and become the [log](infer_core::Error::log) of its
//! error. Lines of llama.cpp's worker threads go to `tracing` only: which call they belong to cannot be known.

use std::{
    any::Any,
    cell::RefCell,
    mem,
    panic::{self, AssertUnwindSafe},
};

/// Lines kept for an error; the last ones, since the reason comes at the end.
const KEPT: usize = 8 * 1024;

/// The severity of a line, as llama.cpp has it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Level {
    Debug,
    #[default]
    Info,
    Warn,
    Error,
}

/// One call of the log function.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fragment {
    /// Begins a line.
    Begin(Level),
    /// Goes on from what the same thread said before.
    Continued,
}

#[derive(Default)]
struct Thread {
    level: Level,
    /// The line so far.
    line: String,
    /// What is kept for the error of the call that is running, if one is.
    calls: usize,
    kept: Kept,
    /// A subscriber panicked while it was called from C. Raised again once the native call has returned.
    panic: Option<Box<dyn Any + Send>>,
}

/// What was logged during a call. Warnings and errors are the reason of a failure; where there are none, all lines are.
#[derive(Default)]
struct Kept {
    grave: String,
    all: String,
}

thread_local! {
    static THREAD: RefCell<Thread> = RefCell::default();
}

/// Takes one fragment. Called from C, so it neither unwinds nor holds on to anything when it calls a subscriber, which may
/// itself call llama.cpp.
pub(crate) fn take(fragment: Fragment, text: &str) {
    let parked = panic::catch_unwind(|| {
        if let Fragment::Begin(level) = fragment {
            end_line();
            with(|thread| thread.level = level);
        }
        let mut rest = text;
        while let Some((line, after)) = rest.split_once('\n') {
            with(|thread| thread.line.push_str(line));
            end_line();
            rest = after;
        }
        with(|thread| thread.line.push_str(rest));
    });
    if let Err(payload) = parked {
        let mut payload = Some(payload);
        // On a thread of llama.cpp there is nobody whom it could be told.
        with(|thread| {
            if thread.calls > 0 && thread.panic.is_none() {
                thread.panic = payload.take();
            }
        });
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

/// Sends out the line that has been put together, if there is one.
fn end_line() {
    let line = with(|thread| {
        let line = mem::take(&mut thread.line);
        if thread.calls > 0 && !line.is_empty() {
            thread.kept.keep(thread.level, &line);
        }
        (thread.level, line)
    });
    if let Some((level, line)) = line.filter(|(_, line)| !line.trim().is_empty()) {
        emit(level, line.trim_end());
        // Its memory serves the next line.
        with(|thread| {
            if thread.line.capacity() == 0 {
                thread.line = line;
                thread.line.clear();
            }
        });
    }
}

fn emit(level: Level, line: &str) {
    match level {
        Level::Debug => tracing::debug!(target: "llama.cpp", "{line}"),
        Level::Info => tracing::info!(target: "llama.cpp", "{line}"),
        Level::Warn => tracing::warn!(target: "llama.cpp", "{line}"),
        Level::Error => tracing::error!(target: "llama.cpp", "{line}"),
    }
}

/// The state of this thread; `None` when the thread is ending and has none any more.
fn with<R>(f: impl FnOnce(&mut Thread) -> R) -> Option<R> {
    THREAD.try_with(|thread| thread.try_borrow_mut().ok().map(|mut thread| f(&mut thread))).ok().flatten()
}

/// Runs a native call. What it logs on this thread can be asked for while it runs, and a panic of a subscriber, which C must
/// not see, goes on afterwards.
pub(crate) fn during<R>(native: impl FnOnce(&Call) -> R) -> R {
    let call = Call::begin();
    let result = native(&call);
    drop(call);
    if let Some(payload) = with(|thread| if thread.calls == 0 { thread.panic.take() } else { None }).flatten() {
        panic::resume_unwind(payload);
    }
    result
}

/// A native call that is running on this thread.
pub(crate) struct Call(());

impl Call {
    fn begin() -> Self {
        with(|thread| {
            if thread.calls == 0 {
                thread.kept.clear();
            }
            thread.calls += 1;
        });
        Self(())
    }

    /// What was logged so far: warnings and errors, or all lines where there were none of these.
    pub(crate) fn log(&self) -> String {
        end_line();
        with(|thread| if thread.kept.grave.is_empty() { thread.kept.all.clone() } else { thread.kept.grave.clone() })
            .unwrap_or_default()
    }
}

impl Drop for Call {
    fn drop(&mut self) {
        end_line();
        with(|thread| thread.calls = thread.calls.saturating_sub(1));
    }
}

impl Kept {
    fn keep(&mut self, level: Level, line: &str) {
        push_line(&mut self.all, line);
        if level >= Level::Warn {
            push_line(&mut self.grave, line);
        }
    }

    fn clear(&mut self) {
        self.grave.clear();
        self.all.clear();
    }
}

/// Appends a line, and drops lines from the front while there are too many bytes.
fn push_line(text: &mut String, line: &str) {
    let line = line.trim_end();
    let cut = line.floor_char_boundary(KEPT);
    text.push_str(&line[..cut]);
    text.push('\n');
    if text.len() > KEPT {
        let excess = text.len() - KEPT;
        let end =
            text.as_bytes()[excess..].iter().position(|&byte| byte == b'\n').map_or(text.len(), |at| excess + at + 1);
        text.drain(..end);
    }
}

impl Drop for Thread {
    fn drop(&mut self) {
        // A thread of llama.cpp ends: what it said last is not lost. A panic here would abort, so it is caught.
        let line = mem::take(&mut self.line);
        let level = self.level;
        if !line.trim().is_empty() {
            panic::catch_unwind(|| emit(level, line.trim_end())).unwrap_or_else(discard);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use test_kit::heard;

    fn lines(work: impl FnOnce()) -> Vec<String> {
        heard("llama.cpp", work)
    }

    #[test]
    fn fragments_become_lines() {
        let seen = lines(|| {
            take(Fragment::Begin(Level::Info), "load");
            take(Fragment::Continued, "ing .");
            take(Fragment::Continued, ".\nnext");
            take(Fragment::Begin(Level::Error), "bad\nworse\n");
            take(Fragment::Begin(Level::Warn), "not ended");
            during(|_| ());
        });
        assert_eq!(seen, ["INFO loading ..", "INFO next", "ERROR bad", "ERROR worse", "WARN not ended"]);
    }

    #[test]
    fn threads_do_not_mix() {
        take(Fragment::Begin(Level::Info), "mine ");
        let theirs = std::thread::spawn(|| {
            lines(|| {
                take(Fragment::Begin(Level::Info), "theirs");
                take(Fragment::Continued, " whole\n");
            })
        });
        assert_eq!(theirs.join().unwrap(), ["INFO theirs whole"]);
        assert_eq!(lines(|| take(Fragment::Continued, "too\n")), ["INFO mine too"]);
    }

    #[test]
    fn a_call_keeps_the_reason_and_forgets_the_call_before() {
        during(|call| {
            take(Fragment::Begin(Level::Info), "chatter\n");
            assert_eq!(call.log(), "chatter\n");
            take(Fragment::Begin(Level::Error), "reason");
            assert_eq!(call.log(), "reason\n");
        });
        take(Fragment::Begin(Level::Error), "between\n");
        assert_eq!(during(Call::log), "");
    }

    #[test]
    fn a_call_keeps_the_end_of_much() {
        let call = Call::begin();
        for number in 0..5000 {
            take(Fragment::Begin(Level::Error), &format!("line {number}\n"));
        }
        let log = call.log();
        assert!(log.len() <= KEPT && log.starts_with("line ") && log.ends_with("line 4999\n"));
        take(Fragment::Begin(Level::Error), &"é".repeat(KEPT));
        assert!(call.log().len() <= KEPT + 1);
    }

    #[test]
    fn a_panic_of_a_subscriber_waits_until_the_call_is_over() {
        let caught = lines(|| {
            let raised = panic::catch_unwind(|| {
                during(|_| take(Fragment::Begin(Level::Info), "panic!\n"));
            });
            assert!(raised.is_err());
            take(Fragment::Begin(Level::Info), "goes on\n");
        });
        assert_eq!(caught, ["INFO goes on"]);
    }

    #[test]
    fn what_a_panic_carries_does_not_panic_into_c() {
        let seen = lines(|| {
            take(Fragment::Begin(Level::Info), "bomb!\n");
            let raised = panic::catch_unwind(|| {
                during(|_| {
                    take(Fragment::Begin(Level::Info), "panic!\n");
                    take(Fragment::Begin(Level::Info), "bomb!\n");
                });
            });
            assert!(raised.unwrap_err().is::<&str>(), "the first one goes on");
        });
        assert!(seen.is_empty());
    }
}
