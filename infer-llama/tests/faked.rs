//! Over the faked door: what the library would have to misbehave to show.

mod kit;

use infer_core::{
    Batch, Error, ErrorKind, KvLayout, OpenOptions, Sampling, Sequence, Session as _, Special, Token, Tokenizer as _,
    Want,
};
use infer_llama::{Llama, LoadMode, Model, ModelOptions, Session, SessionOptions};
use infer_sys::llama::bindings::GGML_LOG_LEVEL_WARN;
use infer_sys::llama::fake::{self, Control, Fault, Kind, Live, Rows, Script};
use kit::{lora, tiny};
use std::{
    ops::ControlFlow,
    panic::{self, AssertUnwindSafe},
    sync::{Arc, Mutex},
};
use test_kit::{Folder, Listener};

/// A model over the faked door, and what steers it.
struct Faked {
    control: Control,
    model: Model,
    _folder: Folder,
}

fn faked(script: Script) -> Faked {
    let folder = Folder::new();
    let path = folder.file("faked.gguf", &tiny::llama().bytes());
    let control = script.install();
    // On the processor, whose memory a session must fit.
    let model = Model::open_with(&llama(), path, &ModelOptions::new().with_devices(["CPU"])).unwrap();
    Faked { control, model, _folder: folder }
}

fn llama() -> Llama {
    Llama::from_api(fake::api()).unwrap()
}

fn options() -> SessionOptions {
    SessionOptions::new().with_context(256).with_sequences(4).with_batch(64).with_micro_batch(4).with_threads(2)
}

fn tokens(range: std::ops::Range<u32>) -> Vec<Token> {
    range.map(Token).collect()
}

fn open(session: &mut Session) -> Sequence {
    session.open(&OpenOptions::default()).unwrap()
}

fn feed(session: &mut Session, seq: &Sequence, tokens: &[Token], want: Want) -> Result<(), Error> {
    let mut batch = Batch::new();
    batch.push(seq, tokens, want);
    session.decode(&batch)
}

/// The logits after `tokens`, computed by themselves in a session of their own.
fn alone(model: &Model, tokens: &[Token]) -> Vec<f32> {
    let mut session = model.session(&options()).unwrap();
    let seq = open(&mut session);
    feed(&mut session, &seq, tokens, Want::Logits).unwrap();
    session.outputs().logits(0).unwrap().to_vec()
}

#[test]
fn chunks_forks_and_cuts_compute_the_same() {
    for layout in [KvLayout::Split, KvLayout::Unified] {
        let Faked { control, model, .. } = faked(Script::new());
        let mut session = model.session(&options().with_layout(layout)).unwrap();
        let prompt = tokens(0..20);
        let seq = open(&mut session);
        for chunk in prompt.chunks(7) {
            feed(&mut session, &seq, chunk, Want::Logits).unwrap();
        }
        assert_eq!(session.outputs().logits(0).unwrap(), alone(&model, &prompt), "{layout:?}");

        let child = session.fork(&seq, 12).unwrap();
        session.truncate(&seq, 5).unwrap();
        let mut batch = Batch::new();
        batch.push(&child, &tokens(100..103), Want::Logits);
        batch.push(&seq, &tokens(50..51), Want::Logits);
        session.decode(&batch).unwrap();
        let of_child = [tokens(0..12), tokens(100..103)].concat();
        let of_seq = [tokens(0..5), tokens(50..51)].concat();
        assert_eq!(session.outputs().logits(0).unwrap(), alone(&model, &of_child), "{layout:?}");
        assert_eq!(session.outputs().logits(1).unwrap(), alone(&model, &of_seq), "{layout:?}");
        drop((session, seq, child, model));
        assert_eq!(control.live(), Live::default());
        assert_eq!(control.breaches(), [""; 0]);
    }
}

#[test]
fn a_pass_that_failed_has_changed_nothing() {
    let cases = [
        (Fault::Result(1), ErrorKind::OutOfCells, Some(1)),
        (Fault::Result(2), ErrorKind::Cancelled, None),
        (Fault::ResultAfter { result: 2, ubatches: 2 }, ErrorKind::Cancelled, None),
        (Fault::Result(-1), ErrorKind::Runtime, Some(-1)),
        (Fault::Result(-2), ErrorKind::Runtime, Some(-2)),
        (Fault::ResultAfter { result: -3, ubatches: 1 }, ErrorKind::Runtime, Some(-3)),
    ];
    for (fault, kind, code) in cases {
        let Faked { control, model, .. } = faked(Script::new());
        let mut session = model.session(&options()).unwrap();
        let (seq, other) = (open(&mut session), open(&mut session));
        feed(&mut session, &seq, &tokens(0..6), Want::Nothing).unwrap();
        let used = session.usage();

        let mut batch = Batch::new();
        batch.push(&seq, &tokens(6..20), Want::Logits);
        batch.push(&other, &tokens(30..40), Want::Logits);
        control.plan(fault.clone());
        let error = session.decode(&batch).unwrap_err();
        assert_eq!((error.kind(), error.code()), (kind, code), "{fault:?}");
        assert_eq!((seq.len(), other.len(), session.usage()), (6, 0, used), "{fault:?}");
        assert!(session.outputs().is_empty() && session.outputs().logits(0).is_none());

        session.decode(&batch).unwrap_or_else(|error| panic!("the same batch again after {fault:?}: {error}"));
        assert_eq!(session.outputs().logits(0).unwrap(), alone(&model, &tokens(0..20)), "{fault:?}");
        assert_eq!(session.outputs().logits(1).unwrap(), alone(&model, &tokens(30..40)), "{fault:?}");
    }
}

#[test]
fn an_exception_spends_the_sequences_of_its_batch_and_no_others() {
    let Faked { control, model, .. } = faked(Script::new());
    let mut session = model.session(&options()).unwrap();
    let (hit, unharmed) = (open(&mut session), open(&mut session));
    feed(&mut session, &hit, &tokens(0..6), Want::Nothing).unwrap();
    feed(&mut session, &unharmed, &tokens(0..9), Want::Nothing).unwrap();

    control.plan(Fault::Exception("out of ideas".into()));
    let error = feed(&mut session, &hit, &tokens(6..7), Want::Nothing).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Runtime);
    assert!(error.to_string().contains("out of ideas"), "{error}");
    assert!(hit.is_spent() && !unharmed.is_spent());
    let again = feed(&mut session, &hit, &tokens(6..7), Want::Nothing).unwrap_err();
    assert_eq!(again.kind(), ErrorKind::StaleSequence);
    assert_eq!(session.usage().cells, 9);

    feed(&mut session, &unharmed, &tokens(9..10), Want::Logits).unwrap();
    assert_eq!(session.outputs().logits(0).unwrap(), alone(&model, &tokens(0..10)));
    drop(hit);
    let reopened = open(&mut session);
    feed(&mut session, &reopened, &tokens(0..7), Want::Logits).unwrap();
    assert_eq!(session.outputs().logits(0).unwrap(), alone(&model, &tokens(0..7)));
}

#[test]
fn a_state_that_cannot_go_back_is_spent_and_says_what_it_cannot_do() {
    let Faked { control, model, .. } = faked(Script::new().with_kind(Kind::Recurrent));
    let mut session = model.session(&options()).unwrap();
    assert!(!session.capabilities().truncate && !session.capabilities().fork);
    let seq = open(&mut session);
    feed(&mut session, &seq, &tokens(0..10), Want::Nothing).unwrap();
    assert_eq!(session.truncate(&seq, 4).unwrap_err().kind(), ErrorKind::Unsupported);
    assert_eq!(session.fork(&seq, 4).unwrap_err().kind(), ErrorKind::Unsupported);
    assert_eq!(seq.len(), 10);

    let whole = session.fork(&seq, 10).unwrap();
    feed(&mut session, &whole, &tokens(10..12), Want::Logits).unwrap();
    assert_eq!(session.outputs().logits(0).unwrap(), alone(&model, &tokens(0..12)));

    control.plan(Fault::ResultAfter { result: 2, ubatches: 1 });
    let error = feed(&mut session, &seq, &tokens(10..20), Want::Nothing).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Cancelled);
    // One book of all sequences is half written.
    assert!(seq.is_spent() && whole.is_spent());
    assert_eq!((session.usage().cells, session.usage().sequences), (0, 2));
    drop((seq, whole));
    let seq = open(&mut session);
    feed(&mut session, &seq, &tokens(3..5), Want::Logits).unwrap();
    assert_eq!(session.outputs().logits(0).unwrap(), alone(&model, &tokens(3..5)));
}

#[test]
fn rows_that_are_not_there_are_an_error_and_the_pass_is_taken_back() {
    for rows in [Rows::Failed, Rows::Null, Rows::Short] {
        let Faked { control, model, .. } = faked(Script::new());
        let mut session = model.session(&options()).unwrap();
        let seq = open(&mut session);
        session.sample_with(&seq, &Sampling::greedy(), &tokens(0..3)).unwrap();
        control.set_rows(rows);
        let error = feed(&mut session, &seq, &tokens(0..3), Want::Token).unwrap_err();
        assert_eq!((error.kind(), seq.len()), (ErrorKind::Runtime, 0), "{rows:?}: {error}");
        assert!(session.outputs().is_empty());
        control.set_rows(Rows::Given);
        feed(&mut session, &seq, &tokens(0..3), Want::Logits).unwrap();
        assert_eq!(session.outputs().logits(0).unwrap(), alone(&model, &tokens(0..3)));
        assert!(session.outputs().token(0).is_some());
    }
}

#[test]
fn a_draw_that_fails_takes_the_pass_back() {
    let Faked { model, .. } = faked(Script::new());
    let mut session = model.session(&options()).unwrap();
    let (seq, other) = (open(&mut session), open(&mut session));
    let vocab = u32::try_from(session.limits().vocab).unwrap();
    let none = (0..vocab).fold(Sampling::greedy(), |s, id| s.with_logit_bias(Token(id), f32::NEG_INFINITY));
    session.sample_with(&other, &Sampling::greedy(), &[]).unwrap();
    session.sample_with(&seq, &none, &[]).unwrap();
    let mut batch = Batch::new();
    batch.push(&other, &tokens(0..4), Want::Token);
    batch.push(&seq, &tokens(0..4), Want::Token);
    assert_eq!(session.decode(&batch).unwrap_err().kind(), ErrorKind::Runtime);
    assert_eq!((seq.len(), other.len(), session.usage().cells), (0, 0, 0));
    assert!(session.outputs().is_empty());
    session.sample_with(&seq, &Sampling::greedy(), &[]).unwrap();
    session.decode(&batch).unwrap();
    assert_eq!(session.outputs().token(0), session.outputs().token(1));
}

#[test]
fn an_interrupt_is_a_level() {
    let Faked { control, model, .. } = faked(Script::new());
    let mut session = model.session(&options()).unwrap();
    let (seq, interrupt) = (open(&mut session), session.interrupt());
    interrupt.raise();
    for _ in 0..2 {
        let error = feed(&mut session, &seq, &tokens(0..3), Want::Nothing).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Cancelled);
    }
    assert_eq!(control.passes(), 0, "the library is not even asked");
    interrupt.lower();

    control.plan(Fault::UntilAborted);
    let stopper = std::thread::spawn({
        let (interrupt, control) = (interrupt.clone(), control.clone());
        move || {
            while control.passes() == 0 {
                std::thread::yield_now();
            }
            interrupt.raise();
        }
    });
    let error = feed(&mut session, &seq, &tokens(0..3), Want::Nothing).unwrap_err();
    stopper.join().unwrap();
    assert_eq!((error.kind(), seq.len()), (ErrorKind::Cancelled, 0));
    interrupt.lower();
    feed(&mut session, &seq, &tokens(0..3), Want::Nothing).unwrap();
    drop(session);
    interrupt.raise();
}

#[test]
fn a_token_without_sampling_is_refused_before_the_pass() {
    let Faked { control, model, .. } = faked(Script::new());
    let mut session = model.session(&options()).unwrap();
    let seq = open(&mut session);
    let error = feed(&mut session, &seq, &tokens(0..3), Want::Token).unwrap_err();
    assert_eq!((error.kind(), control.passes()), (ErrorKind::InvalidInput, 0));
    feed(&mut session, &seq, &tokens(0..3), Want::Logits).unwrap();
    assert!(session.outputs().logits(0).is_some() && session.outputs().token(0).is_none());
}

#[test]
fn a_failed_load_says_what_was_logged_as_whole_lines() {
    let folder = Folder::new();
    let path = folder.file("unlucky.gguf", &tiny::llama().bytes());
    let control = Script::new().with_load_fault(Fault::Result(-1)).install();
    let error = Model::open(&llama(), &path).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::InvalidModel);
    assert!(error.to_string().contains("unlucky.gguf"), "{error}");
    assert_eq!(error.log(), Some("fake: error loading model: as planned\n"));
    let _ = Script::new().with_load_fault(Fault::Exception("thrown".into())).install();
    let error = Model::open(&llama(), &path).unwrap_err();
    let source = std::error::Error::source(&error).unwrap().to_string();
    assert!(source.contains("thrown"), "{source}");
    assert_eq!(control.live(), Live::default());
}

/// The library goes on where it cannot do what was asked, and only its log says so.
#[test]
fn a_load_that_is_not_as_it_was_asked_for_is_an_error() {
    let folder = Folder::new();
    let path = folder.file("unlocked.gguf", &tiny::llama().bytes());
    let control = Script::new().with_loading(vec![0.0, 1.0]).install();
    for (mode, said, kind, words) in [
        (LoadMode::Locked, c"warning: failed to mlock 4096-byte buffer: no\n", ErrorKind::OutOfMemory, "ulimit -l"),
        (LoadMode::Direct, c"Falling back to buffered I/O", ErrorKind::Unsupported, "file system"),
    ] {
        let mut watch = |_| {
            fake::log(GGML_LOG_LEVEL_WARN, said);
            ControlFlow::Continue(())
        };
        let options = ModelOptions::new().with_load_mode(mode);
        let error = Model::open_watched(&llama(), &path, &options, &mut watch).unwrap_err();
        assert_eq!(error.kind(), kind, "{error:?}");
        assert!(error.to_string().contains("unlocked.gguf"), "{error}");
        assert!(std::error::Error::source(&error).unwrap().to_string().contains(words), "{error:?}");
        assert_eq!(control.live(), Live::default());
        let mapped = ModelOptions::new();
        Model::open_watched(&llama(), &path, &mapped, &mut watch).expect("nobody asked for it");
    }
}

#[test]
fn whoever_watches_a_load_can_end_it() {
    let folder = Folder::new();
    let path = folder.file("watched.gguf", &tiny::llama().bytes());
    let control = Script::new().with_loading(vec![0.0, 0.25, 0.5, 1.0]).install();
    let mut seen = Vec::new();
    let mut watch = |done| {
        seen.push(done);
        if done < 0.5 { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
    };
    let error = Model::open_watched(&llama(), &path, &ModelOptions::new(), &mut watch).unwrap_err();
    assert_eq!((error.kind(), seen), (ErrorKind::Cancelled, vec![0.0, 0.25, 0.5]));

    let mut panics = |_| panic!("from the closure");
    let raised = panic::catch_unwind(AssertUnwindSafe(|| {
        Model::open_watched(&llama(), &path, &ModelOptions::new(), &mut panics)
    }));
    assert_eq!(raised.unwrap_err().downcast_ref(), Some(&"from the closure"));
    assert_eq!(control.live(), Live::default());
}

#[test]
fn what_is_still_used_outlives_its_model() {
    let Faked { control, model, .. } = faked(Script::new());
    let tokenizer = model.tokenizer().clone();
    let mut session = model.session(&options()).unwrap();
    let seq = open(&mut session);
    drop(model);
    feed(&mut session, &seq, &tokens(0..3), Want::Logits).unwrap();
    drop(session);
    assert_eq!(control.live(), Live { models: 1, ..Live::default() });
    drop(seq);
    let mut out = Vec::new();
    std::thread::spawn(move || {
        tokenizer.encode("a text", Special::NONE, &mut out).unwrap();
        assert_eq!(out.len(), 6);
    })
    .join()
    .unwrap();
    assert_eq!((control.live(), control.breaches()), (Live::default(), vec![]));
}

#[test]
fn an_encoder_has_no_session() {
    let Faked { model, control, .. } = faked(Script::new().with_kind(Kind::Encoder));
    let error = model.session(&options()).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unsupported);
    assert_eq!(control.live().contexts, 0);
}

#[test]
fn options_out_of_range_are_named() {
    let Faked { model, .. } = faked(Script::new());
    let new = SessionOptions::new;
    let cases = [
        (new().with_sequences(0), "sequences"),
        (new().with_sequences(257), "sequences"),
        (new().with_batch(0), "batch"),
        (new().with_micro_batch(0), "micro_batch"),
        (new().with_threads(0), "threads"),
        (new().with_threads(100_000), "threads"),
        (new().with_context(usize::MAX), "context"),
        (new().with_context(1 << 30).with_sequences(4), "cells"),
        (new().with_cells(1024), "cells"),
        (new().with_layout(KvLayout::Unified).with_cells(0), "cells"),
    ];
    for (options, word) in cases {
        let error = model.session(&options).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::InvalidInput, "{options:?}: {error}");
        assert!(error.to_string().contains(word), "{options:?}: {error}");
    }
    let too_large = model.session(&new().with_context(1 << 30)).unwrap_err();
    assert_eq!(too_large.kind(), ErrorKind::OutOfMemory, "{too_large}");
    let own = model.session(&new().with_context(0)).unwrap();
    assert_eq!(own.limits().context, 512);
}

#[test]
fn a_vocabulary_has_no_session() {
    let folder = Folder::new();
    let path = folder.file("vocab.gguf", &tiny::llama().bytes());
    let _control = Script::new().install();
    let model = Model::open_with(&llama(), path, &ModelOptions::new().with_vocab_only(true)).unwrap();
    assert_eq!(model.session(&options()).unwrap_err().kind(), ErrorKind::Unsupported);
}

#[test]
fn usage_counts_shared_cells_once_and_dropped_ones_as_free() {
    let Faked { model, .. } = faked(Script::new());
    let unified = options().with_layout(KvLayout::Unified).with_cells(512);
    let mut session = model.session(&unified).unwrap();
    let free = session.usage();
    assert_eq!((free.sequences, free.sequences_free, free.cells, free.cells_free), (0, 4, 0, 512));
    let seq = open(&mut session);
    feed(&mut session, &seq, &tokens(0..10), Want::Nothing).unwrap();
    let child = session.fork(&seq, 8).unwrap();
    feed(&mut session, &child, &tokens(0..3), Want::Nothing).unwrap();
    assert_eq!((session.usage().sequences, session.usage().cells), (2, 13));
    drop(seq);
    let usage = session.usage();
    assert_eq!((usage.sequences, usage.cells, usage.cells_free), (1, 11, 501), "before the session has cleared them");
    session.truncate(&child, 4).unwrap();
    assert_eq!(session.usage().cells, 4);
}

#[test]
fn sequences_of_others_and_of_the_past_are_refused() {
    let Faked { model, .. } = faked(Script::new());
    let (mut session, mut foreign) = (model.session(&options()).unwrap(), model.session(&options()).unwrap());
    let (seq, theirs) = (open(&mut session), open(&mut foreign));
    feed(&mut session, &seq, &tokens(0..5), Want::Nothing).unwrap();
    let kind = |result: Result<(), Error>| result.unwrap_err().kind();
    assert_eq!(kind(feed(&mut session, &theirs, &tokens(0..1), Want::Nothing)), ErrorKind::ForeignSequence);
    assert_eq!(kind(session.truncate(&theirs, 0)), ErrorKind::ForeignSequence);
    assert_eq!(kind(session.fork(&theirs, 0).map(drop)), ErrorKind::ForeignSequence);
    assert_eq!(kind(session.sample_with(&theirs, &Sampling::greedy(), &[])), ErrorKind::ForeignSequence);
    assert_eq!(kind(session.shift(&theirs, 0..1)), ErrorKind::ForeignSequence);
    assert_eq!(kind(session.save(&theirs, &mut Vec::new())), ErrorKind::ForeignSequence);
    assert_eq!(kind(session.truncate(&seq, 6)), ErrorKind::InvalidInput);
    assert_eq!(kind(session.shift(&seq, 3..6)), ErrorKind::InvalidInput);
    assert_eq!(kind(session.fork(&seq, 6).map(drop)), ErrorKind::InvalidInput);
    assert_eq!(kind(feed(&mut session, &seq, &[], Want::Nothing)), ErrorKind::InvalidInput);
    assert_eq!(kind(feed(&mut session, &seq, &[Token(259)], Want::Nothing)), ErrorKind::InvalidInput);
    assert_eq!(kind(feed(&mut session, &seq, &tokens(0..65), Want::Nothing)), ErrorKind::InvalidInput);
    for _ in 0..4 {
        feed(&mut session, &seq, &tokens(0..62), Want::Nothing).unwrap();
    }
    assert_eq!(kind(feed(&mut session, &seq, &tokens(0..4), Want::Nothing)), ErrorKind::ContextFull);
    let _full = [open(&mut session), open(&mut session), open(&mut session)];
    assert_eq!(kind(session.open(&OpenOptions::default()).map(drop)), ErrorKind::TooManySequences);
    assert_eq!(kind(session.fork(&seq, 1).map(drop)), ErrorKind::TooManySequences);
    assert_eq!(seq.len(), 253);
}

/// Adapters are freed before their model and after whatever has them set, whoever is dropped first.
#[test]
fn adapters_are_freed_in_order() {
    let Faked { control, model, _folder: folder } = faked(Script::new());
    let names = OpenOptions::new().with_adapter("a");
    for session_first in [true, false] {
        let adapter = model.adapter(folder.file("adapter.gguf", &lora::llama(1).bytes())).unwrap();
        let mut session = model.session(&options().with_loaded_adapter("a", &adapter, 1.0)).unwrap();
        let seq = session.open(&names).unwrap();
        feed(&mut session, &seq, &tokens(0..5), Want::Logits).unwrap();
        assert_ne!(session.outputs().logits(0).unwrap(), alone(&model, &tokens(0..5)));
        assert_eq!(control.live(), Live { models: 1, contexts: 1, adapters: 1 });
        if session_first {
            drop(session);
            assert_eq!(control.live(), Live { models: 1, contexts: 0, adapters: 1 });
            drop(adapter);
        } else {
            drop(adapter);
            assert_eq!(control.live(), Live { models: 1, contexts: 1, adapters: 1 });
            drop(session);
        }
        assert_eq!(control.live(), Live { models: 1, contexts: 0, adapters: 0 });
    }
    let adapter = model.adapter(folder.path().join("adapter.gguf")).unwrap();
    drop(model);
    assert_eq!(control.live(), Live { models: 1, contexts: 0, adapters: 1 });
    drop(adapter);
    assert_eq!(control.live(), Live::default());
    assert_eq!(control.breaches(), [""; 0]);
}

/// An adapter that is dropped by whoever is told what a pass logs would wait for that pass: it is freed after it.
#[test]
fn an_adapter_dropped_within_a_pass_is_freed_after_it() {
    let Faked { control, model, _folder: folder } = faked(Script::new());
    let adapter = model.adapter(folder.file("adapter.gguf", &lora::llama(1).bytes())).unwrap();
    let mut session = model.session(&options()).unwrap();
    let seq = open(&mut session);
    let (live, refused) = (control.live(), Arc::new(Mutex::new(None)));
    let (adapter, said) = (Mutex::new(Some(adapter)), refused.clone());
    let loads = model.clone();
    // Drops the adapter, and tries to load it again, when llama.cpp logs.
    let told = Listener::new(move |_| {
        let Some(adapter) = adapter.lock().unwrap().take() else { return };
        let path = adapter.header().parts()[0].path().to_owned();
        drop(adapter);
        *said.lock().unwrap() = loads.adapter(path).err();
    });
    control.plan(Fault::ResultAfter { result: -3, ubatches: 1 });
    let failed = tracing::subscriber::with_default(told, || feed(&mut session, &seq, &tokens(0..20), Want::Logits));
    assert_eq!(failed.unwrap_err().kind(), ErrorKind::Runtime);
    assert_eq!((live.adapters, control.live().adapters), (1, 0));
    let refused = refused.lock().unwrap().take().expect("the pass has logged");
    assert_eq!(refused.kind(), ErrorKind::InvalidInput, "{refused}");
    assert_eq!(control.breaches(), [""; 0]);
}

#[test]
fn a_panic_of_a_subscriber_in_a_pass_goes_on_and_the_pass_is_taken_back() {
    let Faked { control, model, .. } = faked(Script::new());
    let mut session = model.session(&options()).unwrap();
    let seq = open(&mut session);
    feed(&mut session, &seq, &tokens(0..5), Want::Nothing).unwrap();
    control.plan(Fault::ResultAfter { result: -3, ubatches: 1 });
    let raised = tracing::subscriber::with_default(Listener::new(|_| panic!("from the subscriber")), || {
        panic::catch_unwind(AssertUnwindSafe(|| feed(&mut session, &seq, &tokens(5..20), Want::Logits)))
    });
    assert_eq!(raised.unwrap_err().downcast_ref(), Some(&"from the subscriber"));
    assert_eq!(seq.len(), 5);
    feed(&mut session, &seq, &tokens(5..20), Want::Logits).unwrap();
    assert_eq!(session.outputs().logits(0).unwrap(), alone(&model, &tokens(0..20)));
}

/// A library of the system has no headers that the shim could be built with.
#[test]
fn without_the_librarys_own_tree_there_are_no_states_and_no_shifts() {
    for own_tree in [true, false] {
        let Faked { model, control, .. } = faked(Script::new().with_own_tree(own_tree));
        let mut session = model.session(&options()).unwrap();
        let capabilities = session.capabilities();
        assert_eq!((capabilities.save, capabilities.shift), (own_tree, own_tree));
        let seq = open(&mut session);
        feed(&mut session, &seq, &tokens(0..20), Want::Nothing).unwrap();
        let mut state = Vec::new();
        if own_tree {
            session.save(&seq, &mut state).unwrap();
            let restored = session.restore(&mut &state[..]).unwrap();
            feed(&mut session, &restored, &tokens(7..8), Want::Logits).unwrap();
            let whole = [tokens(0..20), tokens(7..8)].concat();
            assert_eq!(session.outputs().logits(0).unwrap(), alone(&model, &whole));
            session.shift(&seq, 2..12).unwrap();
            assert_eq!(seq.len(), 10);
        } else {
            assert_eq!(session.save(&seq, &mut state).unwrap_err().kind(), ErrorKind::Unsupported);
            assert_eq!(session.restore(&mut &state[..]).unwrap_err().kind(), ErrorKind::Unsupported);
            assert_eq!(session.shift(&seq, 2..12).unwrap_err().kind(), ErrorKind::Unsupported);
            assert_eq!((seq.len(), state.len()), (20, 0));
        }
        assert_eq!(control.breaches(), [""; 0]);
    }
}

/// The token before what is scored is taken out and fed again: whatever goes wrong then, it is put back, or the sequence is
/// spent.
#[test]
fn a_scoring_pass_that_fails_puts_the_last_token_back() {
    let Faked { control, model, .. } = faked(Script::new());
    let mut session = model.session(&options()).unwrap();
    let seq = open(&mut session);
    feed(&mut session, &seq, &tokens(0..20), Want::Nothing).unwrap();
    let failing = |result| Fault::ResultAfter { result, ubatches: 1 };
    for (fault, kind) in [
        (Fault::Result(1), ErrorKind::OutOfCells),
        (failing(2), ErrorKind::Cancelled),
        (failing(-3), ErrorKind::Runtime),
    ] {
        control.plan(fault);
        let error = feed(&mut session, &seq, &tokens(30..50), Want::Score).unwrap_err();
        assert_eq!((error.kind(), seq.len(), seq.is_spent()), (kind, 20, false), "{error}");
        assert_eq!(session.usage().cells, 20);
    }
    feed(&mut session, &seq, &tokens(30..50), Want::Score).unwrap();
    assert_eq!(session.outputs().scores(0).len(), 20);
    feed(&mut session, &seq, &tokens(7..8), Want::Logits).unwrap();
    let whole = [tokens(0..20), tokens(30..50), tokens(7..8)].concat();
    assert_eq!(session.outputs().logits(0).unwrap(), alone(&model, &whole));

    // The second failure is of the call that puts it back.
    control.plan_all([Some(failing(2)), Some(Fault::Result(-3))]);
    let error = feed(&mut session, &seq, &tokens(30..40), Want::Score).unwrap_err();
    assert_eq!((error.kind(), seq.is_spent(), session.usage().cells), (ErrorKind::Cancelled, true, 0));
    assert_eq!(control.breaches(), [""; 0]);
}

/// Keys of which nobody knows which were moved are good for nothing.
#[test]
fn a_shift_that_fails_half_way_spends_the_sequence_and_no_other() {
    let Faked { control, model, .. } = faked(Script::new());
    let mut session = model.session(&options()).unwrap();
    let (seq, other) = (open(&mut session), open(&mut session));
    feed(&mut session, &seq, &tokens(0..20), Want::Nothing).unwrap();
    feed(&mut session, &other, &tokens(0..5), Want::Nothing).unwrap();
    control.fail_update();
    assert_eq!(session.shift(&seq, 2..12).unwrap_err().kind(), ErrorKind::Runtime);
    assert_eq!((seq.is_spent(), other.is_spent(), session.usage().cells), (true, false, 5));
    feed(&mut session, &other, &tokens(5..6), Want::Logits).unwrap();
    assert_eq!(session.outputs().logits(0).unwrap(), alone(&model, &tokens(0..6)));
    // What is behind everything else moves nothing.
    control.fail_update();
    session.shift(&other, 3..6).unwrap();
    assert_eq!(other.len(), 3);
    assert_eq!(control.breaches(), [""; 0]);
}
