//! The laws of [`Session`], shown on the scripted one: misuse is an error and harms nobody, a pass is all or nothing,
//! and results depend on the tokens of a sequence alone.

use infer_core::{
    Batch, Capabilities, Error, ErrorKind, Model, OpenOptions, Result, Sampling, Sequence, Session, SessionOptions,
    Special, Token, Want,
    testing::{CellLayout, Cuts, EOS, Fault, IM_END, Script, Scripted, ScriptedModel},
};

fn session(script: Script, sequences: usize) -> Scripted {
    ScriptedModel::new(script).scripted(&SessionOptions::new().with_sequences(sequences)).unwrap()
}

fn open(session: &mut dyn Session) -> Sequence {
    session.open(&OpenOptions::default()).unwrap()
}

fn tokens(text: &str) -> Vec<Token> {
    text.bytes().map(|byte| Token(byte.into())).collect()
}

/// Feeds `tokens` in one pass of one entry.
fn feed(session: &mut dyn Session, seq: &Sequence, tokens: &[Token], want: Want) -> Result<()> {
    let mut batch = Batch::new();
    batch.push(seq, tokens, want);
    session.decode(&batch)
}

/// The logits after feeding `tokens`.
fn logits(session: &mut dyn Session, seq: &Sequence, tokens: &[Token]) -> Vec<f32> {
    feed(session, seq, tokens, Want::Logits).unwrap();
    session.outputs().logits(0).unwrap().to_vec()
}

/// The logits after `tokens`, computed from nothing in another session.
fn recomputed(tokens: &[Token]) -> Vec<f32> {
    let mut fresh = session(Script::new(), 1);
    let seq = open(&mut fresh);
    logits(&mut fresh, &seq, tokens)
}

/// Feeds what is missing of `log` and goes on for `n` tokens, which are added to `log` but the last of which is not fed.
fn generate(session: &mut dyn Session, seq: &Sequence, log: &mut Vec<Token>, n: usize) {
    let mut batch = Batch::new();
    for _ in 0..n {
        batch.clear();
        batch.push(seq, &log[seq.len()..], Want::Token);
        session.decode(&batch).unwrap();
        log.push(session.outputs().token(0).unwrap());
    }
}

fn kind<T>(result: Result<T>) -> ErrorKind {
    match result {
        Ok(_) => panic!("it should have failed"),
        Err(error) => error.kind(),
    }
}

mod misuse {
    use super::*;

    /// Each mistake beside a good entry: the error has its kind, names the entry, and nothing has grown.
    #[test]
    fn is_an_error_that_names_the_entry_and_changes_nothing() {
        let script = || Script::new().with_context(8).with_batch(16);
        let mut session = session(script(), 3);
        let mut other = super::session(script(), 1);
        let (good, bad, foreign) = (open(&mut session), open(&mut session), open(&mut other));
        let abc = tokens("abc");
        type Case<'a> = (&'a Sequence, &'a [Token], Want, ErrorKind);
        let long = tokens("123456789");
        let cases: [Case<'_>; 6] = [
            (&foreign, &abc, Want::Nothing, ErrorKind::ForeignSequence),
            (&good, &abc, Want::Nothing, ErrorKind::InvalidInput),
            (&bad, &[], Want::Nothing, ErrorKind::InvalidInput),
            (&bad, &[Token(260)], Want::Nothing, ErrorKind::InvalidInput),
            (&bad, &long, Want::Nothing, ErrorKind::ContextFull),
            (&bad, &abc, Want::Token, ErrorKind::InvalidInput), // no sampling was set
        ];
        for (seq, tokens, want, expected) in cases {
            let mut batch = Batch::new();
            batch.push(&good, &abc, Want::Nothing);
            batch.push(seq, tokens, want);
            let error = session.decode(&batch).unwrap_err();
            assert_eq!(error.kind(), expected, "{error}");
            assert!(error.to_string().contains("entry 1"), "{error}");
            assert_eq!((good.len(), bad.len(), foreign.len()), (0, 0, 0));
            assert!(session.outputs().is_empty());
        }
        assert_eq!(kind(session.decode(&Batch::new())), ErrorKind::InvalidInput);
        assert_eq!(kind(feed(&mut session, &bad, &[Token(1); 17], Want::Nothing)), ErrorKind::InvalidInput);
        assert_eq!(session.usage().cells, 0);
    }

    #[test]
    fn what_a_session_cannot_give_is_unsupported() {
        let mut session = session(Script::new().with_capabilities(Capabilities::default()), 1);
        let seq = open(&mut session);
        for want in [Want::Logits, Want::Embedding, Want::Score] {
            assert_eq!(kind(feed(&mut session, &seq, &tokens("a"), want)), ErrorKind::Unsupported);
        }
        assert_eq!(kind(session.save(&seq, &mut Vec::new())), ErrorKind::Unsupported);
        assert_eq!(kind(session.restore(&mut &[][..])), ErrorKind::Unsupported);
    }

    #[test]
    fn an_entry_of_a_dropped_sequence_is_stale_also_when_its_slot_is_in_use_again() {
        let mut session = session(Script::new(), 1);
        let seq = open(&mut session);
        let mut batch = Batch::new();
        batch.push(&seq, &tokens("a"), Want::Nothing);
        drop(seq);
        assert_eq!(kind(session.decode(&batch)), ErrorKind::StaleSequence);
        let next = open(&mut session);
        assert_eq!(kind(session.decode(&batch)), ErrorKind::StaleSequence);
        assert!(next.is_empty());
    }

    #[test]
    fn an_entry_of_a_sequence_that_moved_is_stale() {
        let mut session = session(Script::new(), 2);
        let seq = open(&mut session);
        feed(&mut session, &seq, &tokens("abcde"), Want::Nothing).unwrap();
        let mut batch = Batch::new();
        batch.push(&seq, &tokens("f"), Want::Nothing);
        session.truncate(&seq, 3).unwrap();
        assert_eq!(kind(session.decode(&batch)), ErrorKind::StaleSequence);
        feed(&mut session, &seq, &tokens("xy"), Want::Nothing).unwrap();
        assert_eq!(seq.len(), 5); // as long as it was, and another sequence all the same
        assert_eq!(kind(session.decode(&batch)), ErrorKind::StaleSequence);
        batch.clear();
        batch.push(&seq, &tokens("f"), Want::Nothing);
        session.truncate(&seq, 5).unwrap(); // moves nothing
        session.decode(&batch).unwrap();
        assert_eq!(kind(session.decode(&batch)), ErrorKind::StaleSequence); // a second time it would append twice
        assert_eq!(seq.len(), 6);
    }

    #[test]
    fn a_foreign_sequence_is_refused_by_every_call() {
        let mut session = session(Script::new(), 1);
        let foreign = open(&mut super::session(Script::new(), 1)); // its session is gone
        assert_eq!(kind(session.fork(&foreign, 0)), ErrorKind::ForeignSequence);
        assert_eq!(kind(session.truncate(&foreign, 0)), ErrorKind::ForeignSequence);
        assert_eq!(kind(session.sample_with(&foreign, &Sampling::default(), &[])), ErrorKind::ForeignSequence);
        assert_eq!(kind(session.save(&foreign, &mut Vec::new())), ErrorKind::ForeignSequence);
        assert_eq!(session.usage().sequences, 0);
    }

    #[test]
    fn lengths_and_counts_out_of_range() {
        let mut session = session(Script::new(), 2);
        let seq = open(&mut session);
        feed(&mut session, &seq, &tokens("abc"), Want::Nothing).unwrap();
        assert_eq!(kind(session.truncate(&seq, 4)), ErrorKind::InvalidInput);
        assert_eq!(kind(session.fork(&seq, 4)), ErrorKind::InvalidInput);
        let _second = open(&mut session);
        assert_eq!(kind(session.fork(&seq, 3)), ErrorKind::TooManySequences);
        assert_eq!(kind(session.open(&OpenOptions::default())), ErrorKind::TooManySequences);
        let mut adapted = OpenOptions::default();
        adapted.adapter = Some("none".into());
        assert_eq!(kind(session.open(&adapted)), ErrorKind::InvalidInput);
        assert_eq!(kind(session.sample_with(&seq, &Sampling::default(), &[Token(999)])), ErrorKind::InvalidInput);
        assert_eq!((seq.len(), session.usage().sequences, session.usage().cells), (3, 2, 3));
        let model = ScriptedModel::default();
        assert_eq!(kind(model.session(&SessionOptions::new().with_sequences(0))), ErrorKind::InvalidInput);
        assert_eq!(kind(model.session(&SessionOptions::new().with_context(usize::MAX))), ErrorKind::InvalidInput);
    }
}

mod a_pass {
    use super::*;

    /// Two sequences of three positions each, and a batch that makes them grow.
    fn two(session: &mut Scripted) -> (Sequence, Sequence, Batch) {
        let (a, b) = (open(session), open(session));
        let mut batch = Batch::new();
        batch.push(&a, &tokens("abc"), Want::Nothing);
        batch.push(&b, &tokens("xyz"), Want::Nothing);
        session.decode(&batch).unwrap();
        batch.clear();
        batch.push(&a, &tokens("de"), Want::Logits);
        batch.push(&b, &tokens("w"), Want::Logits);
        (a, b, batch)
    }

    #[test]
    fn that_fails_half_way_changes_nothing_and_can_be_tried_again() {
        for error in [ErrorKind::OutOfCells, ErrorKind::Runtime, ErrorKind::Cancelled] {
            let mut session = session(Script::new().with_fault(1, Fault::Error(error)), 2);
            let (a, b, batch) = two(&mut session);
            let before = session.usage();
            assert_eq!(kind(session.decode(&batch)), error);
            assert_eq!((a.len(), b.len(), session.usage()), (3, 3, before));
            assert!(session.outputs().is_empty());
            session.decode(&batch).unwrap();
            assert_eq!((a.len(), b.len()), (5, 4));
            assert_eq!(session.outputs().logits(0).unwrap(), recomputed(&tokens("abcde")));
            assert_eq!(session.outputs().logits(1).unwrap(), recomputed(&tokens("xyzw")));
        }
    }

    #[test]
    fn that_spends_its_sequences_leaves_the_others_alone() {
        let mut session = session(Script::new().with_fault(2, Fault::Spend(ErrorKind::Runtime)), 4);
        let (a, b, batch) = two(&mut session);
        let bystander = open(&mut session);
        feed(&mut session, &bystander, &tokens("by"), Want::Nothing).unwrap();
        assert_eq!(kind(session.decode(&batch)), ErrorKind::Runtime);
        assert!(a.is_spent() && b.is_spent() && !bystander.is_spent());
        assert_eq!((a.len(), b.len(), session.usage().cells), (0, 0, 2));
        assert_eq!(kind(session.decode(&batch)), ErrorKind::StaleSequence);
        assert_eq!(kind(feed(&mut session, &a, &tokens("a"), Want::Nothing)), ErrorKind::StaleSequence);
        assert_eq!(kind(session.truncate(&a, 0)), ErrorKind::StaleSequence);
        assert_eq!(kind(session.fork(&a, 0)), ErrorKind::StaleSequence);
        assert_eq!(kind(session.sample_with(&a, &Sampling::default(), &[])), ErrorKind::StaleSequence);
        assert_eq!(logits(&mut session, &bystander, &tokens("!")), recomputed(&tokens("by!")));
        assert_eq!(session.usage().sequences, 3);
        drop((a, b));
        assert_eq!(session.usage().sequences, 1);
        let again = open(&mut session);
        assert_eq!(logits(&mut session, &again, &tokens("abcde")), recomputed(&tokens("abcde")));
    }

    #[test]
    fn that_loses_the_session_loses_it_for_good() {
        let mut session = session(Script::new().with_fault(1, Fault::Lose), 3);
        let (a, b, batch) = two(&mut session);
        assert_eq!(kind(session.decode(&batch)), ErrorKind::SessionLost);
        assert_eq!((a.len(), b.len()), (3, 3));
        assert_eq!(kind(session.decode(&batch)), ErrorKind::SessionLost);
        assert_eq!(kind(session.open(&OpenOptions::default())), ErrorKind::SessionLost);
        assert_eq!(kind(session.fork(&a, 1)), ErrorKind::SessionLost);
        assert_eq!(kind(session.truncate(&a, 1)), ErrorKind::SessionLost);
        assert_eq!(kind(session.sample_with(&a, &Sampling::default(), &[])), ErrorKind::SessionLost);
        assert_eq!(kind(session.save(&a, &mut Vec::new())), ErrorKind::SessionLost);
        assert_eq!(kind(session.restore(&mut &[][..])), ErrorKind::SessionLost);
        assert!(session.outputs().is_empty());
    }

    #[test]
    fn that_is_interrupted_ends_there_and_the_level_stays_until_it_is_lowered() {
        let script = Script::new().with_hook(|step| {
            if (step.pass, step.done) == (1, 1) {
                step.interrupt.raise();
            }
            None
        });
        let mut session = session(script, 2);
        let (a, b, batch) = two(&mut session);
        assert_eq!(kind(session.decode(&batch)), ErrorKind::Cancelled);
        assert_eq!(kind(session.decode(&batch)), ErrorKind::Cancelled);
        assert_eq!((a.len(), b.len(), session.usage().cells), (3, 3, 6));
        session.interrupt().lower();
        session.decode(&batch).unwrap();
        assert_eq!(session.outputs().logits(1).unwrap(), recomputed(&tokens("xyzw")));
    }

    #[test]
    fn brings_back_what_each_entry_wants() {
        let mut session = session(Script::new(), 5);
        let seqs: Vec<Sequence> = (0..5).map(|_| open(&mut session)).collect();
        session.sample_with(&seqs[1], &Sampling::default(), &tokens("abc")).unwrap();
        let wants = [Want::Nothing, Want::Token, Want::Logits, Want::Embedding, Want::Score];
        let mut batch = Batch::new();
        for (seq, want) in seqs.iter().zip(wants) {
            batch.push(seq, &tokens("abc"), want);
        }
        session.decode(&batch).unwrap();
        let out = session.outputs();
        assert_eq!(out.len(), 5);
        for (i, want) in wants.into_iter().enumerate() {
            assert_eq!(out.token(i).is_some(), want == Want::Token, "{want:?}");
            assert_eq!(out.logits(i).map(<[f32]>::len), (want == Want::Logits).then_some(260), "{want:?}");
            assert_eq!(out.embedding(i).is_some(), want == Want::Embedding, "{want:?}");
            assert_eq!(out.scores(i).len(), if want == Want::Score { 3 } else { 0 }, "{want:?}");
        }
        let row = out.logits(2).unwrap();
        let likeliest = (0..260).max_by(|&a, &b| f32::total_cmp(&row[a as usize], &row[b as usize])).map(Token);
        assert_eq!(out.token(1), likeliest);
    }

    /// The score of a token is its log-probability by the logits of the position before, also across passes.
    #[test]
    fn scores_what_was_fed() {
        let mut session = session(Script::new(), 2);
        let (a, b) = (open(&mut session), open(&mut session));
        feed(&mut session, &a, &tokens("hello"), Want::Score).unwrap();
        let whole = session.outputs().scores(0).to_vec();
        feed(&mut session, &b, &tokens("he"), Want::Nothing).unwrap();
        feed(&mut session, &b, &tokens("llo"), Want::Score).unwrap();
        assert_eq!(session.outputs().scores(0), &whole[2..]);
        let row = recomputed(&tokens("hel"));
        let expected = row[usize::from(b'l')] - row.iter().map(|x| x.exp()).sum::<f32>().ln();
        assert!((whole[3] - expected).abs() < 1e-4 && whole[0] == 0.0, "{whole:?}, {expected}");
    }

    #[test]
    fn leaves_outputs_until_the_next_call_that_changes_something() {
        let mut session = session(Script::new(), 2);
        let seq = open(&mut session);
        feed(&mut session, &seq, &tokens("a"), Want::Logits).unwrap();
        let _ = (session.usage(), session.model(), session.limits()); // these change nothing
        assert_eq!(session.outputs().len(), 1);
        let _fork = session.fork(&seq, 1).unwrap();
        assert!(session.outputs().is_empty());
    }
}

mod results {
    use super::*;

    #[test]
    fn do_not_depend_on_how_tokens_were_cut_into_batches_or_on_company() {
        let text = tokens("the quick brown fox");
        let expected = recomputed(&text);
        for chunk in 1..=text.len() {
            let mut session = session(Script::new(), 2);
            let (seq, company) = (open(&mut session), open(&mut session));
            let mut batch = Batch::new();
            for part in text.chunks(chunk) {
                batch.clear();
                batch.push(&company, &tokens("noise"), Want::Logits);
                batch.push(&seq, part, Want::Logits);
                session.decode(&batch).unwrap();
            }
            assert_eq!(session.outputs().logits(1).unwrap(), expected, "chunks of {chunk}");
        }
    }

    #[test]
    fn are_those_of_a_recomputed_sequence_after_fork_truncate_and_restore() {
        for layout in [CellLayout::Unified, CellLayout::Split] {
            let mut session = session(Script::new().with_layout(layout), 3);
            let parent = open(&mut session);
            feed(&mut session, &parent, &tokens("once upon"), Want::Nothing).unwrap();
            let child = session.fork(&parent, 4).unwrap();
            assert_eq!(child.len(), 4);
            assert_eq!(logits(&mut session, &child, &tokens(" more")), recomputed(&tokens("once more")));
            session.truncate(&parent, 5).unwrap();
            assert_eq!(logits(&mut session, &parent, &tokens("again")), recomputed(&tokens("once again")));
            let mut file = Vec::new();
            session.save(&parent, &mut file).unwrap();
            drop(parent);
            let restored = session.restore(&mut &file[..]).unwrap();
            assert_eq!(restored.len(), 10);
            assert_eq!(logits(&mut session, &restored, &tokens("!")), recomputed(&tokens("once again!")));
            assert_eq!(logits(&mut session, &child, &tokens("?")), recomputed(&tokens("once more?")));
        }
    }

    /// Drawn tokens are a function of sampling, prompt and tokens fed: not of what befell the sequence in between.
    #[test]
    fn are_the_same_draws_after_fork_truncate_restore_and_rebuild() {
        let sampling = Sampling::default()
            .with_temperature(0.9)
            .with_seed(42)
            .with_repetition_penalty(1.2)
            .with_presence_penalty(0.3)
            .with_top_k(40);
        let prompt = tokens("a story:");
        let mut session = session(Script::new(), 4);
        let whole = {
            let (seq, mut log) = (open(&mut session), prompt.clone());
            session.sample_with(&seq, &sampling, &prompt).unwrap();
            generate(&mut session, &seq, &mut log, 40);
            log
        };
        let (first, mut log) = (open(&mut session), prompt.clone());
        session.sample_with(&first, &sampling, &prompt).unwrap();
        generate(&mut session, &first, &mut log, 20);
        assert_eq!(log, whole[..log.len()]);
        let held = first.len();

        let mut file = Vec::new();
        session.save(&first, &mut file).unwrap();
        let restored = session.restore(&mut &file[..]).unwrap();
        let forked = session.fork(&first, held - 7).unwrap();
        session.truncate(&first, held - 5).unwrap();
        for (what, seq) in [("restored", &restored), ("forked", &forked)] {
            session.sample_with(seq, &sampling, &prompt).unwrap();
            let mut log = whole[..seq.len() + 1].to_vec();
            generate(&mut session, seq, &mut log, 5);
            assert_eq!(log, whole[..log.len()], "{what}");
        }
        let mut log = whole[..first.len() + 1].to_vec(); // its sampling has stayed
        generate(&mut session, &first, &mut log, 5);
        assert_eq!(log, whole[..log.len()], "truncated");

        let mut another = super::session(Script::new(), 1);
        let rebuilt = open(&mut another);
        another.sample_with(&rebuilt, &sampling, &prompt).unwrap();
        let mut log = whole[..30].to_vec();
        generate(&mut another, &rebuilt, &mut log, 10);
        assert_eq!(log, whole[..log.len()], "rebuilt");
    }

    /// A pass that failed has not touched the sampler either.
    #[test]
    fn are_the_same_draws_after_a_failed_pass() {
        let sampling = Sampling::default().with_temperature(1.0).with_frequency_penalty(0.5);
        let run = |script: Script| {
            let mut session = session(script, 1);
            let seq = open(&mut session);
            let mut log = tokens("go");
            session.sample_with(&seq, &sampling, &log.clone()).unwrap();
            let mut batch = Batch::new();
            while log.len() < 20 {
                batch.clear();
                batch.push(&seq, &log[seq.len()..], Want::Token);
                match session.decode(&batch) {
                    Ok(()) => log.push(session.outputs().token(0).unwrap()),
                    Err(error) => assert_eq!(error.kind(), ErrorKind::Runtime),
                }
            }
            log
        };
        let shaky = Script::new().with_hook(|step| {
            (step.pass % 3 == 1 && step.done == step.entries).then_some(Fault::Error(ErrorKind::Runtime))
        });
        assert_eq!(run(shaky), run(Script::new()));
    }
}

mod cells {
    use super::*;

    #[test]
    fn are_shared_by_forks_in_one_pool_and_copied_between_parts() {
        for (layout, after_fork) in [(CellLayout::Unified, 10), (CellLayout::Split, 18)] {
            let mut session = session(Script::new().with_layout(layout).with_cells(30), 3);
            let parent = open(&mut session);
            feed(&mut session, &parent, &[Token(1); 10], Want::Nothing).unwrap();
            let child = session.fork(&parent, 8).unwrap();
            assert_eq!((session.usage().cells, session.usage().cells_free), (after_fork, 30 - after_fork));
            drop(parent); // not reaped yet, and already free
            assert_eq!(session.usage().cells, 8);
            let grandchild = session.fork(&child, 8).unwrap();
            drop((child, grandchild));
            assert_eq!((session.usage().cells, session.usage().cells_free), (0, 30));
            open(&mut session);
            assert_eq!((session.usage().cells, session.usage().cells_free), (0, 30));
        }
    }

    #[test]
    fn that_run_out_are_an_error_and_nothing_has_grown() {
        for (layout, takes) in [(CellLayout::Unified, 12), (CellLayout::Split, 6)] {
            let mut session = session(Script::new().with_layout(layout).with_cells(12), 2);
            let (a, b) = (open(&mut session), open(&mut session));
            assert_eq!(kind(feed(&mut session, &a, &[Token(1); 13], Want::Nothing)), ErrorKind::OutOfCells);
            assert_eq!((a.len(), session.usage().cells), (0, 0));
            feed(&mut session, &a, &vec![Token(1); takes], Want::Nothing).unwrap();
            assert_eq!(kind(feed(&mut session, &a, &[Token(1)], Want::Nothing)), ErrorKind::OutOfCells);
            session.truncate(&a, takes - 1).unwrap();
            feed(&mut session, &a, &[Token(1)], Want::Nothing).unwrap();
            drop(a);
            feed(&mut session, &b, &vec![Token(1); takes], Want::Nothing).unwrap();
        }
    }
}

mod models_that_cannot_go_back {
    use super::*;

    #[test]
    fn recurrent() {
        let cancel = |step: &infer_core::testing::Step<'_>| {
            (step.pass == 1).then_some(())?;
            (step.done == 1).then_some(Fault::Error(ErrorKind::Cancelled))
        };
        let mut session = session(Script::new().with_cuts(Cuts::Nowhere).with_hook(cancel), 3);
        assert!(!session.capabilities().truncate && !session.capabilities().fork);
        let seq = open(&mut session);
        feed(&mut session, &seq, &tokens("abc"), Want::Nothing).unwrap();
        assert_eq!(kind(session.truncate(&seq, 2)), ErrorKind::Unsupported);
        assert_eq!(kind(session.fork(&seq, 2)), ErrorKind::Unsupported);
        assert_eq!(seq.len(), 3);
        let (whole, empty) = (session.fork(&seq, 3).unwrap(), session.fork(&seq, 0).unwrap());
        assert_eq!((whole.len(), empty.len()), (3, 0));
        session.truncate(&whole, 3).unwrap();
        session.truncate(&whole, 0).unwrap();
        assert_eq!(kind(feed(&mut session, &seq, &tokens("d"), Want::Nothing)), ErrorKind::Cancelled);
        assert!(seq.is_spent() && !whole.is_spent());
    }

    #[test]
    fn with_a_sliding_window() {
        let mut session = session(Script::new().with_cuts(Cuts::Window(4)), 2);
        let seq = open(&mut session);
        feed(&mut session, &seq, &tokens("abcd"), Want::Nothing).unwrap();
        drop(session.fork(&seq, 2).unwrap());
        session.truncate(&seq, 3).unwrap();
        feed(&mut session, &seq, &tokens("de"), Want::Nothing).unwrap();
        assert_eq!(kind(session.truncate(&seq, 4)), ErrorKind::Unsupported);
        assert_eq!(kind(session.fork(&seq, 4)), ErrorKind::Unsupported);
        assert_eq!(session.fork(&seq, 5).unwrap().len(), 5);
        session.truncate(&seq, 0).unwrap();
        assert_eq!(logits(&mut session, &seq, &tokens("xy")), recomputed(&tokens("xy")));
    }
}

mod saved_states {
    use super::*;

    #[test]
    fn that_are_damaged_or_foreign_are_refused_and_leave_no_sequence_behind() {
        let mut session = session(Script::new().with_context(16), 2);
        let seq = open(&mut session);
        feed(&mut session, &seq, &tokens("state"), Want::Nothing).unwrap();
        let mut file = Vec::new();
        session.save(&seq, &mut file).unwrap();
        for len in 0..file.len() {
            assert_eq!(kind(session.restore(&mut &file[..len])), ErrorKind::InvalidInput, "cut to {len}");
        }
        for at in 0..file.len() {
            let mut damaged = file.clone();
            damaged[at] ^= 0x10;
            assert_eq!(kind(session.restore(&mut &damaged[..])), ErrorKind::InvalidInput, "byte {at}");
        }
        let mut other = super::session(Script::new().with_seed(1), 1);
        assert_eq!(kind(other.restore(&mut &file[..])), ErrorKind::InvalidInput);
        assert_eq!((session.usage().sequences, other.usage().sequences), (1, 0));
        assert_eq!(session.restore(&mut &file[..]).unwrap().len(), 5);
    }

    #[test]
    fn need_room_like_any_other_sequence() {
        let mut session = session(Script::new().with_cells(8), 2);
        let seq = open(&mut session);
        feed(&mut session, &seq, &tokens("state"), Want::Nothing).unwrap();
        let mut file = Vec::new();
        session.save(&seq, &mut file).unwrap();
        assert_eq!(kind(session.restore(&mut &file[..])), ErrorKind::OutOfCells);
        assert_eq!((session.usage().sequences, session.usage().cells), (1, 5));
    }

    struct Broken;

    impl std::io::Write for Broken {
        fn write(&mut self, _: &[u8]) -> std::io::Result<usize> {
            Err(std::io::Error::other("the disk is full"))
        }

        fn flush(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }

    impl std::io::Read for Broken {
        fn read(&mut self, _: &mut [u8]) -> std::io::Result<usize> {
            Err(std::io::Error::other("the disk is gone"))
        }
    }

    #[test]
    fn carry_the_reason_of_a_failed_write_or_read() {
        let mut session = session(Script::new(), 2);
        let seq = open(&mut session);
        let errors: [Error; 2] =
            [session.save(&seq, &mut Broken).unwrap_err(), session.restore(&mut Broken).unwrap_err()];
        for (error, reason) in errors.iter().zip(["the disk is full", "the disk is gone"]) {
            assert_eq!(error.kind(), ErrorKind::Io);
            assert_eq!(std::error::Error::source(error).unwrap().to_string(), reason);
        }
    }
}

mod script {
    use super::*;

    #[test]
    fn is_said_and_ends() {
        let script = Script::new().with_line("<|im_start|>assistant\n", "Hi!<|im_end|>").with_line("2 + 2 = ", "4");
        let model = ScriptedModel::new(script);
        let tokenizer = model.tokenizer();
        for (prompt, expected, end) in
            [("2 + 2 = ", "4", EOS), ("<|im_start|>user\n2 + 2 = <|im_end|>\n<|im_start|>assistant\n", "Hi!", IM_END)]
        {
            let mut session = model.session(&SessionOptions::new()).unwrap();
            let seq = open(&mut *session);
            let mut log = Vec::new();
            tokenizer.encode(prompt, Special::PARSE, &mut log).unwrap();
            let start = log.len();
            session.sample_with(&seq, &Sampling::default().with_temperature(1.0), &log.clone()).unwrap();
            generate(&mut *session, &seq, &mut log, expected.len() + 1);
            let mut said = tokens(expected);
            said.push(end);
            assert_eq!(log[start..], said);
            assert!(tokenizer.vocab().is_end(end));
        }
    }

    #[test]
    fn counts_the_sessions_of_a_model() {
        let lose = |step: &infer_core::testing::Step<'_>| (step.session < 2).then_some(Fault::Lose);
        let model = ScriptedModel::new(Script::new().with_hook(lose));
        let mut outcomes = (0..4).map(|_| {
            let mut session = model.session(&SessionOptions::new()).unwrap();
            let seq = open(&mut *session);
            feed(&mut *session, &seq, &tokens("a"), Want::Nothing).map_err(|error| error.kind())
        });
        assert!(outcomes.by_ref().take(2).all(|outcome| outcome == Err(ErrorKind::SessionLost)));
        assert!(outcomes.all(|outcome| outcome == Ok(())));
    }

    #[test]
    fn control_tokens_are_text_unless_asked_for() {
        let tokenizer = ScriptedModel::default().tokenizer();
        let encode = |special| {
            let mut out = Vec::new();
            tokenizer.encode("a<|im_end|>", special, &mut out).unwrap();
            out
        };
        assert_eq!(encode(Special::PARSE), [Token(97), IM_END]);
        assert_eq!(encode(Special::NONE), tokens("a<|im_end|>"));
        assert_eq!(encode(Special::ADD)[1..], tokens("a<|im_end|>"));
    }
}
