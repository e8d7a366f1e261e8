//! The library, with a stream of this thread.

/// The library on this thread. There is none until its door stands: no value of this type can be made.
pub(crate) enum Runtime {}
