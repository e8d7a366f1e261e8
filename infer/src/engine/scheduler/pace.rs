//! How much of a prompt fits into a step, by what steps have taken.
//!
//! A step costs what its running texts alone cost, and something a token of a prompt. Both are measured: the former by how many tokens the
//! running texts feed, in classes of powers of two, in steps that feed nothing else; the latter from what steps with prompts take beyond that.
//! Old measurements fade, and one that is far off what was expected (another process had the processor, a page was read from disk)
//! counts little.

use std::time::Duration;

/// A prompt progresses by so many tokens a step at least, however short a step is to be.
pub(super) const LEAST: usize = 8;
/// Tokens of prompts in a step as long as nothing is known.
const UNKNOWN: usize = 64;
/// The same where nobody waits for a next token.
const UNKNOWN_FREE: usize = 256;
/// How long a step may take when nobody is waiting for the next token, in seconds: requests that arrive or are cancelled are seen after it.
const LONGEST: f64 = 1.0;
/// Without a target: so many times what the running texts take alone.
const TIMES: f64 = 3.0;
/// The share of a new measurement in what is remembered.
const NEW: f64 = 0.2;
/// A measurement is taken anew after so many steps that could not bring one.
const STALE: u32 = 256;

pub(super) struct Pace {
    target: Option<Duration>,
    /// By the power of two that the fed tokens reach.
    alone: [Alone; 24],
    /// Seconds beyond those of running texts, and the tokens of prompts that they were for; both fade.
    prefill: (f64, f64),
}

/// What a step of running texts alone takes.
#[derive(Clone, Copy, Default)]
struct Alone {
    seconds: f64,
    /// How many measurements, up to a few; 0 is that nothing is known.
    count: u8,
    /// Steps since.
    age: u32,
}

/// How much of prompts a step may feed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Chunk {
    Tokens(usize),
    /// Nothing, for once: what running texts take alone is to be measured.
    Nothing,
}

impl Pace {
    pub(super) fn new(target: Option<Duration>) -> Self {
        Self { target, alone: [Alone::default(); 24], prefill: (0.0, 0.0) }
    }

    /// For a step in which no text may be delayed: `running` tokens are fed for texts that are being generated, and more than none.
    pub(super) fn chunk(&self, running: usize) -> Chunk {
        let class = &self.alone[class(running)];
        if class.count == 0 || class.age > STALE {
            return Chunk::Nothing;
        }
        let target = self.target.map_or(class.seconds * TIMES, |target| target.as_secs_f64());
        Chunk::Tokens(self.tokens_in(target - class.seconds).max(LEAST))
    }

    /// For a step beside which nobody waits for a next token.
    pub(super) fn free_chunk(&self) -> usize {
        if self.prefill.1 < 1.0 { UNKNOWN_FREE } else { self.tokens_in(LONGEST).max(LEAST) }
    }

    fn tokens_in(&self, seconds: f64) -> usize {
        let (spent, tokens) = self.prefill;
        if tokens < 1.0 {
            UNKNOWN
        } else if spent <= 0.0 {
            usize::MAX
        } else {
            (seconds.max(0.0) * tokens / spent) as usize
        }
    }

    /// A step has fed `running` tokens of texts that are being generated, and `prompt` tokens of prompts, in `took`.
    pub(super) fn measured(&mut self, running: usize, prompt: usize, took: Duration) {
        let took = took.as_secs_f64();
        let alone = &mut self.alone[class(running)];
        if prompt == 0 {
            alone.measured(took);
            return;
        }
        if running > 0 {
            alone.age += 1;
        }
        if running > 0 && alone.count == 0 {
            return;
        }
        let (spent, tokens) = &mut self.prefill;
        let mut beyond = (took - if running > 0 { alone.seconds } else { 0.0 }).max(0.0);
        let prompt = prompt as f64;
        if *tokens >= 1.0 {
            let expected = *spent / *tokens * prompt;
            beyond = beyond.clamp(expected / 4.0, expected * 4.0);
        }
        // What was learnt from many tokens outweighs a short chunk, and fades with the tokens that follow.
        let keep = (1.0 - NEW).powf((prompt / UNKNOWN as f64).min(4.0));
        *spent = *spent * keep + beyond;
        *tokens = *tokens * keep + prompt;
    }
}

impl Alone {
    fn measured(&mut self, took: f64) {
        self.age = 0;
        if self.count == 0 {
            self.seconds = took;
        } else {
            let share = NEW.max(1.0 / (f64::from(self.count) + 1.0));
            self.seconds += share * (took.clamp(self.seconds / 4.0, self.seconds * 2.0) - self.seconds);
        }
        self.count = (self.count + 1).min(8);
    }
}

fn class(tokens: usize) -> usize {
    (tokens.max(1).ilog2() as usize).min(23)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ms(ms: f64) -> Duration {
        Duration::from_secs_f64(ms / 1e3)
    }

    /// A machine on which a step takes 10 ms, 1 ms a running text and 2 ms a token of a prompt.
    fn step(running: usize, prompt: usize) -> Duration {
        ms(if running + prompt > 0 { 10.0 } else { 0.0 } + running as f64 + 2.0 * prompt as f64)
    }

    #[test]
    fn a_step_takes_three_times_what_the_running_texts_take() {
        let mut pace = Pace::new(None);
        assert_eq!(pace.chunk(8), Chunk::Nothing);
        pace.measured(8, 0, step(8, 0));
        assert_eq!(pace.chunk(8), Chunk::Tokens(UNKNOWN));
        for _ in 0..40 {
            let Chunk::Tokens(tokens) = pace.chunk(8) else { panic!("it was measured") };
            pace.measured(8, tokens, step(8, tokens));
        }
        let Chunk::Tokens(tokens) = pace.chunk(8) else { panic!("it was measured") };
        assert!((16..=19).contains(&tokens), "36 ms are left of 54, at 2 ms a token: {tokens}");
    }

    #[test]
    fn a_given_time_is_kept_to_and_a_prompt_always_progresses() {
        let chunk = |target| {
            let mut pace = Pace::new(Some(ms(target)));
            pace.measured(4, 0, step(4, 0));
            for _ in 0..20 {
                pace.measured(4, 30, step(4, 30));
            }
            pace.chunk(4)
        };
        assert_eq!(chunk(1.0), Chunk::Tokens(LEAST));
        let Chunk::Tokens(tokens) = chunk(214.0) else { panic!("it was measured") };
        assert!((99..=101).contains(&tokens), "{tokens}");
    }

    #[test]
    fn alone_a_prompt_takes_what_fits_into_a_second() {
        let mut pace = Pace::new(None);
        assert_eq!(pace.free_chunk(), UNKNOWN_FREE);
        for _ in 0..20 {
            pace.measured(0, 512, step(0, 512));
        }
        assert!((490..=500).contains(&pace.free_chunk()), "{}", pace.free_chunk());
    }

    #[test]
    fn one_slow_step_changes_little() {
        let mut pace = Pace::new(None);
        for _ in 0..10 {
            pace.measured(2, 0, step(2, 0));
            pace.measured(2, 20, step(2, 20));
        }
        let before = pace.chunk(2);
        pace.measured(2, 0, ms(5000.0));
        pace.measured(2, 20, ms(5000.0));
        let (Chunk::Tokens(before), Chunk::Tokens(after)) = (before, pace.chunk(2)) else { panic!("it was measured") };
        assert!(after >= before / 3 && after <= before * 2, "{before}, then {after}");
    }

    #[test]
    fn what_was_measured_long_ago_is_measured_again() {
        let mut pace = Pace::new(None);
        pace.measured(2, 0, step(2, 0));
        for _ in 0..=STALE {
            pace.measured(2, 20, step(2, 20));
        }
        assert_eq!(pace.chunk(2), Chunk::Nothing);
        pace.measured(2, 0, step(2, 0));
        assert_ne!(pace.chunk(2), Chunk::Nothing);
    }
}
