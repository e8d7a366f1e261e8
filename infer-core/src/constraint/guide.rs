//! A constraint followed through a text, token by token.

use super::{
    Constraint,
    compile::{Compiled, DEAD_END, contained, invalid, said},
};
use crate::{Result, Token};
use llguidance::Matcher;
use std::{fmt, sync::Arc};
use toktrie::{SimpleVob, TokTrie};

/// Says which tokens may follow a text.
///
/// It is where the last question took it and goes from there to where the next one asks: what it answers depends on the
/// tokens it is asked about, not on what it was asked before.
pub(crate) struct Guide {
    compiled: Arc<Compiled>,
    forced_tokens: bool,
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

/// The tokens that may follow.
#[derive(Clone)]
pub(crate) enum Allowed {
    One(Token),
    /// Those whose bit is set.
    Many(SimpleVob),
    /// Those that end a text.
    End,
}

impl Guide {
    /// More forced tokens than this come with later draws.
    const MOST_FORCED: usize = 64;
    /// Room for a text of usual length.
    const RESERVE: usize = 1024;

    pub(crate) fn new(compiled: Arc<Compiled>, constraint: &Constraint) -> Self {
        Self {
            matcher: Some(compiled.begin()),
            compiled,
            forced_tokens: constraint.forced_tokens,
            taken: Vec::with_capacity(Self::RESERVE),
            allowed: None,
            ahead: Vec::new(),
            forced: Vec::new(),
        }
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
        let allowed = self.find(text)?;
        match allowed {
            Allowed::One(token) => {
                let logit = logits[token.index()];
                logits.fill(f32::NEG_INFINITY);
                logits[token.index()] = logit;
            }
            Allowed::Many(set) => keep(logits, &set),
            Allowed::End => keep(logits, self.compiled.tokens().end_set()),
        }
        Ok(())
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
        let mut next = Some(token);
        while let Some(token) = next
            && self.take(token)?
            && self.forced.len() < Self::MOST_FORCED
        {
            next = self.forced_token()?;
            self.forced.extend(next);
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
        let back = self.matcher.as_mut().is_some_and(|matcher| {
            surplus == 0 || contained(|| matcher.rollback(surplus).map_err(|error| invalid(said(&error)))).is_ok()
        });
        if back {
            self.taken.truncate(len);
        } else {
            self.taken.clear();
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
        }
        Ok(took == 1)
    }

    fn ask(&mut self) -> Result<Allowed> {
        if let Some(token) = self.forced_token()? {
            return Ok(Allowed::One(token));
        }
        let compiled = self.compiled.clone();
        let ends = compiled.tokens().ends();
        self.with(|matcher| {
            if matcher.is_stopped() && !matcher.is_error() {
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
            if matcher.is_stopped() && !matcher.is_error() {
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
    fn with<T>(&mut self, ask: impl FnOnce(&mut Matcher) -> Result<T>) -> Result<T> {
        let matcher = self.matcher.get_or_insert_with(|| self.compiled.begin());
        let answer = contained(|| ask(matcher));
        if answer.is_err() {
            self.matcher = None;
            self.taken.clear();
            self.allowed = None;
        }
        answer
    }
}

fn keep(logits: &mut [f32], set: &SimpleVob) {
    for (&word, block) in set.as_slice().iter().zip(logits.chunks_mut(u32::BITS as usize)) {
        match word {
            0 => block.fill(f32::NEG_INFINITY),
            u32::MAX => {}
            _ => {
                for (bit, logit) in block.iter_mut().enumerate() {
                    *logit = if word >> bit & 1 == 1 { *logit } else { f32::NEG_INFINITY };
                }
            }
        }
    }
}

/// The longest token that a text begins with; none where one begins with all of the text and goes on.
fn longest(trie: &TokTrie, text: &[u8]) -> Option<Token> {
    if text.first() == Some(&TokTrie::SPECIAL_TOKEN_MARKER) {
        return None;
    }
    let (mut node, mut longest) = (trie.root(), None);
    for &byte in text {
        match trie.child_at_byte(node, byte) {
            Some(child) => node = child,
            None => return longest,
        }
        longest = node.token_id().map(Token).or(longest);
    }
    // All of the text was walked: what lies below goes on.
    longest.filter(|_| node.subtree_size() == 1)
}

/// A copy is where this one is, and goes its own way from there.
impl Clone for Guide {
    fn clone(&self) -> Self {
        Self {
            compiled: self.compiled.clone(),
            forced_tokens: self.forced_tokens,
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
