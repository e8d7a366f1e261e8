//! Rules that refer to themselves, with the regular parts in them made whole.

use super::{
    chars::Chars,
    lexemes::{Facts, facts},
    parse::Node,
};

/// A rule's body, or a part of it.
pub(super) enum Part {
    Run(Run),
    /// A rule that is not regular.
    Rule(usize),
    Token(String),
    Sequence(Vec<Part>),
    Choice(Vec<Part>),
    Repeat(Box<Part>, u32, Option<u32>),
}

/// As much as is regular and stands together.
pub(super) struct Run {
    pub(super) node: Node,
    pub(super) facts: Facts,
    /// What may follow it.
    pub(super) follow: Chars,
}

impl Run {
    /// Whether it could swallow what follows it.
    pub(super) fn is_greedy(&self) -> bool {
        self.facts.on.meets(&self.follow)
    }
}

/// What an irregular rule can begin with, whether it can be empty, and what may follow it.
#[derive(Clone, Default)]
pub(super) struct Bounds {
    first: Chars,
    nullable: bool,
    follow: Chars,
}

impl Part {
    /// `rules` has the facts of regular rules.
    pub(super) fn of(node: &Node, rules: &[Option<Facts>]) -> Self {
        if let Some(run) = run(node.clone(), rules) {
            return Self::Run(run);
        }
        match node {
            Node::Rule(number) => Self::Rule(*number),
            Node::Token(token) => Self::Token(token.clone()),
            Node::Repeat(node, least, most) => Self::Repeat(Box::new(Self::of(node, rules)), *least, *most),
            Node::Sequence(nodes) => Self::Sequence(together(nodes, rules, Node::Sequence)),
            Node::Choice(options) => Self::Choice(apart(options, rules)),
            Node::Char(_) => unreachable!("a character is regular"),
        }
    }

    /// How many runs there are in it.
    pub(super) fn runs(&self) -> usize {
        match self {
            Self::Run(_) => 1,
            Self::Rule(_) | Self::Token(_) => 0,
            Self::Sequence(parts) | Self::Choice(parts) => parts.iter().map(Self::runs).sum(),
            Self::Repeat(part, ..) => part.runs(),
        }
    }

    /// Finds what the parts of all rules can begin with.
    pub(super) fn find_firsts(rules: &[Option<Self>], bounds: &mut [Bounds]) {
        loop {
            let mut changed = false;
            for (number, part) in rules.iter().enumerate() {
                let Some(part) = part else { continue };
                let (first, nullable) = part.first(bounds);
                changed |= bounds[number].first.add(&first) | (nullable != bounds[number].nullable);
                bounds[number].nullable = nullable;
            }
            if !changed {
                return;
            }
        }
    }

    /// Finds what may follow each run.
    pub(super) fn find_follows(rules: &mut [Option<Self>], bounds: &mut [Bounds]) {
        loop {
            let mut changed = false;
            for number in 0..rules.len() {
                let follow = bounds[number].follow.clone();
                if let Some(part) = &mut rules[number] {
                    changed |= part.followed_by(&follow, bounds);
                }
            }
            if !changed {
                return;
            }
        }
    }

    fn first(&self, bounds: &[Bounds]) -> (Chars, bool) {
        match self {
            Self::Run(Run { facts, .. }) => (facts.first.clone(), facts.nullable),
            Self::Rule(number) => (bounds[*number].first.clone(), bounds[*number].nullable),
            Self::Token(_) => (Chars::default(), false),
            Self::Repeat(part, least, most) => {
                let (first, nullable) = part.first(bounds);
                (if *most == Some(0) { Chars::default() } else { first }, nullable || *least == 0)
            }
            Self::Choice(options) => {
                let mut all = (Chars::default(), false);
                for (first, nullable) in options.iter().map(|option| option.first(bounds)) {
                    all.0.add(&first);
                    all.1 |= nullable;
                }
                all
            }
            Self::Sequence(parts) => {
                let mut all = Chars::default();
                for (first, nullable) in parts.iter().map(|part| part.first(bounds)) {
                    all.add(&first);
                    if !nullable {
                        return (all, false);
                    }
                }
                (all, true)
            }
        }
    }

    /// Takes in what may follow this part. Whether anything of it was new.
    fn followed_by(&mut self, follow: &Chars, bounds: &mut [Bounds]) -> bool {
        match self {
            Self::Run(run) => run.follow.add(follow),
            Self::Rule(number) => bounds[*number].follow.add(follow),
            Self::Token(_) => false,
            Self::Choice(options) => {
                options.iter_mut().fold(false, |changed, option| option.followed_by(follow, bounds) | changed)
            }
            Self::Repeat(part, _, most) => {
                let mut follow = follow.clone();
                if *most != Some(1) {
                    follow.add(&part.first(bounds).0);
                }
                part.followed_by(&follow, bounds)
            }
            Self::Sequence(parts) => {
                let (mut changed, mut follow) = (false, follow.clone());
                for part in parts.iter_mut().rev() {
                    changed |= part.followed_by(&follow, bounds);
                    let (first, nullable) = part.first(bounds);
                    if nullable {
                        follow.add(&first);
                    } else {
                        follow = first;
                    }
                }
                changed
            }
        }
    }
}

fn run(node: Node, rules: &[Option<Facts>]) -> Option<Run> {
    let facts = facts(&node, &mut |rule| rules[rule].clone())?;
    Some(Run { node, facts, follow: Chars::default() })
}

/// Parts one after the other, regular ones made one.
fn together(nodes: &[Node], rules: &[Option<Facts>], join: fn(Vec<Node>) -> Node) -> Vec<Part> {
    let (mut parts, mut regular) = (Vec::new(), Vec::new());
    let flush = |regular: &mut Vec<Node>, parts: &mut Vec<Part>| {
        if !regular.is_empty() {
            parts.extend(run(join(std::mem::take(regular)), rules).map(Part::Run));
        }
    };
    for node in nodes {
        if facts(node, &mut |rule| rules[rule].clone()).is_some() {
            regular.push(node.clone());
        } else {
            flush(&mut regular, &mut parts);
            parts.push(Part::of(node, rules));
        }
    }
    flush(&mut regular, &mut parts);
    parts
}

/// Parts to choose from: one regular one in place of all that are.
fn apart(options: &[Node], rules: &[Option<Facts>]) -> Vec<Part> {
    let is_regular = |node: &&Node| facts(node, &mut |rule| rules[rule].clone()).is_some();
    let (regular, others): (Vec<&Node>, Vec<&Node>) = options.iter().partition(is_regular);
    let mut parts = together(&regular.into_iter().cloned().collect::<Vec<_>>(), rules, Node::Choice);
    parts.extend(others.into_iter().map(|node| Part::of(node, rules)));
    parts
}
