use crate::{Sampling, Token};

/// The tokens of a sequence, and how often each occurs among the last ones before a position.
#[derive(Clone, Debug)]
pub(super) struct Window {
    size: usize,
    /// What stands in the sequence, from its beginning.
    tokens: Vec<Token>,
    /// How often each token occurs in the window before `counted`, by token. Always made of `tokens` alone: it is a
    /// cache, and moving it forward is only quicker than counting anew.
    counts: Vec<(Token, u32)>,
    counted: usize,
}

impl Window {
    /// Room for this many tokens is made at once, so that a generation of usual length allocates nothing on its way.
    const RESERVE: usize = 4096;

    /// From so many new tokens on it is quicker to count anew than to move the window on by each of them.
    const LEAP: usize = 64;

    pub(super) fn new(size: usize, prompt: &[Token]) -> Self {
        let mut tokens = Vec::with_capacity(prompt.len() + Self::RESERVE);
        tokens.extend_from_slice(prompt);
        // One more than the window: a token comes in before one goes out.
        let counts = Vec::with_capacity(size.min(prompt.len() + Self::RESERVE) + 1);
        Self { size, tokens, counts, counted: 0 }
    }

    pub(super) fn extend(&mut self, tokens: &[Token]) {
        self.tokens.extend_from_slice(tokens);
    }

    pub(super) fn truncate(&mut self, len: usize) {
        self.tokens.truncate(len);
        if self.counted > len {
            self.counts.clear();
            self.counted = 0;
        }
    }

    /// Applies the penalties to the logits of the token at `position`, which the sequence reaches.
    pub(super) fn penalise(&mut self, position: usize, sampling: &Sampling, logits: &mut [f32]) {
        self.count(position);
        for &(token, count) in &self.counts {
            let Some(logit) = logits.get_mut(token.index()) else { continue };
            // Dividing would make a negative logit more probable; hence the two cases.
            if *logit <= 0.0 {
                *logit *= sampling.repetition_penalty;
            } else {
                *logit /= sampling.repetition_penalty;
            }
            *logit -= count as f32 * sampling.frequency_penalty + sampling.presence_penalty;
        }
    }

    fn count(&mut self, position: usize) {
        let steps = position.saturating_sub(self.counted);
        if position < self.counted || steps >= self.size.min(Self::LEAP) {
            self.recount(position);
        } else {
            for at in self.counted..position {
                self.enter(self.tokens[at]);
                if let Some(left) = at.checked_sub(self.size) {
                    self.leave(self.tokens[left]);
                }
            }
        }
        self.counted = position;
    }

    fn recount(&mut self, position: usize) {
        let window = &self.tokens[position.saturating_sub(self.size)..position];
        self.counts.clear();
        self.counts.extend(window.iter().map(|&token| (token, 1)));
        self.counts.sort_unstable();
        self.counts.dedup_by(|next, kept| {
            let same = next.0 == kept.0;
            kept.1 += u32::from(same);
            same
        });
    }

    fn enter(&mut self, token: Token) {
        match self.counts.binary_search_by_key(&token, |&(token, _)| token) {
            Ok(at) => self.counts[at].1 += 1,
            Err(at) => self.counts.insert(at, (token, 1)),
        }
    }

    fn leave(&mut self, token: Token) {
        let at = self.counts.binary_search_by_key(&token, |&(token, _)| token);
        let at = at.expect("a token that leaves the window was counted when it entered");
        if self.counts[at].1 > 1 {
            self.counts[at].1 -= 1;
        } else {
            self.counts.remove(at);
        }
    }
}
