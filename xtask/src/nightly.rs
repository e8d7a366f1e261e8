//! The nightly compiler, for what the stable one does not have: sanitizers, and the fuzzer's instrumentation.

use std::ffi::OsStr;
use std::process::Command;

use crate::Result;
use crate::workspace::root;

const TOOLCHAIN: &str = "nightly";
/// Named in every build: flags are then for the program alone, and not for build scripts and macros.
pub(crate) const TARGET: &str =
    if cfg!(target_arch = "aarch64") { "aarch64-unknown-linux-gnu" } else { "x86_64-unknown-linux-gnu" };

/// What a command does where there is no nightly compiler.
#[derive(clap::Args, Clone, Copy)]
pub(crate) struct Without {
    /// Where no nightly compiler is installed, say so and succeed. Nothing has been checked then.
    #[arg(long)]
    allow_without_nightly: bool,
}

/// Whether there is a nightly compiler. `Ok(false)` only where the caller was told that this is good enough.
///
/// # Errors
/// There is none: a check that was not made is no check that succeeded.
pub(crate) fn present(without: Without) -> Result<bool> {
    let asked = Command::new("rustup").args(["run", TOOLCHAIN, "rustc", "--version"]).output();
    if asked.is_ok_and(|output| output.status.success()) {
        return Ok(true);
    }
    let missing =
        "there is no nightly compiler, and nothing was checked: rustup toolchain install nightly --profile minimal";
    if without.allow_without_nightly {
        eprintln!("{missing}");
        return Ok(false);
    }
    Err(missing.into())
}

/// A nightly cargo to run in the workspace.
pub(crate) fn cargo<S: AsRef<OsStr>>(arguments: impl IntoIterator<Item = S>) -> Command {
    let mut command = Command::new("rustup");
    command.current_dir(root()).args(["run", TOOLCHAIN, "cargo"]).args(arguments);
    // Of the cargo that runs this: it would go before what is set for the nightly one.
    command.env_remove("CARGO_ENCODED_RUSTFLAGS").env_remove("RUSTC").env_remove("RUSTC_WRAPPER");
    command
}
