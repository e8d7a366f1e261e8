//! Instructions that a process carries out, as valgrind's callgrind counts them.

use kit::child::{Outcome, run_command};
use std::{
    collections::HashMap,
    ffi::OsString,
    path::{Path, PathBuf},
    process::Command,
    time::Duration,
};

/// What a program begins with: the C library's function that calls `main`.
const START: &str = "__libc_start_main";

/// Whether valgrind is there.
pub fn is_there() -> bool {
    Command::new("valgrind").arg("--version").output().is_ok_and(|output| output.status.success())
}

/// Instructions by the program or the library that they stand in.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Counts {
    /// Its own, by its path.
    own: HashMap<String, f64>,
    /// Those of calls from one to another, with all that came of them. The call that a program begins with is none: all of it comes back.
    calls: HashMap<(String, String), f64>,
}

impl Counts {
    /// Runs a program to its end; what callgrind writes lies in `folder` meanwhile.
    ///
    /// # Errors
    /// There is no valgrind, the program fails in it or takes longer than `patience`: says so.
    pub fn take(command: &Command, folder: &Path, patience: Duration) -> Result<Self, String> {
        let file = Unfiled(folder.join(format!("callgrind-{}", std::process::id())));
        let mut out = OsString::from("--callgrind-out-file=");
        out.push(&file.0);
        let mut valgrind = Command::new("valgrind");
        valgrind.args(["-q", "--tool=callgrind", "--compress-strings=no", "--compress-pos=no"]).arg(out);
        valgrind.arg(command.get_program()).args(command.get_args());
        for (name, value) in command.get_envs() {
            match value {
                Some(value) => valgrind.env(name, value),
                None => valgrind.env_remove(name),
            };
        }
        match run_command(valgrind, patience) {
            Outcome::Ok(_) => {}
            other => return Err(format!("{command:?} in valgrind: {}", other.into_answer().unwrap_err())),
        }
        Self::read(&std::fs::read_to_string(&file.0).map_err(|error| format!("{}: {error}", file.0.display()))?)
    }

    /// Reads what callgrind wrote: lines with costs under the names of a library and a function; and costs of calls, each with the name
    /// of the library that was called where that is another one.
    ///
    /// # Errors
    /// A line with a cost has none: says which.
    pub fn read(text: &str) -> Result<Self, String> {
        let mut counts = Self::default();
        let (mut caller, mut called, mut is_call, mut is_start) = (String::new(), None, false, false);
        for line in text.lines() {
            if let Some(library) = line.strip_prefix("ob=") {
                library.clone_into(&mut caller);
            } else if let Some(library) = line.strip_prefix("cob=") {
                called = Some(library.to_owned());
            } else if let Some(function) = line.strip_prefix("cfn=") {
                is_start = function.starts_with(START);
            } else if line.starts_with("calls=") {
                is_call = true;
            } else if line.starts_with(|first: char| first.is_ascii_digit()) {
                let cost: f64 = line.split(' ').nth(1).and_then(|cost| cost.parse().ok()).ok_or(line)?;
                match (std::mem::take(&mut is_call), called.take()) {
                    (false, _) => *counts.own.entry(caller.clone()).or_default() += cost,
                    (true, Some(called)) if !is_start => {
                        *counts.calls.entry((caller.clone(), called)).or_default() += cost
                    }
                    (true, _) => {}
                }
            }
        }
        Ok(counts)
    }

    /// All instructions.
    pub fn all(&self) -> f64 {
        self.own(|_| true)
    }

    /// The instructions of those libraries themselves.
    pub fn own(&self, whose: impl Fn(&str) -> bool) -> f64 {
        self.own.iter().filter(|(library, _)| whose(library)).map(|(_, cost)| cost).sum()
    }

    /// What calls from the one kind of library to the other took.
    pub fn calls(&self, from: impl Fn(&str) -> bool, to: impl Fn(&str) -> bool) -> f64 {
        self.calls.iter().filter(|((caller, called), _)| from(caller) && to(called)).map(|(_, cost)| cost).sum()
    }
}

/// A file that goes with what made it.
struct Unfiled(PathBuf);

impl Drop for Unfiled {
    fn drop(&mut self) {
        // One that stays behind lies in the build folder, where it harms nobody.
        let _ = std::fs::remove_file(&self.0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const WRITTEN: &str = "\
# callgrind format
version: 1
positions: line
events: Ir

ob=/p/program
fl=???
fn=_start
cob=/lib/libc.so.6
cfi=???
cfn=__libc_start_main@@GLIBC_2.34
calls=1 0
0 137

fn=main
0 30
cob=/lib/libc.so.6
cfi=???
cfn=malloc
calls=2 0
0 100
cfn=helper
calls=1 0
0 7

fn=helper
12 7

ob=/lib/libc.so.6
fn=malloc
0 60
cfn=more
calls=2 0
0 40

fn=more
0 40

fn=__libc_start_main@@GLIBC_2.34
cob=/p/program
cfi=???
cfn=main
calls=1 0
0 137

totals: 137
";

    #[test]
    fn costs_are_those_of_their_library_and_calls_are_no_costs_of_their_own() {
        let counts = Counts::read(WRITTEN).unwrap();
        let [is_program, is_libc] = ["program", "libc.so.6"].map(|name| move |library: &str| library.ends_with(name));
        assert_eq!((counts.all(), counts.own(is_program), counts.own(is_libc)), (137.0, 37.0, 100.0));
        assert_eq!((counts.calls(is_program, is_libc), counts.calls(is_libc, is_program)), (100.0, 137.0));
        assert_eq!(counts.calls(is_program, is_program), 0.0);
    }

    #[test]
    fn a_cost_that_is_none_is_an_error() {
        assert_eq!(Counts::read("ob=a\n0 some").unwrap_err(), "0 some");
        assert_eq!(Counts::read("ob=a\n17").unwrap_err(), "17");
    }
}
