//! `cargo xtask peers`: the other side of the comparisons.

use std::path::PathBuf;

use build_support::env::Env;
use build_support::{Host, setup};

use crate::Result;
use crate::terminal::Terminal;

/// Build llama.cpp's own programs from the pinned source, over the very archives that the library is made of, and fetch Jinja2 for
/// Python, into the cache.
///
/// Not part of `setup`: it takes several times as long as all the rest. Prints the folder the programs are in.
#[derive(clap::Args)]
pub(crate) struct Arguments {}

pub(crate) fn run(host: &Host, _: &Arguments) -> Result {
    setup::python_packages(&Env::from_process(), &mut Terminal::default())?;
    println!("{}", programs(host)?.display());
    Ok(())
}

/// Builds llama.cpp's own programs, unless they are there, and returns their folder.
pub(crate) fn programs(host: &Host) -> Result<PathBuf> {
    Ok(setup::programs(host, &Env::from_process(), &mut Terminal::default())?.path)
}
