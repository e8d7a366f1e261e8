//! A template's tags and their tokens, by the rules of the engine's own lexer. Where the two could disagree, this one
//! refuses.

use super::Refusal;

/// Tokens one tag may have. The most in use are some 60.
const MAX_TOKENS: usize = 250;
/// Brackets in brackets in … of one tag.
const MAX_BRACKETS: usize = 24;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Name,
    Text,
    Number,
    Open,
    Close,
    Operator,
}

#[derive(Clone, Copy, Debug)]
pub(super) struct Token<'s> {
    pub(super) kind: Kind,
    pub(super) text: &'s str,
    /// Where it begins in the source.
    pub(super) start: usize,
    /// Of a bracket: the index of its partner in the tag.
    pub(super) partner: usize,
    /// How many brackets are open around it.
    pub(super) depth: usize,
}

impl Token<'_> {
    pub(super) fn end(&self) -> usize {
        self.start + self.text.len()
    }

    pub(super) fn is(&self, text: &str) -> bool {
        self.text == text && self.kind != Kind::Text
    }
}

/// `{% … %}` or `{{ … }}`.
#[derive(Debug)]
pub(super) struct Tag<'s> {
    pub(super) statement: bool,
    /// Where it begins in the source.
    pub(super) start: usize,
    /// Where its closing delimiter begins, the sign that controls blanks included.
    pub(super) end: usize,
    pub(super) tokens: Vec<Token<'s>>,
}

/// All tags of a template; comments and raw blocks are passed over.
pub(super) fn tags(source: &str) -> Result<Vec<Tag<'_>>, Refusal> {
    let mut tags = Vec::new();
    let mut at = 0;
    while let Some(found) = source[at..].find('{') {
        let start = at + found;
        let mark = source.as_bytes().get(start + 1).copied();
        let sign = matches!(source.as_bytes().get(start + 2), Some(b'-' | b'+'));
        let inside = start + 2 + usize::from(sign);
        at = match mark {
            Some(b'#') => match source[inside..].find("#}") {
                Some(end) => inside + end + 2,
                None => return Err(Refusal::new(start, "the comment is not closed")),
            },
            Some(b'%') => match basic(&source[inside..], "raw", false) {
                Some(raw) => {
                    end_of_raw(source, inside + raw).ok_or(Refusal::new(start, "the raw block is not closed"))?
                }
                None => tag(source, start, inside, true, &mut tags)?,
            },
            Some(b'{') => tag(source, start, inside, false, &mut tags)?,
            _ => start + 1,
        };
    }
    Ok(tags)
}

fn end_of_raw(source: &str, mut at: usize) -> Option<usize> {
    loop {
        at += source[at..].find("{%")? + 2;
        if let Some(end) = basic(&source[at..], "endraw", true) {
            return Some(at + end);
        }
    }
}

/// The length of what is left of a tag that has only this name in it.
fn basic(text: &str, name: &str, sign: bool) -> Option<usize> {
    let blank = |c: char| c.is_ascii_whitespace();
    let rest = if sign { text.strip_prefix(['-', '+']).unwrap_or(text) } else { text };
    let rest = rest.trim_start_matches(blank).strip_prefix(name)?.trim_start_matches(blank);
    let rest = rest.strip_prefix(['-', '+']).unwrap_or(rest).strip_prefix("%}")?;
    Some(text.len() - rest.len())
}

/// Reads one tag, whose tokens begin at `at`. Returns where it ends.
fn tag<'s>(
    source: &'s str,
    start: usize,
    mut at: usize,
    statement: bool,
    tags: &mut Vec<Tag<'s>>,
) -> Result<usize, Refusal> {
    let close = if statement { "%}" } else { "}}" };
    let (mut tokens, mut open) = (Vec::<Token<'s>>::new(), Vec::new());
    loop {
        at += source[at..].len() - source[at..].trim_start_matches(|c: char| c.is_ascii_whitespace()).len();
        let rest = &source[at..];
        let sign = usize::from(rest.starts_with(['-', '+']));
        if open.is_empty() && rest.get(sign..).is_some_and(|rest| rest.starts_with(close)) {
            tags.push(Tag { statement, start, end: at, tokens });
            return Ok(at + sign + close.len());
        }
        let (kind, len) =
            token(rest).ok_or(Refusal::new(at, "the tag is not closed, or has a character that is no Jinja"))?;
        if tokens.len() == MAX_TOKENS {
            return Err(Refusal::new(start, "the tag is longer than a chat template has any reason for"));
        }
        let mut partner = 0;
        if kind == Kind::Close {
            let pair = |open: &usize| ["()", "[]", "{}"].contains(&&*format!("{}{}", tokens[*open].text, &rest[..len]));
            partner = open.pop().filter(pair).ok_or(Refusal::new(at, "a bracket is closed that is not open"))?;
            tokens[partner].partner = tokens.len();
        }
        tokens.push(Token { kind, text: &rest[..len], start: at, partner, depth: open.len() });
        if kind == Kind::Open {
            open.push(tokens.len() - 1);
            if open.len() > MAX_BRACKETS {
                return Err(Refusal::new(start, "the tag is nested deeper than a chat template has any reason for"));
            }
        }
        at += len;
    }
}

/// The kind and length of the token that a text begins with.
fn token(text: &str) -> Option<(Kind, usize)> {
    let bytes = text.as_bytes();
    let word = |byte: &u8| byte.is_ascii_alphanumeric() || *byte == b'_';
    let first = *bytes.first()?;
    Some(match first {
        b'\'' | b'"' => (Kind::Text, text_len(bytes, first)?),
        b'0'..=b'9' => (Kind::Number, bytes.iter().take_while(|byte| word(byte)).count()),
        b'_' | b'a'..=b'z' | b'A'..=b'Z' => (Kind::Name, bytes.iter().take_while(|byte| word(byte)).count()),
        b'(' | b'[' | b'{' => (Kind::Open, 1),
        b')' | b']' | b'}' => (Kind::Close, 1),
        _ => {
            let two = ["//", "**", "==", "!=", ">=", "<="].iter().any(|operator| text.starts_with(operator));
            let one = b"+-*/%.,:~|=><!".contains(&first);
            (Kind::Operator, if two { 2 } else { one.then_some(1)? })
        }
    })
}

/// The length of a quoted text, its quotes included.
fn text_len(bytes: &[u8], quote: u8) -> Option<usize> {
    let mut escaped = false;
    let inside = bytes[1..].iter().position(|&byte| {
        let end = !escaped && byte == quote;
        escaped = !escaped && byte == b'\\';
        end
    })?;
    Some(inside + 2)
}
