//! Build tools: the machine's own, else the pinned ones in the cache.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::cache::Cache;
use crate::env::{self, Env};
use crate::error::Result;
use crate::pins::Pin;

/// What runs cmake's output.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Generator {
    /// Ninja: preferred, because it says how far it is and keeps every core busy.
    Ninja(PathBuf),
    /// Make.
    Make(PathBuf),
}

impl Generator {
    /// Its name, as cmake wants it.
    pub(crate) fn name(&self) -> &'static str {
        match self {
            Self::Ninja(_) => "Ninja",
            Self::Make(_) => "Unix Makefiles",
        }
    }

    /// Its program.
    pub(crate) fn program(&self) -> &Path {
        let (Self::Ninja(path) | Self::Make(path)) = self;
        path
    }
}

/// The tools a build of llama.cpp needs beside a compiler.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Tools {
    /// cmake.
    pub cmake: Option<PathBuf>,
    /// Ninja or make.
    pub generator: Option<Generator>,
}

impl Tools {
    /// Looks for them: what the environment names, then the path, then the cache.
    ///
    /// # Errors
    /// The table of pins is malformed.
    pub fn find(env: &Env, cache: &Cache) -> Result<Self> {
        let cmake = match env.path(env::CMAKE) {
            Some(named) => Some(named).filter(|program| starts(program)),
            None => env.on_path("cmake").filter(|program| starts(program)).or(cached(cache, "cmake", "bin/cmake")?),
        };
        let ninja = env.on_path("ninja").filter(|program| starts(program)).or(cached(cache, "ninja", "ninja")?);
        let make = || env.on_path("make").filter(|program| starts(program)).map(Generator::Make);
        Ok(Self { cmake, generator: ninja.map(Generator::Ninja).or_else(make) })
    }
}

/// The folder with libclang: what the environment names, else the cache's.
///
/// # Errors
/// The table of pins is malformed.
pub fn libclang(env: &Env, cache: &Cache) -> Result<Option<PathBuf>> {
    match env.path(env::LIBCLANG_PATH) {
        Some(folder) => Ok(Some(folder)),
        None => cached(cache, "libclang", ""),
    }
}

/// The Python packages of [`jinja2`], by their pins.
pub const PYTHON_PACKAGES: &[&str] = &["jinja2", "markupsafe"];

/// Python with Jinja2, the engine that chat templates are written for, and with nothing else that the machine may have
/// installed. `None` where there is no Python, or `cargo xtask peers` was not run.
///
/// # Errors
/// The table of pins is malformed.
pub fn jinja2(env: &Env, cache: &Cache) -> Result<Option<Command>> {
    let folder = |name: &&str| Ok(package(cache, &Pin::named(name)?));
    let folders = PYTHON_PACKAGES.iter().map(folder).collect::<Result<Vec<_>>>()?;
    let Some(python) = python(env).filter(|_| folders.iter().all(|folder| folder.is_dir())) else { return Ok(None) };
    let parents = folders.iter().filter_map(|folder| folder.parent());
    let mut command = Command::new(python);
    // -S: the machine's own packages stay out.
    command.arg("-S").env("PYTHONPATH", std::env::join_paths(parents).unwrap_or_default());
    Ok(Some(command))
}

/// Where a Python package lies: a folder of its name, in one that Python is to search.
pub fn package(cache: &Cache, pin: &Pin) -> PathBuf {
    cache.tool(&pin.name, &pin.version).join(&pin.name)
}

/// The Python that the environment names, else the one on the path.
pub(crate) fn python(env: &Env) -> Option<PathBuf> {
    env.path(env::PYTHON).or_else(|| env.on_path("python3")).or_else(|| env.on_path("python"))
}

fn cached(cache: &Cache, name: &str, program: &str) -> Result<Option<PathBuf>> {
    let path = cache.tool(name, &Pin::named(name)?.version).join(program);
    Ok(Some(path).filter(|path| path.exists()))
}

/// A program on the path may be a stand-in that only says what it would run: it counts when it starts.
fn starts(program: &Path) -> bool {
    Command::new(program)
        .arg("--version")
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status()
        .is_ok_and(|status| status.success())
}
