//! A pool: sessions of one graph that many threads use.

mod guard;
mod options;
mod queue;
pub(crate) mod share;
mod sync;

pub use guard::PoolGuard;
pub use options::PoolOptions;

use crate::{
    Graph, Onnx,
    error::{error, invalid_input},
    raw::{self, SharedWeights},
};
use infer_core::{ErrorKind, Result};
use queue::{Patience, Queue, Refusal};
use std::{fmt, path::Path, sync::Arc, time::Instant};

/// Sessions of one graph that many threads use: `Send`, `Sync`, and cheap to clone.
///
/// ONNX Runtime's `Run` is not safe to share on every execution provider, so a [`Graph`] is used by one thread at a time. A pool holds a
/// number of them, lends one to whoever asks, and lets others wait: who asked first is served first, and no more threads wait than
/// [`with_queue`](PoolOptions::with_queue) says. While a graph is lent nothing is locked, and nobody spins.
///
/// # Shared weights
///
/// For many operators the runtime packs weights anew, in the order in which its kernels read them, and each session has its own. Here
/// the sessions of a pool are handed the weights of 4 KiB and more, and what is made of them is kept once: three sessions of a
/// small BERT take 81 MB instead of 264. Weights stay in the mapped file where they lie in it as their type must (which those in files
/// beside the model do, and bytes anywhere); others are copied once. Weights of subgraphs, of types whose elements share a byte, and of
/// graphs that run on another provider than the CPU are each session's own, as is everything where the runtime refuses to share (a warning
/// says so). [`stats`](Self::stats) has what came of it.
///
/// ```no_run
/// # use infer_onnx::{LoadOptions, Onnx, Pool, PoolOptions, TensorView};
/// # fn main() -> infer_core::Result<()> {
/// let onnx = Onnx::load(&LoadOptions::new())?;
/// let pool = Pool::open(&onnx, "model.onnx", &PoolOptions::new(2))?;
/// std::thread::scope(|scope| {
///     for number in 0..8 {
///         let pool = &pool;
///         scope.spawn(move || {
///             let x = [number as f32; 64];
///             pool.run(|graph| {
///                 graph.run([("x", TensorView::new(&[1, 64], &x)?)])?;
///                 Ok(graph.outputs().tensor("y")?.as_slice::<f32>()?[0])
///             })
///         });
///     }
/// });
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct Pool {
    shared: Arc<Shared>,
}

struct Shared {
    queue: Queue<Graph>,
    sessions: usize,
    weights: Option<Arc<SharedWeights>>,
}

/// How a pool stands, and what it has seen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct PoolStats {
    /// Sessions in all.
    pub sessions: usize,
    /// Those that nobody has.
    pub idle: usize,
    /// Threads that wait for one.
    pub waiting: usize,
    /// How often one was lent.
    pub lent: u64,
    /// How often whoever got one had waited for it.
    pub waited: u64,
    /// How often nobody got one: none was free in time, or too many waited.
    pub refused: u64,
    /// Bytes of weights that all sessions read where they lie in the model's files.
    pub mapped: usize,
    /// Bytes of weights that were copied once for all sessions.
    pub copied: usize,
}

impl Pool {
    /// Opens the graph in this file once for each session.
    ///
    /// # Errors
    /// [`InvalidInput`](ErrorKind::InvalidInput) for no session at all; and those of [`Graph::open`].
    pub fn open(onnx: &Onnx, path: impl AsRef<Path>, options: &PoolOptions) -> Result<Self> {
        let path = path.as_ref();
        let open = |weights: Option<&_>| Graph::open_sharing(onnx, path, &options.graph, weights);
        Self::new(options, || share::of_file(path), open)
    }

    /// The same, with a graph that is in memory.
    ///
    /// # Errors
    /// [`InvalidInput`](ErrorKind::InvalidInput) for no session at all; and those of [`Graph::from_bytes`].
    pub fn from_bytes(onnx: &Onnx, model: &[u8], options: &PoolOptions) -> Result<Self> {
        let open = |weights: Option<&_>| Graph::from_bytes_sharing(onnx, model, &options.graph, weights);
        Self::new(options, || share::of_bytes(model), open)
    }

    fn new(
        options: &PoolOptions,
        weights: impl FnOnce() -> Result<SharedWeights>,
        open: impl Fn(Option<&Arc<SharedWeights>>) -> Result<Graph>,
    ) -> Result<Self> {
        if options.sessions == 0 {
            return Err(invalid_input("a pool of no sessions: it needs one or more"));
        }
        let all = |weights| (0..options.sessions).map(|_| open(weights)).collect::<Result<Vec<_>>>();
        // What is wrong with the model, opening it says better.
        let weights = options.shares().then(weights).and_then(Result::ok).filter(|weights| weights.bytes() != (0, 0));
        let weights = weights.map(Arc::new);
        let (graphs, weights) = match &weights {
            None => (all(None)?, None),
            Some(shared) => match all(Some(shared)) {
                Ok(graphs) => (graphs, weights),
                Err(refused) => {
                    let graphs = all(None)?;
                    tracing::warn!("the sessions of a pool do not share weights: {refused}");
                    (graphs, None)
                }
            },
        };
        raw::trim();
        let queue = Queue::new(graphs, options.queue);
        Ok(Self { shared: Arc::new(Shared { queue, sessions: options.sessions, weights }) })
    }

    /// Lends a graph, as soon as one is free.
    ///
    /// # Errors
    /// [`QueueFull`](ErrorKind::QueueFull) where as many wait already as may.
    pub fn get(&self) -> Result<PoolGuard> {
        self.lend(Patience::Endless)
    }

    /// The same, by this moment at the latest; one that is free is lent also when it has passed.
    ///
    /// # Errors
    /// [`Cancelled`](ErrorKind::Cancelled) where none was free in time; and that of [`get`](Self::get).
    pub fn get_until(&self, deadline: Instant) -> Result<PoolGuard> {
        self.lend(Patience::Until(deadline))
    }

    /// Lends a graph if one is free.
    #[must_use]
    pub fn try_get(&self) -> Option<PoolGuard> {
        self.lend(Patience::None).ok()
    }

    /// Does something with a graph, as soon as one is free, on the caller's thread.
    ///
    /// # Errors
    /// Those of [`get`](Self::get), and what `job` returns.
    pub fn run<R>(&self, job: impl FnOnce(&mut Graph) -> Result<R>) -> Result<R> {
        job(&mut *self.get()?)
    }

    /// How it stands.
    #[must_use]
    pub fn stats(&self) -> PoolStats {
        let count = self.shared.queue.count();
        let (mapped, copied) = self.shared.weights.as_ref().map_or((0, 0), |weights| weights.bytes());
        PoolStats {
            sessions: self.shared.sessions,
            idle: count.idle,
            waiting: count.waiting,
            lent: count.taken,
            waited: count.waited,
            refused: count.refused,
            mapped,
            copied,
        }
    }

    fn lend(&self, patience: Patience) -> Result<PoolGuard> {
        match self.shared.queue.take(patience) {
            Ok(graph) => Ok(PoolGuard::new(graph, self.shared.clone())),
            Err(refusal) => Err(self.refused(refusal)),
        }
    }

    #[cold]
    fn refused(&self, refusal: Refusal) -> infer_core::Error {
        let Shared { queue, sessions, .. } = &*self.shared;
        match refusal {
            Refusal::Full => {
                let waiting = queue.bound();
                let message = format!(
                    "{waiting} threads wait for one of the pool's {sessions} sessions, which is as many as may; try again later"
                );
                error(ErrorKind::QueueFull, message)
            }
            Refusal::Late => {
                error(ErrorKind::Cancelled, format!("none of the pool's {sessions} sessions was free at the deadline"))
            }
        }
    }
}

impl fmt::Debug for Pool {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Pool").field(&self.stats()).finish()
    }
}
