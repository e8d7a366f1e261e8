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
