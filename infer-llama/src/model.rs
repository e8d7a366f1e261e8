//! An open model file.

use crate::{
    Encoder, Llama, LoadMode, ModelOptions, Placed, Session, SessionOptions, Tokenizer, convert, devices,
    error::{BACKEND, about_file},
    fingerprint::Files,
    gguf::{self, Header, Purpose},
    memory::Dims,
    raw::{self, Source},
};
use infer_core::{EncoderOptions, Error, ErrorKind, ModelInfo, Result, state::Fingerprint};
use std::{ffi::CString, fmt, fs::File, ops::ControlFlow, path::Path, sync::Arc};

/// An open model. Cheap to clone; its weights are shared by all its sessions, and freed when the last of these and of its clones
/// is gone.
///
/// It is `Send + Sync`: the library does not change a model once it is loaded. Sessions of one model run on several
/// threads at the same time.
#[derive(Clone)]
pub struct Model {
    inner: Arc<Inner>,
}

struct Inner {
    info: Arc<ModelInfo>,
    header: Header,
    dims: Dims,
    facts: raw::Facts,
    tokenizer: Tokenizer,
    vocab_only: bool,
    /// Positions there is a learned embedding for: beyond them the library reads outside a tensor.
    positions: Option<usize>,
    files: Files,
    raw: Arc<raw::Model>,
}

impl Model {
    /// Opens the model at `path`; of a split model, the path of its first file.
    ///
    /// The header is checked first ([`Header::check`]). A single file is opened once: what was checked is what is loaded, also
    /// when the path names another file meanwhile.
    ///
    /// # Errors
    /// [`Io`](ErrorKind::Io) when a file cannot be opened or read; [`InvalidModel`](ErrorKind::InvalidModel), with the
    /// file's name, when it is not a model this library can load; with what the library logged where it was the one that refused.
    pub fn open(llama: &Llama, path: impl AsRef<Path>) -> Result<Self> {
        Self::open_with(llama, path, &ModelOptions::default())
    }

    /// Opens the model at `path` as the options say.
    ///
    /// # Errors
    /// Those of [`open`](Self::open).
    pub fn open_with(llama: &Llama, path: impl AsRef<Path>, options: &ModelOptions) -> Result<Self> {
        Self::open_watched(llama, path, options, &mut |_| ControlFlow::Continue(()))
    }

    /// Opens the model at `path` and tells how far it is: `watch` is called on this thread with a share from 0 to 1, and ends
    /// the load by answering [`Break`](ControlFlow::Break).
    ///
    /// # Errors
    /// Those of [`open`](Self::open); [`Cancelled`](ErrorKind::Cancelled) when `watch` ended it.
    ///
    /// # Panics
    /// When `watch` panics: its panic goes on here, after the load was ended in order.
    ///
    /// ```
    /// # #[cfg(feature = "link")]
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let path = build_support::fixtures::model("tiny-llama")?;
    /// use infer_llama::{Llama, Model, ModelOptions};
    /// use std::ops::ControlFlow;
    ///
    /// let model = Model::open_watched(&Llama::linked()?, path, &ModelOptions::new(), &mut |done| {
    ///     eprint!("\r{:3.0} %", done * 100.0);
    ///     ControlFlow::Continue(())
    /// })?;
    /// assert_eq!(model.info().architecture, "llama");
    /// # Ok(())
    /// # }
    /// # #[cfg(not(feature = "link"))]
    /// # fn main() {}
    /// ```
    pub fn open_watched(
        llama: &Llama,
        path: impl AsRef<Path>,
        options: &ModelOptions,
        watch: &mut dyn FnMut(f32) -> ControlFlow<()>,
    ) -> Result<Self> {
        let path = path.as_ref();
        let file = gguf::open_file(path)?;
        let header = gguf::complete(gguf::read(&file, path)?)?;
        header.check(purpose(options))?;
        if header.parts().len() > 1 {
            let paths = header.parts().iter().map(|part| c_path(part.path())).collect::<Result<Vec<_>>>()?;
            let files = header.parts().iter().map(|part| gguf::open_file(part.path())).collect::<Result<Vec<_>>>()?;
            return Self::load(llama, &Source::Parts(&paths), header, files, options, watch);
        }
        Self::load_file(llama, &file, header, options, watch)
    }

    /// Opens the model in a file that is open already, from its beginning. `name` is what errors call it.
    ///
    /// The file's position is moved, so nothing else may read through this handle or a clone of it meanwhile. Once the model is
    /// open it does not need the handle.
    ///
    /// # Errors
    /// Those of [`open`](Self::open); [`Unsupported`](ErrorKind::Unsupported) for the file of a split model, which does not say
    /// where the others are.
    pub fn from_file(llama: &Llama, file: &File, name: impl AsRef<Path>, options: &ModelOptions) -> Result<Self> {
        let header = gguf::read(file, name)?;
        gguf::refuse_split(&header)?;
        header.check(purpose(options))?;
        Self::load_file(llama, file, header, options, &mut |_| ControlFlow::Continue(()))
    }

    #[cfg(unix)]
    fn load_file(
        llama: &Llama,
        file: &File,
        header: Header,
        options: &ModelOptions,
        watch: &mut dyn FnMut(f32) -> ControlFlow<()>,
    ) -> Result<Self> {
        let files = vec![own(file, &header)?];
        let file = std::os::fd::AsFd::as_fd(file);
        #[cfg(target_os = "linux")]
        if options.load_mode == LoadMode::Direct {
            // Such a file has to be opened for it: this very one, whatever its path names by now.
            let path = format!("/proc/self/fd/{}", std::os::fd::AsRawFd::as_raw_fd(&file));
            return Self::load(llama, &Source::Path(&c_path(Path::new(&path))?), header, files, options, watch);
        }
        Self::load(llama, &Source::File(file), header, files, options, watch)
    }

    #[cfg(not(unix))]
    fn load_file(
        llama: &Llama,
        file: &File,
        header: Header,
        options: &ModelOptions,
        watch: &mut dyn FnMut(f32) -> ControlFlow<()>,
    ) -> Result<Self> {
        let path = c_path(header.parts()[0].path())?;
        let files = vec![own(file, &header)?];
        Self::load(llama, &Source::Path(&path), header, files, options, watch)
    }

    fn load(
        llama: &Llama,
        source: &Source<'_>,
        mut header: Header,
        files: Vec<File>,
        options: &ModelOptions,
        watch: &mut dyn FnMut(f32) -> ControlFlow<()>,
    ) -> Result<Self> {
        let name = header.parts()[0].path().display().to_string();
        if options.load_mode == LoadMode::Direct && !cfg!(target_os = "linux") {
            let message = "files are read past the system's cache on Linux only; open the model copied or mapped";
            return Err(Error::unsupported(message).with_backend(BACKEND));
        }
        let placement = devices::placement(llama.door, options)?;
        let params = convert::model_params(options, placement, llama.door.supports_mmap());
        let mut progress = raw::Progress::new(watch);
        let loaded = raw::Model::load(llama.door, source, params, &mut progress);
        progress.resume_panic();
        if progress.was_stopped() {
            let message = format!("loading {name} was stopped by whoever watches it");
            return Err(Error::new(ErrorKind::Cancelled, message).with_backend(BACKEND));
        }
        let raw = loaded.map_err(|error| match poisoned(error.log().unwrap_or_default()) {
            Some(tensors) if options.check_tensors => {
                let message = format!("{name}: numbers that cannot be in {tensors}; get the file again");
                Error::new(ErrorKind::InvalidModel, message).with_backend(BACKEND).with_source(error)
            }
            _ => about_file(error, &name),
        })?;

        let space_prefix = match header.value("tokenizer.ggml.add_space_prefix") {
            Some(&gguf::Value::Bool(on)) => Some(on),
            _ => None,
        };
        let tokenizer = Tokenizer::new(raw.clone(), space_prefix, &name)?;
        let positions = header.tensor("position_embd.weight").and_then(|table| table.shape().get(1).copied());
        let (info, dims) = (header.info(), Dims::of(&header));
        // The vocabulary is in the tokenizer; there is no need for it twice.
        header.forget_large();
        Ok(Self {
            inner: Arc::new(Inner {
                info: Arc::new(info),
                header,
                dims,
                facts: raw.facts()?,
                tokenizer,
                vocab_only: options.vocab_only,
                positions: positions.and_then(|rows| usize::try_from(rows).ok()),
                files: Files::new(files),
                raw,
            }),
        })
    }

    /// What the file says of itself, in the words all backends share.
    #[must_use]
    pub fn info(&self) -> &Arc<ModelInfo> {
        &self.inner.info
    }

    /// The header of the file: every metadata field, and the list of tensors. Arrays of more than 1,024 elements, such as the
    /// vocabulary, are left out.
    #[must_use]
    pub fn header(&self) -> &Header {
        &self.inner.header
    }

    /// The tokenizer.
    #[must_use]
    pub fn tokenizer(&self) -> &Tokenizer {
        &self.inner.tokenizer
    }

    /// What was placed where: the devices that have layers, in the order of the layers. Nothing of a vocabulary.
    ///
    /// # Errors
    /// [`Runtime`](ErrorKind::Runtime) and [`Unsupported`](ErrorKind::Unsupported) when the library cannot say, as one of the
    /// system's own cannot.
    pub fn placement(&self) -> Result<Vec<Placed>> {
        devices::placed(&self.inner.raw)
    }

    /// Makes a session.
    ///
    /// # Errors
    /// [`InvalidInput`](ErrorKind::InvalidInput) for options out of range; [`OutOfMemory`](ErrorKind::OutOfMemory) when it does
    /// not fit the memory there is, before any is taken; [`Unsupported`](ErrorKind::Unsupported) for a model that is not a
    /// decoder of text, or was opened for its vocabulary only; [`Runtime`](ErrorKind::Runtime) with what the library said.
    pub fn session(&self, options: &SessionOptions) -> Result<Session> {
        Session::new(self, options)
    }

    /// Makes an encoder: of a model that was made for embeddings, classification or reranking, or of a decoder.
    ///
    /// # Errors
    /// [`InvalidInput`](ErrorKind::InvalidInput) for options out of range, or when neither they nor the file say how hidden states
    /// are pooled; [`Unsupported`](ErrorKind::Unsupported) for a model with an encoder *and* a decoder, one that was opened for its
    /// vocabulary only, and for [`Rank`](infer_core::Pooling::Rank) on one without a classification head;
    /// [`OutOfMemory`](ErrorKind::OutOfMemory) when it does not fit the memory there is, before any is taken;
    /// [`Runtime`](ErrorKind::Runtime) with what the library said.
    pub fn encoder(&self, options: &EncoderOptions) -> Result<Encoder> {
        Encoder::new(self, options)
    }

    /// What tells this model from others.
    pub(crate) fn fingerprint(&self) -> Result<Fingerprint> {
        self.inner.files.fingerprint(&self.inner.header)
    }

    pub(crate) fn raw(&self) -> &Arc<raw::Model> {
        &self.inner.raw
    }

    pub(crate) fn facts(&self) -> raw::Facts {
        self.inner.facts
    }

    pub(crate) fn dims(&self) -> Dims {
        self.inner.dims
    }

    /// Whether there are weights to compute with.
    pub(crate) fn is_vocab_only(&self) -> bool {
        self.inner.vocab_only
    }

    /// Positions beyond which the model cannot compute at all.
    pub(crate) fn positions(&self) -> Option<usize> {
        self.inner.positions
    }
}

impl infer_core::Model for Model {
    fn info(&self) -> &Arc<ModelInfo> {
        self.info()
    }

    fn tokenizer(&self) -> Arc<dyn infer_core::Tokenizer> {
        Arc::new(self.tokenizer().clone())
    }

    fn session(&self, options: &infer_core::SessionOptions) -> Result<Box<dyn infer_core::Session>> {
        Ok(Box::new(self.session(&options.clone().into())?))
    }

    fn encoder(&self, options: &EncoderOptions) -> Result<Box<dyn infer_core::Encoder>> {
        Ok(Box::new(self.encoder(options)?))
    }
}

/// The tensors that the library's log says have invalid data.
fn poisoned(log: &str) -> Option<String> {
    let named = |line: &str| {
        let (_, rest) = line.split_once("tensor '")?;
        let (name, _) = rest.split_once("' has invalid data")?;
        Some(format!("the tensor {name}"))
    };
    let tensors: Vec<_> = log.lines().filter_map(named).collect();
    (!tensors.is_empty()).then(|| tensors.join(", "))
}

/// A handle of our own on the file, for what is read of it later.
fn own(file: &File, header: &Header) -> Result<File> {
    file.try_clone().map_err(|error| {
        let name = header.parts()[0].path().display();
        Error::new(ErrorKind::Io, format!("{name}: no second handle on the file can be had")).with_source(error)
    })
}

fn purpose(options: &ModelOptions) -> Purpose {
    if options.vocab_only { Purpose::Vocab } else { Purpose::Model }
}

/// A path as C takes it: its bytes on Unix, UTF-8 elsewhere.
fn c_path(path: &Path) -> Result<CString> {
    #[cfg(unix)]
    let bytes = Some(std::os::unix::ffi::OsStrExt::as_bytes(path.as_os_str()));
    #[cfg(not(unix))]
    let bytes = path.to_str().map(str::as_bytes);
    bytes
        .and_then(|bytes| CString::new(bytes).ok())
        .ok_or_else(|| Error::invalid_input(format!("the path {} cannot be handed to the library", path.display())))
}

impl fmt::Debug for Model {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Model")
            .field("file", &self.inner.header.parts()[0].path())
            .field("info", &self.inner.info.description)
            .finish_non_exhaustive()
    }
}
