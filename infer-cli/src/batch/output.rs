//! The file that answers go to, and what a run before has left in it.

use super::answer::{Answer, Key, Mark};
use crate::{
    failure::Failure,
    lines::{Ended, Lines},
};
use infer::{Error, ErrorKind};
use std::{
    collections::HashMap,
    fs::{File, OpenOptions, TryLockError},
    io::{self, BufReader, BufWriter, Read, Seek, SeekFrom, Write},
    ops::Range,
    path::{Path, PathBuf},
};

/// Bytes of a line that are read at most.
const LONGEST: usize = 256 << 20;

/// The file, with every answer on a line of its own.
pub(crate) struct Output {
    file: File,
    path: PathBuf,
}

/// The file as a run before has left it, or not there at all: nothing of it is changed until it is known to be the same batch's.
pub(crate) struct Earlier {
    output: Output,
    answered: HashMap<u64, Key>,
    /// Where the answers lie that stay: all but errors, which are tried again, and a last line that was not written to its end.
    kept: Vec<Range<u64>>,
    bytes: u64,
}

impl Output {
    fn open(path: &Path) -> Result<Self, Failure> {
        let file = OpenOptions::new().append(true).create(true).open(path);
        let file = file.map_err(|error| failed("write", path, error))?;
        match file.try_lock() {
            Err(TryLockError::WouldBlock) => {
                let message = format!("another process is writing {}", path.display());
                return Err(Error::new(ErrorKind::Io, message).into());
            }
            // Where a file system has no locks, it goes without.
            Err(TryLockError::Error(_)) | Ok(()) => {}
        }
        Ok(Self { file, path: path.to_owned() })
    }

    /// Adds an answer. It is in the file when this returns: a process that is killed then has not lost it.
    pub(crate) fn write(&mut self, answer: &Answer<'_>) -> Result<(), Failure> {
        let mut line = serde_json::to_vec(answer).map_err(|error| self.failed("write", error.into()))?;
        line.push(b'\n');
        self.file.write_all(&line).map_err(|error| self.failed("write", error))
    }

    /// Has the system write what it holds back.
    pub(crate) fn sync(&self) -> Result<(), Failure> {
        match self.file.sync_data() {
            // A pipe or a device holds nothing back.
            Err(error) if error.kind() != io::ErrorKind::InvalidInput => Err(self.failed("write", error)),
            _ => Ok(()),
        }
    }

    fn failed(&self, what: &str, error: io::Error) -> Failure {
        failed(what, &self.path, error)
    }
}

impl Earlier {
    /// Opens the file, and makes it where there is none. Nothing of it stays, unless it is [scanned](Self::scan).
    pub(crate) fn open(path: &Path) -> Result<Self, Failure> {
        let output = Output::open(path)?;
        let data = output.file.metadata().map_err(|error| output.failed("read", error))?;
        // A pipe or a device has no content.
        let bytes = if data.is_file() { data.len() } else { 0 };
        Ok(Self { output, answered: HashMap::new(), kept: Vec::new(), bytes })
    }

    /// Reads which requests are answered.
    pub(crate) fn scan(mut self) -> Result<Self, Failure> {
        if self.bytes > 0 {
            self.read()?;
        }
        Ok(self)
    }

    /// There must be nothing yet.
    pub(crate) fn check_empty(&self) -> Result<(), Failure> {
        if self.bytes == 0 {
            return Ok(());
        }
        Err(self.refuse("what comes from stdin or a pipe cannot be compared with what was answered before"))
    }

    fn read(&mut self) -> Result<(), Failure> {
        let path = self.output.path.clone();
        let file = File::open(&path).map_err(|error| failed("read", &path, error))?;
        let mut lines = Lines::new(BufReader::with_capacity(1 << 16, file), LONGEST);
        let (mut line, mut begin) = (Vec::new(), 0);
        while let Some(ended) = lines.next(&mut line).map_err(|error| failed("read", &path, error))? {
            let place = begin..lines.offset();
            begin = place.end;
            match ended {
                // Its end is missing, whatever there is of it.
                Ended::ByFile => {}
                Ended::TooLong => return Err(self.refuse(&format!("line {} is no answer", lines.number()))),
                Ended::ByBreak => self.add(&line, place).map_err(|()| {
                    self.refuse(&format!("line {} is no answer, or one that stands there already", lines.number()))
                })?,
            }
        }
        self.bytes = begin;
        Ok(())
    }

    fn add(&mut self, line: &[u8], place: Range<u64>) -> Result<(), ()> {
        let mark: Mark = serde_json::from_slice(line).map_err(drop)?;
        if mark.error.is_some() {
            return Ok(());
        }
        if self.answered.insert(mark.index, mark.key).is_some() {
            return Err(());
        }
        match self.kept.last_mut() {
            Some(last) if last.end == place.start => last.end = place.end,
            _ => self.kept.push(place),
        }
        Ok(())
    }

    /// How many requests are answered.
    pub(crate) fn answered(&self) -> u64 {
        self.answered.len() as u64
    }

    /// Where the request of this number is answered, it must be this one.
    pub(crate) fn check(&self, index: u64, key: Key) -> Result<(), Failure> {
        match self.answered.get(&index) {
            Some(&answered) if answered != key => Err(self.refuse(&format!(
                "request {index} has an answer that was made from another line, or with another model or other flags"
            ))),
            _ => Ok(()),
        }
    }

    /// Every answer must be one to a request; there are `requests` of them.
    pub(crate) fn check_end(&self, requests: u64) -> Result<(), Failure> {
        match self.answered.keys().find(|&&index| index >= requests) {
            Some(index) => Err(self.refuse(&format!("it answers request {index}, and the input has {requests}"))),
            None => Ok(()),
        }
    }

    fn refuse(&self, why: &str) -> Failure {
        let message = format!(
            "cannot go on with {}: {why}; give --overwrite to begin it anew, or another --output",
            self.output.path.display()
        );
        Error::invalid_input(message).into()
    }

    /// Leaves what stays, to go on behind it, and says which requests are answered.
    pub(crate) fn go_on(self) -> Result<(Output, HashMap<u64, Key>), Failure> {
        let Self { output, answered, kept, bytes } = self;
        let end = match &kept[..] {
            [] => 0,
            [all] if all.start == 0 => all.end,
            _ => return Ok((rewrite(output, &kept)?, answered)),
        };
        if end < bytes {
            output.file.set_len(end).map_err(|error| output.failed("write", error))?;
        }
        Ok((output, answered))
    }
}

/// Writes what stays to a new file, which then takes the other's place: at no time is there less than what stays.
fn rewrite(output: Output, kept: &[Range<u64>]) -> Result<Output, Failure> {
    // Where the path is a link, the file it leads to is the one that is replaced.
    let path = output.path.canonicalize().map_err(|error| output.failed("write", error))?;
    let mut name = path.clone().into_os_string();
    name.push(".new");
    let name = PathBuf::from(name);
    let new = Output::open(&name)?;
    let copy = || {
        // What another rewriting may have left when it was killed.
        new.file.set_len(0)?;
        let file = File::open(&path)?;
        let mut from = &file;
        let mut to = BufWriter::new(&new.file);
        for range in kept {
            from.seek(SeekFrom::Start(range.start))?;
            io::copy(&mut from.take(range.end - range.start), &mut to)?;
        }
        to.flush()?;
        drop(to);
        new.file.sync_data()?;
        std::fs::rename(&name, &path)
    };
    copy().map_err(|error| output.failed("write", error))?;
    Ok(Output { file: new.file, path: output.path })
}

fn failed(what: &str, path: &Path, error: io::Error) -> Failure {
    Error::new(ErrorKind::Io, format!("cannot {what} {}", path.display())).with_source(error).into()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::batch::answer::Said;
    use std::fs;

    fn key(index: u64) -> Key {
        Key::new("settings", &index.to_le_bytes())
    }

    fn write(output: &mut Output, index: u64, is_error: bool) {
        let said = if is_error { Said::failed(ErrorKind::InvalidInput, "no".into()) } else { Said::of("yes", 2) };
        output.write(&Answer { index, id: None, said, key: key(index) }).unwrap();
    }

    /// A file with answers to these requests, or errors where it says so.
    fn written(requests: &[(u64, bool)]) -> (tempfile::TempDir, PathBuf) {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("out");
        let mut output = Output::open(&path).unwrap();
        requests.iter().for_each(|&(index, is_error)| write(&mut output, index, is_error));
        (folder, path)
    }

    fn indices(path: &Path) -> Vec<u64> {
        let text = fs::read_to_string(path).unwrap();
        assert!(text.is_empty() || text.ends_with('\n'), "{text}");
        text.lines().map(|line| serde_json::from_str::<Mark>(line).unwrap().index).collect()
    }

    fn read(path: &Path) -> Result<Earlier, Failure> {
        Earlier::open(path)?.scan()
    }

    fn refused(path: &Path) -> String {
        let Err(Failure::Run(error)) = read(path) else { panic!("it was taken") };
        error.to_string()
    }

    #[test]
    fn what_is_whole_stays_and_goes_on() {
        for (torn, requests) in [("", &[(2, false), (0, false)][..]), ("{\"index\":5,", &[(2, false)]), ("x", &[])] {
            let (_folder, path) = written(requests);
            OpenOptions::new().append(true).open(&path).unwrap().write_all(torn.as_bytes()).unwrap();
            let earlier = read(&path).unwrap();
            assert_eq!(earlier.answered(), requests.len() as u64);
            requests.iter().for_each(|&(index, _)| earlier.check(index, key(index)).unwrap());
            let (mut output, answered) = earlier.go_on().unwrap();
            assert!(requests.iter().all(|(index, _)| answered.contains_key(index)) && !answered.contains_key(&7));
            write(&mut output, 7, false);
            let expected: Vec<u64> = requests.iter().map(|request| request.0).chain([7]).collect();
            assert_eq!(indices(&path), expected);
        }
    }

    #[test]
    fn errors_are_tried_again() {
        for requests in [
            &[(0, true), (1, false), (2, true), (3, false), (4, false)][..],
            &[(1, false), (0, true), (3, false), (4, false), (2, true)],
            &[(0, true), (2, true)],
            &[(1, false), (2, true), (0, true)],
        ] {
            let (folder, path) = written(requests);
            let earlier = read(&path).unwrap();
            // An error may be mended.
            earlier.check(0, key(1)).unwrap();
            let (mut output, answered) = earlier.go_on().unwrap();
            assert!(!answered.contains_key(&0));
            write(&mut output, 9, false);
            let kept = requests.iter().filter(|request| !request.1).map(|request| request.0);
            assert_eq!(indices(&path), kept.chain([9]).collect::<Vec<_>>());
            assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1, "no other file stays");
        }
    }

    #[test]
    fn a_file_of_another_batch_is_refused_and_left_as_it_is() {
        let (_folder, path) = written(&[(0, false), (1, true)]);
        let before = fs::read(&path).unwrap();
        let earlier = read(&path).unwrap();
        for error in [earlier.check(0, key(1)).unwrap_err(), earlier.check_end(0).unwrap_err()] {
            let Failure::Run(error) = error else { panic!("{error:?}") };
            assert!(error.to_string().contains("--overwrite"), "{error}");
        }
        earlier.check_end(1).unwrap();
        drop(earlier);
        assert_eq!(fs::read(&path).unwrap(), before);
        for text in ["hello\n", "{}\n", "\n", "{\"index\":0}\nx\n", "[1,2,3]\n"] {
            fs::write(&path, text).unwrap();
            assert!(refused(&path).contains("line 1 is no answer"), "{text}");
            assert_eq!(fs::read_to_string(&path).unwrap(), text);
        }
        fs::write(&path, [&before[..], &before[..]].concat()).unwrap();
        assert!(refused(&path).contains("line 3 is no answer, or one that stands there already"));
    }

    #[test]
    fn two_processes_do_not_write_one_file() {
        let (_folder, path) = written(&[]);
        let _first = Output::open(&path).unwrap();
        // A lock belongs to the open file, so a second one in this process is refused as one in another is.
        assert!(refused(&path).contains("another process is writing"));
    }

    #[test]
    fn what_is_not_scanned_does_not_stay() {
        let (_folder, path) = written(&[(0, false)]);
        let earlier = Earlier::open(&path).unwrap();
        let Failure::Run(error) = earlier.check_empty().unwrap_err() else { panic!("it failed otherwise") };
        assert!(error.to_string().contains("stdin or a pipe"), "{error}");
        write(&mut earlier.go_on().unwrap().0, 1, false);
        assert_eq!(indices(&path), [1]);
        // What has no content has nothing that could be lost.
        #[cfg(unix)]
        Earlier::open(Path::new("/dev/null")).unwrap().check_empty().unwrap();
    }

    #[test]
    fn keys_are_of_lines_and_settings() {
        let keys = [Key::new("a", b"x"), Key::new("a", b"y"), Key::new("b", b"x")];
        assert!(keys[0] == Key::new("a", b"x") && keys[0] != keys[1] && keys[0] != keys[2] && keys[1] != keys[2]);
        let text = serde_json::to_string(&keys[0]).unwrap();
        assert_eq!(serde_json::from_str::<Key>(&text).unwrap(), keys[0]);
    }
}
