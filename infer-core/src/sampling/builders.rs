//! The builders of [`Sampling`].

use crate::{Constraint, DryBreakers, Sampling, Token};

impl Sampling {
    /// Sets [`temperature`](Self::temperature).
    #[must_use]
    pub fn with_temperature(mut self, temperature: f32) -> Self {
        self.temperature = temperature;
        self
    }

    /// Adds one entry to [`logit_bias`](Self::logit_bias).
    #[must_use]
    pub fn with_logit_bias(mut self, token: Token, bias: f32) -> Self {
        self.logit_bias.push((token, bias));
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

    /// Sets [`dry_multiplier`](Self::dry_multiplier), which turns DRY on.
    #[must_use]
    pub fn with_dry_multiplier(mut self, multiplier: f32) -> Self {
        self.dry_multiplier = multiplier;
        self
    }

    /// Sets [`dry_base`](Self::dry_base).
    #[must_use]
    pub fn with_dry_base(mut self, base: f32) -> Self {
        self.dry_base = base;
        self
    }

    /// Sets [`dry_allowed_length`](Self::dry_allowed_length).
    #[must_use]
    pub fn with_dry_allowed_length(mut self, tokens: usize) -> Self {
        self.dry_allowed_length = tokens;
        self
    }

    /// Sets [`dry_window`](Self::dry_window).
    #[must_use]
    pub fn with_dry_window(mut self, tokens: usize) -> Self {
        self.dry_window = tokens;
        self
    }

    /// Sets [`dry_breakers`](Self::dry_breakers).
    #[must_use]
    pub fn with_dry_breakers(mut self, breakers: DryBreakers) -> Self {
        self.dry_breakers = breakers;
        self
    }

    /// Sets [`top_n_sigma`](Self::top_n_sigma).
    #[must_use]
    pub fn with_top_n_sigma(mut self, deviations: f32) -> Self {
        self.top_n_sigma = deviations;
        self
    }

    /// Sets [`top_k`](Self::top_k).
    #[must_use]
    pub fn with_top_k(mut self, top_k: usize) -> Self {
        self.top_k = top_k;
        self
    }

    /// Sets [`typical_p`](Self::typical_p).
    #[must_use]
    pub fn with_typical_p(mut self, typical_p: f32) -> Self {
        self.typical_p = typical_p;
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

    /// Sets [`xtc_probability`](Self::xtc_probability) and [`xtc_threshold`](Self::xtc_threshold).
    #[must_use]
    pub fn with_xtc(mut self, probability: f32, threshold: f32) -> Self {
        self.xtc_probability = probability;
        self.xtc_threshold = threshold;
        self
    }

    /// Sets [`dynatemp_range`](Self::dynatemp_range) and [`dynatemp_exponent`](Self::dynatemp_exponent).
    #[must_use]
    pub fn with_dynatemp(mut self, range: f32, exponent: f32) -> Self {
        self.dynatemp_range = range;
        self.dynatemp_exponent = exponent;
        self
    }

    /// Sets [`seed`](Self::seed).
    #[must_use]
    pub fn with_seed(mut self, seed: u64) -> Self {
        self.seed = seed;
        self
    }

    /// Sets [`logprobs`](Self::logprobs).
    #[must_use]
    pub fn with_logprobs(mut self, tokens: usize) -> Self {
        self.logprobs = tokens;
        self
    }

    /// Sets [`constraint`](Self::constraint).
    #[must_use]
    pub fn with_constraint(mut self, constraint: Constraint) -> Self {
        self.constraint = Some(constraint);
        self
    }
}
