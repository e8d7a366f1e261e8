//! What became of one request, and when.

use std::{
    fmt,
    time::{Duration, Instant},
};

/// Events kept of one completion. Further ones are counted; the end is always kept.
const MOST: usize = 48;

/// What became of one completion from the time its request was made, for people and for logs. Its `Display` is a line an event.
///
/// It is bounded: chunks of a prompt that follow each other are one event, and beyond some fifty events only their number is kept.
#[derive(Clone, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct Timeline {
    /// What happened, in the order it did.
    pub events: Vec<TimelineEvent>,
    /// Events that were left out before the last one, for there were too many.
    pub skipped: usize,
}

/// Something that happened to a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct TimelineEvent {
    /// When, since the request was made.
    pub at: Duration,
    /// What.
    pub what: Happened,
}

/// What happens to a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Happened {
    /// It reached the scheduler, and waits.
    Queued,
    /// It was given a sequence that holds `cached` of its `tokens` already.
    Admitted {
        /// Tokens of the prompt, and those generated so far where it was begun again.
        tokens: usize,
        /// Those of them that need not be computed.
        cached: usize,
    },
    /// Tokens of the prompt were computed, in this many steps on end.
    Prefill {
        /// Tokens that were computed.
        tokens: usize,
        /// Steps.
        steps: usize,
    },
    /// The first token was drawn.
    FirstToken,
    /// Its oldest tokens but the first few were dropped, for the context was full.
    Shifted {
        /// Tokens that were dropped.
        dropped: usize,
    },
    /// Its cells were needed by an older request: it waits, and is computed again later.
    Preempted {
        /// Positions it held.
        held: usize,
    },
    /// The session was lost; it waits, and is computed again on another one.
    SessionLost,
    /// A pass it took part in failed; it is tried with fewer others, to find the one at fault.
    Retried,
    /// It ended.
    Ended {
        /// Tokens that were generated.
        generated: usize,
    },
}

impl Timeline {
    pub(super) fn new() -> Self {
        Self { events: Vec::with_capacity(8), skipped: 0 }
    }

    pub(super) fn add(&mut self, since: Instant, now: Instant, what: Happened) {
        let event = TimelineEvent { at: now.saturating_duration_since(since), what };
        if let Happened::Prefill { tokens: more, steps: further } = what
            && let Some(TimelineEvent { at, what: Happened::Prefill { tokens, steps } }) = self.events.last_mut()
        {
            *at = event.at;
            *tokens += more;
            *steps += further;
        } else if self.events.len() < MOST {
            self.events.push(event);
        } else {
            self.skipped += 1;
            *self.events.last_mut().expect("there are many") = event;
        }
    }
}

impl fmt::Display for Timeline {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, event) in self.events.iter().enumerate() {
            if self.skipped > 0 && index + 1 == self.events.len() {
                writeln!(f, "             … {} more", self.skipped)?;
            }
            writeln!(f, "{event}")?;
        }
        Ok(())
    }
}

impl fmt::Display for TimelineEvent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:>9.1} ms {}", self.at.as_secs_f64() * 1e3, self.what)
    }
}

impl fmt::Display for Happened {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Queued => f.write_str("queued"),
            Self::Admitted { tokens, cached } => write!(f, "admitted with {tokens} tokens, {cached} of them cached"),
            Self::Prefill { tokens, steps: 1 } => write!(f, "prefilled {tokens} tokens in one step"),
            Self::Prefill { tokens, steps } => write!(f, "prefilled {tokens} tokens in {steps} steps"),
            Self::FirstToken => f.write_str("first token"),
            Self::Shifted { dropped } => write!(f, "shifted: {dropped} tokens dropped"),
            Self::Preempted { held } => write!(f, "preempted: {held} positions given up"),
            Self::SessionLost => f.write_str("session lost"),
            Self::Retried => f.write_str("retried: a pass failed"),
            Self::Ended { generated } => write!(f, "ended after {generated} tokens"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(start: Instant, ms: u64) -> Instant {
        start + Duration::from_millis(ms)
    }

    #[test]
    fn reads_as_a_line_an_event() {
        let start = Instant::now();
        let mut timeline = Timeline::new();
        timeline.add(start, at(start, 0), Happened::Queued);
        timeline.add(start, at(start, 2), Happened::Admitted { tokens: 90, cached: 64 });
        timeline.add(start, at(start, 5), Happened::Prefill { tokens: 16, steps: 1 });
        timeline.add(start, at(start, 9), Happened::Prefill { tokens: 10, steps: 1 });
        timeline.add(start, at(start, 9), Happened::FirstToken);
        timeline.add(start, at(start, 1200), Happened::Ended { generated: 7 });
        let lines = [
            "      0.0 ms queued",
            "      2.0 ms admitted with 90 tokens, 64 of them cached",
            "      9.0 ms prefilled 26 tokens in 2 steps",
            "      9.0 ms first token",
            "   1200.0 ms ended after 7 tokens",
        ];
        assert_eq!(timeline.to_string(), lines.join("\n") + "\n");
    }

    #[test]
    fn keeps_the_beginning_and_the_end_of_a_long_story() {
        let start = Instant::now();
        let mut timeline = Timeline::new();
        timeline.add(start, start, Happened::Queued);
        for held in 0..1000 {
            timeline.add(start, start, Happened::Preempted { held });
        }
        timeline.add(start, at(start, 1), Happened::Ended { generated: 3 });
        assert_eq!((timeline.events.len(), timeline.skipped), (MOST, 1002 - MOST));
        assert_eq!(timeline.events[0].what, Happened::Queued);
        assert_eq!(timeline.events.last().unwrap().what, Happened::Ended { generated: 3 });
        assert!(timeline.to_string().contains("more"));
    }
}
