//! What of an engine's options the scheduler reads.

use std::time::Duration;

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Settings {
    /// Texts that run at once; `None` is as many as the session has sequences.
    pub(crate) sequences: Option<usize>,
    /// Tokens of one step at most; `None` is what the session takes a pass.
    pub(crate) batch: Option<usize>,
    /// How long a step may take while texts are being generated: prompts that come meanwhile are cut into chunks that keep to it.
    /// `None` is three times what a step of those texts alone takes, as measured.
    pub(crate) step_time: Option<Duration>,
    /// Cells that finished sequences may keep for prompts that begin as they do; 0 is no prefix cache.
    pub(crate) cache: usize,
}
