use crate::ModelInfo;
use std::{error::Error as StdError, fmt};

/// A `Result` whose error is this crate's [`Error`].
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// What went wrong, by what the caller can do about it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ErrorKind {
    /// An argument is outside what the call takes. Nothing has changed; correct the argument and call again.
    InvalidInput,
    /// A model file is damaged, or says something that cannot be true. Get the file again, or another one.
    InvalidModel,
    /// A file could not be opened, read or written. The source has the operating system's reason.
    Io,
    /// This backend or model cannot do this at all. Ask the session's capabilities, or do without: where
    /// `truncate` or `fork` answers so, a caller can compute the sequence again.
    Unsupported,
    /// A sequence of another session was handed in. Nothing has changed.
    ForeignSequence,
    /// A sequence was dropped, was cut or grew after it was put in the batch, or its cells were lost in a pass that
    /// failed half-way (*spent*). Build the batch anew, or feed the tokens to a new sequence.
    StaleSequence,
    /// The KV cache has no room for this pass. Nothing has changed; drop or truncate sequences, or use smaller batches.
    OutOfCells,
    /// A sequence would grow beyond the context. Nothing has changed; truncate it, or open a session with more context.
    ContextFull,
    /// All sequences the session was made for are open. Drop one.
    TooManySequences,
    /// There is not the memory for this. Ask for a smaller context, fewer sequences or a smaller model.
    OutOfMemory,
    /// Stopped by an [`Interrupt`](crate::Interrupt). What had been computed is as the interrupted call documents it.
    Cancelled,
    /// The session's process or device is gone. Make another session and feed it the tokens again.
    SessionLost,
    /// A native library is missing, or is not the one this crate was built for. The message says what was looked
    /// for and where, and how to provide it.
    Library,
    /// A chat template could not be parsed or rendered. Use another template, or build the prompt by hand.
    Template,
    /// A constraint cannot be compiled, or no text of the vocabulary meets it: nothing has been generated. Or, of a draw: the text so far
    /// does not keep to it, or it is too much to follow any further. The message says where; correct the schema, regular expression
    /// or grammar.
    InvalidConstraint,
    /// As many requests are waiting as may. Try again later, or give the request to another engine.
    QueueFull,
    /// The worker or engine has been shut down, or its thread has ended. Make another one.
    Closed,
    /// A job panicked on its worker, which has ended; the message has the panic's own and its place. A bug: report it.
    Panicked,
    /// A native call failed. [`Error::code`] and [`Error::log`] have what it said.
    Runtime,
}

impl ErrorKind {
    /// The kind in words, as [`Error`]'s text begins with it where there is no message.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::InvalidInput => "invalid input",
            Self::InvalidModel => "invalid model file",
            Self::Io => "input or output failed",
            Self::Unsupported => "not supported",
            Self::ForeignSequence => "the sequence belongs to another session",
            Self::StaleSequence => "the sequence has changed since it was put in the batch",
            Self::OutOfCells => "the KV cache is full",
            Self::ContextFull => "the context is full",
            Self::TooManySequences => "all sequences of the session are open",
            Self::OutOfMemory => "not enough memory",
            Self::Cancelled => "cancelled",
            Self::SessionLost => "the session is lost",
            Self::Library => "native library not usable",
            Self::Template => "chat template failed",
            Self::InvalidConstraint => "the constraint cannot be used",
            Self::QueueFull => "too many requests are waiting",
            Self::Closed => "shut down",
            Self::Panicked => "a job panicked",
            Self::Runtime => "a native call failed",
        }
    }
}

impl fmt::Display for ErrorKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// The one error of this library: opaque, one pointer wide, `Send + Sync`.
///
/// ```
/// use infer_core::{Error, ErrorKind};
///
/// let error = Error::new(ErrorKind::InvalidInput, "temperature is -1, it must be 0 or more");
/// assert_eq!(error.kind(), ErrorKind::InvalidInput);
/// assert_eq!(error.to_string(), "temperature is -1, it must be 0 or more");
/// ```
pub struct Error(Box<Inner>);

struct Inner {
    kind: ErrorKind,
    message: String,
    backend: Option<&'static str>,
    code: Option<i64>,
    log: Option<String>,
    source: Option<Box<dyn StdError + Send + Sync>>,
}

impl Error {
    /// An error of this kind. The message says what is wrong, where, and what to do; empty, the kind speaks for itself.
    #[must_use]
    pub fn new(kind: ErrorKind, message: impl Into<String>) -> Self {
        Self(Box::new(Inner { kind, message: message.into(), backend: None, code: None, log: None, source: None }))
    }

    /// An argument outside what the call takes.
    #[must_use]
    pub fn invalid_input(message: impl Into<String>) -> Self {
        Self::new(ErrorKind::InvalidInput, message)
    }

    /// Something this backend or model cannot do.
    #[must_use]
    pub fn unsupported(message: impl Into<String>) -> Self {
        Self::new(ErrorKind::Unsupported, message)
    }

    /// Names the backend the error comes from.
    #[must_use]
    pub fn with_backend(mut self, backend: &'static str) -> Self {
        self.0.backend = Some(backend);
        self
    }

    /// Adds the native call's own status code.
    #[must_use]
    pub fn with_code(mut self, code: i64) -> Self {
        self.0.code = Some(code);
        self
    }

    /// Adds what the native library logged during the call; an empty text adds nothing.
    #[must_use]
    pub fn with_log(mut self, log: impl Into<String>) -> Self {
        let log = log.into();
        self.0.log = (!log.is_empty()).then_some(log);
        self
    }

    /// Adds the error that caused this one.
    #[must_use]
    pub fn with_source(mut self, source: impl Into<Box<dyn StdError + Send + Sync>>) -> Self {
        self.0.source = Some(source.into());
        self
    }

    /// Says before the message which model it is about.
    ///
    /// ```
    /// use infer_core::{Error, ErrorKind, ModelInfo};
    ///
    /// let mut info = ModelInfo::default();
    /// info.description = "llama, 135 M parameters".into();
    /// let error = Error::new(ErrorKind::Runtime, "no logit is a number").with_model(&info);
    /// assert_eq!(error.to_string(), "llama, 135 M parameters: no logit is a number");
    /// ```
    #[must_use]
    pub fn with_model(mut self, info: &ModelInfo) -> Self {
        let name = info.name.as_deref().unwrap_or(&info.description);
        self.0.message = format!("{name}: {}", self.0.message);
        self
    }

    /// What a caller can branch on.
    #[must_use]
    pub fn kind(&self) -> ErrorKind {
        self.0.kind
    }

    /// The backend the error comes from, where one is named.
    #[must_use]
    pub fn backend(&self) -> Option<&'static str> {
        self.0.backend
    }

    /// The native status code, where a native call failed.
    #[must_use]
    pub fn code(&self) -> Option<i64> {
        self.0.code
    }

    /// What the native library logged during the failed call, line by line.
    #[must_use]
    pub fn log(&self) -> Option<&str> {
        self.0.log.as_deref()
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let inner = &*self.0;
        if inner.message.is_empty() {
            inner.kind.fmt(f)?
        } else {
            f.write_str(&inner.message)?
        }
        match (inner.backend, inner.code) {
            (Some(backend), Some(code)) => write!(f, " ({backend}, code {code})")?,
            (Some(backend), None) => write!(f, " ({backend})")?,
            (None, Some(code)) => write!(f, " (code {code})")?,
            (None, None) => {}
        }
        if let Some(log) = &inner.log {
            write!(f, "; it logged: {}", log.trim_end().replace('\n', " | "))?;
        }
        Ok(())
    }
}

/// `{:?}` is for people: it is what `fn main() -> Result<()>` and `unwrap` print. The text, then each cause on a line of its own.
/// `{:#?}` has the fields.
impl fmt::Debug for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let inner = &*self.0;
        if f.alternate() {
            return f
                .debug_struct("Error")
                .field("kind", &inner.kind)
                .field("message", &inner.message)
                .field("backend", &inner.backend)
                .field("code", &inner.code)
                .field("log", &inner.log)
                .field("source", &inner.source)
                .finish();
        }
        write!(f, "{self}")?;
        let mut cause = self.source();
        while let Some(error) = cause {
            // A source whose words are the message already says nothing new.
            let words = error.to_string();
            if words != inner.message {
                write!(f, "\n  because: {words}")?;
            }
            cause = error.source();
        }
        Ok(())
    }
}

impl StdError for Error {
    fn source(&self) -> Option<&(dyn StdError + 'static)> {
        self.0.source.as_deref().map(|source| source as _)
    }
}

impl From<ErrorKind> for Error {
    fn from(kind: ErrorKind) -> Self {
        Self::new(kind, "")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn says_kind_code_and_log_in_one_line() {
        let bare = Error::from(ErrorKind::OutOfCells);
        assert_eq!(bare.to_string(), "the KV cache is full");
        let full = Error::new(ErrorKind::Runtime, "decode failed")
            .with_backend("llama")
            .with_code(-3)
            .with_log("first\nsecond\n");
        assert_eq!(full.to_string(), "decode failed (llama, code -3); it logged: first | second");
        assert_eq!((full.code(), full.log()), (Some(-3), Some("first\nsecond\n")));
    }

    #[test]
    fn debug_is_what_main_prints() {
        let cause = std::io::Error::other("no such file");
        let error = Error::new(ErrorKind::Io, "cannot read the model file m.gguf").with_source(cause);
        assert_eq!(format!("{error:?}"), "cannot read the model file m.gguf\n  because: no such file");
        assert!(format!("{error:#?}").contains("kind: Io"));
        let same = Error::new(ErrorKind::Library, "nothing found").with_source(Error::invalid_input("nothing found"));
        assert_eq!(format!("{same:?}"), "nothing found");
    }

    #[test]
    fn is_small_and_may_cross_threads() {
        fn send_sync<T: Send + Sync + 'static>() {}
        send_sync::<Error>();
        assert_eq!(size_of::<Error>(), size_of::<usize>());
        assert_eq!(size_of::<Result<()>>(), size_of::<usize>());
    }
}
