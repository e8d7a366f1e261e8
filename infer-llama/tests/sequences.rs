//! What a sequence can do beside growing: positions moved, tokens scored, hidden states given; and the number formats of its cache.

mod kit;
#[path = "kit/linked.rs"]
mod linked;

use infer_core::{
    Batch, Error, ErrorKind, KvLayout, Sampling, Sequence, Session as _, Special, Token, Tokenizer as _, Want,
};
use infer_llama::{KvType, Model, Session, SessionOptions};
use linked::{LAYOUTS, NEAR, alone, apart, assert_near, feed, model, open, options, session, text};

const DECODERS: [&str; 4] = ["tiny-llama", "tiny-gemma3", "tiny-mamba", "tiny-lfm2"];

fn wanting(session: &mut Session, seq: &Sequence, tokens: &[Token], want: Want) -> Result<(), Error> {
    let mut batch = Batch::new();
    batch.push(seq, tokens, want);
    session.decode(&batch)
}

fn scores(session: &mut Session, seq: &Sequence, tokens: &[Token]) -> Vec<f32> {
    wanting(session, seq, tokens, Want::Score).unwrap();
    assert!(session.outputs().logits(0).is_none() && session.outputs().token(0).is_none());
    session.outputs().scores(0).to_vec()
}

/// What the scores must be, from the logits after each token.
fn expected_scores(model: &Model, options: &SessionOptions, tokens: &[Token]) -> Vec<f32> {
    let mut session = session(model, options);
    let seq = open(&mut session);
    let mut scores = vec![0.0];
    for pair in tokens.windows(2) {
        let row = feed(&mut session, &seq, &pair[..1]);
        let sum: f64 = row.iter().map(|&logit| f64::from(logit).exp()).sum();
        scores.push((f64::from(row[pair[1].index()]) - sum.ln()) as f32);
    }
    scores
}

// ---- shift ----

/// In one layer the keys of what is left are those that computing it would give: nothing before them sees other tokens.
#[test]
fn moved_keys_are_those_of_their_new_positions() {
    let folder = test_kit::Folder::new();
    let path = folder.file("one.gguf", &kit::tiny::one_layer().bytes());
    let model = Model::open(&infer_llama::Llama::linked().unwrap(), path).unwrap();
    let (prompt, more) = (text(1, 60), text(2, 4));
    for layout in LAYOUTS {
        // Keys of 16 bits are rounded again when they are turned.
        let options = options().with_layout(layout).with_kv_type(KvType::F32);
        let still = alone(&model, &options, &[&prompt[..], &more].concat());
        for dropped in [0..7, 10..25, 30..60, 59..60] {
            let mut session = session(&model, &options);
            let seq = open(&mut session);
            let other = open(&mut session);
            feed(&mut session, &other, &text(3, 20));
            feed(&mut session, &seq, &prompt);
            session.shift(&seq, dropped.clone()).unwrap();
            let left = [&prompt[..dropped.start], &prompt[dropped.end..]].concat();
            assert_eq!((seq.len(), session.usage().cells), (left.len(), left.len() + 20));
            let moved = feed(&mut session, &seq, &more);
            let computed = alone(&model, &options, &[&left[..], &more].concat());
            assert_near(&moved, &computed, &format!("{layout:?}, {dropped:?}"));
            assert!(apart(&moved, &still) > 5.0 * NEAR, "{layout:?}, {dropped:?}");
            let other = feed(&mut session, &other, &more);
            assert_near(&other, &alone(&model, &options, &[text(3, 20), more.clone()].concat()), "the other one");
        }
    }
}

#[test]
fn a_shifted_sequence_can_be_saved_cut_and_shifted_again() {
    let model = model("tiny-llama");
    let mut session = session(&model, &options());
    let seq = open(&mut session);
    session.sample_with(&seq, &Sampling::greedy(), &[]).unwrap();
    feed(&mut session, &seq, &text(1, 100));
    session.shift(&seq, 4..34).unwrap();
    let undrawable = wanting(&mut session, &seq, &text(2, 1), Want::Token).unwrap_err();
    assert_eq!(undrawable.kind(), ErrorKind::InvalidInput, "the sampling has ended");
    let mut state = Vec::new();
    session.save(&seq, &mut state).unwrap();
    let restored = session.restore(&mut &state[..]).unwrap();
    for seq in [&seq, &restored] {
        session.shift(seq, 10..20).unwrap();
        session.truncate(seq, 50).unwrap();
    }
    let more = text(3, 3);
    assert_near(&feed(&mut session, &restored, &more), &feed(&mut session, &seq, &more), "both");
    // All cells are there.
    drop((seq, restored));
    assert_eq!(session.usage().cells, 0);
    let seq = open(&mut session);
    feed(&mut session, &seq, &text(4, 250));
}

#[test]
fn positions_that_a_fork_shares_stay_where_they_are() {
    let model = model("tiny-llama");
    let options = options().with_layout(KvLayout::Unified);
    let mut session = session(&model, &options);
    let seq = open(&mut session);
    let (prompt, more) = (text(1, 40), text(2, 3));
    feed(&mut session, &seq, &prompt);
    let child = session.fork(&seq, 30).unwrap();
    let error = session.shift(&seq, 0..10).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unsupported);
    assert!(error.to_string().contains("a fork shares"), "{error}");
    assert_eq!((seq.len(), session.usage().cells), (40, 40));
    // What is dropped may be shared, what moves may not.
    session.shift(&seq, 20..30).unwrap();
    assert_eq!((seq.len(), session.usage().cells), (30, 40));
    let of_child = alone(&model, &options, &[&prompt[..30], &more].concat());
    assert_near(&feed(&mut session, &child, &more), &of_child, "the fork");
    drop(child);
    session.shift(&seq, 0..10).unwrap();
    feed(&mut session, &seq, &more);
}

/// A sliding window of 32: what was restored has only the last positions in those layers, and moves like the others.
#[test]
fn positions_move_under_a_sliding_window_too() {
    let model = model("tiny-gemma3");
    for layout in LAYOUTS {
        let mut session = session(&model, &options().with_layout(layout));
        let seq = open(&mut session);
        feed(&mut session, &seq, &text(1, 120));
        let mut state = Vec::new();
        session.save(&seq, &mut state).unwrap();
        let restored = session.restore(&mut &state[..]).unwrap();
        // What is kept before the dropped ones is out of the window, or it is needed and gone.
        assert_eq!(session.shift(&restored, 50..100).unwrap_err().kind(), ErrorKind::Unsupported, "{layout:?}");
        assert_eq!(session.truncate(&restored, 60).unwrap_err().kind(), ErrorKind::Unsupported, "{layout:?}");
        for seq in [&seq, &restored] {
            session.shift(seq, 10..60).unwrap();
            assert_eq!(seq.len(), 70);
        }
        let more = text(2, 40);
        let (one, other) = (feed(&mut session, &seq, &more), feed(&mut session, &restored, &more));
        assert_near(&one, &other, &format!("{layout:?}"));
    }
}

#[test]
fn a_model_that_cannot_move_positions_says_so() {
    for name in ["tiny-mamba", "tiny-lfm2"] {
        let mut session = session(&model(name), &options());
        assert!(!session.capabilities().shift && session.capabilities().save, "{name}");
        let seq = open(&mut session);
        feed(&mut session, &seq, &text(1, 20));
        assert_eq!(session.shift(&seq, 2..5).unwrap_err().kind(), ErrorKind::Unsupported, "{name}");
        assert_eq!(session.shift(&seq, 5..21).unwrap_err().kind(), ErrorKind::InvalidInput, "{name}");
        assert_eq!(seq.len(), 20);
        feed(&mut session, &seq, &text(1, 2));
    }
    for name in ["tiny-llama", "tiny-gemma3"] {
        assert!(session(&model(name), &options()).capabilities().shift, "{name}");
    }
}

/// Quantised keys are turned as well: near the others, as quantised ones are.
#[test]
fn quantised_keys_move_too() {
    let smollm2 = model("smollm2");
    let story =
        words(&smollm2, "Once upon a time there was a small compiler that lived in a forest of syntax trees. It was");
    let moved = |kind| {
        let mut session = session(&smollm2, &options().with_kv_type(kind));
        let seq = open(&mut session);
        feed(&mut session, &seq, &story[..story.len() - 1]);
        session.shift(&seq, 1..6).unwrap();
        feed(&mut session, &seq, &story[story.len() - 1..])
    };
    let (exact, near) = (moved(KvType::F16), moved(KvType::Q8_0));
    assert!(apart(&exact, &near) < 1.0, "{}", apart(&exact, &near));
    assert!(apart(&exact, &near) > 0.0);
}

// ---- scores ----

#[test]
fn scores_are_those_of_the_logits_before_each_token() {
    let tokens = text(1, 80);
    for name in DECODERS {
        let model = model(name);
        for layout in LAYOUTS {
            let options = options().with_layout(layout);
            let expected = expected_scores(&model, &options, &tokens);
            let mut session = session(&model, &options);
            let seq = open(&mut session);
            assert_near(&scores(&mut session, &seq, &tokens), &expected, &format!("{name}, {layout:?}: at once"));
            assert_eq!((seq.len(), session.usage().cells_free > 0), (80, true));

            let pieces = open(&mut session);
            let first = scores(&mut session, &pieces, &tokens[..50]);
            assert_near(&first, &expected[..50], name);
            let second = wanting(&mut session, &pieces, &tokens[50..], Want::Score);
            if session.capabilities().score || name == "tiny-gemma3" {
                second.unwrap();
                assert_near(session.outputs().scores(0), &expected[50..], &format!("{name}, {layout:?}: in pieces"));
            } else {
                assert_eq!(second.unwrap_err().kind(), ErrorKind::Unsupported, "{name}");
                assert_eq!(pieces.len(), 50);
            }
        }
    }
}

#[test]
fn scores_stand_beside_other_wants() {
    let model = model("tiny-llama");
    for layout in LAYOUTS {
        let options = options().with_layout(layout);
        let mut session = session(&model, &options);
        let (a, b, c) = (open(&mut session), open(&mut session), open(&mut session));
        let cells = session.usage().cells;
        let mut batch = Batch::new();
        batch.push(&a, &text(1, 40), Want::Logits);
        batch.push(&b, &text(2, 50), Want::Score);
        batch.push(&c, &text(3, 45), Want::Embedding);
        session.decode(&batch).unwrap();
        let out = session.outputs();
        assert_near(out.logits(0).unwrap(), &alone(&model, &options, &text(1, 40)), "logits");
        assert_near(out.scores(1), &expected_scores(&model, &options, &text(2, 50)), "scores");
        assert_eq!((out.scores(0).len(), out.scores(2).len(), out.logits(1), out.embedding(0)), (0, 0, None, None));
        assert_eq!(out.embedding(2).unwrap().len(), model.info().width);
        assert_eq!(session.usage().cells, cells + 135);

        // The last token of `b` is fed again, in a cell of its own where a fork holds the old one.
        let child = session.fork(&b, 50).map(|child| (child, session.usage().cells));
        assert_eq!(child.unwrap_err().kind(), ErrorKind::TooManySequences);
        drop(c);
        let child = session.fork(&b, 50).unwrap();
        let before = session.usage().cells;
        scores(&mut session, &b, &text(4, 5));
        let again = usize::from(layout == KvLayout::Unified);
        assert_eq!(session.usage().cells, before + 5 + again, "{layout:?}");
        let of_child = alone(&model, &options, &[text(2, 50), text(5, 2)].concat());
        assert_near(&feed(&mut session, &child, &text(5, 2)), &of_child, "the fork");
        let of_b = alone(&model, &options, &[text(2, 50), text(4, 5), text(5, 2)].concat());
        assert_near(&feed(&mut session, &b, &text(5, 2)), &of_b, "the scored one");
    }
}

#[test]
fn a_scoring_pass_that_is_stopped_or_finds_no_room_has_changed_nothing() {
    let model = model("tiny-llama");
    let options = options().with_layout(KvLayout::Unified).with_cells(256);
    let mut session = session(&model, &options);
    let (seq, other) = (open(&mut session), open(&mut session));
    let (prompt, more) = (text(1, 100), text(2, 3));
    feed(&mut session, &seq, &prompt);
    feed(&mut session, &other, &text(3, 100));
    let before = session.usage();
    let error = wanting(&mut session, &seq, &text(4, 57), Want::Score).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::OutOfCells);
    let interrupt = session.interrupt();
    interrupt.raise();
    assert_eq!(wanting(&mut session, &seq, &more, Want::Score).unwrap_err().kind(), ErrorKind::Cancelled);
    interrupt.lower();
    assert_eq!((session.usage(), seq.len(), seq.is_spent()), (before, 100, false));
    let whole = alone(&model, &options, &[&prompt[..], &more].concat());
    assert_near(&feed(&mut session, &seq, &more), &whole, "afterwards");
}

/// A fork holds the cell of the token that is fed again: there must be one more.
#[test]
fn scoring_beside_a_fork_takes_one_cell_more() {
    let model = model("tiny-llama");
    let mut session = session(&model, &options().with_layout(KvLayout::Unified).with_cells(256));
    let seq = open(&mut session);
    feed(&mut session, &seq, &text(1, 200));
    let child = session.fork(&seq, 200).unwrap();
    let other = open(&mut session);
    feed(&mut session, &other, &text(2, 55));
    assert_eq!(session.usage().cells_free, 1);
    let error = wanting(&mut session, &seq, &text(3, 1), Want::Score).unwrap_err();
    assert_eq!((error.kind(), seq.len(), session.usage().cells_free), (ErrorKind::OutOfCells, 200, 1));
    drop(child);
    wanting(&mut session, &seq, &text(3, 1), Want::Score).unwrap();
    assert_eq!(session.usage().cells_free, 0);
}

/// The last token of each is fed again in a cell of its own, since a fork holds the old one: also where the pass fails.
#[test]
fn scoring_several_that_share_their_last_token_finds_room_for_all_or_changes_nothing() {
    let model = model("tiny-llama");
    let options = options().with_layout(KvLayout::Unified).with_cells(256).with_sequences(6);
    let mut session = session(&model, &options);
    let prompt = text(1, 254);
    let first = open(&mut session);
    feed(&mut session, &first, &prompt);
    let mut sequences: Vec<Sequence> = (0..4).map(|_| session.fork(&first, prompt.len()).unwrap()).collect();
    sequences.push(first);
    let before = session.usage();
    assert_eq!(before.cells_free, 2);
    let mut batch = Batch::new();
    for seq in &sequences {
        batch.push(seq, &text(2, 1), Want::Score);
    }
    assert_eq!(session.decode(&batch).unwrap_err().kind(), ErrorKind::OutOfCells);
    assert_eq!(session.usage(), before);
    assert!(sequences.iter().all(|seq| seq.len() == 254 && !seq.is_spent()));
    // One has room for its last token and the new one.
    assert_eq!(scores(&mut session, &sequences[0], &text(2, 1)).len(), 1);
}

#[test]
fn a_likely_text_scores_higher_than_an_unlikely_one() {
    let smollm2 = model("smollm2");
    let score = |text: &str| {
        let tokens = words(&smollm2, text);
        let mut session = session(&smollm2, &options());
        let seq = open(&mut session);
        *scores(&mut session, &seq, &tokens).last().unwrap()
    };
    let (likely, unlikely) = (score("The capital of France is Paris"), score("The capital of France is purple"));
    assert!(likely > -2.5 && unlikely < likely - 3.0, "{likely} and {unlikely}");
}

// ---- hidden states ----

#[test]
fn a_hidden_state_is_the_same_however_the_tokens_come() {
    let tokens = text(1, 60);
    for name in DECODERS {
        let model = model(name);
        let mut session = session(&model, &options());
        let (whole, pieces) = (open(&mut session), open(&mut session));
        wanting(&mut session, &whole, &tokens, Want::Embedding).unwrap();
        let first = session.outputs().embedding(0).unwrap().to_vec();
        assert_eq!(first.len(), model.info().width, "{name}");
        assert!(first.iter().any(|&number| number != 0.0));
        feed(&mut session, &pieces, &tokens[..59]);
        assert_eq!(session.outputs().embedding(0), None);
        wanting(&mut session, &pieces, &tokens[59..], Want::Embedding).unwrap();
        assert_near(session.outputs().embedding(0).unwrap(), &first, name);
        assert!(session.outputs().logits(0).is_none());
        // And it is off again.
        let more = text(2, 3);
        let next = feed(&mut session, &whole, &more);
        assert_near(&next, &alone(&model, &options(), &[&tokens[..], &more].concat()), name);
    }
}

// ---- number formats ----

fn words(model: &Model, text: &str) -> Vec<Token> {
    let mut tokens = Vec::new();
    model.tokenizer().encode(text, Special::PARSE, &mut tokens).unwrap();
    tokens
}

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
