use crate::{FinishReason, Piece, Request};
use infer_core::{
    Detokenizer, Result,
    chat::{AnswerParts, OutputParser},
};

/// Takes a text apart where it is an answer: reasoning, content, calls of tools.
pub(super) struct Answer {
    /// `None` where a text is nothing but text.
    parser: Option<OutputParser>,
    /// What the parser has just given.
    parts: AnswerParts,
    has_calls: bool,
}

impl Answer {
    pub(super) fn new(request: &Request) -> Result<Self> {
        let parser = request.answer_format.as_ref().map(OutputParser::new).transpose()?;
        Ok(Self { parser, parts: AnswerParts::default(), has_calls: false })
    }

    /// Has the markers of an answer come out as text, those too that are control tokens.
    pub(super) fn show_markers(request: &Request, detokenizer: Detokenizer) -> Detokenizer {
        match &request.answer_format {
            Some(format) => detokenizer.with_shown(format.markers()),
            None => detokenizer,
        }
    }

    /// Takes the next piece of the text; what is certain of it is added to `out`.
    pub(super) fn push(&mut self, text: &str, out: &mut Piece) {
        match &mut self.parser {
            Some(parser) => {
                parser.push(text, &mut self.parts);
                self.take(out);
            }
            None => out.text.push_str(text),
        }
    }

    /// The text has ended: what was held back is added to `out`. Returns the reason to be told.
    pub(super) fn finish(&mut self, reason: FinishReason, out: &mut Piece) -> FinishReason {
        if let Some(parser) = &mut self.parser {
            parser.finish(&mut self.parts);
            self.take(out);
        }
        if self.has_calls && reason == FinishReason::EndOfText { FinishReason::ToolCalls } else { reason }
    }

    fn take(&mut self, out: &mut Piece) {
        let AnswerParts { content, reasoning, calls, .. } = &mut self.parts;
        self.has_calls |= !calls.is_empty();
        out.text.push_str(content);
        out.reasoning.push_str(reasoning);
        out.tool_calls.append(calls);
        content.clear();
        reasoning.clear();
    }
}
