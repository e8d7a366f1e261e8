//! Models and vocabularies for tests, examples and the demo, by name.
//!
//! They are found, never fetched: `cargo xtask setup` brings them. The [tiny] ones come from nowhere, and are made.

use std::fs;
use std::path::{Path, PathBuf};

use crate::cache::Cache;
use crate::env::Env;
use crate::error::{At, Error, Result};
use crate::pins::Pin;
use crate::tiny;

/// Every fixture that is fetched and is, or becomes, a model file, by its pin's name.
pub const MODELS: &[&str] = &["smollm2", "minilm"];

/// The file that is made of what `minilm` brings.
pub const MINILM: &str = "all-MiniLM-L6-v2.F32.gguf";

/// The file of the model called `name` in the cache: `smollm2` is SmolLM2-135M-Instruct, Q4_1, and `minilm` all-MiniLM-L6-v2,
/// F32; those in [`tiny::ALL`] are made when they are not there.
///
/// # Errors
/// There is no such model, it is not in the cache yet, or a tiny one cannot be made.
pub fn model(name: &str) -> Result<PathBuf> {
    let cache = Cache::from_env(&Env::from_process());
    if let Some(tiny) = tiny::named(name) {
        return tiny.file(&cache?);
    }
    if !MODELS.contains(&name) {
        return Err(Error::new(format!("there is no model called \"{name}\"; there are: {}", names().join(", "))));
    }
    let pin = Pin::named(name)?;
    let file = if name == "minilm" { MINILM } else { pin.parts.first().map_or("", String::as_str) };
    present(folder(&cache?, &pin).join(file), name)
}

/// Every name that [`model`] takes.
#[must_use]
pub fn names() -> Vec<&'static str> {
    MODELS.iter().copied().chain(tiny::ALL.iter().map(|tiny| tiny.name)).collect()
}

/// The folder with llama.cpp's tokenizer vectors, `ggml-vocab-*.gguf` with `.inp` and `.out`.
///
/// # Errors
/// They are not in the cache yet.
pub fn vocabularies() -> Result<PathBuf> {
    let pin = Pin::named("vocabularies")?;
    present(folder(&Cache::from_env(&Env::from_process())?, &pin), "vocabularies")
}

/// The folder with the chat templates that come with llama.cpp, `*.jinja`.
///
/// # Errors
/// They are not in the cache yet.
pub fn templates() -> Result<PathBuf> {
    let pin = Pin::named("templates")?;
    present(folder(&Cache::from_env(&Env::from_process())?, &pin).join("templates"), "templates")
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
