//! `cargo xtask demo`: an answer of a real model, on a fresh machine, by one command.

use build_support::{Host, fixtures};

use crate::Result;
use crate::setup::{self, Thing};
use crate::workspace::{cargo, run as run_command};

/// What is asked when nothing is given.
const PROMPT: &str = "In two sentences, why is the sky blue?";

/// Set up what is missing and stream an answer of SmolLM2-135M-Instruct.
#[derive(clap::Args)]
pub(crate) struct Arguments {
    /// The prompt: cargo xtask demo -- Why is the sea salty?
    #[arg(last = true)]
    prompt: Vec<String>,
}

pub(crate) fn run(host: &Host, arguments: &Arguments) -> Result {
    setup::ensure(host, &[Thing::Smollm2, Thing::Llama])?;
    let prompt = if arguments.prompt.is_empty() { PROMPT.to_owned() } else { arguments.prompt.join(" ") };
    // Compiling has cargo's own progress, and is over before the prompt is shown.
    run_command(&mut cargo(["build", "--release", "--package", "infer-cli"]))?;
    let mut generate = cargo(["run", "--quiet", "--release", "--package", "infer-cli", "--", "generate", "--model"]);
    // So small a model repeats itself otherwise.
    generate.arg(fixtures::model("smollm2")?).args(["--chat", "--repetition-penalty", "1.1", "--prompt", &prompt]);
    eprintln!("> {prompt}\n");
    run_command(&mut generate)
}
