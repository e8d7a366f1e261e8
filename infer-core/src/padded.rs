use std::cmp::Reverse;

/// What a pass costs beside its tokens, in tokens: the weights are read from memory once a pass, and each operator is begun.
const PASS: u64 = 16;

/// What one of the [`PaddedPasses`] can take.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PassRoom {
    /// Tokens, padding included, unless one text alone has more.
    pub tokens: usize,
    /// Texts.
    pub texts: usize,
    /// Whether texts of different lengths can share a pass: the shorter ones are padded, which a model without a mask would take for text.
    pub is_masked: bool,
}

/// Which texts an encoder computes together, where those of a pass are the rows of a table: by length, cut into the passes that cost least in
/// all. Padding costs as much as text does, and a pass of its own costs too. For backends.
///
/// The pass that costs most is the first: passes that are computed side by side then end at about the same time, and memory that is not
/// enough is not enough at once.
#[derive(Debug, Default)]
pub struct PaddedPasses {
    /// The texts, the longest first.
    order: Vec<u32>,
    /// How many of them → what the cheapest way costs to compute so many.
    cost: Vec<u64>,
    /// How many of them → how many are computed before the last pass of that way.
    before: Vec<u32>,
    /// Where each pass begins and ends.
    cuts: Vec<(u32, u32)>,
}

impl PaddedPasses {
    /// Plans passes for texts of these lengths, each at least 1; there are fewer of them than 2^32.
    ///
    /// # Panics
    /// When there are more.
    pub fn plan(&mut self, lengths: impl Fn(usize) -> usize, count: usize, room: PassRoom) {
        self.order.clear();
        self.order.extend(0..number(count));
        // Stable: texts of one length keep their order.
        self.order.sort_by_key(|&text| Reverse(lengths(text as usize)));
        self.cost.clear();
        self.before.clear();
        self.cost.push(0);
        self.before.push(0);
        for end in 1..=count {
            let (cost, before) = self.cheapest(end, &lengths, room);
            self.cost.push(cost);
            self.before.push(before);
        }
        self.cuts.clear();
        let mut end = number(count);
        while end > 0 {
            let begin = self.before[end as usize];
            self.cuts.push((begin, end));
            end = begin;
        }
        let Self { order, cuts, .. } = self;
        let tokens =
            |begin: u32, end: u32| ((end - begin) as usize).saturating_mul(lengths(order[begin as usize] as usize));
        cuts.sort_unstable_by_key(|&(begin, end)| (Reverse(tokens(begin, end)), begin));
    }

    /// The cheapest way to compute the first `end` texts, and how many of them come before its last pass.
    fn cheapest(&self, end: usize, lengths: &impl Fn(usize) -> usize, room: PassRoom) -> (u64, u32) {
        let length = |place: usize| lengths(self.order[place] as usize);
        let mut best = (u64::MAX, 0);
        for begin in (end.saturating_sub(room.texts.max(1))..end).rev() {
            let (texts, longest) = (end - begin, length(begin));
            let tokens = texts.saturating_mul(longest);
            let fits = tokens <= room.tokens && (room.is_masked || longest == length(end - 1));
            if texts > 1 && !fits {
                // One that begins earlier has more texts, and none that is shorter.
                break;
            }
            let cost = self.cost[begin].saturating_add(PASS).saturating_add(tokens as u64);
            if cost < best.0 {
                best = (cost, number(begin));
            }
        }
        best
    }

    /// How many passes there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.cuts.len()
    }

    /// Whether there is no pass, since there are no texts.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.cuts.is_empty()
    }

    /// The texts of a pass, by their numbers, the longest first.
    ///
    /// # Panics
    /// When there is no such pass.
    #[must_use]
    pub fn pass(&self, pass: usize) -> &[u32] {
        let (begin, end) = self.cuts[pass];
        &self.order[begin as usize..end as usize]
    }
}

/// A number of texts, of which there are fewer than 2^32.
fn number(texts: usize) -> u32 {
    u32::try_from(texts).expect("the texts were counted")
}

#[cfg(test)]
mod tests {
    use super::*;

    const ROOM: PassRoom = PassRoom { tokens: 64, texts: 9, is_masked: true };

    fn passes(lengths: &[usize], room: PassRoom) -> Vec<Vec<u32>> {
        let mut pack = PaddedPasses::default();
        pack.plan(|text| lengths[text], lengths.len(), room);
        (0..pack.len()).map(|pass| pack.pass(pass).to_vec()).collect()
    }

    /// What passes cost in all.
    fn cost(passes: &[Vec<u32>], lengths: &[usize]) -> usize {
        let cost = |pass: &Vec<u32>| pass.len() * lengths[pass[0] as usize] + PASS as usize;
        passes.iter().map(cost).sum()
    }

    #[test]
    fn texts_of_about_one_length_share_a_pass_and_keep_their_order() {
        assert_eq!(passes(&[30, 3, 30, 4, 3], ROOM), [vec![0, 2], vec![3, 1, 4]]);
        assert_eq!(passes(&[8, 8, 8], ROOM), [[0, 1, 2]]);
        // Padding by a few tokens is cheaper than a pass.
        assert_eq!(passes(&[8, 9, 7], ROOM), [[1, 0, 2]]);
        assert_eq!(passes(&[], ROOM), [[0; 0]; 0]);
    }

    #[test]
    fn the_pass_with_most_tokens_is_the_first() {
        let mut lengths = vec![7; 9];
        lengths.insert(4, 30);
        let first = vec![0, 1, 2, 3, 5, 6, 7, 8, 9];
        assert_eq!(passes(&lengths, ROOM), [first, vec![4]]);
    }

    #[test]
    fn a_pass_has_no_more_than_there_is_room_for() {
        assert_eq!(passes(&[1, 200, 1], ROOM), [vec![1], vec![0, 2]]);
        assert_eq!(passes(&[1; 5], PassRoom { texts: 2, ..ROOM }).iter().map(Vec::len).max(), Some(2));
        assert_eq!(passes(&[40, 40], ROOM), [[0], [1]]);
        let unmasked = PassRoom { is_masked: false, ..ROOM };
        assert_eq!(passes(&[3, 4, 3, 4], unmasked), [[1, 3], [0, 2]]);
    }

    /// Against all ways there are of cutting a few texts.
    #[test]
    fn no_way_costs_less() {
        for seed in 0..60_usize {
            let lengths: Vec<usize> = (1..=8).map(|n| (seed * 31 + n * n * (seed % 7 + 3)) % 41 + 1).collect();
            let found = passes(&lengths, ROOM);
            let mut order: Vec<u32> = (0..8).collect();
            order.sort_by_key(|&text| Reverse(lengths[text as usize]));
            let ways = (0..1_u32 << 7).filter_map(|cuts| {
                let mut way = vec![vec![order[0]]];
                for (place, &text) in order.iter().enumerate().skip(1) {
                    match cuts >> (place - 1) & 1 {
                        1 => way.push(vec![text]),
                        _ => way.last_mut()?.push(text),
                    }
                }
                let fits = |pass: &Vec<u32>| pass.len() == 1 || pass.len() * lengths[pass[0] as usize] <= ROOM.tokens;
                way.iter().all(fits).then(|| cost(&way, &lengths))
            });
            assert_eq!(Some(cost(&found, &lengths)), ways.min(), "{lengths:?}: {found:?}");
        }
    }
}
