//! A call that may be coming: from its first marker to its last, followed byte by byte.

use super::{
    call::{Fields, ToolCall, arguments},
    format::{ToolBody, ToolFormat},
    scanner::{Scanned, Scanner},
};

/// What stands beside markers, and belongs to them.
pub(super) const BLANKS: [char; 4] = [' ', '\t', '\n', '\r'];
/// A name longer than this is none.
const MAX_NAME: usize = 256;

/// A family's calls, taken apart.
#[derive(Clone, Debug)]
pub(super) struct Pattern {
    parts: Vec<Part>,
    /// `None` where the name stands before the JSON.
    fields: Option<Fields>,
    pub(super) bare: bool,
    pub(super) list: bool,
    /// Trimmed; empty where there is none.
    pub(super) begin: String,
    pub(super) separator: String,
    pub(super) section: Option<(String, String)>,
}

#[derive(Clone, Debug)]
enum Part {
    Literal {
        text: String,
        optional: bool,
    },
    /// Up to one of these texts.
    Name {
        ends: Vec<String>,
    },
    /// After this text, where it is there, up to the other one.
    Id {
        marker: String,
        end: String,
    },
    Json,
}

impl Pattern {
    pub(super) fn new(format: &ToolFormat) -> Self {
        let trimmed = |text: &str| text.trim().to_owned();
        let section = format.section.as_ref().map(|section| (trimmed(&section.begin), trimmed(&section.end)));
        let mut pattern = Self {
            parts: Vec::new(),
            fields: None,
            bare: format.bare,
            list: matches!(format.body, ToolBody::List(_)),
            begin: trimmed(&format.call.begin),
            separator: trimmed(&format.separator),
            section,
        };
        pattern.literal(&format.separator, true);
        pattern.literal(format.section.as_ref().map_or("", |section| &section.begin), true);
        pattern.literal(&format.call.begin, format.bare);
        match &format.body {
            ToolBody::Object(fields) | ToolBody::List(fields) => pattern.fields = Some(fields.clone()),
            ToolBody::Named { id, arguments } => {
                let end = trimmed(arguments);
                let ends = id.iter().map(|id| trimmed(id)).chain([end.clone()]).collect();
                pattern.parts.push(Part::Name { ends });
                pattern.parts.extend(id.iter().map(|id| Part::Id { marker: trimmed(id), end: end.clone() }));
                pattern.literal(arguments, false);
            }
        }
        pattern.parts.push(Part::Json);
        pattern.literal(&format.call.end, false);
        pattern
    }

    fn literal(&mut self, text: &str, optional: bool) {
        let text = text.trim();
        if !text.is_empty() {
            self.parts.push(Part::Literal { text: text.to_owned(), optional });
        }
    }
}

/// How far a text is a call.
#[derive(Clone, Debug)]
pub(super) struct Candidate {
    /// Bytes that opened it: what is text for certain if it is no call.
    pub(super) opening: usize,
    part: usize,
    /// Bytes that are dealt with.
    at: usize,
    json: Option<Json>,
    name: String,
    id: Option<String>,
    calls: Vec<ToolCall>,
}

/// The JSON in the making.
#[derive(Clone, Debug)]
struct Json {
    scanner: Scanner,
    begin: usize,
    /// Where the key that is being read begins, and whether it is one of a call.
    key: (usize, bool),
}

pub(super) enum Progress {
    /// More of the text is needed to tell.
    More,
    /// So many bytes of the text are these calls.
    Whole(usize, Vec<ToolCall>),
    /// It is no call.
    Broken,
}

/// What became of one part.
enum Outcome {
    Matched,
    More,
    Broken,
}

impl Candidate {
    pub(super) fn new(opening: usize) -> Self {
        Self { opening, part: 0, at: 0, json: None, name: String::new(), id: None, calls: Vec::new() }
    }

    /// Goes on with `text`, which is what it had before and more. With `complete`, no more will come: then the last marker may
    /// be missing, for models end their answers instead of writing it.
    pub(super) fn advance(&mut self, pattern: &Pattern, text: &str, complete: bool) -> Progress {
        while let Some(part) = pattern.parts.get(self.part) {
            let outcome = match part {
                Part::Literal { text: literal, optional } => self.literal(literal, *optional, text, complete),
                Part::Name { ends } => self.name(ends, text, complete),
                Part::Id { marker, end } => self.id(marker, end, text, complete),
                Part::Json => self.json(pattern, text),
            };
            match outcome {
                Outcome::Matched => self.part += 1,
                Outcome::More if !complete => return Progress::More,
                Outcome::More if !self.calls.is_empty() => return self.whole(text.len()),
                Outcome::More | Outcome::Broken => return Progress::Broken,
            }
        }
        self.whole(self.at)
    }

    fn whole(&mut self, len: usize) -> Progress {
        Progress::Whole(len, std::mem::take(&mut self.calls))
    }

    /// What is left after the blanks.
    fn rest<'t>(&mut self, text: &'t str) -> &'t str {
        let rest = text[self.at..].trim_start_matches(BLANKS);
        self.at = text.len() - rest.len();
        rest
    }

    fn literal(&mut self, literal: &str, optional: bool, text: &str, complete: bool) -> Outcome {
        let rest = self.rest(text);
        if rest.starts_with(literal) {
            self.at += literal.len();
            Outcome::Matched
        } else if literal.starts_with(rest) && !(complete && optional) {
            Outcome::More
        } else if optional {
            Outcome::Matched
        } else {
            Outcome::Broken
        }
    }

    fn name(&mut self, ends: &[String], text: &str, complete: bool) -> Outcome {
        if self.name.is_empty() {
            self.rest(text);
        }
        let mut name = std::mem::take(&mut self.name);
        let outcome = self.word(&mut name, ends, text, complete);
        self.name = name;
        outcome
    }

    fn id(&mut self, marker: &str, end: &String, text: &str, complete: bool) -> Outcome {
        if self.id.is_none() {
            match self.literal(marker, false, text, complete) {
                Outcome::Matched => self.id = Some(String::new()),
                Outcome::More => return Outcome::More,
                Outcome::Broken => return Outcome::Matched,
            }
        }
        let mut id = self.id.take().unwrap_or_default();
        let outcome = self.word(&mut id, std::slice::from_ref(end), text, complete);
        self.id = Some(id);
        outcome
    }

    /// Reads a word up to one of `ends`, or to a blank.
    fn word(&mut self, word: &mut String, ends: &[String], text: &str, complete: bool) -> Outcome {
        for c in text[self.at..].chars() {
            let rest = &text[self.at..];
            if ends.iter().any(|end| rest.starts_with(end.as_str())) || BLANKS.contains(&c) {
                return if word.is_empty() { Outcome::Broken } else { Outcome::Matched };
            }
            if !complete && ends.iter().any(|end| end.starts_with(rest)) {
                return Outcome::More;
            }
            if !is_of_name(c) || word.len() + c.len_utf8() > MAX_NAME {
                return Outcome::Broken;
            }
            word.push(c);
            self.at += c.len_utf8();
        }
        Outcome::More
    }

    fn json(&mut self, pattern: &Pattern, text: &str) -> Outcome {
        if self.json.is_none() {
            let Some(first) = self.rest(text).chars().next() else { return Outcome::More };
            if first != '{' && (first != '[' || pattern.fields.is_none()) {
                return Outcome::Broken;
            }
            self.json = Some(Json { scanner: Scanner::new(), begin: self.at, key: (0, false) });
        }
        let json = self.json.as_mut().expect("it has begun");
        for (at, &byte) in text.as_bytes().iter().enumerate().skip(self.at) {
            match json.scanner.step(byte) {
                Scanned::More => {}
                Scanned::Key(depth) => json.key = (at, depth == 1 + usize::from(text[json.begin..].starts_with('['))),
                Scanned::EndOfKey => {
                    let (begin, of_call) = json.key;
                    if of_call && pattern.bare && !knows(pattern.fields.as_ref(), &text[begin..=at]) {
                        return Outcome::Broken;
                    }
                }
                Scanned::Whole => {
                    self.at = at + 1;
                    let whole = &text[json.begin..=at];
                    return self.read(pattern, whole);
                }
                Scanned::Broken => return Outcome::Broken,
            }
        }
        self.at = text.len();
        Outcome::More
    }

    fn read(&mut self, pattern: &Pattern, json: &str) -> Outcome {
        let calls = match &pattern.fields {
            Some(fields) => fields.read(json, pattern.bare),
            None => arguments(json).map(|arguments| {
                let (name, id) = (std::mem::take(&mut self.name), self.id.take().filter(|id| !id.is_empty()));
                vec![ToolCall { name, arguments, id }]
            }),
        };
        match calls {
            Some(calls) if !calls.is_empty() => {
                self.calls = calls;
                Outcome::Matched
            }
            _ => Outcome::Broken,
        }
    }
}

fn knows(fields: Option<&Fields>, key: &str) -> bool {
    let key = serde_json::from_str::<String>(key);
    fields.is_none_or(|fields| key.is_ok_and(|key| fields.know(&key)))
}

/// Whether a function's name may have this character: what no family writes beside a name.
pub(super) fn is_of_name(c: char) -> bool {
    c.is_alphanumeric() || matches!(c, '_' | '-' | '.' | '/' | ':')
}
