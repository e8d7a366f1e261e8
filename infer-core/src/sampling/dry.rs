//! DRY: a token that would make a repetition longer becomes less probable, the more so the longer it is already.

use crate::{DryBreakers, Sampling, Token};

/// What a draw works in.
#[derive(Default)]
pub(super) struct Work {
    /// By distance from the end: how many of the last tokens stand once more, ending there.
    lengths: Vec<u32>,
    /// By token: one more than the longest repetition it would make longer; 0 between draws.
    longest: Vec<u32>,
    /// The tokens for which that is not 0.
    found: Vec<Token>,
}

impl Work {
    /// Room is made for this many tokens at once, so that a generation of usual length allocates nothing on its way.
    const RESERVE: usize = 4096;

    /// Applies the penalty to the logits of the token that comes after `window`, in time that grows with its length.
    pub(super) fn penalise(&mut self, sampling: &Sampling, window: &[Token], logits: &mut [f32]) {
        let (breakers, allowed) = (&sampling.dry_breakers, sampling.dry_allowed_length);
        self.make_room(window.len(), logits.len());
        let most = self.measure(window);
        let most = most.min(since_breaker(window, breakers, most));
        if most < allowed {
            return;
        }
        for distance in 1..window.len() {
            let length = most.min(self.lengths[distance] as usize);
            // What came after the repeated tokens then would go on repeating now.
            let next = window[window.len() - distance];
            if length >= allowed
                && let Some(longest) = self.longest.get_mut(next.index())
            {
                if *longest == 0 {
                    self.found.push(next);
                }
                *longest = (*longest).max(length as u32 + 1);
            }
        }
        for token in self.found.drain(..) {
            let length = std::mem::take(&mut self.longest[token.index()]) as usize - 1;
            if !breakers.is_single(token) {
                logits[token.index()] -= penalty(sampling, length - allowed);
            }
        }
    }

    /// At once, whether anything repeats yet or not: later is when nothing is to be allocated any more.
    fn make_room(&mut self, window: usize, vocab: usize) {
        let room = window.max(Self::RESERVE);
        self.lengths.clear();
        self.lengths.reserve(room);
        self.found.reserve(room);
        self.longest.resize(vocab, 0);
    }

    /// Fills `lengths`, which is empty, and returns the largest. It is the Z-algorithm (D. Gusfield, *Algorithms on Strings, Trees, and
    /// Sequences*, 1997, section 1.3) on the window read backwards: linear in its length, whatever repeats in it.
    fn measure(&mut self, window: &[Token]) -> usize {
        let len = window.len();
        self.lengths.resize(len, 0);
        let same = |a: usize, b: usize| window[len - 1 - a] == window[len - 1 - b];
        let mut most = 0;
        // The repetition that reaches back furthest: within it what is known of its beginning holds again.
        let (mut from, mut to) = (0, 0);
        for distance in 1..len {
            let known = if distance < to { self.lengths[distance - from] as usize } else { 0 };
            let mut length = known.min(to.saturating_sub(distance));
            while distance + length < len && same(length, distance + length) {
                length += 1;
            }
            if distance + length > to {
                (from, to) = (distance, distance + length);
            }
            self.lengths[distance] = length as u32;
            most = most.max(length);
        }
        most
    }
}

/// How many tokens stand after the last breaker; more than `most` where it is further back than matters.
fn since_breaker(window: &[Token], breakers: &DryBreakers, most: usize) -> usize {
    if breakers.is_empty() {
        return usize::MAX;
    }
    // One that begins further back than this ends more than `most` tokens before the end.
    let reach = most.saturating_add(breakers.longest_tail()).saturating_add(1).min(window.len());
    let heads = window.iter().enumerate().rev().take(reach);
    heads
        .map(|(at, &head)| (window.len() - 1 - at, breakers.tail(head, &window[at + 1..])))
        .find_map(|(after, tail)| Some(after - tail?))
        .unwrap_or(usize::MAX)
}

/// multiplier × base^`beyond`, finite. The power by squaring in `f64`: the platform's `pow` is not the same everywhere.
fn penalty(sampling: &Sampling, mut beyond: usize) -> f32 {
    let (mut power, mut square) = (1.0, f64::from(sampling.dry_base));
    while beyond > 0 {
        if beyond % 2 == 1 {
            power *= square;
        }
        square *= square;
        beyond /= 2;
    }
    ((f64::from(sampling.dry_multiplier) * power) as f32).min(f32::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn tokens(text: &str) -> Vec<Token> {
        text.bytes().map(|byte| Token(byte.into())).collect()
    }

    /// What comes off the logit of each token that costs something.
    fn penalties(sampling: &Sampling, window: &[Token]) -> Vec<(char, f32)> {
        let mut logits = [0.0; 128];
        let mut work = Work::default();
        work.penalise(sampling, window, &mut logits);
        assert!(work.found.is_empty() && work.longest.iter().all(|&longest| longest == 0), "nothing stays behind");
        (0u8..).zip(logits).filter(|&(_, logit)| logit != 0.0).map(|(byte, logit)| (char::from(byte), -logit)).collect()
    }

    fn dry() -> Sampling {
        Sampling::greedy().with_dry_multiplier(1.0).with_dry_base(2.0)
    }

    #[test]
    fn what_would_go_on_repeating_costs_by_length() {
        // Twice "abc": then came c, b or y; only after "abc" c, after "bc" y.
        assert_eq!(penalties(&dry(), &tokens("abccbcyabc")), [('c', 2.0), ('y', 1.0)]);
        assert_eq!(penalties(&dry().with_dry_allowed_length(3), &tokens("abccbcyabc")), [('c', 1.0)]);
        assert_eq!(
            penalties(&dry().with_dry_allowed_length(1), &tokens("abccbcyabc")),
            [('b', 1.0), ('c', 4.0), ('y', 2.0)]
        );
        assert_eq!(penalties(&dry().with_dry_multiplier(0.5), &tokens("abccbcyabc")), [('c', 1.0), ('y', 0.5)]);
        assert_eq!(penalties(&dry(), &tokens("abcdefg")), []);
        // With no length that is free, every token before the last costs.
        assert_eq!(penalties(&dry().with_dry_allowed_length(0), &tokens("ab")), [('b', 1.0)]);
        for short in ["", "a"] {
            assert_eq!(penalties(&dry().with_dry_allowed_length(0), &tokens(short)), []);
        }
    }

    #[test]
    fn a_breaker_ends_a_repetition_and_costs_nothing_itself() {
        let breakers =
            |texts: &[&str]| dry().with_dry_breakers(DryBreakers::new(texts.iter().map(|text| tokens(text))));
        let text = tokens("wx.yzvwx.yz");
        assert_eq!(penalties(&dry(), &text), [('v', 8.0)]);
        assert_eq!(penalties(&breakers(&["."]), &text), [('v', 1.0)]);
        // One of several tokens ends it only where it is whole.
        assert_eq!(penalties(&breakers(&[".y"]), &text), []);
        assert_eq!(penalties(&breakers(&[".z"]), &text), [('v', 8.0)]);
        assert_eq!(penalties(&breakers(&["v"]), &text), []);
        assert_eq!(penalties(&breakers(&["va"]), &text), [('v', 8.0)]);
        // The last breaker counts, and of those at its place the longest.
        assert_eq!(penalties(&breakers(&["w", "x.", "x"]), &text), [('v', 1.0)]);
    }

    #[test]
    fn the_longest_repetition_is_followed_to_the_end_of_numbers() {
        let text = tokens(&"a".repeat(300));
        assert_eq!(penalties(&dry(), &text), [('a', f32::MAX)]);
        assert_eq!(penalties(&dry().with_dry_base(1.0), &text), [('a', 1.0)]);
        assert_eq!(penalties(&dry().with_dry_multiplier(0.0), &text), []);
    }

    /// With time that grows with the square of the window, this would take hours.
    #[test]
    fn a_window_of_a_million_tokens_that_repeat_is_no_more_work_than_another() {
        const LONG: u32 = 1 << 20;
        // In Fibonacci's word repetitions of all lengths begin within one another.
        let fibonacci = |at: u32| {
            ((f64::from(at + 2) * 0.618_033_988_749_895) as u32) - ((f64::from(at + 1) * 0.618_033_988_749_895) as u32)
        };
        for kind in [
            &(|_: u32| 0_u32) as &dyn Fn(u32) -> u32,
            &|at| at % 2,
            &|at| at % 1000,
            &|at| u32::from(at == LONG / 2),
            &fibonacci,
        ] {
            let window: Vec<Token> = (0..LONG).map(kind).map(Token).collect();
            let mut logits = [0.0; 1000];
            Work::default().penalise(&dry().with_dry_base(1.0), &window, &mut logits);
            assert!(logits.contains(&-1.0));
        }
    }

    /// Lengths by comparing, as plainly as they are described.
    fn by_hand(window: &[Token]) -> Vec<u32> {
        let back: Vec<_> = window.iter().rev().collect();
        let length = |distance: usize| back.iter().zip(&back[distance..]).take_while(|(a, b)| a == b).count() as u32;
        (0..window.len()).map(|distance| if distance == 0 { 0 } else { length(distance) }).collect()
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(500))]

        #[test]
        fn lengths_are_those_found_by_comparing(text in "[ab]{0,40}|[a-d]{0,60}|(a{1,9}b){0,6}") {
            let (window, mut work) = (tokens(&text), Work::default());
            let most = work.measure(&window);
            let expected = by_hand(&window);
            prop_assert_eq!(most, expected.iter().copied().max().unwrap_or_default() as usize);
            prop_assert_eq!(work.lengths, expected);
        }

        /// Looking no further for a breaker than the longest repetition reaches makes no difference.
        #[test]
        fn a_breaker_further_back_than_repetitions_does_not_matter(
            text in "[a-c]{0,40}",
            breakers in prop::collection::vec("[a-c]{1,3}", 0..3),
            allowed in 0usize..4,
        ) {
            let window = tokens(&text);
            let sampling = dry()
                .with_dry_allowed_length(allowed)
                .with_dry_breakers(DryBreakers::new(breakers.iter().map(|text| tokens(text))));
            let limit = since_breaker(&window, &sampling.dry_breakers, usize::MAX);
            let mut expected = std::collections::BTreeMap::new();
            for (distance, &length) in by_hand(&window).iter().enumerate().skip(1) {
                let length = limit.min(length as usize);
                let next = window[window.len() - distance];
                if length >= allowed && !sampling.dry_breakers.is_single(next) {
                    let most = expected.entry(char::from(next.0 as u8)).or_insert(0);
                    *most = length.max(*most);
                }
            }
            let expected: Vec<_> = expected.into_iter().map(|(c, length)| (c, 2f32.powi((length - allowed) as i32))).collect();
            prop_assert_eq!(penalties(&sampling, &window), expected);
        }
    }
}
