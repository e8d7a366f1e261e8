use std::{fmt, sync::Arc};

/// Stops a pass that is running in a session, from any thread.
///
/// It is a level and not an edge: while it is raised a pass ends with [`Cancelled`](crate::ErrorKind::Cancelled), also
/// one that begins later. So a cancel that comes just before the pass is not lost, and whoever raised it lowers it when
/// the job it was meant for is over. Raising and lowering are idempotent, and cheap enough for any thread.
#[derive(Clone)]
pub struct Interrupt(Arc<dyn Fn(bool) + Send + Sync>);

impl Interrupt {
    /// For backends: `set` is called with `true` to raise and `false` to lower. What that does is the backend's own
    /// business: an atomic that native code polls, a flag of the runtime, a byte to another process.
    #[must_use]
    pub fn new(set: impl Fn(bool) + Send + Sync + 'static) -> Self {
        Self(Arc::new(set))
    }

    /// From now on passes of the session end with [`Cancelled`](crate::ErrorKind::Cancelled).
    pub fn raise(&self) {
        (self.0)(true);
    }

    /// Passes run again.
    pub fn lower(&self) {
        (self.0)(false);
    }
}

impl fmt::Debug for Interrupt {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Interrupt")
    }
}
