use super::*;
use crate::{ErrorKind, Sampled, Sampling, Token};
use proptest::prelude::*;

fn draw(sampler: &mut Sampler, logits: &[f32], position: usize) -> Sampled {
    let mut out = Vec::new();
    sampler.sample(logits, position, &mut out).unwrap();
    assert_eq!(out.len(), 1);
    out[0]
}

fn sampler(sampling: &Sampling, vocab: usize) -> Sampler {
    Sampler::new(sampling, &[], vocab).unwrap()
}

fn tokens(ids: &[u32]) -> Vec<Token> {
    ids.iter().copied().map(Token).collect()
}

/// Normally distributed logits, the same for the same seed.
fn row(vocab: usize, seed: u64) -> Vec<f32> {
    let normal = |at| {
        let (a, b) = (1.0 - uniform(seed, 2 * at), uniform(seed, 2 * at + 1));
        (-2.0 * a.ln()).sqrt() * (std::f32::consts::TAU * b).cos()
    };
    (0..vocab).map(|at| 3.0 * normal(at)).collect()
}

/// What [`Sampler::distribution`] should give, written down as plainly as the documentation says it: bias and penalties
/// in `f32`, so that the order of tokens is the same, the rest in `f64`.
fn expected(sampling: &Sampling, logits: &[f32], history: &[Token]) -> Vec<(Token, f64)> {
    let mut logits = logits.to_vec();
    for &(token, bias) in &sampling.logit_bias {
        logits[token.index()] += bias;
    }
    let window = &history[history.len().saturating_sub(sampling.penalty_window)..];
    for (token, logit) in (0..).map(Token).zip(&mut logits) {
        let count = window.iter().filter(|&&other| other == token).count();
        if count > 0 {
            let factor = sampling.repetition_penalty;
            *logit = if *logit > 0.0 { *logit / factor } else { *logit * factor };
            *logit -= count as f32 * sampling.frequency_penalty + sampling.presence_penalty;
        }
    }
    let mut list: Vec<(Token, f64)> = (0..).map(Token).zip(logits.into_iter().map(f64::from)).collect();
    list.retain(|&(_, logit)| logit > f64::NEG_INFINITY);
    list.sort_by(|a, b| b.1.total_cmp(&a.1).then(a.0.cmp(&b.0)));
    let peak = list[0].1;
    if sampling.top_k > 0 {
        list.truncate(sampling.top_k);
    }
    if sampling.top_p < 1.0 {
        let total: f64 = list.iter().map(|(_, logit)| (logit - peak).exp()).sum();
        let mut sum = 0.0;
        let enough = |&(_, logit): &(Token, f64)| {
            sum += (logit - peak).exp() / total;
            sum >= f64::from(sampling.top_p)
        };
        list.truncate(list.iter().position(enough).map_or(list.len(), |last| last + 1));
    }
    list.retain(|&(_, logit)| logit - peak >= f64::from(sampling.min_p).ln());
    if sampling.is_greedy() {
        return vec![(list[0].0, 1.0)];
    }
    let weight = |logit: f64| ((logit - peak) / f64::from(sampling.temperature)).exp();
    let total: f64 = list.iter().map(|&(_, logit)| weight(logit)).sum();
    list.iter().map(|&(token, logit)| (token, weight(logit) / total)).collect()
}

/// All steps on their own and together, off and at their ends.
fn samplings() -> impl Strategy<Value = Sampling> {
    let truncation = (
        prop_oneof![Just(0), 1usize..60, Just(5000)],
        prop_oneof![2 => Just(1.0f32), 1 => Just(0.0), 3 => 0.01f32..0.9999],
        prop_oneof![2 => Just(0.0f32), 1 => Just(1.0), 3 => 0.001f32..0.5],
    );
    let penalties = (
        prop_oneof![Just(1.0f32), 0.5f32..2.0],
        prop_oneof![Just(0.0f32), -1f32..1.0],
        prop_oneof![Just(0.0f32), -1f32..1.0],
        prop_oneof![Just(0usize), 1usize..12, Just(usize::MAX)],
    );
    let temperature = prop_oneof![Just(0.0f32), Just(1.0), 0.05f32..3.0];
    let bias = prop_oneof![Just(f32::NEG_INFINITY), -5f32..5.0];
    (truncation, penalties, temperature, prop::collection::vec((0u32..100, bias), 0..4), any::<u64>()).prop_map(
        |((top_k, top_p, min_p), (repetition, frequency, presence, window), temperature, bias, seed)| Sampling {
            temperature,
            top_k,
            top_p,
            min_p,
            repetition_penalty: repetition,
            frequency_penalty: frequency,
            presence_penalty: presence,
            penalty_window: window,
            logit_bias: bias.into_iter().map(|(id, bias)| (Token(id), bias)).collect(),
            seed,
        },
    )
}

fn history() -> impl Strategy<Value = Vec<Token>> {
    prop::collection::vec((0u32..30).prop_map(Token), 0..40)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn the_distribution_is_the_documented_one(
        sampling in samplings(),
        history in history(),
        seed in any::<u64>(),
        vocab in prop_oneof![Just(100usize), Just(1500)],
    ) {
        let logits = row(vocab, seed);
        let mut sampler = Sampler::new(&sampling, &history, vocab).unwrap();
        let mut ours = Vec::new();
        sampler.distribution(&logits, history.len(), &mut ours).unwrap();
        let mut theirs = expected(&sampling, &logits, &history);
        // What f32 has no number for is not drawn.
        ours.retain(|&(_, p)| p > 1e-30);
        theirs.retain(|&(_, p)| p > 1e-30);
        // f32 and f64 may disagree about a token whose place or share is a hair's breadth from a limit; then the two
        // differ by that token, and by no more than its probability.
        prop_assert!(ours.len().abs_diff(theirs.len()) <= 1, "{} for {}", ours.len(), theirs.len());
        let of = |token| theirs.iter().find(|&&(other, _)| other == token).map_or(0.0, |&(_, p)| p);
        let slack = if ours.len() == theirs.len() { 1e-5 } else { 2.0 * theirs[theirs.len() - 1].1 + 1e-5 };
        for &(token, p) in &ours {
            prop_assert!((f64::from(p) - of(token)).abs() <= slack, "{token}: {p} for {}", of(token));
        }
        let total: f64 = ours.iter().map(|&(_, p)| f64::from(p)).sum();
        prop_assert!((total - 1.0).abs() < 1e-5);
        prop_assert!(ours.is_sorted_by(|a, b| a.1 >= b.1));
    }

    /// A draw is the place of the random number in the distribution, by id: whichever way the tokens were found.
    #[test]
    fn a_draw_is_a_place_in_the_distribution(
        sampling in samplings(),
        history in history(),
        seed in any::<u64>(),
        vocab in prop_oneof![Just(100usize), Just(1500)],
    ) {
        let logits = row(vocab, seed);
        let mut sampler = Sampler::new(&sampling, &history, vocab).unwrap();
        let drawn = draw(&mut sampler, &logits, history.len());
        let mut distribution = Vec::new();
        sampler.distribution(&logits, history.len(), &mut distribution).unwrap();
        distribution.sort_by_key(|&(token, _)| token);
        let below: f64 = distribution.iter().filter(|&&(token, _)| token < drawn.token).map(|&(_, p)| f64::from(p)).sum();
        let own = distribution.iter().find(|&&(token, _)| token == drawn.token).map(|&(_, p)| f64::from(p));
        let u = f64::from(sampler.uniform(history.len()));
        prop_assert!(own.is_some());
        prop_assert!(below - 1e-5 <= u && u <= below + own.unwrap_or_default() + 1e-5);
    }

    /// Any way of feeding, cutting and drawing in between leads to the state of a sampler that was fed the same at once.
    #[test]
    fn the_state_is_a_function_of_the_tokens(
        sampling in samplings(),
        prompt in history(),
        steps in prop::collection::vec((any::<prop::sample::Index>(), history(), any::<bool>()), 0..8),
    ) {
        let logits = row(100, 5);
        let mut fed = prompt.clone();
        let mut sampler = Sampler::new(&sampling, &prompt, 100).unwrap();
        for (at, tokens, cut) in steps {
            let at = if cut { at.index(fed.len() + 1) } else { fed.len() };
            if cut {
                sampler.truncate(at);
                fed.truncate(at.max(prompt.len()));
            }
            let at = fed.len();
            sampler.accept(at, &tokens);
            fed.extend(tokens);
            let mut fresh = Sampler::new(&sampling, &prompt, 100).unwrap();
            fresh.accept(prompt.len(), &fed[prompt.len()..]);
            prop_assert_eq!(draw(&mut sampler, &logits, fed.len()), draw(&mut fresh, &logits, fed.len()));
            // Where the prompt ends makes no difference to what is drawn after it.
            let mut whole = Sampler::new(&sampling, &fed, 100).unwrap();
            prop_assert_eq!(draw(&mut sampler, &logits, fed.len()), draw(&mut whole, &logits, fed.len()));
            // A draw for an earlier position does not see what comes after it.
            let earlier = fed.len() / 2;
            let mut short = Sampler::new(&sampling, &fed[..earlier], 100).unwrap();
            prop_assert_eq!(draw(&mut sampler, &logits, earlier), draw(&mut short, &logits, earlier));
        }
    }
}

#[test]
fn greedy_takes_the_first_of_equals() {
    let mut greedy = sampler(&Sampling::greedy(), 5);
    assert_eq!(draw(&mut greedy, &[1.0, 3.0, 2.0, 3.0, 3.0], 0).token, Token(1));
    assert_eq!(draw(&mut greedy, &[-0.0, 0.0, -1.0, 0.0, -0.0], 0).token, Token(0));
}

#[test]
fn the_log_probability_is_the_models_own() {
    let sampling = Sampling::greedy().with_logit_bias(Token(0), f32::NEG_INFINITY).with_temperature(0.5).with_top_k(1);
    let drawn = draw(&mut sampler(&sampling, 3), &[2.0, 1.0, 0.0], 0);
    assert_eq!(drawn.token, Token(1));
    let expected = 1.0 - (2f32.exp() + 1f32.exp() + 1.0).ln();
    assert!((drawn.logprob - expected).abs() < 1e-6, "{} for {expected}", drawn.logprob);
}

#[test]
fn the_prompt_is_not_counted_twice() {
    let sampling = Sampling::greedy().with_frequency_penalty(1.0);
    let prompt = tokens(&[0, 0]);
    let logits = [2.5, 0.0, 0.0];
    let mut sampler = Sampler::new(&sampling, &prompt, 3).unwrap();
    // Twice in the prompt costs 2: still the largest. In chunks, again and overlapping the end, it stays so.
    for (at, fed) in [(0, &[0][..]), (1, &[0]), (0, &[0, 0]), (1, &[0, 1])] {
        sampler.accept(at, &tokens(fed));
        assert_eq!(draw(&mut sampler, &logits, 2).token, Token(0));
    }
    // Once more, and it is 0.5 below the others.
    sampler.accept(2, &tokens(&[0]));
    assert_eq!(
        draw(&mut sampler, &logits, 3).token,
        Token(1),
        "what stood at 2 before was replaced, and no longer counts"
    );
}

#[test]
fn tokens_after_a_gap_are_not_known() {
    let mut sampler = sampler(&Sampling::greedy(), 2);
    sampler.accept(3, &tokens(&[1]));
    let mut out = Vec::new();
    let error = sampler.sample(&[0.0, 1.0], 4, &mut out).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::InvalidInput);
    assert!(error.to_string().contains("position 4") && error.to_string().contains("up to 0"), "{error}");
}

#[test]
fn refuses_rows_that_mean_nothing() {
    let temperature = Sampling::greedy().with_temperature(1.0);
    let forbidding = (0..4).fold(temperature.clone(), |s, id| s.with_logit_bias(Token(id), f32::NEG_INFINITY));
    let nan = [0.0, f32::NAN, 0.0, 0.0];
    let none = [f32::NEG_INFINITY; 4];
    for (sampling, logits, kind, says) in [
        (&temperature, &nan[..], ErrorKind::Runtime, "the logit of token 1 is not a number"),
        (&Sampling::greedy(), &nan[..], ErrorKind::Runtime, "the logit of token 1 is not a number"),
        (&temperature, &none[..], ErrorKind::Runtime, "negative infinity"),
        (&forbidding, &[0.0; 4], ErrorKind::Runtime, "forbids every token"),
        (&temperature, &[0.0; 3], ErrorKind::InvalidInput, "a row of 3 logits, the vocabulary has 4 tokens"),
    ] {
        let mut out = vec![Sampled::new(Token(9), 0.0)];
        let error = sampler(sampling, 4).sample(logits, 0, &mut out).unwrap_err();
        assert_eq!(error.kind(), kind);
        assert!(error.to_string().contains(says), "{error}");
        assert_eq!(out.len(), 1, "nothing is appended");
    }
}

#[test]
fn refuses_a_prompt_outside_the_vocabulary() {
    let error = Sampler::new(&Sampling::greedy(), &tokens(&[1, 7]), 7).unwrap_err();
    assert_eq!(error.to_string(), "token 7 at 1 of the prompt is outside the vocabulary of 7");
}

#[test]
fn infinity_takes_all_unless_forbidden() {
    let logits = [9.0, f32::INFINITY, f32::INFINITY, 1.0];
    let hot = Sampling::greedy().with_temperature(2.0).with_top_p(0.5);
    for sampling in [Sampling::greedy(), hot.clone(), hot.clone().with_repetition_penalty(1.5)] {
        assert_eq!(draw(&mut sampler(&sampling, 4), &logits, 0).token, Token(1));
    }
    let forbidden = hot.with_logit_bias(Token(1), f32::NEG_INFINITY);
    let drawn = draw(&mut sampler(&forbidden, 4), &logits, 0);
    assert_eq!(drawn.token, Token(2));
    assert!((drawn.logprob - 0.5f32.ln()).abs() < 1e-6);
}

#[test]
fn extreme_temperatures() {
    let logits = [1.0, 1.5, 1.25, -3.0];
    for tiny in [f32::MIN_POSITIVE, f32::from_bits(1), 1e-9] {
        let sampling = Sampling::greedy().with_temperature(tiny);
        for position in 0..50 {
            let mut sampler = Sampler::new(&sampling, &tokens(&vec![0; position]), 4).unwrap();
            assert_eq!(draw(&mut sampler, &logits, position).token, Token(1), "temperature {tiny}");
        }
    }
    let mut flat = Vec::new();
    sampler(&Sampling::greedy().with_temperature(f32::MAX), 4).distribution(&logits, 0, &mut flat).unwrap();
    assert!(flat.iter().all(|&(_, p)| p == 0.25), "{flat:?}");
}

/// Draws over many positions against the distribution, by Pearson's statistic. With 30 classes there are 29 degrees of
/// freedom; 67.6 is exceeded once in 20,000 times by chance, and the draws are the same in every run.
#[test]
fn draws_follow_the_distribution() {
    let vocab = 30;
    let logits: Vec<f32> = row(vocab, 11).iter().map(|logit| logit / 3.0).collect();
    let base = Sampling::greedy().with_temperature(1.3);
    for sampling in [base.clone(), base.clone().with_top_k(29), base.clone().with_top_p(0.999), base.with_min_p(0.001)]
    {
        for seed in [1, 2] {
            let mut sampler = sampler(&sampling.clone().with_seed(seed), vocab);
            let mut distribution = Vec::new();
            sampler.distribution(&logits, 0, &mut distribution).unwrap();
            let (draws, mut counts) = (20_000, vec![0u32; vocab]);
            for position in 0..draws {
                counts[draw(&mut sampler, &logits, position).token.index()] += 1;
                sampler.accept(position, &[Token(0)]);
            }
            let statistic: f64 = distribution
                .iter()
                .map(|&(token, p)| (f64::from(p) * draws as f64, f64::from(counts[token.index()])))
                .map(|(expected, count)| (count - expected).powi(2) / expected)
                .sum();
            assert!(statistic < 67.6, "{sampling:?}: {statistic}");
        }
    }
}

#[test]
fn the_seed_and_the_position_alone_decide() {
    let logits = row(1000, 3);
    let sampling = Sampling::greedy().with_temperature(1.5);
    let run = |seed| {
        let mut sampler = sampler(&sampling.clone().with_seed(seed), 1000);
        let step = |position| {
            let token = draw(&mut sampler, &logits, position).token;
            sampler.accept(position, &[token]);
            token
        };
        (0..100).map(step).collect::<Vec<_>>()
    };
    assert_eq!(run(1), run(1));
    let same = run(1).iter().zip(&run(2)).filter(|(a, b)| a == b).count();
    assert!(same < 20, "{same} of 100 the same under another seed");
}

#[test]
fn sixteen_bit_logits_are_drawn_from_as_they_are() {
    let wide: Vec<half::f16> = row(700, 9).into_iter().map(half::f16::from_f32).collect();
    let brain: Vec<half::bf16> = row(700, 9).into_iter().map(half::bf16::from_f32).collect();
    let mut sampler = sampler(&Sampling::greedy().with_temperature(1.0).with_top_k(50), 700);
    let (mut from_half, mut from_brain) = (Vec::new(), Vec::new());
    sampler.sample(&wide, 0, &mut from_half).unwrap();
    sampler.sample(&brain, 0, &mut from_brain).unwrap();
    let f32s: Vec<f32> = wide.iter().map(|logit| logit.to_f32()).collect();
    assert_eq!(from_half, [draw(&mut sampler, &f32s, 0)]);
    let f32s: Vec<f32> = brain.iter().map(|logit| logit.to_f32()).collect();
    assert_eq!(from_brain, [draw(&mut sampler, &f32s, 0)]);
}
