//! Running the program, for as long as it may take.

use std::fs::File;
use std::io::Read;
use std::path::Path;
use std::process::{Command, ExitStatus, Stdio};
use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant};

use super::Child;
use super::program::Program;
use crate::library::places;

/// What is kept of the child's output; what exceeds it is read and dropped, so that the child is not held up.
const KEPT: usize = 64 << 10;
/// Lines of its stderr that an error quotes.
const LAST_WORDS: usize = 6;
/// How often it is looked at: std has no wait with a limit.
const POLL: Duration = Duration::from_millis(2);
/// How long its output is waited for when it has ended: something it started may hold on to it.
const AFTERWARDS: Duration = Duration::from_secs(1);

/// Runs the program on a library. An error says why it could not be run, which is no news of the library.
pub(super) fn run(program: &Program, path: &Path, file: Option<&File>, patience: Duration) -> Result<Child, String> {
    let cannot = |error: std::io::Error| format!("{}: {error}", program.path.display());
    let mut command = Command::new(program.command());
    // A little later than we, who can say why.
    let seconds = (patience + Duration::from_secs(2)).as_secs();
    match file.filter(|_| cfg!(any(target_os = "linux", target_os = "android"))) {
        // The very file that was checked, whatever has its name by now.
        Some(file) => command.arg("/proc/self/fd/0").stdin(file.try_clone().map_err(cannot)?),
        None => command.arg(path).stdin(Stdio::null()),
    };
    command.arg(seconds.to_string()).stdout(Stdio::piped()).stderr(Stdio::piped());
    if places::privileged() {
        // Whoever started this process chose its environment.
        command.env_clear();
    }
    let mut child = command.spawn().map_err(cannot)?;
    let answer = child.stdout.take().map(collect);
    let said = child.stderr.take().map(collect);
    let ended = wait(&mut child, patience).map_err(cannot)?;
    let text = |output: Option<mpsc::Receiver<Vec<u8>>>| {
        let bytes = output.and_then(|output| output.recv_timeout(AFTERWARDS).ok()).unwrap_or_default();
        String::from_utf8_lossy(&bytes).into_owned()
    };
    Ok(Child { ended, answer: text(answer), said: last_lines(&text(said)) })
}

/// Waits for the end, and brings it about when that takes too long. Says how it ended, where that was not well.
fn wait(child: &mut std::process::Child, patience: Duration) -> std::io::Result<Option<String>> {
    let begin = Instant::now();
    loop {
        if let Some(status) = child.try_wait()? {
            return Ok((!status.success()).then(|| end(status)));
        }
        if begin.elapsed() >= patience {
            // It may have ended just now: then there is nobody to kill.
            let _ = child.kill();
            child.wait()?;
            return Ok(Some(format!("was not done after {:.1} s", patience.as_secs_f64())));
        }
        thread::sleep(POLL);
    }
}

/// Reads to the end, on a thread of its own, and sends the beginning.
fn collect(mut from: impl Read + Send + 'static) -> mpsc::Receiver<Vec<u8>> {
    let (send, receive) = mpsc::channel();
    thread::spawn(move || {
        let (mut kept, mut buffer) = (Vec::new(), [0; 4096]);
        while let Ok(n @ 1..) = from.read(&mut buffer) {
            let room = KEPT.saturating_sub(kept.len());
            kept.extend_from_slice(&buffer[..n.min(room)]);
        }
        // Nobody may wait any more.
        let _ = send.send(kept);
    });
    receive
}

fn last_lines(text: &str) -> String {
    let lines: Vec<&str> = text.lines().filter(|line| !line.trim().is_empty()).collect();
    lines[lines.len().saturating_sub(LAST_WORDS)..].join("\n")
}

#[cfg(unix)]
fn end(status: ExitStatus) -> String {
    use std::os::unix::process::ExitStatusExt;
    match status.signal() {
        Some(signal) => match signal_name(signal) {
            Some(name) => format!("was ended by signal {signal} ({name})"),
            None => format!("was ended by signal {signal}"),
        },
        None => format!("ended the process ({status})"),
    }
}

#[cfg(unix)]
fn signal_name(signal: i32) -> Option<&'static str> {
    Some(match signal {
        libc::SIGABRT => "SIGABRT",
        libc::SIGALRM => "SIGALRM",
        libc::SIGBUS => "SIGBUS",
        libc::SIGFPE => "SIGFPE",
        libc::SIGILL => "SIGILL",
        libc::SIGKILL => "SIGKILL",
        libc::SIGSEGV => "SIGSEGV",
        libc::SIGSYS => "SIGSYS",
        libc::SIGTRAP => "SIGTRAP",
        _ => return None,
    })
}

#[cfg(not(unix))]
fn end(status: ExitStatus) -> String {
    format!("ended the process ({status})")
}
