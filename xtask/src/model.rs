//! `cargo xtask model NAME`: where a model of the tests lies.

use build_support::cache::Installed;
use build_support::env::Env;
use build_support::{fixtures, setup};

use crate::terminal::Terminal;
use crate::{Result, minilm};

/// Print the path of a cached model, fetching or making it if it is not there.
#[derive(clap::Args)]
pub(crate) struct Arguments {
    /// Its name: smollm2, minilm, or one of the tiny models of the tests, which are made: tiny-llama, tiny-mamba, ….
    #[arg(value_parser = clap::builder::PossibleValuesParser::new(fixtures::names()))]
    name: String,
}

pub(crate) fn run(arguments: &Arguments) -> Result {
    if fixtures::MODELS.contains(&arguments.name.as_str()) {
        bring(&arguments.name, &Env::from_process(), &mut Terminal::default())?;
    }
    println!("{}", fixtures::model(&arguments.name)?.display());
    Ok(())
}

/// Brings one of the models that are fetched.
pub(crate) fn bring(name: &str, env: &Env, terminal: &mut Terminal) -> build_support::Result<Installed> {
    match name {
        "minilm" => setup::made_fixture(name, env, terminal, minilm::convert),
        _ => setup::fixture(name, env, terminal),
    }
}
