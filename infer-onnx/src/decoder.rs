//! A decoder: a graph that takes tokens with the keys and values before them, and gives logits with those of all.
//!
//! | input | shape | what |
//! |---|---|---|
//! | tokens | `[B, S]` | the tokens of each row |
//! | mask | `[B, T]` | 1 for each position that a row has once the tokens are in, 0 behind them |
//! | positions | `[B, S]` | the positions of the tokens, where the graph asks for them |
//! | past keys, past values | `[B, H, P, D]` | of each layer |
//! | branch | `[1]` | whether there are past ones, where the graph is two in one: one without them, one for a token behind them |
//!
//! Outputs are logits, `[B, S, V]` or of the last token only, and the present keys and values. There are two forms: present keys and
//! values that are new tensors of `P + S` positions; and those that are written into the buffer of the past ones, which has room
//! for a whole context (operator `GroupQueryAttention`).

mod ports;

pub(crate) use ports::{Branch, Ports, Whole};

use crate::{DType, GraphOptions, Onnx, fingerprint, graph::about, header, load::Loading, providers, raw};
use infer_core::{Result, machine::available_threads, state::Fingerprint};
use std::{
    fmt,
    ops::{Deref, DerefMut},
    path::PathBuf,
    sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError},
};

/// A decoder's graph, and how it is loaded once more. `Send + Sync`: what is shared is read, or behind a lock.
pub(crate) struct Decoder {
    config: Config,
    ports: Ports,
    /// Loads the graph, for so many threads.
    load: Box<Load>,
    /// A graph that nobody uses at the moment, and its threads: loading takes long.
    idle: Mutex<Option<(usize, raw::Session)>>,
    /// The files that the graph has weights in.
    files: Vec<PathBuf>,
    fingerprint: OnceLock<Fingerprint>,
}

type Load = dyn Fn(usize, &Loading) -> Result<raw::Session> + Send + Sync;

impl Decoder {
    /// The decoder that `config` describes, loaded as `options` say. Sessions say for how many threads. `loading` can end it.
    ///
    /// # Errors
    /// Those of [`Graph::open`](crate::Graph::open); those of [`Ports::new`]; [`Cancelled`](infer_core::ErrorKind::Cancelled).
    pub(crate) fn open(onnx: &Onnx, config: Config, options: &GraphOptions, loading: &Loading) -> Result<Self> {
        let header = header::open(&config.graph)?;
        header.check_files(&config.graph)?;
        let files = header.files().iter().map(|file| config.graph.with_file_name(file.location())).collect();
        // Shapes grow from step to step, and a plan is of use for one shape.
        let options = options.clone().with_memory_pattern(false);
        let threads = options.threads.unwrap_or_else(|| available_threads().get());
        let (onnx, path) = (onnx.clone(), config.graph.clone());
        let load = move |threads, loading: &Loading| {
            let options = options.clone().with_threads(threads);
            let loaded = providers::load(&onnx, &options, |builder| {
                loading.begin(&builder)?;
                raw::Session::from_file(onnx.environment(), builder, None, &path)
                    .map_err(|failure| about(&path.display().to_string(), failure))
            });
            loaded.map(|(session, _)| session)
        };
        let session = load(threads, loading)?;
        let ports = Ports::new(&config, session.inputs(), session.outputs())?;
        let idle = Mutex::new(Some((threads, session)));
        Ok(Self { config, ports, load: Box::new(load), idle, files, fingerprint: OnceLock::new() })
    }

    pub(crate) fn config(&self) -> &Config {
        &self.config
    }

    pub(crate) fn ports(&self) -> &Ports {
        &self.ports
    }

    /// The graph for so many threads, for one who runs it.
    pub(crate) fn graph(self: &Arc<Self>, threads: usize) -> Result<InUse> {
        // One for another number of threads goes before another is loaded: weights that were packed are each one's own.
        let idle = self.idle().take().filter(|(idle, _)| *idle == threads);
        let load = || (self.load)(threads, &Loading::default());
        let session = idle.map_or_else(load, |(_, session)| Ok(session))?;
        Ok(InUse { session: Some(session), threads, decoder: self.clone() })
    }

    fn idle(&self) -> MutexGuard<'_, Option<(usize, raw::Session)>> {
        self.idle.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What tells this model from others.
    pub(crate) fn fingerprint(&self) -> Result<Fingerprint> {
        if let Some(&known) = self.fingerprint.get() {
            return Ok(known);
        }
        let found = fingerprint::of_graph(&self.config, &self.files)?;
        Ok(*self.fingerprint.get_or_init(|| found))
    }
}

/// A graph in use; kept for the next one when it is dropped.
pub(crate) struct InUse {
    session: Option<raw::Session>,
    threads: usize,
    decoder: Arc<Decoder>,
}

impl Deref for InUse {
    type Target = raw::Session;

    fn deref(&self) -> &raw::Session {
        self.session.as_ref().expect("it is there until it is dropped")
    }
}

impl DerefMut for InUse {
    fn deref_mut(&mut self) -> &mut raw::Session {
        self.session.as_mut().expect("it is there until it is dropped")
    }
}

impl Drop for InUse {
    fn drop(&mut self) {
        // One that waits already may be of a number of threads that nobody asks for any more.
        let former = self.session.take().and_then(|session| self.decoder.idle().replace((self.threads, session)));
        drop(former);
    }
}

impl fmt::Debug for Decoder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Decoder").field("config", &self.config).field("ports", &self.ports).finish_non_exhaustive()
    }
}

/// What the files beside a graph say of it. A number that they do not say is 0.
#[derive(Clone, Debug)]
pub(crate) struct Config {
    /// The graph's file.
    pub(crate) graph: PathBuf,
    pub(crate) architecture: String,
    /// Positions it was trained for.
    pub(crate) context: usize,
    /// Logits of a row.
    pub(crate) vocab: usize,
    pub(crate) layers: usize,
    pub(crate) kv_heads: usize,
    /// Numbers in a key, and in a value, of a head.
    pub(crate) head_size: usize,
    pub(crate) names: Names,
    /// Whether present keys and values are written into the buffer of the past ones.
    pub(crate) shares_buffer: bool,
    /// Whether it was made for one token behind others, and nothing else.
    pub(crate) one_token: bool,
}

/// What inputs and outputs are called.
#[derive(Clone, Debug)]
pub(crate) struct Names {
    pub(crate) tokens: String,
    pub(crate) mask: String,
    pub(crate) positions: String,
    /// Keys, values.
    pub(crate) past: [Pattern; 2],
    pub(crate) present: [Pattern; 2],
    pub(crate) logits: String,
}

/// A name with a place for the number of the layer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Pattern {
    before: String,
    after: String,
}

impl Pattern {
    /// From a text with one `%d` in it.
    pub(crate) fn new(text: &str) -> Option<Self> {
        let (before, after) = text.split_once("%d")?;
        Some(Self::around(before, after)).filter(|_| !after.contains('%'))
    }

    pub(crate) fn around(before: &str, after: &str) -> Self {
        Self { before: before.to_owned(), after: after.to_owned() }
    }

    pub(crate) fn name(&self, layer: usize) -> String {
        format!("{}{layer}{}", self.before, self.after)
    }

    /// The layer whose name this is.
    fn layer(&self, name: &str) -> Option<usize> {
        let digits = name.strip_prefix(self.before.as_str())?.strip_suffix(self.after.as_str())?;
        // Not what a number may look like otherwise: `+1`, `01`.
        digits.parse().ok().filter(|layer: &usize| layer.to_string() == digits)
    }
}

/// What a sequence has in its cache at each position, in each layer, twice: a key and a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Cells {
    pub(crate) layers: usize,
    pub(crate) heads: usize,
    /// Numbers in a key, and in a value, of a head.
    pub(crate) size: usize,
    pub(crate) dtype: DType,
}

impl Cells {
    /// Tensors of a sequence: the keys and the values of each layer.
    pub(crate) fn tensors(&self) -> usize {
        2 * self.layers
    }

    /// Bytes of a position in one head of one tensor.
    pub(crate) fn bytes(&self) -> usize {
        self.dtype.bytes(self.size).unwrap_or(0)
    }

    /// The shape of a tensor with so many rows of so many positions.
    pub(crate) fn shape(&self, rows: usize, positions: usize) -> [i64; 4] {
        [rows, self.heads, positions, self.size].map(dimension)
    }
}

/// A size as the runtime counts it. None is larger than what there is memory for.
pub(crate) fn dimension(size: usize) -> i64 {
    i64::try_from(size).expect("sizes are checked against the memory there can be")
}
