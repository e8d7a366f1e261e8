//! Which parts of a grammar can be read as a whole.
//!
//! GBNF goes character by character. What follows it here reads *lexemes*, each as long as it can be: much faster, and the same
//! as long as no lexeme can swallow what is to come after it. So what does not refer to itself, directly or not, is
//! made a lexeme, as much of it as stands together; where such a one could go on with a character that may also follow it, that
//! one is left in single characters.

use super::{
    chars::Chars,
    parse::{Grammar, Node},
};

/// What is known of a regular part.
#[derive(Clone, Debug, Default)]
pub(super) struct Facts {
    /// Whether it can be empty.
    pub(super) nullable: bool,
    /// What it can begin with.
    pub(super) first: Chars,
    /// What it could go on with where it could also end.
    pub(super) on: Chars,
    /// What it can have at any place but the first.
    inner: Chars,
}

/// Which rules are regular: none that refers to itself, or to such a one, or names tokens.
pub(super) fn regular(grammar: &Grammar) -> Vec<Option<Facts>> {
    let mut states = vec![State::New; grammar.rules.len()];
    for rule in 0..grammar.rules.len() {
        visit(grammar, rule, &mut states);
    }
    let known = |state| if let State::Regular(facts) = state { Some(facts) } else { None };
    states.into_iter().map(known).collect()
}

#[derive(Clone, Debug)]
enum State {
    New,
    /// Met again before it was done: it refers to itself.
    Open,
    Irregular,
    Regular(Facts),
}

fn visit(grammar: &Grammar, rule: usize, states: &mut [State]) -> Option<Facts> {
    match &states[rule] {
        State::Regular(facts) => return Some(facts.clone()),
        State::Open | State::Irregular => return None,
        State::New => {}
    }
    states[rule] = State::Open;
    let facts = facts(&grammar.rules[rule], &mut |other| visit(grammar, other, states));
    states[rule] = facts.clone().map_or(State::Irregular, State::Regular);
    facts
}

/// `rule` says what is known of a rule; `None` where the part is not regular.
pub(super) fn facts(node: &Node, rule: &mut impl FnMut(usize) -> Option<Facts>) -> Option<Facts> {
    match node {
        Node::Char(chars) => Some(Facts { first: chars.clone(), ..Facts::default() }),
        Node::Token(_) => None,
        Node::Rule(number) => rule(*number),
        Node::Sequence(nodes) => {
            let empty = Facts { nullable: true, ..Facts::default() };
            nodes.iter().try_fold(empty, |before, node| Some(before.then(&facts(node, rule)?)))
        }
        Node::Choice(options) => {
            let mut all: Option<Facts> = None;
            for option in options {
                let other = facts(option, rule)?;
                all = Some(match all {
                    None => other,
                    Some(one) => one.or(&other),
                });
            }
            all
        }
        Node::Repeat(node, _, Some(0)) => facts(node, rule).map(|_| Facts { nullable: true, ..Facts::default() }),
        Node::Repeat(node, least, most) => {
            let once = facts(node, rule)?;
            let mut all = if *most == Some(1) { once.clone() } else { once.clone().then(&once).or(&once) };
            all.nullable = once.nullable || *least == 0;
            Some(all)
        }
    }
}

impl Facts {
    pub(super) fn then(mut self, next: &Self) -> Self {
        // Where the first part could take what is the next one's, places within both can be the last.
        if self.on.meets(&next.first) {
            self.on.add(&self.inner);
            self.on.add(&next.inner);
        }
        if next.nullable {
            self.on.add(&next.first);
        } else {
            let ambiguous = self.on.meets(&next.first);
            if !ambiguous {
                self.on = Chars::default();
            }
        }
        self.on.add(&next.on);
        self.inner.add(&next.inner);
        self.inner.add(&next.first);
        if self.nullable {
            self.first.add(&next.first);
        }
        self.nullable &= next.nullable;
        self
    }

    fn or(mut self, other: &Self) -> Self {
        if self.first.meets(&other.first) {
            self.on.add(&self.inner);
            self.on.add(&other.inner);
        }
        self.on.add(&other.on);
        self.inner.add(&other.inner);
        self.first.add(&other.first);
        self.nullable |= other.nullable;
        self
    }
}
