//! How far a batch has come, told while it runs: by a bar where a person is watching, and by a line now and then in a log.

use super::work::Tally;
use crate::output::{self, count};
use indicatif::ProgressBar;
use std::time::{Duration, Instant};

/// Between two lines.
const BETWEEN: Duration = Duration::from_secs(10);

pub(super) struct Progress {
    /// Hidden where stderr is no terminal.
    bar: ProgressBar,
    /// Requests of the input, where they are known.
    total: Option<u64>,
    /// Those that were answered by an earlier run.
    resumed: u64,
    told: Instant,
}

impl Progress {
    pub(super) fn new(total: Option<u64>, resumed: u64) -> Self {
        let bar = output::counted("answering", total, resumed);
        Self { bar, total, resumed, told: Instant::now() }
    }

    /// A further request has an answer or an error.
    pub(super) fn one(&mut self, tally: &Tally) {
        self.bar.inc(1);
        self.bar.set_message(format!("{} tokens", count(tally.tokens)));
        if self.bar.is_hidden() && self.told.elapsed() >= BETWEEN {
            self.told = Instant::now();
            output::note(&self.line(tally));
        }
    }

    /// There are no more, and `tally` is what to tell of it.
    pub(super) fn end(&self, tally: Option<&Tally>) {
        if let Some(tally) = tally
            && self.bar.is_hidden()
        {
            output::note(&self.line(tally));
        }
        self.bar.finish_and_clear();
    }

    fn line(&self, tally: &Tally) -> String {
        let done = count(self.resumed + tally.requests);
        let of = self.total.map_or_else(String::new, |total| format!(" of {}", count(total)));
        format!("answered {done}{of}, {} errors, {} tokens", count(tally.errors), count(tally.tokens))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_says_how_far_it_has_come() {
        let tally = Tally { requests: 1200, errors: 2, tokens: 34_567, ..Tally::default() };
        assert_eq!(Progress::new(Some(5000), 30).line(&tally), "answered 1,230 of 5,000, 2 errors, 34,567 tokens");
        assert_eq!(Progress::new(None, 0).line(&tally), "answered 1,200, 2 errors, 34,567 tokens");
    }
}
