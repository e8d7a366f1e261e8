//! From MLX's words to [`Error`]s.

use infer_core::{Error, ErrorKind};

/// What errors name as their backend.
pub(crate) const BACKEND: &str = "mlx";

/// An error of this backend.
pub(crate) fn error(kind: ErrorKind, message: impl Into<String>) -> Error {
    Error::new(kind, message).with_backend(BACKEND)
}

/// An argument outside what the call takes.
pub(crate) fn invalid_input(message: impl Into<String>) -> Error {
    error(ErrorKind::InvalidInput, message)
}
