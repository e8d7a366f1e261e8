//! Models and vocabularies for tests, examples and the demo, by name.
//!
//! They are found, never fetched: `cargo xtask setup` brings them, and makes those that are [made] of others. The [tiny] ones come from
//! nowhere, and are made where they are not there.

use std::fs;
use std::path::{Path, PathBuf};

use crate::cache::Cache;
use crate::env::Env;
use crate::error::{At, Error, Result};
use crate::made;
use crate::pins::Pin;
use crate::tiny;

/// Every fixture that is fetched and is, or becomes, a model file, by its pin's name.
pub const MODELS: &[&str] = &["smollm2", "minilm", "magika"];

/// The file that is made of what `minilm` brings.
pub const MINILM: &str = "all-MiniLM-L6-v2.F32.gguf";

/// The model called `name` in the cache, a file or a folder: `smollm2` is SmolLM2-135M-Instruct, Q4_1, and `minilm` all-MiniLM-L6-v2,
/// F32, each a GGUF file; `magika` is a folder with `model.onnx`, which tells file types apart, and its `config.min.json`. Those of
/// [`made::all`] are made of these. Those of [`tiny::ALL`] are made when they are not there.
///
/// # Errors
/// There is no such model, it is not in the cache yet, or a tiny one cannot be made.
pub fn model(name: &str) -> Result<PathBuf> {
    model_in(&Env::from_process(), name)
}

/// [`model`], in another environment than this process's.
pub(crate) fn model_in(env: &Env, name: &str) -> Result<PathBuf> {
    let cache = Cache::from_env(env);
    if let Some(tiny) = tiny::named(name) {
        return tiny.file(&cache?);
    }
    if let Some(made) = made::named(name) {
        return there(made.path(&cache?)?, name, "model");
    }
    if !MODELS.contains(&name) {
        return Err(Error::new(format!("there is no model called \"{name}\"; there are: {}", names().join(", "))));
    }
    let pin = Pin::named(name)?;
    let folder = folder(&cache?, &pin);
    let path = match (name, pin.parts.first()) {
        ("minilm", _) => folder.join(MINILM),
        ("smollm2", Some(file)) => folder.join(file),
        _ => folder,
    };
    present(path, name)
}

/// Every name that [`model`] takes.
#[must_use]
pub fn names() -> Vec<&'static str> {
    let made = made::all().map(|made| made.name);
    MODELS.iter().copied().chain(made).chain(tiny::ALL.iter().map(|tiny| tiny.name)).collect()
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
    there(path, name, "setup --only")
}

/// `command` is the one of `cargo xtask` that brings it.
fn there(path: PathBuf, name: &str, command: &str) -> Result<PathBuf> {
    if path.exists() {
        return Ok(path);
    }
    Err(Error::new(format!("{name} is not in the cache: {} is not there", path.display()))
        .with_help(format!("cargo xtask {command} {name}")))
}

pub(crate) fn write(path: &Path, text: &str) -> Result<()> {
    fs::write(path, text).at("write", path)
}
