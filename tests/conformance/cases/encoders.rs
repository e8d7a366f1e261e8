//! Texts turned into vectors.

use crate::setting::{Setting, refused};
use infer::{Encoder, EncoderOptions, ErrorKind, Pooling, Token};
use kit::trace::apart;
use std::thread;

const CONTEXT: usize = 64;
const BATCH: usize = 64;

/// Of all lengths, the shortest and the longest included; more than one pass takes.
const LENGTHS: [usize; 12] = [5, 1, 30, 12, 2, CONTEXT, 17, 30, 8, 3, 25, 1];

fn options() -> EncoderOptions {
    EncoderOptions::new().with_context(CONTEXT).with_batch(BATCH).with_threads(1)
}

fn encoder(at: &Setting<'_>, options: &EncoderOptions) -> Box<dyn Encoder> {
    at.model.encoder(options).unwrap_or_else(|error| panic!("no encoder: {error}"))
}

fn texts(at: &Setting<'_>) -> Vec<Vec<Token>> {
    let text = |(which, length): (usize, usize)| {
        // Each begins elsewhere in its text.
        at.text(which % 4, length + which).split_off(which)
    };
    LENGTHS.into_iter().enumerate().map(text).collect()
}

/// The vectors of each text.
fn encode(encoder: &mut dyn Encoder, texts: &[Vec<Token>]) -> infer::Result<Vec<Vec<Vec<f32>>>> {
    let slices: Vec<&[Token]> = texts.iter().map(Vec::as_slice).collect();
    encoder.encode(&slices)?;
    let vectors = encoder.vectors();
    assert_eq!(vectors.len(), texts.len());
    let all = (0..texts.len()).map(|text| vectors.tokens(text).map(<[f32]>::to_vec).collect::<Vec<_>>()).collect();
    (0..texts.len()).for_each(|text| assert_eq!(vectors.vector(text), vectors.tokens(text).next()));
    assert!(vectors.vector(texts.len()).is_none());
    Ok(all)
}

fn length(vector: &[f32]) -> f32 {
    vector.iter().map(|number| number * number).sum::<f32>().sqrt()
}

pub(crate) fn a_vector_depends_on_its_text_alone(at: &Setting<'_>) {
    let mut encoder = encoder(at, &options());
    let texts = texts(at);
    let together = encode(&mut *encoder, &texts).unwrap();
    for (index, text) in texts.iter().enumerate() {
        let alone = encode(&mut *encoder, std::slice::from_ref(text)).unwrap();
        at.near(&together[index][0], &alone[0][0], &format!("text {index} of {}", text.len()));
    }
    let backwards: Vec<_> = texts.iter().rev().cloned().collect();
    let again = encode(&mut *encoder, &backwards).unwrap();
    for (index, (one, other)) in together.iter().zip(again.iter().rev()).enumerate() {
        at.near(&one[0], &other[0], &format!("text {index} in another order"));
    }
    // Other texts have other vectors.
    assert!(apart(&together[0][0], &together[2][0]) > 10.0 * at.subject.epsilon);
    assert!(encode(&mut *encoder, &[]).unwrap().is_empty());
}

pub(crate) fn vectors_are_what_the_encoder_says(at: &Setting<'_>) {
    let texts = texts(at);
    for normalize in [true, false] {
        let mut encoder = encoder(at, &options().with_normalize(normalize));
        let info = encoder.info().clone();
        assert_eq!((info.pooling, info.context), (at.subject.pooling, CONTEXT));
        assert_eq!(info.normalized, normalize && info.pooling != Pooling::Rank);
        assert!(info.batch > 0 && info.texts > 0);
        assert_eq!(info.labels, at.subject.labels);
        let wide = if info.pooling == Pooling::Rank { at.subject.labels.len().max(1) } else { at.width() };
        assert_eq!(info.width, wide);
        let vectors = encode(&mut *encoder, &texts).unwrap();
        for vector in vectors.iter().map(|vectors| &vectors[0]) {
            assert_eq!(vector.len(), info.width);
            assert!(vector.iter().all(|number| number.is_finite()) && vector.iter().any(|&number| number != 0.0));
            assert!(!info.normalized || (length(vector) - 1.0).abs() < 1e-5, "{}", length(vector));
        }
        assert!(info.normalized || vectors.iter().any(|vectors| (length(&vectors[0]) - 1.0).abs() > 1e-3));
    }
}

/// One a token, one a text, or `Unsupported`; and means are means.
pub(crate) fn poolings_are_what_they_say(at: &Setting<'_>) {
    let texts = &texts(at)[..7];
    let of = |pooling| {
        let mut encoder = match at.model.encoder(&options().with_pooling(pooling).with_normalize(false)) {
            Ok(encoder) => encoder,
            Err(error) => {
                assert_eq!(error.kind(), ErrorKind::Unsupported, "{pooling:?}: {error}");
                assert_ne!(pooling, at.subject.pooling, "its own: {error}");
                return None;
            }
        };
        assert_eq!(encoder.info().pooling, pooling);
        let vectors = encode(&mut *encoder, texts).unwrap();
        for (text, vectors) in texts.iter().zip(&vectors) {
            assert_eq!(vectors.len(), if pooling == Pooling::None { text.len() } else { 1 }, "{pooling:?}");
        }
        Some(vectors)
    };
    of(Pooling::Rank);
    let Some(tokens) = of(Pooling::None) else { return };
    for (pooling, pooled) in
        [Pooling::Mean, Pooling::Cls, Pooling::Last, Pooling::Max].map(|pooling| (pooling, of(pooling)))
    {
        let Some(pooled) = pooled else { continue };
        for (tokens, pooled) in tokens.iter().zip(&pooled) {
            let wanted = match pooling {
                Pooling::Mean => mean(tokens),
                Pooling::Cls => tokens[0].clone(),
                Pooling::Max => most(tokens),
                _ => tokens[tokens.len() - 1].clone(),
            };
            let (apart, epsilon) = (apart(&pooled[0], &wanted), at.subject.epsilon.max(1e-5));
            assert!(apart <= epsilon, "{pooling:?} of {}: {apart} apart", tokens.len());
        }
    }
}

fn mean(vectors: &[Vec<f32>]) -> Vec<f32> {
    let sum = |place: usize| vectors.iter().map(|vector| f64::from(vector[place])).sum::<f64>();
    (0..vectors[0].len()).map(|place| (sum(place) / vectors.len() as f64) as f32).collect()
}

fn most(vectors: &[Vec<f32>]) -> Vec<f32> {
    let most = |place: usize| vectors.iter().map(|vector| vector[place]).fold(f32::NEG_INFINITY, f32::max);
    (0..vectors[0].len()).map(most).collect()
}

pub(crate) fn texts_that_cannot_be_are_errors_by_their_index(at: &Setting<'_>) {
    let mut encoder = encoder(at, &options());
    let good = at.text(0, 9);
    let wanted = encode(&mut *encoder, std::slice::from_ref(&good)).unwrap();
    let beyond = Token(u32::try_from(at.model.tokenizer().vocab().len()).unwrap());
    for (what, bad) in [
        ("no token", vec![]),
        ("one more than the context", at.text(1, CONTEXT + 1)),
        ("a token beyond the vocabulary", vec![good[0], beyond]),
        ("the largest token", vec![Token(u32::MAX)]),
    ] {
        let error = encode(&mut *encoder, &[good.clone(), good.clone(), bad]).expect_err(what);
        assert_eq!(error.kind(), ErrorKind::InvalidInput, "{what}: {error}");
        assert!(error.to_string().contains("text 2"), "{what}: {error}");
        assert!(encoder.vectors().is_empty(), "{what}: results of a call that failed");
        let again = encode(&mut *encoder, std::slice::from_ref(&good)).unwrap();
        at.near(&again[0][0], &wanted[0][0], &format!("after {what}"));
    }
    for (what, options) in [("no context", options().with_context(0)), ("no batch", options().with_batch(0))] {
        refused(at.model.encoder(&options), ErrorKind::InvalidInput, what);
    }
}

/// In a form of the model's own, or `Unsupported`; and the second text matters.
pub(crate) fn pairs_are_compared_or_unsupported(at: &Setting<'_>) {
    let mut encoder = encoder(at, &options());
    let before = at.text(0, 3);
    let mut pair = |second: &str| {
        let mut tokens = before.clone();
        let outcome = encoder.pair("the cat sat", second, &mut tokens);
        assert_eq!(tokens[..before.len()], before, "what was there stays");
        match outcome {
            Ok(()) => {
                let text = tokens.split_off(before.len());
                Some(encode(&mut *encoder, &[text]).unwrap().remove(0))
            }
            Err(error) => {
                assert_eq!((error.kind(), tokens.len()), (ErrorKind::Unsupported, before.len()), "{error}");
                None
            }
        }
    };
    let [good, bad, again] = ["a good dog", "a bad bank", "a good dog"].map(&mut pair);
    assert_eq!(good.is_some(), bad.is_some());
    if let (Some(good), Some(bad), Some(again)) = (good, bad, again) {
        assert_eq!(good.len(), 1, "one result for two texts");
        at.near(&again[0], &good[0], "the same two");
        assert!(apart(&good[0], &bad[0]) > at.subject.epsilon, "another second text is something else");
    }
}

pub(crate) fn an_encoders_interrupt_is_a_level(at: &Setting<'_>) {
    let mut encoder = encoder(at, &options());
    let texts = texts(at);
    let wanted = encode(&mut *encoder, &texts).unwrap();
    let interrupt = encoder.interrupt();
    interrupt.raise();
    for _ in 0..2 {
        refused(encode(&mut *encoder, &texts), ErrorKind::Cancelled, "while it is raised");
        assert!(encoder.vectors().is_empty());
    }
    interrupt.lower();
    // At some moment, from another thread: all results, or none.
    for _ in 0..20 {
        let raiser = thread::spawn({
            let interrupt = interrupt.clone();
            move || interrupt.raise()
        });
        let outcome = encode(&mut *encoder, &texts);
        raiser.join().unwrap();
        interrupt.lower();
        match outcome {
            Ok(vectors) => at.near(&vectors[5][0], &wanted[5][0], "a pass that was in time"),
            Err(error) => {
                assert_eq!(error.kind(), ErrorKind::Cancelled, "{error}");
                assert!(encoder.vectors().is_empty());
            }
        }
    }
    let again = encode(&mut *encoder, &texts).unwrap();
    again.iter().zip(&wanted).for_each(|(found, wanted)| at.near(&found[0], &wanted[0], "after all that"));
}
