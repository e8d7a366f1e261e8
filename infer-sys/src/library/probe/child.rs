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
pub(super) fn run(
    program: &Program,
    path: &Path,
    file: Option<&File>,
    patience: Duration,
    arguments: &[&str],
) -> Result<Child, String> {
    let cannot = |error: std::io::Error| format!("{}: {error}", program.path.display());
    let mut command = Command::new(program.command());
    // A little later than we, who can say why.
    let seconds = patience.as_secs().saturating_add(2).min(i32::MAX as u64);
    match file.filter(|_| cfg!(any(target_os = "linux", target_os = "android"))) {
        // The very file that was checked, whatever has its name by now.
        Some(file) => command.arg("/proc/self/fd/0").stdin(file.try_clone().map_err(cannot)?),
        None => command.arg(path).stdin(Stdio::null()),
    };
    command.arg(seconds.to_string()).args(arguments).stdout(Stdio::piped()).stderr(Stdio::piped());
    if places::privileged() {
        // Whoever started this process chose its environment.
        command.env_clear();
    }
    let mut child = command.spawn().map_err(cannot)?;
    let outcome = follow(&mut child, patience);
    if outcome.is_err() {
        // It may have ended: then there is nobody to kill, and nobody to wait for.
        let _ = child.kill();
        let _ = child.wait();
    }
    outcome.map_err(cannot)
}

/// Reads what it says until it ends.
fn follow(child: &mut std::process::Child, patience: Duration) -> std::io::Result<Child> {
    let answer = child.stdout.take().map(collect).transpose()?;
    let said = child.stderr.take().map(collect).transpose()?;
    let ended = wait(child, patience)?;
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
        match child.try_wait() {
            Ok(Some(status)) => return Ok((!status.success()).then(|| end(status))),
            Ok(None) => {}
            // Where a process ignores the ends of its children nobody is told how they ended: the answer has to do.
            Err(error) if is_gone(&error) => return Ok(None),
            Err(error) => return Err(error),
        }
        if begin.elapsed() >= patience {
            // It may have ended just now: then there is nobody to kill, and perhaps nobody to wait for.
            let _ = child.kill();
            let _ = child.wait();
            return Ok(Some(format!("was not done after {:.1} s", patience.as_secs_f64())));
        }
        thread::sleep(POLL);
    }
}

/// Reads to the end, on a thread of its own, and sends the beginning.
fn collect(mut from: impl Read + Send + 'static) -> std::io::Result<mpsc::Receiver<Vec<u8>>> {
    let (send, receive) = mpsc::channel();
    let read = move || {
        let (mut kept, mut buffer) = (Vec::new(), [0; 4096]);
        while let Ok(n @ 1..) = from.read(&mut buffer) {
            let room = KEPT.saturating_sub(kept.len());
            kept.extend_from_slice(&buffer[..n.min(room)]);
        }
        // Nobody may wait any more.
        let _ = send.send(kept);
    };
    thread::Builder::new().name("infer-probe".to_owned()).spawn(read)?;
    Ok(receive)
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
fn is_gone(error: &std::io::Error) -> bool {
    error.raw_os_error() == Some(libc::ECHILD)
}

#[cfg(not(unix))]
fn is_gone(_error: &std::io::Error) -> bool {
    false
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
