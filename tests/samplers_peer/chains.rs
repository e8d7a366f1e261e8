//! Whole chains: any steps, any parameters.

use crate::{
    LONG, SHORT,
    compare::Left,
    peer, plain,
    rows::{self, Row},
    theirs,
};
use infer::{DryBreakers, Sampling, sampling::uniform};

/// Numbers that are the same in every run.
struct Choices {
    seed: u64,
    next: usize,
}

impl Choices {
    fn share(&mut self) -> f32 {
        self.next += 1;
        uniform(self.seed, self.next)
    }

    fn within(&mut self, least: f32, most: f32) -> f32 {
        least + (most - least) * self.share()
    }

    /// Half of the time.
    fn maybe(&mut self) -> bool {
        self.share() < 0.5
    }
}

/// The chain of that number for a row, `top_k` at most `most`.
fn chain(seed: u64, row: &Row, most: usize, breakers: &DryBreakers) -> Sampling {
    let mut choices = Choices { seed, next: 0 };
    let c = &mut choices;
    let mut s = plain().with_seed(seed);
    if c.maybe() {
        s = s.with_repetition_penalty(c.within(0.8, 1.5)).with_penalty_window(c.within(0.0, 150.0) as usize);
        s = s.with_frequency_penalty(c.within(-0.2, 0.5)).with_presence_penalty(c.within(-0.2, 0.5));
    }
    if c.maybe() {
        s = s.with_dry_multiplier(c.within(0.1, 2.0)).with_dry_base(c.within(1.0, 2.0));
        s = s.with_dry_allowed_length(c.within(0.0, 5.0) as usize).with_dry_window(c.within(0.0, 150.0) as usize);
        s = s.with_dry_breakers(breakers.clone());
    }
    let mut k = 1 + c.within(0.0, most as f32) as usize;
    let mut has_k = most < row.logits.len() || c.maybe();
    if c.maybe() {
        s = s.with_top_n_sigma(c.within(0.3, 4.0));
        // llama.cpp only marks what top-n-sigma leaves out. Where the marked ones are not cut off, typical sampling there
        // multiplies 0 by infinity, and the dynamic temperature counts them as tokens that are left.
        (k, has_k) = (k.min(Left::ours(&s, row).tokens().count()), true);
    }
    if has_k {
        s = s.with_top_k(k);
    }
    if c.maybe() {
        s = s.with_typical_p(c.within(0.05, 0.999));
    }
    if c.maybe() {
        s = s.with_top_p(c.within(0.05, 0.999));
    }
    if c.maybe() {
        s = s.with_min_p(c.within(0.0001, 0.3));
    }
    if c.maybe() {
        s = s.with_xtc(1.0, c.within(0.0, 0.3));
    }
    s = s.with_temperature(c.within(0.2, 2.0));
    if c.maybe() { s.with_dynatemp(c.within(0.05, 1.5), c.within(0.3, 2.5)) } else { s }
}

/// Whether one of its limits would have another outcome if it were lower or higher by the row's rounding: where that is so, either
/// answer is right.
fn is_undecided(sampling: &Sampling, row: &Row) -> bool {
    let ours = Left::ours(sampling, row);
    let rounding = row.rounding() as f32;
    [-rounding, rounding].into_iter().any(|by| {
        let moved = |limit: f32| (limit * (1.0 + by)).min(1.0);
        let s = || sampling.clone();
        let mut others = vec![s().with_top_n_sigma(sampling.top_n_sigma * (1.0 + by))];
        if sampling.typical_p < 1.0 {
            others.push(s().with_typical_p((sampling.typical_p + 4.0 * by).clamp(0.0, 1.0)));
        }
        if sampling.top_p < 1.0 {
            others.push(s().with_top_p(moved(sampling.top_p)));
        }
        others.push(s().with_min_p(moved(sampling.min_p)));
        others.push(s().with_xtc(sampling.xtc_probability, moved(sampling.xtc_threshold)));
        others.iter().any(|other| !Left::ours(other, row).has_the_tokens_of(&ours))
    })
}

#[test]
fn chains_over_small_rows_are_the_same() {
    let (mut peer, _) = peer();
    let (mut undecided, none) = (0, DryBreakers::default());
    for seed in 0..400 {
        let row = rows::random(500 + (seed as usize % 3) * 700, 0.5 + (seed % 7) as f32, seed);
        let sampling = chain(seed, &row, row.logits.len(), &none);
        if is_undecided(&sampling, &row) {
            undecided += 1;
            continue;
        }
        peer.row(&row.logits).unwrap();
        let same = Left::ours(&sampling, &row).check_same(&theirs(&mut peer, &sampling, &row, &[]));
        same.unwrap_or_else(|why| panic!("chain {seed}, {}: {sampling:?}: {why}", row.name));
    }
    assert!(undecided <= 8, "{undecided} of 400 chains have a limit that rounding decides");
}

#[test]
fn chains_over_real_rows_are_the_same() {
    let (mut peer, model) = peer();
    let breakers = DryBreakers::of_texts(DryBreakers::COMMON, &*model.tokenizer()).unwrap();
    let mut undecided = 0;
    for row in rows::real(&*model, &[SHORT, LONG].concat()) {
        peer.row(&row.logits).unwrap();
        for seed in 1000..1020 {
            let sampling = chain(seed, &row, 1000, &breakers);
            if is_undecided(&sampling, &row) {
                undecided += 1;
                continue;
            }
            let theirs = theirs(&mut peer, &sampling, &row, &DryBreakers::COMMON);
            let same = Left::ours(&sampling, &row).check_same(&theirs);
            same.unwrap_or_else(|why| panic!("chain {seed}, {}: {sampling:?}: {why}", row.name));
        }
    }
    assert!(undecided <= 8, "{undecided} of 40 chains have a limit that rounding decides");
}
