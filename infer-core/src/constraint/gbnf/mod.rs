//! GBNF, llama.cpp's grammars, as Lark.

mod chars;
mod lexemes;
mod parse;
mod parts;
#[cfg(test)]
mod tests;

use self::{
    parse::{Grammar, Node, parse},
    parts::{Bounds, Part, Run},
};
use super::compile::{MOST_RULES, invalid};
use crate::{Error, Result};
use std::fmt::Write as _;

/// The same texts, as a Lark grammar.
///
/// # Errors
/// With line and column.
pub(super) fn to_lark(text: &str) -> Result<String> {
    let grammar = parse(text)?;
    let regular = lexemes::regular(&grammar);
    let part = |(rule, node): (usize, &Node)| match &regular[rule] {
        Some(_) if rule != grammar.root => None,
        _ => Some(Part::of(node, &regular)),
    };
    let mut parts: Vec<Option<Part>> = grammar.rules.iter().enumerate().map(part).collect();
    // Each becomes a rule of its own.
    let runs: usize = parts.iter().flatten().map(Part::runs).sum();
    if runs > MOST_RULES {
        return Err(invalid(format!("{runs} places where text stands between rules, {MOST_RULES} are the most")));
    }
    let mut bounds = vec![Bounds::default(); parts.len()];
    Part::find_firsts(&parts, &mut bounds);
    Part::find_follows(&mut parts, &mut bounds);
    let rules = grammar.rules.len();
    let mut writer = Writer {
        grammar: &grammar,
        lark: String::new(),
        runs: 0,
        terminals: vec![false; rules],
        spelled: vec![false; rules],
    };
    let _ = writeln!(writer.lark, "start: r{}", grammar.root);
    for (rule, part) in parts.iter().enumerate() {
        if let Some(part) = part {
            let body = writer.part(part, Within::Choice);
            let _ = writeln!(writer.lark, "r{rule}: {body}");
        }
    }
    Ok(writer.lark)
}

/// An error at a byte of the text.
fn invalid_at(text: &str, at: usize, message: &str) -> Error {
    let before = &text[..at];
    let line = before.matches('\n').count() + 1;
    let column = before.rsplit('\n').next().unwrap_or_default().chars().count() + 1;
    invalid(format!("line {line}, column {column}: {message}"))
}

/// What an expression stands in: says whether it needs brackets.
#[derive(Clone, Copy, PartialEq, PartialOrd)]
enum Within {
    Choice,
    Sequence,
    Repeat,
}

/// Whether a part is one lexeme, or each of its characters.
#[derive(Clone, Copy, PartialEq)]
enum Spelling {
    Whole,
    Spelled,
}

struct Writer<'g> {
    grammar: &'g Grammar,
    lark: String,
    runs: usize,
    /// Regular rules that were written as terminals.
    terminals: Vec<bool>,
    /// … as rules, character by character.
    spelled: Vec<bool>,
}

impl Writer<'_> {
    fn part(&mut self, part: &Part, within: Within) -> String {
        match part {
            Part::Run(run) => self.run(run, within),
            Part::Rule(rule) => format!("r{rule}"),
            Part::Token(token) => token.clone(),
            Part::Repeat(part, least, most) => again(repeated(self.part(part, Within::Repeat), *least, *most), within),
            Part::Sequence(parts) => {
                joined(parts, " ", within, Within::Sequence, |part, within| self.part(part, within))
            }
            Part::Choice(parts) => joined(parts, " | ", within, Within::Choice, |part, within| self.part(part, within)),
        }
    }

    fn run(&mut self, run: &Run, within: Within) -> String {
        if run.is_greedy() {
            return self.node(&run.node, within, Spelling::Spelled);
        }
        let (name, body) = (self.runs, self.node(&run.node, Within::Choice, Spelling::Whole));
        self.runs += 1;
        let _ = writeln!(self.lark, "U{name}: {body}");
        match (run.facts.nullable, within) {
            (false, _) => format!("U{name}"),
            (true, Within::Repeat) => format!("(U{name}?)"),
            (true, _) => format!("U{name}?"),
        }
    }

    fn node(&mut self, node: &Node, within: Within, spelling: Spelling) -> String {
        match node {
            Node::Char(chars) => format!("/{chars}/"),
            Node::Token(token) => token.clone(),
            Node::Rule(rule) => self.regular_rule(*rule, spelling),
            Node::Repeat(node, least, most) => {
                again(repeated(self.node(node, Within::Repeat, spelling), *least, *most), within)
            }
            Node::Sequence(nodes) => {
                // A text that is one lexeme anyway is shorter as one expression.
                let chars: Option<String> = nodes
                    .iter()
                    .map(|node| if let Node::Char(chars) = node { Some(chars.to_string()) } else { None })
                    .collect();
                match chars {
                    Some(text) if spelling == Spelling::Whole && !text.is_empty() => match within {
                        Within::Repeat => format!("(/{text}/)"),
                        _ => format!("/{text}/"),
                    },
                    _ => joined(nodes, " ", within, Within::Sequence, |node, within| self.node(node, within, spelling)),
                }
            }
            Node::Choice(nodes) => {
                joined(nodes, " | ", within, Within::Choice, |node, within| self.node(node, within, spelling))
            }
        }
    }

    /// The name of a regular rule, which is written if it was not yet.
    fn regular_rule(&mut self, rule: usize, spelling: Spelling) -> String {
        let (done, mark) = match spelling {
            Spelling::Whole => (&mut self.terminals, 'T'),
            Spelling::Spelled => (&mut self.spelled, 'c'),
        };
        let name = format!("{mark}{rule}");
        if !std::mem::replace(&mut done[rule], true) {
            let grammar = self.grammar;
            let body = self.node(&grammar.rules[rule], Within::Choice, spelling);
            let _ = writeln!(self.lark, "{name}: {body}");
        }
        name
    }
}

fn repeated(inner: String, least: u32, most: Option<u32>) -> String {
    match (least, most) {
        (_, Some(0)) => "\"\"".into(),
        (1, Some(1)) => inner,
        (0, None) => inner + "*",
        (1, None) => inner + "+",
        (0, Some(1)) => inner + "?",
        (least, None) => format!("{inner}{{{least},}}"),
        (least, Some(most)) => format!("{inner}{{{least},{most}}}"),
    }
}

/// Lark repeats nothing twice without brackets.
fn again(repeated: String, within: Within) -> String {
    if within == Within::Repeat { format!("({repeated})") } else { repeated }
}

fn joined<T>(all: &[T], by: &str, within: Within, as_: Within, mut write: impl FnMut(&T, Within) -> String) -> String {
    match all {
        [] => "\"\"".into(),
        [one] => write(one, within),
        _ => {
            let inner: Vec<String> = all
                .iter()
                .map(|one| write(one, if as_ == Within::Sequence { Within::Sequence } else { Within::Choice }))
                .collect();
            let inner = inner.join(by);
            if within > as_ { format!("({inner})") } else { inner }
        }
    }
}
