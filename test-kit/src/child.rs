//! A case in a process of its own.
//!
//! Native code that is fed nonsense may abort, crash or hang. A test that wants to know runs itself again as a child:
//!
//! ```text
//! #[test]
//! fn survives() {
//!     child::cases("survives", &["empty", "truncated"], |case| format!("{:?}", open(case)));
//! }
//! ```
//!
//! Or it has another one open a file:
//!
//! ```text
//! /// Not a case by itself: what the children run.
//! #[test]
//! fn open() {
//!     let Some(path) = child::file() else { return };
//!     child::answer(&format!("{:?}", Model::open(path)));
//! }
//!
//! #[test]
//! fn an_empty_file_is_refused() {
//!     let said = child::open_in_child("open", &folder.file("empty", "")).unwrap();
//!     assert!(said.contains("empty"));
//! }
//! ```

use std::{
    ffi::OsStr,
    io::{Read, Write},
    path::{Path, PathBuf},
    process::{Child, Command, ExitStatus, Output, Stdio},
    thread,
    time::{Duration, Instant},
};

/// Set for a child: which case it is to run.
const CASE: &str = "INFER_TESTS_CASE";
/// Stands before each line of a child's answer, to tell it from what the test harness prints.
const MARK: &str = "\u{1}answer ";

/// Longer than any case takes on the slowest machine; what is not over by then hangs.
pub const LIMIT: Duration = Duration::from_secs(60);

/// The same for a whole program at work: a command on a model, a suite of tests, a script.
pub const LONG: Duration = Duration::from_secs(600);

/// How a child ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// It came to its end, with this answer.
    Ok(String),
    /// It ended by itself, but not well: it panicked, or called `exit`. With the exit code and what it printed.
    Failed(Option<i32>, String),
    /// A signal ended it (6 is `abort`, 11 a segmentation fault), with what it printed.
    Abort(i32, String),
    /// It had to be ended.
    Hang,
}

impl Outcome {
    /// The answer; where there is none, why, in words.
    ///
    /// # Errors
    /// Every other outcome.
    pub fn into_answer(self) -> Result<String, String> {
        match self {
            Self::Ok(answer) => Ok(answer),
            Self::Failed(code, output) => Err(format!("exit code {code:?}\n{output}")),
            Self::Abort(signal, output) => Err(format!("ended by signal {signal}\n{output}")),
            Self::Hang => Err("hangs".to_owned()),
        }
    }

    /// The answer.
    ///
    /// # Panics
    /// When there is none; `case` is named.
    #[track_caller]
    pub fn expect_ok(self, case: &str) -> String {
        self.into_answer().unwrap_or_else(|end| panic!("{case}: {end}"))
    }
}

/// In a child, the case it is to run; `None` in the test itself.
pub fn case() -> Option<String> {
    std::env::var_os(CASE).map(|case| case.to_string_lossy().into_owned())
}

/// In a child, the file it is to open, with [`open_in_child`]; `None` in the test itself.
pub fn file() -> Option<PathBuf> {
    std::env::var_os(CASE).map(PathBuf::from)
}

/// In a child, gives `text` to the parent as (a further part of) its answer.
pub fn answer(text: &str) {
    let mut out = std::io::stdout().lock();
    for line in text.split('\n') {
        writeln!(out, "\n{MARK}{line}").expect("the parent reads to the end");
    }
    out.flush().expect("the parent reads to the end");
}

/// Runs `case` of the test called `test` (its full path, such as `module::name`) of this very binary.
///
/// # Panics
/// When no child can be made.
pub fn run(test: &str, case: impl AsRef<OsStr>, limit: Duration) -> Outcome {
    run_within(None, test, case, limit)
}

/// The same, in a child that has no more than so many bytes of address space, where systems know such a thing.
fn run_within(room: Option<u64>, test: &str, case: impl AsRef<OsStr>, limit: Duration) -> Outcome {
    let program = std::env::current_exe().expect("the running program has a path");
    let mut command = match room.filter(|_| cfg!(unix)) {
        Some(bytes) => {
            let mut shell = Command::new("sh");
            shell.args(["-c", &format!("ulimit -v {} && exec \"$0\" \"$@\"", bytes >> 10)]).arg(program);
            shell
        }
        None => Command::new(program),
    };
    command.args(["--exact", test, "--nocapture", "--test-threads=1", "--include-ignored"]).env(CASE, case.as_ref());
    let outcome = run_command(command, limit);
    match &outcome {
        Outcome::Ok(output) if output.contains("running 0 tests") => panic!("there is no test called {test:?}"),
        _ => {}
    }
    match outcome {
        Outcome::Ok(output) => Outcome::Ok(answer_in(&output)),
        other => other,
    }
}

/// Runs the test called `test` of this very binary in a child, with `file` for it to open. What it answered; an error when it ended otherwise
/// than by itself, or without an answer.
///
/// # Errors
/// How it ended, in words.
pub fn open_in_child(test: &str, file: &Path) -> Result<String, String> {
    let answer = run(test, file, LIMIT).into_answer()?;
    if answer.is_empty() { Err("it said nothing".to_owned()) } else { Ok(answer) }
}

/// Runs `work` once for each of `cases`, each in a child, and returns the answers in order.
///
/// # Panics
/// When a child aborts, crashes, panics or hangs.
#[track_caller]
pub fn cases(test: &str, cases: &[&str], work: impl FnOnce(&str) -> String) -> Vec<String> {
    all(None, test, cases, work)
}

/// The same, in children that have no more than so many bytes of address space: what asks for more is told that there is none.
///
/// # Panics
/// When a child aborts, crashes, panics or hangs.
#[track_caller]
pub fn cases_within(room: u64, test: &str, cases: &[&str], work: impl FnOnce(&str) -> String) -> Vec<String> {
    all(Some(room), test, cases, work)
}

#[track_caller]
fn all(room: Option<u64>, test: &str, cases: &[&str], work: impl FnOnce(&str) -> String) -> Vec<String> {
    if let Some(case) = case() {
        answer(&work(&case));
        return Vec::new();
    }
    cases.iter().map(|case| run_within(room, test, case, LIMIT).expect_ok(case)).collect()
}

/// Runs a command to its end; the output is all of stdout and stderr.
///
/// # Panics
/// When it cannot be started.
pub fn run_command(mut command: Command, limit: Duration) -> Outcome {
    let Some(Output { status, stdout, stderr }) = wait(start(&mut command), limit) else { return Outcome::Hang };
    let output = [stdout, stderr].map(|bytes| String::from_utf8_lossy(&bytes).into_owned()).concat();
    match signal(status) {
        _ if status.success() => Outcome::Ok(output),
        Some(signal) => Outcome::Abort(signal, output),
        None => Outcome::Failed(status.code(), output),
    }
}

/// What [`Command::output`] gives, of a command that has [`LONG`].
///
/// # Panics
/// When it cannot be started, or had to be ended.
#[track_caller]
pub fn output(command: &mut Command) -> Output {
    wait(start(command), LONG).unwrap_or_else(|| panic!("{command:?} hangs"))
}

/// What [`Child::wait_with_output`] gives, of a child that has [`LONG`] from now on.
///
/// # Panics
/// When it had to be ended.
#[track_caller]
pub fn ended(child: Child) -> Output {
    wait(child, LONG).expect("the child hangs")
}

/// The same beside this thread, which has the child's pipes and may wait for what comes through them: nothing does any more when it was ended.
pub fn watched(child: Child, limit: Duration) -> thread::JoinHandle<Output> {
    thread::spawn(move || wait(child, limit).expect("the child hangs"))
}

fn start(command: &mut Command) -> Child {
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    command.spawn().unwrap_or_else(|error| panic!("cannot run {command:?}: {error}"))
}

/// `None` when it had to be ended.
fn wait(mut child: Child, limit: Duration) -> Option<Output> {
    drop(child.stdin.take());
    // Both are drained while it runs: a full pipe would hold it for ever.
    let (stdout, stderr) = (drain(child.stdout.take()), drain(child.stderr.take()));
    let end = Instant::now() + limit;
    let status = loop {
        if let Some(status) = child.try_wait().expect("a child can be waited for") {
            break status;
        }
        if Instant::now() > end {
            child.kill().expect("a child can be ended");
            child.wait().expect("a child can be waited for");
            // The pipes are left to themselves: a child of the child's may hold them.
            return None;
        }
        thread::sleep(Duration::from_millis(2));
    };
    let [stdout, stderr] = [stdout, stderr].map(|reader| reader.join().expect("a reader does not panic"));
    Some(Output { status, stdout, stderr })
}

fn drain(from: Option<impl Read + Send + 'static>) -> thread::JoinHandle<Vec<u8>> {
    thread::spawn(move || {
        let mut bytes = Vec::new();
        if let Some(mut from) = from {
            // What was read before an error is still worth showing.
            let _ = from.read_to_end(&mut bytes);
        }
        bytes
    })
}

#[cfg(unix)]
fn signal(status: ExitStatus) -> Option<i32> {
    std::os::unix::process::ExitStatusExt::signal(&status)
}

#[cfg(not(unix))]
fn signal(_: ExitStatus) -> Option<i32> {
    None
}

fn answer_in(output: &str) -> String {
    let lines: Vec<&str> = output.lines().filter_map(|line| line.strip_prefix(MARK)).collect();
    lines.join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tells_the_ends_of_a_child_apart() {
        const NAME: &str = "child::tests::tells_the_ends_of_a_child_apart";
        match case().as_deref() {
            None => {}
            Some("answers") => return answer("two\nlines"),
            Some("panics") => panic!("as it should"),
            Some("aborts") => std::process::abort(),
            Some("says nothing") => return,
            Some("asks for memory") => return answer(&format!("{}", Vec::<u8>::new().try_reserve(1 << 31).is_ok())),
            Some("hangs") => loop {
                thread::park();
            },
            Some(path) => return answer(&format!("{} {}", path == file().unwrap().display().to_string(), path)),
        }
        assert_eq!(run(NAME, "answers", LIMIT), Outcome::Ok("two\nlines".to_owned()));
        assert!(matches!(run(NAME, "panics", LIMIT), Outcome::Failed(_, output) if output.contains("as it should")));
        #[cfg(unix)]
        assert!(matches!(run(NAME, "aborts", LIMIT), Outcome::Abort(6, _)));
        assert_eq!(run(NAME, "hangs", Duration::from_millis(300)), Outcome::Hang);
        let mut again = Command::new(std::env::current_exe().unwrap());
        again.args(["--exact", NAME, "--nocapture"]).env(CASE, "answers");
        let (one, other) = (output(&mut again), ended(again.spawn().unwrap()));
        assert!(one.status.success() && one.status == other.status);
        assert_eq!(answer_in(&String::from_utf8_lossy(&one.stdout)), "two\nlines");
        assert_eq!(answer_in(&String::from_utf8_lossy(&other.stdout)), "two\nlines");
        let mut hangs = again.env(CASE, "hangs").spawn().unwrap();
        let mut said = hangs.stdout.take().unwrap();
        let watched = watched(hangs, Duration::from_millis(300));
        said.read_to_end(&mut Vec::new()).unwrap();
        assert!(watched.join().is_err());
        #[cfg(target_os = "linux")]
        assert_eq!(cases_within(1 << 30, NAME, &["asks for memory"], |_| unreachable!()), ["false"]);
        assert_eq!(cases(NAME, &["asks for memory"], |_| unreachable!()), ["true"]);
        assert_eq!(open_in_child(NAME, Path::new("a/file")).unwrap(), "true a/file");
        assert!(open_in_child(NAME, Path::new("says nothing")).unwrap_err().contains("nothing"));
    }

    #[test]
    #[should_panic(expected = "no test called")]
    fn a_name_that_is_no_test_is_not_a_pass() {
        run("child::tests::misspelt", "x", LIMIT);
    }
}
