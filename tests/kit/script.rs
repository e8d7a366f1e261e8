//! The scripts of `benches/peers`: what Python packages make of the same input.

use crate::peer::text;
use build_support::{cache::Cache, env::Env, pins::Pin, python::Packages};
use std::{
    ffi::OsStr,
    io::{BufRead, BufReader, Write},
    path::Path,
    process::{ChildStdin, ChildStdout, Command, Output, Stdio},
    thread::{self, JoinHandle},
};

/// Runs a script to its end, with `input` on stdin. What it prints.
///
/// # Errors
/// The pinned Python packages are not in the cache, or the script fails: with what it said.
pub fn run<A: AsRef<OsStr>>(name: &str, arguments: impl IntoIterator<Item = A>, input: &str) -> Result<String, String> {
    let mut command = command(name)?;
    command.args(arguments).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().map_err(|error| format!("{command:?}: {error}"))?;
    let (mut stdin, input) = (child.stdin.take().expect("piped"), input.to_owned());
    let writer = thread::spawn(move || stdin.write_all(input.as_bytes()));
    let output = test_kit::child::ended(child);
    let written = writer.join().expect("the writer does not panic");
    if !output.status.success() {
        return Err(format!("{name}: {}\n{}", output.status, String::from_utf8_lossy(&output.stderr)));
    }
    written.map_err(text)?;
    String::from_utf8(output.stdout).map_err(text)
}

/// What all-MiniLM-L6-v2 makes of these texts by its own files and formulas, in NumPy: vectors of length 1.
///
/// # Errors
/// Those of [`run`].
pub fn minilm_vectors(texts: &[String]) -> Result<Vec<Vec<f32>>, String> {
    let (cache, pin) = (Cache::from_env(&Env::from_process()).map_err(text)?, Pin::named("minilm").map_err(text)?);
    // The package that has the files.
    let wheel = cache.downloads().join(&pin.files[0].name);
    let vectors = run("minilm_numpy.py", [wheel], &serde_json::to_string(texts).map_err(text)?)?;
    serde_json::from_str(&vectors).map_err(text)
}

/// A script that answers each line with a line until this is dropped.
#[derive(Debug)]
pub struct Script {
    ends: Option<JoinHandle<Output>>,
    input: Option<ChildStdin>,
    output: BufReader<ChildStdout>,
    name: String,
}

impl Script {
    /// Starts it. What it says besides goes where this process's own messages go.
    ///
    /// # Errors
    /// The pinned Python packages are not in the cache, or Python cannot be started.
    pub fn start<A: AsRef<OsStr>>(name: &str, arguments: impl IntoIterator<Item = A>) -> Result<Self, String> {
        let mut command = command(name)?;
        command.args(arguments).stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = command.spawn().map_err(|error| format!("{command:?}: {error}"))?;
        let input = child.stdin.take();
        let output = BufReader::new(child.stdout.take().expect("piped"));
        // Whoever asks much of it has an hour.
        let ends = Some(test_kit::child::watched(child, test_kit::child::LONG * 6));
        Ok(Self { ends, input, output, name: name.to_owned() })
    }

    /// Its answer to a line.
    ///
    /// # Errors
    /// It has ended.
    pub fn ask(&mut self, line: &str) -> Result<String, String> {
        let input = self.input.as_mut().expect("it is taken when this is dropped");
        writeln!(input, "{line}").and_then(|()| input.flush()).map_err(|error| format!("{}: {error}", self.name))?;
        let mut answer = String::new();
        match self.output.read_line(&mut answer).map_err(text)? {
            0 => Err(format!("{} has ended: see above", self.name)),
            _ => Ok(answer),
        }
    }
}

impl Drop for Script {
    fn drop(&mut self) {
        // At the end of its input it ends by itself.
        self.input = None;
        let _ = self.ends.take().map(JoinHandle::join);
    }
}

/// Python with the pinned packages and nothing else, and a script to run.
fn command(name: &str) -> Result<Command, String> {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../benches/peers").join(name);
    let packages = if name.starts_with("mlx_") { Packages::Mlx } else { Packages::Common };
    let mut command = build_support::python::command(packages).map_err(text)?;
    command.arg(script);
    Ok(command)
}
