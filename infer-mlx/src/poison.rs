//! Errors that are told later.

use crate::{error::error, raw};
use infer_core::{Error, ErrorKind};
use std::{fmt::Write as _, panic::Location};

/// Why an array has no value: the first thing that went wrong on the way to it. It is told by whoever wants the value.
#[derive(Debug)]
pub(crate) struct Poison {
    kind: ErrorKind,
    code: Option<i64>,
    message: String,
}

impl Poison {
    /// An operation that MLX refused.
    #[cold]
    pub(crate) fn refused(
        runtime: &raw::Runtime,
        op: &str,
        operands: &[raw::Node<'_>],
        failure: raw::Failure,
        place: &Location<'_>,
    ) -> Self {
        let message = format!("{}: {}", said(runtime, op, operands, place), failure.message);
        Self { kind: failure.kind, code: Some(failure.code), message }
    }

    /// An operation that was refused here.
    #[cold]
    pub(crate) fn invalid(
        runtime: &raw::Runtime,
        op: &str,
        operands: &[raw::Node<'_>],
        why: &str,
        place: &Location<'_>,
    ) -> Self {
        let message = format!("{}: {why}", said(runtime, op, operands, place));
        Self { kind: ErrorKind::InvalidInput, code: None, message }
    }

    /// The error, as often as it is asked for.
    pub(crate) fn error(&self) -> Error {
        let error = error(self.kind, &self.message);
        if let Some(code) = self.code { error.with_code(code) } else { error }
    }
}

/// The error of whoever looks at elements: what was looked at, where, and what comes first where nothing is computed yet.
#[cold]
pub(crate) fn unread(
    runtime: &raw::Runtime,
    what: &str,
    node: raw::Node<'_>,
    failure: raw::Failure,
    evaluate: &str,
    place: &Location<'_>,
) -> Error {
    let remedy = if failure.is_unevaluated() { format!(": call `{evaluate}` first") } else { String::new() };
    let message = format!("could not read {}: {}{remedy}", said(runtime, what, &[node], place), failure.message);
    error(failure.kind, message).with_code(failure.code)
}

/// "matmul of float32[1, 4] and float32[3, 3] at src/layer.rs:12:30".
fn said(runtime: &raw::Runtime, op: &str, operands: &[raw::Node<'_>], place: &Location<'_>) -> String {
    let mut text = op.to_owned();
    for (index, &operand) in operands.iter().enumerate() {
        let before = if index == 0 { " of" } else { " and" };
        let _ = match runtime.info(operand) {
            Ok(info) => write!(text, "{before} {}{:?}", info.dtype, info.shape),
            Err(_) => write!(text, "{before} an array that cannot be looked at"),
        };
    }
    let _ = write!(text, " at {place}");
    text
}
