use crate::{Listener, text};
use std::{
    panic,
    sync::{Arc, Mutex},
};

/// Panics once more when it is dropped.
struct Bomb;

impl Drop for Bomb {
    fn drop(&mut self) {
        panic!("asked to, again");
    }
}

/// What is logged on this thread while `work` runs, each event as "LEVEL text". Who listens is as bad as a subscriber can be: it panics at a
/// text with `panic!`, and at one with `bomb!` with a payload that panics again when it is dropped.
///
/// # Panics
/// Where something else than `target` is logged.
pub fn heard(target: &'static str, work: impl FnOnce()) -> Vec<String> {
    let lines = Arc::new(Mutex::new(Vec::new()));
    let kept = lines.clone();
    let listener = Listener::new(move |event| {
        let text = text(event);
        assert_eq!(event.metadata().target(), target);
        if text.contains("bomb!") {
            panic::panic_any(Bomb);
        }
        assert!(!text.contains("panic!"), "asked to");
        kept.lock().expect("nobody panics with it").push(format!("{} {text}", event.metadata().level()));
    });
    tracing::subscriber::with_default(listener, work);
    let lines = lines.lock().expect("nobody panics with it");
    lines.clone()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::mem;

    #[test]
    fn what_is_heard_is_kept_and_what_asks_for_a_panic_gets_one() {
        let lines = heard("native", || {
            tracing::info!(target: "native", code = 3, "loaded");
            panic::catch_unwind(|| tracing::info!(target: "native", "panic!")).unwrap_err();
            let bomb = panic::catch_unwind(|| tracing::info!(target: "native", "bomb!")).unwrap_err();
            let bomb = panic::AssertUnwindSafe(bomb);
            mem::forget(panic::catch_unwind(|| drop(bomb)).unwrap_err());
            panic::catch_unwind(|| tracing::info!(target: "other", "said")).unwrap_err();
            tracing::trace!(target: "native", "done");
        });
        assert_eq!(lines, ["INFO loaded code=3", "TRACE done"]);
    }
}
