//! A sampler's constraint.

use crate::{
    Constraint, Result, Token, Vocab,
    constraint::{compile::Compiled, guide::Guide},
};
use std::{fmt, sync::Arc};

#[derive(Clone, Debug)]
pub(super) struct Constrained {
    constraint: Constraint,
    compiled: Arc<Compiled>,
    /// `None` while it looks ahead.
    guide: Option<Box<Guide>>,
}

impl Constrained {
    pub(super) fn new(constraint: &Constraint, vocab: &Vocab) -> Result<Self> {
        let compiled = constraint.for_vocab(vocab)?;
        let guide = Some(Box::new(Guide::new(compiled.clone(), constraint)?));
        Ok(Self { constraint: constraint.clone(), compiled, guide })
    }

    /// Puts negative infinity in the place of each logit whose token may not follow `text`.
    pub(super) fn mask(&mut self, text: &[Token], logits: &mut [f32]) -> Result<()> {
        self.guide()?.mask(text, logits)
    }

    /// Whether the text can go on with what was drawn, and still end within its budget.
    pub(super) fn admits(&mut self, text: &[Token], drawn: Token) -> Result<bool> {
        self.guide()?.admits(text, drawn)
    }

    /// The token by which a text with a budget comes nearer to its end.
    pub(super) fn closing_token(&mut self, text: &[Token]) -> Result<Token> {
        self.guide()?.closing_token(text)
    }

    /// What is forced after `text` and the token drawn.
    pub(super) fn forced(&mut self, text: &[Token], drawn: Token) -> &[Token] {
        self.guide().map(|guide| guide.forced(text, drawn)).unwrap_or_default()
    }

    pub(super) fn look_ahead(&mut self, text: &[Token], new: &[Token]) -> Option<LookAhead> {
        let mut guide = self.guide.take()?;
        guide.aim(text, new);
        Some(LookAhead { guide })
    }

    pub(super) fn rejoin(&mut self, LookAhead { guide }: LookAhead) {
        if guide.follows(&self.compiled) {
            self.guide = Some(guide);
        }
    }

    /// What was given away and not brought back is made anew: it follows the text from its beginning.
    fn guide(&mut self) -> Result<&mut Guide> {
        let guide = match self.guide.take() {
            Some(guide) => guide,
            None => Box::new(Guide::new(self.compiled.clone(), &self.constraint)?),
        };
        Ok(self.guide.insert(guide))
    }
}

/// Finds which tokens a constraint will allow, on any thread. See [`Sampler::look_ahead`](super::Sampler::look_ahead).
pub struct LookAhead {
    guide: Box<Guide>,
}

impl LookAhead {
    /// Finds it. A failure is found again by the draw, which reports it.
    pub fn run(&mut self) {
        self.guide.look_ahead();
    }
}

impl fmt::Debug for LookAhead {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LookAhead").finish_non_exhaustive()
    }
}
