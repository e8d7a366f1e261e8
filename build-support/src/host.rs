//! The process a native build runs in: a child of this one.
//!
//! The `cmake` and `cc` crates write to stdout, take settings from the environment and panic when a build fails. In a
//! child all three are harmless: its output is a log file, its environment is ours to set, and its end is an exit code.
//! The child is this same executable, started again; [`begin`] is where it finds out.

use std::ffi::OsStr;
use std::fs::{self, File};
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::compile;
use crate::env::{self, Env};
use crate::error::{At, Error, Result};
use crate::progress::Progress;

/// How much of a log an error quotes.
const TAIL: usize = 20;

/// An executable that began with [`begin`], and so can be started again to run one step of a build.
#[derive(Clone, Debug)]
pub struct Host {
    program: PathBuf,
}

/// To be called first thing in `main`. In a child that was started to run a step of a build, it does that and ends the
/// process; otherwise it returns at once.
pub fn begin() -> Host {
    if let Some(step) = Env::from_process().value(env::STEP) {
        let code = match compile::run(step) {
            Ok(()) => 0,
            Err(error) => {
                println!("error: {error}");
                1
            }
        };
        std::process::exit(code);
    }
    // Without a name for itself it cannot start itself: the empty path makes that an error where a build is wanted.
    Host { program: std::env::current_exe().unwrap_or_default() }
}

impl Host {
    /// Runs `step` in a child with `settings` in its environment; all it says goes to `log`, and its progress to `progress`.
    pub(crate) fn run(
        &self,
        step: &OsStr,
        settings: &[(&str, &OsStr)],
        log: &Path,
        progress: &mut dyn Progress,
    ) -> Result<()> {
        let mut command = Command::new(&self.program);
        command
            .env(env::STEP, step)
            .envs(settings.iter().copied())
            // How cargo compiles the caller must not change how native code is compiled.
            .env_remove("CARGO_ENCODED_RUSTFLAGS")
            .env_remove("RUSTFLAGS");
        watch(command, log, "a native build", progress)
    }
}

/// Runs `command`, which is `what`; all it says goes to `log`, and its progress to `progress`.
pub(crate) fn watch(mut command: Command, log: &Path, what: &str, progress: &mut dyn Progress) -> Result<()> {
    let program = PathBuf::from(command.get_program());
    let folder = log.parent().unwrap_or(Path::new("."));
    fs::create_dir_all(folder).at("create", folder)?;
    let mut out = File::create(log).at("create", log)?;
    let errors = out.try_clone().at("open", log)?;
    let mut child = command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(errors).spawn().at("start", &program)?;
    if let Some(lines) = child.stdout.take() {
        for line in BufReader::new(lines).split(b'\n') {
            let line = line.at("read the output of", &program)?;
            out.write_all(&line).and_then(|()| out.write_all(b"\n")).at("write", log)?;
            if let Some((done, total)) = step_of(&String::from_utf8_lossy(&line)) {
                progress.advance(done, total);
            }
        }
    }
    let status = child.wait().at("wait for", &program)?;
    if status.success() { Ok(()) } else { Err(failure(log, what, &status.to_string())) }
}

/// Ninja's `[12/340] …` and make's `[ 12%] …`.
fn step_of(line: &str) -> Option<(u64, u64)> {
    let inside = line.strip_prefix('[')?.split_once(']')?.0.trim();
    match inside.split_once('/') {
        Some((done, total)) => Some((done.parse().ok()?, total.parse().ok()?)),
        None => Some((inside.strip_suffix('%')?.parse().ok()?, 100)),
    }
}

fn failure(log: &Path, what: &str, status: &str) -> Error {
    let text = fs::read(log).map(|bytes| String::from_utf8_lossy(&bytes).into_owned()).unwrap_or_default();
    let lines: Vec<&str> = text.lines().collect();
    let tail = lines[lines.len().saturating_sub(TAIL)..].join("\n    ");
    Error::new(format!("{what} ended with {status}; the end of its log:\n    {tail}"))
        .with_help(format!("the whole log is {}", log.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn progress_is_read_from_ninja_and_from_make() {
        assert_eq!(step_of("[12/340] Building CXX object"), Some((12, 340)));
        assert_eq!(step_of("[ 12%] Building CXX object"), Some((12, 100)));
        for line in ["", "-- Configuring done", "[x/y] no", "[12", "12/340]"] {
            assert_eq!(step_of(line), None, "{line}");
        }
    }

    #[test]
    fn a_failure_quotes_the_end_of_the_log_and_names_it() {
        let log = std::env::temp_dir().join(format!("infer-log-{}", std::process::id()));
        let text: String = (0..100).map(|i| format!("line {i}\n")).collect();
        fs::write(&log, text).unwrap();
        let error = failure(&log, "a native build", "exit status: 1").to_string();
        fs::remove_file(&log).unwrap();
        assert!(error.starts_with("a native build ended with exit status: 1"), "{error}");
        assert!(error.contains("line 99") && error.contains("line 80") && !error.contains("line 79"), "{error}");
        assert!(error.contains(&log.display().to_string()), "{error}");
    }
}
