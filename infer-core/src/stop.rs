use crate::{Error, Result};

/// Finds stop strings in a text that comes in pieces.
///
/// Text that can no longer be part of a stop string is given at once; only what might be the beginning of one is
/// withheld. It makes no difference how the text was cut into pieces: the match is the one that is complete first, and
/// of those complete at the same place the longest.
///
/// ```
/// use infer_core::StopStrings;
///
/// let mut stop = StopStrings::new(["\nUser:", "###"])?;
/// assert_eq!(stop.push("Hello.\nUs").text, "Hello.");
/// assert_eq!(stop.push("ually").text, "\nUsually");
/// let last = stop.push(" so #####");
/// assert_eq!((last.text, last.stop), (" so ", Some(1)));
/// # Ok::<_, infer_core::Error>(())
/// ```
#[derive(Clone, Debug, Default)]
pub struct StopStrings {
    patterns: Vec<Pattern>,
    /// What was withheld, and before it `given` bytes that the last call gave.
    text: String,
    given: usize,
    stop: Option<usize>,
}

/// What a piece of text brought.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Passed<'a> {
    /// The text that is certain now, and belongs to no stop string.
    pub text: &'a str,
    /// The stop string that ended the text, by its index among those that were given to [`StopStrings::new`].
    pub stop: Option<usize>,
}

impl StopStrings {
    /// At the beginning of a text, looking for these. Without any, all text passes.
    ///
    /// # Errors
    /// [`InvalidInput`](crate::ErrorKind::InvalidInput) for a stop string that is empty: it would end every text at once.
    pub fn new<S: Into<String>>(strings: impl IntoIterator<Item = S>) -> Result<Self> {
        let patterns: Vec<_> = strings.into_iter().map(|string| Pattern::new(string.into())).collect();
        if let Some(at) = patterns.iter().position(|pattern| pattern.string.is_empty()) {
            return Err(Error::invalid_input(format!("stop string {at} is empty; leave it out")));
        }
        Ok(Self { patterns, ..Self::default() })
    }

    /// The strings looked for, by index.
    pub fn strings(&self) -> impl ExactSizeIterator<Item = &str> {
        self.patterns.iter().map(|pattern| pattern.string.as_str())
    }

    /// The stop string that ended the text, if one has.
    #[must_use]
    pub fn stopped(&self) -> Option<usize> {
        self.stop
    }

    /// Takes the next piece of text. Once a stop string has been found, the text has ended: more of it brings nothing.
    pub fn push(&mut self, piece: &str) -> Passed<'_> {
        self.text.drain(..self.given);
        self.given = 0;
        if self.stop.is_none() {
            let before = self.text.len();
            self.text.push_str(piece);
            self.given = match self.find(piece) {
                Some((stop, end)) => {
                    self.stop = Some(stop);
                    let start = before + end - self.patterns[stop].string.len();
                    self.text.truncate(start);
                    start
                }
                None => self.text.len() - self.withheld(),
            };
        }
        Passed { text: &self.text[..self.given], stop: self.stop }
    }

    /// The text is complete: gives what was withheld, and is at the beginning of a text again.
    pub fn finish(&mut self) -> &str {
        self.text.drain(..self.given);
        self.given = self.text.len();
        self.stop = None;
        for pattern in &mut self.patterns {
            pattern.matched = 0;
        }
        &self.text
    }

    /// The first complete match: which string, and the end of it in the piece.
    fn find(&mut self, piece: &str) -> Option<(usize, usize)> {
        for (at, &byte) in piece.as_bytes().iter().enumerate() {
            let mut found: Option<usize> = None;
            for index in 0..self.patterns.len() {
                let complete = self.patterns[index].step(byte);
                let longest =
                    found.is_none_or(|found| self.patterns[found].string.len() < self.patterns[index].string.len());
                if complete && longest {
                    found = Some(index);
                }
            }
            if let Some(index) = found {
                return Some((index, at + 1));
            }
        }
        None
    }

    /// How much of the text's end may be the beginning of a stop string. A stop string begins with a whole character, so
    /// what is withheld does too.
    fn withheld(&self) -> usize {
        self.patterns.iter().map(|pattern| pattern.matched).max().unwrap_or(0)
    }
}

/// One stop string, matched as Knuth, Morris and Pratt do (*Fast pattern matching in strings*, SIAM J. Comput. 6, 1977).
#[derive(Clone, Debug)]
struct Pattern {
    string: String,
    /// For each length of a prefix, the length of the longest shorter prefix that is its end.
    borders: Vec<usize>,
    /// The longest prefix that is the end of the text so far.
    matched: usize,
}

impl Pattern {
    fn new(string: String) -> Self {
        let bytes = string.as_bytes();
        let mut borders = vec![0; bytes.len() + 1];
        let mut border = 0;
        for at in 1..bytes.len() {
            while border > 0 && bytes[border] != bytes[at] {
                border = borders[border];
            }
            border += usize::from(bytes[border] == bytes[at]);
            borders[at + 1] = border;
        }
        Self { string, borders, matched: 0 }
    }

    /// Takes a byte of the text; whether the string is complete with it.
    fn step(&mut self, byte: u8) -> bool {
        let bytes = self.string.as_bytes();
        while self.matched > 0 && bytes[self.matched] != byte {
            self.matched = self.borders[self.matched];
        }
        self.matched += usize::from(bytes[self.matched] == byte);
        self.matched == bytes.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn pass(strings: &[&str], pieces: &[&str]) -> (Vec<String>, Option<usize>) {
        let mut stop = StopStrings::new(strings.iter().copied()).unwrap();
        let mut passed: Vec<String> = pieces.iter().map(|piece| stop.push(piece).text.to_owned()).collect();
        let stopped = stop.stopped();
        passed.push(stop.finish().to_owned());
        (passed, stopped)
    }

    #[test]
    fn withholds_only_what_may_be_a_beginning() {
        assert_eq!(pass(&["abc"], &["xa", "b", "d"]), (vec!["x".into(), "".into(), "abd".into(), "".into()], None));
        assert_eq!(pass(&["aab"], &["aa", "a", "b"]), (vec!["".into(), "a".into(), "".into(), "".into()], Some(0)));
        assert_eq!(pass(&["stop"], &["a st"]).0, ["a ", "st"]);
        assert_eq!(pass(&[], &["any", " text"]).0, ["any", " text", ""]);
    }

    #[test]
    fn the_first_complete_match_ends_the_text() {
        assert_eq!(pass(&["abcd", "bc"], &["xab", "cd"]), (vec!["x".into(), "a".into(), "".into()], Some(1)));
        assert_eq!(pass(&["bc", "abc"], &["xabc"]).1, Some(1), "of two that end together the longer one");
        assert_eq!(pass(&["b", "b"], &["ab"]), (vec!["a".into(), "".into()], Some(0)));
    }

    #[test]
    fn characters_stay_whole() {
        // The first bytes of ü and ö are the same: nothing may be given or withheld by halves.
        assert_eq!(pass(&["ü"], &["ö", "aü"]), (vec!["ö".into(), "a".into(), "".into()], Some(0)));
        assert_eq!(pass(&["😀!"], &["x😀", "?"]), (vec!["x".into(), "😀?".into(), "".into()], None));
    }

    #[test]
    fn after_the_end_nothing_comes_until_it_is_finished() {
        let mut stop = StopStrings::new(["."]).unwrap();
        assert_eq!(stop.push("a.b").text, "a");
        assert_eq!(stop.push("c"), Passed { text: "", stop: Some(0) });
        assert_eq!(stop.finish(), "");
        assert_eq!(stop.push("d"), Passed { text: "d", stop: None });
    }

    #[test]
    fn an_empty_stop_string_is_refused() {
        let error = StopStrings::new(["a", ""]).unwrap_err();
        assert_eq!(error.to_string(), "stop string 1 is empty; leave it out");
    }

    /// The whole text at once: the match that ends first, of those the longest.
    fn search(strings: &[String], text: &str) -> Option<(usize, usize)> {
        (0..=text.len()).find_map(|end| {
            let ends = |string: &&String| text.as_bytes()[..end].ends_with(string.as_bytes());
            let longest = strings.iter().filter(ends).map(|string| string.len()).max()?;
            let index = strings.iter().position(|string| string.len() == longest && ends(&string))?;
            Some((index, end - longest))
        })
    }

    proptest! {
        #[test]
        fn equals_a_search_of_the_whole_text(
            strings in prop::collection::vec("[abü]{1,4}", 0..4),
            pieces in prop::collection::vec("[abü]{0,3}", 0..12),
        ) {
            let text = pieces.concat();
            let expected = search(&strings, &text);
            let mut stop = StopStrings::new(strings.clone()).unwrap();
            let (mut passed, mut fed) = (String::new(), String::new());
            for piece in &pieces {
                fed.push_str(piece);
                passed.push_str(stop.push(piece).text);
                if stop.stopped().is_none() {
                    let withheld = &fed[passed.len()..];
                    prop_assert!(fed.starts_with(&passed));
                    prop_assert!(withheld.is_empty() || strings.iter().any(|string| string.starts_with(withheld)));
                }
            }
            prop_assert_eq!(stop.stopped(), expected.map(|(index, _)| index));
            passed.push_str(stop.finish());
            prop_assert_eq!(passed, &text[..expected.map_or(text.len(), |(_, start)| start)]);
        }
    }
}
