//! The only user of `libloading`: where a door's library is looked for, how it is opened, and what is checked before.

mod places;
mod verified;

use std::error::Error;
use std::ffi::OsStr;
use std::path::{Path, PathBuf};

use libloading::Library;

use crate::llama::{Api, COMMIT, bindings::infer_llama_table, handshake};
use crate::{LoadError, Looked, Refusal};

/// Names the library to load, and no other is looked for. Ignored when the process runs with raised privileges.
pub const LIBRARY_VARIABLE: &str = "INFER_LLAMA_LIBRARY";

/// Names the cache folder. Ignored when the process runs with raised privileges.
pub const CACHE_VARIABLE: &str = "INFER_CACHE";

const HINT: &str = "the working directory and the system's own search are never looked in; `infer setup llama` puts a library into the cache, also in place of one that is damaged";

/// The variant looked for in the cache when none is asked for.
const DEFAULT_VARIANT: &str = "cpu";

/// Where to look for a library with the door to llama.cpp.
///
/// By default, in this order, the first that serves:
///
/// 1. the file that [`LIBRARY_VARIABLE`] names;
/// 2. the cache: `llama/<commit>/<variant>/` in the folder that [`CACHE_VARIABLE`] names, else in the user's cache folder. Its sha256 must be the
///    one written beside it, and on Linux and Windows what is loaded is the very file that was hashed;
/// 3. the folder of this program, then `../lib` beside that folder.
///
/// A file given by path or by variable is the only one tried: it is what was asked for, or an error. Files of the last two kinds must belong
/// to this user or to root, and nobody outside this user's own group may be able to write them. All paths must be absolute; the working
/// directory and the system's own search path are never used. When the process runs with raised privileges (set-user-id and the like), only a
/// path or a cache given in code is used, since whoever started it may have set everything else.
#[derive(Clone, Debug, Default)]
pub struct LoadOptions {
    path: Option<PathBuf>,
    variant: Option<String>,
    cache: Option<PathBuf>,
}

impl LoadOptions {
    /// The default search.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Loads this file and looks nowhere else. The path must be absolute; its content is not checked against any hash.
    #[must_use]
    pub fn with_path(mut self, path: impl Into<PathBuf>) -> Self {
        self.path = Some(path.into());
        self
    }

    /// Wants this variant ("cpu", "vulkan", …): picks the folder in the cache, and is compared with what the library says of itself.
    /// Without it, the cache is searched for "cpu" and any variant serves.
    #[must_use]
    pub fn with_variant(mut self, variant: impl Into<String>) -> Self {
        self.variant = Some(variant.into());
        self
    }

    /// Uses this folder as the cache. The path must be absolute.
    #[must_use]
    pub fn with_cache(mut self, cache: impl Into<PathBuf>) -> Self {
        self.cache = Some(cache.into());
        self
    }
}

pub(crate) fn load(options: &LoadOptions) -> Result<Api, LoadError> {
    let variant = options.variant.as_deref();
    let failed = |looked| LoadError::new(handshake::wanted(variant), looked, HINT);
    let privileged = places::privileged();

    if let Some(variant) = variant
        && !places::is_variant(variant)
    {
        let refusal = Refusal::BadName(variant.to_owned());
        return Err(failed(vec![Looked::new("the variant asked for", None, refusal)]));
    }

    if let Some(path) = &options.path {
        let place = "the path given";
        return open_plain(path, variant)
            .map_err(|refusal| failed(vec![Looked::new(place, Some(path.clone()), refusal)]));
    }

    let mut looked = Vec::new();
    let named = "the environment variable INFER_LLAMA_LIBRARY";
    match std::env::var_os(LIBRARY_VARIABLE).filter(|value| !value.is_empty()) {
        None => looked.push(Looked::new(named, None, Refusal::NotSet)),
        Some(path) if privileged => looked.push(Looked::new(named, Some(path.into()), Refusal::Privileged)),
        Some(path) => {
            let path = PathBuf::from(path);
            return open_plain(&path, variant).map_err(|refusal| failed(vec![Looked::new(named, Some(path), refusal)]));
        }
    }

    // A cache given in code is the program's own word; everything else about it comes from the environment.
    if privileged && options.cache.is_none() {
        looked.push(Looked::new("the cache", None, Refusal::Privileged));
    } else {
        match cached(options.cache.as_deref(), variant) {
            Ok((path, opened)) => match opened {
                Ok(api) => return Ok(api),
                Err(refusal) => looked.push(Looked::new("the cache", Some(path), refusal)),
            },
            Err(refusal) => looked.push(Looked::new("the cache", options.cache.clone(), refusal)),
        }
    }

    if privileged {
        looked.push(Looked::new("beside this program", None, Refusal::Privileged));
    } else {
        for (place, path) in places::beside_program() {
            let opened = places::trusted(&path).and_then(|()| open_plain(&path, variant));
            match opened {
                Ok(api) => return Ok(api),
                Err(refusal) => looked.push(Looked::new(place, Some(path), refusal)),
            }
        }
    }
    Err(failed(looked))
}

/// The path in the cache, and what came of opening it; or why there is no such path.
fn cached(root: Option<&Path>, variant: Option<&str>) -> Result<(PathBuf, Result<Api, Refusal>), Refusal> {
    let root = match root {
        Some(root) => root.to_owned(),
        None => places::cache_root()?,
    };
    let path = root.join("llama").join(COMMIT).join(variant.unwrap_or(DEFAULT_VARIANT)).join(places::FILE_NAME);
    let opened = if path.is_absolute() { verified::open(&path, variant) } else { Err(Refusal::NotAbsolute) };
    Ok((path, opened))
}

/// Opens a file by its absolute path.
fn open_plain(path: &Path, variant: Option<&str>) -> Result<Api, Refusal> {
    // A path without a slash goes through the loader's search path, a relative one through the working directory.
    if !path.is_absolute() {
        return Err(Refusal::NotAbsolute);
    }
    // The loader's own words for this are less clear, and a folder or a pipe must not reach it.
    let metadata = std::fs::metadata(path).map_err(Refusal::Unreadable)?;
    if !metadata.is_file() {
        return Err(Refusal::NotALibrary("it is not a regular file".to_owned()));
    }
    open_library(path.as_os_str(), variant)
}

/// Opens what the loader knows by `name`, and keeps it for ever if it is the right door.
fn open_library(name: &OsStr, variant: Option<&str>) -> Result<Api, Refusal> {
    let library = dlopen(name).map_err(|error| Refusal::NotALibrary(in_full(&error)))?;
    let api = {
        type Open = unsafe extern "C" fn(u32) -> *const infer_llama_table;
        // SAFETY: the one symbol of a door has this type in every version; a library that gives the name another meaning is not told apart,
        // here as with any dynamic linking.
        let open =
            unsafe { library.get::<Open>(b"infer_llama_api\0") }.map_err(|error| Refusal::NoSymbol(in_full(&error)))?;
        // SAFETY: the function takes any number and only returns a pointer to a static table, or NULL.
        handshake::check(|version| unsafe { open(version) }, variant)?
    };
    // Closing it would pull the code from under ggml's threads, thread-local destructors and exit handlers: it stays, table and all.
    std::mem::forget(library);
    Ok(api)
}

/// The message and its sources: the loader's own words are among the latter.
fn in_full(error: &dyn Error) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(error) = source {
        text.push_str(": ");
        text.push_str(&error.to_string());
        source = error.source();
    }
    text
}

#[cfg(unix)]
fn dlopen(name: &OsStr) -> Result<Library, libloading::Error> {
    use libloading::os::unix::{Library as UnixLibrary, RTLD_LOCAL, RTLD_NOW};

    // Local, so that nothing of it can be mistaken for a symbol of another library; now, so that a missing symbol is found here.
    // SAFETY: its initialisers run. That they may is what the caller established: a file that was asked for by name, or one whose hash or
    // owner vouches for it.
    let library = unsafe { UnixLibrary::open(Some(name), RTLD_NOW | RTLD_LOCAL) }?;
    Ok(library.into())
}

#[cfg(windows)]
fn dlopen(name: &OsStr) -> Result<Library, libloading::Error> {
    use libloading::os::windows::{
        LOAD_LIBRARY_SEARCH_DLL_LOAD_DIR, LOAD_LIBRARY_SEARCH_SYSTEM32, Library as WindowsLibrary,
    };

    // What it needs is looked for in its own folder and the system's, never in the working directory or PATH.
    // SAFETY: its initialisers run. That they may is what the caller established: a file that was asked for by name, or one whose hash or
    // owner vouches for it.
    let library = unsafe {
        WindowsLibrary::load_with_flags(name, LOAD_LIBRARY_SEARCH_DLL_LOAD_DIR | LOAD_LIBRARY_SEARCH_SYSTEM32)
    }?;
    Ok(library.into())
}
