//! A `tracing` subscriber that panics gets control back from the middle of a call of the library, over the linked door. What it left
//! behind is whole, or known not to be.

mod kit;
#[path = "kit/linked.rs"]
mod linked;

use infer_core::{AdapterSource, Batch, KvLayout, OpenOptions, Sequence, Session as _, Token, Want};
use infer_llama::Session;
use linked::{LAYOUTS, alone, assert_near, feed, model, open, options, session, text};
use std::{
    panic::{self, AssertUnwindSafe},
    sync::atomic::{AtomicUsize, Ordering},
};

/// Whether `run` panicked when the subscriber does after `lines` lines.
fn panicked<T>(lines: usize, run: impl FnOnce() -> T) -> bool {
    let left = AtomicUsize::new(lines);
    let panics = test_kit::Listener::new(move |_| {
        let left = left.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |left| left.checked_sub(1));
        assert!(left.is_ok(), "from the subscriber");
    });
    tracing::subscriber::with_default(panics, || panic::catch_unwind(AssertUnwindSafe(run))).is_err()
}

fn wanting(session: &mut Session, seq: &Sequence, tokens: &[Token], want: Want) -> infer_core::Result<()> {
    let mut batch = Batch::new();
    batch.push(seq, tokens, want);
    session.decode(&batch)
}

/// With hidden states on, every token of a pass has a row: more than the library was made for end the process.
#[test]
fn hidden_states_are_off_again() {
    let model = model("tiny-llama");
    let mut session = session(&model, &options());
    let seq = open(&mut session);
    let (prompt, more) = (text(1, 20), text(2, 100));
    feed(&mut session, &seq, &prompt);
    let mut raised = 0;
    for lines in 0..4 {
        raised += usize::from(panicked(lines, || wanting(&mut session, &seq, &text(3, 5), Want::Embedding)));
        session.truncate(&seq, prompt.len()).unwrap();
        let logits = feed(&mut session, &seq, &more);
        assert_near(&logits, &alone(&model, &options(), &[&prompt[..], &more].concat()), &format!("{lines} lines"));
        session.truncate(&seq, prompt.len()).unwrap();
    }
    assert!(raised > 0, "nothing was logged");
}

/// Its positions have moved in the library, and nobody was told.
#[test]
fn a_sequence_whose_shift_did_not_end_is_spent() {
    let model = model("tiny-llama");
    for layout in LAYOUTS {
        let options = options().with_layout(layout);
        let mut session = session(&model, &options);
        let (seq, other) = (open(&mut session), open(&mut session));
        let (prompt, more) = (text(1, 60), text(2, 3));
        feed(&mut session, &seq, &prompt);
        feed(&mut session, &other, &prompt);
        assert!(panicked(0, || session.shift(&seq, 4..14)), "nothing was logged");
        let of_other = feed(&mut session, &other, &more);
        assert_near(&of_other, &alone(&model, &options, &[&prompt[..], &more].concat()), "the other one");
        assert!(seq.is_spent(), "{layout:?}");
        assert_eq!((seq.len(), session.usage().cells), (0, 63));
    }
}

/// The token before what is scored was taken out by then. Another panic comes while it is put back.
#[test]
fn what_was_to_be_fed_again_is_there_or_the_sequence_is_spent() {
    let folder = test_kit::Folder::new();
    let adapter = AdapterSource::new("a", folder.file("a.gguf", &kit::lora::llama(1).bytes()));
    let model = model("tiny-llama");
    let options = options().with_layout(KvLayout::Unified).with_adapter(adapter);
    let (prompt, more) = (text(1, 60), text(2, 3));
    let whole = alone(&model, &options, &[&prompt[..], &more].concat());
    let mut with = OpenOptions::default();
    with.adapter = Some("a".to_owned());
    for (first, second) in [(0, 99), (1, 99), (2, 99), (4, 99), (1, 0), (2, 0), (4, 0)] {
        let mut session = session(&model, &options);
        let (seq, adapted) = (open(&mut session), session.open(&with).unwrap());
        feed(&mut session, &seq, &prompt);
        // Which has the next pass without one planned anew, and logged.
        feed(&mut session, &adapted, &prompt);
        let raised = panicked(first, || wanting(&mut session, &seq, &text(3, 40), Want::Score));
        assert!(raised, "{first} lines: nothing was logged");
        panicked(second, || drop(open(&mut session)));
        if seq.is_spent() {
            assert_eq!(session.usage().cells, prompt.len());
            continue;
        }
        assert_eq!((seq.len(), session.usage().cells), (prompt.len(), 2 * prompt.len()));
        assert_near(&feed(&mut session, &seq, &more), &whole, &format!("{first} and {second} lines"));
    }
}
