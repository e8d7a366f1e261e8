//! The requests of a batch, in the order of its lines.

use super::answer::Key;
use crate::{
    args::unreadable,
    lines::{Ended, Lines},
    output,
};
use infer::Error;
use std::{
    fs::File,
    io::{BufRead, BufReader, stdin},
    path::{Path, PathBuf},
};

/// Bytes of a line that are read at most.
pub(crate) const LONGEST: usize = 16 << 20;

/// Where requests come from.
pub(crate) struct Input {
    /// `None` is stdin.
    path: Option<PathBuf>,
}

/// A line that is not blank.
pub(crate) struct Entry {
    /// The request's number, from 0.
    pub(crate) index: u64,
    /// The line's number, from 1, as an editor counts.
    pub(crate) line: u64,
    pub(crate) key: Key,
    /// What stands there, or why it cannot be read.
    pub(crate) text: Result<String, String>,
}

/// The entries of an input, one after another.
pub(crate) struct Entries<'s> {
    lines: Lines<Box<dyn BufRead + Send>>,
    settings: &'s str,
    name: String,
    index: u64,
}

impl Input {
    /// `-` is stdin.
    pub(crate) fn new(path: &Path) -> Self {
        Self { path: (path != Path::new("-")).then(|| path.to_owned()) }
    }

    /// Whether it can be read twice.
    pub(crate) fn is_file(&self) -> bool {
        self.path.as_ref().is_some_and(|path| path.is_file())
    }

    /// That it is there, so that nothing is loaded or written for one that is not.
    pub(crate) fn check(&self) -> Result<(), Error> {
        match &self.path {
            Some(path) => path.metadata().map(drop).map_err(|error| unreadable(&path.display().to_string(), error)),
            None => Ok(()),
        }
    }

    /// Whether it is the file at this path.
    pub(crate) fn is_at(&self, path: &Path) -> bool {
        let one = self.path.as_ref().and_then(|path| path.canonicalize().ok());
        one.is_some() && one == path.canonicalize().ok()
    }

    /// Reads it from its beginning. `settings` is what the answers depend on besides their lines.
    pub(crate) fn entries<'s>(&self, settings: &'s str) -> Result<Entries<'s>, Error> {
        let (name, source): (_, Box<dyn BufRead + Send>) = match &self.path {
            Some(path) => {
                let name = path.display().to_string();
                let file = File::open(path).map_err(|error| unreadable(&name, error))?;
                (name, Box::new(BufReader::with_capacity(1 << 16, file)))
            }
            None => ("stdin".to_owned(), Box::new(BufReader::new(stdin()))),
        };
        Ok(Entries { lines: Lines::new(source, LONGEST), settings, name, index: 0 })
    }
}

impl Iterator for Entries<'_> {
    type Item = Result<Entry, Error>;

    fn next(&mut self) -> Option<Self::Item> {
        let mut bytes = Vec::new();
        let ended = loop {
            match self.lines.next(&mut bytes) {
                Ok(Some(ended)) => {
                    if self.lines.number() == 1 && bytes.starts_with("\u{feff}".as_bytes()) {
                        bytes.drain(.."\u{feff}".len());
                    }
                    if !bytes.trim_ascii().is_empty() {
                        break ended;
                    }
                }
                Ok(None) => return None,
                Err(error) => return Some(Err(unreadable(&self.name, error))),
            }
        };
        let key = Key::new(self.settings, &bytes);
        let text = match ended {
            Ended::TooLong => Err(format!("it has more than {}", output::bytes(LONGEST as u64))),
            Ended::ByBreak | Ended::ByFile => String::from_utf8(bytes).map_err(|error| {
                format!("it is not UTF-8 text: byte {} is where it stops to be", error.utf8_error().valid_up_to())
            }),
        };
        let entry = Entry { index: self.index, line: self.lines.number(), key, text };
        self.index += 1;
        Some(Ok(entry))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entries(bytes: &[u8]) -> Vec<(u64, u64, Result<String, String>)> {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("in");
        std::fs::write(&path, bytes).unwrap();
        let input = Input::new(&path);
        assert!(input.is_file() && input.is_at(&path) && !input.is_at(folder.path()));
        let entry = |entry: Result<Entry, _>| entry.map(|entry| (entry.index, entry.line, entry.text)).unwrap();
        input.entries("").unwrap().map(entry).collect()
    }

    #[test]
    fn blank_lines_are_no_requests() {
        let text = |index, line, text: &str| (index, line, Ok(text.to_owned()));
        assert_eq!(entries(b""), []);
        assert_eq!(entries(b"\n \t\r\n"), []);
        assert_eq!(entries(b"\na\r\n\r\n b\n\n"), [text(0, 2, "a"), text(1, 4, " b")]);
        assert_eq!(entries(b"\xef\xbb\xbfa\n\xef\xbb\xbfb"), [text(0, 1, "a"), text(1, 2, "\u{feff}b")]);
    }

    #[test]
    fn a_line_that_cannot_be_read_is_one_of_many() {
        let long = [&b"\""[..], &vec![b'x'; LONGEST], b"\nb"].concat();
        let read = entries(&long);
        assert_eq!(read[0], (0, 1, Err("it has more than 16 MiB".to_owned())));
        assert_eq!(read[1].2.as_deref(), Ok("b"));
        let read = entries(b"caf\xe9\nb");
        assert_eq!(read[0].2.as_ref().unwrap_err(), "it is not UTF-8 text: byte 3 is where it stops to be");
        assert_eq!(read[1].2.as_deref(), Ok("b"));
    }

    #[test]
    fn a_key_does_not_know_how_a_line_ends() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("in");
        std::fs::write(&path, "a\r\n\na\nb").unwrap();
        let keys =
            |settings| Input::new(&path).entries(settings).unwrap().map(|entry| entry.unwrap().key).collect::<Vec<_>>();
        let first = keys("one");
        assert!(first[0] == first[1] && first[0] != first[2]);
        assert_ne!(first[0], keys("two")[0]);
    }
}
