//! Without the feature `chat` an answer is nothing but text.

use crate::{FinishReason, Piece, Request};
use infer_core::{Detokenizer, Result};

pub(super) struct Answer;

impl Answer {
    pub(super) fn new(_: &Request) -> Result<Self> {
        Ok(Self)
    }

    pub(super) fn show_markers(_: &Request, detokenizer: Detokenizer) -> Detokenizer {
        detokenizer
    }

    pub(super) fn push(&mut self, text: &str, out: &mut Piece) {
        out.text.push_str(text);
    }

    pub(super) fn finish(&mut self, reason: FinishReason, _: &mut Piece) -> FinishReason {
        reason
    }
}
