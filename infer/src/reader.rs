//! From drawn tokens to text, and where the text ends.

use crate::{FinishReason, Request};
use infer_core::{Detokenizer, Result, StopStrings, Token, Vocab};
use std::sync::Arc;

/// Turns drawn tokens into text, and sees where the text ends.
pub(crate) struct Reader {
    vocab: Arc<Vocab>,
    detokenizer: Detokenizer,
    stops: StopStrings,
    stop_tokens: Vec<Token>,
    ignore_end: bool,
    max_tokens: Option<usize>,
    /// Tokens that can be drawn before the context is full.
    room: usize,
    drawn: usize,
}

impl Reader {
    pub(crate) fn new(vocab: &Arc<Vocab>, request: &Request, room: usize) -> Result<Self> {
        Ok(Self {
            // The text goes on from the prompt, so a space it begins with is part of it.
            detokenizer: Detokenizer::new(vocab.clone()).with_leading_space(true),
            vocab: vocab.clone(),
            stops: StopStrings::new(&request.stop)?,
            stop_tokens: request.stop_tokens.clone(),
            ignore_end: request.ignore_end,
            max_tokens: request.max_tokens,
            room,
            drawn: 0,
        })
    }

    /// Whether a token is to be drawn at all.
    pub(crate) fn wants_any(&self) -> bool {
        self.max_tokens != Some(0)
    }

    /// Takes the next token; text that is now certain goes to `out`. Says why this token ends the text, if it does.
    pub(crate) fn take(&mut self, token: Token, out: &mut String) -> Result<Option<FinishReason>> {
        self.drawn += 1;
        if self.stop_tokens.contains(&token) {
            return Ok(Some(FinishReason::StopToken(token)));
        }
        if self.vocab.is_end(token) && !self.ignore_end {
            return Ok(Some(FinishReason::EndOfText));
        }
        let passed = self.stops.push(self.detokenizer.push(token)?);
        out.push_str(passed.text);
        Ok(if let Some(which) = passed.stop {
            Some(FinishReason::StopString(which))
        } else if self.max_tokens.is_some_and(|most| self.drawn >= most) {
            Some(FinishReason::Length)
        } else if self.drawn >= self.room {
            Some(FinishReason::ContextFull)
        } else {
            None
        })
    }

    /// The text has ended: what was held back goes to `out`, unless it was the beginning of what ended it.
    pub(crate) fn finish(&mut self, reason: FinishReason, out: &mut String) {
        if !matches!(reason, FinishReason::StopString(_)) {
            out.push_str(self.stops.push(self.detokenizer.finish()).text);
            out.push_str(self.stops.finish());
        }
    }
}
