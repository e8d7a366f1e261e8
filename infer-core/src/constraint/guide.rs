//! A constraint followed through a text, token by token.

use super::{
    Constraint,
    allowed::{Allowed, longest},
    closing::Closing,
    compile::{Compiled, DEAD_END, contained, invalid, said},
};
use crate::{Error, Result, Token};
use llguidance::Matcher;
use std::{fmt, sync::Arc};

/// Says which tokens may follow a text.
///
/// It is where the last question took it and goes from there to where the next one asks: what it answers depends on the
/// tokens it is asked about, not on what it was asked before.
pub(crate) struct Guide {
    compiled: Arc<Compiled>,
    forced_tokens: bool,
    /// The most tokens a text may have.
    budget: Option<usize>,
    /// With a budget: the closing of the empty text, and of each text that the matcher has taken since; where none is known, `None`.
    closings: Vec<Option<Closing>>,
    /// `None` where following it has failed.
    matcher: Option<Matcher>,
    /// The tokens the matcher has taken. None of them ends a text.
    taken: Vec<Token>,
    /// What may follow so many of them.
    allowed: Option<(usize, Allowed)>,
    /// What to look ahead at.
    ahead: Vec<Token>,
    /// The tokens found to be forced.
    forced: Vec<Token>,
}

impl Guide {
    /// More forced tokens than this come with later draws.
    const MOST_FORCED: usize = 64;
    /// Where a budget is too small, a longer text is looked for to say by how much.
    const LONGEST_CLOSING: usize = 4096;
    /// From so many tokens on a text may have shown something new of its constraint.
    const WORTH_KEEPING: usize = 8;
    /// Room for a text of usual length.
    const RESERVE: usize = 1024;

    /// # Errors
    /// [`InvalidConstraint`](crate::ErrorKind::InvalidConstraint) where no text is found that is within the budget.
    pub(crate) fn new(compiled: Arc<Compiled>, constraint: &Constraint) -> Result<Self> {
        let mut guide = Self {
            matcher: Some(compiled.begin()),
            compiled,
            forced_tokens: constraint.forced_tokens,
            budget: constraint.budget,
            closings: Vec::new(),
            taken: Vec::with_capacity(Self::RESERVE),
            allowed: None,
            ahead: Vec::new(),
            forced: Vec::new(),
        };
        if let Some(budget) = constraint.budget {
            let closing = guide.first_closing(budget)?;
            if closing.is_none() {
                let needs = match guide.first_closing(Self::LONGEST_CLOSING)? {
                    Some(closing) => {
                        format!("the shortest one found has {}, beside the token that ends it", closing.tokens().len())
                    }
                    None => "none was found of any length".into(),
                };
                return Err(invalid(format!("no text of at most {budget} tokens meets the constraint: {needs}")));
            }
            guide.closings.push(closing);
        }
        Ok(guide)
    }

    /// Whether this is the constraint it follows.
    pub(crate) fn follows(&self, compiled: &Arc<Compiled>) -> bool {
        Arc::ptr_eq(&self.compiled, compiled)
    }

    /// Says what [`look_ahead`](Self::look_ahead) is to look at: a text, and the tokens to come.
    pub(crate) fn aim(&mut self, text: &[Token], new: &[Token]) {
        self.ahead.clear();
        self.ahead.extend_from_slice(text);
        self.ahead.extend_from_slice(new);
    }

    /// Finds what may follow it, so that [`mask`](Self::mask) has that at once.
    pub(crate) fn look_ahead(&mut self) {
        let text = std::mem::take(&mut self.ahead);
        // An error is found again by the draw, which reports it.
        drop(self.find(&text));
        self.ahead = text;
    }

    /// Puts negative infinity in the place of each logit whose token may not follow `text`.
    ///
    /// # Errors
    /// [`InvalidConstraint`](crate::ErrorKind::InvalidConstraint) where the text does not keep to the constraint, no token can follow, or finding out
    /// is too much.
    pub(crate) fn mask(&mut self, text: &[Token], logits: &mut [f32]) -> Result<()> {
        if self.budget.is_some() {
            self.go_to_text(text)?;
            self.closing_in_time()?;
        }
        let allowed = self.find(text)?;
        allowed.mask(self.compiled.tokens(), logits);
        Ok(())
    }

    /// Whether the text can go on with `token`, which may follow it, and still end within the budget.
    pub(crate) fn admits(&mut self, text: &[Token], token: Token) -> Result<bool> {
        if self.budget.is_none() || self.is_end(token) {
            return Ok(true);
        }
        self.go_to(text)?;
        Ok(self.take(token)? && self.is_in_time())
    }

    /// The token by which a text with a budget comes nearer to its end.
    pub(crate) fn closing_token(&mut self, text: &[Token]) -> Result<Token> {
        self.go_to_text(text)?;
        let next = self.closing_in_time()?.tokens().first().copied();
        Ok(next.unwrap_or(self.compiled.tokens().ends()[0]))
    }

    fn is_in_time(&self) -> bool {
        self.budget.is_none() || self.closing_in_time().is_ok()
    }

    /// The closing of what was taken, if it fits in what is left of the budget.
    fn closing_in_time(&self) -> Result<&Closing> {
        let (budget, taken) = (self.budget.unwrap_or(usize::MAX), self.taken.len());
        let closing = self.closings.last().and_then(Option::as_ref);
        closing.filter(|closing| taken + closing.tokens().len() <= budget).ok_or_else(|| {
            invalid(format!("after {taken} tokens the text cannot be completed within its budget of {budget}"))
        })
    }

    /// The tokens that have no alternative after `text` and `token`, which may follow it.
    pub(crate) fn forced(&mut self, text: &[Token], token: Token) -> &[Token] {
        self.forced.clear();
        if self.forced_tokens && !self.is_end(token) {
            // What goes wrong here goes wrong in the draw of the token in question, too, which says so.
            drop(self.find_forced(text, token));
        }
        &self.forced
    }

    fn find_forced(&mut self, text: &[Token], token: Token) -> Result<()> {
        self.go_to(text)?;
        let mut is_taken = self.take(token)?;
        while is_taken && self.forced.len() < Self::MOST_FORCED {
            let Some(next) = self.forced_token()? else { break };
            // Where there is no time for it, its draw closes the text.
            is_taken = self.take(next)? && self.is_in_time();
            self.forced.extend(is_taken.then_some(next));
        }
        Ok(())
    }

    fn find(&mut self, text: &[Token]) -> Result<Allowed> {
        let end = text.iter().position(|&token| self.is_end(token));
        let text = match end {
            None => text,
            Some(end) => {
                if let Some(more) = text[end..].iter().position(|&token| !self.is_end(token)) {
                    let message = format!("generated token {} follows the end of the text", end + more);
                    return Err(invalid(message));
                }
                &text[..end]
            }
        };
        if let Some((len, allowed)) = &self.allowed
            && *len == text.len()
            && self.taken.get(..*len) == Some(text)
        {
            return self.after(end, allowed.clone());
        }
        self.go_to(text)?;
        let allowed = self.ask()?;
        self.allowed = Some((text.len(), allowed.clone()));
        self.after(end, allowed)
    }

    /// What may follow an end at `end`, if there is one, where `allowed` may stand.
    fn after(&self, end: Option<usize>, allowed: Allowed) -> Result<Allowed> {
        let Some(end) = end else { return Ok(allowed) };
        let may_end = match &allowed {
            Allowed::One(_) => false,
            Allowed::Many(set) => set.is_allowed(self.compiled.tokens().ends()[0].0),
            Allowed::End => true,
        };
        if may_end {
            Ok(Allowed::End)
        } else {
            Err(invalid(format!("generated token {end} ends a text that is not complete")))
        }
    }

    fn is_end(&self, token: Token) -> bool {
        self.compiled.tokens().ends().contains(&token)
    }

    /// Brings the matcher to the end of `text`, or to where an end follows.
    fn go_to_text(&mut self, text: &[Token]) -> Result<()> {
        let end = text.iter().position(|&token| self.is_end(token)).unwrap_or(text.len());
        self.go_to(&text[..end])
    }

    /// Brings the matcher to the end of `text`.
    fn go_to(&mut self, text: &[Token]) -> Result<()> {
        let common = self.taken.iter().zip(text).take_while(|(a, b)| a == b).count();
        self.go_back(common);
        let common = self.taken.len();
        for (index, &token) in text.iter().enumerate().skip(common) {
            if !self.take(token)? {
                return Err(invalid(format!("generated token {index}, {token}, does not keep to the constraint")));
            }
        }
        Ok(())
    }

    /// Takes the matcher back to the first `len` tokens, or to the beginning.
    fn go_back(&mut self, len: usize) {
        let surplus = self.taken.len() - len;
        let back = self
            .matcher
            .as_mut()
            .is_some_and(|matcher| surplus == 0 || contained(|| take_back(matcher, surplus)).is_ok());
        if back {
            self.taken.truncate(len);
            self.closings.truncate(len + 1);
        } else {
            self.begin_anew();
            self.matcher = Some(self.compiled.begin());
        }
        if self.allowed.as_ref().is_some_and(|(at, _)| *at > self.taken.len()) {
            self.allowed = None;
        }
    }

    /// Has the matcher take one more token. Whether it may follow.
    fn take(&mut self, token: Token) -> Result<bool> {
        let took =
            self.with(|matcher| matcher.try_consume_tokens(&[token.0]).map_err(|error| invalid(said(&error))))?;
        if took == 1 {
            self.taken.push(token);
            if let Some(budget) = self.budget {
                let before = self.closings.last().cloned().flatten();
                let room = budget.checked_sub(self.taken.len());
                let closing = room.map(|room| self.closing_after(before.as_ref(), token, room)).transpose()?;
                self.closings.push(closing.flatten());
            }
        }
        Ok(took == 1)
    }

    pub(super) fn compiled(&self) -> Arc<Compiled> {
        self.compiled.clone()
    }

    /// The text that was taken.
    pub(super) fn bytes(&self) -> Vec<u8> {
        let trie = self.compiled.tokens().trie();
        self.taken.iter().flat_map(|token| trie.token(token.0)).copied().collect()
    }

    fn begin_anew(&mut self) {
        self.matcher = None;
        self.taken.clear();
        self.closings.truncate(1);
        self.allowed = None;
    }

    fn ask(&mut self) -> Result<Allowed> {
        if let Some(token) = self.forced_token()? {
            return Ok(Allowed::One(token));
        }
        let compiled = self.compiled.clone();
        let ends = compiled.tokens().ends();
        self.with(|matcher| {
            if is_complete(matcher) {
                return Ok(Allowed::End);
            }
            let mut set = matcher.compute_mask().map_err(|error| match said(&error) {
                words if words.contains(DEAD_END) => {
                    invalid("no token of the vocabulary can follow: the text cannot be completed")
                }
                words => invalid(words),
            })?;
            if ends.iter().any(|end| set.is_allowed(end.0)) {
                ends.iter().for_each(|end| set.allow_token(end.0));
            }
            Ok(Allowed::Many(set))
        })
    }

    /// The token that stands for what follows, where that is one text only, as far as a token reaches: the longest that fits. None where a
    /// token could also reach beyond that text.
    fn forced_token(&mut self) -> Result<Option<Token>> {
        if !self.forced_tokens {
            return Ok(None);
        }
        let bytes = self.with(|matcher| {
            if is_complete(matcher) {
                return Ok(Vec::new());
            }
            let bytes = matcher.compute_ff_bytes();
            match matcher.get_error() {
                None => Ok(bytes),
                Some(words) => Err(invalid(said(&words))),
            }
        })?;
        let tokens = self.compiled.tokens();
        Ok(if tokens.is_dense(&bytes) { longest(tokens.trie(), &bytes) } else { None })
    }

    /// Asks the matcher. What failed once is not asked again, but made anew.
    pub(super) fn with<T>(&mut self, ask: impl FnOnce(&mut Matcher) -> Result<T>) -> Result<T> {
        let matcher = self.matcher.get_or_insert_with(|| self.compiled.begin());
        let answer = contained(|| ask(matcher));
        if answer.is_err() {
            self.begin_anew();
        }
        answer
    }
}

/// Takes the last tokens back.
pub(super) fn take_back(matcher: &mut Matcher, tokens: usize) -> Result<()> {
    matcher.rollback(tokens).map_err(failed)?;
    // It remembers the last mask by where in its table it was found, and what will stand there may be another.
    matcher.invalidate_bias_cache();
    Ok(())
}

/// Whether the text is complete and nothing can follow it.
pub(super) fn is_complete(matcher: &Matcher) -> bool {
    matcher.is_stopped() && !matcher.is_error()
}

pub(super) fn failed(error: impl fmt::Display) -> Error {
    invalid(said(&error))
}

/// What it has found out about the constraint is of use to those that come after it.
impl Drop for Guide {
    fn drop(&mut self) {
        if let Some(matcher) = self.matcher.take().filter(|_| self.taken.len() >= Self::WORTH_KEEPING) {
            // One that cannot be brought back to its beginning is dropped.
            drop(contained(|| self.compiled.learn(matcher)));
        }
    }
}

/// A copy is where this one is, and goes its own way from there.
impl Clone for Guide {
    fn clone(&self) -> Self {
        Self {
            compiled: self.compiled.clone(),
            forced_tokens: self.forced_tokens,
            budget: self.budget,
            closings: self.closings.clone(),
            matcher: self.matcher.as_ref().map(Matcher::deep_clone),
            taken: self.taken.clone(),
            allowed: self.allowed.clone(),
            ahead: Vec::new(),
            forced: Vec::new(),
        }
    }
}

impl fmt::Debug for Guide {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Guide").field("taken", &self.taken.len()).finish_non_exhaustive()
    }
}
