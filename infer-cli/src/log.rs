//! What the library and the native runtimes log, on stderr.

use crate::failure::Failure;
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

/// Turns logging on: `INFER_LOG` where it is set, else errors, and more with each `-v`.
pub(crate) fn init(verbose: u8) -> Result<(), Failure> {
    let filter = match std::env::var(VARIABLE) {
        Ok(said) if verbose == 0 => said.parse().map_err(|error| {
            Failure::Usage(format!("the variable {VARIABLE} is `{said}`, not a log filter: {error}"))
        })?,
        _ => Targets::new().with_default(level(verbose)),
    };
    registry().with(fmt::layer().with_writer(std::io::stderr).without_time()).with(filter).init();
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
