//! The operands of `*`: what binds tighter than it on either side.

use super::scan::{Kind, Tag, Token};

/// Names that stand between operands.
const KEYWORDS: [&str; 8] = ["and", "or", "not", "in", "is", "if", "else", "recursive"];

/// The first and last token of each operand of each multiplication in a tag.
pub(super) fn factors<'t>(tag: &'t Tag<'_>) -> impl Iterator<Item = (usize, usize)> + 't {
    let times = (0..tag.tokens.len()).filter(|&at| {
        // After an opening bracket or a comma it passes a list's items on.
        tag.tokens[at].is("*") && at > 0 && is_end(tag, at - 1)
    });
    times.flat_map(|at| before(tag, at).into_iter().chain(after(tag, at)))
}

/// Whether an operand can end with this token.
pub(super) fn is_end(tag: &Tag<'_>, at: usize) -> bool {
    let token = &tag.tokens[at];
    match token.kind {
        Kind::Name => {
            let statement = tag.statement && at == 0;
            !statement && (!KEYWORDS.contains(&token.text) || follows_dot(tag, at))
        }
        Kind::Text | Kind::Number | Kind::Close => true,
        Kind::Open | Kind::Operator => false,
    }
}

fn follows_dot(tag: &Tag<'_>, at: usize) -> bool {
    at > 0 && tag.tokens[at - 1].is(".")
}

/// The operand that ends before token `at`. None where it is the outcome of a test, which is no list.
fn before(tag: &Tag<'_>, at: usize) -> Option<(usize, usize)> {
    let tokens = &tag.tokens;
    let last = at - 1;
    let mut first = last;
    loop {
        if tokens[first].kind == Kind::Close {
            first = tokens[first].partner;
            // `(` and `[` after an operand call it and index it; `{` never does.
            if first > 0 && !tokens[first].is("{") && is_end(tag, first - 1) {
                first -= 1;
                continue;
            }
        }
        match first.checked_sub(1).map(|before| &tokens[before]) {
            // An attribute, or a filter: of what stands before.
            Some(before) if (before.is(".") || before.is("|")) && first >= 2 => first -= 2,
            Some(before) if before.kind == Kind::Text && tokens[first].kind == Kind::Text => first -= 1,
            // The name of a test, or what follows it.
            Some(before) if before.kind == Kind::Name && (before.is("is") || is_end(tag, first - 1)) => return None,
            Some(before) if before.is("not") && first >= 2 && tokens[first - 2].is("is") => return None,
            _ => return Some((first, last)),
        }
    }
}

/// The operand that begins after token `at`.
fn after(tag: &Tag<'_>, at: usize) -> Option<(usize, usize)> {
    let tokens = &tag.tokens;
    let next = |at: usize| tokens.get(at + 1);
    let mut first = at + 1;
    while tokens.get(first)?.is("-") || tokens[first].is("+") {
        first += 1;
    }
    let close = |at: usize, token: &Token<'_>| if token.kind == Kind::Open { token.partner } else { at };
    if matches!(tokens[first].kind, Kind::Close | Kind::Operator) {
        return None;
    }
    let mut last = close(first, &tokens[first]);
    loop {
        match next(last) {
            Some(token) if token.is("(") || token.is("[") => last = token.partner,
            Some(token) if (token.is(".") || token.is("|")) && next(last + 1).is_some() => last += 2,
            Some(token) if token.kind == Kind::Text && tokens[last].kind == Kind::Text => last += 1,
            _ => return Some((first, last)),
        }
    }
}
