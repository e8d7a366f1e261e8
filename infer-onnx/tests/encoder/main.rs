//! Encoders with real graphs: MiniLM, and small ones with random weights.

use build_support::{fixtures, tiny};
use infer_core::{Encoder as _, EncoderOptions, Error, ErrorKind, Pooling, Special, Token, Tokenizer as _};
use infer_onnx::{Encoder, GraphOptions, LoadOptions, Model, ModelOptions, Onnx};
use std::{
    fmt::Write as _,
    path::Path,
    sync::{Arc, Mutex},
};
use test_kit::{Folder, Listener};

/// How far numbers may lie apart that were computed beside other texts.
const NEAR: f32 = 1e-5;

fn open(path: impl AsRef<Path>) -> Model {
    Model::open(&Onnx::load(&LoadOptions::new()).unwrap(), path).unwrap()
}

fn fixture(name: &str) -> Model {
    open(fixtures::model(name).expect("`cargo xtask setup` brings it"))
}

fn options() -> EncoderOptions {
    EncoderOptions::new().with_threads(1)
}

/// Texts of these lengths: the first is short, the next long, and so on.
fn texts(lengths: &[u32]) -> Vec<Vec<Token>> {
    let text = |(place, &length): (usize, &u32)| {
        (0..length).map(|at| Token((place as u32 * 31 + at * at * 7) % 90 + 20)).collect()
    };
    lengths.iter().enumerate().map(text).collect()
}

/// The vectors of each text.
fn encode(encoder: &mut Encoder, texts: &[Vec<Token>]) -> Result<Vec<Vec<Vec<f32>>>, Error> {
    encoder.encode(&texts.iter().map(Vec::as_slice).collect::<Vec<_>>())?;
    let vectors = encoder.vectors();
    Ok((0..vectors.len()).map(|text| vectors.tokens(text).map(<[f32]>::to_vec).collect()).collect())
}

fn apart(a: &[f32], b: &[f32]) -> f32 {
    assert_eq!(a.len(), b.len());
    a.iter().zip(b).map(|(a, b)| (a - b).abs()).fold(0.0, f32::max)
}

#[test]
fn texts_share_passes_and_come_out_in_their_own_order() {
    let model = fixture("tiny-onnx-encoder");
    let texts = texts(&[3, 40, 1, 8, 9, 3, 17, 40, 2, 33, 5, 8]);
    for batch in [1, 24, 64, 512] {
        let mut encoder = model.encoder(&options().with_batch(batch)).unwrap();
        let together = encode(&mut encoder, &texts).unwrap();
        for (text, vectors) in texts.iter().zip(&together) {
            let alone = encode(&mut encoder, std::slice::from_ref(text)).unwrap();
            let apart = apart(&alone[0][0], &vectors[0]);
            assert!(apart < NEAR, "passes of {batch} tokens, {} in the text: {apart}", text.len());
        }
        assert!(apart(&together[0][0], &together[5][0]) > 100.0 * NEAR, "other texts have other vectors");
        assert!(encode(&mut encoder, &[]).unwrap().is_empty());
    }
}

/// With as many threads as passes can use, twice: the graph is loaded for it the first time.
#[test]
fn passes_side_by_side_give_what_they_give_one_by_one() {
    let model = fixture("tiny-onnx-encoder");
    let texts = texts(&[3, 40, 1, 8, 9, 3, 17, 40, 2, 33, 5, 8]);
    for pooling in [Pooling::Mean, Pooling::None] {
        let options = options().with_batch(24).with_pooling(pooling).with_normalize(false);
        let mut encoder = model.encoder(&options).unwrap();
        let mut side_by_side = model.encoder(&options.with_threads(2)).unwrap();
        let one_by_one = encode(&mut encoder, &texts).unwrap();
        for _ in 0..2 {
            let found = encode(&mut side_by_side, &texts).unwrap();
            for (text, (found, wanted)) in found.iter().zip(&one_by_one).enumerate() {
                assert_eq!(found.len(), wanted.len());
                let apart = found.iter().zip(wanted).map(|(a, b)| apart(a, b)).fold(0.0, f32::max);
                assert!(apart < NEAR, "{pooling:?} of text {text}: {apart}");
            }
        }
        let interrupt = side_by_side.interrupt();
        interrupt.raise();
        assert_eq!(encode(&mut side_by_side, &texts).unwrap_err().kind(), ErrorKind::Cancelled);
        assert!(side_by_side.vectors().is_empty());
        interrupt.lower();
        assert_eq!(encode(&mut side_by_side, &texts).unwrap().len(), texts.len());
    }
}

/// What a model's encoder gives for texts, with this library's own kernels or without, and what is logged of them meanwhile.
fn with_kernels(
    path: impl AsRef<Path>,
    are_own: bool,
    options: &EncoderOptions,
    texts: &[Vec<Token>],
) -> (Vec<Vec<f32>>, String) {
    let graph = GraphOptions::new().with_own_kernels(are_own);
    let onnx = Onnx::load(&LoadOptions::new()).unwrap();
    let model = Model::open_with(&onnx, path, &ModelOptions::new().with_graph(graph)).unwrap();
    let said = Arc::new(Mutex::new(String::new()));
    let heard = said.clone();
    let listener = Listener::new(move |event| {
        let text = test_kit::text(event);
        if text.contains("operators of") || text.contains("kernels") {
            writeln!(heard.lock().unwrap(), "{text}").unwrap();
        }
    });
    let vectors = tracing::subscriber::with_default(listener, || {
        encode(&mut model.encoder(options).unwrap(), texts).unwrap().into_iter().map(|mut vectors| vectors.remove(0))
    });
    let said = said.lock().unwrap().clone();
    (vectors.collect(), said)
}

/// On texts of many lengths, in passes one by one and side by side.
#[test]
fn own_kernels_compute_what_the_runtimes_do() {
    let texts = texts(&[3, 40, 1, 8, 9, 3, 17, 60, 2, 33, 5, 8]);
    for (name, operators) in [("minilm-onnx", 42), ("tiny-onnx-encoder", 14), ("tiny-onnx-classifier", 14)] {
        let path = fixtures::model(name).expect("`cargo xtask setup` brings it");
        for threads in [1, 2] {
            let options = options().with_threads(threads).with_batch(64).with_normalize(false);
            let (own, said) = with_kernels(&path, true, &options, &texts);
            let (theirs, silence) = with_kernels(&path, false, &options, &texts);
            assert_eq!(silence, "");
            assert!(said.lines().all(|line| line.starts_with(&format!("{operators} operators of"))), "{name}: {said}");
            assert_eq!(
                said.lines().count(),
                threads,
                "{name}: a graph for passes of all threads, and one for passes side by side"
            );
            for (text, (own, theirs)) in own.iter().zip(&theirs).enumerate() {
                let apart = apart(own, theirs);
                assert!(apart < NEAR, "{name}, {threads} threads, text {text}: {apart}");
            }
        }
    }
}

/// As caches of model hubs keep them: files that are links to others of other names.
#[cfg(unix)]
#[test]
fn a_model_that_is_a_link_has_own_kernels_too() {
    let folder = Folder::new();
    let texts = texts(&[3, 8]);
    let real = fixtures::model("tiny-onnx-encoder").expect("`cargo xtask setup` brings it");
    for (number, file) in std::fs::read_dir(&real).unwrap().enumerate() {
        let file = file.unwrap();
        if file.file_type().unwrap().is_file() {
            let blob = folder.path().join(format!("blob-{number}"));
            std::fs::copy(file.path(), &blob).unwrap();
            std::fs::create_dir_all(folder.path().join("model")).unwrap();
            std::os::unix::fs::symlink(blob, folder.path().join("model").join(file.file_name())).unwrap();
        }
    }
    let options = options().with_pooling(Pooling::Mean);
    let (own, said) = with_kernels(folder.path().join("model"), true, &options, &texts);
    assert!(said.starts_with("14 operators of"), "{said}");
    let (theirs, _) = with_kernels(real, false, &options, &texts);
    assert!(own.iter().zip(&theirs).all(|(own, theirs)| apart(own, theirs) < NEAR));
}

#[test]
fn poolings_are_of_the_hidden_states_of_a_texts_own_tokens() {
    let model = fixture("tiny-onnx-encoder");
    let texts = texts(&[5, 23, 1, 12]);
    let options = options().with_normalize(false);
    let mut plain = model.encoder(&options.clone().with_pooling(Pooling::None)).unwrap();
    // One text a pass: without padding.
    let states: Vec<_> =
        texts.iter().map(|text| encode(&mut plain, std::slice::from_ref(text)).unwrap().remove(0)).collect();
    let column = |states: &[Vec<f32>], place: usize| states.iter().map(|state| state[place]).collect::<Vec<_>>();
    for pooling in [Pooling::None, Pooling::Mean, Pooling::Cls, Pooling::Last, Pooling::Max] {
        let mut encoder = model.encoder(&options.clone().with_pooling(pooling)).unwrap();
        assert_eq!((encoder.info().pooling, encoder.info().normalized), (pooling, false));
        for (states, vectors) in states.iter().zip(encode(&mut encoder, &texts).unwrap()) {
            let pooled = |pool: &dyn Fn(&[f32]) -> f32| {
                (0..states[0].len()).map(|place| pool(&column(states, place))).collect::<Vec<_>>()
            };
            let wanted = match pooling {
                Pooling::None => states.clone(),
                Pooling::Mean => vec![pooled(&|column| column.iter().sum::<f32>() / column.len() as f32)],
                Pooling::Max => vec![pooled(&|column| column.iter().copied().fold(f32::NEG_INFINITY, f32::max))],
                Pooling::Cls => vec![states[0].clone()],
                _ => vec![states[states.len() - 1].clone()],
            };
            assert_eq!(vectors.len(), wanted.len());
            for (vector, wanted) in vectors.iter().zip(&wanted) {
                assert!(apart(vector, wanted) < NEAR, "{pooling:?} of {}: {}", states.len(), apart(vector, wanted));
            }
        }
    }
}

#[test]
fn an_encoder_is_as_its_files_say() {
    let model = fixture("minilm-onnx");
    let mut encoder = model.encoder(&options()).unwrap();
    let info = encoder.info().clone();
    assert_eq!((info.pooling, info.width, info.normalized, info.context), (Pooling::Mean, 384, true, 256));
    assert!(info.labels.is_empty() && info.texts > 1 && info.batch > 1);
    let mut tokens = Vec::new();
    model.tokenizer().encode("The ferry leaves at nine.", Special::ADD, &mut tokens).unwrap();
    assert_eq!(tokens.len(), 8);
    let vector = encode(&mut encoder, &[tokens]).unwrap().remove(0).remove(0);
    let length = vector.iter().map(|number| number * number).sum::<f32>().sqrt();
    assert!((length - 1.0).abs() < 1e-5, "{length}");
    // It has positions for longer ones than it was trained with.
    assert_eq!(model.encoder(&options().with_context(512)).unwrap().info().context, 512);
}

#[test]
fn a_classifier_scores_its_labels() {
    let model = fixture("tiny-onnx-classifier");
    let mut encoder = model.encoder(&options()).unwrap();
    let info = encoder.info().clone();
    assert_eq!((info.pooling, info.width, info.normalized), (Pooling::Rank, tiny::LABELS.len(), false));
    assert_eq!(info.labels, tiny::LABELS);
    let texts = texts(&[4, 9]);
    let scores = encode(&mut encoder, &texts).unwrap();
    assert!(apart(&scores[0][0], &scores[1][0]) > NEAR);

    // What a query and a document become is a text of its own, whose halves the graph is told apart.
    let mut pair = vec![Token(7)];
    encoder.pair("one", "two", &mut pair).unwrap();
    let pair = pair.split_off(1);
    let (mut first, mut second) = (Vec::new(), Vec::new());
    model.tokenizer().encode("one", Special::ADD, &mut first).unwrap();
    model.tokenizer().encode("two", Special::NONE, &mut second).unwrap();
    let separator = *first.last().unwrap();
    assert_eq!(pair, [&first[..], &second, &[separator]].concat());
    encode(&mut encoder, &[pair]).unwrap();

    for pooling in [Pooling::Mean, Pooling::Model] {
        let error = model.encoder(&options().with_pooling(pooling)).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Unsupported);
        assert!(error.to_string().contains("the graph gives `logits`"), "{error}");
    }
    let error = fixture("tiny-onnx-encoder").encoder(&options().with_pooling(Pooling::Rank)).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unsupported);
    let encoder = fixture("tiny-onnx-encoder").encoder(&options()).unwrap();
    assert_eq!(encoder.pair("one", "two", &mut Vec::new()).unwrap_err().kind(), ErrorKind::Unsupported);
}

#[test]
fn what_cannot_be_encoded_is_named_and_the_encoder_goes_on() {
    let model = fixture("tiny-onnx-encoder");
    let mut encoder = model.encoder(&options().with_context(40)).unwrap();
    let good = texts(&[6]).remove(0);
    let right = encode(&mut encoder, std::slice::from_ref(&good)).unwrap();
    for (bad, said) in [
        (vec![], "text 1 has no tokens"),
        (vec![good[0]; 41], "text 1 has 41 tokens, and 40 fit"),
        (vec![Token(u32::MAX)], "token 0 of text 1 is 4294967295"),
    ] {
        let error = encode(&mut encoder, &[good.clone(), bad]).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::InvalidInput);
        assert!(error.to_string().contains(said), "{error}");
        assert!(encoder.vectors().is_empty());
        assert_eq!(encode(&mut encoder, std::slice::from_ref(&good)).unwrap(), right);
    }
    for (wrong, said) in [
        (options().with_context(0), "context: 0"),
        (options().with_context(1 << 20), "positions for "),
        (options().with_batch(0), "batch: 0"),
        (options().with_threads(0), "threads: 0"),
    ] {
        let error = model.encoder(&wrong).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::InvalidInput, "{wrong:?}");
        assert!(error.to_string().contains(said), "{error}");
    }
}

#[test]
fn an_interrupt_keeps_passes_from_beginning_until_it_is_lowered() {
    let mut encoder = fixture("tiny-onnx-encoder").encoder(&options()).unwrap();
    let texts = texts(&[9, 4]);
    let right = encode(&mut encoder, &texts).unwrap();
    let interrupt = encoder.interrupt();
    std::thread::spawn(move || interrupt.raise()).join().unwrap();
    assert_eq!(encode(&mut encoder, &texts).unwrap_err().kind(), ErrorKind::Cancelled);
    assert!(encoder.vectors().is_empty());
    encoder.interrupt().lower();
    assert_eq!(encode(&mut encoder, &texts).unwrap(), right);
}

/// A pass of MiniLM over long texts takes far longer than it takes to raise it.
#[test]
fn an_interrupt_ends_a_pass_that_runs() {
    let mut encoder = fixture("minilm-onnx").encoder(&options().with_context(512).with_batch(1 << 16)).unwrap();
    let texts = texts(&[512; 64]);
    let interrupt = encoder.interrupt();
    let (begin, begun) = std::sync::mpsc::channel();
    let raises = std::thread::spawn(move || {
        begun.recv().unwrap();
        std::thread::sleep(std::time::Duration::from_millis(50));
        interrupt.raise();
    });
    begin.send(()).unwrap();
    let error = encode(&mut encoder, &texts).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Cancelled, "{error}");
    raises.join().unwrap();
    encoder.interrupt().lower();
    assert_eq!(encode(&mut encoder, &texts[..1]).unwrap().len(), 1);
}

/// Two passes, both of which run by then: none is left that would not be begun.
#[test]
fn an_interrupt_ends_all_passes_that_run_side_by_side() {
    const TEXTS: usize = 16;
    let options = options().with_context(512).with_batch(TEXTS * 512).with_threads(2);
    let mut encoder = fixture("minilm-onnx").encoder(&options).unwrap();
    // The graph is loaded for passes side by side now, and not while the clock runs.
    assert_eq!(encode(&mut encoder, &texts(&[[512; TEXTS].as_slice(), &[1]].concat())).unwrap().len(), TEXTS + 1);
    let interrupt = encoder.interrupt();
    let raises = std::thread::spawn(move || {
        std::thread::sleep(std::time::Duration::from_millis(50));
        interrupt.raise();
    });
    let error = encode(&mut encoder, &texts(&[512; 2 * TEXTS])).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Cancelled, "{error}");
    assert!(encoder.vectors().is_empty());
    raises.join().unwrap();
    encoder.interrupt().lower();
    assert_eq!(encode(&mut encoder, &texts(&[512])).unwrap().len(), 1);
}

#[test]
fn files_that_do_not_fit_are_named() {
    let original = fixtures::model("tiny-onnx-encoder").unwrap();
    let copy = Folder::copy_of(&original);
    copy.remove("1_Pooling/config.json");
    let error = open(copy.path()).encoder(&options()).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::InvalidInput);
    assert!(error.to_string().contains("1_Pooling/config.json"), "{error}");
    assert_eq!(open(copy.path()).encoder(&options().with_pooling(Pooling::Cls)).unwrap().info().pooling, Pooling::Cls);

    for (file, text, kind, said) in [
        ("1_Pooling/config.json", "{", ErrorKind::InvalidModel, "1_Pooling/config.json"),
        (
            "1_Pooling/config.json",
            r#"{"pooling_mode_mean_tokens": true, "pooling_mode_max_tokens": true}"#,
            ErrorKind::Unsupported,
            "`max_tokens` with `mean_tokens`",
        ),
        (
            "modules.json",
            r#"[{"type": "sentence_transformers.models.Dense", "path": "2_Dense"}]"#,
            ErrorKind::Unsupported,
            "`Dense`",
        ),
        (
            "modules.json",
            r#"[{"type": "x.Pooling", "path": "../1_Pooling"}]"#,
            ErrorKind::InvalidModel,
            "outside the folder",
        ),
    ] {
        let copy = Folder::copy_of(&original);
        copy.file(file, text);
        let error = open(copy.path()).encoder(&options()).unwrap_err();
        assert_eq!(error.kind(), kind, "{error}");
        assert!(error.to_string().contains(said), "{error}");
    }

    let copy = Folder::copy_of(fixtures::model("tiny-onnx-classifier").unwrap());
    copy.file("config.json", r#"{"model_type": "bert", "id2label": {"0": "a", "1": "b"}}"#);
    let error = open(copy.path()).encoder(&options()).unwrap_err();
    assert!(error.to_string().contains("names 2"), "{error}");
}

#[test]
fn a_decoder_is_no_encoder() {
    let error = fixture("tiny-onnx").encoder(&options().with_pooling(Pooling::Mean)).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unsupported, "{error}");
}

#[test]
fn an_encoder_can_be_sent() {
    let mut encoder = fixture("tiny-onnx-encoder").encoder(&options()).unwrap();
    let texts = texts(&[9, 4]);
    let right = encode(&mut encoder, &texts).unwrap();
    let elsewhere = std::thread::spawn(move || encode(&mut encoder, &texts).unwrap()).join().unwrap();
    assert_eq!(elsewhere, right);
}
