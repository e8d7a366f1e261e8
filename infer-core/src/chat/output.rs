use super::{
    call::ToolCall,
    candidate::{BLANKS, Candidate, Pattern, Progress},
    format::AnswerFormat,
};
use crate::Result;

/// Blanks that are held back at most until it is certain that no marker follows them.
const MAX_BLANKS: usize = 64;

/// What came of an answer, by kind.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct AnswerParts {
    /// What is said.
    pub content: String,
    /// What the model thought before.
    pub reasoning: String,
    /// The functions it wants called. A call comes when it is whole.
    pub calls: Vec<ToolCall>,
}

/// Takes an answer apart while it comes: content, reasoning, calls of tools.
///
/// It makes no difference how the text is cut into pieces. What can no longer be part of a marker or of a call is given at once,
/// what may be is held back; a call is given when it is whole. Blanks beside a marker belong to it.
///
/// - **Reasoning** stands between its markers at the beginning of an answer, or after a call; further on they are text. Where
///   the chat template has written the opening marker, the answer [begins inside](AnswerFormat::reasoning_open).
/// - **Calls** look as [`ToolFormat`](super::ToolFormat) says, before, between and after content. Of a marker of the end, a model
///   that ends its answer may leave out all or a part.
/// - **What is no call after all** (not JSON, no name, arguments that are no object) loses nothing: it is content, with its
///   markers, as the model wrote it. So is a call that the end of the answer cuts.
///
/// ```
/// use infer_core::chat::{AnswerFormat, AnswerParts, OutputParser, ToolFormat};
///
/// let format = AnswerFormat::new().with_tools(ToolFormat::hermes());
/// let mut parser = OutputParser::new(&format)?;
/// let mut parts = AnswerParts::default();
/// parser.push("Let me look. <tool", &mut parts);
/// assert_eq!(parts.content, "Let me look.");
/// parser.push(r#"_call>{"name": "time", "arguments": {"zone": "UTC"}}</tool_call>"#, &mut parts);
/// parser.finish(&mut parts);
/// assert_eq!((parts.calls[0].name.as_str(), parts.calls[0].arguments.as_str()), ("time", r#"{"zone": "UTC"}"#));
/// # Ok::<(), infer_core::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct OutputParser {
    pattern: Option<Pattern>,
    /// Trimmed.
    reasoning: Option<(String, String)>,
    begin_inside: bool,
    /// Text that is not decided yet, and before it `done` bytes that are.
    held: String,
    done: usize,
    state: State,
    before: Before,
    /// Blanks that come now belong to the marker before them.
    skip_blanks: bool,
}

#[derive(Clone, Debug)]
enum State {
    Content,
    /// Whether any of it was given.
    Reasoning(bool),
    /// So many bytes after what is decided, behind blanks, a call may have begun.
    Call(usize, Candidate),
}

/// What was last, reasoning aside.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Before {
    Nothing,
    Call,
    Content,
}

/// What a marker begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Start {
    Call,
    EndOfSection,
    Reasoning,
    EndOfReasoning,
}

/// What was found in a text.
enum Found {
    Marker {
        at: usize,
        len: usize,
        start: Start,
    },
    /// From here on it may be the beginning of a marker.
    Partial(usize),
    Nothing,
}

impl OutputParser {
    /// At the beginning of an answer of this form.
    ///
    /// # Errors
    /// [`InvalidInput`](crate::ErrorKind::InvalidInput) for a format by hand that no text can have: a marker or a field's name is
    /// empty that must not be.
    pub fn new(format: &AnswerFormat) -> Result<Self> {
        let pattern = format.tools.as_ref().map(|tools| tools.check().map(|()| Pattern::new(tools))).transpose()?;
        let reasoning = format.reasoning.as_ref().map(|markers| {
            let (begin, end) = (markers.begin.trim().to_owned(), markers.end.trim().to_owned());
            (!begin.is_empty() && !end.is_empty()).then_some((begin, end)).ok_or_else(|| {
                crate::Error::invalid_input(
                    "a marker of reasoning is empty; leave out both where there is no reasoning",
                )
            })
        });
        let reasoning = reasoning.transpose()?;
        let mut parser = Self {
            pattern,
            reasoning,
            begin_inside: format.reasoning_open && format.reasoning.is_some(),
            held: String::new(),
            done: 0,
            state: State::Content,
            before: Before::Nothing,
            skip_blanks: false,
        };
        parser.reset();
        Ok(parser)
    }

    /// Takes the next piece of the answer; what is certain now is added to `out`.
    pub fn push(&mut self, piece: &str, out: &mut AnswerParts) {
        if self.pattern.is_none() && self.reasoning.is_none() {
            return out.content.push_str(piece);
        }
        self.held.push_str(piece);
        self.run(false, out);
    }

    /// The answer is complete: what was held back is added to `out`, and it is at the beginning of another one.
    pub fn finish(&mut self, out: &mut AnswerParts) {
        self.run(true, out);
        self.reset();
    }

    /// Forgets the answer so far.
    pub fn reset(&mut self) {
        self.held.clear();
        self.done = 0;
        self.state = if self.begin_inside { State::Reasoning(false) } else { State::Content };
        self.before = Before::Nothing;
        self.skip_blanks = self.begin_inside;
    }

    fn run(&mut self, complete: bool, out: &mut AnswerParts) {
        loop {
            if self.skip_blanks {
                let rest = self.held[self.done..].trim_start_matches(BLANKS);
                self.done = self.held.len() - rest.len();
                self.skip_blanks = rest.is_empty();
            }
            if self.done == self.held.len() {
                break;
            }
            let decided = match self.state {
                State::Call(..) => self.call(complete, out),
                State::Content | State::Reasoning(_) => self.text(complete, out),
            };
            if !decided {
                break;
            }
        }
        self.held.drain(..self.done);
        self.done = 0;
    }

    /// Text up to the next marker. Says whether there is one.
    fn text(&mut self, complete: bool, out: &mut AnswerParts) -> bool {
        let rest = &self.held[self.done..];
        let found = self.find(rest, complete);
        let given = match found {
            Found::Marker { at, .. } => before_blanks(rest, at),
            _ if complete => rest.len(),
            Found::Partial(at) => before_blanks(rest, at),
            Found::Nothing => before_blanks(rest, rest.len()),
        };
        self.give(given, out);
        let Found::Marker { at, len, start } = found else { return false };
        let blanks = at - given;
        self.state = match start {
            Start::Call => {
                self.state = State::Call(blanks, Candidate::new(len));
                return true;
            }
            Start::Reasoning => State::Reasoning(false),
            Start::EndOfReasoning | Start::EndOfSection => State::Content,
        };
        self.done += blanks + len;
        self.skip_blanks = true;
        true
    }

    /// What may be a call. Says whether that is decided.
    fn call(&mut self, complete: bool, out: &mut AnswerParts) -> bool {
        let (State::Call(blanks, candidate), Some(pattern)) = (&mut self.state, &self.pattern) else { return false };
        let begin = self.done + *blanks;
        match candidate.advance(pattern, &self.held[begin..], complete) {
            Progress::More => return false,
            Progress::Whole(len, calls) => {
                out.calls.extend(calls);
                self.done = begin + len;
                self.before = Before::Call;
                self.skip_blanks = true;
                self.state = State::Content;
            }
            // Only what opened it is text for certain; behind it, another one may begin.
            Progress::Broken => {
                let len = *blanks + candidate.opening;
                self.state = State::Content;
                self.give(len, out);
            }
        }
        true
    }

    /// The first marker in `text`; of those at one place the shortest, which is whole first.
    fn find(&self, text: &str, complete: bool) -> Found {
        let mut first = true;
        for (at, c) in text.char_indices().filter(|(_, c)| !BLANKS.contains(c)) {
            let (rest, mut marker, mut partial) = (&text[at..], None::<(usize, Start)>, false);
            for (text, start) in self.markers(first).filter(|(text, _)| text.starts_with(c)) {
                if rest.starts_with(text) && marker.is_none_or(|(len, _)| text.len() < len) {
                    marker = Some((text.len(), start));
                }
                partial |= text.len() > rest.len() && text.starts_with(rest);
            }
            match marker {
                Some((len, start)) => return Found::Marker { at, len, start },
                None if partial && !complete => return Found::Partial(at),
                None => first = false,
            }
        }
        Found::Nothing
    }

    /// The markers that may come now; some only where nothing but blanks is before them.
    fn markers(&self, first: bool) -> impl Iterator<Item = (&str, Start)> {
        let content = matches!(self.state, State::Content);
        let leading = first && self.before != Before::Content;
        let (begin, end) = match &self.reasoning {
            Some((begin, end)) => (begin.as_str(), end.as_str()),
            None => ("", ""),
        };
        let opens = if content { leading } else { first && matches!(self.state, State::Reasoning(false)) };
        let reasoning = [(begin, Start::Reasoning, opens), (end, Start::EndOfReasoning, !content)];
        let calls = self.pattern.iter().filter(move |_| content).flat_map(move |pattern| {
            let after_call = first && self.before == Before::Call;
            let bare = if pattern.list { "[" } else { "{" };
            let (section_begin, section_end) = match &pattern.section {
                Some((begin, end)) => (begin.as_str(), end.as_str()),
                None => ("", ""),
            };
            [
                (pattern.begin.as_str(), Start::Call, true),
                (section_begin, Start::Call, true),
                (bare, Start::Call, pattern.bare && leading),
                (pattern.separator.as_str(), Start::Call, after_call),
                (section_end, Start::EndOfSection, after_call),
            ]
        });
        let all = reasoning.into_iter().chain(calls);
        all.filter(|(text, _, possible)| *possible && !text.is_empty()).map(|(text, start, _)| (text, start))
    }

    /// Gives the next bytes as what they are.
    fn give(&mut self, len: usize, out: &mut AnswerParts) {
        let text = &self.held[self.done..self.done + len];
        let any = text.contains(|c| !BLANKS.contains(&c));
        match &mut self.state {
            State::Reasoning(begun) => {
                *begun |= any;
                out.reasoning.push_str(text);
            }
            State::Content | State::Call(..) => {
                if any {
                    self.before = Before::Content;
                }
                out.content.push_str(text);
            }
        }
        self.done += len;
    }
}

/// Where the blanks before `at` begin, as many as may be a marker's.
fn before_blanks(text: &str, at: usize) -> usize {
    text[..at].trim_end_matches(BLANKS).len().max(at.saturating_sub(MAX_BLANKS))
}

#[cfg(test)]
mod tests;
