//! The library.

mod options;

pub use options::LoadOptions;

use crate::{
    error::{BACKEND, error},
    raw,
};
use infer_core::{Error, ErrorKind, Result};
use infer_sys::onnxruntime;
use std::{fmt, path::PathBuf};

/// ONNX Runtime, ready for use. As cheap to clone as a reference; the library itself is never unloaded.
///
/// A process has one. The first that is loaded starts it and takes over its log: lines go to `tracing` with the target `onnxruntime`, and
/// nothing to stderr. It reports nothing to its authors.
#[derive(Clone)]
pub struct Onnx {
    started: &'static raw::Started,
}

/// A shared library that is there.
#[derive(Debug)]
#[non_exhaustive]
pub struct Installed {
    /// Where it was found, in words: "the cache", ….
    pub place: String,
    /// The file.
    pub path: PathBuf,
    /// What the library calls its version, or what is wrong with it. It is opened for that, and not started.
    pub version: Result<String>,
}

impl Onnx {
    /// The shared library, found as the options say, or the one that this process has loaded already.
    ///
    /// May be called from many threads at once. What failed can be tried again.
    ///
    /// # Errors
    /// [`Library`](ErrorKind::Library) when there is none, or none that serves: with every place that was looked in, what was found there
    /// and what was wanted; or when this process has loaded another one than these options name.
    pub fn load(options: &LoadOptions) -> Result<Self> {
        // Whoever names none takes what there is, without a search.
        if let Some(started) = raw::started().filter(|_| !options.names_one()) {
            return Ok(Self { started });
        }
        let library = onnxruntime::Api::load(options.as_sys()).map_err(unusable)?;
        Ok(Self { started: raw::start(library)? })
    }

    /// Every shared library there is, of those that [`load`](Self::load) could find, whatever its variant: each is opened, or says what is wrong with
    /// it.
    #[must_use]
    pub fn installed(options: &LoadOptions) -> Vec<Installed> {
        let all = onnxruntime::Api::installed(options.as_sys()).into_iter();
        all.map(|one| Installed {
            place: one.place().to_owned(),
            path: one.path().to_owned(),
            version: match one.door() {
                Ok(library) => Ok(library.version().to_owned()),
                Err(refusal) => {
                    let remedy = one.remedy().map_or(String::new(), |remedy| format!("\n{remedy}"));
                    Err(error(ErrorKind::Library, format!("{refusal}{remedy}")))
                }
            },
        })
        .collect()
    }

    /// What the library calls its version: "1.32.0".
    #[must_use]
    pub fn version(&self) -> &'static str {
        self.started.version()
    }

    /// The execution providers that the library has, by its names for them, the most preferred first. Whether one works on this machine is seen
    /// when a graph is opened with it.
    ///
    /// # Errors
    /// What ONNX Runtime says.
    pub fn providers(&self) -> Result<Vec<String>> {
        raw::available(self.environment())
    }

    /// The environment that sessions are made in.
    pub(crate) fn environment(&self) -> &'static ort::environment::Environment {
        self.started.environment()
    }
}

fn unusable(error: infer_sys::LoadError) -> Error {
    Error::new(ErrorKind::Library, error.to_string()).with_backend(BACKEND).with_source(error)
}

impl fmt::Debug for Onnx {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Onnx").field("backend", &BACKEND).field("version", &self.version()).finish()
    }
}
