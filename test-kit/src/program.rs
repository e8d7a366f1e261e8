//! Scripts that a test runs.

use std::io::Write;
use std::path::Path;
use std::process::{Command, Stdio};

/// Writes a script that anybody can run.
///
/// A shell writes it. A file that this process had open for writing cannot be run while a child that another test is just starting
/// still holds it: "Text file busy".
///
/// # Panics
/// There is no shell, or it cannot write there.
pub fn program(path: &Path, script: &str) {
    let mut shell = Command::new("/bin/sh")
        .args(["-c", "cat > \"$0\" && chmod 755 \"$0\""])
        .arg(path)
        .stdin(Stdio::piped())
        .spawn()
        .expect("a shell");
    shell.stdin.take().expect("a pipe").write_all(script.as_bytes()).expect("it reads all of it");
    assert!(shell.wait().expect("it ends").success(), "{} was not written", path.display());
}
