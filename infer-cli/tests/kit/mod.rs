//! The command, run on models that come in folders.

use assert_cmd::Command;
use build_support::fixtures;
use serde_json::Value;
use std::path::{Path, PathBuf};

pub(crate) fn model(name: &str) -> PathBuf {
    fixtures::model(name).expect("`cargo xtask setup` brings it")
}

/// Runs it, and gives exit code, stdout and stderr.
pub(crate) fn run(arguments: &[&str], stdin: &str) -> (i32, String, String) {
    let mut command = Command::cargo_bin("infer").unwrap();
    let output = command.args(arguments).env_remove("INFER_LOG").write_stdin(stdin).output().unwrap();
    let text = |bytes| String::from_utf8(bytes).unwrap();
    (output.status.code().expect("it was not killed"), text(output.stdout), text(output.stderr))
}

pub(crate) fn good(arguments: &[&str], stdin: &str) -> String {
    let (code, stdout, stderr) = run(arguments, stdin);
    assert_eq!(code, 0, "{arguments:?}: {stderr}");
    stdout
}

pub(crate) fn json(arguments: &[&str], stdin: &str) -> Value {
    serde_json::from_str(&good(arguments, stdin)).unwrap()
}

pub(crate) fn text(path: &Path) -> &str {
    path.to_str().unwrap()
}
