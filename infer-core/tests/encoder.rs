//! The laws of [`Encoder`], shown on the scripted one.

use infer_core::{
    Encoder, EncoderOptions, ErrorKind, Model, Pooling, Special, Token,
    testing::{Fault, Script, ScriptedEncoder, ScriptedModel},
};

fn encoder(script: Script, options: &EncoderOptions) -> ScriptedEncoder {
    ScriptedModel::new(script).scripted_encoder(options).unwrap()
}

fn tokens(text: &str) -> Vec<Token> {
    let mut tokens = Vec::new();
    ScriptedModel::default().tokenizer().encode(text, Special::ADD, &mut tokens).unwrap();
    tokens
}

/// The vectors of each text.
fn encode(encoder: &mut dyn Encoder, texts: &[&[Token]]) -> Vec<Vec<Vec<f32>>> {
    encoder.encode(texts).unwrap();
    let vectors = encoder.vectors();
    (0..vectors.len()).map(|text| vectors.tokens(text).map(<[f32]>::to_vec).collect()).collect()
}

fn length(vector: &[f32]) -> f32 {
    vector.iter().map(|number| number * number).sum::<f32>().sqrt()
}

#[test]
fn a_result_depends_on_its_text_alone() {
    for pooling in [Pooling::None, Pooling::Mean, Pooling::Cls, Pooling::Last, Pooling::Max, Pooling::Rank] {
        let options = EncoderOptions::new().with_pooling(pooling).with_batch(16);
        let mut encoder = encoder(Script::new(), &options);
        let texts = ["a long text that is by itself in its pass", "one", "two", "three", "one"].map(tokens);
        let texts: Vec<_> = texts.iter().map(Vec::as_slice).collect();
        let together = encode(&mut encoder, &texts);
        assert_eq!(together.len(), texts.len());
        for (text, vectors) in texts.iter().zip(&together) {
            assert_eq!(&encode(&mut encoder, &[text])[0], vectors, "{pooling:?}");
            assert_eq!(vectors.len(), if pooling == Pooling::None { text.len() } else { 1 });
            assert!(vectors.iter().all(|vector| vector.len() == encoder.info().width));
        }
        assert_eq!(together[1], together[4]);
        assert!(encode(&mut encoder, &[]).is_empty());
    }
}

#[test]
fn vectors_have_length_1_unless_they_are_not_to() {
    let text = tokens("some words");
    for (pooling, normalize, is) in [
        (Pooling::Mean, true, true),
        (Pooling::None, true, true),
        (Pooling::Mean, false, false),
        (Pooling::Rank, true, false),
    ] {
        let options = EncoderOptions::new().with_pooling(pooling).with_normalize(normalize);
        let mut encoder = encoder(Script::new(), &options);
        assert_eq!(encoder.info().normalized, is);
        for vector in &encode(&mut encoder, &[&text])[0] {
            assert_eq!((length(vector) - 1.0).abs() < 1e-5, is, "{pooling:?}: {}", length(vector));
        }
    }
}

#[test]
fn a_vector_of_length_0_stays_one_and_squares_do_not_overflow() {
    let encoder = encoder(Script::new(), &EncoderOptions::new());
    let normalized = |mut vector: Vec<f32>| {
        encoder.info().normalize(&mut vector);
        vector
    };
    assert_eq!(normalized(vec![0.0; 3]), [0.0; 3]);
    assert_eq!(normalized(vec![]), [0.0; 0]);
    for scale in [f32::MIN_POSITIVE, 1.0, 1e37] {
        let vector = normalized(vec![3.0 * scale, 0.0, -4.0 * scale]);
        assert!((vector[0] - 0.6).abs() < 1e-6 && (vector[2] + 0.8).abs() < 1e-6, "{vector:?}");
    }
}

#[test]
fn a_text_that_cannot_be_encoded_is_named_and_nothing_is_computed() {
    let mut encoder = encoder(Script::new().with_context(8).with_hook(|_| panic!("a pass")), &EncoderOptions::new());
    let good = tokens("abc");
    for (bad, said) in [
        (vec![], "text 1 has no tokens"),
        (vec![Token(1); 9], "text 1 has 9 tokens, and 8 fit"),
        (vec![Token(1), Token(260)], "token 1 of text 1 is 260, outside the vocabulary of 260"),
    ] {
        let error = encoder.encode(&[&good, &bad]).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::InvalidInput);
        assert!(error.to_string().contains(said), "{error}");
        assert!(encoder.vectors().is_empty());
    }
}

#[test]
fn what_goes_wrong_leaves_no_results_and_an_encoder_that_can_be_used() {
    let script = Script::new().with_fault(1, Fault::Error(ErrorKind::Runtime)).with_fault(5, Fault::Lose);
    let mut encoder = encoder(script, &EncoderOptions::new().with_batch(4));
    let (text, options) = (tokens("abc"), EncoderOptions::new());
    let error = encoder.encode(&[&text, &text]).unwrap_err(); // passes 0 and 1
    assert_eq!(error.kind(), ErrorKind::Runtime);
    assert!(encoder.vectors().is_empty());

    encoder.interrupt().raise();
    assert_eq!(encoder.encode(&[&text]).unwrap_err().kind(), ErrorKind::Cancelled); // pass 2
    encoder.interrupt().lower();
    let plain = encode(&mut ScriptedModel::default().scripted_encoder(&options).unwrap(), &[&text]);
    assert_eq!(encode(&mut encoder, &[&text]), plain); // pass 3
    assert_eq!(encoder.encode(&[&text, &text]).unwrap_err().kind(), ErrorKind::SessionLost); // passes 4 and 5
    assert_eq!(encoder.encode(&[&text]).unwrap_err().kind(), ErrorKind::SessionLost);
}

#[test]
fn pairs_are_ranked_and_labels_named() {
    let rank = EncoderOptions::new().with_pooling(Pooling::Rank);
    let mut reranker = encoder(Script::new(), &rank);
    let documents = ["Pears are sweet.", "The ferry leaves at nine.", "A ferry is a boat."];
    let pairs = documents.map(|document| {
        let mut tokens = Vec::new();
        reranker.pair("When does the ferry leave?", document, &mut tokens).unwrap();
        tokens
    });
    let scores = encode(&mut reranker, &pairs.each_ref().map(Vec::as_slice)).concat().concat();
    assert!(scores[1] > scores[2] && scores[2] > scores[0], "{scores:?}");

    let labels = encoder(Script::new().with_labels(["no", "yes"]), &rank);
    assert_eq!((labels.info().labels.join(" ").as_str(), labels.info().width), ("no yes", 2));
    let embeddings = encoder(Script::new().with_labels(["no", "yes"]), &EncoderOptions::new());
    assert!(embeddings.info().labels.is_empty());
    let error = embeddings.pair("a", "b", &mut Vec::new()).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unsupported);
}

#[test]
fn no_context_no_batch_and_no_threads_are_refused() {
    for options in [
        EncoderOptions::new().with_context(0),
        EncoderOptions::new().with_batch(0),
        EncoderOptions::new().with_threads(0),
    ] {
        let Err(error) = ScriptedModel::default().encoder(&options) else { panic!("{options:?}") };
        assert_eq!(error.kind(), ErrorKind::InvalidInput);
    }
}
