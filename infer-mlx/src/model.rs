//! An open model.

use crate::{
    Encoder, Mlx, ModelOptions, Package, Session, SessionOptions,
    error::{BACKEND, error},
    fingerprint,
    models::{Bert, Decoder, Network},
};
use infer_core::{
    EncoderOptions, Error, ErrorKind, ModelInfo, Result, Tokenizer as _,
    huggingface::{Settings, Tokenizer},
    state::Fingerprint,
};
use std::{cell::OnceCell, fmt, ops::ControlFlow, path::Path, rc::Rc, sync::Arc};

/// An open model, with its tokenizer. Cheap to clone; clones and sessions share its weights.
///
/// Its weights are arrays of the thread that opened it, so it stays there: what other threads need are its [`info`](Self::info) and its
/// tokenizer.
///
/// ```compile_fail,E0277
/// fn sent<T: Send>() {}
/// sent::<infer_mlx::Model>();
/// ```
#[derive(Clone)]
pub struct Model {
    inner: Rc<Inner>,
}

struct Inner {
    info: Arc<ModelInfo>,
    package: Package,
    tokenizer: Tokenizer,
    fingerprint: OnceCell<Fingerprint>,
    /// Of a model that was not opened for its vocabulary only.
    network: Option<Network>,
    mlx: Mlx,
}

impl Model {
    /// Opens a model: a folder with `config.json`, safetensors files and `tokenizer.json`.
    ///
    /// # Errors
    /// Those of [`Package::read`] and of [`Tokenizer::open`], by the name of the file; [`InvalidModel`](ErrorKind::InvalidModel) where there is no
    /// tokenizer; [`OutOfMemory`](ErrorKind::OutOfMemory); [`Runtime`](ErrorKind::Runtime) with what MLX said.
    pub fn open(mlx: &Mlx, path: impl AsRef<Path>) -> Result<Self> {
        Self::open_with(mlx, path, &ModelOptions::default())
    }

    /// Opens a model as the options say.
    ///
    /// # Errors
    /// Those of [`open`](Self::open).
    pub fn open_with(mlx: &Mlx, path: impl AsRef<Path>, options: &ModelOptions) -> Result<Self> {
        Self::open_watched(mlx, path, options, &mut |_| ControlFlow::Continue(()))
    }

    /// Opens a model and tells how far it is: `watch` is called on this thread with a share from 0 to 1, and ends the load by answering
    /// [`Break`](ControlFlow::Break).
    ///
    /// # Errors
    /// Those of [`open`](Self::open); [`Cancelled`](ErrorKind::Cancelled) when `watch` ended it.
    ///
    /// # Panics
    /// When `watch` panics.
    pub fn open_watched(
        mlx: &Mlx,
        path: impl AsRef<Path>,
        options: &ModelOptions,
        watch: &mut dyn FnMut(f32) -> ControlFlow<()>,
    ) -> Result<Self> {
        let package = Package::read(path)?;
        let (tokenizer, template) = tokenizer(package.folder()).map_err(|why| why.with_backend(BACKEND))?;
        let mut info = package.info().clone();
        info.chat_template = template;
        // The tokenizer is what is there; what settings say of it is hearsay.
        info.vocab = tokenizer.vocab().len();
        let network = if options.vocab_only { None } else { Some(package.load(mlx, watch)?) };
        let (info, mlx, fingerprint) = (Arc::new(info), mlx.clone(), OnceCell::new());
        Ok(Self { inner: Rc::new(Inner { info, package, tokenizer, fingerprint, network, mlx }) })
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

    /// The library that computes it.
    #[must_use]
    pub fn mlx(&self) -> &Mlx {
        &self.inner.mlx
    }

    /// Makes a session.
    ///
    /// # Errors
    /// [`InvalidInput`](ErrorKind::InvalidInput) for options out of range; [`InvalidModel`](ErrorKind::InvalidModel) for a tokenizer that is
    /// not the model's; [`OutOfMemory`](ErrorKind::OutOfMemory) when keys and values may come to take more memory than there is;
    /// [`Unsupported`](ErrorKind::Unsupported) for a model that is no decoder, or was opened for its vocabulary only, for adapters, and for a
    /// layout of cells that there is not.
    pub fn session(&self, options: &SessionOptions) -> Result<Session> {
        Session::new(self, options)
    }

    /// Makes an encoder: for embeddings.
    ///
    /// # Errors
    /// [`InvalidInput`](ErrorKind::InvalidInput) for options out of range, or that leave the pooling to files which do not say it;
    /// [`InvalidModel`](ErrorKind::InvalidModel) for files that are damaged, and a tokenizer that is not the model's;
    /// [`Unsupported`](ErrorKind::Unsupported) for a model that is no encoder, or was opened for its vocabulary only, and for a way of pooling that
    /// this backend does not have.
    pub fn encoder(&self, options: &EncoderOptions) -> Result<Encoder> {
        Encoder::new(self, options)
    }

    /// What goes on with a text.
    ///
    /// # Errors
    /// [`Unsupported`](ErrorKind::Unsupported) where there is no such thing.
    pub(crate) fn decoder(&self) -> Result<&dyn Decoder> {
        match &self.inner.network {
            Some(Network::Decoder(decoder)) => Ok(&**decoder),
            Some(_) => Err(self.lacks("next tokens", "is no decoder")),
            None => Err(self.lacks("next tokens", "was opened for its vocabulary only")),
        }
    }

    /// What reads one.
    ///
    /// # Errors
    /// [`Unsupported`](ErrorKind::Unsupported) where there is no such thing.
    pub(crate) fn bert(&self) -> Result<&Bert> {
        match &self.inner.network {
            Some(Network::Encoder(bert)) => Ok(bert),
            Some(_) => Err(self.lacks("vectors", "is no encoder")),
            None => Err(self.lacks("vectors", "was opened for its vocabulary only")),
        }
    }

    /// The same model with another decoder in the place of its own, of which nobody else has a clone.
    #[cfg(test)]
    pub(crate) fn with_decoder(self, replace: impl FnOnce(Box<dyn Decoder>) -> Box<dyn Decoder>) -> Self {
        let mut inner = Rc::into_inner(self.inner).expect("nobody else has it");
        let Some(Network::Decoder(decoder)) = inner.network else { panic!("it is no decoder") };
        inner.network = Some(Network::Decoder(replace(decoder)));
        Self { inner: Rc::new(inner) }
    }

    /// The error of whoever wants something that this model has not.
    fn lacks(&self, what: &str, why: &str) -> Error {
        let message = format!("{} {why}: there are no {what} to be had of it", self.inner.package.folder().display());
        Error::unsupported(message).with_backend(BACKEND)
    }

    /// What tells it from another one.
    ///
    /// # Errors
    /// [`Io`](ErrorKind::Io) where its files cannot be read again.
    pub(crate) fn fingerprint(&self) -> Result<Fingerprint> {
        if let Some(&known) = self.inner.fingerprint.get() {
            return Ok(known);
        }
        let found = fingerprint::of(&self.inner.package)?;
        Ok(*self.inner.fingerprint.get_or_init(|| found))
    }
}

/// The tokenizer in a folder, and the chat template beside it.
fn tokenizer(folder: &Path) -> Result<(Tokenizer, Option<String>)> {
    let (file, settings) = (folder.join("tokenizer.json"), Settings::read(folder)?);
    if !file.exists() {
        let message = format!("{} is missing: without it there is no text for a model", file.display());
        return Err(error(ErrorKind::InvalidModel, message));
    }
    let tokenizer = Tokenizer::open_with(file, &settings)?.with_backend(BACKEND);
    Ok((tokenizer, settings.chat_template().map(str::to_owned)))
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

impl fmt::Debug for Model {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Model")
            .field("folder", &self.inner.package.folder())
            .field("info", &self.inner.info.description)
            .finish_non_exhaustive()
    }
}
