//! What a process has once: the library, and its environment.
//!
//! ONNX Runtime has one environment a process, which holds the log function and what sessions share; and `ort` has one table a process, and makes
//! one environment ever. This is their one owner. It makes them when they are first wanted, and keeps them until the process ends: threads of the
//! runtime may log until the last moment, and at exit there is no order in which Rust's threads and C++'s static objects would be known
//! to have come to their ends ([`exit`](super::exit) sees to that). Nothing is lost: the system takes the memory back.

use super::{Api, exit::Visit, operators};
use crate::{
    error::{error, from_ort},
    log,
};
use infer_core::{ErrorKind, Result};
use infer_sys::onnxruntime;
use ort::environment::Environment;
use std::{
    cell::Cell,
    ptr,
    sync::{Arc, Mutex, OnceLock, PoisonError},
};

/// The library that this process uses, started.
pub(crate) struct Started {
    library: onnxruntime::Api,
    environment: Environment,
}

static STARTED: OnceLock<Started> = OnceLock::new();
/// Held by the thread that starts the library.
static START: Mutex<()> = Mutex::new(());

thread_local! {
    /// Whether this thread is starting the library, and holds the lock.
    static STARTING: Cell<bool> = const { Cell::new(false) };
}

impl Started {
    /// What the library calls its version.
    pub(crate) fn version(&self) -> &'static str {
        self.library.version()
    }

    /// The environment that sessions are made in.
    pub(crate) fn environment(&self) -> &Environment {
        &self.environment
    }

    fn if_it_is(&'static self, library: onnxruntime::Api) -> Result<&'static Self> {
        if ptr::eq(self.library.table(), library.table()) {
            return Ok(self);
        }
        Err(error(
            ErrorKind::Library,
            format!(
                "this process uses an ONNX Runtime {} already, and can use no other beside it; the one asked for is version {}",
                self.version(),
                library.version()
            ),
        ))
    }
}

/// What was started, if anything was.
pub(crate) fn started() -> Option<&'static Started> {
    STARTED.get()
}

/// Starts the library, or finds it started. One that could not be started can be tried again.
pub(crate) fn start(library: onnxruntime::Api) -> Result<&'static Started> {
    if let Some(started) = started() {
        return started.if_it_is(library);
    }
    let _starting = Starting::begin()?;
    // A panic while it was held (there is none to be expected) left nothing half done.
    let _lock = START.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(started) = started() {
        return started.if_it_is(library);
    }
    give_table(library)?;
    let environment = environment()?;
    Api::start(&environment)?;
    // Without it, encoders have no kernels of this library, and say so.
    let _ = operators::prepare(&environment);
    STARTED.get_or_init(|| Started { library, environment }).if_it_is(library)
}

/// Gives `ort` the table that was checked, so that it never looks for a library by itself: it would panic where there is none, and wait for
/// ever for one that failed to load.
fn give_table(library: onnxruntime::Api) -> Result<()> {
    let ours = library.table();
    // The table has no more than pointers to functions: a copy is as good.
    if ort::set_api(ours.clone()) || ptr::fn_addr_eq(ort::api().GetErrorCode, ours.GetErrorCode) {
        return Ok(());
    }
    Err(error(
        ErrorKind::Library,
        "another part of this process has given the crate `ort` another ONNX Runtime, and a process has one",
    ))
}

/// Makes the environment.
fn environment() -> Result<Environment> {
    let builder = ort::init().with_name("infer").with_telemetry(false).with_logger(Arc::new(
        |level, _category: &str, id: &str, location: &str, text: &str| log::take(level, id, location, text),
    ));
    let made = native(|| builder.build());
    let environment = made.map_err(|error| from_ort("make the environment of ONNX Runtime", &error))?;
    // It was made with every line asked for. Sessions say for themselves what they want; this is for what belongs to none.
    environment.set_log_level(log::wanted());
    Ok(environment)
}

/// Runs a native call that computes, loads or frees: the process does not end while it runs, and a panic of what takes log lines goes on when it has
/// returned.
pub(crate) fn native<R>(call: impl FnOnce() -> R) -> R {
    log::during(|| {
        let _visit = Visit::enter();
        call()
    })
}

/// The same where something is dropped, which never panics: what a panic of what takes log lines carried is dropped too.
pub(crate) fn native_in_drop(call: impl FnOnce()) {
    log::quietly(|| native(call));
}

/// While it lives, this thread starts the library.
struct Starting(());

impl Starting {
    fn begin() -> Result<Self> {
        if STARTING.replace(true) {
            let message =
                "ONNX Runtime is being started on this very thread: what takes its log lines must not open it";
            return Err(error(ErrorKind::Library, message));
        }
        Ok(Self(()))
    }
}

impl Drop for Starting {
    fn drop(&mut self) {
        STARTING.set(false);
    }
}
