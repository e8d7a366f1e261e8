//! The system's loader.

use std::error::Error;
use std::ffi::OsStr;

use libloading::Library;

/// The message and its sources: the loader's own words are among the latter.
pub(crate) fn in_full(error: &dyn Error) -> String {
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
pub(super) fn dlopen(name: &OsStr) -> Result<Library, libloading::Error> {
    use libloading::os::unix::{Library as UnixLibrary, RTLD_LOCAL, RTLD_NOW};

    // Local, so that nothing of it can be mistaken for a symbol of another library; now, so that a missing symbol is found here.
    // SAFETY: its initialisers run. That they may is what the caller established: a file that was asked for by name, or one whose hash or
    // owner vouches for it.
    let library = unsafe { UnixLibrary::open(Some(name), RTLD_NOW | RTLD_LOCAL) }?;
    Ok(library.into())
}

#[cfg(windows)]
pub(super) fn dlopen(name: &OsStr) -> Result<Library, libloading::Error> {
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
