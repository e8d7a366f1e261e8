use crate::{Error, Result, Token};
use std::fmt;

/// How a next token is chosen. Plain data: it can be stored, sent to another process, compared.
///
/// The default is greedy decoding: the most probable token, no penalties.
///
/// ```
/// use infer_core::Sampling;
///
/// let sampling = Sampling::default().with_temperature(0.8).with_top_k(40).with_top_p(0.95).with_seed(7);
/// assert!(sampling.validate(32_000).is_ok());
/// let error = sampling.with_top_p(1.5).validate(32_000).unwrap_err();
/// assert_eq!(error.to_string(), "top_p is 1.5, it must be between 0 and 1");
/// ```
#[derive(Clone, Debug, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize), serde(default))]
#[non_exhaustive]
pub struct Sampling {
    /// Divides the logits before a token is drawn; 0 takes the most probable one.
    pub temperature: f32,
    /// Keeps the `top_k` most probable tokens; 0 keeps all.
    pub top_k: usize,
    /// Keeps the fewest most probable tokens whose probabilities add up to this; 1 keeps all.
    pub top_p: f32,
    /// Keeps tokens at least this probable in proportion to the most probable one; 0 keeps all.
    pub min_p: f32,
    /// Divides positive logits, multiplies negative ones, of tokens among the last [`penalty_window`](Self::penalty_window); 1 is off.
    pub repetition_penalty: f32,
    /// Subtracted from a token's logit once for each time it occurs in the window; 0 is off.
    pub frequency_penalty: f32,
    /// Subtracted from a token's logit when it occurs in the window at all; 0 is off.
    pub presence_penalty: f32,
    /// How many of the last tokens, prompt included, the penalties look at.
    pub penalty_window: usize,
    /// Added to the logits of these tokens; negative infinity forbids one.
    pub logit_bias: Vec<(Token, f32)>,
    /// What randomness is made of, together with the position: the same seed gives the same draws.
    pub seed: u64,
}

impl Default for Sampling {
    fn default() -> Self {
        Self {
            temperature: 0.0,
            top_k: 0,
            top_p: 1.0,
            min_p: 0.0,
            repetition_penalty: 1.0,
            frequency_penalty: 0.0,
            presence_penalty: 0.0,
            penalty_window: 64,
            logit_bias: Vec::new(),
            seed: 0,
        }
    }
}

impl Sampling {
    /// The most probable token, always. The same as the default.
    #[must_use]
    pub fn greedy() -> Self {
        Self::default()
    }

    /// Whether the most probable token is taken (temperature 0), so that no random number is used.
    #[must_use]
    pub fn is_greedy(&self) -> bool {
        self.temperature == 0.0
    }

    /// Sets [`temperature`](Self::temperature).
    #[must_use]
    pub fn with_temperature(mut self, temperature: f32) -> Self {
        self.temperature = temperature;
        self
    }

    /// Sets [`top_k`](Self::top_k).
    #[must_use]
    pub fn with_top_k(mut self, top_k: usize) -> Self {
        self.top_k = top_k;
        self
    }

    /// Sets [`top_p`](Self::top_p).
    #[must_use]
    pub fn with_top_p(mut self, top_p: f32) -> Self {
        self.top_p = top_p;
        self
    }

    /// Sets [`min_p`](Self::min_p).
    #[must_use]
    pub fn with_min_p(mut self, min_p: f32) -> Self {
        self.min_p = min_p;
        self
    }

    /// Sets [`repetition_penalty`](Self::repetition_penalty).
    #[must_use]
    pub fn with_repetition_penalty(mut self, penalty: f32) -> Self {
        self.repetition_penalty = penalty;
        self
    }

    /// Sets [`frequency_penalty`](Self::frequency_penalty).
    #[must_use]
    pub fn with_frequency_penalty(mut self, penalty: f32) -> Self {
        self.frequency_penalty = penalty;
        self
    }

    /// Sets [`presence_penalty`](Self::presence_penalty).
    #[must_use]
    pub fn with_presence_penalty(mut self, penalty: f32) -> Self {
        self.presence_penalty = penalty;
        self
    }

    /// Sets [`penalty_window`](Self::penalty_window).
    #[must_use]
    pub fn with_penalty_window(mut self, tokens: usize) -> Self {
        self.penalty_window = tokens;
        self
    }

    /// Adds one entry to [`logit_bias`](Self::logit_bias).
    #[must_use]
    pub fn with_logit_bias(mut self, token: Token, bias: f32) -> Self {
        self.logit_bias.push((token, bias));
        self
    }

    /// Sets [`seed`](Self::seed).
    #[must_use]
    pub fn with_seed(mut self, seed: u64) -> Self {
        self.seed = seed;
        self
    }

    /// Checks every field, for a vocabulary of `vocab` entries. [`Sampler::new`](crate::sampling::Sampler::new) does it too.
    ///
    /// # Errors
    /// [`InvalidInput`](crate::ErrorKind::InvalidInput), naming the field, its value and the range it must be in.
    pub fn validate(&self, vocab: usize) -> Result<()> {
        let finite = f32::MIN..=f32::MAX;
        field("temperature", self.temperature, "0 or more, and finite", (0.0..=f32::MAX).contains(&self.temperature))?;
        field("top_p", self.top_p, "between 0 and 1", (0.0..=1.0).contains(&self.top_p))?;
        field("min_p", self.min_p, "between 0 and 1", (0.0..=1.0).contains(&self.min_p))?;
        let repetition = self.repetition_penalty;
        field("repetition_penalty", repetition, "more than 0, and finite", repetition > 0.0 && repetition.is_finite())?;
        field("frequency_penalty", self.frequency_penalty, "finite", finite.contains(&self.frequency_penalty))?;
        field("presence_penalty", self.presence_penalty, "finite", finite.contains(&self.presence_penalty))?;
        for &(token, bias) in &self.logit_bias {
            let name = format_args!("logit_bias of token {token}");
            if token.index() >= vocab {
                return Err(Error::invalid_input(format!("{name}: the vocabulary has {vocab} tokens, from 0")));
            }
            field(name, bias, "finite, or negative infinity to forbid the token", bias < f32::INFINITY)?;
        }
        Ok(())
    }

    /// Whether the penalties change anything.
    pub(crate) fn has_penalties(&self) -> bool {
        self.penalty_window > 0
            && (self.repetition_penalty != 1.0 || self.frequency_penalty != 0.0 || self.presence_penalty != 0.0)
    }
}

fn field(name: impl fmt::Display, value: f32, range: &str, within: bool) -> Result<()> {
    if within { Ok(()) } else { Err(Error::invalid_input(format!("{name} is {value}, it must be {range}"))) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ErrorKind;

    #[test]
    fn the_default_is_greedy_and_valid() {
        assert!(Sampling::default().is_greedy());
        assert!(!Sampling::default().has_penalties());
        Sampling::default().validate(1).unwrap();
        Sampling::greedy().with_logit_bias(Token(0), f32::NEG_INFINITY).validate(1).unwrap();
    }

    #[test]
    fn refuses_by_field_and_range() {
        let greedy = Sampling::greedy;
        for (sampling, begins) in [
            (greedy().with_temperature(-1.0), "temperature is -1, it must be 0 or more"),
            (greedy().with_temperature(f32::NAN), "temperature is NaN"),
            (greedy().with_temperature(f32::INFINITY), "temperature is inf"),
            (greedy().with_top_p(1.01), "top_p is 1.01, it must be between 0 and 1"),
            (greedy().with_top_p(-0.1), "top_p is -0.1"),
            (greedy().with_top_p(f32::NAN), "top_p is NaN"),
            (greedy().with_min_p(2.0), "min_p is 2"),
            (greedy().with_min_p(f32::NAN), "min_p is NaN"),
            (greedy().with_repetition_penalty(0.0), "repetition_penalty is 0, it must be more than 0"),
            (greedy().with_repetition_penalty(-1.0), "repetition_penalty is -1"),
            (greedy().with_repetition_penalty(f32::INFINITY), "repetition_penalty is inf"),
            (greedy().with_repetition_penalty(f32::NAN), "repetition_penalty is NaN"),
            (greedy().with_frequency_penalty(f32::NAN), "frequency_penalty is NaN, it must be finite"),
            (greedy().with_frequency_penalty(f32::INFINITY), "frequency_penalty is inf"),
            (greedy().with_presence_penalty(f32::NEG_INFINITY), "presence_penalty is -inf"),
            (greedy().with_logit_bias(Token(9), f32::NAN), "logit_bias of token 9 is NaN"),
            (greedy().with_logit_bias(Token(9), f32::INFINITY), "logit_bias of token 9 is inf"),
            (greedy().with_logit_bias(Token(10), 1.0), "logit_bias of token 10: the vocabulary has 10 tokens"),
        ] {
            let error = sampling.validate(10).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::InvalidInput);
            assert!(error.to_string().starts_with(begins), "{error}");
        }
    }
}
