//! The only user of `libloading`: where a door's library is looked for, how it is opened, and what is checked before.

mod options;
mod places;
mod probe;
mod verified;

use std::error::Error;
use std::ffi::OsStr;
use std::fs::Metadata;
use std::path::{Path, PathBuf};

use libloading::Library;

use crate::llama::{Api, COMMIT, bindings::infer_llama_table, handshake};
use crate::{LoadError, Looked, Refusal};
pub use options::{CACHE_VARIABLE, LIBRARY_VARIABLE, LoadOptions};

/// What to do about it; a line each.
const HINT: &str = "three ways to provide one:
  - `infer setup llama` builds it into the cache, also in place of one that is old or damaged; `infer setup llama --variant vulkan` (or \
    cuda, metal) puts one for GPUs beside it, which programs ask for by that name (`--variant vulkan`, LoadOptions::with_variant)
  - name one yourself by its absolute path: in INFER_LLAMA_LIBRARY, or in code (`--library`, LoadOptions::with_path)
  - link it into the program: the feature `llama` of `infer`
  the working directory and the system's own search are never looked in";

/// The variant looked for in the cache when none is asked for.
const DEFAULT_VARIANT: &str = "cpu";

/// A library that is there, and what came of opening it.
#[derive(Debug)]
pub struct Installed {
    place: &'static str,
    path: PathBuf,
    door: Result<Api, Refusal>,
}

impl Installed {
    /// The kind of place, in words: "the cache", …
    #[must_use]
    pub fn place(&self) -> &'static str {
        self.place
    }

    /// The file.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The door, or why it cannot be used.
    ///
    /// # Errors
    ///
    /// What is wrong with the library.
    pub fn door(&self) -> Result<Api, &Refusal> {
        self.door.as_ref().copied()
    }

    /// What puts a library that can be used in place of this one, where it cannot be and is one that `infer setup` made.
    #[must_use]
    pub fn remedy(&self) -> Option<String> {
        if self.door.is_ok() || self.place != CACHE_PLACE {
            return None;
        }
        let variant = self.path.parent()?.file_name()?.to_str()?;
        Some(format!("`infer setup llama --variant {variant}` puts the right one in its place"))
    }
}

pub(crate) fn load(options: &LoadOptions) -> Result<Api, LoadError> {
    let (search, no_cache) = Search::new(options);
    let failed = |looked| LoadError::new(handshake::wanted(search.variant()), looked, HINT);

    if let Some(variant) = search.variant()
        && !places::is_variant(variant)
    {
        let refusal = Refusal::BadName(variant.to_owned());
        return Err(failed(vec![Looked::new("the variant asked for", None, refusal)]));
    }

    if let Some(path) = &options.path {
        let place = "the path given";
        return search
            .open_plain(path)
            .map_err(|refusal| failed(vec![Looked::new(place, Some(path.clone()), refusal)]));
    }

    let mut looked = Vec::new();
    match search.variable() {
        Ok(None) => looked.push(Looked::new(VARIABLE_PLACE, None, Refusal::NotSet)),
        Err(path) => looked.push(Looked::new(VARIABLE_PLACE, Some(path), Refusal::Privileged)),
        Ok(Some(path)) => {
            return search
                .open_plain(&path)
                .map_err(|refusal| failed(vec![Looked::new(VARIABLE_PLACE, Some(path), refusal)]));
        }
    }

    looked.extend(no_cache.map(|refusal| Looked::new(CACHE_PLACE, options.cache.clone(), refusal)));
    if let Some(commit) = &search.cache {
        let path = commit.join(search.variant().unwrap_or(DEFAULT_VARIANT)).join(places::FILE_NAME);
        match search.open_cached(&path, search.variant()) {
            Ok(api) => return Ok(api),
            Err(refusal) => looked.push(Looked::new(CACHE_PLACE, Some(path), in_view_of(refusal, commit))),
        }
    }

    if search.privileged {
        looked.push(Looked::new("beside this program", None, Refusal::Privileged));
    } else {
        for (place, path) in places::beside_program() {
            match search.open_trusted(&path) {
                Ok(api) => return Ok(api),
                Err(refusal) => looked.push(Looked::new(place, Some(path), refusal)),
            }
        }
    }
    Err(failed(looked))
}

/// Every library that is there, of those that [`load`] could come upon with one choice of options or another. A path in the options is the
/// only one then, and a variant leaves out the folders of the others.
pub(crate) fn installed(options: &LoadOptions) -> Vec<Installed> {
    let (search, _) = Search::new(options);
    let plain = |place, path: &Path| Installed { place, path: path.to_owned(), door: search.open_plain(path) };
    if let Some(path) = &options.path {
        return vec![plain("the path given", path)];
    }
    let mut all = Vec::new();
    if let Ok(Some(path)) = search.variable() {
        all.push(plain(VARIABLE_PLACE, &path));
    }
    if let Some(commit) = &search.cache {
        for variant in places::variants(commit) {
            if search.variant().is_none_or(|wanted| wanted == variant) {
                let path = commit.join(&variant).join(places::FILE_NAME);
                let door = search.open_cached(&path, Some(&variant));
                all.push(Installed { place: CACHE_PLACE, path, door });
            }
        }
    }
    if !search.privileged {
        for (place, path) in places::beside_program().into_iter().filter(|(_, path)| path.exists()) {
            let door = search.open_trusted(&path);
            all.push(Installed { place, path, door });
        }
    }
    all
}

const VARIABLE_PLACE: &str = "the environment variable INFER_LLAMA_LIBRARY";
const CACHE_PLACE: &str = "the cache";

/// What holds for every place of one search.
struct Search<'o> {
    options: &'o LoadOptions,
    privileged: bool,
    /// The folder of the pinned commit in the cache.
    cache: Option<PathBuf>,
}

impl<'o> Search<'o> {
    /// … and why there is no cache, where there is none.
    fn new(options: &'o LoadOptions) -> (Self, Option<Refusal>) {
        let privileged = places::privileged();
        let root = match &options.cache {
            // A cache given in code is the program's own word; everything else about it comes from the environment.
            Some(root) if root.is_absolute() => Ok(root.clone()),
            Some(_) => Err(Refusal::NotAbsolute),
            None if privileged => Err(Refusal::Privileged),
            None => places::cache_root(),
        };
        let (cache, no_cache) = match root {
            Ok(root) => (Some(root.join("llama").join(COMMIT)), None),
            Err(refusal) => (None, Some(refusal)),
        };
        (Self { options, privileged, cache }, no_cache)
    }

    fn variant(&self) -> Option<&'o str> {
        self.options.variant.as_deref()
    }

    /// The path in the environment, where there is one; as an error where it is not to be followed.
    fn variable(&self) -> Result<Option<PathBuf>, PathBuf> {
        let path = std::env::var_os(LIBRARY_VARIABLE).filter(|value| !value.is_empty()).map(PathBuf::from);
        match path {
            Some(path) if self.privileged => Err(path),
            path => Ok(path),
        }
    }

    /// Opens a file that nobody but this user and root can have put there.
    fn open_trusted(&self, path: &Path) -> Result<Api, Refusal> {
        places::trusted(path)?;
        self.open_plain(path)
    }

    /// Opens a file by its absolute path.
    fn open_plain(&self, path: &Path) -> Result<Api, Refusal> {
        // A path without a slash goes through the loader's search path, a relative one through the working directory.
        if !path.is_absolute() {
            return Err(Refusal::NotAbsolute);
        }
        // The loader's own words for this are less clear, and a folder or a pipe must not reach it.
        let metadata = std::fs::metadata(path).map_err(Refusal::Unreadable)?;
        if !metadata.is_file() {
            return Err(Refusal::NotALibrary("it is not a regular file".to_owned()));
        }
        self.open(path, None, &metadata, self.variant())
    }

    /// Opens a file that has its hash beside it.
    fn open_cached(&self, path: &Path, variant: Option<&str>) -> Result<Api, Refusal> {
        let checked = verified::check(path)?;
        // Between hashing and loading the path may come to name another file, so that it is the open file that is loaded.
        self.open(path, Some(&checked.file), &checked.metadata, variant)
    }

    /// Tries the library in a child process, and opens it in this one.
    fn open(
        &self,
        path: &Path,
        file: Option<&std::fs::File>,
        metadata: &Metadata,
        variant: Option<&str>,
    ) -> Result<Api, Refusal> {
        let identity = probe::Identity::of(metadata);
        let cache = self.cache.as_ref().map(|commit| commit.join(DEFAULT_VARIANT));
        probe::library(&self.options.probe, path, file, &identity, cache.as_deref())?;
        let api = match file {
            Some(file) => open_library(&verified::name_of(file, path), variant),
            None => open_library(path.as_os_str(), variant),
        }?;
        identity.remember();
        Ok(api)
    }
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

/// Where a library is not there, and those of other variants are, they are named.
fn in_view_of(refusal: Refusal, commit: &Path) -> Refusal {
    match refusal {
        Refusal::Unreadable(error) if error.kind() == std::io::ErrorKind::NotFound => match places::variants(commit) {
            variants if variants.is_empty() => Refusal::Unreadable(error),
            variants => Refusal::OtherVariants(variants),
        },
        other => other,
    }
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
