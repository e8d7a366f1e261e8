//! An open model.

use crate::{
    Encoder, Form, GraphOptions, ModelOptions, Onnx, Package, Session,
    decoder::Decoder,
    error::{BACKEND, error},
    load::{cancelled, watched},
    providers,
};
use infer_core::{
    EncoderOptions, Error, ErrorKind, ModelInfo, Result, SessionOptions, Tokenizer as _, huggingface::Tokenizer,
    machine::available_threads,
};
use std::{fmt, ops::ControlFlow, path::Path, sync::Arc};

/// How far a load is when all but the graph is read.
const READ: f32 = 0.1;

/// An open model: a decoder or an encoder, with its tokenizer. Cheap to clone.
///
/// It is `Send + Sync`. What a folder must have for it is said at [`Package`]; a graph of another kind is opened as a
/// [`Graph`](crate::Graph).
#[derive(Clone)]
pub struct Model {
    inner: Arc<Inner>,
}

struct Inner {
    info: Arc<ModelInfo>,
    package: Package,
    tokenizer: Tokenizer,
    options: ModelOptions,
    /// Of a decoder that was not opened for its vocabulary only.
    decoder: Option<Arc<Decoder>>,
    onnx: Onnx,
}

impl Model {
    /// Opens a model: a folder, or a graph with the files around it.
    ///
    /// # Errors
    /// Those of [`Package::read`], of [`Tokenizer::open`] and of [`Graph::open`](crate::Graph::open), by the name of the file;
    /// [`InvalidModel`](ErrorKind::InvalidModel) where there is no tokenizer; [`Unsupported`](ErrorKind::Unsupported) for a graph that takes
    /// no tokens.
    pub fn open(onnx: &Onnx, path: impl AsRef<Path>) -> Result<Self> {
        Self::open_with(onnx, path, &ModelOptions::default())
    }

    /// Opens a model as the options say.
    ///
    /// # Errors
    /// Those of [`open`](Self::open).
    pub fn open_with(onnx: &Onnx, path: impl AsRef<Path>, options: &ModelOptions) -> Result<Self> {
        Self::open_watched(onnx, path, options, &mut |_| ControlFlow::Continue(()))
    }

    /// Opens a model and tells how far it is: `watch` is called on this thread with a share from 0 to 1, and ends the load by answering
    /// [`Break`](ControlFlow::Break). ONNX Runtime does not say how far it is with a graph: meanwhile the share stands still.
    ///
    /// # Errors
    /// Those of [`open`](Self::open); [`Cancelled`](ErrorKind::Cancelled) when `watch` ended it.
    ///
    /// # Panics
    /// When `watch` panics: its panic goes on here, after the load was ended.
    pub fn open_watched(
        onnx: &Onnx,
        path: impl AsRef<Path>,
        options: &ModelOptions,
        watch: &mut dyn FnMut(f32) -> ControlFlow<()>,
    ) -> Result<Self> {
        tell(watch, 0.0)?;
        let package = Package::read(path)?;
        if package.form() == Form::Graph {
            let message = format!(
                "{} takes no `input_ids`: it is no model of text, and can be run as a graph",
                package.graph().display()
            );
            return Err(error(ErrorKind::Unsupported, message));
        }
        let tokenizer = package.tokenizer()?;
        let mut info = package.info().clone();
        // The tokenizer is what is there; what settings say of it is hearsay.
        info.vocab = tokenizer.vocab().len();
        tell(watch, READ)?;
        let config = package.decoder().filter(|_| !options.vocab_only);
        let decoder = config.map(|config| {
            let config = config.clone();
            watched(watch, READ, |loading| Decoder::open(onnx, config, &options.graph, loading))
        });
        let decoder = decoder.transpose()?.map(Arc::new);
        tell(watch, 1.0)?;
        let (info, options, onnx) = (Arc::new(info), options.clone(), onnx.clone());
        Ok(Self { inner: Arc::new(Inner { info, package, tokenizer, options, decoder, onnx }) })
    }

    /// What its files say of it, in the words all backends share.
    #[must_use]
    pub fn info(&self) -> &Arc<ModelInfo> {
        &self.inner.info
    }

    /// Its files, and what else they say.
    #[must_use]
    pub fn package(&self) -> &Package {
        &self.inner.package
    }

    /// The tokenizer.
    #[must_use]
    pub fn tokenizer(&self) -> &Tokenizer {
        &self.inner.tokenizer
    }

    /// Makes a session.
    ///
    /// # Errors
    /// [`InvalidInput`](ErrorKind::InvalidInput) for options out of range; [`InvalidModel`](ErrorKind::InvalidModel) for a tokenizer that is
    /// not the graph's; [`OutOfMemory`](ErrorKind::OutOfMemory) when it does not fit the memory there is;
    /// [`Unsupported`](ErrorKind::Unsupported) for a model that is no decoder, or was opened for its vocabulary only, and for options that
    /// a graph cannot have; [`Runtime`](ErrorKind::Runtime) with what the runtime said.
    pub fn session(&self, options: &SessionOptions) -> Result<Session> {
        let Some(decoder) = &self.inner.decoder else {
            return Err(self.lacks("next tokens", "no decoder"));
        };
        Session::new(decoder, &self.inner.info, self.inner.tokenizer.vocab(), options)
    }

    /// Makes an encoder: for embeddings, classification, reranking.
    ///
    /// # Errors
    /// [`InvalidInput`](ErrorKind::InvalidInput) for options out of range, or that leave the pooling to files which do not say it;
    /// [`InvalidModel`](ErrorKind::InvalidModel) for files that are damaged; [`Unsupported`](ErrorKind::Unsupported) for a graph that does not
    /// give what the pooling is made of or takes more than texts, for a way of pooling that this library does not have, and for a model that
    /// was opened for its vocabulary only; those of [`Graph::open`](crate::Graph::open).
    pub fn encoder(&self, options: &EncoderOptions) -> Result<Encoder> {
        Encoder::new(self, options)
    }

    /// The folder that its settings lie in.
    pub(crate) fn folder(&self) -> &Path {
        self.inner.package.folder()
    }

    /// The runtime, and how its graph is loaded, for what is more than a session: not where it was opened for its vocabulary only.
    ///
    /// # Errors
    /// [`Unsupported`](ErrorKind::Unsupported), there.
    pub(crate) fn whole(&self) -> Result<(&Onnx, &GraphOptions)> {
        let Inner { options, onnx, .. } = &*self.inner;
        if options.vocab_only { Err(self.lacks("vectors", "no encoder")) } else { Ok((onnx, &options.graph)) }
    }

    /// How many threads a graph has that is loaded for so many, or as its options say.
    pub(crate) fn threads(&self, asked: Option<usize>) -> usize {
        asked.or(self.inner.options.graph.threads).unwrap_or_else(|| available_threads().get())
    }

    /// Whether no other provider than the CPU is asked for.
    pub(crate) fn is_of_cpu(&self) -> bool {
        self.inner.options.graph.providers.iter().all(|provider| provider.name() == providers::CPU)
    }

    /// The error of whoever wants something that this model has not.
    fn lacks(&self, what: &str, kind: &str) -> Error {
        let why = if self.inner.options.vocab_only { "was opened for its vocabulary only" } else { kind };
        let verb = if self.inner.options.vocab_only { "" } else { "is " };
        let message = format!("{} {verb}{why}: there are no {what} to be had of it", self.folder().display());
        Error::unsupported(message).with_backend(BACKEND)
    }
}

impl infer_core::Model for Model {
    fn info(&self) -> &Arc<ModelInfo> {
        self.info()
    }

    fn tokenizer(&self) -> Arc<dyn infer_core::Tokenizer> {
        Arc::new(self.tokenizer().clone())
    }

    fn session(&self, options: &SessionOptions) -> Result<Box<dyn infer_core::Session>> {
        Ok(Box::new(self.session(options)?))
    }

    fn encoder(&self, options: &EncoderOptions) -> Result<Box<dyn infer_core::Encoder>> {
        Ok(Box::new(self.encoder(options)?))
    }
}

/// Tells how far it is, and hears whether to go on.
fn tell(watch: &mut dyn FnMut(f32) -> ControlFlow<()>, share: f32) -> Result<()> {
    if watch(share).is_break() { Err(cancelled()) } else { Ok(()) }
}

impl fmt::Debug for Model {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Model")
            .field("graph", &self.inner.package.graph())
            .field("info", &self.inner.info.description)
            .finish_non_exhaustive()
    }
}
