//! `cargo xtask`: set-up, demo, tests and checks of this workspace. One file a command.

mod model;
mod setup;
mod terminal;

use std::process::ExitCode;

use clap::{Parser, Subcommand};

/// What a command returns: an error is printed as it is, and ends the process with 1.
type Result<T = ()> = std::result::Result<T, Box<dyn std::error::Error>>;

/// Set-up, demo, tests and checks of the infer workspace.
#[derive(Parser)]
#[command(name = "cargo xtask", bin_name = "cargo xtask")]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    Setup(setup::Arguments),
    Model(model::Arguments),
}

fn main() -> ExitCode {
    let host = build_support::begin();
    let done = match Arguments::parse().command {
        Command::Setup(arguments) => setup::run(&host, &arguments),
        Command::Model(arguments) => model::run(&arguments),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::FAILURE
        }
    }
}
