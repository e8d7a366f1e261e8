//! Who frees what, and when.

use super::*;

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
