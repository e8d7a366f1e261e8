//! The text of a grammar, read.

use super::{
    super::compile::{MOST_RULES, invalid},
    chars::Chars,
    invalid_at,
};
use crate::Result;
use std::collections::HashMap;

/// Groups within each other: as many as Lark takes, less what is put around them.
const DEEPEST: usize = 24;
/// Repetitions of one thing, each of the one before.
const MOST_REPEATED: usize = 8;
/// Levels of all rules together: where each refers to the next, they lie within each other, and each takes some kilobytes of stack.
const MOST_LEVELS: usize = 20_000;
/// Characters, classes, tokens, names of rules, groups and repetitions. What is found out about them takes time.
const MOST_NODES: usize = 200_000;

/// What a rule says.
#[derive(Clone, Debug)]
pub(super) enum Node {
    /// One character of these.
    Char(Chars),
    /// A rule, by its number.
    Rule(usize),
    /// A token of the vocabulary, as Lark writes it.
    Token(String),
    Sequence(Vec<Node>),
    Choice(Vec<Node>),
    /// At least, and at most, if there is a most.
    Repeat(Box<Node>, u32, Option<u32>),
}

/// The rules by their numbers; `root` is one of them.
#[derive(Debug)]
pub(super) struct Grammar {
    pub(super) rules: Vec<Node>,
    pub(super) root: usize,
}

pub(super) fn parse(text: &str) -> Result<Grammar> {
    let mut reader = Reader { text, at: 0, numbers: HashMap::new(), rules: Vec::new(), depth: 0, nodes: 0 };
    reader.skip(true);
    while reader.peek().is_some() {
        reader.rule()?;
    }
    let Some(&root) = reader.numbers.get("root") else {
        return Err(invalid_at(text, text.len(), "there is no rule `root`, where a text begins"));
    };
    let mut rules = Vec::new();
    for Entry { body, seen } in reader.rules {
        rules.push(body.ok_or_else(|| invalid_at(text, seen, "this rule is nowhere defined"))?);
    }
    let levels: usize = rules.iter().map(Node::levels).sum();
    if levels > MOST_LEVELS {
        return Err(invalid(format!("rules that are {levels} levels deep together, {MOST_LEVELS} are the most")));
    }
    Ok(Grammar { rules, root })
}

impl Node {
    fn levels(&self) -> usize {
        match self {
            Self::Char(_) | Self::Rule(_) | Self::Token(_) => 1,
            Self::Sequence(nodes) | Self::Choice(nodes) => 1 + nodes.iter().map(Self::levels).max().unwrap_or(0),
            Self::Repeat(node, ..) => 1 + node.levels(),
        }
    }
}

/// A rule that was named.
struct Entry {
    body: Option<Node>,
    /// Where it was first named.
    seen: usize,
}

struct Reader<'t> {
    text: &'t str,
    /// In bytes.
    at: usize,
    numbers: HashMap<&'t str, usize>,
    rules: Vec<Entry>,
    depth: usize,
    nodes: usize,
}

impl<'t> Reader<'t> {
    fn rest(&self) -> &'t str {
        &self.text[self.at..]
    }

    fn peek(&self) -> Option<char> {
        self.rest().chars().next()
    }

    fn next(&mut self) -> Option<char> {
        let next = self.peek()?;
        self.at += next.len_utf8();
        Some(next)
    }

    fn eat(&mut self, what: &str) -> bool {
        let is_here = self.rest().starts_with(what);
        self.at += if is_here { what.len() } else { 0 };
        is_here
    }

    fn error<T>(&self, message: &str) -> Result<T> {
        Err(invalid_at(self.text, self.at, message))
    }

    /// Passes over spaces and comments, and over line breaks where they say nothing.
    fn skip(&mut self, lines: bool) {
        loop {
            match self.peek() {
                Some(' ' | '\t') => self.at += 1,
                Some('\r' | '\n') if lines => self.at += 1,
                Some('#') => self.at += self.rest().find(['\r', '\n']).unwrap_or(self.rest().len()),
                _ => return,
            }
        }
    }

    fn name(&mut self) -> Result<usize> {
        let rest = self.rest();
        let is_word = |c: char| c.is_ascii_alphanumeric() || c == '-';
        let len = rest.find(|c| !is_word(c)).unwrap_or(rest.len());
        if len == 0 {
            return self.error("the name of a rule is expected here: letters, digits and `-`");
        }
        let (next, seen) = (self.rules.len(), self.at);
        let number = *self.numbers.entry(&rest[..len]).or_insert(next);
        if number == next {
            if next == MOST_RULES {
                return self.error(&format!("a grammar has at most {MOST_RULES} rules"));
            }
            self.rules.push(Entry { body: None, seen });
        }
        self.at += len;
        Ok(number)
    }

    fn rule(&mut self) -> Result<()> {
        let begins = self.at;
        let number = self.name()?;
        self.skip(false);
        if !self.eat("::=") {
            return self.error("`::=` is expected here");
        }
        if self.rules[number].body.is_some() {
            return Err(invalid_at(self.text, begins, "this rule is defined twice"));
        }
        self.skip(true);
        let body = self.choice(false)?;
        self.rules[number].body = Some(body);
        match self.peek() {
            None | Some('\r' | '\n') => {
                self.skip(true);
                Ok(())
            }
            Some(_) => {
                self.error("the end of the line is expected here: a rule goes on after `|` and in brackets only")
            }
        }
    }

    fn choice(&mut self, nested: bool) -> Result<Node> {
        if self.depth == DEEPEST {
            return self.error("groups are nested too deeply; make rules of them");
        }
        self.depth += 1;
        let mut options = vec![self.sequence(nested)?];
        while self.eat("|") {
            self.skip(true);
            options.push(self.sequence(nested)?);
        }
        self.depth -= 1;
        Ok(if options.len() == 1 { options.remove(0) } else { Node::Choice(options) })
    }

    fn sequence(&mut self, nested: bool) -> Result<Node> {
        let mut nodes = Vec::new();
        let mut repeated = 0;
        // A repetition is of the last one, if there is one.
        while let Some(next) = self.peek() {
            self.count()?;
            repeated = if matches!(next, '*' | '+' | '?' | '{') { repeated + 1 } else { 0 };
            if repeated > MOST_REPEATED {
                return self.error("too many repetitions of one thing; make rules of them");
            }
            match next {
                '"' => nodes.push(self.literal()?),
                '[' => nodes.push(self.class()?),
                '(' => nodes.push(self.group()?),
                '<' | '!' => nodes.push(self.token()?),
                '.' => {
                    self.at += 1;
                    nodes.push(Node::Char(Chars::any()));
                }
                '*' | '+' | '?' | '{' => {
                    let at = self.at;
                    let (least, most) = self.repetition()?;
                    let Some(node) = nodes.pop() else {
                        return Err(invalid_at(self.text, at, "there is nothing before this that could be repeated"));
                    };
                    nodes.push(Node::Repeat(Box::new(node), least, most));
                }
                c if c.is_ascii_alphanumeric() || c == '-' => nodes.push(Node::Rule(self.name()?)),
                _ => break,
            }
            self.skip(nested);
        }
        Ok(Node::Sequence(nodes))
    }

    fn count(&mut self) -> Result<()> {
        self.nodes += 1;
        if self.nodes > MOST_NODES {
            return self.error(&format!("a grammar has at most {MOST_NODES} characters, names and repetitions"));
        }
        Ok(())
    }

    fn group(&mut self) -> Result<Node> {
        self.at += 1;
        self.skip(true);
        let inner = self.choice(true)?;
        if !self.eat(")") {
            return self.error("`)` is expected here");
        }
        Ok(inner)
    }

    fn repetition(&mut self) -> Result<(u32, Option<u32>)> {
        match self.next() {
            Some('*') => return Ok((0, None)),
            Some('+') => return Ok((1, None)),
            Some('?') => return Ok((0, Some(1))),
            _ => self.skip(true),
        }
        let least = self.number()?;
        self.skip(true);
        let most = if self.eat(",") {
            self.skip(true);
            if self.peek() == Some('}') { None } else { Some(self.number()?) }
        } else {
            Some(least)
        };
        self.skip(true);
        if !self.eat("}") {
            return self.error("`}` is expected here");
        }
        match most {
            Some(most) if most < least => {
                self.error("this repetition is to be at most fewer than it is to be at least")
            }
            _ => Ok((least, most)),
        }
    }

    fn number(&mut self) -> Result<u32> {
        let rest = self.rest();
        let len = rest.find(|c: char| !c.is_ascii_digit()).unwrap_or(rest.len());
        // As Lark counts.
        match rest[..len].parse::<u32>().ok().filter(|&number| number < i32::MAX.unsigned_abs()) {
            Some(number) => {
                self.at += len;
                Ok(number)
            }
            None => self.error("a number below 2147483647 is expected here"),
        }
    }

    fn literal(&mut self) -> Result<Node> {
        self.at += 1;
        let mut chars = Vec::new();
        while !self.eat("\"") {
            self.count()?;
            let c = self.char("the literal has no end; `\"` is expected")?;
            chars.push(Node::Char(Chars::of([(c, c)])));
        }
        Ok(Node::Sequence(chars))
    }

    fn class(&mut self) -> Result<Node> {
        let begins = self.at;
        self.at += 1;
        let negated = self.eat("^");
        let mut ranges = Vec::new();
        while !self.eat("]") {
            let first = self.char("the class has no end; `]` is expected")?;
            let is_range = self.rest().starts_with('-') && !self.rest().starts_with("-]");
            let last = if is_range {
                self.at += 1;
                self.char("the class has no end; `]` is expected")?
            } else {
                first
            };
            if last < first {
                return self.error("this range ends before it begins");
            }
            ranges.push((first, last));
        }
        let chars = Chars::of(ranges);
        let chars = if negated { chars.negated() } else { chars };
        if chars.is_empty() {
            return Err(invalid_at(self.text, begins, "no character is in this class"));
        }
        Ok(Node::Char(chars))
    }

    /// A character as it stands in a literal or a class, as its code point.
    fn char(&mut self, unended: &str) -> Result<u32> {
        let begins = self.at;
        match self.next() {
            None => self.error(unended),
            Some('\\') => {
                let code = match self.next() {
                    Some('x') => self.hex(2)?,
                    Some('u') => self.hex(4)?,
                    Some('U') => self.hex(8)?,
                    Some('t') => u32::from('\t'),
                    Some('r') => u32::from('\r'),
                    Some('n') => u32::from('\n'),
                    Some(c @ ('\\' | '"' | '[' | ']' | '-')) => u32::from(c),
                    _ => return Err(invalid_at(self.text, begins, "this escape is not known")),
                };
                if char::from_u32(code).is_none() {
                    return Err(invalid_at(self.text, begins, "this is no character"));
                }
                Ok(code)
            }
            Some(c) => Ok(u32::from(c)),
        }
    }

    fn hex(&mut self, digits: usize) -> Result<u32> {
        let code = self.rest().get(..digits).filter(|text| text.bytes().all(|byte| byte.is_ascii_hexdigit()));
        match code.and_then(|text| u32::from_str_radix(text, 16).ok()) {
            Some(code) => {
                self.at += digits;
                Ok(code)
            }
            None => self.error(&format!("{digits} hexadecimal digits are expected here")),
        }
    }

    /// `<[7]>`, `!<[7]>` or `<name>`.
    fn token(&mut self) -> Result<Node> {
        let negated = self.eat("!");
        let rest = self.rest();
        let end = rest.find('>').filter(|_| rest.starts_with('<'));
        let Some(name) = end.map(|end| &rest[1..end]) else {
            return self.error("a token is expected here: `<[number]>` or `<its name>`");
        };
        let number = name.strip_prefix('[').and_then(|name| name.strip_suffix(']'));
        let lark = match number {
            Some(number) if number.parse::<u32>().is_ok() => format!("<[{}{number}]>", if negated { "^" } else { "" }),
            None if !negated && !name.is_empty() && !name.contains(|c: char| c.is_whitespace() || c == '<') => {
                format!("<{name}>")
            }
            _ => return self.error("a token is expected here: `<[number]>`, `!<[number]>` or `<its name>`"),
        };
        self.at += name.len() + 2;
        Ok(Node::Token(lark))
    }
}
