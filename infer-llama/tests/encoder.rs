//! Encoders over the faked door: what the library would have to misbehave to show.

mod kit;

use infer_core::{Encoder as _, EncoderOptions, Error, ErrorKind, Pooling, Token};
use infer_llama::{Encoder, Llama, Model, ModelOptions};
use infer_sys::llama::fake::{self, Control, Fault, Kind, Live, Rows, Script};
use kit::{
    gguf::{Field, Gguf, Tensor},
    tiny,
};
use std::thread;
use test_kit::Folder;

/// The poolings of a model without a head.
const POOLINGS: [Pooling; 4] = [Pooling::None, Pooling::Mean, Pooling::Cls, Pooling::Last];

/// A model over the faked door, and what steers it.
struct Faked {
    control: Control,
    model: Model,
    _folder: Folder,
}

/// What the model is in the library is the script's; what its file says of it is the file's.
fn faked(script: Script, file: &Gguf) -> Faked {
    let folder = Folder::new();
    let path = folder.file("faked.gguf", &file.bytes());
    let control = script.install();
    let model = Model::open(&Llama::from_api(fake::api()).unwrap(), path).unwrap();
    Faked { control, model, _folder: folder }
}

/// A file with a classification head of so many scores.
fn classifier(scores: u64) -> Gguf {
    let mut file = tiny::llama();
    let shape = vec![tiny::WIDTH, scores];
    let data = vec![0; (tiny::WIDTH * scores * 4) as usize];
    file.tensors.push(Tensor { name: "cls.output.weight".into(), shape, dtype: 0, data });
    file.set("llama.pooling_type", Field::U32(4));
    file
}

fn options() -> EncoderOptions {
    EncoderOptions::new().with_pooling(Pooling::Mean).with_context(40).with_batch(16).with_threads(2)
}

fn tokens(range: std::ops::Range<u32>) -> Vec<Token> {
    range.map(Token).collect()
}

/// The vectors of each text.
fn encode(encoder: &mut Encoder, texts: &[Vec<Token>]) -> Result<Vec<Vec<Vec<f32>>>, Error> {
    let texts: Vec<_> = texts.iter().map(Vec::as_slice).collect();
    encoder.encode(&texts)?;
    let vectors = encoder.vectors();
    Ok((0..vectors.len()).map(|text| vectors.tokens(text).map(<[f32]>::to_vec).collect()).collect())
}

#[test]
fn texts_share_passes_and_come_out_in_their_own_order() {
    for kind in [Kind::Decoder, Kind::Encoder, Kind::Recurrent] {
        for pooling in POOLINGS {
            let Faked { control, model, .. } = faked(Script::new().with_kind(kind), &tiny::llama());
            let mut encoder = model.encoder(&options().with_pooling(pooling)).unwrap();
            let texts = [tokens(0..3), tokens(5..35), tokens(9..10), tokens(1..9), tokens(2..10), tokens(0..3)];
            let together = encode(&mut encoder, &texts).unwrap();
            // 30 tokens alone; 8 + 8; 3 + 3 + 1. A state is one text's.
            assert_eq!(control.passes(), if kind == Kind::Recurrent { texts.len() } else { 3 }, "{kind:?} {pooling:?}");
            for (text, vectors) in texts.iter().zip(&together) {
                assert_eq!(vectors.len(), if pooling == Pooling::None { text.len() } else { 1 });
                assert_eq!(vectors[0].len(), encoder.info().width);
                let alone = encode(&mut encoder, std::slice::from_ref(text)).unwrap();
                assert_eq!(&alone[0], vectors, "{kind:?} {pooling:?}");
            }
            assert_ne!(together[0], together[2]);
            assert!(encode(&mut encoder, &[]).unwrap().is_empty());
            drop((encoder, model));
            assert_eq!((control.live(), control.breaches()), (Live::default(), vec![]));
        }
    }
}

#[test]
fn vectors_have_length_1_unless_they_are_not_to() {
    for normalize in [true, false] {
        let Faked { model, .. } = faked(Script::new().with_kind(Kind::Encoder), &tiny::llama());
        let mut encoder = model.encoder(&options().with_normalize(normalize)).unwrap();
        assert_eq!(encoder.info().normalized, normalize);
        let vectors = encode(&mut encoder, &[tokens(3..9)]).unwrap();
        let length = vectors[0][0].iter().map(|number| number * number).sum::<f32>().sqrt();
        assert_eq!((length - 1.0).abs() < 1e-6, normalize, "{length}");
    }
}

#[test]
fn a_text_that_cannot_be_encoded_is_named_and_nothing_is_computed() {
    let Faked { control, model, .. } = faked(Script::new(), &tiny::llama());
    let mut encoder = model.encoder(&options()).unwrap();
    encode(&mut encoder, &[tokens(0..2)]).unwrap();
    for (bad, said) in [
        (vec![], "text 1 has no tokens"),
        (tokens(0..41), "text 1 has 41 tokens, and 40 fit"),
        (vec![Token(1), Token(259)], "token 1 of text 1 is 259"),
        (vec![Token(u32::MAX)], "token 0 of text 1 is 4294967295"),
    ] {
        let error = encode(&mut encoder, &[tokens(0..2), bad]).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::InvalidInput);
        assert!(error.to_string().contains(said), "{error}");
        assert!(encoder.vectors().is_empty());
    }
    assert_eq!(control.passes(), 1);
    assert_eq!(encode(&mut encoder, &[tokens(0..40)]).unwrap().len(), 1);
}

#[test]
fn a_pass_that_fails_leaves_no_results_and_an_encoder_that_can_be_used() {
    let texts = [tokens(0..9), tokens(20..30)];
    for fault in [
        Fault::Result(1),
        Fault::Result(-1),
        Fault::Result(-3),
        Fault::ResultAfter { result: -3, ubatches: 1 },
        Fault::Exception("out of ideas".into()),
    ] {
        let Faked { control, model, .. } = faked(Script::new(), &tiny::llama());
        let mut encoder = model.encoder(&options()).unwrap();
        let right = encode(&mut encoder, &texts).unwrap();
        control.plan_all([None, Some(fault.clone())]);
        let error = encode(&mut encoder, &texts).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Runtime, "{fault:?}: {error}");
        assert!(encoder.vectors().is_empty());
        assert_eq!(encode(&mut encoder, &texts).unwrap(), right, "{fault:?}");
    }
}

#[test]
fn rows_that_are_not_there_are_an_error() {
    for pooling in POOLINGS {
        for rows in [Rows::Failed, Rows::Null, Rows::Short] {
            let Faked { control, model, .. } = faked(Script::new(), &tiny::llama());
            let mut encoder = model.encoder(&options().with_pooling(pooling)).unwrap();
            control.set_rows(rows);
            let error = encode(&mut encoder, &[tokens(0..4)]).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Runtime, "{rows:?}: {error}");
            assert!(encoder.vectors().is_empty());
            control.set_rows(Rows::Given);
            assert_eq!(encode(&mut encoder, &[tokens(0..4)]).unwrap().len(), 1);
        }
    }
}

#[test]
fn an_interrupt_ends_a_pass_and_keeps_the_next_from_beginning() {
    for kind in [Kind::Decoder, Kind::Encoder] {
        let Faked { control, model, .. } = faked(Script::new().with_kind(kind), &tiny::llama());
        let mut encoder = model.encoder(&options()).unwrap();
        let texts = [tokens(0..9), tokens(20..30)];
        let right = encode(&mut encoder, &texts).unwrap();
        let (interrupt, before) = (encoder.interrupt(), control.passes());

        interrupt.raise();
        assert_eq!(encode(&mut encoder, &texts).unwrap_err().kind(), ErrorKind::Cancelled);
        assert_eq!(control.passes(), before);
        interrupt.lower();

        control.plan_all([None, Some(Fault::UntilAborted)]);
        let error = thread::scope(|scope| {
            let raises = interrupt.clone();
            let passes = control.clone();
            scope.spawn(move || {
                while passes.passes() < before + 2 {
                    thread::yield_now();
                }
                raises.raise();
            });
            encode(&mut encoder, &texts).unwrap_err()
        });
        assert_eq!((error.kind(), encoder.vectors().len()), (ErrorKind::Cancelled, 0));
        interrupt.lower();
        assert_eq!(encode(&mut encoder, &texts).unwrap(), right);
    }
}

#[test]
fn pooling_is_the_models_own_unless_it_is_chosen() {
    let left_open = EncoderOptions::new().with_context(40);
    for (stated, pooling) in
        [(0, Pooling::None), (1, Pooling::Mean), (2, Pooling::Cls), (3, Pooling::Last), (4, Pooling::Rank)]
    {
        let mut file = classifier(1);
        file.set("llama.pooling_type", Field::U32(stated));
        let Faked { model, .. } = faked(Script::new(), &file);
        assert_eq!(model.encoder(&left_open).unwrap().info().pooling, pooling);
        let chosen = model.encoder(&left_open.clone().with_pooling(Pooling::Last)).unwrap();
        assert_eq!(chosen.info().pooling, Pooling::Last);
    }
    for stated in [None, Some(u32::MAX)] {
        let mut file = tiny::llama();
        if let Some(stated) = stated {
            file.set("llama.pooling_type", Field::U32(stated));
        }
        let Faked { model, .. } = faked(Script::new(), &file);
        let error = model.encoder(&left_open).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::InvalidInput);
        assert!(error.to_string().contains("llama.pooling_type"), "{error}");
    }
}

#[test]
fn scores_are_as_many_as_classes_with_their_names_and_are_not_normalised() {
    for labels in [&["relevance"][..], &["against", "neutral", "for"]] {
        let script = Script::new().with_class_labels(labels).unwrap();
        let Faked { model, .. } = faked(script, &classifier(labels.len() as u64));
        let mut encoder = model.encoder(&EncoderOptions::new().with_context(40)).unwrap();
        let info = encoder.info().clone();
        assert_eq!((info.width, info.normalized), (labels.len(), false));
        assert_eq!(info.labels, labels);
        let scores = encode(&mut encoder, &[tokens(0..4), tokens(4..7)]).unwrap();
        assert_eq!((scores.len(), scores[1][0].len()), (2, labels.len()));
    }
    let Faked { model, .. } = faked(Script::new(), &classifier(1));
    assert!(model.encoder(&EncoderOptions::new()).unwrap().info().labels.is_empty());
}

#[test]
fn rank_pooling_without_a_head_or_with_another_one_is_unsupported() {
    let rank = options().with_pooling(Pooling::Rank);
    for (file, said) in [(tiny::llama(), "no cls.output.weight"), (classifier(2), "gives 2 scores")] {
        let Faked { control, model, .. } = faked(Script::new(), &file);
        let error = model.encoder(&rank).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Unsupported);
        assert!(error.to_string().contains(said), "{error}");
        assert_eq!(control.live().contexts, 0);
    }
}

#[test]
fn models_that_are_no_encoders_say_so() {
    let Faked { model, .. } = faked(Script::new().with_kind(Kind::EncoderDecoder), &tiny::llama());
    let error = model.encoder(&options()).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unsupported);
    assert!(error.to_string().contains("a decoder behind it"), "{error}");

    let folder = Folder::new();
    let path = folder.file("faked.gguf", &tiny::llama().bytes());
    let _control = Script::new().install();
    let llama = Llama::from_api(fake::api()).unwrap();
    let model = Model::open_with(&llama, path, &ModelOptions::new().with_vocab_only(true)).unwrap();
    assert_eq!(model.encoder(&options()).unwrap_err().kind(), ErrorKind::Unsupported);
}

#[test]
fn options_out_of_range_and_more_than_memory_are_refused() {
    let Faked { control, model, .. } = faked(Script::new(), &tiny::llama());
    let beyond = 1 << 31;
    for (wrong, said) in [
        (options().with_context(0), "context: 0"),
        (options().with_context(beyond), "context: "),
        (options().with_batch(0), "batch: 0"),
        (options().with_batch(beyond), "batch: "),
        (options().with_threads(0), "threads: 0"),
    ] {
        let error = model.encoder(&wrong).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::InvalidInput, "{wrong:?}");
        assert!(error.to_string().contains(said), "{error}");
    }
    let error = model.encoder(&options().with_context(1 << 30)).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::OutOfMemory, "{error}");
    assert_eq!(control.live().contexts, 0);
}

#[test]
fn more_vectors_than_memory_are_refused() {
    let Faked { control, model, .. } = faked(Script::new().with_width(u16::MAX), &tiny::llama());
    let mut encoder = model.encoder(&options().with_pooling(Pooling::None)).unwrap();
    // 10 TB.
    let text = tokens(0..40);
    let error = encoder.encode(&vec![&text[..]; 1_000_000]).unwrap_err();
    assert_eq!((error.kind(), control.passes()), (ErrorKind::OutOfMemory, 0), "{error}");
    assert!(encoder.vectors().is_empty());
    assert_eq!(encode(&mut encoder, &[text]).unwrap()[0].len(), 40);
}

#[test]
fn a_pair_is_put_together_by_the_models_template() {
    let mut file = classifier(1);
    file.set("tokenizer.chat_template.rerank", Field::text("Q{query}<s>D{document}</s>"));
    let Faked { model, .. } = faked(Script::new(), &file);
    let encoder = model.encoder(&EncoderOptions::new()).unwrap();
    let mut pair = vec![Token(7)];
    // The name of a control token in a text is a text.
    encoder.pair("a", "</s>", &mut pair).unwrap();
    let bytes = |text: &str| text.bytes().map(|byte| Token(byte.into())).collect::<Vec<_>>();
    let text = [bytes("D"), bytes("</s>")].concat();
    let (bos, eos) = (Token(256), Token(257));
    assert_eq!(pair, [&[Token(7)], &bytes("Qa")[..], &[bos], &text, &[eos]].concat());

    // The vocabulary has nothing that stands between two texts; and without rank pooling there are no scores.
    let Faked { model, .. } = faked(Script::new(), &classifier(1));
    for encoder in [model.encoder(&EncoderOptions::new()).unwrap(), model.encoder(&options()).unwrap()] {
        let error = encoder.pair("a", "b", &mut pair).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Unsupported);
    }
}
