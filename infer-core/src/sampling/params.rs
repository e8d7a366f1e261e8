use crate::{Constraint, DryBreakers, Error, Result, Token};
use std::fmt;

/// How a next token is chosen. Plain data: it can be stored, sent to another process, compared.
///
/// The default is greedy decoding: the most probable token, no penalties. The fields stand in the order in which they act, but
/// for [`temperature`](Self::temperature), which comes last of all; [`sampling`](crate::sampling) has the formulas.
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
    /// Added to the logits of these tokens; negative infinity forbids one.
    pub logit_bias: Vec<(Token, f32)>,
    /// Divides positive logits, multiplies negative ones, of tokens among the last [`penalty_window`](Self::penalty_window); 1 is off.
    pub repetition_penalty: f32,
    /// Subtracted from a token's logit once for each time it occurs in the window; 0 is off.
    pub frequency_penalty: f32,
    /// Subtracted from a token's logit when it occurs in the window at all; 0 is off.
    pub presence_penalty: f32,
    /// How many of the last tokens, prompt included, the penalties look at.
    pub penalty_window: usize,
    /// DRY: what is subtracted from the logit of a token that would make a repetition longer than
    /// [`dry_allowed_length`](Self::dry_allowed_length) by one; 0 is off.
    pub dry_multiplier: f32,
    /// What that is multiplied with for each further token of the repetition.
    pub dry_base: f32,
    /// How many tokens may stand twice before a further one costs something.
    pub dry_allowed_length: usize,
    /// How many of the last tokens, prompt included, repetitions are looked for in. A draw takes time in proportion.
    pub dry_window: usize,
    /// What ends a repetition: no longer one is seen than what has come since. See [`DryBreakers`].
    pub dry_breakers: DryBreakers,
    /// Keeps tokens whose logit is at most so many standard deviations below the largest; 0 keeps all.
    pub top_n_sigma: f32,
    /// Keeps the `top_k` most probable tokens; 0 keeps all.
    pub top_k: usize,
    /// Keeps the fewest tokens that together are more probable than this, those first whose information is nearest to the
    /// expected one; 1 keeps all. The most probable token may not be among them.
    pub typical_p: f32,
    /// Keeps the fewest most probable tokens whose probabilities add up to this; 1 keeps all.
    pub top_p: f32,
    /// Keeps tokens at least this probable in proportion to the most probable one; 0 keeps all.
    pub min_p: f32,
    /// XTC: with this probability, of the tokens at least as probable as [`xtc_threshold`](Self::xtc_threshold) only the
    /// least probable is kept; 0 is off.
    pub xtc_probability: f32,
    /// From which probability on a token counts as an obvious choice. Above 0.5 there is never more than one, so nothing happens.
    pub xtc_threshold: f32,
    /// Moves the temperature with how undecided the model is, from `temperature - dynatemp_range` (0 at least) where it
    /// is certain to `temperature + dynatemp_range` where all tokens are as probable; 0 is off.
    pub dynatemp_range: f32,
    /// The power by which it moves: above 1 the temperature rises late, below 1 early.
    pub dynatemp_exponent: f32,
    /// What randomness is made of, together with the position: the same seed gives the same draws.
    pub seed: u64,
    /// How many of the most probable tokens [`Outputs::top`](crate::Outputs::top) is to have beside the one that is drawn; 0 is none.
    pub logprobs: usize,
    /// What the generated text must be. Other tokens are out of the question before anything else is looked at.
    pub constraint: Option<Constraint>,
}

impl Default for Sampling {
    fn default() -> Self {
        Self {
            temperature: 0.0,
            logit_bias: Vec::new(),
            repetition_penalty: 1.0,
            frequency_penalty: 0.0,
            presence_penalty: 0.0,
            penalty_window: 64,
            dry_multiplier: 0.0,
            dry_base: 1.75,
            dry_allowed_length: 2,
            dry_window: 64,
            dry_breakers: DryBreakers::default(),
            top_n_sigma: 0.0,
            top_k: 0,
            typical_p: 1.0,
            top_p: 1.0,
            min_p: 0.0,
            xtc_probability: 0.0,
            xtc_threshold: 0.1,
            dynatemp_range: 0.0,
            dynatemp_exponent: 1.0,
            seed: 0,
            logprobs: 0,
            constraint: None,
        }
    }
}

impl Sampling {
    /// The most probable token, always. The same as the default.
    #[must_use]
    pub fn greedy() -> Self {
        Self::default()
    }

    /// Whether the most probable token is always taken: temperature 0, and nothing that would move it or leave that token out.
    /// No random number is used then.
    #[must_use]
    pub fn is_greedy(&self) -> bool {
        self.temperature == 0.0 && self.dynatemp_range == 0.0 && self.typical_p >= 1.0 && self.xtc_probability == 0.0
    }

    /// Checks every field, for a vocabulary of `vocab` entries. [`Sampler::new`](crate::sampling::Sampler::new) does it too.
    ///
    /// # Errors
    /// [`InvalidInput`](crate::ErrorKind::InvalidInput), naming the field, its value and the range it must be in.
    pub fn validate(&self, vocab: usize) -> Result<()> {
        const SHARE: (&str, std::ops::RangeInclusive<f32>) = ("between 0 and 1", 0.0..=1.0);
        const POSITIVE: (&str, std::ops::RangeInclusive<f32>) = ("0 or more, and finite", 0.0..=f32::MAX);
        const FINITE: (&str, std::ops::RangeInclusive<f32>) = ("finite", f32::MIN..=f32::MAX);
        let more_than_0 = ("more than 0, and finite", f32::from_bits(1)..=f32::MAX);
        for (name, value, (says, range)) in [
            ("temperature", self.temperature, POSITIVE),
            ("repetition_penalty", self.repetition_penalty, more_than_0),
            ("frequency_penalty", self.frequency_penalty, FINITE),
            ("presence_penalty", self.presence_penalty, FINITE),
            ("dry_multiplier", self.dry_multiplier, POSITIVE),
            ("dry_base", self.dry_base, ("1 or more, and finite", 1.0..=f32::MAX)),
            ("top_n_sigma", self.top_n_sigma, POSITIVE),
            ("typical_p", self.typical_p, SHARE),
            ("top_p", self.top_p, SHARE),
            ("min_p", self.min_p, SHARE),
            ("xtc_probability", self.xtc_probability, SHARE),
            ("xtc_threshold", self.xtc_threshold, SHARE),
            ("dynatemp_range", self.dynatemp_range, POSITIVE),
            ("dynatemp_exponent", self.dynatemp_exponent, POSITIVE),
        ] {
            field(name, value, says, range.contains(&value))?;
        }
        if let Some(token) = self.dry_breakers.tokens().find(|token| token.index() >= vocab) {
            return Err(Error::invalid_input(format!(
                "token {token} of dry_breakers: the vocabulary has {vocab} tokens, from 0"
            )));
        }
        for &(token, bias) in &self.logit_bias {
            let name = format_args!("logit_bias of token {token}");
            if token.index() >= vocab {
                return Err(Error::invalid_input(format!("{name}: the vocabulary has {vocab} tokens, from 0")));
            }
            field(name, bias, "finite, or negative infinity to forbid the token", bias < f32::INFINITY)?;
        }
        Ok(())
    }

    /// Whether DRY changes anything.
    pub(crate) fn has_dry(&self) -> bool {
        self.dry_multiplier > 0.0 && self.dry_window > 0
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
        let breakers = DryBreakers::new([[Token(9), Token(10)]]);
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
            (greedy().with_dry_multiplier(-1.0), "dry_multiplier is -1, it must be 0 or more, and finite"),
            (greedy().with_dry_multiplier(f32::INFINITY), "dry_multiplier is inf"),
            (greedy().with_dry_base(0.99), "dry_base is 0.99, it must be 1 or more, and finite"),
            (greedy().with_dry_base(f32::NAN), "dry_base is NaN"),
            (greedy().with_dry_breakers(breakers), "token 10 of dry_breakers: the vocabulary has 10 tokens"),
            (greedy().with_top_n_sigma(-1.0), "top_n_sigma is -1, it must be 0 or more"),
            (greedy().with_top_n_sigma(f32::INFINITY), "top_n_sigma is inf"),
            (greedy().with_typical_p(1.5), "typical_p is 1.5, it must be between 0 and 1"),
            (greedy().with_typical_p(f32::NAN), "typical_p is NaN"),
            (greedy().with_xtc(-0.5, 0.1), "xtc_probability is -0.5, it must be between 0 and 1"),
            (greedy().with_xtc(0.5, 1.1), "xtc_threshold is 1.1, it must be between 0 and 1"),
            (greedy().with_dynatemp(-0.1, 1.0), "dynatemp_range is -0.1, it must be 0 or more"),
            (greedy().with_dynatemp(0.1, f32::NAN), "dynatemp_exponent is NaN, it must be 0 or more"),
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
