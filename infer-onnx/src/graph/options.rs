//! How a graph is loaded.

use crate::{
    Onnx, Provider,
    error::{from_ort, invalid_input},
    log,
};
use infer_core::{Result, machine::available_threads};
use ort::session::builder::{BuilderResult, GraphOptimizationLevel, SessionBuilder};

/// How a graph is loaded. The default: as many threads as the process may run at once, and every optimisation.
///
/// ```
/// use infer_onnx::{GraphOptions, Optimization};
///
/// // One thread, and the graph computed node by node as it is written.
/// let options = GraphOptions::new().with_threads(1).with_optimization(Optimization::None);
/// # drop(options);
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct GraphOptions {
    /// Threads that compute one node together, the caller's being one. `None` is as many as the process may run at once.
    pub threads: Option<usize>,
    /// Threads that compute different nodes at once; 1 computes one node after another. More than one helps graphs with branches.
    pub parallel_nodes: usize,
    /// How much the graph is rewritten before it runs.
    pub optimization: Optimization,
    /// Whether threads without work wait for it busily: quicker from node to node, and a core each while they wait.
    pub spinning: bool,
    /// Whether the memory of a run is planned ahead, from the shapes of the run before. Of use where shapes stay the same.
    pub memory_pattern: bool,
    /// Whether what a load allocates is moved into large pages, where the system has them: weights are read faster by a good part then, and a
    /// load takes a little longer. Linux 6.1 and later.
    pub large_pages: bool,
    /// Whether kernels that can give another result each time are replaced by ones that do not.
    pub deterministic: bool,
    /// Sizes of dimensions that the graph leaves open, by name: known beforehand, they let it be optimised further.
    pub dimensions: Vec<(String, usize)>,
    /// What computes the nodes, most preferred first; the CPU takes what is left, also where there are none.
    pub providers: Vec<Provider>,
    /// Whether the graph is loaded without those of the providers that cannot be used.
    pub fallback: bool,
    /// Whether this library's own kernels compute parts of an encoder's graph, in place of the runtime's: on the CPU alone, with
    /// [`Optimization::All`]. `None` is where they are quicker: on x86-64 with AVX2 and FMA, in builds without debug assertions. Other graphs
    /// have none of them.
    pub own_kernels: Option<bool>,
    /// Entries of ONNX Runtime's own session configuration, by key.
    pub config: Vec<(String, String)>,
}

/// How much a graph is rewritten before it runs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Optimization {
    /// Not at all.
    None,
    /// What is redundant is left out.
    Basic,
    /// Nodes are put together, where a kernel does what several did.
    Extended,
    /// And tensors are laid out as kernels like them best.
    #[default]
    All,
}

/// Keys that would have the runtime read a model otherwise than it was looked at, or weights from elsewhere.
const REFUSED: [&str; 4] = [
    "session.load_model_format",
    "session.use_ort_model_bytes_directly",
    "session.use_ort_model_bytes_for_initializers",
    "session.model_external_initializers_file_folder_path",
];

impl Default for GraphOptions {
    fn default() -> Self {
        Self {
            threads: None,
            parallel_nodes: 1,
            optimization: Optimization::default(),
            spinning: true,
            memory_pattern: true,
            large_pages: true,
            deterministic: false,
            dimensions: Vec::new(),
            providers: Vec::new(),
            fallback: false,
            own_kernels: None,
            config: Vec::new(),
        }
    }
}

impl GraphOptions {
    /// The default.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// So many threads compute a node together; at least one does.
    #[must_use]
    pub fn with_threads(mut self, threads: usize) -> Self {
        self.threads = Some(threads);
        self
    }

    /// So many nodes may be computed at once, where the graph has branches.
    #[must_use]
    pub fn with_parallel_nodes(mut self, nodes: usize) -> Self {
        self.parallel_nodes = nodes;
        self
    }

    /// The graph is rewritten so much.
    #[must_use]
    pub fn with_optimization(mut self, optimization: Optimization) -> Self {
        self.optimization = optimization;
        self
    }

    /// Whether threads wait busily.
    #[must_use]
    pub fn with_spinning(mut self, spinning: bool) -> Self {
        self.spinning = spinning;
        self
    }

    /// Whether the memory of a run is planned ahead.
    #[must_use]
    pub fn with_memory_pattern(mut self, memory_pattern: bool) -> Self {
        self.memory_pattern = memory_pattern;
        self
    }

    /// Whether what a load allocates is moved into large pages.
    #[must_use]
    pub fn with_large_pages(mut self, large_pages: bool) -> Self {
        self.large_pages = large_pages;
        self
    }

    /// Whether results are the same each time.
    #[must_use]
    pub fn with_deterministic(mut self, deterministic: bool) -> Self {
        self.deterministic = deterministic;
        self
    }

    /// The dimension of this name has this size.
    #[must_use]
    pub fn with_dimension(mut self, name: impl Into<String>, size: usize) -> Self {
        self.dimensions.push((name.into(), size));
        self
    }

    /// One more execution provider, less preferred than those before.
    #[must_use]
    pub fn with_provider(mut self, provider: Provider) -> Self {
        self.providers.push(provider);
        self
    }

    /// Whether to do without providers that cannot be used. Otherwise such a one is an error, which names it and says which there are.
    /// [`Graph::providers`](crate::Graph::providers) tells what was refused, and what really runs.
    #[must_use]
    pub fn with_fallback(mut self, fallback: bool) -> Self {
        self.fallback = fallback;
        self
    }

    /// Sets whether parts of an encoder's graph are computed by this library's own kernels.
    #[must_use]
    pub fn with_own_kernels(mut self, own_kernels: bool) -> Self {
        self.own_kernels = Some(own_kernels);
        self
    }

    /// An entry of ONNX Runtime's session configuration: `session.set_denormal_as_zero` is `1`, …. Keys that change how a model is read are
    /// refused when the graph is opened.
    #[must_use]
    pub fn with_config(mut self, key: impl Into<String>, value: impl Into<String>) -> Self {
        self.config.push((key.into(), value.into()));
        self
    }

    /// The runtime's options.
    pub(crate) fn session(&self, onnx: &Onnx) -> Result<SessionBuilder> {
        let threads = self.threads.unwrap_or_else(|| available_threads().get());
        for (what, number) in [("threads", threads), ("nodes at once", self.parallel_nodes)] {
            if !(1..=MOST_THREADS).contains(&number) {
                return Err(invalid_input(format!("{number} {what} were asked for; 1 to {MOST_THREADS} can be")));
            }
        }
        let new = SessionBuilder::new(onnx.environment()).map_err(|error| from_ort("make session options", &error))?;
        let new = set("what is logged", new.with_log_level(log::wanted()))?;
        let mut builder = set("the threads", new.with_intra_threads(threads))?;
        builder = set("nodes at once", builder.with_inter_threads(self.parallel_nodes))?;
        builder = set("nodes at once", builder.with_parallel_execution(self.parallel_nodes > 1))?;
        builder = set("the optimisation", builder.with_optimization_level(self.optimization.level()))?;
        builder = set("how threads wait", builder.with_intra_op_spinning(self.spinning))?;
        builder = set("how threads wait", builder.with_inter_op_spinning(self.spinning))?;
        builder = set("planned memory", builder.with_memory_pattern(self.memory_pattern))?;
        builder = set("what is deterministic", builder.with_deterministic_compute(self.deterministic))?;
        for (name, size) in &self.dimensions {
            no_nul("a dimension", name)?;
            let size = i64::try_from(*size)
                .map_err(|_| invalid_input(format!("the dimension {name:?} is too large: {size}")))?;
            builder = set("a dimension", builder.with_dimension_override(name, size))?;
        }
        for (key, value) in &self.config {
            if REFUSED.contains(&key.as_str()) {
                return Err(invalid_input(format!(
                    "the configuration {key:?} changes how a model is read, and is refused"
                )));
            }
            no_nul("a configuration", key)?;
            no_nul("a configuration", value)?;
            builder = set(key, builder.with_config_entry(key, value))?;
        }
        Ok(builder)
    }
}

/// More threads than any machine has, and fewer than make the runtime fail in unclear ways.
const MOST_THREADS: usize = 1024;

fn set(what: &str, result: BuilderResult) -> Result<SessionBuilder> {
    result.map_err(|error| from_ort(&format!("set {what}"), &error))
}

fn no_nul(what: &str, text: &str) -> Result<()> {
    if text.contains('\0') {
        return Err(invalid_input(format!("{what} has a NUL in it: {text:?}")));
    }
    Ok(())
}

impl Optimization {
    /// As the library calls it; no `From`, which would be in the public API.
    const fn level(self) -> GraphOptimizationLevel {
        match self {
            Self::None => GraphOptimizationLevel::Disable,
            Self::Basic => GraphOptimizationLevel::Level1,
            Self::Extended => GraphOptimizationLevel::Level2,
            Self::All => GraphOptimizationLevel::All,
        }
    }
}
