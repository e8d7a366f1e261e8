//! What is done to a template's source before the engine sees it.
//!
//! The engine's fuel pays for instructions and for bytes, and bounds nearly everything. What it does not bound is dealt
//! with here, on the template's tokens; without it one line of template could stop the process:
//!
//! - the stack of the parser: by limits on how long and how deeply nested a tag is, and how deeply blocks are;
//! - lazy lists, which stand for more than there is memory or stack for once they are made of each other: by putting
//!   [`own`](super::values::own) around all that is given a name, and [`factor`](super::values::factor) around what is
//!   multiplied. What has no name is no larger than its tag is long.
//!
//! Put in besides is what the reference implementation has and the engine has not: `{% generation %}`, which marks the
//! model's own words for training and says nothing otherwise.

mod operands;
mod scan;

use super::values::{FACTOR, FIELD, OWN};
use scan::{Kind, Tag};
use std::cmp::Reverse;

/// Blocks in blocks in … of a template.
const MAX_BLOCKS: usize = 32;
/// `elif`s of one `if`.
const MAX_ELIFS: usize = 64;

/// Why a template is not taken.
#[derive(Debug)]
pub(super) struct Refusal {
    at: usize,
    pub(super) reason: &'static str,
}

impl Refusal {
    fn new(at: usize, reason: &'static str) -> Self {
        Self { at, reason }
    }

    /// The line of the source it is about, from 1.
    pub(super) fn line(&self, source: &str) -> usize {
        source.as_bytes()[..self.at].iter().filter(|&&byte| byte == b'\n').count() + 1
    }
}

/// A template that may be run, in two forms.
#[derive(Debug)]
pub(super) struct Guarded {
    /// As it was written but for what the engine does not know: for errors in its syntax.
    pub(super) plain: String,
    /// With the guards put in. Each line is where it was.
    pub(super) guarded: String,
}

/// Checks a template and puts the guards in.
pub(super) fn guard(source: &str) -> Result<Guarded, Refusal> {
    let tags = scan::tags(source)?;
    check_blocks(&tags)?;
    let mut edits = Vec::new();
    for tag in &tags {
        if let Some(token) = tag.tokens.iter().find(|token| [OWN, FIELD, FACTOR].contains(&token.text)) {
            return Err(Refusal::new(token.start, "the name is reserved"));
        }
        if let Some(edit) = generation(tag) {
            edits.push(edit);
        }
    }
    let plain = apply(source, &mut edits);
    for tag in &tags {
        guard_tag(tag, &mut edits);
    }
    let guarded = apply(source, &mut edits);
    Ok(Guarded { plain, guarded })
}

fn check_blocks(tags: &[Tag<'_>]) -> Result<(), Refusal> {
    let mut elifs = Vec::new();
    for tag in tags.iter().filter(|tag| tag.statement) {
        let Some(name) = tag.tokens.first() else { continue };
        match name.text {
            "if" | "for" | "macro" | "call" | "with" | "filter" | "autoescape" | "generation" => elifs.push(0),
            "set" if assign(tag).is_none() => elifs.push(0),
            "elif" => {
                if let Some(count) = elifs.last_mut() {
                    *count += 1;
                    if *count > MAX_ELIFS {
                        return Err(Refusal::new(
                            tag.start,
                            "the `if` has more `elif`s than a chat template has any reason for",
                        ));
                    }
                }
            }
            name if name.starts_with("end") => drop(elifs.pop()),
            _ => {}
        }
        if elifs.len() > MAX_BLOCKS {
            return Err(Refusal::new(tag.start, "blocks are nested deeper than a chat template has any reason for"));
        }
    }
    Ok(())
}

fn guard_tag(tag: &Tag<'_>, edits: &mut Vec<Edit>) {
    if tag.statement {
        match tag.tokens.first().map(|name| name.text) {
            Some("set") => guard_set(tag, edits),
            Some("for") => guard_for(tag, edits),
            Some("with") => guard_values(tag, 1..tag.tokens.len(), 0, edits),
            Some("macro" | "call") => guard_parameters(tag, edits),
            _ => {}
        }
    }
    for (first, last) in operands::factors(tag) {
        wrap(tag, first..last + 1, FACTOR, edits);
    }
    for (at, pair) in tag.tokens.windows(2).enumerate() {
        if pair[0].is("loop") && pair[1].is("(") {
            wrap(tag, at + 2..pair[1].partner, OWN, edits); // the next round's list
        }
    }
}

/// `{% set target = value %}`.
fn guard_set(tag: &Tag<'_>, edits: &mut Vec<Edit>) {
    let Some(equals) = assign(tag) else { return };
    let function = if tag.tokens[..equals].iter().any(|token| token.is(".")) { FIELD } else { OWN };
    wrap(tag, equals + 1..tag.tokens.len(), function, edits);
}

/// `{% for target in list if condition recursive %}`.
fn guard_for(tag: &Tag<'_>, edits: &mut Vec<Edit>) {
    let tokens = &tag.tokens;
    let Some(within) = tokens.iter().position(|token| token.depth == 0 && token.is("in")) else { return };
    let first = within + 1;
    let mut end = tokens.len();
    if end > first + 1 && tokens[end - 1].is("recursive") && operands::is_end(tag, end - 2) {
        end -= 1;
    }
    if let Some(condition) = (first..end).find(|&at| tokens[at].depth == 0 && tokens[at].is("if")) {
        end = condition;
    }
    wrap(tag, first..end, OWN, edits);
}

/// `{% macro name(parameter, parameter=value) %}` and `{% call(parameter) name() %}`.
fn guard_parameters(tag: &Tag<'_>, edits: &mut Vec<Edit>) {
    let open = if tag.tokens[0].is("macro") { 2 } else { 1 };
    let Some(bracket) = tag.tokens.get(open).filter(|token| token.is("(")) else { return };
    let inside = open + 1..bracket.partner;
    let parameters = inside.clone().filter(|&at| {
        let (before, token) = (&tag.tokens[at - 1], &tag.tokens[at]);
        token.kind == Kind::Name && token.depth == 1 && (at == open + 1 || before.is(","))
    });
    // The tag's own delimiter, which says what becomes of the blanks after it, ends the last of them.
    let sets: String = parameters
        .map(|at| {
            let name = tag.tokens[at].text;
            format!(" %}}{{% set {name} = {OWN}(({name}))")
        })
        .collect();
    edits.push(Edit { at: tag.end, removed: 0, rank: Rank::Inserted, text: sets });
    guard_values(tag, inside, 1, edits);
}

/// The values of `name=value, name=value`, at this depth of brackets.
fn guard_values(tag: &Tag<'_>, within: std::ops::Range<usize>, depth: usize, edits: &mut Vec<Edit>) {
    let at_depth = |at: &usize, text: &str| tag.tokens[*at].depth == depth && tag.tokens[*at].is(text);
    for equals in within.clone().filter(|at| at_depth(at, "=")) {
        let end = (equals..within.end).find(|at| at_depth(at, ",")).unwrap_or(within.end);
        wrap(tag, equals + 1..end, OWN, edits);
    }
}

/// The `=` of a `set`, where it has one.
fn assign(tag: &Tag<'_>) -> Option<usize> {
    tag.tokens.iter().position(|token| token.depth == 0 && token.is("="))
}

/// `{% generation %}` as a block that always is.
fn generation(tag: &Tag<'_>) -> Option<Edit> {
    let [name] = &tag.tokens[..] else { return None };
    let text = match name.text {
        "generation" if tag.statement => "if true",
        "endgeneration" if tag.statement => "endif",
        _ => return None,
    };
    Some(Edit { at: name.start, removed: name.text.len(), rank: Rank::Inserted, text: text.into() })
}

/// Puts a call around tokens.
fn wrap(tag: &Tag<'_>, tokens: std::ops::Range<usize>, function: &str, edits: &mut Vec<Edit>) {
    let Some([first, .., last] | [first @ last]) = tag.tokens.get(tokens) else { return };
    let (start, end) = (first.start, last.end());
    edits.push(Edit { at: start, removed: 0, rank: Rank::Opening { until: end }, text: format!("{function}((") });
    edits.push(Edit { at: end, removed: 0, rank: Rank::Closing, text: "))".into() });
}

/// A change of the source.
struct Edit {
    at: usize,
    removed: usize,
    rank: Rank,
    text: String,
}

/// The order of changes at one place: what ends there, then what begins, the longest first.
enum Rank {
    Closing,
    Inserted,
    Opening { until: usize },
}

fn apply(source: &str, edits: &mut [Edit]) -> String {
    edits.sort_by_key(|edit| match edit.rank {
        Rank::Closing => (edit.at, 0, Reverse(0)),
        Rank::Inserted => (edit.at, 1, Reverse(0)),
        Rank::Opening { until } => (edit.at, 2, Reverse(until)),
    });
    let (mut out, mut done) = (String::with_capacity(source.len() * 2), 0);
    for edit in edits {
        out.push_str(&source[done..edit.at]);
        out.push_str(&edit.text);
        done = edit.at + edit.removed;
    }
    out.push_str(&source[done..]);
    out
}
