mod reference;

use super::*;
use crate::{DryBreakers, ErrorKind, Sampled, Sampling, Token};
use proptest::prelude::*;
use reference::{expected, samplings};

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

fn history() -> impl Strategy<Value = Vec<Token>> {
    // Of few tokens, so that something repeats, and of more.
    prop_oneof![prop::collection::vec(0u32..30, 0..40), prop::collection::vec(0u32..3, 0..40)]
        .prop_map(|ids| ids.into_iter().map(Token).collect())
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
        breakers in prop::collection::vec(prop::collection::vec((0u32..30).prop_map(Token), 1..3), 0..3),
        prompt in history(),
        steps in prop::collection::vec((any::<prop::sample::Index>(), history(), any::<bool>()), 0..8),
    ) {
        let logits = row(100, 5);
        let sampling = sampling.with_dry_breakers(DryBreakers::new(breakers));
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
fn the_top_are_the_models_own() {
    let bias = Sampling::greedy().with_logit_bias(Token(0), f32::NEG_INFINITY).with_temperature(0.5).with_top_k(1);
    let logits = [2.0, 1.0, f32::NEG_INFINITY, 2.0, -1.0];
    let top = |most, logits: &[f32]| {
        let mut out = vec![Sampled::new(Token(9), 0.0)];
        sampler(&bias.clone().with_logprobs(most), logits.len()).top(logits, &mut out).map(|()| out.split_off(1))
    };
    let all = top(9, &logits).unwrap();
    assert_eq!(all.iter().map(|top| top.token.0).collect::<Vec<_>>(), [0, 3, 1, 4]);
    let sum: f32 = all.iter().map(|top| top.logprob.exp()).sum();
    assert!((sum - 1.0).abs() < 1e-6 && all[0].logprob == all[1].logprob);
    assert_eq!(top(3, &logits).unwrap(), all[..3]);
    assert_eq!(top(0, &logits).unwrap(), []);
    assert_eq!(top(2, &[0.0, f32::INFINITY, 5.0]).unwrap(), [Sampled::new(Token(1), 0.0)]);
    assert!(top(2, &[0.0, f32::NAN]).unwrap_err().to_string().contains("token 1 is not a number"));
    let error = sampler(&bias.with_logprobs(1), 5).top(&[0.0; 4], &mut Vec::new()).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::InvalidInput);
    // The drawn token's log-probability is the one it has there.
    let mut greedy = sampler(&Sampling::greedy().with_logprobs(1), 500);
    let (logits, mut most) = (row(500, 8), Vec::new());
    greedy.top(&logits, &mut most).unwrap();
    assert_eq!(most, [draw(&mut greedy, &logits, 0)]);
}

/// Typical sampling and XTC can leave the most probable token out; then temperature 0 takes the best of those that are left.
#[test]
fn the_best_of_what_is_left_is_taken() {
    let logits = [0.5f32, 0.2, 0.2, 0.1].map(f32::ln);
    let excluding = Sampling::greedy().with_xtc(1.0, 0.15);
    assert!(Sampling::greedy().is_greedy() && !excluding.is_greedy());
    assert_eq!(draw(&mut sampler(&excluding, 4), &logits, 0).token, Token(2));
    assert_eq!(draw(&mut sampler(&excluding.with_xtc(0.0, 0.15), 4), &logits, 0).token, Token(0));
    // The expected surprise is 1.22 nats; that of a token with probability 0.2 is 1.61, of one with 0.5 0.69.
    let typical = Sampling::greedy().with_typical_p(0.3);
    assert!(!typical.is_greedy());
    assert_eq!(draw(&mut sampler(&typical, 4), &logits, 0).token, Token(1));
}

#[test]
fn the_temperature_moves_with_the_entropy() {
    let sampling = Sampling::greedy().with_temperature(1.0).with_dynatemp(1.0, 1.0);
    let of = |sampling: &Sampling, logits: &[f32]| {
        let mut out = Vec::new();
        sampler(sampling, logits.len()).distribution(logits, 0, &mut out).unwrap();
        out
    };
    // Nothing is known, all the range; all but certain, none of it.
    assert!(of(&sampling, &[1.0; 4]).iter().all(|&(_, p)| p == 0.25));
    assert_eq!(of(&sampling, &[0.0, 80.0, 0.0])[0], (Token(1), 1.0));
    // From 0 on, where the most probable token is the first of equals.
    let cold = Sampling::greedy().with_dynatemp(0.5, 1.0);
    assert!(!cold.is_greedy());
    let [(_, first), ..] = of(&cold, &[0.0, 1.0, 0.5])[..] else { panic!("nothing is left") };
    assert!(first < 1.0);
}

/// Every other number is drawn for XTC: with probability 0.5, half of the positions leave the obvious choice out.
#[test]
fn xtc_acts_as_often_as_it_is_told() {
    let sampling = Sampling::greedy().with_xtc(0.5, 0.1);
    let mut sampler = sampler(&sampling, 2);
    let mut acts = 0;
    for position in 0..10_000 {
        acts += draw(&mut sampler, &[1.0, 0.0], position).token.0;
        sampler.accept(position, &[Token(0)]);
    }
    // Six standard deviations of 50.
    assert!((4700..5300).contains(&acts), "{acts}");
}

#[test]
fn is_stored_whole() {
    let sampling = Sampling::greedy()
        .with_temperature(0.7)
        .with_typical_p(0.9)
        .with_xtc(0.5, 0.2)
        .with_dry_multiplier(0.8)
        .with_dry_breakers(DryBreakers::new([vec![Token(3), Token(4)], vec![Token(1)]]))
        .with_dynatemp(0.3, 2.0)
        .with_top_n_sigma(1.5)
        .with_logprobs(5);
    let json = serde_json::to_string(&sampling).unwrap();
    assert_eq!(serde_json::from_str::<Sampling>(&json).unwrap(), sampling);
    assert_eq!(serde_json::from_str::<Sampling>("{}").unwrap(), Sampling::default(), "what is not said is off");
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

#[test]
fn a_device_is_told_what_to_add_to_a_row() {
    let mut out = vec![1.0];
    assert!(!sampler(&Sampling::greedy(), 4).additions(0, &mut out).unwrap() && out.is_empty());
    let biased = Sampling::greedy().with_logit_bias(Token(1), 0.5).with_logit_bias(Token(3), f32::NEG_INFINITY);
    let mut biased = sampler(&biased, 4);
    assert!(biased.additions(0, &mut out).unwrap());
    assert_eq!(out, [0.0, 0.5, 0.0, f32::NEG_INFINITY]);
    assert_eq!(
        biased.additions(1, &mut out).unwrap_err().kind(),
        ErrorKind::InvalidInput,
        "tokens are not known so far"
    );
    let mut drawn = Vec::new();
    biased.take_drawn(Sampled::new(Token(1), -0.5), 0, &mut drawn);
    assert_eq!(drawn, [Sampled::new(Token(1), -0.5)]);
}
