//! From ONNX Runtime's statuses to [`Error`]s.

use infer_core::{Error, ErrorKind};
use infer_sys::onnxruntime::OrtErrorCode;

/// What errors name as their backend.
pub(crate) const BACKEND: &str = "onnx";

/// An error of this backend.
pub(crate) fn error(kind: ErrorKind, message: impl Into<String>) -> Error {
    Error::new(kind, message).with_backend(BACKEND)
}

/// An argument outside what the call takes.
pub(crate) fn invalid_input(message: impl Into<String>) -> Error {
    error(ErrorKind::InvalidInput, message)
}

/// The error of a native call that said no: what was tried, and what ONNX Runtime says.
pub(crate) fn failed(what: &str, code: i32, message: &str) -> Error {
    // ONNX Runtime has no code for memory: an allocator throws, and its words come back under a general code.
    let no_memory = ["Failed to allocate memory", "std::bad_alloc"].iter().any(|words| message.contains(words));
    let kind = if no_memory { ErrorKind::OutOfMemory } else { kind_of(code) };
    error(kind, format!("could not {what}: {message}")).with_code(code.into())
}

fn kind_of(code: i32) -> ErrorKind {
    const NO_SUCH_FILE: i32 = OrtErrorCode::ORT_NO_SUCHFILE as i32;
    const NO_MODEL: i32 = OrtErrorCode::ORT_NO_MODEL as i32;
    const INVALID_PROTOBUF: i32 = OrtErrorCode::ORT_INVALID_PROTOBUF as i32;
    const INVALID_GRAPH: i32 = OrtErrorCode::ORT_INVALID_GRAPH as i32;
    const NOT_IMPLEMENTED: i32 = OrtErrorCode::ORT_NOT_IMPLEMENTED as i32;
    const INVALID_ARGUMENT: i32 = OrtErrorCode::ORT_INVALID_ARGUMENT as i32;
    const CANCELED: i32 = OrtErrorCode::ORT_MODEL_LOAD_CANCELED as i32;
    const DEVICE_RESET: i32 = OrtErrorCode::ORT_DEVICE_RESET as i32;
    match code {
        NO_SUCH_FILE => ErrorKind::Io,
        NO_MODEL | INVALID_PROTOBUF | INVALID_GRAPH => ErrorKind::InvalidModel,
        NOT_IMPLEMENTED => ErrorKind::Unsupported,
        INVALID_ARGUMENT => ErrorKind::InvalidInput,
        CANCELED => ErrorKind::Cancelled,
        DEVICE_RESET => ErrorKind::SessionLost,
        _ => ErrorKind::Runtime,
    }
}

/// An error of the `ort` crate, whose types nobody outside sees.
pub(crate) fn from_ort<R>(what: &str, error: &ort::Error<R>) -> Error {
    failed(what, OrtErrorCode::from(error.code()) as i32, error.message())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn says_what_was_tried_and_what_the_runtime_said() {
        let error = failed("run the graph", OrtErrorCode::ORT_INVALID_ARGUMENT as i32, "bad rank");
        assert_eq!(error.to_string(), "could not run the graph: bad rank (onnx, code 2)");
        assert_eq!(error.kind(), ErrorKind::InvalidInput);
    }

    #[test]
    fn memory_that_is_not_there_is_a_kind_of_its_own() {
        let words = "Exception during initialization: Failed to allocate memory for requested buffer of size 8";
        assert_eq!(failed("load", OrtErrorCode::ORT_RUNTIME_EXCEPTION as i32, words).kind(), ErrorKind::OutOfMemory);
        assert_eq!(failed("load", 4711, "a code of tomorrow").kind(), ErrorKind::Runtime);
    }
}
