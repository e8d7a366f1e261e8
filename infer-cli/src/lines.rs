//! Lines of a file, one after another, in bounded memory.

use std::io::{BufRead, Read, Result};

/// The lines of a file. What follows the last line break is a line too, where there is anything.
pub(crate) struct Lines<R> {
    source: R,
    longest: usize,
    number: u64,
    offset: u64,
    /// The last line was longer than may be, and was not read to its end: it may have none.
    is_inside: bool,
}

/// What a line is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Ended {
    /// It is whole.
    ByBreak,
    /// The file ended without a line break.
    ByFile,
    /// It is longer than may be: only its beginning was read, and the rest is passed over when the next line is read.
    TooLong,
}

impl<R: BufRead> Lines<R> {
    /// `longest`: bytes of a line that are kept at most, its line break not among them.
    pub(crate) fn new(source: R, longest: usize) -> Self {
        Self { source, longest, number: 0, offset: 0, is_inside: false }
    }

    /// Reads the next line, without its line break; `None` at the end.
    pub(crate) fn next(&mut self, line: &mut Vec<u8>) -> Result<Option<Ended>> {
        line.clear();
        if std::mem::take(&mut self.is_inside) {
            self.pass_over()?;
        }
        // A line break has two bytes at most, and one more tells a line that is too long from one that is not.
        let most = self.longest as u64 + 2;
        self.offset += self.source.by_ref().take(most).read_until(b'\n', line)? as u64;
        if line.is_empty() {
            return Ok(None);
        }
        self.number += 1;
        let mut ended = Ended::ByFile;
        if line.pop_if(|last| *last == b'\n').is_some() {
            ended = Ended::ByBreak;
            line.pop_if(|last| *last == b'\r');
        }
        if line.len() > self.longest {
            line.truncate(self.longest);
            self.is_inside = ended == Ended::ByFile;
            ended = Ended::TooLong;
        }
        Ok(Some(ended))
    }

    /// Goes behind the next line break.
    fn pass_over(&mut self) -> Result<()> {
        loop {
            let bytes = self.source.fill_buf()?;
            let end = bytes.iter().position(|&byte| byte == b'\n');
            let passed = end.map_or(bytes.len(), |at| at + 1);
            self.source.consume(passed);
            self.offset += passed as u64;
            if end.is_some() || passed == 0 {
                return Ok(());
            }
        }
    }

    /// The number of the last line that was read, from 1.
    pub(crate) fn number(&self) -> u64 {
        self.number
    }

    /// Bytes of the file up to the end of that line, its line break among them; unless it was too long.
    pub(crate) fn offset(&self) -> u64 {
        self.offset
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::{BufReader, Cursor, repeat};

    fn all(bytes: &[u8], longest: usize) -> Vec<(String, Ended, u64)> {
        // A small buffer, so that lines lie across its end.
        let mut lines = Lines::new(BufReader::with_capacity(3, Cursor::new(bytes)), longest);
        let (mut line, mut all) = (Vec::new(), Vec::new());
        while let Some(ended) = lines.next(&mut line).unwrap() {
            all.push((String::from_utf8(line.clone()).unwrap(), ended, lines.offset()));
        }
        assert_eq!(lines.number(), all.len() as u64);
        all
    }

    #[test]
    fn lines_are_what_std_takes_for_lines() {
        for text in ["", "\n", "a", "a\n", "a\r\nb\n\nc", "a\r", "\r\n", "a\n\n", "aaaa\naaaa", "aaaa\r\naaaa\r\n"] {
            let lines = all(text.as_bytes(), 4);
            assert_eq!(
                lines.iter().map(|line| &*line.0).collect::<Vec<_>>(),
                text.lines().collect::<Vec<_>>(),
                "{text:?}"
            );
            assert!(lines.iter().all(|line| line.1 != Ended::TooLong), "{text:?}");
            assert_eq!(lines.last().map_or(0, |line| line.2), text.len() as u64);
        }
    }

    #[test]
    fn the_end_of_the_file_is_no_line_break() {
        let ends = |text: &str| all(text.as_bytes(), 8).into_iter().map(|line| line.1).collect::<Vec<_>>();
        assert_eq!(ends("a\nb\n"), [Ended::ByBreak, Ended::ByBreak]);
        assert_eq!(ends("a\nb"), [Ended::ByBreak, Ended::ByFile]);
    }

    #[test]
    fn a_line_that_is_too_long_is_passed_over() {
        for (text, expected) in [
            ("aaaaa\nb\n", &[("aaaa", Ended::TooLong), ("b", Ended::ByBreak)][..]),
            ("aaaaa\r\nb", &[("aaaa", Ended::TooLong), ("b", Ended::ByFile)]),
            ("aaaaaaaaaaaa\n", &[("aaaa", Ended::TooLong)]),
            ("aaaaaaaaaaaa", &[("aaaa", Ended::TooLong)]),
        ] {
            let lines = all(text.as_bytes(), 4);
            assert_eq!(lines.iter().map(|line| (&*line.0, line.1)).collect::<Vec<_>>(), expected, "{text:?}");
            if let Some((_, Ended::ByBreak | Ended::ByFile, offset)) = lines.last() {
                assert_eq!(*offset, text.len() as u64, "{text:?}");
            }
        }
    }

    #[test]
    fn only_the_beginning_of_a_long_line_is_kept() {
        let mut lines = Lines::new(BufReader::new(repeat(b'a').take(100 << 20)), 16);
        let mut line = Vec::new();
        assert_eq!(lines.next(&mut line).unwrap(), Some(Ended::TooLong));
        assert!(line.len() == 16 && line.capacity() < 1 << 20, "{}", line.capacity());
        assert_eq!(lines.next(&mut line).unwrap(), None);
    }
}
