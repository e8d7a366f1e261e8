use crate::Token;

/// How a next token is chosen. Plain data: it can be stored, sent to another process, compared.
///
/// The default is greedy decoding: the most probable token, no penalties.
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
