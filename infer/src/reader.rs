//! From drawn tokens to text, and where the text ends.

#[cfg(feature = "chat")]
mod answer;
#[cfg(not(feature = "chat"))]
#[path = "reader/plain.rs"]
mod answer;

use crate::{FinishReason, Piece, Request};
use answer::Answer;
use infer_core::{Detokenizer, Result, StopStrings, Token, Vocab};
use std::sync::Arc;

/// Turns drawn tokens into text, sees where the text ends, and takes apart what is an answer: reasoning, content, calls.
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
    answer: Answer,
}

impl Reader {
    /// A reader for a request that was [prepared](crate::prompt::Prompter::prepare).
    pub(crate) fn new(vocab: &Arc<Vocab>, request: &Request, room: usize) -> Result<Self> {
        // The text goes on from the prompt, so a space it begins with is part of it.
        let detokenizer = Detokenizer::new(vocab.clone()).with_leading_space(true);
        Ok(Self {
            detokenizer: Answer::show_markers(request, detokenizer),
            vocab: vocab.clone(),
            stops: StopStrings::new(&request.stop)?,
            stop_tokens: request.stop_tokens.clone(),
            ignore_end: request.ignore_end,
            max_tokens: request.max_tokens,
            room,
            drawn: 0,
            answer: Answer::new(request)?,
        })
    }

    /// Whether a token is to be drawn at all.
    pub(crate) fn wants_any(&self) -> bool {
        self.max_tokens != Some(0)
    }

    /// Takes the next token; what is now certain of the text is added to `out`. Says why this token ends the text, if it does.
    pub(crate) fn take(&mut self, token: Token, out: &mut Piece) -> Result<Option<FinishReason>> {
        self.drawn += 1;
        if self.stop_tokens.contains(&token) {
            return Ok(Some(FinishReason::StopToken(token)));
        }
        if self.vocab.is_end(token) && !self.ignore_end {
            return Ok(Some(FinishReason::EndOfText));
        }
        let passed = self.stops.push(self.detokenizer.push(token)?);
        self.answer.push(passed.text, out);
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

    /// The text has ended: what was held back is added to `out`, unless it was the beginning of what ended it. Returns the
    /// reason to be told, which is another one where the answer is calls.
    pub(crate) fn finish(&mut self, reason: FinishReason, out: &mut Piece) -> FinishReason {
        if !matches!(reason, FinishReason::StopString(_)) {
            self.answer.push(self.stops.push(self.detokenizer.finish()).text, out);
            self.answer.push(self.stops.finish(), out);
        }
        self.answer.finish(reason, out)
    }
}
