//! A request on its way to the scheduler.

use super::channel::Producer;
use crate::Request;
use infer_core::Token;
use std::time::Instant;

/// A request that was checked as far as can be without a session, with its prompt encoded and its channel open.
pub(crate) struct Job {
    /// Its number among all requests of the engine, from 0.
    pub(crate) id: u64,
    /// Its prompt is in [`prompt`](Self::prompt).
    pub(crate) request: Request,
    pub(crate) prompt: Vec<Token>,
    /// When it was made.
    pub(crate) made: Instant,
    pub(crate) out: Producer,
}
