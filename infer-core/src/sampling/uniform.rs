/// The random number of a position: in `[0, 1)`, a multiple of 2⁻²⁴, and a function of nothing but its arguments.
///
/// It is the first word `x` of the counter-based generator Philox4x32-10 with the seed as key and the position as
/// counter, both little end first, the counter's upper two words 0; `u = (x >> 8) × 2⁻²⁴`. Every position of every seed
/// can be had at once and on any device.
///
/// Source: J. Salmon, M. Moraes, R. Dror, D. Shaw, *Parallel random numbers: as easy as 1, 2, 3*, SC 2011.
///
/// ```
/// use infer_core::sampling::uniform;
///
/// assert_eq!(uniform(7, 100), uniform(7, 100));
/// assert_ne!(uniform(7, 100), uniform(7, 101));
/// assert!((0.0..1.0).contains(&uniform(7, 100)));
/// ```
#[must_use]
pub fn uniform(seed: u64, position: usize) -> f32 {
    Chances::of(seed, position).token
}

/// The random numbers of a position, each of a stream of its own and in `[0, 1)`: the first words of its block.
#[derive(Clone, Copy, Debug)]
pub(super) struct Chances {
    /// Which token is drawn: [`uniform`].
    pub(super) token: f32,
    /// Whether XTC acts.
    pub(super) xtc: f32,
}

impl Chances {
    pub(super) fn of(seed: u64, position: usize) -> Self {
        let [token, xtc, ..] = philox4x32(halves(position as u64, 0), [seed as u32, (seed >> 32) as u32]);
        // 24 bits: every value is exact in f32, and the largest is below 1.
        let share = |word: u32| (word >> 8) as f32 * (1.0 / 16_777_216.0);
        Self { token: share(token), xtc: share(xtc) }
    }
}

fn halves(low: u64, high: u64) -> [u32; 4] {
    [low as u32, (low >> 32) as u32, high as u32, (high >> 32) as u32]
}

/// Ten rounds of Philox-4×32; the constants are the paper's.
fn philox4x32(mut counter: [u32; 4], mut key: [u32; 2]) -> [u32; 4] {
    for _ in 0..10 {
        let even = u64::from(counter[0]) * 0xD251_1F53;
        let odd = u64::from(counter[2]) * 0xCD9E_8D57;
        counter = [
            (odd >> 32) as u32 ^ counter[1] ^ key[0],
            odd as u32,
            (even >> 32) as u32 ^ counter[3] ^ key[1],
            even as u32,
        ];
        key = [key[0].wrapping_add(0x9E37_79B9), key[1].wrapping_add(0xBB67_AE85)];
    }
    counter
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The known answers that come with the authors' own implementation, Random123.
    #[test]
    fn philox_gives_the_published_answers() {
        assert_eq!(philox4x32([0; 4], [0; 2]), [0x6627_e8d5, 0xe169_c58d, 0xbc57_ac4c, 0x9b00_dbd8]);
        assert_eq!(philox4x32([u32::MAX; 4], [u32::MAX; 2]), [0x408f_276d, 0x41c8_3b0e, 0xa20b_c7c6, 0x6d54_51fd]);
        assert_eq!(
            philox4x32([0x243f_6a88, 0x85a3_08d3, 0x1319_8a2e, 0x0370_7344], [0xa409_3822, 0x299f_31d0]),
            [0xd16c_fe09, 0x94fd_cceb, 0x5001_e420, 0x2412_6ea1]
        );
    }

    #[test]
    fn is_never_one() {
        let largest = (u32::MAX >> 8) as f32 * (1.0 / 16_777_216.0);
        assert!(largest < 1.0);
        assert_eq!(largest, 1.0 - 1.0 / 16_777_216.0);
    }

    /// Sixteen equal bins; the statistic has 15 degrees of freedom and exceeds 44.3 once in 10,000 times by chance.
    fn chi_square(draws: impl Iterator<Item = f32>) -> f64 {
        let mut bins = [0u32; 16];
        for u in draws {
            bins[(u * 16.0) as usize] += 1;
        }
        let expected = f64::from(bins.iter().sum::<u32>()) / 16.0;
        bins.iter().map(|&bin| (f64::from(bin) - expected).powi(2) / expected).sum()
    }

    #[test]
    fn is_even_along_positions_and_along_seeds() {
        for seed in [0, 1, 2, u64::MAX, 1 << 32] {
            assert!(chi_square((0..100_000).map(|position| uniform(seed, position))) < 44.3, "seed {seed}");
        }
        for seed in [0, 1, u64::MAX] {
            assert!(chi_square((0..100_000).map(|position| Chances::of(seed, position).xtc)) < 44.3, "seed {seed}");
        }
        for position in [0, 1, 2, 4096] {
            assert!(chi_square((0..100_000).map(|seed| uniform(seed, position))) < 44.3, "position {position}");
        }
    }

    /// Pairs in a 4 × 4 grid: neighbours in position and neighbours in seed must not know of each other.
    #[test]
    fn neighbours_are_independent() {
        let cell = |a: f32, b: f32| ((a * 4.0).floor() * 4.0 + (b * 4.0).floor()) / 16.0;
        let along = (0..100_000).map(|position| cell(uniform(42, position), uniform(42, position + 1)));
        assert!(chi_square(along) < 44.3);
        let across = (0..100_000).map(|seed| cell(uniform(seed, 9), uniform(seed + 1, 9)));
        assert!(chi_square(across) < 44.3);
        // The numbers of a position must not know of each other either.
        let both = (0..100_000).map(|position| Chances::of(42, position)).map(|both| cell(both.token, both.xtc));
        assert!(chi_square(both) < 44.3);
        // A seed and a position must not be interchangeable.
        let swapped = (0..100_000).map(|n| cell(uniform(n, 17), uniform(17, n as usize)));
        assert!(chi_square(swapped) < 44.3);
    }
}
