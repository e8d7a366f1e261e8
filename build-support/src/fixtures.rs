//! Models and vocabularies for tests, examples and the demo, by name.
//!
//! They are found, never fetched: `cargo xtask setup` brings them.

use std::fs;
use std::path::{Path, PathBuf};

use crate::cache::Cache;
use crate::env::Env;
use crate::error::{At, Error, Result};
use crate::pins::Pin;

/// Every fixture that is a model file, with its pin's name and its file.
pub const MODELS: &[&str] = &["smollm2"];

/// The file of the model called `name` in the cache: `smollm2` is SmolLM2-135M-Instruct, Q4_1.
///
/// # Errors
/// There is no such model, or it is not in the cache yet.
pub fn model(name: &str) -> Result<PathBuf> {
    if !MODELS.contains(&name) {
        return Err(Error::new(format!("there is no model called \"{name}\"; there are: {}", MODELS.join(", "))));
    }
    let pin = Pin::named(name)?;
    let file = pin.parts.first().map_or("", String::as_str);
    present(folder(&Cache::from_env(&Env::from_process())?, &pin).join(file), name)
}

/// The folder with llama.cpp's tokenizer vectors, `ggml-vocab-*.gguf` with `.inp` and `.out`.
///
/// # Errors
/// They are not in the cache yet.
pub fn vocabularies() -> Result<PathBuf> {
    let pin = Pin::named("vocabularies")?;
    present(folder(&Cache::from_env(&Env::from_process())?, &pin), "vocabularies")
}

/// The folder of a fixture in the cache.
pub fn folder(cache: &Cache, pin: &Pin) -> PathBuf {
    let version = pin.commit.as_deref().map_or(pin.version.as_str(), |commit| &commit[..12]);
    cache.model(&format!("{}-{version}", pin.name))
}

fn present(path: PathBuf, name: &str) -> Result<PathBuf> {
    if path.exists() {
        return Ok(path);
    }
    Err(Error::new(format!("{name} is not in the cache: {} is not there", path.display()))
        .with_help(format!("cargo xtask setup --only {name}")))
}

pub(crate) fn write(path: &Path, text: &str) -> Result<()> {
    fs::write(path, text).at("write", path)
}
