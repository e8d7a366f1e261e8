//! A library is tried in a child process first: one that aborts, hangs, crashes or ends the process does it there.
//!
//! The child is a small program that `infer setup` puts beside the library (`infer_probe.c`). It opens the library, starts it, asks for its
//! devices, and says on stdout how far it came. What it says is believed only where it is bad news: the library is checked again when it
//! is opened here.

mod child;
mod program;

use std::fs::{File, Metadata};
use std::path::Path;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use crate::Refusal;
use crate::llama::handshake;

/// How long a probe may take by default: a driver that is started for the first time may compile for a while.
pub(super) const PATIENCE: Duration = Duration::from_secs(60);

/// Whether libraries are probed, and how.
#[derive(Clone, Debug)]
pub(super) struct Options {
    /// `None`: where there is a program to do it.
    pub(super) wanted: Option<bool>,
    pub(super) patience: Duration,
}

impl Default for Options {
    fn default() -> Self {
        Self { wanted: None, patience: PATIENCE }
    }
}

/// Files that this process has opened as doors: what was done once without harm needs no second trial.
static OPENED: Mutex<Vec<Identity>> = Mutex::new(Vec::new());

/// A file, and the contents it had.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Identity(u64, u64, u64, i64, i64);

impl Identity {
    #[cfg(unix)]
    pub(super) fn of(metadata: &Metadata) -> Self {
        use std::os::unix::fs::MetadataExt;
        Self(metadata.dev(), metadata.ino(), metadata.size(), metadata.mtime(), metadata.mtime_nsec())
    }

    #[cfg(not(unix))]
    pub(super) fn of(metadata: &Metadata) -> Self {
        Self(0, 0, metadata.len(), 0, 0)
    }

    /// To be called when the file has become a door of this process.
    pub(super) fn remember(self) {
        let mut opened = OPENED.lock().unwrap_or_else(PoisonError::into_inner);
        if !opened.contains(&self) {
            opened.push(self);
        }
    }

    fn is_known(&self) -> bool {
        OPENED.lock().unwrap_or_else(PoisonError::into_inner).contains(self)
    }
}

/// Tries the library at `path` in a child, as the options say. `file` is the open file where its bytes were checked: then the child opens
/// these, and none that took their place. `cache` is the folder with the probe of last resort.
pub(super) fn library(
    options: &Options,
    path: &Path,
    file: Option<&File>,
    identity: &Identity,
    cache: Option<&Path>,
) -> Result<(), Refusal> {
    if options.wanted == Some(false) || identity.is_known() {
        return Ok(());
    }
    let unless_asked = |why: String| if options.wanted.is_some() { Err(Refusal::NoProbe(why)) } else { Ok(()) };
    let program = match program::find(path, cache) {
        Ok(program) => program,
        Err(why) => return unless_asked(why),
    };
    match child::run(&program, path, file, options.patience) {
        Err(why) => unless_asked(why),
        Ok(child) => verdict(&child),
    }
}

/// What became of the child.
struct Child {
    /// How it ended, in words, where that was not well.
    ended: Option<String>,
    answer: String,
    said: String,
}

/// The name and version that the answer begins with.
const GREETING: &str = "infer-llama-probe ";

fn verdict(child: &Child) -> Result<(), Refusal> {
    let refused = |outcome: String| Err(Refusal::Probe { outcome, said: child.said.clone() });
    let mut lines = child.answer.lines();
    let whole = child.answer.lines().last() == Some("done");
    if let Some(ended) = &child.ended {
        return refused(ended.clone());
    }
    if !lines.next().is_some_and(|line| line.starts_with(GREETING)) || !whole {
        return refused("ended the process".to_owned());
    }
    let mut seen = [None; 2];
    for line in lines {
        match line.split_once(' ') {
            Some(("unloadable", why)) => return Err(Refusal::NotALibrary(why.to_owned())),
            Some(("symbol", why)) => return Err(Refusal::NoSymbol(why.to_owned())),
            Some(("failed", why)) => return refused(format!("did not start: {why}")),
            Some(("version", number)) => seen[0] = number.parse().ok(),
            Some(("size", number)) => seen[1] = number.parse().ok(),
            _ => {}
        }
    }
    match seen {
        [Some(version), Some(size)] => handshake::shape(version, size),
        _ => Err(Refusal::NoTable),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::llama::bindings::{INFER_LLAMA_DOOR_VERSION, infer_llama_table};

    fn after(answer: &str) -> Result<(), String> {
        let child = Child { ended: None, answer: format!("{GREETING}1\n{answer}"), said: "words".into() };
        verdict(&child).map_err(|refusal| refusal.to_string())
    }

    #[test]
    fn only_a_whole_answer_is_good_news() {
        let version = INFER_LLAMA_DOOR_VERSION;
        let good = format!("version {version}\nsize {}\ndevice CPU\ndone\n", size_of::<infer_llama_table>());
        assert_eq!(after(&good), Ok(()));
        for (answer, words) in [
            (good.replace("done\n", ""), "ended the process"),
            (format!("{good}more\n"), "ended the process"),
            ("done\n".to_owned(), "no table"),
            (good.replace(&format!("version {version}"), "version 7"), "7 found"),
            (format!("version {version}\nsize 8\ndone\n"), "of 8 found"),
            (good.replace("device CPU", "failed no driver"), "did not start: no driver"),
            ("unloadable no such file\ndone\n".to_owned(), "not loadable: no such file"),
            ("symbol none\ndone\n".to_owned(), "not a door: none"),
        ] {
            let text = after(&answer).unwrap_err();
            assert!(text.contains(words), "{answer:?}: {text}");
        }
        let stranger = Child { ended: None, answer: good, said: String::new() };
        assert!(verdict(&stranger).is_err(), "it does not greet");
        let crashed = Child { ended: Some("crashed".into()), answer: String::new(), said: "last words".into() };
        let text = verdict(&crashed).unwrap_err().to_string();
        assert!(text.contains("crashed") && text.contains("last words"), "{text}");
    }
}
