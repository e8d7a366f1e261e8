//! `cargo xtask`: set-up, demo, tests and checks of this workspace. One file a command.

#[cfg(feature = "reading")]
mod api;
mod arrows;
mod bench;
mod bindings;
mod check;
mod demo;
mod downstream;
mod fuzz;
mod minilm;
mod model;
mod nightly;
mod orders;
mod package;
mod peers;
mod sanitize;
mod setup;
mod terminal;
mod test;
mod vulkan;
mod workspace;

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
    Demo(demo::Arguments),
    Test(test::Arguments),
    Check(check::Arguments),
    Arrows(arrows::Arguments),
    Bindings(bindings::Arguments),
    Api(ApiArguments),
    Model(model::Arguments),
    Package(package::Arguments),
    Bench(bench::Arguments),
    Peers(peers::Arguments),
    Downstream(downstream::Arguments),
    Vulkan(vulkan::Arguments),
    Fuzz(fuzz::Arguments),
    Orders(orders::Arguments),
    Sanitize(sanitize::Arguments),
}

/// Compare the public API of the libraries with its snapshot in docs/api, and refuse foreign types in it.
#[derive(clap::Args)]
struct ApiArguments {
    /// Write the snapshot.
    #[arg(long)]
    bless: bool,
}

#[cfg(feature = "reading")]
fn api_command(arguments: &ApiArguments) -> Result {
    api::run(workspace::root(), arguments.bless)
}

#[cfg(not(feature = "reading"))]
fn api_command(_arguments: &ApiArguments) -> Result {
    workspace::again_with_reading(&[])
}

fn main() -> ExitCode {
    let host = build_support::begin();
    let done = match Arguments::parse().command {
        Command::Setup(arguments) => setup::run(&host, &arguments),
        Command::Demo(arguments) => demo::run(&host, &arguments),
        Command::Test(arguments) => test::run(&host, &arguments),
        Command::Check(arguments) => check::run(&host, &arguments),
        Command::Arrows(arguments) => arrows::run(&arguments),
        Command::Bindings(arguments) => bindings::run(&host, &arguments),
        Command::Api(arguments) => api_command(&arguments),
        Command::Bench(arguments) => bench::run(&host, &arguments),
        Command::Peers(arguments) => peers::run(&host, &arguments),
        Command::Package(arguments) => package::run(&host, &arguments),
        Command::Downstream(arguments) => downstream::run(&host, &arguments),
        Command::Vulkan(arguments) => vulkan::run(&host, &arguments),
        Command::Fuzz(arguments) => fuzz::run(&arguments),
        Command::Orders(arguments) => orders::run(&arguments),
        Command::Sanitize(arguments) => sanitize::run(&host, &arguments),
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
