//! Figures of an engine at work.

use crate::FinishReason;
use std::{
    fmt,
    time::{Duration, Instant},
};

/// Seconds over which [`EngineStats::tokens_per_second`] looks back: what is older counts a third or less.
const WINDOW: f64 = 10.0;
/// The first class of [`StepTimes`] ends here, each further one at twice the one before.
const FIRST: Duration = Duration::from_micros(64);

/// Figures of an engine, as of its last step. Counts go on from when it was made. `Display` is for people.
#[derive(Clone, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct EngineStats {
    /// Requests that wait to be begun, and completions that wait to be computed again.
    pub waiting: usize,
    /// Completions whose prompt is being computed.
    pub prefilling: usize,
    /// Completions that are being generated.
    pub running: usize,
    /// Sequences that are open: of completions, and of the prefix cache.
    pub sequences: usize,
    /// Sequences that can be open at once.
    pub sequences_total: usize,
    /// KV cells in use, those of the prefix cache included.
    pub cells: usize,
    /// Positions that the prefix cache keeps. Cells that its sequences share with others are counted for each.
    pub cells_cached: usize,
    /// KV cells that are free.
    pub cells_free: usize,
    /// Steps so far, each a forward pass.
    pub steps: u64,
    /// Tokens that were generated so far.
    pub generated_tokens: u64,
    /// Tokens of prompts that were computed, those that were computed again included, and without the cached ones.
    pub prefilled_tokens: u64,
    /// Tokens of prompts that need not be computed, for a sequence held them already.
    pub cached_tokens: u64,
    /// Tokens generated a second, of late: over some ten seconds.
    pub tokens_per_second: f64,
    /// How long steps took.
    pub step_times: StepTimes,
    /// Completions that began with what another one had computed.
    pub prefix_hits: u64,
    /// Completions whose cells were needed by older ones, and that were computed again later.
    pub preemptions: u64,
    /// Sessions that were lost and replaced.
    pub rebuilt: u64,
    /// Completions that ended as they should.
    pub finished: u64,
    /// Those that ended with an error; a request that was refused counts once.
    pub failed: u64,
    /// Those that were cancelled, or forgotten, or ended by their deadline.
    pub cancelled: u64,
    rate: Rate,
}

impl EngineStats {
    pub(super) fn new(now: Instant) -> Self {
        Self { rate: Rate { begun: Some(now), last: Some(now), tokens: 0.0 }, ..Self::default() }
    }

    /// A completion has ended so; with `failed`, its request has failed before.
    pub(super) fn count_end(&mut self, failed: bool, reason: FinishReason) {
        let count = match reason {
            _ if failed => &mut self.failed,
            FinishReason::Cancelled | FinishReason::Deadline => &mut self.cancelled,
            _ => &mut self.finished,
        };
        *count += 1;
    }

    pub(super) fn count_step(&mut self, now: Instant, took: Duration, tokens: usize) {
        self.steps += 1;
        self.generated_tokens += tokens as u64;
        self.step_times.add(took);
        self.rate.add(now, tokens);
    }

    /// As seen at this time.
    pub(crate) fn seen_at(mut self, now: Instant) -> Self {
        self.tokens_per_second = self.rate.at(now);
        self
    }
}

impl fmt::Display for EngineStats {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "requests    {} waiting", self.waiting)?;
        let (prefilling, running) = (self.prefilling, self.running);
        let (finished, failed, cancelled) = (self.finished, self.failed, self.cancelled);
        writeln!(
            f,
            "completions {prefilling} prefilling, {running} running, {finished} finished, {failed} failed, {cancelled} cancelled"
        )?;
        let (cells, free, cached) = (self.cells, self.cells_free, Counted(self.cells_cached as u64, "position"));
        writeln!(f, "sequences   {} of {} open", self.sequences, self.sequences_total)?;
        writeln!(f, "cells       {cells} used, {cached} cached, {free} free")?;
        writeln!(f, "generated   {}, {:.1} a second", Counted(self.generated_tokens, "token"), self.tokens_per_second)?;
        writeln!(f, "prompts     {} computed, {} cached", Counted(self.prefilled_tokens, "token"), self.cached_tokens)?;
        writeln!(f, "steps       {}: {}", self.steps, self.step_times)?;
        let (hits, preemptions) = (Counted(self.prefix_hits, "prefix hit"), Counted(self.preemptions, "preemption"));
        write!(f, "events      {hits}, {preemptions}, {} rebuilt", Counted(self.rebuilt, "session"))
    }
}

/// A number of things, the word for one of which ends in a consonant.
struct Counted(u64, &'static str);

impl fmt::Display for Counted {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}{}", self.0, self.1, if self.0 == 1 { "" } else { "s" })
    }
}

/// How many steps took how long, in classes that double.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct StepTimes([u64; 24]);

impl StepTimes {
    fn add(&mut self, took: Duration) {
        let times = took.as_nanos() / FIRST.as_nanos();
        let class = if times == 0 { 0 } else { times.ilog2() as usize + 1 };
        self.0[class.min(self.0.len() - 1)] += 1;
    }

    /// The classes, from short to long: how long a step of it took at most, and how many steps there were. The last one has no limit.
    pub fn classes(&self) -> impl Iterator<Item = (Option<Duration>, u64)> {
        let last = self.0.len() - 1;
        self.0.iter().enumerate().map(move |(class, &count)| ((class < last).then(|| FIRST * (1 << class)), count))
    }

    /// The shortest time within which this share of the steps ended, to a factor of two; `None` without a step.
    #[must_use]
    pub fn quantile(&self, share: f64) -> Option<Duration> {
        let total: u64 = self.0.iter().sum();
        let wanted = ((total as f64 * share.clamp(0.0, 1.0)).ceil() as u64).max(1);
        let mut seen = 0;
        let class = self.0.iter().position(|count| {
            seen += count;
            seen >= wanted
        });
        class.map(|class| FIRST * (1 << class))
    }
}

impl fmt::Display for StepTimes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (Some(half), Some(most)) = (self.quantile(0.5), self.quantile(0.99)) else { return f.write_str("none") };
        write!(f, "half took at most {half:.1?}, 99 % at most {most:.1?}")
    }
}

/// Tokens, each counting less the longer ago it was.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
struct Rate {
    begun: Option<Instant>,
    last: Option<Instant>,
    tokens: f64,
}

impl Rate {
    fn faded(&self, now: Instant) -> f64 {
        let since = self.last.map_or(0.0, |last| now.saturating_duration_since(last).as_secs_f64());
        self.tokens * (-since / WINDOW).exp()
    }

    fn add(&mut self, now: Instant, tokens: usize) {
        self.tokens = self.faded(now) + tokens as f64;
        self.last = Some(now);
    }

    fn at(&self, now: Instant) -> f64 {
        let Some(begun) = self.begun else { return 0.0 };
        let since = now.saturating_duration_since(begun).as_secs_f64();
        // The window is shorter at the beginning.
        let seconds = WINDOW * (1.0 - (-since / WINDOW).exp());
        if seconds > 0.0 { self.faded(now) / seconds } else { 0.0 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn steps_are_counted_by_how_long_they_took() {
        let mut times = StepTimes::default();
        assert_eq!((times.quantile(0.5), times.to_string()), (None, "none".into()));
        for micros in [1, 63, 64, 127, 128, 1000, 1000, 1000, 1000, 10_000_000_000] {
            times.add(Duration::from_micros(micros));
        }
        let counts: Vec<_> = times.classes().filter(|(_, count)| *count > 0).collect();
        let micros = |micros| Some(Duration::from_micros(micros));
        assert_eq!(counts, [(micros(64), 2), (micros(128), 2), (micros(256), 1), (micros(1024), 4), (None, 1)]);
        assert_eq!((times.quantile(0.2), times.quantile(0.5)), (micros(64), micros(256)));
        assert_eq!((times.quantile(0.0), times.quantile(0.9)), (micros(64), micros(1024)));
    }

    #[test]
    fn the_rate_is_that_of_late() {
        let start = Instant::now();
        let mut stats = EngineStats::new(start);
        let at = |seconds: f64| start + Duration::from_secs_f64(seconds);
        for step in 1..=400 {
            stats.count_step(at(f64::from(step) * 0.1), Duration::from_millis(100), 5);
        }
        let now = stats.clone().seen_at(at(40.0));
        assert!((now.tokens_per_second - 50.0).abs() < 1.0, "{}", now.tokens_per_second);
        assert_eq!((now.generated_tokens, now.steps), (2000, 400));
        assert!(stats.clone().seen_at(at(100.0)).tokens_per_second < 1.0, "it has been idle for a minute");
        let mut early = EngineStats::new(start);
        early.count_step(at(0.5), Duration::from_millis(500), 10);
        let rate = early.seen_at(at(0.5)).tokens_per_second;
        assert!((rate - 20.0).abs() < 1.0, "{rate}");
    }

    #[test]
    fn reads_as_a_table() {
        let stats = EngineStats { waiting: 3, finished: 2, generated_tokens: 12, rebuilt: 1, ..EngineStats::default() };
        let stats = EngineStats { prefilled_tokens: 1, cells_cached: 1, ..stats };
        let text = stats.to_string();
        assert!(text.starts_with("requests    3 waiting\ncompletions 0 prefilling, 0 running, 2 finished, "), "{text}");
        assert!(text.contains("0 used, 1 position cached, 0 free\ngenerated   12 tokens, 0.0 a second\n"), "{text}");
        assert!(text.contains("prompts     1 token computed, 0 cached\n"), "{text}");
        assert!(text.ends_with("0 prefix hits, 0 preemptions, 1 session rebuilt"), "{text}");
    }
}
