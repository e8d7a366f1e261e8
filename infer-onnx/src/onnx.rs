//! The library.

use crate::environment;
use infer_core::Result;
use ort::environment::Environment;
use std::{fmt, path::Path};

/// ONNX Runtime, loaded and ready for use. As cheap to clone as a reference; the library itself is never unloaded.
#[derive(Clone)]
pub struct Onnx {
    environment: Environment,
}

impl Onnx {
    /// The library in this file. A process has one: the first that is loaded.
    ///
    /// # Errors
    /// [`Library`](infer_core::ErrorKind::Library) when it is not there or too old, or when another one is loaded already.
    pub fn load_from(path: impl AsRef<Path>) -> Result<Self> {
        Ok(Self { environment: environment::load(path.as_ref())? })
    }

    pub(crate) fn environment(&self) -> &Environment {
        &self.environment
    }
}

impl fmt::Debug for Onnx {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Onnx")
    }
}
