//! Which texts are computed together.

/// No text.
const NONE: u32 = u32::MAX;

/// Texts by length, to be taken in passes: the longest first, and beside it the longest that still fit. Within 11/9 of the fewest
/// passes there can be, but for one (first-fit decreasing: Johnson 1973).
#[derive(Default)]
pub(super) struct Pack {
    /// Length → the first text of that length that is left.
    first: Vec<u32>,
    /// Text → the next one of its length.
    next: Vec<u32>,
}

impl Pack {
    /// Begins anew, with texts of these lengths.
    pub(super) fn load(&mut self, lengths: impl DoubleEndedIterator<Item = usize> + ExactSizeIterator) {
        self.first.clear();
        self.next.clear();
        self.next.resize(lengths.len(), NONE);
        for (text, length) in lengths.enumerate().rev() {
            if length >= self.first.len() {
                self.first.resize(length + 1, NONE);
            }
            self.next[text] = std::mem::replace(&mut self.first[length], u32::try_from(text).unwrap_or(NONE));
        }
    }

    /// Puts the texts of the next pass in place of what `pass` holds: at most `texts` of them, with at most `batch` tokens together
    /// unless one alone has more. `false` when none is left.
    pub(super) fn next_pass(&mut self, batch: usize, texts: usize, pass: &mut Vec<u32>) -> bool {
        pass.clear();
        while self.first.last() == Some(&NONE) {
            self.first.pop();
        }
        let Some(mut length) = self.first.len().checked_sub(1) else { return false };
        let mut room = batch.max(length);
        while pass.len() < texts {
            match self.first[length] {
                NONE if length == 0 => break,
                NONE => length -= 1,
                text => {
                    pass.push(text);
                    self.first[length] = self.next[text as usize];
                    room -= length;
                    length = length.min(room);
                }
            }
        }
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn passes(lengths: &[usize], batch: usize, texts: usize) -> Vec<Vec<u32>> {
        let (mut pack, mut pass, mut passes) = (Pack::default(), Vec::new(), Vec::new());
        pack.load(lengths.iter().copied());
        while pack.next_pass(batch, texts, &mut pass) {
            passes.push(pass.clone());
        }
        passes
    }

    #[test]
    fn passes_are_filled_and_texts_of_one_length_keep_their_order() {
        assert_eq!(passes(&[3, 5, 2, 5, 7, 2], 8, 9), [vec![4], vec![1, 0], vec![3, 2], vec![5]]);
        assert_eq!(passes(&[4, 4, 4, 4], 8, 9), [[0, 1], [2, 3]]);
    }

    #[test]
    fn a_text_longer_than_a_batch_is_alone() {
        assert_eq!(passes(&[1, 20, 1], 8, 9), [vec![1], vec![0, 2]]);
    }

    #[test]
    fn no_pass_has_too_many_texts() {
        assert_eq!(passes(&[1; 5], 8, 2), [vec![0, 1], vec![2, 3], vec![4]]);
        assert_eq!(passes(&[], 8, 2), [[0; 0]; 0]);
    }

    #[test]
    fn every_text_is_in_one_pass_also_when_lengths_are_of_all_kinds() {
        let lengths: Vec<usize> = (0..500_usize).map(|n| n * n % 61 + 1).collect();
        let passes = passes(&lengths, 64, 16);
        let tokens = |pass: &Vec<u32>| pass.iter().map(|&text| lengths[text as usize]).sum::<usize>();
        assert!(passes.iter().all(|pass| tokens(pass) <= 64 && pass.len() <= 16));
        let mut texts = passes.concat();
        texts.sort_unstable();
        assert!(texts.into_iter().eq(0..500));
        let fewest = lengths.iter().sum::<usize>().div_ceil(64);
        assert!(passes.len() <= fewest + fewest / 10, "{} passes, {fewest} would be full", passes.len());
    }
}
