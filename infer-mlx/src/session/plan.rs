//! Which tokens a step computes.

use std::ops::Range;

/// Tokens of an entry that are computed in one step.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Piece {
    pub(super) entry: usize,
    /// Which of the tokens that are fed for it.
    pub(super) range: Range<usize>,
}

/// Cuts entries with so many tokens into steps of at most `most`, each about as large as the others. In a step, pieces of one token come
/// first.
pub(super) fn steps(counts: &[usize], most: usize) -> Vec<Vec<Piece>> {
    let all: usize = counts.iter().sum();
    let size = all.div_ceil(all.div_ceil(most).max(1));
    // Short entries first: they are whole in the first step, and only the tail of the list is cut.
    let mut order: Vec<usize> = (0..counts.len()).collect();
    order.sort_by_key(|&entry| counts[entry]);
    let (mut steps, mut step, mut room) = (Vec::new(), Vec::new(), size);
    for entry in order {
        let mut from = 0;
        while from < counts[entry] {
            let to = counts[entry].min(from + room);
            step.push(Piece { entry, range: from..to });
            room -= to - from;
            from = to;
            if room == 0 {
                steps.push(std::mem::take(&mut step));
                room = size;
            }
        }
    }
    steps.extend((!step.is_empty()).then_some(step));
    for step in &mut steps {
        step.sort_by_key(|piece| piece.range.len() > 1);
    }
    steps
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cut(counts: &[usize], most: usize) -> Vec<Vec<(usize, Range<usize>)>> {
        let plain = |step: Vec<Piece>| step.into_iter().map(|piece| (piece.entry, piece.range)).collect();
        steps(counts, most).into_iter().map(plain).collect()
    }

    #[test]
    fn what_fits_is_one_step_with_single_tokens_first() {
        assert_eq!(cut(&[1, 1, 1], 8), [[(0, 0..1), (1, 0..1), (2, 0..1)]]);
        assert_eq!(cut(&[5, 1, 2, 1], 9), [[(1, 0..1), (3, 0..1), (2, 0..2), (0, 0..5)]]);
    }

    #[test]
    fn what_does_not_fit_is_cut_evenly() {
        assert_eq!(cut(&[9], 4), [[(0, 0..3)], [(0, 3..6)], [(0, 6..9)]]);
        assert_eq!(cut(&[7, 1], 4), [vec![(1, 0..1), (0, 0..3)], vec![(0, 3..7)]]);
        // What is left of a piece may be a single token.
        assert_eq!(cut(&[3, 4], 4), [vec![(1, 0..1), (0, 0..3)], vec![(1, 1..4)]]);
    }
}
