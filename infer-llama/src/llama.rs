//! The library.

use crate::{error::BACKEND, raw};
use infer_core::Result;
#[cfg(any(feature = "link", feature = "load"))]
use infer_core::{Error, ErrorKind};
use std::fmt;

/// llama.cpp, ready for use. As cheap to copy as a reference; the library itself is never unloaded.
///
/// The first one starts the library's backends and takes over its log: lines go to `tracing` with the target `llama.cpp`, and
/// nothing to stderr.
#[derive(Clone, Copy)]
pub struct Llama {
    pub(crate) door: raw::Door,
}

/// A shared library that is there.
#[cfg(feature = "load")]
#[derive(Debug)]
#[non_exhaustive]
pub struct Installed {
    /// Where it was found, in words: "the cache", ….
    pub place: String,
    /// The file.
    pub path: std::path::PathBuf,
    /// The library, or what is wrong with it.
    pub library: Result<Llama>,
}

impl Llama {
    /// The library that is linked into this program.
    ///
    /// # Errors
    /// [`Library`](ErrorKind::Library) when it is not the one this crate was made for.
    #[cfg(feature = "link")]
    pub fn linked() -> Result<Self> {
        Self::from_api(infer_sys::llama::Api::linked().map_err(unusable)?)
    }

    /// A shared library, found as the options say.
    ///
    /// # Errors
    /// [`Library`](ErrorKind::Library) when there is none, or not the one this crate was made for: with every place that was
    /// looked in, what was found there and what was wanted.
    #[cfg(feature = "load")]
    pub fn load(options: &crate::LoadOptions) -> Result<Self> {
        Self::from_api(infer_sys::llama::Api::load(options.as_sys()).map_err(unusable)?)
    }

    /// Every shared library there is, of those that [`load`](Self::load) could find, whatever its variant: each is opened, or says
    /// what is wrong with it.
    #[cfg(feature = "load")]
    #[must_use]
    pub fn installed(options: &crate::LoadOptions) -> Vec<Installed> {
        let all = infer_sys::llama::Api::installed(options.as_sys()).into_iter();
        all.map(|one| Installed {
            place: one.place().to_owned(),
            path: one.path().to_owned(),
            library: match one.door() {
                Ok(api) => Self::from_api(api),
                Err(refusal) => {
                    let remedy = one.remedy().map_or(String::new(), |remedy| format!("\n{remedy}"));
                    Err(Error::new(ErrorKind::Library, format!("{refusal}{remedy}")).with_backend(BACKEND))
                }
            },
        })
        .collect()
    }

    /// The library behind a door of one's own: for tests over a faked one.
    ///
    /// # Errors
    /// [`Runtime`](infer_core::ErrorKind::Runtime) when its backends do not start.
    #[doc(hidden)]
    pub fn from_api(api: infer_sys::llama::Api) -> Result<Self> {
        Ok(Self { door: raw::Door::start(api)? })
    }

    /// The commit of llama.cpp it was built from, in hex.
    #[must_use]
    pub fn commit(&self) -> &'static str {
        self.door.commit()
    }

    /// The version llama.cpp gives itself. It does not name a commit.
    #[must_use]
    pub fn version(&self) -> &'static str {
        self.door.llama_version()
    }

    /// How it was built: `cpu`, `vulkan`, ….
    #[must_use]
    pub fn variant(&self) -> &'static str {
        self.door.variant()
    }

    /// What the library says of the processor's features and of itself, in one line.
    ///
    /// # Errors
    /// [`Runtime`](infer_core::ErrorKind::Runtime) when it cannot say.
    pub fn system_info(&self) -> Result<String> {
        self.door.system_info()
    }
}

#[cfg(any(feature = "link", feature = "load"))]
fn unusable(error: infer_sys::LoadError) -> Error {
    Error::new(ErrorKind::Library, error.to_string()).with_backend(BACKEND).with_source(error)
}

impl fmt::Debug for Llama {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Llama")
            .field("backend", &BACKEND)
            .field("version", &self.version())
            .field("commit", &self.commit())
            .field("variant", &self.variant())
            .finish()
    }
}
