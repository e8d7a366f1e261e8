//! In place of `infer run`, where ONNX Runtime is not compiled in.

use crate::failure::Failure;
use infer::{Backend, Error};
use std::ffi::OsString;

/// Run a graph on arrays. This program was built without the backend for it.
#[derive(clap::Args, Debug)]
pub(crate) struct Run {
    #[arg(hide = true, trailing_var_arg = true, allow_hyphen_values = true)]
    arguments: Vec<OsString>,
}

impl Run {
    pub(crate) fn run(&self) -> Result<(), Failure> {
        let features = Backend::Onnx.features().join("` or `");
        let message = format!(
            "`infer run` is for the backend `{}`, which this program was built without; build it with `cargo install --path infer-cli \
             --features {features}`",
            Backend::Onnx
        );
        // What would have been run is not even looked at.
        let _ = &self.arguments;
        Err(Error::unsupported(message).into())
    }
}
