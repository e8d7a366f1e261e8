//! The only user of `libloading`: where a runtime's library is looked for, how it is opened, and what is checked before.

mod dlopen;
mod installed;
mod options;
mod places;
mod probe;
mod verified;

use std::ffi::OsStr;
use std::fs::Metadata;
use std::marker::PhantomData;
use std::path::{Path, PathBuf};

use libloading::Library;

use crate::{LoadError, Looked, Refusal};
pub(crate) use dlopen::in_full;
pub use installed::Installed;
pub(crate) use installed::installed;
pub use options::{CACHE_VARIABLE, LoadOptions};
pub(crate) use probe::Facts;

/// The variant looked for in the cache when none is asked for.
const DEFAULT_VARIANT: &str = "cpu";

/// What a runtime adds to the search: what its library is called, and what makes one of it. The type is that of its door.
pub(crate) trait Runtime: Copy {
    /// The environment variable that names a library.
    const VARIABLE: &'static str;
    /// The same as a place, in words.
    const VARIABLE_PLACE: &'static str;
    /// What the library's file may be called beside a program; the first is what it is called in the cache.
    const FILE_NAMES: &'static [&'static str];
    /// The program that tries a library.
    const PROBE: &'static str;
    /// What it is told beside the library and the time it may take.
    const PROBE_ARGUMENTS: &'static [&'static str] = &[];
    /// What to do where none serves; a line each.
    const HINT: &'static str;

    /// What a library has to be, in words.
    fn wanted(variant: Option<&str>) -> String;
    /// Where the libraries of the pinned version are in a cache, each variant in a folder of its own.
    fn folder(cache: &Path) -> PathBuf;
    /// The command that puts that variant there.
    fn setup(variant: &str) -> String;
    /// What speaks against a library in the answer of the [`PROBE`](Self::PROBE), which came to its end well.
    fn judge(facts: &Facts<'_>) -> Result<(), Refusal>;
    /// The door of an open library, which stays open if there is one.
    fn of(library: &Library, variant: Option<&str>) -> Result<Self, Refusal>;
}

/// The door of the first library that serves.
pub(crate) fn load<R: Runtime>(options: &LoadOptions) -> Result<R, LoadError> {
    let (search, no_cache) = Search::<R>::new(options);
    let failed = |looked| LoadError::new(R::wanted(search.variant()), looked, R::HINT);

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
        Ok(None) => looked.push(Looked::new(R::VARIABLE_PLACE, None, Refusal::NotSet)),
        Err(path) => looked.push(Looked::new(R::VARIABLE_PLACE, Some(path), Refusal::Privileged)),
        Ok(Some(path)) => {
            return search
                .open_plain(&path)
                .map_err(|refusal| failed(vec![Looked::new(R::VARIABLE_PLACE, Some(path), refusal)]));
        }
    }

    looked.extend(no_cache.map(|refusal| Looked::new(CACHE_PLACE, options.cache.clone(), refusal)));
    if let Some(folder) = &search.cache {
        let path = folder.join(search.variant().unwrap_or(DEFAULT_VARIANT)).join(R::FILE_NAMES[0]);
        match search.open_cached(&path, search.variant()) {
            Ok(door) => return Ok(door),
            Err(refusal) => {
                looked.push(Looked::new(CACHE_PLACE, Some(path), in_view_of(refusal, folder, R::FILE_NAMES[0])))
            }
        }
    }

    if search.privileged {
        looked.push(Looked::new("beside this program", None, Refusal::Privileged));
    } else {
        for (place, path) in places::beside_program(R::FILE_NAMES) {
            match search.open_trusted(&path) {
                Ok(door) => return Ok(door),
                Err(refusal) => looked.push(Looked::new(place, Some(path), refusal)),
            }
        }
    }
    Err(failed(looked))
}

const CACHE_PLACE: &str = "the cache";

/// What holds for every place of one search.
struct Search<'o, R> {
    options: &'o LoadOptions,
    privileged: bool,
    /// The runtime's folder of the pinned version in the cache.
    cache: Option<PathBuf>,
    runtime: PhantomData<R>,
}

impl<'o, R: Runtime> Search<'o, R> {
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
            Ok(root) => (Some(R::folder(&root)), None),
            Err(refusal) => (None, Some(refusal)),
        };
        (Self { options, privileged, cache, runtime: PhantomData }, no_cache)
    }

    fn variant(&self) -> Option<&'o str> {
        self.options.variant.as_deref()
    }

    /// The path in the environment, where there is one; as an error where it is not to be followed.
    fn variable(&self) -> Result<Option<PathBuf>, PathBuf> {
        let path = std::env::var_os(R::VARIABLE).filter(|value| !value.is_empty()).map(PathBuf::from);
        match path {
            Some(path) if self.privileged => Err(path),
            path => Ok(path),
        }
    }

    /// Opens a file that nobody but this user and root can have put there.
    fn open_trusted(&self, path: &Path) -> Result<R, Refusal> {
        places::trusted(path)?;
        self.open_plain(path)
    }

    /// Opens a file by its absolute path.
    fn open_plain(&self, path: &Path) -> Result<R, Refusal> {
        // A path without a slash goes through the loader's search path, a relative one through the working directory.
        if !path.is_absolute() {
            return Err(Refusal::NotAbsolute);
        }
        // The loader's own words for this are less clear, and a folder or a pipe must not reach it.
        let metadata = std::fs::metadata(path).map_err(Refusal::Unreadable)?;
        if !metadata.is_file() {
            return Err(Refusal::NotALibrary("it is not a regular file".to_owned()));
        }
        self.open(path, None, &[], &metadata, self.variant())
    }

    /// Opens a file that has its hash beside it.
    fn open_cached(&self, path: &Path, variant: Option<&str>) -> Result<R, Refusal> {
        let checked = verified::check(path)?;
        // Between hashing and loading the path may come to name another file, so that it is the open file that is loaded.
        self.open(path, Some(&checked.file), &checked.needs, &checked.metadata, variant)
    }

    /// Tries the library in a child process, and opens it in this one.
    fn open(
        &self,
        path: &Path,
        file: Option<&std::fs::File>,
        needs: &[verified::Needed],
        metadata: &Metadata,
        variant: Option<&str>,
    ) -> Result<R, Refusal> {
        let identity = probe::Identity::of(metadata);
        let cache = self.cache.as_ref().map(|folder| folder.join(DEFAULT_VARIANT));
        probe::library::<R>(&self.options.probe, path, file, &identity, cache.as_deref())?;
        for needed in needs {
            keep(&verified::name_of(&needed.file, &needed.path))
                .map_err(|error| Refusal::Needed(needed.path.clone(), Refusal::NotALibrary(in_full(&error)).into()))?;
        }
        let door = match file {
            Some(file) => open_library(&verified::name_of(file, path), variant),
            None => open_library(path.as_os_str(), variant),
        }?;
        identity.remember();
        Ok(door)
    }
}

/// Opens a library that another one needs, and keeps it for ever: the loader finds it by the name it calls itself, and looks no further.
fn keep(name: &OsStr) -> Result<(), libloading::Error> {
    dlopen::dlopen(name).map(std::mem::forget)
}

/// Opens what the loader knows by `name`, and keeps it for ever if it is the right door.
fn open_library<R: Runtime>(name: &OsStr, variant: Option<&str>) -> Result<R, Refusal> {
    let library = dlopen::dlopen(name).map_err(|error| Refusal::NotALibrary(in_full(&error)))?;
    let door = R::of(&library, variant)?;
    // Closing it would pull the code from under its threads, thread-local destructors and exit handlers: it stays, table and all.
    std::mem::forget(library);
    Ok(door)
}

/// Where a library is not there, and those of other variants are, they are named.
fn in_view_of(refusal: Refusal, folder: &Path, file_name: &str) -> Refusal {
    match refusal {
        Refusal::Unreadable(error) if error.kind() == std::io::ErrorKind::NotFound => {
            match places::variants(folder, file_name) {
                variants if variants.is_empty() => Refusal::Unreadable(error),
                variants => Refusal::OtherVariants(variants),
            }
        }
        other => other,
    }
}
