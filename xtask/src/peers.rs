//! `cargo xtask peers`: the other side of the comparisons.

use build_support::env::Env;
use build_support::{Host, setup};

use crate::Result;
use crate::terminal::Terminal;

/// Build llama.cpp's own programs from the pinned source, with the same patches and flags as the library, and fetch Jinja2 for
/// Python, into the cache.
///
/// Not part of `setup`: it takes several times as long as all the rest. Prints the folder the programs are in.
#[derive(clap::Args)]
pub(crate) struct Arguments {}

pub(crate) fn run(host: &Host, _: &Arguments) -> Result {
    let (env, mut terminal) = (Env::from_process(), Terminal::default());
    setup::python_packages(&env, &mut terminal)?;
    let programs = setup::programs(host, &env, &mut terminal)?;
    println!("{}", programs.path.display());
    Ok(())
}
