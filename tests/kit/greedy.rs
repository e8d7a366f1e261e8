//! Runs of greedy decoding, and when two of them agree.
//!
//! Prefill and decode use other kernels, and batches of other shapes add numbers in another order. So on a real runtime
//! "the same tokens" means: equal up to the first position where the undisturbed run's two best logits lie closer
//! together than ε. Nothing may be lost, repeated or out of order. Where the very same passes are made the tokens are equal,
//! and a comparison with ε = 0 says so.

use infer::{Generator, Model, Request, Session, SessionOptions};
use std::str::FromStr;

/// Two logits closer than this may change places between kernels. Measured on SmolLM2 in Q4_1, over 480 positions after 20
/// prompts: computing a prompt in one pass or in pieces moves the best token's lead over the nine next best by up to 0.71
/// where a pass reaches 64 tokens, from which on attention adds up in `f32` and not in `f16`, and by nothing below that.
pub const EPSILON: f32 = 1.0;

/// How a greedy run is made: both sides must be told the same, for their passes to be the same.
#[derive(Clone, Copy, Debug)]
pub struct Settings {
    /// Threads of a pass.
    pub threads: usize,
    /// Positions of the context.
    pub context: usize,
    /// Tokens to decode for each prompt; fewer when the model ends the text.
    pub count: usize,
}

impl Settings {
    /// A session for such runs, which takes a prompt in passes of `batch` tokens.
    ///
    /// # Panics
    /// When it cannot be made.
    pub fn session(self, model: &dyn Model, batch: usize) -> Box<dyn Session> {
        let options = SessionOptions::new().with_context(self.context).with_batch(batch).with_threads(self.threads);
        model.session(&options).unwrap_or_else(|error| panic!("{error}"))
    }

    /// The greedy tokens after `prompt`, from an empty sequence.
    ///
    /// # Panics
    /// When a call fails.
    pub fn generate(self, model: &dyn Model, session: &mut dyn Session, prompt: &str) -> Vec<u32> {
        let request = Request::text(prompt).with_max_tokens(self.count);
        // A new one each time: nothing of the last prompt is reused.
        let mut generator = Generator::new(model.tokenizer());
        let done = generator.generate(session, &request).and_then(|generation| generation.complete());
        let done = done.unwrap_or_else(|error| panic!("{prompt:?}: {error}"));
        done.tokens.iter().map(|sampled| sampled.token.0).collect()
    }
}

/// The tokens of a greedy run, and how far each one's logit stood above the next best.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Run {
    /// The tokens, by id.
    pub tokens: Vec<u32>,
    /// One for each token.
    pub gaps: Vec<f32>,
}

impl Run {
    /// Compares the tokens of another run of the same prompt with this undisturbed one.
    ///
    /// # Errors
    /// They differ where this run was sure of its choice, or one run is longer: says where and how.
    pub fn agrees_with(&self, other: &[u32], epsilon: f32) -> Result<Agreement, String> {
        let differ = self.tokens.iter().zip(other).position(|(a, b)| a != b);
        match differ {
            None if self.tokens.len() == other.len() => Ok(Agreement::Equal),
            None => Err(format!("{} tokens against {}", self.tokens.len(), other.len())),
            Some(at) if self.gaps[at] < epsilon => Ok(Agreement::UntilNearTie(at)),
            Some(at) => Err(format!(
                "token {at} is {} against {}, with {} between the two best logits (a near-tie is below {epsilon})",
                self.tokens[at], other[at], self.gaps[at]
            )),
        }
    }
}

/// How two runs agree.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Agreement {
    /// Token for token.
    Equal,
    /// Token for token before this position, which is a near-tie.
    UntilNearTie(usize),
}

/// A line of `token:gap` pairs, as the C peer prints it.
impl FromStr for Run {
    type Err = String;

    fn from_str(line: &str) -> Result<Self, String> {
        let mut run = Self::default();
        for pair in line.split_whitespace() {
            let parsed = pair.split_once(':').and_then(|(id, gap)| Some((id.parse().ok()?, gap.parse().ok()?)));
            let (token, gap) = parsed.ok_or_else(|| format!("{pair:?} is no token:gap pair"))?;
            run.tokens.push(token);
            run.gaps.push(gap);
        }
        Ok(run)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run() -> Run {
        "5:3.25 6:0.01 7:2".parse().unwrap()
    }

    #[test]
    fn agrees_until_a_near_tie_and_no_further() {
        assert_eq!(run().agrees_with(&[5, 6, 7], 0.0), Ok(Agreement::Equal));
        assert_eq!(run().agrees_with(&[5, 9, 9], EPSILON), Ok(Agreement::UntilNearTie(1)));
        assert!(run().agrees_with(&[5, 9, 9], 0.0).unwrap_err().contains("token 1 is 6 against 9"));
        assert!(run().agrees_with(&[8, 6, 7], EPSILON).unwrap_err().contains("token 0 is 5 against 8"));
    }

    #[test]
    fn a_lost_or_repeated_token_is_no_agreement() {
        assert!(run().agrees_with(&[5, 6], EPSILON).is_err());
        assert!(run().agrees_with(&[5, 6, 7, 7], EPSILON).is_err());
        assert!(run().agrees_with(&[6, 7], EPSILON).is_err());
    }

    #[test]
    fn a_line_that_is_no_run_is_refused() {
        assert!("5:x".parse::<Run>().is_err() && "5".parse::<Run>().is_err());
    }
}
