//! What there is of a sampler's constraint in a build without the feature: none.

use crate::{Constraint, Result, Token, Vocab, constraint::unsupported};
use std::convert::Infallible;

#[derive(Clone, Debug)]
pub(super) struct Constrained(Infallible);

impl Constrained {
    pub(super) fn new(_: &Constraint, _: &Vocab) -> Result<Self> {
        Err(unsupported())
    }

    pub(super) fn mask(&mut self, _: &[Token], _: &mut [f32]) -> Result<()> {
        match self.0 {}
    }

    pub(super) fn admits(&mut self, _: &[Token], _: Token) -> Result<bool> {
        match self.0 {}
    }

    pub(super) fn closing_token(&mut self, _: &[Token]) -> Result<Token> {
        match self.0 {}
    }

    pub(super) fn forced(&mut self, _: &[Token], _: Token) -> &[Token] {
        match self.0 {}
    }

    pub(super) fn look_ahead(&mut self, _: &[Token], _: &[Token]) -> Option<LookAhead> {
        match self.0 {}
    }

    pub(super) fn rejoin(&mut self, found: LookAhead) {
        match found.0 {}
    }
}

/// Finds which tokens a constraint will allow. This build has no constraints, and so none of these.
#[derive(Debug)]
pub struct LookAhead(Infallible);

impl LookAhead {
    /// Finds it.
    pub fn run(&mut self) {
        match self.0 {}
    }
}
