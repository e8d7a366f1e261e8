//! This workspace, and running cargo in it.

use std::env;
use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::Result;

/// The folder of the workspace.
pub(crate) fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("xtask is a folder of the workspace")
}

/// A cargo to run in the workspace: the one that runs this.
pub(crate) fn cargo<S: AsRef<OsStr>>(arguments: impl IntoIterator<Item = S>) -> Command {
    let mut command = Command::new(env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    command.current_dir(root()).args(arguments);
    command
}

/// Where cargo puts what it builds here.
pub(crate) fn target() -> PathBuf {
    env::var_os("CARGO_TARGET_DIR").map_or_else(|| root().join("target"), |target| root().join(target))
}

/// Runs `command` to its end.
///
/// # Errors
/// It could not be started, or ended badly: the message has the whole command.
pub(crate) fn run(command: &mut Command) -> Result {
    let status = command.status().map_err(|error| format!("{:?}: {error}", command.get_program()))?;
    if status.success() { Ok(()) } else { Err(format!("{} ended with {status}", shown(command)).into()) }
}

/// Runs `command` to its end and returns what it printed.
///
/// # Errors
/// As [`run`]; its stderr is shown as it comes.
pub(crate) fn output(command: &mut Command) -> Result<String> {
    command.stderr(std::process::Stdio::inherit());
    let output = command.output().map_err(|error| format!("{:?}: {error}", command.get_program()))?;
    if !output.status.success() {
        return Err(format!("{} ended with {}", shown(command), output.status).into());
    }
    Ok(String::from_utf8(output.stdout)?)
}

/// A command as one would type it.
pub(crate) fn shown(command: &Command) -> String {
    let program = Path::new(command.get_program()).file_name().unwrap_or_default().to_string_lossy().into_owned();
    let words = command.get_args().map(|word| word.to_string_lossy().into_owned());
    [program].into_iter().chain(words).collect::<Vec<_>>().join(" ")
}

/// Where xtask is built with its feature `reading`: a folder of its own, so that neither form overwrites the other.
pub(crate) fn reading_target() -> PathBuf {
    target().join("xtask-reading")
}

/// Runs this very command again with the feature `reading`. Ends the process as that one ends.
#[cfg(not(feature = "reading"))]
pub(crate) fn again_with_reading(variables: &[(&str, &OsStr)]) -> Result {
    let arguments: Vec<_> = ["run", "--quiet", "--package", "xtask", "--features", "reading", "--target-dir"]
        .into_iter()
        .map(Into::into)
        .chain([reading_target().into_os_string(), "--".into()])
        .chain(env::args_os().skip(1))
        .collect();
    let status = cargo(arguments).envs(variables.iter().copied()).status()?;
    // It has said what is wrong.
    std::process::exit(status.code().unwrap_or(1))
}
