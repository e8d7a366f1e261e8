//! Graphs: named tensors in, named tensors out.

mod bound;
mod deadline;
mod empty;
mod inputs;
mod options;
mod outputs;
mod ports;

pub use bound::Binding;
pub use options::{GraphOptions, Optimization};
pub use outputs::Outputs;

use crate::{
    Input, Onnx, Port, ProviderUse, Value,
    error::{error, invalid_input},
    header::{self, Header},
    providers, raw,
};
use deadline::Watch;
use infer_core::{Error, ErrorKind, Interrupt, Result};
use ports::Ports;
use std::{fmt, io::Cursor, path::Path, sync::Arc, time::Instant};

/// A graph that is loaded, ready to run.
///
/// [`run`](Self::run) gives it tensors and other values by name, and [`outputs`](Self::outputs) lends what came out, until the next run. For
/// many runs with values of the same shapes, a [`Binding`] keeps them bound, so that a run does nothing but run.
///
/// It is `Send`: any thread may run it, one at a time. So it is not `Sync`, and this does not compile:
///
/// ```compile_fail,E0277
/// fn shared(graph: &infer_onnx::Graph) {
///     std::thread::scope(|scope| {
///         scope.spawn(|| println!("{:?}", graph.inputs()));
///     });
/// }
/// ```
///
/// A pool of sessions is what many threads can run at once.
///
/// ```no_run
/// use infer_onnx::{Graph, GraphOptions, LoadOptions, Onnx, TensorView};
///
/// # fn main() -> infer_core::Result<()> {
/// let onnx = Onnx::load(&LoadOptions::new())?;
/// let mut graph = Graph::open(&onnx, "model.onnx", &GraphOptions::new())?;
/// for input in graph.inputs() {
///     println!("{}: {}", input.name(), input.kind()); // x: float32[1, 64]
/// }
/// let x = vec![0.5_f32; 64];
/// graph.run([("x", TensorView::new(&[1, 64], &x)?)])?;
/// let y = graph.outputs().tensor("y")?;
/// println!("{:?}: {:?}", y.shape(), y.as_slice::<f32>()?);
/// # Ok(())
/// # }
/// ```
pub struct Graph {
    // What runs gave goes before the session that it came from.
    outputs: raw::Outputs,
    session: raw::Session,
    options: raw::RunOptions,
    watch: Option<Watch>,
    ports: Arc<Ports>,
    providers: Vec<ProviderUse>,
    header: Header,
    tag: String,
    onnx: Onnx,
}

impl Graph {
    /// Loads the model at `path`. Files that it has weights in are beside it.
    ///
    /// # Errors
    /// [`Io`](ErrorKind::Io) when the file cannot be read; [`InvalidModel`](ErrorKind::InvalidModel) when it is no ONNX model or a damaged
    /// one, its graph makes no sense to ONNX Runtime (a cycle, a type that does not fit), or a file that it names is not there or
    /// [not in its folder](Header::check_files); [`Unsupported`](ErrorKind::Unsupported) for operators that ONNX Runtime does not have, and for
    /// models in ORT's own format; [`InvalidInput`](ErrorKind::InvalidInput) for options that cannot be.
    pub fn open(onnx: &Onnx, path: impl AsRef<Path>, options: &GraphOptions) -> Result<Self> {
        Self::open_sharing(onnx, path.as_ref(), options, None)
    }

    /// The same, with weights that other sessions have too.
    pub(crate) fn open_sharing(
        onnx: &Onnx,
        path: &Path,
        options: &GraphOptions,
        weights: Option<&Arc<raw::SharedWeights>>,
    ) -> Result<Self> {
        let name = path.display().to_string();
        if path.extension().is_some_and(|extension| extension.eq_ignore_ascii_case("ort")) {
            return Err(ort_format(&name));
        }
        let header = header::open(path)?;
        header.check_files(path)?;
        let loaded = providers::load(onnx, options, |builder| {
            let session = raw::Session::from_file(onnx.environment(), builder, weights.cloned(), path);
            session.map_err(|error| about(&name, error))
        })?;
        Self::new(onnx, loaded, header, &name)
    }

    /// Loads a model that is in memory. It cannot have weights in files, since it has no folder.
    ///
    /// # Errors
    /// As of [`open`](Self::open); [`InvalidModel`](ErrorKind::InvalidModel) also when the model names files.
    pub fn from_bytes(onnx: &Onnx, model: &[u8], options: &GraphOptions) -> Result<Self> {
        Self::from_bytes_sharing(onnx, model, options, None)
    }

    /// The same, with weights that other sessions have too.
    pub(crate) fn from_bytes_sharing(
        onnx: &Onnx,
        model: &[u8],
        options: &GraphOptions,
        weights: Option<&Arc<raw::SharedWeights>>,
    ) -> Result<Self> {
        let name = "the model in memory";
        if model.get(4..8) == Some(b"ORTM") {
            return Err(ort_format(name));
        }
        let header = header::read(Cursor::new(model), name)?;
        if let Some(file) = header.files().first() {
            let message = format!(
                "{name} has the weights of tensor {:?} in the file {:?}, and no folder to look for it; open it by its path",
                file.tensor(),
                file.location()
            );
            return Err(error(ErrorKind::InvalidModel, message));
        }
        let loaded = providers::load(onnx, options, |builder| {
            let session = raw::Session::from_bytes(onnx.environment(), builder, weights.cloned(), model);
            session.map_err(|error| about(name, error))
        })?;
        Self::new(onnx, loaded, header, name)
    }

    fn new(onnx: &Onnx, loaded: (raw::Session, Vec<ProviderUse>), header: Header, name: &str) -> Result<Self> {
        let (session, providers) = loaded;
        let tag = Path::new(name).file_name().map_or_else(|| name.into(), |file| file.to_string_lossy().into_owned());
        let ports = Arc::new(Ports::new(session.inputs().to_vec(), session.outputs().to_vec()));
        let options = raw::RunOptions::new(&tag)?;
        let onnx = onnx.clone();
        Ok(Self {
            outputs: raw::Outputs::default(),
            session,
            options,
            watch: None,
            ports,
            providers,
            header,
            tag,
            onnx,
        })
    }

    /// What it takes: its inputs in the graph's order, then those of its weights that a run may replace, which are
    /// [optional](Port::is_optional).
    #[must_use]
    pub fn inputs(&self) -> &[Port] {
        &self.ports.inputs
    }

    /// What it gives, in the graph's order. (What the last run gave is in [`outputs`](Self::outputs).)
    #[must_use]
    pub fn declared_outputs(&self) -> &[Port] {
        &self.ports.outputs
    }

    /// What runs it: each execution provider that was asked for, in that order, then those that got nodes without being asked, with the
    /// number of nodes that the runtime gave it, or the reason why it is not used.
    ///
    /// The runtime counts when it has divided the graph, before nodes of one provider are put together or copies between two are added.
    /// Within a provider nodes may still be computed in different places (Core ML, for one, chooses between CPU, GPU and neural engine
    /// itself), of which the runtime knows nothing.
    ///
    /// ```no_run
    /// # use infer_onnx::{Graph, GraphOptions, Onnx, Provider};
    /// # fn open(onnx: Onnx) -> infer_core::Result<()> {
    /// let options = GraphOptions::new().with_provider(Provider::cuda()).with_fallback(true);
    /// let graph = Graph::open(&onnx, "model.onnx", &options)?;
    /// for provider in graph.providers() {
    ///     match provider.refusal() {
    ///         None => println!("{}: {} nodes", provider.name(), provider.nodes()),
    ///         Some(why) => println!("{} is not used: {why}", provider.name()),
    ///     }
    /// }
    /// # Ok(())
    /// # }
    /// ```
    #[must_use]
    pub fn providers(&self) -> &[ProviderUse] {
        &self.providers
    }

    /// What the model says of itself: its producer, its operators, and what else was written down in it.
    #[must_use]
    pub fn header(&self) -> &Header {
        &self.header
    }

    /// Runs the graph once. Inputs are pairs of a name and a value; tensors are not copied, but for strings. In any order, and all that are not
    /// optional.
    ///
    /// ```no_run
    /// # use infer_onnx::{Graph, Input, Tensor, TensorView};
    /// # fn run(graph: &mut Graph) -> infer_core::Result<()> {
    /// let (ids, names) = ([1_i64, 2, 3], Tensor::strings(&[1], vec!["a".to_owned()])?);
    /// graph.run([("ids", Input::from(TensorView::new(&[1, 3], &ids)?)), ("names", Input::from(&names))])?;
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// [`InvalidInput`](ErrorKind::InvalidInput) for a name that the graph does not have or that comes twice, an input that is missing, and a
    /// value whose kind, type of elements, rank or fixed dimensions are not the input's: nothing has run. [`Cancelled`](ErrorKind::Cancelled)
    /// when it was interrupted. Else what ONNX Runtime says: [`Runtime`](ErrorKind::Runtime), [`OutOfMemory`](ErrorKind::OutOfMemory), ….
    /// After an error there are no outputs, and the graph can be run again.
    pub fn run<'a, N, V>(&mut self, inputs: impl IntoIterator<Item = (N, V)>) -> Result<()>
    where
        N: AsRef<str>,
        V: Into<Input<'a>>,
    {
        self.outputs.clear();
        let mut call = self.session.call();
        inputs::give(&self.onnx, &self.ports, inputs, &mut call)?;
        self.outputs.want_all(self.ports.outputs.len());
        call.run(&self.options, &mut self.outputs)
    }

    /// Runs the graph once, as far as these outputs need it.
    ///
    /// # Errors
    /// As of [`run`](Self::run), also for the names of outputs.
    pub fn run_for<'a, N, V>(&mut self, outputs: &[&str], inputs: impl IntoIterator<Item = (N, V)>) -> Result<()>
    where
        N: AsRef<str>,
        V: Into<Input<'a>>,
    {
        self.outputs.clear();
        let mut call = self.session.call();
        inputs::give(&self.onnx, &self.ports, inputs, &mut call)?;
        for name in outputs {
            if !self.outputs.want(self.ports.output(name)?) {
                return Err(invalid_input(format!("the output {name:?} is wanted twice")));
            }
        }
        call.run(&self.options, &mut self.outputs)
    }

    /// Runs the graph once, and stops it when it is not over at `deadline`.
    ///
    /// A run ends between two nodes: one that takes long is waited for.
    ///
    /// # Errors
    /// As of [`run`](Self::run); [`Cancelled`](ErrorKind::Cancelled) also when the deadline has passed.
    pub fn run_until<'a, N, V>(&mut self, deadline: Instant, inputs: impl IntoIterator<Item = (N, V)>) -> Result<()>
    where
        N: AsRef<str>,
        V: Into<Input<'a>>,
    {
        self.outputs.clear();
        let mut call = self.session.call();
        inputs::give(&self.onnx, &self.ports, inputs, &mut call)?;
        self.outputs.want_all(self.ports.outputs.len());
        deadline::watched(&mut self.watch, &self.options, deadline, || call.run(&self.options, &mut self.outputs))
    }

    /// What the last run gave; nothing after an error.
    #[must_use]
    pub fn outputs(&self) -> Outputs<'_> {
        Outputs::of_run(&self.ports, &self.outputs)
    }

    /// Takes what the last run gave for an output: to keep it beyond the next run, without copying it.
    ///
    /// # Errors
    /// [`InvalidInput`](ErrorKind::InvalidInput) when the graph has no such output, or the last run gave none.
    pub fn take(&mut self, output: &str) -> Result<Value> {
        let value = self.outputs.take(self.ports.output(output)?);
        Value::of_runtime(value.ok_or_else(|| outputs::not_there(output))?)
    }

    /// A place to keep inputs and outputs bound for many runs: see [`Binding`]. Outputs go into memory of the runtime's choice, until they are
    /// bound otherwise.
    ///
    /// # Errors
    /// What ONNX Runtime says.
    pub fn binding<'m>(&self) -> Result<Binding<'m>> {
        Binding::new(self.session.binding()?, Arc::clone(&self.ports), self.onnx.clone())
    }

    /// Runs the graph once with what is bound. What comes out is in the binding.
    ///
    /// # Errors
    /// [`InvalidInput`](ErrorKind::InvalidInput) when an input that is not optional is not bound, or the binding is of another graph;
    /// [`Cancelled`](ErrorKind::Cancelled) when the run was interrupted; else what ONNX Runtime says.
    pub fn run_bound(&mut self, binding: &mut Binding<'_>) -> Result<()> {
        binding.run(&mut self.session, &self.options)
    }

    /// The same, stopped when it is not over at `deadline`: see [`run_until`](Self::run_until).
    ///
    /// # Errors
    /// As of [`run_bound`](Self::run_bound); [`Cancelled`](ErrorKind::Cancelled) also when the deadline has passed.
    pub fn run_bound_until(&mut self, deadline: Instant, binding: &mut Binding<'_>) -> Result<()> {
        // Also where nothing runs at all, there is nothing to show afterwards.
        binding.forget();
        let run = || binding.run(&mut self.session, &self.options);
        deadline::watched(&mut self.watch, &self.options, deadline, run)
    }

    /// Stops runs of this graph, from any thread, for as long as it is raised. A run ends between two nodes.
    #[must_use]
    pub fn interrupt(&self) -> Interrupt {
        self.options.interrupt()
    }

    /// The library it runs in.
    #[must_use]
    pub fn onnx(&self) -> &Onnx {
        &self.onnx
    }

    /// For the next one who has it: what the last run gave is gone, and interrupts that were given away reach it no more.
    pub(crate) fn reset(&mut self) {
        self.outputs.clear();
        // The watch has a hand on the options too.
        let known = 1 + usize::from(self.watch.is_some());
        if self.options.owners() == known && self.options.stop().is_none() {
            return;
        }
        match raw::RunOptions::new(&self.tag) {
            Ok(options) => (self.watch, self.options) = (None, options),
            // There is no memory for new ones. Those that are there can at least run.
            Err(_) => self.options.interrupt().lower(),
        }
    }
}

/// The same error with the model's name. What ONNX Runtime refuses in a model that it was given is the model's fault.
pub(crate) fn about(name: &str, cause: Error) -> Error {
    let kind = match cause.kind() {
        ErrorKind::Runtime | ErrorKind::InvalidInput => ErrorKind::InvalidModel,
        kind => kind,
    };
    let mut renamed = error(kind, format!("{name}: {}", words(&cause)));
    if let Some(code) = cause.code() {
        renamed = renamed.with_code(code);
    }
    renamed.with_log(cause.log().unwrap_or_default()).with_source(cause)
}

/// What an error says, without the backend and code that its text ends with.
pub(crate) fn words(error: &Error) -> String {
    let text = error.to_string();
    text.rsplit_once(" (onnx").map_or(text.clone(), |(words, _)| words.to_owned())
}

fn ort_format(name: &str) -> Error {
    let message =
        format!("{name} is in ORT's own format, which is not loaded here; give the ONNX model that it was made of");
    error(ErrorKind::Unsupported, message)
}

impl fmt::Debug for Graph {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Graph")
            .field("inputs", &self.ports.inputs)
            .field("outputs", &self.ports.outputs)
            .finish_non_exhaustive()
    }
}
