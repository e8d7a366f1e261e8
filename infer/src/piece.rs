use crate::Timeline;
#[cfg(feature = "chat")]
use infer_core::chat::ToolCall;
use infer_core::{Sampled, Token};
use std::{fmt, time::Duration};

/// What came of a text since the piece before: usually one token, more where the reader is slower than the engine, or where tokens
/// were forced.
#[derive(Clone, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct Piece {
    /// Which completion it belongs to, of the [`Request::n`](crate::Request::n) there are.
    pub index: usize,
    /// Text to append to what there is. It may be empty while a character is not whole yet or what came may be the
    /// beginning of a stop string, and hold the text of several tokens afterwards.
    pub text: String,
    /// What the model thought before, where the answer's [format](crate::Request::answer_format) tells it from the text: to
    /// append likewise.
    #[cfg(feature = "chat")]
    pub reasoning: String,
    /// The functions the model wants called. A call comes when it is whole.
    #[cfg(feature = "chat")]
    pub tool_calls: Vec<ToolCall>,
    /// The tokens that were drawn, the one that ended the text included; none where only held-back text came out.
    pub tokens: Vec<Sampled>,
    /// One for each of [`tokens`](Self::tokens) where [`Sampling::logprobs`](crate::Sampling::logprobs) asks for some: the most
    /// probable ones at its place, the most probable first; none where a token was forced by what came before it.
    pub top: Vec<Vec<Sampled>>,
    /// In the last piece of a completion: how it ended.
    pub finish: Option<Finish>,
}

impl Piece {
    /// Whether there is nothing in it.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        #[cfg(feature = "chat")]
        if !self.reasoning.is_empty() || !self.tool_calls.is_empty() {
            return false;
        }
        self.text.is_empty() && self.tokens.is_empty() && self.finish.is_none()
    }
}

/// How a completion ended, and what it took.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Finish {
    /// Why it ended.
    pub reason: FinishReason,
    /// Counts and times.
    pub stats: Stats,
    /// When each token came, since the request was made: the first is the time to first token, and the differences are the
    /// inter-token latencies.
    pub token_times: Vec<Duration>,
    /// What an engine did for it, and when; nothing by hand.
    pub timeline: Timeline,
}

impl Finish {
    pub(crate) fn new(reason: FinishReason, stats: Stats, token_times: Vec<Duration>) -> Self {
        Self { reason, stats, token_times, timeline: Timeline::default() }
    }

    /// Adds what an engine did for it.
    pub(crate) fn with_timeline(mut self, timeline: Timeline) -> Self {
        self.timeline = timeline;
        self
    }
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
    /// It was cancelled, or the session's [`Interrupt`](crate::Interrupt) was raised. What was computed until then is kept.
    Cancelled,
    /// The [deadline](crate::Request::deadline) has passed.
    Deadline,
    /// The model ended the text, and wants functions called: [`Piece::tool_calls`].
    #[cfg(feature = "chat")]
    ToolCalls,
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
            Self::Deadline => "deadline",
            #[cfg(feature = "chat")]
            Self::ToolCalls => "tool_calls",
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
    /// Those of them that a sequence held already, from a text before, and that were not computed again.
    pub cached_tokens: usize,
    /// Tokens drawn, the one that ended the text included.
    pub generated_tokens: usize,
    /// How long the request waited before anything of it was computed; nothing by hand.
    pub queue: Duration,
    /// From there (by hand, from the first call of `next`) to the first token, that token's draw included.
    pub prefill: Duration,
    /// From the first token to the last, with everything in between: passes, draws, detokenising, and, by hand, the caller's
    /// own time between two calls of `next`.
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

/// A whole text, as [`Pieces::complete`](crate::Pieces::complete) and [`Generation::complete`](crate::Generation::complete) collect it.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Completion {
    /// The text, without the stop string that ended it.
    pub text: String,
    /// What the model thought before, where the answer's [format](crate::Request::answer_format) tells it from the text.
    #[cfg(feature = "chat")]
    pub reasoning: String,
    /// The functions the model wants called.
    #[cfg(feature = "chat")]
    pub tool_calls: Vec<ToolCall>,
    /// The tokens that were drawn.
    pub tokens: Vec<Sampled>,
    /// One for each of [`tokens`](Self::tokens) where [`Sampling::logprobs`](crate::Sampling::logprobs) asks for some: the most
    /// probable ones at its place, the most probable first; none where a token was forced by what came before it.
    pub top: Vec<Vec<Sampled>>,
    /// Why it ended.
    pub finish: FinishReason,
    /// Counts and times.
    pub stats: Stats,
    /// When each token came, since the request was made.
    pub token_times: Vec<Duration>,
    /// What an engine did for it, and when; nothing by hand.
    pub timeline: Timeline,
}

/// Puts the pieces of one completion together.
#[derive(Default)]
pub(crate) struct Collector {
    text: String,
    #[cfg(feature = "chat")]
    reasoning: String,
    #[cfg(feature = "chat")]
    tool_calls: Vec<ToolCall>,
    tokens: Vec<Sampled>,
    top: Vec<Vec<Sampled>>,
    finish: Option<Finish>,
}

impl Collector {
    pub(crate) fn push(&mut self, piece: Piece) {
        self.text.push_str(&piece.text);
        #[cfg(feature = "chat")]
        {
            self.reasoning.push_str(&piece.reasoning);
            self.tool_calls.extend(piece.tool_calls);
        }
        self.tokens.extend(piece.tokens);
        self.top.extend(piece.top);
        self.finish = self.finish.take().or(piece.finish);
    }

    /// The tokens so far.
    #[cfg(test)]
    pub(crate) fn tokens(&self) -> &[Sampled] {
        &self.tokens
    }

    /// How it ended, where no piece said so.
    pub(crate) fn finish_with(&mut self, finish: impl FnOnce() -> Finish) {
        self.finish.get_or_insert_with(finish);
    }

    /// The whole; `None` while the last piece has not come.
    pub(crate) fn complete(self) -> Option<Completion> {
        let Finish { reason, stats, token_times, timeline } = self.finish?;
        Some(Completion {
            text: self.text,
            #[cfg(feature = "chat")]
            reasoning: self.reasoning,
            #[cfg(feature = "chat")]
            tool_calls: self.tool_calls,
            tokens: self.tokens,
            top: self.top,
            finish: reason,
            stats,
            token_times,
            timeline,
        })
    }
}
