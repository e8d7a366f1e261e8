//! One line of a batch's output.

use crate::output::Place;
use infer::{Completion, ErrorKind, FinishReason, Token, chat::ToolCall};
use serde::{Deserialize, Serialize, de::IgnoredAny};
use serde_json::value::RawValue;
use std::hash::Hasher;
use twox_hash::XxHash3_64;

/// What a line of the input and everything else that its answer depends on come to: the answer of one is never taken for that of
/// another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Key(u64);

impl Key {
    /// `settings`: what was given for all lines.
    pub(crate) fn new(settings: &str, line: &[u8]) -> Self {
        let mut hasher = XxHash3_64::with_seed(XxHash3_64::oneshot(settings.as_bytes()));
        hasher.write(line);
        Self(hasher.finish())
    }
}

impl Serialize for Key {
    fn serialize<S: serde::Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.collect_str(&format_args!("{:016x}", self.0))
    }
}

impl<'de> Deserialize<'de> for Key {
    fn deserialize<D: serde::Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        let text = String::deserialize(from)?;
        u64::from_str_radix(&text, 16).map(Self).map_err(serde::de::Error::custom)
    }
}

/// An answer, or why there is none.
#[derive(Serialize)]
pub(crate) struct Answer<'a> {
    /// The request's number, from 0.
    pub(crate) index: u64,
    /// What the input calls it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) id: Option<&'a RawValue>,
    #[serde(flatten)]
    pub(crate) said: Said,
    pub(crate) key: Key,
}

#[derive(Serialize)]
#[serde(untagged)]
pub(crate) enum Said {
    One {
        #[serde(flatten)]
        text: Text,
        usage: Usage,
    },
    Several {
        completions: Vec<Text>,
        usage: Usage,
    },
    None {
        error: Reason,
    },
}

/// One completion.
#[derive(Serialize)]
pub(crate) struct Text {
    text: String,
    /// What the model thought before.
    #[serde(skip_serializing_if = "String::is_empty")]
    reasoning: String,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    tool_calls: Vec<ToolCall>,
    tokens: Vec<Token>,
    #[serde(skip_serializing_if = "Option::is_none")]
    logprobs: Option<Vec<Place>>,
    finish_reason: &'static str,
}

/// What a request took, all its completions together.
#[derive(Clone, Copy, Default, Serialize)]
pub(crate) struct Usage {
    pub(crate) prompt_tokens: usize,
    /// Those of them that were not computed again.
    pub(crate) cached_tokens: usize,
    pub(crate) completion_tokens: usize,
}

#[derive(Serialize)]
pub(crate) struct Reason {
    kind: &'static str,
    message: String,
}

impl Said {
    /// `None` where one of them was stopped.
    pub(crate) fn new(completions: Vec<Completion>, has_logprobs: bool) -> Option<Self> {
        if completions.iter().any(|done| done.finish == FinishReason::Cancelled) {
            return None;
        }
        let mut usage = Usage::default();
        if let Some(first) = completions.first() {
            usage.prompt_tokens = first.stats.prompt_tokens;
            usage.cached_tokens = first.stats.cached_tokens;
        }
        usage.completion_tokens = completions.iter().map(|done| done.tokens.len()).sum();
        let mut texts: Vec<_> = completions.into_iter().map(|done| Text::new(done, has_logprobs)).collect();
        Some(match texts.pop() {
            Some(text) if texts.is_empty() => Self::One { text, usage },
            last => Self::Several { completions: texts.into_iter().chain(last).collect(), usage },
        })
    }

    pub(crate) fn failed(kind: ErrorKind, message: String) -> Self {
        Self::None { error: Reason { kind: kind.as_str(), message } }
    }

    /// What it took; `None` where it failed.
    pub(crate) fn usage(&self) -> Option<Usage> {
        match self {
            Self::One { usage, .. } | Self::Several { usage, .. } => Some(*usage),
            Self::None { .. } => None,
        }
    }
}

impl Text {
    fn new(done: Completion, has_logprobs: bool) -> Self {
        Self {
            logprobs: has_logprobs.then(|| Place::all(&done.tokens, done.top)),
            tokens: done.tokens.iter().map(|sampled| sampled.token).collect(),
            text: done.text,
            reasoning: done.reasoning,
            tool_calls: done.tool_calls,
            finish_reason: done.finish.as_str(),
        }
    }
}

#[cfg(test)]
impl Said {
    /// An answer of so many tokens.
    pub(crate) fn of(text: &str, count: usize) -> Self {
        let tokens = (0..).take(count).map(Token).collect();
        let usage = Usage { prompt_tokens: 1, cached_tokens: 0, completion_tokens: count };
        let (text, reasoning, tool_calls) = (text.to_owned(), String::new(), Vec::new());
        Self::One { text: Text { text, reasoning, tool_calls, tokens, logprobs: None, finish_reason: "length" }, usage }
    }
}

/// What of a line is read when a batch goes on.
#[derive(Deserialize)]
pub(crate) struct Mark {
    pub(crate) index: u64,
    pub(crate) key: Key,
    pub(crate) error: Option<IgnoredAny>,
}
