//! `cargo xtask bench`: the figures.

use std::path::PathBuf;
use std::process::Command;

use build_support::cache::Cache;
use build_support::choose::{Target, Variant, Wanted};
use build_support::env::Env;
use build_support::llama::Llama;
use build_support::{Host, fixtures, tools};
use clap::builder::PossibleValuesParser;

use crate::Result;
use crate::setup::{self, Thing};
use crate::workspace::{cargo, run as run_command};

/// Every bench, by the name of its file in benches/.
const ALL: &[&str] = &["greedy", "templates", "layers", "memory", "llama", "states", "draws", "embeddings", "soak"];

/// Set up what is missing, measure, and compare with the bars. Progress and tables go to stderr, a line of JSON for each figure
/// to stdout.
///
/// The machine should have nothing else to do. Where `cargo xtask peers` was run, llama-bench follows, for information.
#[derive(clap::Args)]
pub(crate) struct Arguments {
    /// Only these; all of them by default.
    #[arg(value_parser = PossibleValuesParser::new(ALL))]
    names: Vec<String>,
    /// Seconds in place of minutes: fewer rounds, and timings are information only.
    #[arg(long)]
    quick: bool,
}

pub(crate) fn run(host: &Host, arguments: &Arguments) -> Result {
    setup::ensure(host, &[Thing::Smollm2, Thing::Minilm, Thing::Llama])?;
    let names: Vec<&str> = match &arguments.names[..] {
        [] => ALL.to_vec(),
        names => names.iter().map(String::as_str).collect(),
    };
    let mut missed = Vec::new();
    for name in &names {
        eprintln!("{name}");
        if *name == "templates" && !has_jinja2()? {
            eprintln!("  to compare with Jinja2: cargo xtask peers");
            continue;
        }
        let mut bench = cargo(["bench", "--quiet", "--package", "infer-benches", "--bench", name]);
        if arguments.quick {
            bench.args(["--", "--quick"]);
        }
        // The others are still worth knowing.
        if run_command(&mut bench).is_err() {
            missed.push(*name);
        }
    }
    if names.contains(&"llama") && !arguments.quick {
        llama_bench()?;
    }
    if missed.is_empty() {
        return Ok(());
    }
    Err(format!("a bar was missed, or the bench did not run: {}", missed.join(", ")).into())
}

/// Upstream's own numbers, where its program was built: processes of their own, so not to be compared with a ratio.
fn llama_bench() -> Result {
    let Some(program) = peer("llama-bench")? else {
        eprintln!("for llama-bench's own numbers: cargo xtask peers");
        return Ok(());
    };
    eprintln!("llama-bench");
    let mut bench = Command::new(program);
    bench.arg("--model").arg(fixtures::model("smollm2")?).args(["--n-prompt", "512", "--n-gen", "128"]);
    // Its table is for people, like ours.
    bench.stdout(std::io::stderr());
    run_command(&mut bench)
}

fn has_jinja2() -> Result<bool> {
    let env = Env::from_process();
    Ok(tools::jinja2(&env, &Cache::from_env(&env)?)?.is_some())
}

/// One of the programs that `cargo xtask peers` builds, if it was run.
fn peer(name: &str) -> Result<Option<PathBuf>> {
    let env = Env::from_process();
    let wanted = Wanted { link: true, variant: Variant::Cpu };
    let program = Llama::look(&env, wanted, Target::host(), None)?.programs_folder()?.join(name);
    Ok(program.exists().then_some(program))
}
