//! The only reader of the environment in build code.
//!
//! Every name is a constant with a line that says what it does; [`NAMES`] lists those a user may set, and each of them
//! that bears on linking becomes a `rerun-if-env-changed` line of the build script. Code takes an [`Env`], so a test can hand it one of its own.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};

use crate::error::{Error, Result};

/// Where the native cache lies. Default: `$XDG_CACHE_HOME/infer`, else `~/.cache/infer`, or the platform's equivalent.
pub const CACHE: &str = "INFER_CACHE";
/// A llama.cpp source tree to build instead of the pinned one. It is compiled as it is: no patch is applied;
/// ggml's terminate handler is left out all the same.
pub const LLAMA_SOURCE: &str = "INFER_LLAMA_SOURCE";
/// A folder with a ready `libinfer_llama.a` or, to link with at run time, `libinfer_llama.so` (in it or in its `lib`), made by `cargo xtask setup` or `infer setup` elsewhere.
pub const LLAMA_PREFIX: &str = "INFER_LLAMA_PREFIX";
/// `on`: the system's llama.cpp, found by pkg-config, with only our shim compiled against it. It must be the pinned commit.
pub const LLAMA_SYSTEM: &str = "INFER_LLAMA_SYSTEM";
/// Where pkg-config looks first; read by itself, and listed here because what is linked can depend on it.
pub const PKG_CONFIG_PATH: &str = "PKG_CONFIG_PATH";
/// The back-end variant: `cpu` (the default), `vulkan`, `cuda` or `metal`.
pub const LLAMA_VARIANT: &str = "INFER_LLAMA_VARIANT";
/// `on`: for the CPU this is built on (the default unless cross-compiling); `off`: for any CPU of the last ten years.
pub const NATIVE_CPU: &str = "INFER_NATIVE_CPU";
/// `on`: fetch nothing, not even in `cargo xtask setup`; what is missing is an error that says so.
pub const NO_FETCH: &str = "INFER_NO_FETCH";
/// The Python whose pip fetches. Default: `python3`, else `python`.
pub const PYTHON: &str = "INFER_PYTHON";
/// The cmake to run. Default: the one on the path, else the pinned one in the cache.
pub const CMAKE: &str = "CMAKE";
/// The C compiler.
pub const CC: &str = "CC";
/// The C++ compiler.
pub const CXX: &str = "CXX";
/// Flags for the C compiler, added to ours.
pub const CFLAGS: &str = "CFLAGS";
/// Flags for the C++ compiler, added to ours.
pub const CXXFLAGS: &str = "CXXFLAGS";
/// The C++ runtime to link, where `stdc++` (`c++` on Apple's systems) is not it.
pub const CXXSTDLIB: &str = "CXXSTDLIB";
/// The folder with libclang, for `cargo xtask bindings`. Default: the pinned one in the cache.
pub const LIBCLANG_PATH: &str = "LIBCLANG_PATH";
/// Set where documentation is built: nothing native is looked for then.
pub const DOCS_RS: &str = "DOCS_RS";

/// What a user may set, with the first line of its description: the table of `cargo xtask setup --help`.
pub const NAMES: &[(&str, &str)] = &[
    (CACHE, "where the native cache lies"),
    (LLAMA_SOURCE, "a llama.cpp source tree to build instead of the pinned one"),
    (LLAMA_PREFIX, "a folder with a ready libinfer_llama.a or .so"),
    (LLAMA_SYSTEM, "on: the system's llama.cpp by pkg-config"),
    (PKG_CONFIG_PATH, "where pkg-config looks first"),
    (LLAMA_VARIANT, "cpu, vulkan, cuda or metal"),
    (NATIVE_CPU, "on: for this machine's CPU; off: portable"),
    (NO_FETCH, "on: fetch nothing"),
    (PYTHON, "the Python whose pip fetches"),
    (CMAKE, "the cmake to run"),
    (CC, "the C compiler"),
    (CXX, "the C++ compiler"),
    (CFLAGS, "flags for the C compiler"),
    (CXXFLAGS, "flags for the C++ compiler"),
    (CXXSTDLIB, "the C++ runtime to link"),
    (LIBCLANG_PATH, "the folder with libclang"),
    (DOCS_RS, "set where documentation is built"),
];

/// Those of [`NAMES`] that only matter to fetching and to making the bindings.
pub(crate) const NOT_FOR_LINKING: &[&str] = &[NO_FETCH, PYTHON, LIBCLANG_PATH];

// Read too, but not the user's to set for us: cargo's own, and where programs and home folders are.
const AMBIENT: &[&str] = &[
    "TARGET",
    "HOST",
    "OUT_DIR",
    "NUM_JOBS",
    "CARGO_FEATURE_LLAMA_LINK",
    "PATH",
    HOME,
    CARGO,
    CARGO_HOME,
    "XDG_CACHE_HOME",
    "LOCALAPPDATA",
    STEP,
];

/// The user's own folder.
pub(crate) const HOME: &str = "HOME";
/// The cargo that runs this, where one does. Default: the one on the path.
pub(crate) const CARGO: &str = "CARGO";
/// Where cargo keeps what it fetched. Default: `.cargo` in the home folder.
pub(crate) const CARGO_HOME: &str = "CARGO_HOME";

/// Set by this crate for its own child process, which runs one step of a native build.
pub(crate) const STEP: &str = "INFER_BUILD_STEP";

/// A reading of the environment.
#[derive(Clone, Debug, Default)]
pub struct Env {
    values: BTreeMap<String, OsString>,
}

impl Env {
    /// Reads this process's environment, once.
    pub fn from_process() -> Self {
        let names = NAMES.iter().map(|(name, _)| *name).chain(AMBIENT.iter().copied());
        let values = names.filter_map(|name| Some((name.to_owned(), std::env::var_os(name)?))).collect();
        Self { values }
    }

    /// An environment made of `pairs`, for tests and for callers that settle a value themselves.
    pub fn of<K: AsRef<str>, V: AsRef<OsStr>>(pairs: impl IntoIterator<Item = (K, V)>) -> Self {
        let values = pairs.into_iter().map(|(k, v)| (k.as_ref().to_owned(), v.as_ref().to_owned())).collect();
        Self { values }
    }

    /// This environment with one value settled.
    #[must_use]
    pub fn with(mut self, name: &str, value: impl AsRef<OsStr>) -> Self {
        self.values.insert(name.to_owned(), value.as_ref().to_owned());
        self
    }

    /// The value of `name`; an empty one counts as unset.
    pub fn value(&self, name: &str) -> Option<&OsStr> {
        self.values.get(name).map(OsString::as_os_str).filter(|value| !value.is_empty())
    }

    /// The value of `name` as a path.
    pub fn path(&self, name: &str) -> Option<PathBuf> {
        self.value(name).map(PathBuf::from)
    }

    /// The value of `name` as text.
    ///
    /// # Errors
    /// It is not Unicode.
    pub fn text(&self, name: &str) -> Result<Option<&str>> {
        match self.value(name) {
            None => Ok(None),
            Some(value) => {
                let text = value.to_str().ok_or_else(|| Error::new(format!("{name} is not Unicode: {value:?}")))?;
                Ok(Some(text))
            }
        }
    }

    /// The value of `name` as a switch.
    ///
    /// # Errors
    /// It is neither on, 1, true, yes nor off, 0, false, no.
    pub fn switch(&self, name: &str) -> Result<Option<bool>> {
        match self.text(name)?.map(str::to_ascii_lowercase).as_deref() {
            None => Ok(None),
            Some("on" | "1" | "true" | "yes") => Ok(Some(true)),
            Some("off" | "0" | "false" | "no") => Ok(Some(false)),
            Some(other) => Err(Error::new(format!("{name} is \"{other}\", which is neither \"on\" nor \"off\""))),
        }
    }

    /// The path with another folder at its end.
    pub fn path_with(&self, folder: Option<&Path>) -> OsString {
        let path = self.value("PATH").unwrap_or_default();
        // An empty piece is the working directory: nobody means that.
        let there = std::env::split_paths(path).filter(|folder| !folder.as_os_str().is_empty());
        let folders = there.chain(folder.map(Path::to_owned));
        // A folder that cannot be in a path is in none.
        std::env::join_paths(folders).unwrap_or_else(|_| path.to_owned())
    }

    /// The first program called `name` on the path.
    pub fn on_path(&self, name: &str) -> Option<PathBuf> {
        let name = format!("{name}{}", std::env::consts::EXE_SUFFIX);
        std::env::split_paths(self.value("PATH")?).map(|folder| folder.join(&name)).find(|program| program.is_file())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_documented_name_is_read() {
        let env = Env::of(NAMES.iter().map(|(name, _)| (*name, "x")));
        for (name, line) in NAMES {
            assert!(env.value(name).is_some(), "{name}");
            assert!(!line.is_empty());
        }
    }

    #[test]
    fn an_empty_value_is_no_value() {
        assert_eq!(Env::of([(CACHE, "")]).path(CACHE), None);
    }

    #[test]
    fn a_folder_is_added_to_the_path() {
        let path = |env: Env| env.path_with(Some(Path::new("/c"))).into_string().unwrap();
        assert_eq!(path(Env::of([("PATH", "/a:/b")])), "/a:/b:/c");
        assert_eq!(path(Env::default()), "/c");
        assert_eq!(Env::of([("PATH", "/a")]).path_with(Some(Path::new("/b:c"))), "/a", "it cannot be in one");
        assert_eq!(Env::of([("PATH", "/a")]).path_with(None), "/a");
    }

    #[test]
    fn a_switch_is_on_or_off_and_nothing_else() {
        for (text, want) in [("on", true), ("1", true), ("TRUE", true), ("off", false), ("0", false), ("no", false)] {
            assert_eq!(Env::of([(NO_FETCH, text)]).switch(NO_FETCH).unwrap(), Some(want), "{text}");
        }
        assert_eq!(Env::default().switch(NO_FETCH).unwrap(), None);
        let error = Env::of([(NO_FETCH, "maybe")]).switch(NO_FETCH).unwrap_err();
        assert!(error.to_string().contains("INFER_NO_FETCH") && error.to_string().contains("maybe"), "{error}");
    }
}
