use super::*;
use crate::{Backend, Overflow};
use infer_core::{AdapterSource, Sampling, chat::Message};

#[test]
fn is_an_error_before_the_first_token_and_the_engine_goes_on() {
    let engine = builder(Script::new())
        .with_context(64)
        .with_sequences(2)
        .with_cells(40)
        .with_adapter(AdapterSource::new("one", "anywhere"))
        .build()
        .unwrap();
    let sampled = |sampling: Sampling| ask("a prompt").with_sampling(sampling);
    let refused = [
        (Request::text("").with_max_tokens(1), None),
        (Request::rendered(""), Some((ErrorKind::InvalidInput, "no tokens"))),
        (Request::tokens([]), Some((ErrorKind::InvalidInput, "no tokens"))),
        (Request::tokens([Token(1 << 20)]), Some((ErrorKind::InvalidInput, "vocabulary"))),
        (Request::rendered("x".repeat(65)), Some((ErrorKind::ContextFull, "65 tokens"))),
        (Request::rendered("x".repeat(41)), Some((ErrorKind::OutOfCells, "40 KV cells"))),
        (
            Request::rendered("x".repeat(32)).with_max_tokens(33).with_overflow(Overflow::Error),
            Some((ErrorKind::ContextFull, "33 may follow")),
        ),
        (ask("a prompt").with_stop(""), Some((ErrorKind::InvalidInput, "stop"))),
        (ask("a prompt").with_adapter("two"), Some((ErrorKind::InvalidInput, "two"))),
        (ask("a prompt").with_adapter("one"), None),
        (ask("a prompt").with_n(0), Some((ErrorKind::InvalidInput, "0 completions"))),
        (ask("a prompt").with_n(3), Some((ErrorKind::InvalidInput, "2 sequences"))),
        (ask("a prompt").with_n(usize::MAX), Some((ErrorKind::InvalidInput, "2 sequences"))),
        (endless().with_overflow(Overflow::Shift), Some((ErrorKind::InvalidInput, "max_tokens"))),
        (sampled(Sampling::default().with_temperature(f32::NAN)), Some((ErrorKind::InvalidInput, "temperature"))),
        (sampled(Sampling::default().with_temperature(-1.0)), Some((ErrorKind::InvalidInput, "temperature"))),
        (sampled(Sampling::default().with_top_p(-0.5)), Some((ErrorKind::InvalidInput, "top_p"))),
        (Request::chat([]), None),
    ];
    for (request, expected) in refused {
        let said = format!("{request:?}");
        let mut generation = engine.generate(request);
        match (generation.wait().unwrap(), expected) {
            (Ok(_), None) => {}
            (Err(error), Some((kind, words))) => {
                assert_eq!(error.kind(), kind, "{said}: {error}");
                assert!(error.to_string().contains(words), "{said}: {error}");
                assert!(generation.wait().is_none(), "after an error there is nothing: {said}");
            }
            (got, _) => panic!("{said}: {got:?}"),
        }
        assert_eq!(engine.generate(ask("still")).complete().unwrap().tokens.len(), 8, "{said}");
    }
}

#[test]
fn a_template_that_refuses_says_so_of_that_request() {
    let template = "{{ raise_exception('Users first!') }}";
    let engine = builder(Script::new()).with_chat_template(template).build().unwrap();
    let error = engine.generate(Request::chat([Message::user("hello")])).complete().unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Template);
    assert!(error.to_string().contains("Users first!"), "{error}");
    engine.generate(ask("still")).complete().unwrap();
}

#[test]
fn nothing_is_drawn_where_nothing_was_asked_for() {
    let engine = engine(Script::new());
    let done = engine.generate(ask("a prompt").with_max_tokens(0)).complete().unwrap();
    assert_eq!((done.tokens.len(), done.text.as_str(), done.finish), (0, "", FinishReason::Length));
    assert_eq!(done.stats.prompt_tokens, 8);
}

#[test]
fn a_stop_string_may_come_in_the_middle_of_tokens() {
    let script = Script::new().with_line("say it:", "caf\u{e9} noir");
    let engine = engine(script);
    let done = engine.generate(Request::rendered("say it:").with_stop("\u{e9}")).complete().unwrap();
    assert_eq!((done.text.as_str(), done.finish), ("caf", FinishReason::StopString(0)));
}

#[test]
fn a_full_queue_refuses_or_waits() {
    for when_full in [WhenFull::Error, WhenFull::Wait] {
        let hold = Hold::default();
        let engine = builder(hold.on(Script::new())).with_sequences(1).with_queue(2, when_full).build().unwrap();
        let running = engine.generate(ask("this runs"));
        hold.wait();
        let waiting = [engine.generate(ask("this waits")), engine.generate(ask("and this"))];
        assert_eq!(engine.stats().waiting, 2);
        let soon = Instant::now() + Duration::from_millis(20);
        assert_eq!(kind(engine.generate(ask("too late").with_deadline(soon)).complete()), ErrorKind::QueueFull);
        thread::scope(|scope| {
            let one_more = scope.spawn(|| engine.generate(ask("one more")).complete());
            if when_full == WhenFull::Error {
                assert_eq!(kind(one_more.join().unwrap()), ErrorKind::QueueFull);
                hold.open();
            } else {
                hold.open();
                assert_eq!(one_more.join().unwrap().unwrap().tokens.len(), 8);
            }
        });
        for one in waiting.into_iter().chain([running]) {
            assert_eq!(one.complete().unwrap().tokens.len(), 8);
        }
    }
}

#[test]
fn an_engine_that_cannot_be_made_says_why() {
    let of = |change: fn(EngineBuilder) -> EngineBuilder| change(builder(Script::new())).build().map(drop).unwrap_err();
    assert_eq!(of(|builder| builder.with_sequences(0)).kind(), ErrorKind::InvalidInput);
    assert_eq!(of(|builder| builder.with_queue(0, WhenFull::Wait)).kind(), ErrorKind::InvalidInput);
    assert_eq!(of(|builder| builder.with_batch(0)).kind(), ErrorKind::InvalidInput);
    assert_eq!(of(|builder| builder.with_layout(KvLayout::Split).with_cells(9)).kind(), ErrorKind::InvalidInput);
    assert_eq!(of(|builder| builder.with_backend(Backend::Llama)).kind(), ErrorKind::InvalidInput);
    // What the file is no longer matters, only that there is none.
    let error = Engine::builder("no/such/file.onnx").with_backend(Backend::Llama).build().unwrap_err();
    assert!(matches!(error.kind(), ErrorKind::Io | ErrorKind::Unsupported), "{error}");
    let twice = AdapterSource::new("twice", "anywhere");
    let error = builder(Script::new()).with_adapter(twice.clone()).with_adapter(twice).build().unwrap_err();
    assert_eq!(error.kind(), ErrorKind::InvalidInput);
    let error = builder(Script::new()).with_chat_template("{{ messages[ }}").build().unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Template);
    let error = Engine::open("no/such/file.gguf").unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Io);
    assert!(error.to_string().contains("no/such/file.gguf"), "{error}");
    let error = Engine::builder_with(|| panic!("this cannot be opened")).build().unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Panicked);
    assert!(error.to_string().contains("this cannot be opened"), "{error}");
    let error = builder(Script::new()).with_sessions(|_, _| Err(ErrorKind::OutOfMemory.into())).build().unwrap_err();
    assert_eq!(error.kind(), ErrorKind::OutOfMemory);
}
