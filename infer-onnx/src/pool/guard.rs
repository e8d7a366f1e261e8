//! A graph that is lent.

use super::Shared;
use crate::Graph;
use std::{
    fmt,
    ops::{Deref, DerefMut},
    sync::Arc,
};

/// A graph that is lent by a [`Pool`](super::Pool), and goes back when this is dropped, also by a panic.
///
/// What its last run gave is gone then, and an [interrupt](Graph::interrupt) that was taken from it reaches nobody who has it later. The
/// pool's sessions live as long as one of them is lent. A guard that is forgotten ([`std::mem::forget`]) leaves the pool with a session less.
pub struct PoolGuard {
    /// There until it is dropped.
    graph: Option<Graph>,
    pool: Arc<Shared>,
}

impl PoolGuard {
    pub(super) fn new(graph: Graph, pool: Arc<Shared>) -> Self {
        Self { graph: Some(graph), pool }
    }
}

impl Deref for PoolGuard {
    type Target = Graph;

    fn deref(&self) -> &Graph {
        self.graph.as_ref().expect("it is there until the guard is dropped")
    }
}

impl DerefMut for PoolGuard {
    fn deref_mut(&mut self) -> &mut Graph {
        self.graph.as_mut().expect("it is there until the guard is dropped")
    }
}

impl Drop for PoolGuard {
    fn drop(&mut self) {
        if let Some(mut graph) = self.graph.take() {
            graph.reset();
            self.pool.queue.give(graph);
        }
    }
}

impl fmt::Debug for PoolGuard {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("PoolGuard").field(&**self).finish()
    }
}
