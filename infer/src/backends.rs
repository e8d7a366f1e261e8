//! The only file that knows which backends are compiled in.

#[cfg(any(feature = "llama", feature = "llama-load"))]
mod llama;

use crate::{Inspection, ModelSource};
use infer_core::{Error, ErrorKind, Model, Result};
use std::{fmt, str::FromStr};

/// A native runtime behind the API. All of them are named here, compiled in or not.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Backend {
    /// llama.cpp, for GGUF files.
    Llama,
}

impl Backend {
    /// Every backend there is.
    pub const ALL: &'static [Self] = &[Self::Llama];

    /// The name by which it is chosen.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Llama => "llama",
        }
    }

    /// The features of this crate that bring it, any of which will do.
    #[must_use]
    pub const fn features(self) -> &'static [&'static str] {
        match self {
            Self::Llama => &["llama", "llama-load"],
        }
    }

    /// Whether this program has it.
    #[must_use]
    pub const fn is_compiled_in(self) -> bool {
        match self {
            Self::Llama => cfg!(any(feature = "llama", feature = "llama-load")),
        }
    }
}

/// Opens a model with a backend, if this program has it.
pub(crate) fn open(
    backend: Backend,
    source: &ModelSource,
    progress: &mut dyn FnMut(f32) -> bool,
) -> Result<Box<dyn Model>> {
    let _ = progress;
    Err(missing(backend, source))
}

/// Reads what a file says of itself with a backend, if this program has it.
pub(crate) fn inspect(backend: Backend, source: &ModelSource) -> Result<Inspection> {
    match backend {
        #[cfg(any(feature = "llama", feature = "llama-load"))]
        Backend::Llama => llama::inspect(source),
        #[allow(unreachable_patterns, reason = "which patterns are reachable is what the features say")]
        _ => Err(missing(backend, source)),
    }
}

fn missing(backend: Backend, source: &ModelSource) -> Error {
    let features = backend.features().join("` or `");
    Error::new(
        ErrorKind::Unsupported,
        format!(
            "{} is a file for the backend `{backend}`, which this program was built without; build it with the feature \
             `{features}` of `infer`",
            source.path.display()
        ),
    )
}

impl fmt::Display for Backend {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for Backend {
    type Err = Error;

    fn from_str(name: &str) -> Result<Self> {
        Self::ALL.iter().copied().find(|backend| backend.name() == name).ok_or_else(|| {
            let known: Vec<_> = Self::ALL.iter().map(|backend| backend.name()).collect();
            Error::invalid_input(format!("there is no backend `{name}`; the backends are: {}", known.join(", ")))
        })
    }
}
