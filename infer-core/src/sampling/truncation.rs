//! What each step keeps.
//!
//! Tokens have one order, the most probable first, and most steps keep a prefix of it. So none needs the whole row sorted:
//! they find where they cut by partial selection.

use super::row::exp;

/// A token and its logit as one number: the better candidate is the greater. Of equal logits the lower id is better.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Candidate(u64);

impl Candidate {
    pub(super) fn new(id: u32, logit: f32) -> Self {
        // Adding 0 makes one zero of the two; then the bits of an f32 are in the order of the numbers, the negative
        // ones backwards.
        let bits = (logit + 0.0).to_bits();
        let ordered = if bits >> 31 == 0 { bits | 1 << 31 } else { !bits };
        Self(u64::from(ordered) << 32 | u64::from(!id))
    }

    pub(super) fn id(self) -> u32 {
        !(self.0 as u32)
    }

    pub(super) fn logit(self) -> f32 {
        let ordered = (self.0 >> 32) as u32;
        f32::from_bits(if ordered >> 31 == 0 { !ordered } else { ordered ^ 1 << 31 })
    }
}

/// Tokens are passed over in groups of this many, where none of them counts.
const GROUP: usize = 32;

/// Puts the tokens whose logit is at least `least` into `list`, by id; never those of negative infinity.
pub(super) fn at_least(row: &[f32], least: f32, list: &mut Vec<Candidate>) {
    let counts = |logit: f32| logit >= least && logit > f32::NEG_INFINITY;
    list.clear();
    for (first, group) in (0..).step_by(GROUP).zip(row.chunks(GROUP)) {
        if has_any(group, counts) {
            let counted = (first..).zip(group).filter(|&(_, &logit)| counts(logit));
            list.extend(counted.map(|(id, &logit)| Candidate::new(id, logit)));
        }
    }
}

/// Puts the `k` best tokens into `list`, in no order; never those of negative infinity.
pub(super) fn top_k(row: &[f32], k: usize, list: &mut Vec<Candidate>) {
    /// Room for candidates beyond k: the more, the less often they are thinned out.
    const SPARE: usize = 512;
    let full = k.saturating_add(k.max(SPARE));
    // Equal to the k-th best so far does not count: ids only rise.
    let mut least = f32::NEG_INFINITY;
    list.clear();
    for (first, group) in (0..).step_by(GROUP).zip(row.chunks(GROUP)) {
        if !has_any(group, |logit| logit > least) {
            continue;
        }
        for (id, &logit) in (first..).zip(group) {
            if logit > least {
                list.push(Candidate::new(id, logit));
            }
            if list.len() == full {
                keep_best(list, k);
                least = list[k - 1].logit();
            }
        }
    }
    keep_best(list, k);
}

/// Written without a way out early, so that it becomes vector code.
fn has_any(group: &[f32], counts: impl Fn(f32) -> bool) -> bool {
    group.iter().fold(false, |any, &logit| any | counts(logit))
}

/// Keeps the `k` best, the worst of them last, the others in no order.
pub(super) fn keep_best(list: &mut Vec<Candidate>, k: usize) {
    if k < list.len() {
        list.select_nth_unstable_by(k - 1, |a, b| b.cmp(a));
        list.truncate(k);
    }
}

/// exp(logit − peak) of a candidate.
fn mass(candidate: Candidate, peak: f32) -> f64 {
    f64::from(exp(candidate.logit() - peak))
}

/// Σ exp(logit − peak).
pub(super) fn sum(list: &[Candidate], peak: f32) -> f64 {
    list.iter().map(|&candidate| mass(candidate, peak)).sum()
}

/// The sum, and the expectation of logit − peak.
pub(super) fn moments(list: &[Candidate], peak: f32) -> (f64, f64) {
    let (mut sum, mut moment) = (0.0, 0.0);
    for candidate in list {
        let below = candidate.logit() - peak;
        let mass = f64::from(exp(below));
        sum += mass;
        // A difference that overflows has no mass, and the product would not be a number.
        moment += if mass > 0.0 { mass * f64::from(below) } else { 0.0 };
    }
    (sum, moment / sum)
}

/// Keeps the fewest best candidates whose masses, exp(logit − peak), add up to `target`, in no order.
pub(super) fn top_mass(list: &mut Vec<Candidate>, peak: f32, target: f64) {
    keep_fewest(list, |candidate| mass(candidate, peak), |sum| sum >= target);
}

/// Keeps the fewest best candidates whose masses together are enough, in no order; at least one.
///
/// It looks for the cut by halving, after a few small steps for the usual case that it is near the top: each half is
/// selected, not sorted, and added up.
fn keep_fewest(list: &mut Vec<Candidate>, mass: impl Fn(Candidate) -> f64, is_enough: impl Fn(f64) -> bool) {
    const FIRST: usize = 64;
    const GROWTH: usize = 64;
    // The first `from` are the best ones and too few; the first `to` are the best ones and enough, or all there are.
    let (mut from, mut to, mut before, mut step) = (0, list.len(), 0.0, FIRST);
    while to - from > 1 {
        let half = step.min((to - from) / 2);
        step = step.saturating_mul(GROWTH);
        let (better, _, _) = list[from..to].select_nth_unstable_by(half, |a, b| b.cmp(a));
        let sum = before + better.iter().map(|&candidate| mass(candidate)).sum::<f64>();
        if is_enough(sum) {
            to = from + half;
        } else {
            (from, before) = (from + half, sum);
        }
    }
    list.truncate(to);
}

/// Keeps the fewest candidates that together have more than the share `p`, those first whose logit is nearest to the expected
/// one: as far as one's information, −ln p, is from the expected information, so far its logit is from the expected logit. Those
/// that stay keep their places.
pub(super) fn typical(list: &mut Vec<Candidate>, nearest: &mut Vec<Candidate>, row: &[f32], peak: f32, p: f32) {
    let (sum, expected) = moments(list, peak);
    let by_nearness = |candidate: Candidate| {
        let distance = (f64::from(candidate.logit() - peak) - expected).abs();
        Candidate::new(candidate.id(), -distance as f32)
    };
    nearest.clear();
    nearest.extend(list.iter().map(|&candidate| by_nearness(candidate)));
    let target = sum * f64::from(p);
    keep_fewest(nearest, |near| f64::from(exp(row[near.id() as usize] - peak)), |sum| sum > target);
    if let Some(furthest) = nearest.iter().min().copied() {
        list.retain(|&candidate| by_nearness(candidate) >= furthest);
    }
}

/// Of the candidates whose share is at least `threshold` keeps the worst; the others stay.
pub(super) fn exclude_top(list: &mut Vec<Candidate>, peak: f32, threshold: f32) {
    let least = sum(list, peak) * f64::from(threshold);
    if let Some(worst) = list.iter().copied().filter(|&candidate| mass(candidate, peak) >= least).min() {
        list.retain(|&candidate| candidate <= worst);
    }
}

/// Keeps the candidates whose logit is at least `least`.
pub(super) fn keep_at_least(list: &mut Vec<Candidate>, least: f32) {
    list.retain(|candidate| candidate.logit() >= least);
}

/// Puts a list in the order of ids. `is_prefix` says that all the row has down to its worst are in it.
pub(super) fn sort_by_id(row: &[f32], list: &mut Vec<Candidate>, is_prefix: bool) {
    if list.is_sorted_by_key(|candidate| candidate.id()) {
        return;
    }
    // A large part of the row is found again faster than it is sorted: its worst candidate tells the rest.
    if is_prefix
        && list.len() > row.len() / 16
        && let Some(worst) = list.iter().min().copied()
    {
        let candidates = (0..).zip(row).map(|(id, &logit)| Candidate::new(id, logit));
        list.clear();
        list.extend(candidates.filter(|&candidate| candidate >= worst));
    } else {
        list.sort_unstable_by_key(|candidate| candidate.id());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Many equal logits, both zeros, negative infinity.
    fn row() -> impl Strategy<Value = Vec<f32>> {
        let logit = prop_oneof![
            4 => -20f32..20.0,
            4 => (-3i8..3).prop_map(f32::from),
            1 => Just(-0.0),
            1 => Just(f32::NEG_INFINITY),
        ];
        prop::collection::vec(logit, 1..1500)
    }

    /// All tokens that may be drawn at all, the best first, by a plain sort.
    fn sorted(row: &[f32]) -> Vec<(u32, f32)> {
        let mut all: Vec<_> = (0..).zip(row.iter().copied()).filter(|&(_, logit)| logit > f32::NEG_INFINITY).collect();
        all.sort_by(|a, b| b.1.partial_cmp(&a.1).unwrap().then(a.0.cmp(&b.0)));
        all
    }

    fn ids(list: &[Candidate]) -> Vec<u32> {
        let mut list = list.to_vec();
        list.sort_by(|a, b| b.cmp(a));
        list.iter().map(|candidate| candidate.id()).collect()
    }

    fn best(sorted: &[(u32, f32)], count: usize) -> Vec<u32> {
        sorted.iter().take(count).map(|&(id, _)| id).collect()
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(100))]

        #[test]
        fn a_candidate_is_its_token_and_logit(id in any::<u32>(), logit in any::<f32>()) {
            prop_assume!(!logit.is_nan());
            let candidate = Candidate::new(id, logit);
            prop_assert_eq!(candidate.id(), id);
            prop_assert_eq!(candidate.logit(), logit);
        }

        #[test]
        fn top_k_keeps_the_k_best(row in row(), k in 1usize..700) {
            let mut list = Vec::new();
            top_k(&row, k, &mut list);
            prop_assert_eq!(ids(&list), best(&sorted(&row), k));
        }

        #[test]
        fn at_least_keeps_a_prefix_by_id(row in row(), least in prop_oneof![-20f32..20.0, Just(0.0), Just(f32::NEG_INFINITY)]) {
            let (sorted, mut list) = (sorted(&row), Vec::new());
            at_least(&row, least, &mut list);
            prop_assert!(list.is_sorted_by_key(|candidate| candidate.id()));
            let count = sorted.iter().filter(|&&(_, logit)| logit >= least).count();
            prop_assert_eq!(ids(&list), best(&sorted, count));
        }

        #[test]
        fn top_mass_keeps_the_fewest_that_suffice(row in row(), share in prop_oneof![0f64..=1.0, Just(0.0), Just(1.0)]) {
            let (sorted, mut list) = (sorted(&row), Vec::new());
            prop_assume!(!sorted.is_empty());
            let peak = sorted[0].1;
            let masses: Vec<f64> = sorted.iter().map(|&(_, logit)| f64::from(exp(logit - peak))).collect();
            let target = share * masses.iter().sum::<f64>();
            at_least(&row, f32::NEG_INFINITY, &mut list);
            top_mass(&mut list, peak, target);
            // Sums in another order differ in the last bits, and with them the cut where it is a hair's breadth away.
            let kept: f64 = masses[..list.len()].iter().sum();
            let slack = 1e-12 * kept;
            prop_assert_eq!(ids(&list), best(&sorted, list.len()));
            prop_assert!(kept >= target - slack);
            prop_assert!(list.len() == 1 || kept - masses[list.len() - 1] < target + slack);
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(100))]

        #[test]
        fn typical_keeps_the_fewest_nearest_in_place(row in row(), p in prop_oneof![0f32..1.0, Just(0.0)]) {
            let (mut list, mut spare) = (Vec::new(), Vec::new());
            at_least(&row, f32::NEG_INFINITY, &mut list);
            prop_assume!(!list.is_empty());
            let peak = list.iter().max().unwrap().logit();
            let mass = |logit: f32| f64::from(exp(logit - peak));
            let (all, expected) = moments(&list, peak);
            // The rest by a plain sort.
            let distance = |c: Candidate| (f64::from(c.logit() - peak) - expected).abs() as f32;
            let mut nearest = list.clone();
            nearest.sort_by(|&a, &b| distance(a).total_cmp(&distance(b)).then(a.id().cmp(&b.id())));
            typical(&mut list, &mut spare, &row, peak, p);
            let slack = 1e-12 * all;
            let kept: f64 = nearest[..list.len()].iter().map(|c| mass(c.logit())).sum();
            let last = mass(nearest[list.len() - 1].logit());
            prop_assert!(list.len() == nearest.len() || kept > all * f64::from(p) - slack);
            prop_assert!(list.len() == 1 || kept - last <= all * f64::from(p) + slack);
            let mut expected: Vec<u32> = nearest[..list.len()].iter().map(|c| c.id()).collect();
            expected.sort_unstable();
            prop_assert_eq!(list.iter().map(|c| c.id()).collect::<Vec<_>>(), expected);
        }

        #[test]
        fn ids_are_in_order_and_the_same(row in row(), k in prop_oneof![1usize..2000, 1usize..20]) {
            let mut list = Vec::new();
            top_k(&row, k, &mut list);
            let mut expected: Vec<u32> = ids(&list);
            expected.sort_unstable();
            let mut some: Vec<_> = list.iter().copied().skip(1).step_by(2).collect();
            sort_by_id(&row, &mut list, true);
            prop_assert_eq!(list.iter().map(|candidate| candidate.id()).collect::<Vec<_>>(), &expected[..]);
            // Where some are missing.
            expected.retain(|&id| some.iter().any(|candidate| candidate.id() == id));
            sort_by_id(&row, &mut some, false);
            prop_assert_eq!(some.iter().map(|candidate| candidate.id()).collect::<Vec<_>>(), expected);
        }
    }

    #[test]
    fn of_the_obvious_choices_the_worst_stays() {
        let probabilities = [0.05f32, 0.4, 0.1, 0.2, 0.2, 0.05];
        let row = probabilities.map(f32::ln);
        for (threshold, left) in [
            (0.09, &[2, 0, 5][..]),
            (0.11, &[4, 2, 0, 5]),
            (0.3, &[1, 3, 4, 2, 0, 5]),
            (0.6, &[1, 3, 4, 2, 0, 5]),
            (0.0, &[5]),
        ] {
            let mut list = Vec::new();
            at_least(&row, f32::NEG_INFINITY, &mut list);
            exclude_top(&mut list, row[1], threshold);
            assert_eq!(ids(&list), left, "{threshold}");
        }
    }

    #[test]
    fn nothing_to_keep() {
        let mut list = vec![Candidate::new(1, 1.0)];
        top_k(&[f32::NEG_INFINITY; 3], 2, &mut list);
        assert!(list.is_empty());
        top_mass(&mut list, 0.0, 0.5);
        at_least(&[], 0.0, &mut list);
        assert!(list.is_empty());
        exclude_top(&mut list, 0.0, 0.1);
        typical(&mut list, &mut Vec::new(), &[], 0.0, 0.5);
        assert!(list.is_empty());
    }
}
