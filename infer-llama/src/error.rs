//! From llama.cpp's statuses to [`Error`]s.

use infer_core::{Error, ErrorKind};
use infer_sys::llama::bindings::{INFER_LLAMA_IO, INFER_LLAMA_MEMORY, INFER_LLAMA_UNSUPPORTED};

/// What errors name as their backend.
pub(crate) const BACKEND: &str = "llama";

/// The error of a native call that said no: what was tried, what the door says, what was logged.
pub(crate) fn failed(what: &str, status: i32, message: &str, log: String) -> Error {
    let kind = match status {
        INFER_LLAMA_MEMORY => ErrorKind::OutOfMemory,
        INFER_LLAMA_IO => ErrorKind::Io,
        INFER_LLAMA_UNSUPPORTED => ErrorKind::Unsupported,
        _ => ErrorKind::Runtime,
    };
    let colon = if message.is_empty() { "" } else { ": " };
    Error::new(kind, format!("could not {what}{colon}{message}"))
        .with_backend(BACKEND)
        .with_code(status.into())
        .with_log(log)
}

/// The same error under another kind and with the file's name: a native call knows neither.
pub(crate) fn about_file(error: Error, name: &str) -> Error {
    let kind = match error.kind() {
        // What llama.cpp refuses in a file that it could read is the file's fault.
        ErrorKind::Runtime => ErrorKind::InvalidModel,
        kind => kind,
    };
    let mut renamed = Error::new(kind, format!("{name} could not be loaded")).with_backend(BACKEND);
    if let Some(code) = error.code() {
        renamed = renamed.with_code(code);
    }
    renamed = renamed.with_log(error.log().unwrap_or_default());
    renamed.with_source(error)
}
