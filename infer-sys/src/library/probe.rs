//! A library is tried in a child process first: one that aborts, hangs, crashes or ends the process does it there.
//!
//! The child is a small program that `infer setup` puts beside the library (`infer_probe.c`, `infer_onnx_probe.c`). It opens the library,
//! starts it, and says on stdout how far it came and what it saw. What it says is believed only where it is bad news: the library is checked again when it
//! is opened here.

mod child;
mod program;

use std::fs::{File, Metadata};
use std::path::Path;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use super::Runtime;
use crate::Refusal;

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
pub(super) fn library<R: Runtime>(
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
    let program = match program::find(R::PROBE, path, cache) {
        Ok(program) => program,
        Err(why) => return unless_asked(why),
    };
    match child::run(&program, path, file, options.patience, R::PROBE_ARGUMENTS) {
        Err(why) => unless_asked(why),
        Ok(child) => verdict::<R>(&child),
    }
}

/// What became of the child.
struct Child {
    /// How it ended, in words, where that was not well.
    ended: Option<String>,
    answer: String,
    said: String,
}

/// What the child saw: a word and what belongs to it, a line each.
pub(crate) struct Facts<'a>(Vec<(&'a str, &'a str)>);

impl<'a> Facts<'a> {
    /// What belongs to the first of these words, if it was said.
    pub(crate) fn find(&self, word: &str) -> Option<&'a str> {
        self.0.iter().find(|(said, _)| *said == word).map(|(_, text)| *text)
    }
}

fn verdict<R: Runtime>(child: &Child) -> Result<(), Refusal> {
    let refused = |outcome: String| Err(Refusal::Probe { outcome, said: child.said.clone() });
    let mut lines = child.answer.lines();
    let whole = child.answer.lines().last() == Some("done");
    if let Some(ended) = &child.ended {
        return refused(ended.clone());
    }
    // An answer begins with the program's name, and the version of what it knows.
    let greets = |line: &str| line.split_once(' ').is_some_and(|(name, _)| name == R::PROBE);
    if !lines.next().is_some_and(greets) || !whole {
        return refused("ended the process".to_owned());
    }
    let facts = Facts(lines.filter_map(|line| line.split_once(' ')).collect());
    if let Some(why) = facts.find("unloadable") {
        return Err(Refusal::NotALibrary(why.to_owned()));
    }
    if let Some(why) = facts.find("symbol") {
        return Err(Refusal::NoSymbol(why.to_owned()));
    }
    if let Some(why) = facts.find("failed") {
        return refused(format!("did not start: {why}"));
    }
    R::judge(&facts)
}

#[cfg(all(test, feature = "llama-load"))]
mod tests {
    use super::*;
    use crate::llama::Api;
    use crate::llama::bindings::{INFER_LLAMA_DOOR_VERSION, infer_llama_table};

    fn after(answer: &str) -> Result<(), String> {
        let child = Child { ended: None, answer: format!("infer-llama-probe 1\n{answer}"), said: "words".into() };
        verdict::<Api>(&child).map_err(|refusal| refusal.to_string())
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
        assert!(verdict::<Api>(&stranger).is_err(), "it does not greet");
        let crashed = Child { ended: Some("crashed".into()), answer: String::new(), said: "last words".into() };
        let text = verdict::<Api>(&crashed).unwrap_err().to_string();
        assert!(text.contains("crashed") && text.contains("last words"), "{text}");
    }
}
