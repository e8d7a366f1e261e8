//! `cargo xtask orders`: what threads share, in thousands of orders.
//!
//! Tests in modules of the name `orders` run on shuttle's threads (`test-kit/src/orders.rs`), which go on one at a time and change where the
//! checker wants: a wake-up that is lost is a deadlock, a cancel that is lost a loop without end. What fails prints its order.

use crate::Result;
use crate::workspace::{cargo, output, run as run_command, target};

/// Check what threads of the engine, of workers and of pools share in thousands of orders that a checker chooses.
#[derive(clap::Args)]
pub(crate) struct Arguments {
    /// Only tests whose name has this in it.
    #[arg(default_value = "")]
    name: String,
}

/// Whose threads share something.
const PACKAGES: [&str; 3] = ["infer", "infer-onnx", "infer-test-kit"];

pub(crate) fn run(arguments: &Arguments) -> Result {
    let command = || {
        let mut test = cargo(["test", "--quiet", "--no-default-features", "--lib"]);
        test.args(PACKAGES.iter().flat_map(|package| ["--package", package])).arg("--target-dir");
        test.arg(target().join("orders")).env("RUSTFLAGS", "--cfg shuttle").env_remove("CARGO_ENCODED_RUSTFLAGS");
        // Hundreds of thousands of runs of little code.
        test.env("CARGO_PROFILE_DEV_OPT_LEVEL", "1").env("CARGO_INCREMENTAL", "0").env("CARGO_PROFILE_DEV_DEBUG", "0");
        test.args(["--", "orders::"]);
        test
    };
    // A check that was not made is no check that succeeded.
    let listed = output(command().arg("--list"))?;
    let names = listed.lines().filter_map(|line| line.strip_suffix(": test"));
    let (named, others): (Vec<_>, Vec<_>) = names.partition(|name| name.contains(&arguments.name));
    if named.is_empty() {
        return Err(format!("no test has `{}` in its name; there are: {}", arguments.name, others.join(", ")).into());
    }
    run_command(command().args(others.iter().flat_map(|name| ["--skip", name])))
}
