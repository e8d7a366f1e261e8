//! The native cache: one folder outside `target/`, shared by every checkout of this user.
//!
//! ```text
//! downloads/  what pip brought, by its own name      tools/    cmake, ninja, libclang
//! sources/    unpacked and patched trees             models/   models and vocabularies for tests and the demo
//! build/      finished builds, by key                llama/    the library that `load` finds, by commit and variant
//! python/     packages of the tests, by interpreter  onnxruntime/  the same, by version and variant
//! locks/      one file a thing being made            mlx/          the same, with the libraries it needs
//!                                                    logs/     of builds, kept when one fails
//! ```
//!
//! A folder in it is either whole or not there: [`Cache::install`] makes it under another name and renames it, under a
//! lock, so two builds at once make it once.

use std::fs::{self, File, TryLockError};
use std::io::Read;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use sha2::{Digest, Sha256};

use crate::env::{self, Env};
use crate::error::{At, Error, Result};
use crate::progress::Progress;

/// How long one process waits for another that makes the same thing: a slow machine builds llama.cpp in less.
const PATIENCE: Duration = Duration::from_secs(60 * 60);
const POLL: Duration = Duration::from_millis(100);

/// The native cache.
#[derive(Clone, Debug)]
pub struct Cache {
    root: PathBuf,
    patience: Duration,
}

/// What [`Cache::install`] did.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Installed {
    /// Where it lies.
    pub path: PathBuf,
    /// Was it made now, by this call?
    pub fresh: bool,
}

impl Cache {
    /// The cache the environment names: `$INFER_CACHE`, else `infer` in the user's cache folder.
    ///
    /// # Errors
    /// No variable says where the user's cache folder is, or `$INFER_CACHE` depends on the working directory: a build script
    /// has another one than the command that filled the cache, and loading takes no such path.
    pub fn from_env(env: &Env) -> Result<Self> {
        if let Some(relative) = env.path(env::CACHE).filter(|root| !root.is_absolute()) {
            return Err(Error::new(format!("{} is {}, which is not an absolute path", env::CACHE, relative.display()))
                .with_help("write the whole path"));
        }
        let in_home = |folder: &str| env.path("HOME").map(|home| home.join(folder).join("infer"));
        let root = env
            .path(env::CACHE)
            // The XDG specification has relative paths ignored.
            .or_else(|| {
                env.path("XDG_CACHE_HOME").filter(|folder| folder.is_absolute()).map(|folder| folder.join("infer"))
            })
            .or_else(|| if cfg!(target_os = "macos") { in_home("Library/Caches") } else { None })
            .or_else(|| {
                if cfg!(windows) { env.path("LOCALAPPDATA").map(|folder| folder.join("infer/cache")) } else { None }
            })
            .or_else(|| in_home(".cache"))
            .ok_or_else(|| {
                Error::new("there is no home folder to keep the native cache in")
                    .with_help(format!("set {} to a folder", env::CACHE))
            })?;
        Ok(Self::at(std::path::absolute(&root).at("resolve", &root)?))
    }

    /// The cache at `root`.
    pub fn at(root: impl Into<PathBuf>) -> Self {
        Self { root: root.into(), patience: PATIENCE }
    }

    /// The same cache, giving up on another process after `patience`.
    #[must_use]
    pub fn with_patience(mut self, patience: Duration) -> Self {
        self.patience = patience;
        self
    }

    /// Its folder.
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// What pip brought.
    pub fn downloads(&self) -> PathBuf {
        self.root.join("downloads")
    }

    /// A build tool.
    pub fn tool(&self, name: &str, version: &str) -> PathBuf {
        self.root.join("tools").join(format!("{name}-{version}"))
    }

    /// A source tree.
    pub fn source(&self, name: &str) -> PathBuf {
        self.root.join("sources").join(name)
    }

    /// A model or a set of vocabularies.
    pub fn model(&self, name: &str) -> PathBuf {
        self.root.join("models").join(name)
    }

    /// A finished build of `name`.
    pub fn build(&self, name: &str, key: &Key) -> PathBuf {
        self.root.join("build").join(format!("{name}-{}", key.short()))
    }

    /// Where loading looks for llama.cpp's library of `commit` and `variant`.
    pub fn loadable(&self, commit: &str, variant: &str) -> PathBuf {
        self.root.join("llama").join(commit).join(variant)
    }

    /// Where loading looks for ONNX Runtime's library of `version` and `variant`.
    pub fn onnxruntime(&self, version: &str, variant: &str) -> PathBuf {
        self.root.join("onnxruntime").join(version).join(variant)
    }

    /// Where loading looks for the door of MLX `version` and `variant`.
    pub fn mlx(&self, version: &str, variant: &str) -> PathBuf {
        self.root.join("mlx").join(version).join(variant)
    }

    /// Packages for one Python.
    pub fn python(&self, name: &str) -> PathBuf {
        self.root.join("python").join(name)
    }

    /// The log of building `name`.
    pub fn log(&self, name: &str) -> PathBuf {
        self.root.join("logs").join(format!("{name}.log"))
    }

    /// Makes `folder` (a path in this cache) by `make`, unless it is there: under a lock, in a folder of its own that is
    /// renamed when it is whole.
    ///
    /// # Errors
    /// What `make` returned, in which case nothing is left behind; a file operation failed; or another process held the lock too long.
    pub fn install(
        &self,
        folder: &Path,
        progress: &mut dyn Progress,
        make: impl FnOnce(&Path, &mut dyn Progress) -> Result<()>,
    ) -> Result<Installed> {
        let done = |fresh| Ok(Installed { path: folder.to_owned(), fresh });
        if folder.is_dir() {
            return done(false);
        }
        let name = self.name_of(folder)?;
        let _lock = self.lock(&name, progress)?;
        if folder.is_dir() {
            return done(false);
        }
        // In a folder of this process's own: where a process was killed, the build it had started may go on for a moment, and
        // must find nothing of ours to write into. What it leaves is removed, since whoever holds the lock is the only one.
        let making = self.root.join("unfinished").join(&name);
        remove(&making)?;
        let unfinished = making.join(std::process::id().to_string());
        fs::create_dir_all(&unfinished).at("create", &unfinished)?;
        if let Err(error) = make(&unfinished, progress) {
            remove(&making)?;
            return Err(error);
        }
        let parent = folder.parent().unwrap_or(&self.root);
        fs::create_dir_all(parent).at("create", parent)?;
        fs::rename(&unfinished, folder).at("put into the cache", folder)?;
        remove(&making)?;
        done(true)
    }

    /// Takes the lock called `name`, waiting for another process that holds it.
    ///
    /// # Errors
    /// It was held too long, or the file system has no locks.
    pub fn lock(&self, name: &str, progress: &mut dyn Progress) -> Result<Lock> {
        // The first write of every command: where the cache cannot be written, this is what says so.
        let elsewhere =
            |error: Error| error.with_help(format!("{} names another folder for the native cache", env::CACHE));
        let folder = self.root.join("locks");
        fs::create_dir_all(&folder).at("create", &folder).map_err(elsewhere)?;
        let path = folder.join(format!("{name}.lock"));
        let file = File::options().create(true).truncate(false).write(true).open(&path);
        let file = file.at("open", &path).map_err(elsewhere)?;
        let begin = Instant::now();
        let mut told = false;
        loop {
            match file.try_lock() {
                Ok(()) => return Ok(Lock { _file: file }),
                Err(TryLockError::Error(error)) => return Err(Error::io("lock", &path, error)),
                Err(TryLockError::WouldBlock) if begin.elapsed() >= self.patience => {
                    return Err(Error::new(format!(
                        "another process has been making {name} for {} s",
                        begin.elapsed().as_secs()
                    ))
                    .with_help(format!("wait for it and try again; it holds {}", path.display())));
                }
                Err(TryLockError::WouldBlock) => {
                    if !told {
                        progress.note(&format!("waiting for another process that is making {name}"));
                        told = true;
                    }
                    std::thread::sleep(POLL);
                }
            }
        }
    }

    fn name_of(&self, folder: &Path) -> Result<String> {
        let relative = folder
            .strip_prefix(&self.root)
            .map_err(|_| Error::new(format!("{} is not in the cache {}", folder.display(), self.root.display())))?;
        let pieces: Vec<_> = relative.iter().map(|piece| piece.to_string_lossy()).collect();
        Ok(pieces.join("-"))
    }
}

/// A lock that is held until this is dropped (or the process ends).
#[derive(Debug)]
pub struct Lock {
    _file: File,
}

/// Removes a folder with all that is in it, if it is there.
pub(crate) fn remove(folder: &Path) -> Result<()> {
    match fs::remove_dir_all(folder) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => Err(Error::io("remove", folder, error)),
        _ => Ok(()),
    }
}

/// What a build was made from, as a hash: two builds with the same key are the same.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Key {
    sha256: String,
    text: String,
}

impl Key {
    /// The first 16 digits: enough to name a folder.
    pub fn short(&self) -> &str {
        &self.sha256[..16]
    }

    /// Everything that went in, a line each: kept beside the build, to answer "why was this built again?".
    pub fn text(&self) -> &str {
        &self.text
    }
}

/// Collects what a build is made from.
#[derive(Clone, Debug, Default)]
pub struct KeyOf {
    text: String,
}

impl KeyOf {
    /// Adds one short value.
    #[must_use]
    pub fn value(mut self, name: &str, value: &str) -> Self {
        // One line a value, so that no two different lists of values give the same text.
        self.text.push_str(&format!("{name} = {value:?}\n"));
        self
    }

    /// Adds one text by its hash: a patch, a file of the shim.
    #[must_use]
    pub fn contents(self, name: &str, contents: &str) -> Self {
        let hash = sha256(contents.as_bytes());
        self.value(name, &hash)
    }

    /// The key.
    pub fn key(self) -> Key {
        Key { sha256: sha256(self.text.as_bytes()), text: self.text }
    }
}

/// The sha256 of `bytes`, in lower-case hexadecimal.
pub fn sha256(bytes: &[u8]) -> String {
    hexadecimal(&Sha256::digest(bytes))
}

/// The sha256 of a file.
///
/// # Errors
/// It cannot be read.
pub fn sha256_file(path: &Path) -> Result<String> {
    let mut file = File::open(path).at("read", path)?;
    let mut hash = Sha256::new();
    let mut buffer = vec![0; 1 << 20];
    loop {
        match file.read(&mut buffer).at("read", path)? {
            0 => return Ok(hexadecimal(&hash.finalize())),
            n => hash.update(&buffer[..n]),
        }
    }
}

fn hexadecimal(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
#[path = "cache_tests.rs"]
mod tests;
