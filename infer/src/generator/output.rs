use infer_core::{Sampled, Token};
use std::{fmt, time::Duration};

/// What one step of a generation brought.
#[derive(Clone, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct Piece {
    /// Text to append to what there is. It may be empty while a character is not whole yet or what came may be the
    /// beginning of a stop string, and hold the text of several tokens afterwards.
    pub text: String,
    /// The tokens that were drawn, the one that ended the text included; none where only held-back text came out.
    pub tokens: Vec<Sampled>,
    /// The most probable tokens where the first of [`tokens`](Self::tokens) was drawn, the most probable first; as many as
    /// [`Sampling::logprobs`](crate::Sampling::logprobs) asks.
    pub top: Vec<Sampled>,
}

/// Why a generation ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum FinishReason {
    /// The model ended the text.
    EndOfText,
    /// A stop string came, by its index in [`Request::stop`](crate::Request::stop).
    StopString(usize),
    /// One of [`Request::stop_tokens`](crate::Request::stop_tokens) came.
    StopToken(Token),
    /// As many tokens were drawn as were asked for.
    Length,
    /// The context has no room for a further token.
    ContextFull,
    /// The session's [`Interrupt`](crate::Interrupt) was raised. What was computed until then is kept.
    Cancelled,
}

impl FinishReason {
    /// The reason as one word, as the command prints it; a stop string and a stop token are both `stop`.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::EndOfText => "end_of_text",
            Self::StopString(_) | Self::StopToken(_) => "stop",
            Self::Length => "length",
            Self::ContextFull => "context_full",
            Self::Cancelled => "cancelled",
        }
    }
}

impl fmt::Display for FinishReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// What a generation counted and how long it took.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Stats {
    /// Tokens of the prompt.
    pub prompt_tokens: usize,
    /// Those of them that the sequence held already, from a text before, and that were not computed again.
    pub reused_tokens: usize,
    /// Tokens drawn, the one that ended the text included.
    pub generated_tokens: usize,
    /// From the first call of `next` to the first token, that token's draw included.
    pub prefill: Duration,
    /// From the first token to the last, with everything in between: passes, draws, detokenising, and the caller's own
    /// time between two calls of `next`.
    pub decode: Duration,
}

impl Stats {
    /// Tokens a second after the first one; 0 when there was no second one.
    #[must_use]
    pub fn decode_rate(&self) -> f64 {
        let (tokens, seconds) = (self.generated_tokens.saturating_sub(1), self.decode.as_secs_f64());
        if tokens == 0 || seconds == 0.0 { 0.0 } else { tokens as f64 / seconds }
    }
}

/// A whole generation, as [`Generation::complete`](crate::Generation::complete) collects it.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Completion {
    /// The text, without the stop string that ended it.
    pub text: String,
    /// The tokens that were drawn.
    pub tokens: Vec<Sampled>,
    /// One for each of [`tokens`](Self::tokens): the most probable ones at its place, the most probable first; none where a
    /// token was forced by what came before it, and as many as [`Sampling::logprobs`](crate::Sampling::logprobs) asks.
    pub top: Vec<Vec<Sampled>>,
    /// Why it ended.
    pub finish: FinishReason,
    /// Counts and times.
    pub stats: Stats,
}
