//! The `infer` command: one subcommand a file, stdout for answers, stderr for everything about them.
#![deny(unsafe_code)]

mod args;
mod batch;
mod chat;
mod constraint;
mod cost;
mod ctrl_c;
mod devices;
mod embed;
mod failure;
mod generate;
mod inspect;
mod lines;
mod log;
mod output;
#[cfg(feature = "onnx")]
mod run;
#[cfg(not(feature = "onnx"))]
#[path = "no_run.rs"]
mod run;
mod sampling;
mod setup;
mod tokenize;

use build_support::{Host, pins::Pin};
use clap::{ArgAction, Parser, Subcommand};
use failure::Failure;
use std::{process::ExitCode, sync::LazyLock};

/// This program's version, and the commit of the native sources it was made for.
static VERSION: LazyLock<String> = LazyLock::new(|| {
    let commit = Pin::named("llama").ok().and_then(|pin| pin.commit);
    let native = commit.map_or(String::new(), |commit| format!("\nllama.cpp {commit}"));
    env!("CARGO_PKG_VERSION").to_owned() + &native
});

/// Run models on native runtimes.
///
/// Answers go to stdout, everything else to stderr. Exit codes: 0 done, 1 it failed, 2 the arguments are wrong, 3 some
/// requests of a batch have no answer, 130 Ctrl-C ended it.
#[derive(Parser, Debug)]
#[command(name = "infer", version = VERSION.as_str())]
struct Cli {
    #[command(subcommand)]
    command: Command,

    /// Log more on stderr: what happens (-v), details (-vv), everything (-vvv). Without it the variable INFER_LOG decides.
    #[arg(long, short, global = true, action = ArgAction::Count)]
    verbose: u8,
}

#[derive(Subcommand, Debug)]
enum Command {
    Generate(Box<generate::Generate>),
    Chat(Box<chat::Chat>),
    Batch(Box<batch::Batch>),
    Embed(embed::Embed),
    Rerank(embed::Rerank),
    Classify(embed::Classify),
    Run(run::Run),
    Tokenize(tokenize::Tokenize),
    Inspect(inspect::Inspect),
    Cost(cost::Cost),
    Devices(devices::Devices),
    Setup(setup::Setup),
}

fn main() -> ExitCode {
    // First of all: a native build runs its steps in this very program, started again.
    let host = build_support::begin();
    match run(&host, &Cli::parse()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => failure.report(),
    }
}

fn run(host: &Host, cli: &Cli) -> Result<(), Failure> {
    log::init(cli.verbose)?;
    match &cli.command {
        Command::Generate(command) => command.run(),
        Command::Chat(command) => command.run(),
        Command::Batch(command) => command.run(),
        Command::Embed(command) => command.run(),
        Command::Rerank(command) => command.run(),
        Command::Classify(command) => command.run(),
        Command::Run(command) => command.run(),
        Command::Tokenize(command) => command.run(),
        Command::Inspect(command) => command.run(),
        Command::Cost(command) => command.run(),
        Command::Devices(command) => command.run(),
        Command::Setup(command) => command.run(host),
    }
}
