use std::{
    fmt::{self, Write as _},
    sync::LazyLock,
};
use tracing::{
    Dispatch, Event, Metadata, Subscriber, field, level_filters::LevelFilter, span, subscriber::NoSubscriber,
};

/// A `tracing` subscriber that gives each event to a function, which may do with it what it likes: keep it, panic, call what has logged.
///
/// ```text
/// let listener = Listener::new(|event| lines.lock().unwrap().push(test_kit::text(event)));
/// tracing::subscriber::with_default(listener, || session.decode(&batch));
/// ```
pub struct Listener<F> {
    target: Option<&'static str>,
    hear: F,
}

impl<F: Fn(&Event<'_>) + Send + Sync + 'static> Listener<F> {
    /// Hears every event.
    pub fn new(hear: F) -> Self {
        // Where there is one subscriber alone, the first thread that comes by an event's place decides for all whether it is wanted there, and
        // that of another test wants nothing.
        static ANOTHER: LazyLock<Dispatch> = LazyLock::new(|| Dispatch::new(NoSubscriber::default()));
        LazyLock::force(&ANOTHER);
        Self { target: None, hear }
    }

    /// Hears what has this target, such as `llama.cpp`.
    #[must_use]
    pub fn of(mut self, target: &'static str) -> Self {
        self.target = Some(target);
        self
    }
}

impl<F: Fn(&Event<'_>) + Send + Sync + 'static> Subscriber for Listener<F> {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        self.target.is_none_or(|target| metadata.target() == target)
    }

    fn max_level_hint(&self) -> Option<LevelFilter> {
        Some(LevelFilter::TRACE)
    }

    fn new_span(&self, _: &span::Attributes<'_>) -> span::Id {
        span::Id::from_u64(1)
    }

    fn record(&self, _: &span::Id, _: &span::Record<'_>) {}

    fn record_follows_from(&self, _: &span::Id, _: &span::Id) {}

    fn event(&self, event: &Event<'_>) {
        (self.hear)(event);
    }

    fn enter(&self, _: &span::Id) {}

    fn exit(&self, _: &span::Id) {}
}

impl<F> fmt::Debug for Listener<F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Listener").field("target", &self.target).finish_non_exhaustive()
    }
}

/// What an event says: its message, with its other fields around it as `name=value`, in the order they were recorded.
#[must_use]
pub fn text(event: &Event<'_>) -> String {
    struct Text(String);
    impl field::Visit for Text {
        fn record_debug(&mut self, field: &field::Field, value: &dyn fmt::Debug) {
            let separator = if self.0.is_empty() { "" } else { " " };
            let written = match field.name() {
                "message" => write!(self.0, "{separator}{value:?}"),
                name => write!(self.0, "{separator}{name}={value:?}"),
            };
            written.expect("a string takes whatever is written to it");
        }
    }
    let mut text = Text(String::new());
    event.record(&mut text);
    text.0
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::{Arc, Mutex};

    #[test]
    fn what_another_thread_has_said_first_is_heard_too() {
        fn say() {
            tracing::info!("said");
        }
        let count = Arc::new(Mutex::new(0));
        let counted = count.clone();
        tracing::subscriber::with_default(Listener::new(move |_| *counted.lock().unwrap() += 1), || {
            std::thread::spawn(say).join().unwrap();
            say();
        });
        assert_eq!(*count.lock().unwrap(), 1);
    }

    #[test]
    fn what_is_heard_is_of_the_target_and_in_words() {
        let lines = Arc::new(Mutex::new(Vec::new()));
        let kept = lines.clone();
        let hear = move |event: &Event<'_>| {
            kept.lock().unwrap().push(format!("{} {}", event.metadata().level(), text(event)));
        };
        tracing::subscriber::with_default(Listener::new(hear).of("native"), || {
            tracing::info!(target: "native", code = 3, "loaded");
            tracing::info!(target: "other", "not heard");
            tracing::trace!(target: "native", "done");
        });
        assert_eq!(*lines.lock().unwrap(), ["INFO loaded code=3", "TRACE done"]);
    }
}
