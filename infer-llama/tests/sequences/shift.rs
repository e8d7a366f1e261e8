//! Positions that are dropped, and those behind them, which move up.

use crate::{
    kit::tiny,
    linked::{LAYOUTS, NEAR, alone, apart, assert_near, feed, model, open, options, session, text},
    wanting, words,
};
use infer_core::{ErrorKind, KvLayout, Sampling, Session as _, Want};
use infer_llama::{KvType, Llama, Model};
use test_kit::Folder;

/// In one layer the keys of what is left are those that computing it would give: nothing before them sees other tokens.
#[test]
fn moved_keys_are_those_of_their_new_positions() {
    let folder = Folder::new();
    let path = folder.file("one.gguf", &tiny::one_layer().bytes());
    let model = Model::open(&Llama::linked().unwrap(), path).unwrap();
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
