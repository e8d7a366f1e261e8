//! The one error of this crate: what went wrong, and what can be done about it.

use std::fmt;
use std::io;
use std::path::Path;

/// `Result` with this crate's [`Error`].
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// What went wrong, in one sentence, and the ways to put it right, one a line.
#[derive(Debug)]
pub struct Error {
    message: String,
    help: Vec<String>,
    source: Option<io::Error>,
}

impl Error {
    /// An error that says `message`.
    pub fn new(message: impl Into<String>) -> Self {
        Self { message: message.into(), help: Vec::new(), source: None }
    }

    /// Adds one way out.
    #[must_use]
    pub fn with_help(mut self, help: impl Into<String>) -> Self {
        self.help.push(help.into());
        self
    }

    /// The sentence, without the ways out.
    pub fn message(&self) -> &str {
        &self.message
    }

    /// The ways out.
    pub fn help(&self) -> &[String] {
        &self.help
    }

    /// Something could not be done to a file or folder.
    pub(crate) fn io(doing: &str, path: &Path, source: io::Error) -> Self {
        Self { message: format!("cannot {doing} {}", path.display()), help: Vec::new(), source: Some(source) }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)?;
        if let Some(source) = &self.source {
            write!(f, ": {source}")?;
        }
        for help in &self.help {
            write!(f, "\n  help: {help}")?;
        }
        Ok(())
    }
}

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        self.source.as_ref().map(|source| source as _)
    }
}

/// Gives an I/O error the path it was about.
pub(crate) trait At<T> {
    /// `doing` is the verb: "read", "create".
    fn at(self, doing: &str, path: &Path) -> Result<T>;
}

impl<T> At<T> for io::Result<T> {
    fn at(self, doing: &str, path: &Path) -> Result<T> {
        self.map_err(|source| Error::io(doing, path, source))
    }
}
