//! Upstream's own programs: what we measure against and check with, over the very archives that the door is made of.

use std::fs;
use std::path::{Path, PathBuf};

use crate::cache::{Key, KeyOf};
use crate::choose::{Target, Variant, Wanted};
use crate::compile::Step;
use crate::env::Env;
use crate::error::{At, Error, Result};
use crate::llama::Llama;

/// Which of them are built.
pub const PROGRAMS: &[&str] = &["llama-bench", "llama-batched-bench", "llama-tokenize", "llama-cli", "llama-server"];

/// The cmake project they are built by, in place of upstream's.
const PROJECT: (&str, &str) = ("CMakeLists.txt", include_str!("../programs/CMakeLists.txt"));

/// The file of the program called `name` in the cache.
///
/// # Errors
/// It is not one of [`PROGRAMS`], or it was not built yet: the message says how.
pub fn program(name: &str) -> Result<PathBuf> {
    let wanted = Wanted { link: true, variant: Variant::Cpu };
    let folder = Llama::look(&Env::from_process(), wanted, Target::host(), None)?.programs_folder()?;
    let program = folder.join(name);
    if PROGRAMS.contains(&name) && program.is_file() {
        return Ok(program);
    }
    let message = format!("llama.cpp's {name} is not in the cache: {} is not there", program.display());
    Err(Error::new(message).with_help("cargo xtask peers"))
}

/// The key of the programs over `archives`: the source and the flags are in those.
pub(crate) fn key(archives: &Key) -> Key {
    let key = KeyOf::default().value("archives", archives.short()).contents(PROJECT.0, PROJECT.1);
    PROGRAMS.iter().fold(key, |key, name| key.value("program", name)).key()
}

/// The child's step: the programs of the tree `step` is from, over the folder `archives`.
pub(crate) fn make(
    step: &Step,
    archives: &Path,
    scratch: &Path,
    configure: impl FnOnce(&Path) -> cmake::Config,
) -> Result<()> {
    let project = scratch.join("project");
    fs::create_dir_all(&project).at("create", &project)?;
    let file = project.join(PROJECT.0);
    fs::write(&file, PROJECT.1).at("write", &file)?;
    let mut config = configure(&project);
    config.define("INFER_TREE", &step.from).define("INFER_ARCHIVES", archives);
    // The crate names one target; what runs cmake's output takes the others.
    config.build_target(PROGRAMS[0]);
    for program in &PROGRAMS[1..] {
        config.build_arg(program);
    }
    let built = config.build().join("build/bin");
    for program in PROGRAMS {
        let (from, to) = (built.join(program), step.folder.join(program));
        fs::copy(&from, &to).at("write", &to)?;
    }
    Ok(())
}
