//! The environment, of which a process has one.

use crate::{error::error, raw};
use infer_core::{ErrorKind, Result};
use ort::environment::Environment;
use std::{
    path::{Path, PathBuf},
    sync::{Mutex, PoisonError},
};

/// The environment and the library it is of, kept until the process ends.
static LOADED: Mutex<Option<(PathBuf, Environment)>> = Mutex::new(None);

/// The environment of the library in this file: made the first time; any other file is refused afterwards.
pub(crate) fn load(path: &Path) -> Result<Environment> {
    let mut loaded = LOADED.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some((first, environment)) = &*loaded {
        if first == path {
            return Ok(environment.clone());
        }
        let message = format!(
            "{} cannot be loaded: a process has one ONNX Runtime, and {} is loaded already",
            path.display(),
            first.display()
        );
        return Err(error(ErrorKind::Library, message));
    }
    let failed = |why: String| error(ErrorKind::Library, format!("{} cannot be used: {why}", path.display()));
    let builder = ort::init_from(path).map_err(|why| failed(why.to_string()))?;
    let environment =
        builder.with_name("infer").with_telemetry(false).build().map_err(|why| failed(why.to_string()))?;
    raw::Api::start(&environment)?;
    *loaded = Some((path.to_owned(), environment.clone()));
    Ok(environment)
}
