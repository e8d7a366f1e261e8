use crate::{Backend, Variant, backends, format};
use infer_core::{Model, Result};
use std::{
    ops::ControlFlow,
    path::{Path, PathBuf},
};

/// Opens a model, a file or a folder, with the backend that reads its format.
///
/// The format is recognised by a file's first bytes, and of a folder by what lies in it. [`ModelSource`] is the long form, with choices.
///
/// # Errors
/// [`Io`](crate::ErrorKind::Io) for a file that cannot be read; [`InvalidModel`](crate::ErrorKind::InvalidModel) for one
/// that is of no known format, or damaged; [`Unsupported`](crate::ErrorKind::Unsupported) when the backend for it is not
/// compiled in, with the name of the feature that does; [`Library`](crate::ErrorKind::Library) when its native library
/// is missing or another one.
pub fn open(path: impl AsRef<Path>) -> Result<Box<dyn Model>> {
    ModelSource::new(path.as_ref()).open()
}

/// Which model, and how it is opened: a description, which can be kept, cloned and sent to where the model will live
/// ([`Model`] itself cannot).
///
/// ```no_run
/// use infer::{Backend, Library, ModelSource};
/// use std::ops::ControlFlow;
///
/// let source = ModelSource::new("model.gguf")
///     .with_backend(Backend::Llama)
///     .with_library(Library::At("/opt/infer/libinfer_llama.so".into()));
/// let model = source.open_watched(&mut |done| {
///     eprint!("\r{:3.0} %", done * 100.0);
///     ControlFlow::Continue(()) // Break gives up
/// })?;
/// # Ok::<(), infer::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ModelSource {
    pub(crate) path: PathBuf,
    pub(crate) backend: Option<Backend>,
    pub(crate) library: Library,
    pub(crate) devices: Option<Vec<String>>,
    pub(crate) vocab_only: bool,
}

/// Where the native library of a backend comes from.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Library {
    /// The one that is linked into this program, else the one that is found.
    #[default]
    Default,
    /// The one that is linked in.
    Linked,
    /// The shared library that is found where the backend looks: an environment variable, then the cache that
    /// `infer setup` fills.
    Found,
    /// The shared library at this path.
    At(PathBuf),
    /// The shared library that was built so, in the cache.
    Variant(Variant),
}

impl From<&Path> for ModelSource {
    fn from(path: &Path) -> Self {
        Self::new(path)
    }
}

impl From<PathBuf> for ModelSource {
    fn from(path: PathBuf) -> Self {
        Self::new(path)
    }
}

impl From<&PathBuf> for ModelSource {
    fn from(path: &PathBuf) -> Self {
        Self::new(path)
    }
}

impl From<&str> for ModelSource {
    fn from(path: &str) -> Self {
        Self::new(path)
    }
}

impl From<String> for ModelSource {
    fn from(path: String) -> Self {
        Self::new(path)
    }
}

impl ModelSource {
    /// The model in this file or folder, everything else by default.
    #[must_use]
    pub fn new(path: impl Into<PathBuf>) -> Self {
        Self { path: path.into(), backend: None, library: Library::Default, devices: None, vocab_only: false }
    }

    /// The backend that is to open it, where its format is not recognised, or several read it. One that is known to be of another backend is refused.
    #[must_use]
    pub fn with_backend(mut self, backend: Backend) -> Self {
        self.backend = Some(backend);
        self
    }

    /// Where the backend's native library comes from.
    #[must_use]
    pub fn with_library(mut self, library: Library) -> Self {
        self.library = library;
        self
    }

    /// The devices it is computed on, by the names that [`devices`](crate::devices) gives them; the processor alone where they are none,
    /// or the processor. By default the backend takes what there is.
    #[must_use]
    pub fn with_devices<N: Into<String>>(mut self, names: impl IntoIterator<Item = N>) -> Self {
        self.devices = Some(names.into_iter().map(Into::into).collect());
        self
    }

    /// Opens only the vocabulary and what the file says of itself: quick, and in little memory. Such a model encodes
    /// text; making a session of it is an error.
    #[must_use]
    pub fn with_vocab_only(mut self, vocab_only: bool) -> Self {
        self.vocab_only = vocab_only;
        self
    }

    /// The file, or folder.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The backend that would open it: the one that was asked for, else the one whose format the file has.
    ///
    /// # Errors
    /// [`Io`](crate::ErrorKind::Io) and [`InvalidModel`](crate::ErrorKind::InvalidModel) when it takes a look at the file
    /// to tell and that fails.
    pub fn backend(&self) -> Result<Backend> {
        self.backend.map_or_else(|| format::recognise(&self.path), Ok)
    }

    /// Opens the model.
    ///
    /// # Errors
    /// Those of [`open`].
    pub fn open(&self) -> Result<Box<dyn Model>> {
        self.open_watched(&mut |_| ControlFlow::Continue(()))
    }

    /// Opens the model and tells how far it is: `watch` is called on this thread with a share from 0 to 1, and ends the
    /// load by answering [`Break`](ControlFlow::Break).
    ///
    /// # Errors
    /// Those of [`open`]; [`Cancelled`](crate::ErrorKind::Cancelled) when `watch` ended it.
    pub fn open_watched(&self, watch: &mut dyn FnMut(f32) -> ControlFlow<()>) -> Result<Box<dyn Model>> {
        backends::open(self.backend()?, self, watch)
    }
}
