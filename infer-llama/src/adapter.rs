//! Adapters (LoRA) of a model.

use crate::{
    Model,
    error::{BACKEND, about_file},
    fingerprint::Files,
    gguf::{self, Header},
    raw,
};
use infer_core::{Error, Result, state::Fingerprint};
use std::{fmt, path::Path, sync::Arc};

/// An adapter (LoRA) that was loaded for a model: small changes to its weights, applied while it computes. Cheap to clone; it keeps
/// its model open, and sessions keep it.
///
/// The weights of the model stay as they are, so sequences with different adapters and without any share them. A pass is computed
/// with one: sequences of different adapters take turns, and every change costs the library a new plan of its graph.
///
/// ```
/// # #[cfg(feature = "link")]
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let (path, lora) = (build_support::fixtures::model("tiny-llama")?, build_support::fixtures::model("tiny-lora")?);
/// use infer_core::{OpenOptions, Session as _};
/// use infer_llama::{Llama, Model, SessionOptions};
///
/// let model = Model::open(&Llama::linked()?, path)?;
/// let adapter = model.adapter(lora)?;
/// let options = SessionOptions::new().with_context(256).with_sequences(2).with_loaded_adapter("tuned", &adapter, 1.0);
/// let mut session = model.session(&options)?;
/// let tuned = session.open(&OpenOptions::new().with_adapter("tuned"))?;
/// let bare = session.open(&OpenOptions::new())?;
/// # drop((tuned, bare));
/// # Ok(())
/// # }
/// # #[cfg(not(feature = "link"))]
/// # fn main() {}
/// ```
#[derive(Clone)]
pub struct Adapter {
    raw: Arc<raw::Adapter>,
    header: Arc<Header>,
    files: Arc<Files>,
}

impl Model {
    /// Loads an adapter for this model from a GGUF file, as `convert_lora_to_gguf.py` of llama.cpp writes it.
    ///
    /// The header is checked against the model's first: what was checked is what is loaded. It waits until no session of this model
    /// runs a pass, and passes wait until it is loaded. Where several sessions use one adapter it need not be loaded by each: see
    /// [`SessionOptions::with_loaded_adapter`](crate::SessionOptions::with_loaded_adapter).
    ///
    /// # Errors
    /// [`Io`](infer_core::ErrorKind::Io) when the file cannot be opened or read;
    /// [`InvalidModel`](infer_core::ErrorKind::InvalidModel), naming the file and the field or tensor, when it is no adapter or one of
    /// another model; [`Unsupported`](infer_core::ErrorKind::Unsupported) for an activated adapter (aLoRA), and for a model
    /// that was opened for its vocabulary only.
    pub fn adapter(&self, path: impl AsRef<Path>) -> Result<Adapter> {
        let path = path.as_ref();
        if self.is_vocab_only() {
            let message = "the model was opened for its vocabulary only; open it with its weights to load an adapter";
            return Err(Error::unsupported(message).with_backend(BACKEND));
        }
        let file = gguf::open_file(path)?;
        let mut header = gguf::read(&file, path)?;
        gguf::refuse_split(&header)?;
        header.check_adapter(self.header())?;
        let raw = raw::Adapter::load(self.raw().clone(), &file);
        let raw = raw.map_err(|error| about_file(error, &path.display().to_string()))?;
        header.forget_large();
        Ok(Adapter { raw, header: Arc::new(header), files: Arc::new(Files::new(vec![file])) })
    }
}

impl Adapter {
    /// The header of the file: its metadata, such as `general.name` and `adapter.lora.alpha`, and the list of its tensors. Arrays
    /// of more than 1,024 elements are left out.
    #[must_use]
    pub fn header(&self) -> &Header {
        &self.header
    }

    /// What tells its file from others.
    pub(crate) fn fingerprint(&self) -> Result<Fingerprint> {
        self.files.fingerprint(&self.header)
    }

    pub(crate) fn raw(&self) -> &Arc<raw::Adapter> {
        &self.raw
    }
}

/// The same adapter: one loaded twice is two.
impl PartialEq for Adapter {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.raw, &other.raw)
    }
}

impl fmt::Debug for Adapter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Adapter").field("file", &self.header.parts()[0].path()).finish_non_exhaustive()
    }
}
