//! Loading a model, and what a session of it may be asked for.

use super::*;

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
