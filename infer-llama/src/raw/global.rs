//! What a process has once: the backends' start, and the log.

use super::{Door, call};
use crate::{
    error::BACKEND,
    log::{self, Fragment, Level},
};
use infer_core::{Error, ErrorKind, Result};
use infer_sys::llama::{
    Api,
    bindings::{
        GGML_LOG_LEVEL_CONT, GGML_LOG_LEVEL_DEBUG, GGML_LOG_LEVEL_ERROR, GGML_LOG_LEVEL_WARN, ggml_log_level,
        infer_llama_table,
    },
};
use std::{
    cell::Cell,
    ffi::{CStr, c_char, c_void},
    io::Write,
    ptr,
    sync::{Mutex, PoisonError},
};

/// The tables that were started: one for each door of this process, which has a log and backends of its own.
static STARTED: Mutex<Vec<usize>> = Mutex::new(Vec::new());

thread_local! {
    /// Whether this thread is starting a library, and holds the lock.
    static STARTING: Cell<bool> = const { Cell::new(false) };
}

/// While it lives, this thread starts a library.
struct Starting(());

impl Starting {
    fn begin() -> Result<Self> {
        if STARTING.replace(true) {
            let message = "llama.cpp is being started on this very thread: what takes its log lines must not open it";
            return Err(Error::new(ErrorKind::Library, message).with_backend(BACKEND));
        }
        Ok(Self(()))
    }
}

impl Drop for Starting {
    fn drop(&mut self) {
        STARTING.set(false);
    }
}

/// Starts a library, the first time its table comes by: log hook first, so that nothing goes to stderr, then the backends.
pub(super) fn start(api: Api) -> Result<Door> {
    let _starting = Starting::begin()?;
    // A panic while it was held (there is none to be expected) left the list as it was.
    let mut started = STARTED.lock().unwrap_or_else(PoisonError::into_inner);
    let table = ptr::from_ref::<infer_llama_table>(api.table()).addr();
    if !started.contains(&table) {
        // SAFETY: nothing of this crate is inside an entry of this table, since a `Door` is needed for that and this is the
        // only place that makes one, under the lock. The callback returns normally and takes no user data.
        unsafe { api.log_set(Some(on_log), ptr::null_mut()) };
        // SAFETY: as above; the callback is called right before the process ends.
        unsafe { api.fatal_set(Some(on_fatal)) };
        // SAFETY: once for each table, under the lock, before any other entry but those two.
        call("start the backends", |error| unsafe { api.backend_init(error) })?;
        started.push(table);
    }
    Door::new(api)
}

/// Called by llama.cpp for each fragment of a line, from any thread.
unsafe extern "C" fn on_log(level: ggml_log_level, text: *const c_char, _: *mut c_void) {
    if text.is_null() {
        return;
    }
    // SAFETY: not NULL; ggml passes a C string that it does not change during the call.
    let text = unsafe { CStr::from_ptr(text) };
    let fragment = match level {
        GGML_LOG_LEVEL_DEBUG => Fragment::Begin(Level::Debug),
        GGML_LOG_LEVEL_WARN => Fragment::Begin(Level::Warn),
        GGML_LOG_LEVEL_ERROR => Fragment::Begin(Level::Error),
        GGML_LOG_LEVEL_CONT => Fragment::Continued,
        _ => Fragment::Begin(Level::Info),
    };
    log::take(fragment, &text.to_string_lossy());
}

/// Called with the reason when an assertion of ggml fails. The process ends afterwards, so it goes to stderr as well.
unsafe extern "C" fn on_fatal(message: *const c_char) {
    // SAFETY: the door passes a C string or NULL.
    let message = unsafe { super::text(message) };
    log::take(Fragment::Begin(Level::Error), &format!("{message}\n"));
    // The process is about to end: there is nobody to tell that stderr is closed.
    drop(writeln!(std::io::stderr(), "llama.cpp: {message}"));
}

#[cfg(test)]
mod tests {
    use super::*;
    use infer_sys::llama::{bindings::infer_llama_error, fake};
    use std::sync::atomic::{AtomicUsize, Ordering};
    use tracing::{Event, Metadata, Subscriber, span};

    static INITIALISED: AtomicUsize = AtomicUsize::new(0);

    unsafe extern "C" fn init_that_logs(_: *mut infer_llama_error) -> i32 {
        INITIALISED.fetch_add(1, Ordering::Relaxed);
        fake::log(GGML_LOG_LEVEL_WARN, c"starting\n");
        0
    }

    /// Another door than the faked one, whose start is logged.
    fn door() -> Api {
        let table = infer_llama_table { backend_init: Some(init_that_logs), ..*fake::TABLE.table() };
        // SAFETY: all but one entry are the faked door's, and that one does what is asked of it; leaked, it lives for ever.
        unsafe { Api::from_table(Box::leak(Box::new(table))) }.unwrap()
    }

    /// Opens a door for each line.
    struct Opens(Api, Mutex<Vec<Result<Door>>>);

    impl Subscriber for Opens {
        fn enabled(&self, _: &Metadata<'_>) -> bool {
            true
        }
        fn new_span(&self, _: &span::Attributes<'_>) -> span::Id {
            span::Id::from_u64(1)
        }
        fn record(&self, _: &span::Id, _: &span::Record<'_>) {}
        fn record_follows_from(&self, _: &span::Id, _: &span::Id) {}
        fn event(&self, _: &Event<'_>) {
            self.1.lock().unwrap().push(start(self.0));
        }
        fn enter(&self, _: &span::Id) {}
        fn exit(&self, _: &span::Id) {}
    }

    #[test]
    fn each_door_is_started_once_and_not_by_what_takes_its_log() {
        let (one, two) = (door(), door());
        let opens = std::sync::Arc::new(Opens(two, Mutex::new(Vec::new())));
        tracing::subscriber::with_default(opens.clone(), || {
            start(one).unwrap();
            start(one).unwrap();
        });
        let refused = opens.1.lock().unwrap().pop().unwrap().unwrap_err();
        assert_eq!(refused.kind(), ErrorKind::Library);
        assert!(refused.to_string().contains("on this very thread"), "{refused}");
        assert_eq!(INITIALISED.load(Ordering::Relaxed), 1);
        start(two).unwrap();
        assert_eq!(INITIALISED.load(Ordering::Relaxed), 2, "another door starts by itself");
    }
}
