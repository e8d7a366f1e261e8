//! The steps that leave tokens out, in their order.

use super::{
    draw::Peaked,
    row::deviation,
    truncation::{self, Candidate},
};
use crate::Sampling;

/// The tokens that may still be drawn.
pub(super) struct Chain<'r> {
    logits: Peaked<'r>,
    list: &'r mut Vec<Candidate>,
    /// Memory for the one step that needs a second list.
    spare: &'r mut Vec<Candidate>,
    /// Whether they are those in the list, and not all of the row.
    is_listed: bool,
    /// Whether they are the best of the row, with none missing among them.
    is_prefix: bool,
    /// The largest of their logits.
    peak: f32,
}

/// Where the tokens are that may be drawn.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Left {
    /// In the row: all of it.
    All,
    /// In the list.
    Listed {
        /// The largest of their logits.
        peak: f32,
        /// Whether they are the best of the row, with none missing among them.
        is_prefix: bool,
    },
}

impl<'r> Chain<'r> {
    pub(super) fn new(logits: Peaked<'r>, list: &'r mut Vec<Candidate>, spare: &'r mut Vec<Candidate>) -> Self {
        make_room(list, logits.row.len());
        Self { logits, list, spare, is_listed: false, is_prefix: true, peak: logits.peak }
    }

    /// All steps, each on what the one before has left. `chance`, in `[0, 1)`, decides about XTC.
    pub(super) fn run(mut self, sampling: &Sampling, chance: f32) -> Left {
        self.top_n_sigma(sampling.top_n_sigma);
        self.top_k(sampling.top_k);
        self.typical(sampling.typical_p);
        self.top_p(sampling.top_p, sampling.min_p);
        self.min_p(sampling.min_p);
        if chance < sampling.xtc_probability {
            self.xtc(sampling.xtc_threshold);
        }
        // How undecided the model is, and which token is the best where that need not be the best of the row, is told of a list.
        if sampling.dynatemp_range > 0.0 || sampling.temperature == 0.0 {
            self.list();
        }
        let Self { is_listed, peak, is_prefix, .. } = self;
        if is_listed { Left::Listed { peak, is_prefix } } else { Left::All }
    }

    fn top_n_sigma(&mut self, deviations: f32) {
        if deviations > 0.0 {
            let least = self.peak - deviations * deviation(self.logits.row, self.peak);
            self.keep_from(least);
        }
    }

    fn top_k(&mut self, k: usize) {
        if k == 0 {
            return;
        }
        if self.is_listed {
            truncation::keep_best(self.list, k);
        } else if k < self.logits.row.len() {
            truncation::top_k(self.logits.row, k, self.list);
            self.is_listed = true;
        }
    }

    fn typical(&mut self, p: f32) {
        if p < 1.0 {
            self.list();
            make_room(self.spare, self.logits.row.len());
            truncation::typical(self.list, self.spare, self.logits.row, self.peak, p);
            self.is_prefix = false;
            self.find_peak();
        }
    }

    /// `min_p` is that of the next step: what it will not keep need not be listed.
    fn top_p(&mut self, p: f32, min_p: f32) {
        if p >= 1.0 {
            return;
        }
        let sum = if self.is_listed {
            truncation::sum(self.list, self.peak)
        } else {
            self.keep_from((self.peak + min_p.ln()).max(self.peak - reach(self.logits.row.len(), p)));
            self.logits.sum()
        };
        truncation::top_mass(self.list, self.peak, sum * f64::from(p));
    }

    fn min_p(&mut self, p: f32) {
        if p > 0.0 {
            self.keep_from(self.peak + p.ln());
        }
    }

    fn xtc(&mut self, threshold: f32) {
        self.list();
        truncation::exclude_top(self.list, self.peak, threshold);
        self.is_prefix = false;
        self.find_peak();
    }

    fn list(&mut self) {
        if !self.is_listed {
            self.keep_from(f32::NEG_INFINITY);
        }
    }

    /// Keeps the tokens whose logit is at least `least`.
    fn keep_from(&mut self, least: f32) {
        if self.is_listed {
            truncation::keep_at_least(self.list, least);
        } else {
            truncation::at_least(self.logits.row, least, self.list);
            self.is_listed = true;
        }
    }

    fn find_peak(&mut self) {
        // There is always one left; were there none, the draw would say so.
        self.peak = self.list.iter().max().map_or(self.peak, |best| best.logit());
    }
}

/// Empties a list and makes room for all of a row at once, so that no later draw allocates. Of memory, as much is used as tokens
/// are ever in it.
fn make_room(list: &mut Vec<Candidate>, tokens: usize) {
    list.clear();
    list.reserve(tokens);
}

/// How far below the peak a token of the nucleus can be: were all `vocab` tokens further down, together they would not
/// make up the 1 − p of the mass that is left out.
fn reach(vocab: usize, top_p: f32) -> f32 {
    (vocab as f32 / (1.0 - top_p)).ln()
}
