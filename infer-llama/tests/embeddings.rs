//! Encoders over the linked door, with MiniLM, SmolLM2 and tiny models whose weights are random.

mod kit;

use infer_core::{Encoder as _, EncoderOptions, ErrorKind, Pooling, Special, Token, Tokenizer as _};
use infer_llama::{Encoder, Llama, Model};
use std::{sync::LazyLock, thread, time::Duration};

/// How far numbers of a normalised vector may lie apart. From 64 tokens a pass on the library's attention adds up in `f32`, below in
/// `f16`: that alone moves them by up to 2e-4 in models of 32-bit weights, and by 0.02 in SmolLM2, whose weights have four. On one side of
/// it they are equal but for the order of sums.
const NEAR: f32 = 1e-4;

static MINILM: LazyLock<Model> = LazyLock::new(|| model("minilm"));
static SMOLLM2: LazyLock<Model> = LazyLock::new(|| model("smollm2"));

fn model(name: &str) -> Model {
    Model::open(&Llama::linked().unwrap(), build_support::fixtures::model(name).unwrap()).unwrap()
}

fn tokens(model: &Model, text: &str) -> Vec<Token> {
    let mut tokens = Vec::new();
    model.tokenizer().encode(text, Special::ADD, &mut tokens).unwrap();
    tokens
}

/// Passes below 64 tokens (see [`NEAR`]). One thread: the tests run beside each other, and threads that wait for each other on a
/// busy machine wait for long.
fn options() -> EncoderOptions {
    EncoderOptions::new().with_context(60).with_batch(60).with_threads(1)
}

/// The vectors of each text.
fn encode(encoder: &mut Encoder, texts: &[Vec<Token>]) -> Vec<Vec<Vec<f32>>> {
    let texts: Vec<_> = texts.iter().map(Vec::as_slice).collect();
    encoder.encode(&texts).unwrap();
    let vectors = encoder.vectors();
    (0..vectors.len()).map(|text| vectors.tokens(text).map(<[f32]>::to_vec).collect()).collect()
}

fn embed(model: &Model, options: &EncoderOptions, texts: &[&str]) -> Vec<Vec<f32>> {
    let texts: Vec<_> = texts.iter().map(|text| tokens(model, text)).collect();
    encode(&mut model.encoder(options).unwrap(), &texts).concat()
}

fn apart(a: &[f32], b: &[f32]) -> f32 {
    assert_eq!(a.len(), b.len());
    a.iter().zip(b).map(|(a, b)| (a - b).abs()).fold(0.0, f32::max)
}

fn dot(a: &[f32], b: &[f32]) -> f32 {
    a.iter().zip(b).map(|(a, b)| a * b).sum()
}

/// The numbers are those of the published weights, computed in 64 bits by a program of forty lines over NumPy.
#[test]
fn minilm_gives_what_its_weights_say() {
    let texts = ["The ferry leaves at nine.", "When does the boat go?", "Pears ripen in September."];
    let begin: [[f32; 6]; 3] = [
        [0.059101, 0.004036, 0.052207, -0.009292, 0.044862, 0.070933],
        [0.00232, 0.030421, -0.0206, 0.075133, 0.02344, 0.000065],
        [0.051236, -0.044551, -0.001643, 0.000986, 0.040426, 0.011895],
    ];
    let vectors = embed(&MINILM, &options(), &texts);
    for (vector, begin) in vectors.iter().zip(&begin) {
        assert_eq!(vector.len(), 384);
        assert!(apart(&vector[..6], begin) < 1e-3, "{:?} against {begin:?}", &vector[..6]);
        assert!((dot(vector, vector) - 1.0).abs() < 1e-5);
    }
    let [ferry, boat, pears] = &vectors[..] else { panic!("three texts") };
    for (a, b, cosine) in [(ferry, boat, 0.481389), (ferry, pears, 0.094656), (boat, pears, 0.075111)] {
        assert!((dot(a, b) - cosine).abs() < 2e-3, "{} against {cosine}", dot(a, b));
    }
}

/// Ids that the package's own tokenizer gives (`tokenizers`, without padding).
#[test]
fn minilm_cuts_texts_as_its_own_tokenizer_does() {
    let cases: &[(&str, &[u32])] = &[
        ("The ferry leaves at nine.", &[1996, 7115, 3727, 2012, 3157, 1012]),
        ("", &[]),
        ("  spaces   and\ttabs\n", &[7258, 1998, 21628, 2015]),
        ("Café crème, naïve Ångström", &[7668, 13675, 21382, 1010, 15743, 17076, 15687]),
        ("HELLO World!", &[7592, 2088, 999]),
        ("don't stop-now (really?)", &[2123, 1005, 1056, 2644, 1011, 2085, 1006, 2428, 1029, 1007]),
        (
            "unbelievably antidisestablishmentarianism",
            &[4895, 8671, 2666, 3567, 6321, 3424, 10521, 4355, 7875, 13602, 3672, 12199, 2964],
        ),
        ("1234567 3.14159 0x7f", &[13138, 19961, 2575, 2581, 1017, 1012, 15471, 28154, 1014, 2595, 2581, 2546]),
        ("我想在apple工作", &[1855, 100, 100, 6207, 100, 100]),
        ("日本語のテキスト", &[1864, 1876, 1950, 1671, 30239, 30227, 30233, 30240]),
        ("Привет, мир!", &[1194, 16856, 10325, 25529, 15290, 22919, 1010, 1191, 10325, 16856, 999]),
        ("🦙 llamas", &[100, 2222, 8067, 2015]),
        ("a_b c__d", &[1037, 1035, 1038, 1039, 1035, 1035, 1040]),
        (
            "e-mail@example.com https://x.y/z?q=1",
            &[
                1041, 1011, 5653, 1030, 2742, 1012, 4012, 16770, 1024, 1013, 1013, 1060, 1012, 1061, 1013, 1062, 1029,
                1053, 1027, 1015,
            ],
        ),
        ("Straße GROẞ", &[2358, 27807, 24665, 2080, 19310]),
        ("tab\u{a0}nbsp", &[21628, 1050, 5910, 2361]),
        ("“quotes” – dash…", &[1523, 16614, 1524, 1516, 11454, 1529]),
        ("zero\u{200b}width", &[5717, 9148, 11927, 2232]),
        ("\u{130}stanbul", &[9960]),
    ];
    for (text, ids) in cases {
        let ids: Vec<Token> = [&[101], *ids, &[102]].concat().into_iter().map(Token).collect();
        assert_eq!(tokens(&MINILM, text), ids, "{text:?}");
    }
    // The library decomposes a syllable into its first letter only.
    assert_eq!(
        tokens(&MINILM, "문장"),
        [101, 1459, 30000, 102].map(Token),
        "the package says 1459 30014 30021 30000 30006 30025"
    );
    let mut parsed = Vec::new();
    MINILM.tokenizer().encode("[CLS] [MASK] text", Special { add: true, parse: true }, &mut parsed).unwrap();
    assert_eq!(parsed, [101, 101, 103, 3793, 102].map(Token));
}

#[test]
fn texts_together_are_texts_alone() {
    let words =
        ["a", "ferry leaves", "at nine o'clock", "and the next one", "two hours later,", "if the wind lets it."];
    for (model, pooling) in [
        (&*MINILM, Pooling::Mean),
        (&*MINILM, Pooling::Cls),
        (&model("tiny-bert"), Pooling::Mean),
        (&*SMOLLM2, Pooling::Mean),
        (&*SMOLLM2, Pooling::Last),
        (&model("tiny-gemma3"), Pooling::Last),
        (&model("tiny-mamba"), Pooling::Last),
        (&model("tiny-lfm2"), Pooling::Mean),
    ] {
        let mut texts: Vec<_> =
            (0..12).map(|n| tokens(model, &words[n % 5..=(n * 7 % 6).max(n % 5)].join(" "))).collect();
        // The tiny ones have few pieces longer than a letter.
        texts.iter_mut().for_each(|text| text.truncate(60));
        let mut encoder = model.encoder(&options().with_pooling(pooling)).unwrap();
        let together = encode(&mut encoder, &texts);
        assert!(texts.iter().map(Vec::len).sum::<usize>() > 60, "there is more than one pass");
        assert!(apart(&together[0][0], &together[1][0]) > 0.01, "texts that differ have vectors that do");
        for (text, vectors) in texts.iter().zip(&together) {
            let alone = encode(&mut encoder, std::slice::from_ref(text));
            let apart = apart(&alone[0][0], &vectors[0]);
            assert!(apart < NEAR, "{:?} {pooling:?}: {apart}", model.info().name);
        }
    }
}

#[test]
fn poolings_are_what_they_say_of_the_tokens_vectors() {
    for model in [&*MINILM, &*SMOLLM2] {
        let text = [tokens(model, "The ferry leaves at nine, wind permitting.")];
        let rows = |pooling| {
            let options = options().with_pooling(pooling).with_normalize(false);
            encode(&mut model.encoder(&options).unwrap(), &text).concat()
        };
        let all = rows(Pooling::None);
        assert_eq!(all.len(), text[0].len());
        let mean: Vec<f32> =
            (0..all[0].len()).map(|column| all.iter().map(|row| row[column]).sum::<f32>() / all.len() as f32).collect();
        for (pooling, expected) in
            [(Pooling::Mean, &mean), (Pooling::Cls, &all[0]), (Pooling::Last, &all[all.len() - 1])]
        {
            let largest = expected.iter().fold(1.0_f32, |most, number| most.max(number.abs()));
            let apart = apart(&rows(pooling)[0], expected);
            assert!(apart < NEAR * largest, "{pooling:?}: {apart} of {largest}");
        }
    }
}

#[test]
fn a_classifier_gives_a_score_a_label_and_compares_two_texts() {
    let rank = model("tiny-rank");
    let mut encoder = rank.encoder(&options()).unwrap();
    assert_eq!(encoder.info().labels, ["negative", "neutral", "positive"]);
    assert_eq!((encoder.info().pooling, encoder.info().width), (Pooling::Rank, 3));
    let mut pair = Vec::new();
    encoder.pair("one", "two", &mut pair).unwrap();
    let (one, two) = (tokens(&rank, "one"), tokens(&rank, "two"));
    assert_eq!(pair, [&one[..], &two[1..]].concat(), "[CLS] one [SEP] two [SEP]");
    let scores = encode(&mut encoder, &[pair, one, two]).concat();
    assert!(scores.iter().all(|scores| scores.iter().all(|score| score.is_finite())));
    assert!(apart(&scores[0], &scores[1]) > 1e-3 && apart(&scores[1], &scores[2]) > 1e-3, "{scores:?}");
}

#[test]
fn what_a_model_was_not_made_for_is_said() {
    for model in [&*SMOLLM2, &*MINILM] {
        let error = model.encoder(&options().with_pooling(Pooling::Rank)).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Unsupported);
        assert!(error.to_string().contains("classification head"), "{error}");
    }
    assert_eq!(SMOLLM2.encoder(&options()).unwrap_err().kind(), ErrorKind::InvalidInput);
    // There is a learned vector for each of 512 positions, and none beyond.
    assert_eq!(MINILM.encoder(&options().with_context(513)).unwrap_err().kind(), ErrorKind::InvalidInput);
    let mut encoder = MINILM.encoder(&EncoderOptions::new().with_threads(1)).unwrap();
    assert_eq!(encoder.info().context, 512);
    let error = encoder.encode(&[&vec![Token(1996); 513]]).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::InvalidInput);
}

#[test]
fn an_interrupt_ends_the_work_and_the_encoder_goes_on() {
    let mut encoder = MINILM.encoder(&EncoderOptions::new().with_threads(1)).unwrap();
    let text = tokens(&MINILM, "The ferry leaves at nine.");
    let before = encode(&mut encoder, std::slice::from_ref(&text));
    // Minutes of work.
    let long = vec![vec![Token(1996); 512]; 1000];
    let long: Vec<_> = long.iter().map(Vec::as_slice).collect();
    let interrupt = encoder.interrupt();
    let error = thread::scope(|scope| {
        scope.spawn(|| {
            thread::sleep(Duration::from_millis(100));
            interrupt.raise();
        });
        encoder.encode(&long).unwrap_err()
    });
    assert_eq!(error.kind(), ErrorKind::Cancelled);
    assert!(encoder.vectors().is_empty());
    interrupt.lower();
    assert_eq!(encode(&mut encoder, &[text]), before);
}

#[test]
fn what_is_not_numbers_is_an_error() {
    let folder = test_kit::Folder::new();
    let mut gguf = build_support::tiny::bert();
    let table = gguf.tensors.iter_mut().find(|tensor| tensor.name == "token_embd.weight").unwrap();
    assert_eq!(table.dtype, 0, "of 32 bits");
    // A number of token 7.
    let at = 7 * table.shape[0] as usize * 4;
    table.data[at..at + 4].copy_from_slice(&f32::NAN.to_le_bytes());
    let model = Model::open(&Llama::linked().unwrap(), folder.file("nan.gguf", &gguf.bytes())).unwrap();
    for pooling in [Pooling::Mean, Pooling::None] {
        let mut encoder = model.encoder(&options().with_pooling(pooling)).unwrap();
        let error = encoder.encode(&[&[Token(5)], &[Token(7)]]).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Runtime);
        assert!(error.to_string().contains("not numbers"), "{error}");
        assert!(encoder.vectors().is_empty());
        encoder.encode(&[&[Token(5)]]).unwrap();
    }
}
