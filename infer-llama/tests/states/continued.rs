//! What was saved goes on as what it was saved of.

use crate::{
    DECODERS,
    linked::{LAYOUTS, alone, apart, assert_near, feed, model, open, options, session, text},
    restored, saved,
};
use infer_core::Session as _;
use infer_llama::KvType;

#[test]
fn a_restored_sequence_goes_on_as_the_saved_one() {
    let (prompt, more) = (text(1, 50), text(2, 5));
    for name in DECODERS {
        let model = model(name);
        for layout in LAYOUTS {
            let options = options().with_layout(layout);
            let mut first = session(&model, &options);
            let seq = open(&mut first);
            feed(&mut first, &seq, &prompt);
            let state = saved(&mut first, &seq);
            let whole = feed(&mut first, &seq, &more);

            // Into another session, beside another sequence, and into its own.
            let mut second = session(&model, &options);
            let other = open(&mut second);
            feed(&mut second, &other, &text(3, 20));
            for session in [&mut second, &mut first] {
                let before = session.usage();
                let seq = restored(session, &state).unwrap();
                assert_eq!((seq.len(), session.usage().sequences), (prompt.len(), before.sequences + 1));
                assert!(session.usage().cells > before.cells);
                assert_near(&feed(session, &seq, &more), &whole, &format!("{name}, {layout:?}"));
                drop(seq);
                assert_eq!(session.usage(), before);
            }
            let other = feed(&mut second, &other, &more);
            assert_near(&other, &alone(&model, &options, &[text(3, 20), more.clone()].concat()), name);
        }
    }
}

#[test]
fn an_empty_sequence_has_a_state_too() {
    for name in DECODERS {
        let model = model(name);
        let mut session = session(&model, &options());
        let seq = open(&mut session);
        let state = saved(&mut session, &seq);
        let seq = restored(&mut session, &state).unwrap();
        assert_eq!((seq.len(), session.usage().cells), (0, 0));
        feed(&mut session, &seq, &text(1, 5));
    }
}

/// The library puts a copy between streams off until the next pass. A state that is written before that must have it, and one that
/// is read must not be overwritten by it.
#[test]
fn a_fork_that_was_put_off_is_in_the_state_and_not_over_it() {
    let (prompt, other, more) = (text(1, 40), text(9, 40), text(2, 3));
    let model = model("tiny-llama");
    for layout in LAYOUTS {
        let options = options().with_layout(layout);
        let whole = alone(&model, &options, &[&prompt[..], &more].concat());
        let mut session = session(&model, &options);
        let seq = open(&mut session);
        feed(&mut session, &seq, &other);
        let of_other = saved(&mut session, &seq);
        session.truncate(&seq, 0).unwrap();
        feed(&mut session, &seq, &prompt);

        let child = session.fork(&seq, prompt.len()).unwrap();
        let state = saved(&mut session, &child);
        drop(child);
        let child = session.fork(&seq, prompt.len()).unwrap();
        drop(child);
        let restored_other = restored(&mut session, &of_other).unwrap();
        let seq = restored(&mut session, &state).unwrap();
        assert_near(&feed(&mut session, &seq, &more), &whole, &format!("{layout:?}: forked and saved"));
        let of_other = alone(&model, &options, &[&other[..], &more].concat());
        assert_near(
            &feed(&mut session, &restored_other, &more),
            &of_other,
            &format!("{layout:?}: restored over a fork"),
        );
    }
}

#[test]
fn quantised_keys_and_values_are_restored_as_they_are() {
    let model = model("smollm2");
    let (prompt, more) = (text(1, 50), text(2, 3));
    for kind in [KvType::Q8_0, KvType::Q4_0] {
        let options = options().with_kv_type(kind);
        let mut first = session(&model, &options);
        let seq = open(&mut first);
        feed(&mut first, &seq, &prompt);
        let state = saved(&mut first, &seq);
        let mut second = session(&model, &options);
        let again = restored(&mut second, &state).unwrap();
        let apart = apart(&feed(&mut second, &again, &more), &feed(&mut first, &seq, &more));
        assert_eq!(apart, 0.0, "{kind}");
    }
}
