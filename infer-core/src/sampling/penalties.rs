use crate::{Sampling, Token};

/// How often each token of a sequence occurs among the last ones before a position.
#[derive(Clone, Debug)]
pub(super) struct Counts {
    window: usize,
    /// By token, for the window before `counted`. Always made of the sequence's tokens alone: it is a cache, and moving it
    /// forward is only quicker than counting anew.
    counts: Vec<(Token, u32)>,
    counted: usize,
}

impl Counts {
    /// From so many new tokens on it is quicker to count anew than to move the window on by each of them.
    const LEAP: usize = 64;

    /// `room` is for how many different tokens there is room before anything is allocated.
    pub(super) fn new(window: usize, room: usize) -> Self {
        // One more than the window: a token comes in before one goes out.
        Self { window, counts: Vec::with_capacity(window.min(room) + 1), counted: 0 }
    }

    /// The sequence was cut to its first `len` positions, or what stands from there on has changed.
    pub(super) fn truncate(&mut self, len: usize) {
        if self.counted > len {
            self.counts.clear();
            self.counted = 0;
        }
    }

    /// Applies the penalties to the logits of the token that comes after `tokens`, the sequence from its beginning.
    pub(super) fn penalise(&mut self, tokens: &[Token], sampling: &Sampling, logits: &mut [f32]) {
        self.count(tokens);
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

    fn count(&mut self, tokens: &[Token]) {
        let position = tokens.len();
        let steps = position.saturating_sub(self.counted);
        if position < self.counted || steps >= self.window.min(Self::LEAP) {
            self.recount(&tokens[position.saturating_sub(self.window)..]);
        } else {
            for at in self.counted..position {
                self.enter(tokens[at]);
                if let Some(left) = at.checked_sub(self.window) {
                    self.leave(tokens[left]);
                }
            }
        }
        self.counted = position;
    }

    fn recount(&mut self, window: &[Token]) {
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
