//! How a pool is made.

use crate::{GraphOptions, providers::CPU};

/// Threads that may wait for a session where nobody says how many.
const USUAL_QUEUE: usize = 1024;

/// How a [`Pool`](super::Pool) is made.
///
/// ```
/// use infer_onnx::{GraphOptions, PoolOptions};
///
/// let options = PoolOptions::new(4).with_queue(64).with_graph(GraphOptions::new().with_threads(1));
/// ```
#[derive(Clone, Debug)]
pub struct PoolOptions {
    pub(super) sessions: usize,
    pub(super) queue: usize,
    pub(super) graph: GraphOptions,
    shares_weights: bool,
}

impl PoolOptions {
    /// So many sessions of one thread each: they compute as much in all where each has a core, since none waits for its own threads.
    #[must_use]
    pub fn new(sessions: usize) -> Self {
        let graph = GraphOptions::new().with_threads(1);
        Self { sessions, queue: USUAL_QUEUE, graph, shares_weights: true }
    }

    /// How many threads may wait for a session, 1,024 by default. The next one gets [`QueueFull`](infer_core::ErrorKind::QueueFull).
    #[must_use]
    pub fn with_queue(mut self, threads: usize) -> Self {
        self.queue = threads;
        self
    }

    /// How each session is made, its number of threads included.
    #[must_use]
    pub fn with_graph(mut self, options: GraphOptions) -> Self {
        self.graph = options;
        self
    }

    /// Whether the sessions share weights, as they do by default: see [`Pool`](super::Pool).
    #[must_use]
    pub fn with_shared_weights(mut self, shared: bool) -> Self {
        self.shares_weights = shared;
        self
    }

    /// Whether there is anything to share: other providers than the CPU want weights in memory of their own.
    pub(super) fn shares(&self) -> bool {
        self.shares_weights && self.sessions > 1 && self.graph.providers.iter().all(|provider| provider.name() == CPU)
    }
}
