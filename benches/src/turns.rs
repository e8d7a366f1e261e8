//! Contestants that take turns, step by step.

use std::time::{Duration, Instant};

/// How long each step of each of `N` contestants took.
#[derive(Clone, Debug)]
pub struct Times<const N: usize> {
    seconds: [Vec<f64>; N],
}

/// Runs `rounds` rounds; in each, every contestant (by its number, from 0) takes one step.
///
/// The order changes from round to round so that, within `N` × 2 rounds, each stands in each place, and before and behind
/// each other one, equally often: what one leaves in the caches, or the threads it leaves spinning, falls on all alike.
///
/// # Panics
/// With no rounds: there is nothing to take a mean of.
pub fn take<const N: usize>(rounds: usize, mut step: impl FnMut(usize, usize) -> Duration) -> Times<N> {
    assert!(rounds > 0, "no rounds");
    let mut seconds = std::array::from_fn(|_| Vec::with_capacity(rounds));
    for round in 0..rounds {
        for place in 0..N {
            let who = order::<N>(round, place);
            seconds[who].push(step(who, round).as_secs_f64());
        }
    }
    Times { seconds }
}

/// Who stands in `place` in this round: forwards, backwards, then each beginning with the next one.
fn order<const N: usize>(round: usize, place: usize) -> usize {
    let (turn, backwards) = (round / 2 % N, round % 2 == 1);
    let place = if backwards { N - 1 - place } else { place };
    (place + turn) % N
}

/// How long `work` takes, and what it returns.
pub fn timed<R>(work: impl FnOnce() -> R) -> (Duration, R) {
    let start = Instant::now();
    let result = work();
    (start.elapsed(), result)
}

impl<const N: usize> Times<N> {
    /// The rounds of several calls of [`take`] as those of one.
    pub fn joined(all: impl IntoIterator<Item = Self>) -> Self {
        let mut seconds = std::array::from_fn(|_| Vec::new());
        for times in all {
            for (joined, more) in seconds.iter_mut().zip(times.seconds) {
                joined.extend(more);
            }
        }
        Self { seconds }
    }

    /// How many rounds there were.
    pub fn rounds(&self) -> usize {
        self.seconds[0].len()
    }

    /// The mean of a contestant's steps, in seconds.
    pub fn mean(&self, who: usize) -> f64 {
        self.seconds[who].iter().sum::<f64>() / self.rounds() as f64
    }

    /// The shortest of a contestant's steps, in seconds: what it takes where nothing else comes between.
    pub fn best(&self, who: usize) -> f64 {
        self.seconds[who].iter().copied().fold(f64::INFINITY, f64::min)
    }

    /// The median of a contestant's steps, in seconds: deaf to the odd step that something else delayed.
    pub fn median(&self, who: usize) -> f64 {
        let mut sorted = self.seconds[who].clone();
        sorted.sort_by(f64::total_cmp);
        let middle = sorted.len() / 2;
        if sorted.len() % 2 == 1 { sorted[middle] } else { f64::midpoint(sorted[middle - 1], sorted[middle]) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn everyone_stands_everywhere_equally_often() {
        let mut places = [[0; 3]; 3];
        let mut behind = [[0; 3]; 3];
        for round in 0..6 {
            let order: Vec<usize> = (0..3).map(|place| order::<3>(round, place)).collect();
            for (place, &who) in order.iter().enumerate() {
                places[who][place] += 1;
            }
            for pair in order.windows(2) {
                behind[pair[1]][pair[0]] += 1;
            }
        }
        assert_eq!(places, [[2; 3]; 3]);
        assert_eq!(behind, [[0, 2, 2], [2, 0, 2], [2, 2, 0]]);
    }

    #[test]
    fn a_pair_alternates() {
        let first: Vec<usize> = (0..4).map(|round| order::<2>(round, 0)).collect();
        assert_eq!(first.iter().filter(|&&who| who == 0).count(), 2, "{first:?}");
    }

    #[test]
    fn a_mean_hears_the_odd_step_and_a_median_does_not() {
        let times = take::<2>(4, |who, round| {
            let slow = if who == 0 && round == 3 { 9 } else { 1 };
            Duration::from_secs(slow * (who as u64 + 1))
        });
        assert_eq!((times.mean(0), times.median(0), times.best(1)), (3.0, 1.0, 2.0));
        assert_eq!((times.mean(1), times.median(1), times.rounds()), (2.0, 2.0, 4));
        let joined = Times::joined([times.clone(), times]);
        assert_eq!((joined.mean(0), joined.rounds()), (3.0, 8));
        let odd = take::<1>(3, |_, round| Duration::from_secs(round as u64 * 10));
        assert_eq!(odd.median(0), 10.0);
    }
}
