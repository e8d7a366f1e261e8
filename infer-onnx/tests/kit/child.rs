//! Cases that may end a process, each in one of its own.

use std::{
    io::Read,
    path::Path,
    process::{Command, Stdio},
    time::{Duration, Instant},
};

/// Names the file that a child is to open.
pub(crate) const VARIABLE: &str = "INFER_ONNX_TEST_FILE";
/// Long enough for a machine that is busy with other things; a hang is longer than any patience.
const PATIENCE: Duration = Duration::from_secs(60);

/// Runs the test `name` of this very program in a child, with `file` for it to open. What it printed after a line
/// `result: `; an error when it ended otherwise than by itself.
pub(crate) fn open_in_child(name: &str, file: &Path) -> Result<String, String> {
    let mut child = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", name, "--nocapture", "--test-threads=1"])
        .env(VARIABLE, file)
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let (mut stdout, mut stderr) = (child.stdout.take().unwrap(), child.stderr.take().unwrap());
    let reader = std::thread::spawn(move || {
        let mut text = String::new();
        stdout.read_to_string(&mut text).unwrap();
        text
    });
    let errors = std::thread::spawn(move || {
        let mut bytes = Vec::new();
        stderr.read_to_end(&mut bytes).unwrap();
        String::from_utf8_lossy(&bytes).into_owned()
    });
    let begun = Instant::now();
    let status = loop {
        if let Some(status) = child.try_wait().unwrap() {
            break status;
        }
        if begun.elapsed() > PATIENCE {
            child.kill().unwrap();
            child.wait().unwrap();
            return Err(format!("hung for {PATIENCE:?}"));
        }
        std::thread::sleep(Duration::from_millis(2));
    };
    let (text, errors) = (reader.join().unwrap(), errors.join().unwrap());
    if !status.success() {
        return Err(format!("ended with {status}: {text}\n{errors}"));
    }
    let result = text.lines().find_map(|line| line.split_once("result: "));
    result.map(|(_, result)| result.to_owned()).ok_or_else(|| format!("said nothing: {text}\n{errors}"))
}
