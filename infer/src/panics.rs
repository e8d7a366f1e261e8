//! Panics of others' code (jobs, wakers, drops), caught with their message and place.
//!
//! A caught panic has its message, but where it was is known to the panic hook alone, which is the process's. So one is put before the
//! hook that is there, once, by the first worker: it writes down the place where the thread is a worker's, and calls the one that was
//! there in any case. Whoever sets a hook later replaces it, and panics then have no place; they are errors all the same.

use infer_core::{Error, ErrorKind};
use std::{
    any::Any,
    cell::{Cell, RefCell},
    mem,
    panic::{self, AssertUnwindSafe, PanicHookInfo},
    sync::Once,
    task::Waker,
    thread,
};

thread_local! {
    static WATCHED: Cell<bool> = const { Cell::new(false) };
    /// The last panic of this thread: its message and place.
    static LAST: RefCell<Option<(String, String)>> = const { RefCell::new(None) };
}

/// From now on panics of this thread are caught with their place.
///
/// To be called by the thread itself before anything else: a hook cannot be set by a thread that is unwinding, as one that makes a worker
/// may be.
pub(crate) fn watch() {
    static HOOK: Once = Once::new();
    HOOK.call_once(|| {
        let before = panic::take_hook();
        panic::set_hook(Box::new(move |info| {
            if WATCHED.get() {
                note(info);
            }
            before(info);
        }));
    });
    WATCHED.set(true);
}

fn note(info: &PanicHookInfo<'_>) {
    let place = info.location().map(ToString::to_string).unwrap_or_default();
    let last = (message(info.payload()), place);
    // In a destructor of thread-local values there may be none left, and nobody to tell.
    let _ = LAST.try_with(|slot| slot.replace(Some(last)));
}

/// Runs what is not this crate's own. A panic is an error that says `panicked at PLACE: MESSAGE`.
pub(crate) fn catch<R>(run: impl FnOnce() -> R) -> Result<R, String> {
    panic::catch_unwind(AssertUnwindSafe(run)).map_err(|payload| {
        let payload = match payload.downcast::<Caught>() {
            Ok(caught) => return caught.0,
            Err(payload) => payload,
        };
        let message = message(&*payload);
        let last = LAST.try_with(RefCell::take).ok().flatten();
        discard(payload);
        match last {
            // A payload that was kept and goes on has been seen by no hook: what was noted is of another one.
            Some((noted, place)) if noted == message => format!("panicked at {place}: {message}"),
            _ => format!("panicked: {message}"),
        }
    })
}

/// Lets a panic that was [caught](catch) go on to the next one who catches it, who gets the same words. The hook is not called again.
pub(crate) fn go_on(words: String) -> ! {
    panic::resume_unwind(Box::new(Caught(words)))
}

/// The words of a panic that goes on.
struct Caught(String);

/// Wakes. Whose waker panics has no business with what the waking thread does: the panic hook has said it.
pub(crate) fn wake(waker: Waker) {
    let _ = catch(|| waker.wake());
}

/// What a reader is told whose other end is dropped before `what`: the engine was shut down, or panics just now.
pub(crate) fn ended(what: &str) -> Error {
    if thread::panicking() {
        Error::new(ErrorKind::Panicked, format!("the engine panicked before {what}, and has ended"))
    } else {
        Error::new(ErrorKind::Closed, format!("the engine ended before {what}"))
    }
}

/// Drops what panics with may panic in turn; nothing is to unwind out of the place that contains it.
fn discard(payload: Box<dyn Any + Send>) {
    if let Err(again) = panic::catch_unwind(AssertUnwindSafe(|| drop(payload))) {
        mem::forget(again);
    }
}

fn message(payload: &(dyn Any + Send)) -> String {
    let text = payload.downcast_ref::<&str>().copied();
    text.or_else(|| payload.downcast_ref::<String>().map(String::as_str))
        .unwrap_or("with a value that is no text")
        .into()
}
