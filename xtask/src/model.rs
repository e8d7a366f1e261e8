//! `cargo xtask model NAME`: where a model of the tests lies.

use build_support::cache::{Cache, Installed};
use build_support::env::Env;
use build_support::fetch::fetch;
use build_support::made::{self, Made};
use build_support::{fixtures, setup};

use crate::terminal::Terminal;
use crate::{Result, minilm};

/// Print the path of a cached model, fetching or making it if it is not there.
#[derive(clap::Args)]
pub(crate) struct Arguments {
    /// Its name: smollm2, minilm, magika, one that is made of these, as smollm2-onnx, or one of the tiny models of the tests.
    #[arg(value_parser = clap::builder::PossibleValuesParser::new(fixtures::names()))]
    name: String,
}

pub(crate) fn run(arguments: &Arguments) -> Result {
    let name = arguments.name.as_str();
    if fixtures::MODELS.contains(&name) || made::named(name).is_some() {
        bring(name, &Env::from_process(), &mut Terminal::default())?;
    }
    println!("{}", fixtures::model(name)?.display());
    Ok(())
}

/// Brings one of the models that are fetched, or made of those.
pub(crate) fn bring(name: &str, env: &Env, terminal: &mut Terminal) -> build_support::Result<Installed> {
    match (made::named(name), name) {
        (Some(made), _) => make(made, env, terminal),
        (None, "minilm") => setup::made_fixture(name, env, terminal, minilm::convert),
        (None, _) => setup::fixture(name, env, terminal),
    }
}

/// Brings these models that are made of others, and says whether any had to be made.
pub(crate) fn bring_made(models: &[Made], env: &Env, terminal: &mut Terminal) -> build_support::Result<bool> {
    models.iter().try_fold(false, |fresh, one| Ok(fresh | make(one, env, terminal)?.fresh))
}

/// Makes one of the models that are made of others, and brings what that takes.
fn make(made: &Made, env: &Env, terminal: &mut Terminal) -> build_support::Result<Installed> {
    if fixtures::MODELS.contains(&made.from) {
        bring(made.from, env, terminal)?;
    }
    if let Some(pin) = made.package()? {
        fetch(&pin, env, &Cache::from_env(env)?, terminal)?;
    }
    setup::python(made.packages(), env, terminal)?;
    made.make(env, terminal)
}
