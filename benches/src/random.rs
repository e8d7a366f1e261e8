/// Numbers that look random (SplitMix64), the same ones at every run.
#[derive(Clone, Debug)]
pub struct Random(u64);

impl Random {
    /// Those that this number stands for.
    pub fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// The next one, of all there are.
    pub fn any(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// The next one, from 0 on and less than `bound`.
    ///
    /// # Panics
    /// With a bound of 0.
    pub fn below(&mut self, bound: u64) -> u64 {
        self.any() % bound
    }
}
