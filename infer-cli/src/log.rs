//! What the library and the native runtimes log, on stderr.

use crate::failure::Failure;
use std::io::IsTerminal;
use tracing_subscriber::{
    filter::{LevelFilter, Targets},
    fmt,
    layer::SubscriberExt,
    registry,
    util::SubscriberInitExt,
};

/// The variable that says what is logged: a level (`error`, `warn`, `info`, `debug`, `trace`, `off`), or
/// `target=level` pairs with commas between them.
const VARIABLE: &str = "INFER_LOG";

/// The targets of the runtimes' own lines.
const NATIVE: [&str; 2] = ["llama.cpp", "onnxruntime"];

/// Turns logging on: `INFER_LOG` where it is set, else errors, and more with each `-v`. What a native library logs of a
/// failure is in the text of the error already; and where Ctrl-C stops a pass it calls that a failure too.
pub(crate) fn init(verbose: u8) -> Result<(), Failure> {
    let filter = match std::env::var(VARIABLE) {
        Ok(said) if verbose == 0 => said.parse().map_err(|error| {
            Failure::Usage(format!("the variable {VARIABLE} is `{said}`, not a log filter: {error}"))
        })?,
        _ if verbose == 0 => {
            Targets::new().with_default(level(0)).with_targets(NATIVE.map(|target| (target, LevelFilter::OFF)))
        }
        _ => Targets::new().with_default(level(verbose)),
    };
    let lines = fmt::layer().with_writer(std::io::stderr).with_ansi(std::io::stderr().is_terminal()).without_time();
    registry().with(lines).with(filter).init();
    Ok(())
}

fn level(verbose: u8) -> LevelFilter {
    match verbose {
        0 => LevelFilter::ERROR,
        1 => LevelFilter::INFO,
        2 => LevelFilter::DEBUG,
        _ => LevelFilter::TRACE,
    }
}
