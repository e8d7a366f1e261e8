//! Why a door could not be opened.

use std::error::Error;
use std::fmt;
use std::io;
use std::path::{Path, PathBuf};

/// No usable door: what was wanted, where it was looked for, and what was found there.
///
/// The `Display` form has a line for each place.
#[derive(Debug)]
pub struct LoadError(Box<Inner>);

#[derive(Debug)]
struct Inner {
    wanted: String,
    looked: Vec<Looked>,
    hint: &'static str,
}

impl LoadError {
    pub(crate) fn new(wanted: String, looked: Vec<Looked>, hint: &'static str) -> Self {
        Self(Box::new(Inner { wanted, looked, hint }))
    }

    /// What the door had to be, in words.
    #[must_use]
    pub fn wanted(&self) -> &str {
        &self.0.wanted
    }

    /// The places looked in, in order. Never empty; the last is where the search ended.
    #[must_use]
    pub fn looked(&self) -> &[Looked] {
        &self.0.looked
    }
}

impl fmt::Display for LoadError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "no usable library: wanted {}", self.0.wanted)?;
        for looked in &self.0.looked {
            write!(f, "\n  {looked}")?;
        }
        if !self.0.hint.is_empty() {
            write!(f, "\n  {}", self.0.hint)?;
        }
        Ok(())
    }
}

impl Error for LoadError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        self.0.looked.last().map(|looked| &looked.refusal as &(dyn Error + 'static))
    }
}

/// One place where a door was looked for, and why it did not serve.
#[derive(Debug)]
pub struct Looked {
    place: &'static str,
    path: Option<PathBuf>,
    refusal: Refusal,
}

impl Looked {
    pub(crate) fn new(place: &'static str, path: Option<PathBuf>, refusal: Refusal) -> Self {
        Self { place, path, refusal }
    }

    /// The kind of place, in words: "the path given", "the cache", …
    #[must_use]
    pub fn place(&self) -> &str {
        self.place
    }

    /// The file, where there is one to name.
    #[must_use]
    pub fn path(&self) -> Option<&Path> {
        self.path.as_deref()
    }

    /// Why it did not serve.
    #[must_use]
    pub fn refusal(&self) -> &Refusal {
        &self.refusal
    }
}

impl fmt::Display for Looked {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.path {
            Some(path) => write!(f, "{}: {}: {}", self.place, path.display(), self.refusal),
            None => write!(f, "{}: {}", self.place, self.refusal),
        }
    }
}

/// Why one place did not serve.
#[derive(Debug)]
#[non_exhaustive]
pub enum Refusal {
    /// The environment variable that would name a file is not set.
    NotSet,
    /// Not looked at: this process runs with raised privileges, and whoever started it may not choose what it loads.
    Privileged,
    /// A path that depends on the working directory, or a bare name that the system's own search would resolve.
    NotAbsolute,
    /// A variant is a short name, and this is not one.
    BadName(String),
    /// There is no library of this variant, and there are ones of these.
    OtherVariants(Vec<String>),
    /// There is no such file, or it cannot be read.
    Unreadable(io::Error),
    /// Somebody else could have written the file: says who.
    Untrusted(String),
    /// The file that holds the hash, beside the library, is missing or holds none.
    NoHash(String),
    /// The bytes are not those that were put there.
    WrongHash {
        /// The sha256 written beside the library, in hexadecimal.
        wanted: String,
        /// The sha256 of the library itself.
        found: String,
    },
    /// A library that it needs cannot be used, and why.
    Needed(PathBuf, Box<Refusal>),
    /// The system's loader refused the file, in its own words.
    NotALibrary(String),
    /// A library, but not a door: it lacks the one symbol. In the loader's own words.
    NoSymbol(String),
    /// The door returned no table, or one that cannot be a table.
    NoTable,
    /// The door speaks another version of the table.
    Version {
        /// The version this crate speaks.
        wanted: u32,
        /// The version of the library.
        found: u32,
    },
    /// The table has another size.
    TableSize {
        /// Bytes of the table this crate knows.
        wanted: u32,
        /// Bytes of the library's.
        found: u32,
    },
    /// A struct that crosses the door has another size.
    StructSize {
        /// Name of the C struct.
        name: &'static str,
        /// Bytes of the struct this crate knows.
        wanted: u32,
        /// Bytes of the library's.
        found: u32,
    },
    /// The library is another release of the runtime than those that serve: most often, an older one.
    Release {
        /// Which serve, in words.
        wanted: String,
        /// What the library calls its version.
        found: String,
    },
    /// The library is made from another commit of the runtime.
    Commit {
        /// The pinned commit.
        wanted: String,
        /// The library's.
        found: String,
    },
    /// The library is another variant than the one asked for.
    Variant {
        /// The variant asked for.
        wanted: String,
        /// The library's.
        found: String,
    },
    /// A child process that tried the library first did not come through it; in this one it was not opened.
    Probe {
        /// What became of the child: by which signal it was ended, or that it was not done in time.
        outcome: String,
        /// The last lines of what it said on stderr.
        said: String,
    },
    /// A probe was asked for and cannot be made, in words.
    NoProbe(String),
    /// An entry of a table whose entries are known by their numbers is NULL.
    Gap(
        /// Number of the entry, from 0.
        usize,
    ),
    /// An entry of the table is NULL.
    Entry(
        /// Name of the entry.
        &'static str,
    ),
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotSet => f.write_str("not set"),
            Self::Privileged => f.write_str("ignored, because this process runs with raised privileges"),
            Self::NotAbsolute => f.write_str("refused, because the path is not absolute"),
            Self::BadName(name) => {
                write!(f, "refused: {name:?} is not a variant, which is made of lower-case letters, digits and '-'")
            }
            Self::OtherVariants(variants) => {
                write!(
                    f,
                    "not there; there are libraries of other variants, to be asked for by name: {}",
                    variants.join(", ")
                )
            }
            Self::Unreadable(error) => write!(f, "{error}"),
            Self::Untrusted(why) => write!(f, "refused, because {why}"),
            Self::NoHash(why) => write!(f, "refused, because its hash is not known: {why}"),
            Self::WrongHash { wanted, found } => {
                write!(f, "refused, because its sha256 should be {wanted} and is {found}")
            }
            Self::NotALibrary(why) => write!(f, "not loadable: {why}"),
            Self::NoSymbol(why) => write!(f, "not a door: {why}"),
            Self::Needed(path, refusal) => write!(f, "it needs {}: {refusal}", path.display()),
            Self::NoTable => f.write_str("the door returned no table"),
            Self::Version { wanted, found } => write!(f, "door version {wanted} wanted, {found} found"),
            Self::TableSize { wanted, found } => write!(f, "a table of {wanted} bytes wanted, of {found} found"),
            Self::StructSize { name, wanted, found } => {
                write!(f, "struct {name} of {wanted} bytes wanted, of {found} found")
            }
            Self::Release { wanted, found } => write!(f, "{wanted} wanted, {found:?} found"),
            Self::Commit { wanted, found } => write!(f, "commit {wanted} wanted, {found:?} found"),
            Self::Variant { wanted, found } => write!(f, "variant {wanted:?} wanted, {found:?} found"),
            Self::Probe { outcome, said } => {
                write!(f, "refused, because a child process that tried it {outcome}")?;
                said.lines().try_for_each(|line| write!(f, "\n    | {line}"))
            }
            Self::NoProbe(why) => {
                write!(
                    f,
                    "refused, because it was to be tried in a child process, and there is nothing that does it: {why}"
                )
            }
            Self::Gap(number) => write!(f, "the entry number {number} of the table is NULL"),
            Self::Entry(name) => write!(f, "the entry {name} of the table is NULL"),
        }
    }
}

impl Error for Refusal {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        match self {
            Self::Unreadable(error) => Some(error),
            _ => None,
        }
    }
}
