//! A request on its way to the scheduler.

use super::{channel::Producer, shared::Place};
use crate::Request;
use infer_core::{Result, Token};
use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Instant,
};

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
    /// Its place in the queue, which it gives up when it is begun.
    pub(crate) place: Place,
    /// What is traced of it; inside whatever its caller was in.
    pub(crate) span: tracing::Span,
}

/// Tokens whose log-probabilities are wanted.
pub(crate) struct ScoreJob {
    /// As [`Job::id`].
    pub(crate) id: u64,
    pub(crate) tokens: Vec<Token>,
    pub(crate) adapter: Option<String>,
    pub(crate) deadline: Option<Instant>,
    pub(crate) made: Instant,
    pub(crate) out: ScoreReply,
    pub(crate) place: Place,
}

/// Where scores go. Dropped without an answer, nobody is told: the receiver's end sees that it is gone.
pub(crate) struct ScoreReply {
    answer: Box<dyn FnOnce(Result<Vec<f32>>) + Send>,
    is_cancelled: Arc<AtomicBool>,
}

impl ScoreReply {
    /// `answer` is called once, on the engine's thread, with a log-probability for each token after the first; `is_cancelled` is set by
    /// whoever wants it no more.
    pub(crate) fn new(answer: impl FnOnce(Result<Vec<f32>>) + Send + 'static, is_cancelled: Arc<AtomicBool>) -> Self {
        Self { answer: Box::new(answer), is_cancelled }
    }

    pub(crate) fn is_cancelled(&self) -> bool {
        self.is_cancelled.load(Ordering::Acquire)
    }

    pub(crate) fn answer(self, scores: Result<Vec<f32>>) {
        (self.answer)(scores);
    }
}
