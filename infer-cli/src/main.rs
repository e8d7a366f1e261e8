//! The `infer` command: one subcommand a file, stdout for answers, stderr for everything about them.
#![deny(unsafe_code)]

mod args;
mod cost;
mod ctrl_c;
mod failure;
mod generate;
mod inspect;
mod log;
mod output;
mod tokenize;

use clap::{ArgAction, Parser, Subcommand};
use failure::Failure;
use std::process::ExitCode;

/// Run models on native runtimes.
///
/// Answers go to stdout, everything else to stderr. Exit codes: 0 done, 1 it failed, 2 the arguments are wrong.
#[derive(Parser, Debug)]
#[command(name = "infer", version)]
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
    Tokenize(tokenize::Tokenize),
    Inspect(inspect::Inspect),
    Cost(cost::Cost),
}

fn main() -> ExitCode {
    match run(&Cli::parse()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => failure.report(),
    }
}

fn run(cli: &Cli) -> Result<(), Failure> {
    log::init(cli.verbose)?;
    match &cli.command {
        Command::Generate(command) => command.run(),
        Command::Tokenize(command) => command.run(),
        Command::Inspect(command) => command.run(),
        Command::Cost(command) => command.run(),
    }
}
