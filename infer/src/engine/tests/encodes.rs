use super::*;
use infer_core::{Encoder as _, EncoderOptions, Pooling, Session};

const TEXTS: [&str; 5] =
    ["The ferry leaves at nine.", "A boat goes at nine.", "I like pears.", "Apples, too.", "And plums."];

/// The vectors by hand, of the texts one by one.
fn by_hand(options: &EncoderOptions, texts: &[&str]) -> Vec<Vec<f32>> {
    let model = ScriptedModel::default();
    let mut encoder = model.encoder(options).unwrap();
    let mut one = |text: &&str| {
        let mut tokens = Vec::new();
        model.tokenizer().encode(text, Special::ADD, &mut tokens).unwrap();
        encoder.encode(&[&tokens]).unwrap();
        encoder.vectors().vector(0).unwrap().to_vec()
    };
    texts.iter().map(&mut one).collect()
}

fn near(a: &[Vec<f32>], b: &[Vec<f32>]) -> bool {
    a.len() == b.len() && a.iter().flatten().zip(b.iter().flatten()).all(|(a, b)| (a - b).abs() < 1e-6)
}

#[test]
fn vectors_are_those_of_the_texts_alone_and_share_passes() {
    let entries = Arc::new(Mutex::new(Vec::new()));
    let seen = entries.clone();
    let script = Script::new().with_hook(move |step| {
        if step.done == 0 {
            seen.lock().unwrap().push(step.entries);
        }
        None
    });
    let engine = engine(script);
    assert!(engine.encoder().is_none(), "nobody has asked for it");
    let alone = by_hand(&EncoderOptions::new(), &TEXTS);
    assert!(near(&engine.embed(TEXTS).wait().unwrap(), &alone));
    assert!(near(&block_on(engine.embed(TEXTS)).unwrap(), &alone));
    assert_eq!(engine.encoder().unwrap().pooling, Pooling::Mean);
    assert_eq!(*entries.lock().unwrap(), [5, 5], "the five share a pass");
    assert!(engine.embed([""; 0]).wait().unwrap().is_empty());
}

#[test]
fn texts_of_many_callers_share_passes_and_take_turns() {
    let hold = Hold::default();
    let script = hold.on(Script::new());
    let engine = engine(script);
    let many: Vec<_> = (0..40).map(|one| format!("text number {one}")).collect();
    let first = engine.embed(&many);
    hold.wait();
    let single: Vec<_> = TEXTS.iter().map(|text| engine.embed([text])).collect();
    hold.open();
    let alone = by_hand(&EncoderOptions::new(), &TEXTS);
    for (one, alone) in single.into_iter().zip(&alone) {
        assert!(near(&one.wait().unwrap(), std::slice::from_ref(alone)));
    }
    let texts: Vec<_> = many.iter().map(String::as_str).collect();
    assert!(near(&first.wait().unwrap(), &by_hand(&EncoderOptions::new(), &texts)));
}

#[test]
fn streams_go_on_between_passes() {
    let engine = engine(Script::new());
    let mut stream = engine.generate(endless());
    let many: Vec<_> = (0..400).map(|one| format!("text number {one}")).collect();
    stream.wait().unwrap().unwrap();
    let answer = engine.embed(&many);
    let before = engine.stats().steps;
    assert_eq!(answer.wait().unwrap().len(), 400);
    let steps = engine.stats().steps - before;
    assert!(steps + 2 >= 400 / 8, "a step between any two passes of 8 texts: {steps}");
    stream.cancel();
}

#[test]
fn a_pass_beside_streams_is_as_short_as_a_step_may_be() {
    let entries = Arc::new(Mutex::new(Vec::new()));
    let seen = entries.clone();
    // The encoder is made after the session; a text of it takes five milliseconds.
    let script = Script::new().with_hook(move |step| {
        if step.session == 1 && step.done > 0 {
            thread::sleep(Duration::from_millis(5));
        }
        if step.session == 1 && step.done == 0 {
            seen.lock().unwrap().push(step.entries);
        }
        None
    });
    let engine = builder(script).with_step_time(Duration::from_millis(10)).build().unwrap();
    let mut stream = engine.generate(endless().with_overflow(crate::Overflow::Shift).with_max_tokens(usize::MAX));
    stream.wait().unwrap().unwrap();
    let texts: Vec<_> = (10..50).map(|one| format!("text number {one}")).collect();
    engine.embed(&texts).wait().unwrap();
    let beside = std::mem::take(&mut *entries.lock().unwrap());
    assert!(beside[1..].iter().all(|&texts| texts <= 2), "{beside:?}");
    drop(stream);
    until("nothing is generated", || engine.stats().cancelled == 1);
    engine.embed(&texts).wait().unwrap();
    assert_eq!(*entries.lock().unwrap(), [8; 5]);
}

#[test]
fn documents_are_ranked_and_texts_classified_where_the_model_does_that() {
    let rank = EncoderOptions::new().with_pooling(Pooling::Rank);
    let ranker = builder(Script::new()).with_encoder(rank.clone()).build().unwrap();
    let documents = ["a boat", "the ferry leaves at nine", "pears"];
    let scores = ranker.rerank("when does the ferry leave", documents).wait().unwrap();
    assert_eq!(scores.len(), 3);
    assert!(scores[1] > scores[0] && scores[1] > scores[2], "{scores:?}");
    assert_eq!(kind(ranker.embed(TEXTS).wait()), ErrorKind::Unsupported);

    let classifier = builder(Script::new().with_labels(["good", "bad"])).with_encoder(rank).build().unwrap();
    assert_eq!(classifier.encoder().unwrap().labels, ["good", "bad"]);
    let classes = classifier.classify(TEXTS).wait().unwrap();
    assert_eq!((classes.len(), classes[0].len()), (5, 2));
    assert_eq!(kind(classifier.rerank("query", documents).wait()), ErrorKind::Unsupported);

    let other = engine(Script::new());
    assert_eq!(kind(other.rerank("query", documents).wait()), ErrorKind::Unsupported);
    assert_eq!(kind(other.classify(TEXTS).wait()), ErrorKind::Unsupported);
    let none = builder(Script::new()).with_encoder(EncoderOptions::new().with_pooling(Pooling::None)).build().unwrap();
    assert_eq!(kind(none.embed(TEXTS).wait()), ErrorKind::Unsupported);
}

#[test]
fn what_is_wrong_with_one_is_no_business_of_others() {
    let options = EncoderOptions::new().with_context(30);
    let hold = Hold::default();
    let engine = builder(hold.on(Script::new())).with_encoder(options.clone()).build().unwrap();
    let good = engine.embed(TEXTS);
    hold.wait();
    let long = engine.embed(["short", "this is a text of more than thirty tokens"]);
    let empty = engine.embed(Vec::<String>::new());
    let other = engine.embed(TEXTS);
    hold.open();
    let error = long.wait().unwrap_err();
    assert_eq!(error.kind(), ErrorKind::InvalidInput);
    assert!(error.to_string().contains("text 1"), "{error}");
    assert!(empty.wait().unwrap().is_empty());
    let alone = by_hand(&options, &TEXTS);
    assert!(near(&good.wait().unwrap(), &alone) && near(&other.wait().unwrap(), &alone));

    let options = options.with_pooling(Pooling::Rank);
    let ranker = builder(Script::new()).with_encoder(options).build().unwrap();
    let long = ranker.rerank("query", ["short", "this is a text of more than thirty tokens"]);
    let error = long.wait().unwrap_err();
    assert!(error.kind() == ErrorKind::InvalidInput && error.to_string().contains("document 1"), "{error}");
    assert_eq!(ranker.rerank("query", ["short"]).wait().unwrap().len(), 1);
}

#[test]
fn a_pass_that_fails_is_tried_by_each_alone_and_a_lost_encoder_is_replaced() {
    // Texts that share a pass lose the encoder.
    let engine = engine(Script::new().with_hook(|step| (step.entries > 1 && step.done == 1).then_some(Fault::Lose)));
    let failed = engine.embed(TEXTS).wait();
    assert_eq!(kind(failed), ErrorKind::SessionLost, "five texts of one request lose each encoder");
    let single: Vec<_> = TEXTS.iter().map(|text| engine.embed([text])).collect();
    let alone = by_hand(&EncoderOptions::new(), &TEXTS);
    for (one, alone) in single.into_iter().zip(&alone) {
        assert!(near(&one.wait().unwrap(), std::slice::from_ref(alone)));
    }
}

#[test]
fn an_answer_that_is_not_wanted_is_not_computed_and_one_that_is_late_says_so() {
    let hold = Hold::default();
    let engine = engine(hold.on(Script::new()));
    let first = engine.embed(["first"]);
    hold.wait();
    drop(engine.embed(["not wanted"]));
    let late = engine.embed(["late"]).wait_until(Instant::now() + Duration::from_millis(5));
    assert_eq!(kind(late), ErrorKind::Cancelled);
    hold.open();
    first.wait().unwrap();
    engine.drain();
    assert_eq!(hold.seen(), 2, "one pass of one text");
}

/// A model without a session, or without an encoder.
struct Without {
    model: ScriptedModel,
    session: bool,
    encoder: bool,
}

impl Model for Without {
    fn info(&self) -> &Arc<ModelInfo> {
        self.model.info()
    }

    fn tokenizer(&self) -> Arc<dyn Tokenizer> {
        self.model.tokenizer()
    }

    fn session(&self, options: &SessionOptions) -> Result<Box<dyn Session>> {
        if self.session { self.model.session(options) } else { Err(Error::unsupported("it has no session")) }
    }

    fn encoder(&self, options: &EncoderOptions) -> Result<Box<dyn infer_core::Encoder>> {
        if self.encoder { self.model.encoder(options) } else { Err(Error::unsupported("it has no encoder")) }
    }
}

fn without(session: bool, encoder: bool) -> Result<Engine> {
    Engine::builder_with(move || Ok(Box::new(Without { model: ScriptedModel::default(), session, encoder }))).build()
}

#[test]
fn a_model_does_one_thing_or_the_other() {
    let encoder = without(false, true).unwrap();
    let error = encoder.generate(ask("a prompt")).complete().unwrap_err();
    assert_eq!((error.kind(), error.to_string().as_str()), (ErrorKind::Unsupported, "it has no session"));
    assert_eq!(kind(encoder.score("a prompt").wait()), ErrorKind::Unsupported);
    assert!(encoder.limits().is_none() && encoder.encoder().is_some());
    assert_eq!(encoder.embed(TEXTS).wait().unwrap().len(), 5);

    let decoder = without(true, false).unwrap();
    let error = decoder.embed(TEXTS).wait().unwrap_err();
    assert_eq!((error.kind(), error.to_string().as_str()), (ErrorKind::Unsupported, "it has no encoder"));
    decoder.generate(ask("a prompt")).complete().unwrap();

    let error = without(false, false).unwrap_err();
    assert_eq!(error.to_string(), "it has no session");
}
