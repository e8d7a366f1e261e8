//! `cargo xtask bench`: the figures.

use std::process::Command;

use build_support::cache::Cache;
use build_support::env::Env;
use build_support::programs::program;
use build_support::{Host, fixtures, tools};
use clap::builder::PossibleValuesParser;

use crate::Result;
use crate::peers;
use crate::setup::{self, Thing};
use crate::workspace::{cargo, run as run_command};

/// Every bench, by the name of its file in benches/.
const ALL: &[&str] = &[
    "greedy",
    "templates",
    "layers",
    "memory",
    "llama",
    "states",
    "draws",
    "embeddings",
    "engine",
    "onnx",
    "mlx",
    "soak",
];

/// The parts of the bench of MLX that are soaks: they belong to its figures, and are run where soaks are asked for.
const SOAKS_OF_MLX: [&str; 2] = ["soak", "hammer"];

/// What is set up first.
const NEEDED: &[Thing] = &[
    Thing::Smollm2,
    Thing::Minilm,
    Thing::Llama,
    Thing::Onnx,
    Thing::OnnxModels,
    Thing::Mlx,
    Thing::MlxModels,
    Thing::PythonMlx,
];

/// Set up what is missing, measure, and compare with the bars. Progress and tables go to stderr, a line of JSON for each figure
/// to stdout.
///
/// The machine should have nothing else to do. The engine is measured beside llama.cpp's own server, which is built where it is not
/// there (minutes). Where `cargo xtask peers` was run, llama-bench follows, for information.
#[derive(clap::Args)]
pub(crate) struct Arguments {
    /// Only these; all of them by default.
    #[arg(value_parser = PossibleValuesParser::new(ALL))]
    names: Vec<String>,
    /// Seconds in place of minutes: fewer rounds, and timings are information only.
    #[arg(long)]
    quick: bool,
    /// Only these parts of a bench that has parts: cargo xtask bench engine -- batch chat.
    #[arg(last = true)]
    parts: Vec<String>,
}

pub(crate) fn run(host: &Host, arguments: &Arguments) -> Result {
    setup::ensure(host, NEEDED)?;
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
        if *name == "engine" {
            peers::programs(host)?;
        }
        let parts: Vec<&str> = arguments.parts.iter().map(String::as_str).collect();
        // The others are still worth knowing.
        if run_bench(name, arguments.quick, &parts).is_err() {
            missed.push(*name);
        }
        if *name == "soak" && parts.is_empty() && !names.contains(&"mlx") {
            eprintln!("mlx, its soaks");
            if run_bench("mlx", arguments.quick, &SOAKS_OF_MLX).is_err() {
                missed.push("mlx");
            }
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

fn run_bench(name: &str, quick: bool, parts: &[&str]) -> Result {
    let mut bench = cargo(["bench", "--quiet", "--package", "infer-benches", "--bench", name, "--"]);
    run_command(bench.args(quick.then_some("--quick")).args(parts))
}

/// Upstream's own numbers, where its program was built: processes of their own, so not to be compared with a ratio.
fn llama_bench() -> Result {
    let Ok(program) = program("llama-bench") else {
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
