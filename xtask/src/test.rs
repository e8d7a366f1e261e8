//! `cargo xtask test`: every test there is.

use build_support::Host;

use crate::Result;
use crate::setup;
use crate::workspace::{cargo, run as run_command};

/// Set up what is missing and run every test of the workspace, the examples in its documentation included.
#[derive(clap::Args)]
pub(crate) struct Arguments {
    /// For `cargo test`: cargo xtask test -- --test session, or -- -p infer-core.
    #[arg(last = true)]
    cargo: Vec<String>,
}

pub(crate) fn run(host: &Host, arguments: &Arguments) -> Result {
    setup::ensure(host, setup::ALL)?;
    let names_packages = arguments.cargo.iter().any(|word| word == "-p" || word.starts_with("--package"));
    // Every feature, so that no test is left out for want of one; features only add.
    let scope = if names_packages { &[][..] } else { &["--workspace", "--exclude", "xtask", "--all-features"][..] };
    // All that fails is wanted, and not only the first of it.
    run_command(cargo(["test", "--no-fail-fast"]).args(scope).args(&arguments.cargo))?;
    if arguments.cargo.is_empty() {
        // Its feature is for two commands, and would have everyone who tests compile a C parser.
        run_command(&mut cargo(["test", "--package", "xtask"]))?;
    }
    Ok(())
}
