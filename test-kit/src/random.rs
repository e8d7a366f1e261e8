/// SplitMix64: the same numbers for the same seed, for ever.
#[derive(Clone, Debug)]
pub struct Random(pub u64);

impl Random {
    /// Any number of 64 bits.
    #[expect(clippy::should_implement_trait, reason = "there is no end to it")]
    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// A number below `end`.
    ///
    /// # Panics
    /// When `end` is 0.
    pub fn below(&mut self, end: u64) -> u64 {
        self.next() % end
    }

    /// A number below `end`, to count or index with.
    ///
    /// # Panics
    /// When `end` is 0.
    pub fn index(&mut self, end: usize) -> usize {
        self.below(end as u64) as usize
    }

    /// True once in so many times.
    ///
    /// # Panics
    /// When `times` is 0.
    pub fn one_in(&mut self, times: usize) -> bool {
        self.index(times) == 0
    }

    /// One of these.
    ///
    /// # Panics
    /// When there are none.
    pub fn pick<T: Clone>(&mut self, all: &[T]) -> T {
        all[self.index(all.len())].clone()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The numbers of the reference implementation (S. Vigna, *splitmix64.c*), for the seed 1234567.
    #[test]
    fn the_numbers_are_splitmix64s() {
        let mut random = Random(1_234_567);
        let numbers = [random.next(), random.next(), random.next()];
        assert_eq!(numbers, [6_457_827_717_110_365_317, 3_203_168_211_198_807_973, 9_817_491_932_198_370_423]);
    }
    #[test]
    fn what_is_picked_is_there_and_nothing_is_left_out() {
        let (mut random, mut times) = (Random(1), [0; 3]);
        for _ in 0..300 {
            times[random.pick(&[0_usize, 1, 2])] += 1;
        }
        assert!(times.iter().all(|times| (50..150).contains(times)), "{times:?}");
        let hits = (0..300).filter(|_| random.one_in(3)).count();
        assert!((50..150).contains(&hits), "{hits}");
    }
}
