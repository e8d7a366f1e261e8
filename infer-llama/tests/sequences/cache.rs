//! The cells of sequences: their number formats, and how many there are.

use crate::{
    linked::{apart, feed, model, open, options, session, text},
    wanting, words,
};
use infer_core::{ErrorKind, Sampling, Session as _, Tokenizer as _, Want};
use infer_llama::KvType;

/// How far the logits of each format are from those of 16-bit floats at most, for keys, values or both: about twice what was seen here.
/// The logits themselves lie between -20 and 30. And how many bits a number takes.
const FORMATS: [(KvType, f32, f64); 8] = [
    (KvType::F32, 0.05, 32.0),
    (KvType::Bf16, 3.0, 16.0),
    (KvType::Q8_0, 2.5, 8.5),
    (KvType::Q5_1, 5.0, 6.0),
    (KvType::Q5_0, 6.0, 5.5),
    (KvType::Q4_1, 6.0, 5.0),
    (KvType::Q4_0, 8.0, 4.5),
    (KvType::Iq4Nl, 6.0, 4.5),
];

#[test]
fn every_number_format_answers_and_stays_near_the_exact_one() {
    let smollm2 = model("smollm2");
    let prompt = words(&smollm2, "<|im_start|>user\nWhat is the capital of France?<|im_end|>\n<|im_start|>assistant\n");
    let run = |keys, values| {
        let mut session = session(&smollm2, &options().with_kv_types(keys, values));
        let seq = open(&mut session);
        session.sample_with(&seq, &Sampling::greedy(), &prompt).unwrap();
        let logits = feed(&mut session, &seq, &prompt);
        let (mut answer, mut next) = (Vec::new(), session.outputs().token(0).unwrap());
        for _ in 0..8 {
            answer.extend(smollm2.tokenizer().vocab().bytes(next).unwrap());
            wanting(&mut session, &seq, &[next], Want::Token).unwrap();
            next = session.outputs().token(0).unwrap();
        }
        (logits, String::from_utf8_lossy(&answer).into_owned())
    };
    let (exact, _) = run(KvType::F16, KvType::F16);
    for (kind, bound, _) in FORMATS {
        for (keys, values) in [(kind, kind), (kind, KvType::F16), (KvType::F16, kind)] {
            let (logits, answer) = run(keys, values);
            let apart = apart(&exact, &logits);
            println!("keys {keys}, values {values}: {apart:.3} apart, {answer:?}");
            assert!(apart < bound, "keys {keys}, values {values}: {apart} apart");
            assert!(answer.contains("Paris"), "keys {keys}, values {values}: {answer:?}");
        }
    }
}

#[test]
fn a_cache_takes_what_its_numbers_do() {
    let smollm2 = model("smollm2");
    // 256 positions of each of 3 sequences; 30 layers with 3 heads of 64 numbers.
    let numbers = f64::from(256 * 3 * 30 * 3 * 64);
    for (kind, _, bits) in FORMATS {
        for (keys, values) in [(kind, kind), (kind, KvType::F16)] {
            let bits = bits + if values == kind { bits } else { 16.0 };
            let session = session(&smollm2, &options().with_kv_types(keys, values));
            let taken = session.memory().unwrap().context();
            assert_eq!(taken as f64, numbers * bits / 8.0, "keys {keys}, values {values}");
        }
    }
}

#[test]
fn formats_that_do_not_fit_are_refused_before_anything_is_made() {
    let smollm2 = model("smollm2");
    let off = options().with_kv_types(KvType::F16, KvType::Q8_0).with_flash_attention(false);
    let error = smollm2.session(&off).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::InvalidInput);
    assert!(error.to_string().contains("values of q8_0 need flash attention"), "{error}");
    // Keys can do without it.
    let keys = options().with_kv_types(KvType::Q8_0, KvType::F16).with_flash_attention(false);
    let mut session = session(&smollm2, &keys);
    let seq = open(&mut session);
    feed(&mut session, &seq, &words(&smollm2, "The capital"));
    // Heads of 16.
    for kind in [KvType::Q8_0, KvType::Q4_0, KvType::Iq4Nl] {
        let error = model("tiny-llama").session(&options().with_kv_type(kind)).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Unsupported);
        assert!(error.to_string().contains("a head of this model has 16"), "{error}");
    }
}

#[test]
fn a_recurrent_model_uses_a_cell_a_sequence() {
    let model = model("tiny-mamba");
    let mut session = session(&model, &options());
    let (a, b) = (open(&mut session), open(&mut session));
    assert_eq!((session.usage().cells, session.usage().cells_free), (0, 3));
    feed(&mut session, &a, &text(1, 40));
    feed(&mut session, &b, &text(2, 3));
    assert_eq!((session.usage().cells, session.usage().cells_free), (2, 1));
    session.truncate(&b, 0).unwrap();
    assert_eq!(session.usage().cells, 1);
    drop(a);
    assert_eq!((session.usage().cells, session.usage().cells_free), (0, 3));
}
