//! `cargo xtask check`: what must hold beside the tests. Everything is run, and what failed is told at the end.

use std::time::Instant;

use build_support::Host;
use serde_json::Value;

use crate::Result;
use crate::setup::{self, Thing};
use crate::workspace::{cargo, output, reading_target, run as run_command, target};

/// What judges documents for the benches: a workspace of its own, as the fuzz targets are.
const JUDGE: &str = "benches/judge/Cargo.toml";

/// Formatting, lints, documentation, every feature alone and all together, bindings, arrows, public API.
#[derive(clap::Args)]
pub(crate) struct Arguments {}

pub(crate) fn run(host: &Host, _: &Arguments) -> Result {
    setup::ensure(host, &[Thing::Llama])?;
    let mut failed = Vec::new();
    let mut step = |name: &str, done: &mut dyn FnMut() -> Result| {
        eprintln!("== {name}");
        let begin = Instant::now();
        match done() {
            Ok(()) => eprintln!("== {name}: good, {:.0} s", begin.elapsed().as_secs_f64()),
            Err(error) => {
                eprintln!("== {name}: {error}");
                failed.push(name.to_owned());
            }
        }
    };
    step("formatting", &mut || {
        run_command(&mut cargo(["fmt", "--all", "--check"]))?;
        run_command(&mut cargo(["fmt", "--manifest-path", "fuzz/Cargo.toml", "--check"]))?;
        run_command(&mut cargo(["fmt", "--manifest-path", JUDGE, "--check"]))
    });
    step("lints", &mut || {
        let rest = ["--all-targets", "--", "-D", "warnings"];
        run_command(cargo(["clippy", "--workspace", "--exclude", "xtask", "--all-features"]).args(rest))?;
        run_command(cargo(["clippy", "--package", "xtask"]).args(rest))?;
        let judge = ["clippy", "--quiet", "--locked", "--manifest-path", JUDGE, "--target-dir"];
        run_command(cargo(judge).arg(target()).args(rest))
    });
    step("documentation", &mut || {
        let mut doc = cargo(["doc", "--no-deps", "--workspace", "--exclude", "xtask", "--all-features"]);
        run_command(doc.env("RUSTDOCFLAGS", "-D warnings"))
    });
    step("each feature alone", &mut each_feature);
    // What a build says of what it lacks, which one with all features cannot.
    step("tests of the command as it is installed", &mut || {
        run_command(&mut cargo(["test", "--quiet", "--package", "infer-cli", "--test", "arguments"]))
    });
    step("arrows", &mut || again(&["arrows"]));
    step("bindings", &mut || again(&["bindings", "--check"]));
    step("public API", &mut || again(&["api"]));
    step("tests of xtask's readers", &mut || {
        let mut test = cargo(["test", "--quiet", "--package", "xtask", "--features", "reading", "--target-dir"]);
        run_command(test.arg(reading_target()))
    });
    if failed.is_empty() { Ok(()) } else { Err(format!("not good: {}", failed.join(", ")).into()) }
}

/// Every library and the command with no feature, and with each of its features alone.
fn each_feature() -> Result {
    let metadata: Value = serde_json::from_str(&output(&mut cargo(["metadata", "--format-version=1", "--no-deps"]))?)?;
    for package in metadata["packages"].as_array().into_iter().flatten().filter(|package| package["publish"].is_null())
    {
        let name = package["name"].as_str().unwrap_or_default();
        let features = package["features"].as_object().into_iter().flatten().map(|(feature, _)| feature.as_str());
        for feature in [""].into_iter().chain(features.filter(|feature| *feature != "default")) {
            let mut lint =
                cargo(["clippy", "--quiet", "--package", name, "--no-default-features", "--features", feature]);
            run_command(lint.args(["--", "-D", "warnings"]))?;
        }
    }
    Ok(())
}

/// Another command of this one, in a process of its own: two of them end theirs.
fn again(arguments: &[&str]) -> Result {
    run_command(&mut cargo(["run", "--quiet", "--package", "xtask", "--"].iter().chain(arguments)))
}
