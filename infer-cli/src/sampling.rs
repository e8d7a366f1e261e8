//! How tokens are drawn, as arguments.

use crate::failure::Failure;
use clap::builder::NonEmptyStringValueParser;
use infer::{DryBreakers, Sampling, Tokenizer};

#[derive(clap::Args, Debug)]
#[command(next_help_heading = "Sampling")]
pub(crate) struct SamplingArgs {
    /// 0 takes the most probable token; higher is more random.
    #[arg(long, value_name = "T", default_value_t = 0.0)]
    temperature: f32,

    /// The same seed gives the same text.
    #[arg(long, value_name = "S", default_value_t = 0)]
    seed: u64,

    /// Draw among the K most probable tokens; 0 is all.
    #[arg(long, value_name = "K", default_value_t = 0)]
    top_k: usize,

    /// Draw among tokens whose logit is at most so many standard deviations below the largest; 0 is all.
    #[arg(long, value_name = "N", default_value_t = 0.0)]
    top_n_sigma: f32,

    /// Draw among the tokens nearest to the expected surprise that together have this probability (locally typical).
    #[arg(long, value_name = "P", default_value_t = 1.0)]
    typical_p: f32,

    /// Draw among the most probable tokens that together have this probability.
    #[arg(long, value_name = "P", default_value_t = 1.0)]
    top_p: f32,

    /// Draw among tokens at least this probable in proportion to the most probable one.
    #[arg(long, value_name = "P", default_value_t = 0.0)]
    min_p: f32,

    /// How often the most obvious tokens are left out (XTC): all but one of those as probable as --xtc-threshold.
    #[arg(long, value_name = "P", default_value_t = 0.0)]
    xtc_probability: f32,

    /// From which probability on a token counts as obvious.
    #[arg(long, value_name = "P", default_value_t = 0.1)]
    xtc_threshold: f32,

    /// Moves the temperature by at most so much, up where many tokens are probable and down where few are; 0 is off.
    #[arg(long, value_name = "T", default_value_t = 0.0)]
    dynatemp_range: f32,

    /// Above 1 the temperature rises later, below 1 earlier.
    #[arg(long, value_name = "X", default_value_t = 1.0)]
    dynatemp_exponent: f32,

    /// Makes tokens that would go on with a repetition less probable (DRY); 0 is off, 0.8 is usual.
    #[arg(long, value_name = "X", default_value_t = 0.0)]
    dry_multiplier: f32,

    /// By how much more for each further token that repeats.
    #[arg(long, value_name = "X", default_value_t = 1.75)]
    dry_base: f32,

    /// How many tokens may repeat before it counts.
    #[arg(long, value_name = "N", default_value_t = 2)]
    dry_allowed_length: usize,

    /// How many of the last tokens repetitions are looked for in.
    #[arg(long, value_name = "N", default_value_t = 64)]
    dry_window: usize,

    /// What ends a repetition; may be given several times. If not given: a line break, a colon, a quotation mark, an asterisk.
    #[arg(long, value_name = "TEXT", allow_hyphen_values = true, value_parser = NonEmptyStringValueParser::new())]
    dry_breaker: Vec<String>,

    /// Makes tokens of the last --penalty-window less probable; 1 is off.
    #[arg(long, value_name = "X", default_value_t = 1.0)]
    repetition_penalty: f32,

    /// The same, by how often they occurred; 0 is off.
    #[arg(long, value_name = "X", default_value_t = 0.0)]
    frequency_penalty: f32,

    /// The same, whether they occurred; 0 is off.
    #[arg(long, value_name = "X", default_value_t = 0.0)]
    presence_penalty: f32,

    /// How many of the last tokens the penalties look at.
    #[arg(long, value_name = "N", default_value_t = 64)]
    penalty_window: usize,
}

impl SamplingArgs {
    /// All of it but DRY's breakers, which a vocabulary is needed for.
    pub(crate) fn sampling(&self) -> Result<Sampling, Failure> {
        let sampling = Sampling::default()
            .with_temperature(self.temperature)
            .with_seed(self.seed)
            .with_top_k(self.top_k)
            .with_top_n_sigma(self.top_n_sigma)
            .with_typical_p(self.typical_p)
            .with_top_p(self.top_p)
            .with_min_p(self.min_p)
            .with_xtc(self.xtc_probability, self.xtc_threshold)
            .with_dynatemp(self.dynatemp_range, self.dynatemp_exponent)
            .with_dry_multiplier(self.dry_multiplier)
            .with_dry_base(self.dry_base)
            .with_dry_allowed_length(self.dry_allowed_length)
            .with_dry_window(self.dry_window)
            .with_repetition_penalty(self.repetition_penalty)
            .with_frequency_penalty(self.frequency_penalty)
            .with_presence_penalty(self.presence_penalty)
            .with_penalty_window(self.penalty_window);
        // No token is named in them, so no vocabulary is needed to tell, and no model has to be loaded first.
        sampling.validate(0).map_err(|error| Failure::Usage(error.to_string()))?;
        if let Some(breaker) = self.dry_breaker.iter().find(|breaker| breaker.len() > DryBreakers::LONGEST) {
            let (len, most) = (breaker.len(), DryBreakers::LONGEST);
            return Err(Failure::Usage(format!("--dry-breaker has {len} bytes, it may have {most}")));
        }
        Ok(sampling)
    }

    /// Adds the breakers, where DRY is on.
    pub(crate) fn with_breakers(&self, sampling: Sampling, tokenizer: &dyn Tokenizer) -> Result<Sampling, Failure> {
        if self.dry_multiplier == 0.0 {
            return Ok(sampling);
        }
        let breakers = if self.dry_breaker.is_empty() {
            DryBreakers::of_texts(DryBreakers::COMMON, tokenizer)?
        } else {
            DryBreakers::of_texts(&self.dry_breaker, tokenizer)?
        };
        Ok(sampling.with_dry_breakers(breakers))
    }
}
