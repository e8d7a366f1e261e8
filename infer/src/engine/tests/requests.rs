use super::*;
use crate::Overflow;
use infer_core::{AdapterSource, Sampling, testing::EOS};

#[test]
fn is_shared_by_threads() {
    fn shared<T: Send + Sync + Clone + 'static>() {}
    fn sent<T: Send + 'static>() {}
    shared::<Engine>();
    sent::<(Generation, Answer<Vec<f32>>, EngineBuilder)>();
}

#[test]
fn a_text_is_what_it_is_by_itself() {
    let script = Script::new().with_line("2 + 2 = ", "4.");
    let engine = engine(script.clone());
    let request = Request::rendered("2 + 2 = ");
    let done = engine.generate(request.clone()).complete().unwrap();
    let alone = solo(&script, &request);
    assert_eq!((&done.text, &done.tokens, done.finish), (&alone.text, &alone.tokens, FinishReason::EndOfText));
    assert_eq!((done.stats.prompt_tokens, done.stats.cached_tokens, done.stats.generated_tokens), (8, 0, 3));
    assert_eq!(done.token_times.len(), 3);
}

#[test]
fn many_at_once_from_many_threads_are_each_what_they_are_by_themselves() {
    let script = Script::new().with_batch(64);
    let engine = builder(script.clone()).with_sequences(4).build().unwrap();
    thread::scope(|scope| {
        for thread in 0..8 {
            let (engine, script) = (engine.clone(), &script);
            scope.spawn(move || {
                let requests: Vec<_> = (0..6)
                    .map(|one| {
                        let sampling = Sampling::default().with_temperature(0.9).with_seed(one);
                        ask(&format!("the same beginning, then {thread} and {one}")).with_sampling(sampling)
                    })
                    .collect();
                let all: Vec<_> = requests.iter().map(|request| engine.generate(request.clone())).collect();
                for (request, one) in requests.iter().zip(all) {
                    assert_eq!(one.complete().unwrap().tokens, solo(script, request).tokens);
                }
            });
        }
    });
    let stats = engine.stats();
    assert_eq!((stats.finished, stats.failed, stats.waiting, stats.running), (48, 0, 0, 0));
    assert!(stats.prefix_hits > 0, "they begin alike: {stats}");
}

#[test]
fn no_more_run_at_once_than_may() {
    let most = Arc::new(Mutex::new(0));
    let seen = most.clone();
    let script = Script::new().with_hook(move |step| {
        let mut most = seen.lock().unwrap();
        *most = (*most).max(step.entries);
        None
    });
    let engine = builder(script).with_layout(KvLayout::Unified).with_sequences(3).build().unwrap();
    let all: Vec<_> = (0..12).map(|one| engine.generate(ask(&format!("{one}: a prompt of its own")))).collect();
    for one in all {
        one.complete().unwrap();
    }
    assert_eq!(*most.lock().unwrap(), 3);
    assert_eq!(engine.limits().unwrap().sequences, 3);
    assert!(engine.stats().sequences_total > 3, "the prefix cache has sequences of its own");
}

#[test]
fn completions_of_one_request_differ_by_their_seed_and_share_its_prompt() {
    let script = Script::new();
    let engine = engine(script.clone());
    let sampling = |seed| Sampling::default().with_temperature(1.0).with_seed(seed);
    let request = ask("once upon a time there was a").with_sampling(sampling(5));
    let all = engine.generate(request.clone().with_n(3)).complete_all().unwrap();
    assert_eq!(all.len(), 3);
    for (seed, one) in (5..).zip(&all) {
        assert_eq!(one.tokens, solo(&script, &request.clone().with_sampling(sampling(seed))).tokens);
    }
    let prompt = all[0].stats.prompt_tokens as u64;
    assert!(engine.stats().prefilled_tokens < 2 * prompt, "it was computed once, but for the last token");
    assert_eq!(kind(engine.generate(request.with_n(2)).complete()), ErrorKind::InvalidInput);
}

#[test]
fn what_was_read_to_its_end_is_there_for_the_next_one() {
    let engine = engine(Script::new());
    for turn in 0..200 {
        // The stream is gone as soon as its end was read, which the scheduler may or may not see before it looks.
        let done =
            engine.generate(ask(&format!("a long beginning that all have in common, {turn}"))).complete().unwrap();
        assert_eq!(done.stats.cached_tokens > 0, turn > 0, "turn {turn}");
    }
}

#[test]
fn a_conversation_goes_through_the_models_template_or_the_given_one() {
    let script = Script::new()
        .with_line("<|im_start|>user\nhello<|im_end|>\n<|im_start|>assistant\n", "hi")
        .with_line("Q: hello A:", "ho");
    let request = || Request::chat([infer_core::chat::Message::user("hello")]);
    let own = engine(script.clone());
    assert_eq!(own.generate(request()).complete().unwrap().text, "hi");
    let template = "Q: {{ messages[0].content }} A:";
    let other = builder(script).with_chat_template(template).build().unwrap();
    assert_eq!(other.generate(request()).complete().unwrap().text, "ho");
}

#[test]
fn adapters_are_named() {
    let script = Script::new();
    let engine = builder(script.clone()).with_adapter(AdapterSource::new("other", "anywhere")).build().unwrap();
    let request = ask("a prompt");
    let bare = engine.generate(request.clone()).complete().unwrap();
    let other = engine.generate(request.clone().with_adapter("other")).complete().unwrap();
    assert_eq!(bare.tokens, solo(&script, &request).tokens);
    assert_ne!(bare.tokens, other.tokens);
}

#[test]
fn a_context_that_is_full_is_gone_on_with_by_shifting() {
    let engine = builder(Script::new()).with_context(64).build().unwrap();
    let request = endless().with_overflow(Overflow::Shift).with_max_tokens(200);
    let done = engine.generate(request).complete().unwrap();
    assert_eq!((done.tokens.len(), done.finish), (200, FinishReason::Length));
}

#[test]
fn tokens_are_scored() {
    let script = Script::new();
    let engine = engine(script);
    let prompt = engine.tokenize("words", Special::ADD).unwrap();
    let scored = engine.score("words").wait().unwrap();
    let tokens: Vec<_> = scored.iter().map(|one| one.token).collect();
    assert_eq!(tokens, prompt[1..]);
    assert!(scored.iter().all(|one| one.logprob < 0.0 && one.logprob.is_finite()));
    // The probability of a token that is drawn is the one it is scored with.
    let drawn = engine.generate(Request::tokens(prompt.clone()).with_max_tokens(1)).complete().unwrap().tokens[0];
    let again = engine.score([&prompt[..], &[drawn.token]].concat()).wait().unwrap();
    assert!((again.last().unwrap().logprob - drawn.logprob).abs() < 1e-5);
    assert_eq!(block_on(engine.score(&prompt[..])).unwrap(), scored);
}

#[test]
fn tokens_and_text_need_no_model() {
    let engine = engine(Script::new());
    let tokens = engine.tokenize("naïve</s>", Special::PARSE).unwrap();
    assert_eq!(tokens.last(), Some(&EOS));
    assert_eq!(engine.detokenize(&tokens).unwrap(), "naïve");
    assert_eq!(kind(engine.detokenize(&[Token(1 << 30)])), ErrorKind::InvalidInput);
    assert_eq!(engine.model().architecture, "scripted");
    assert_eq!(engine.layout(), Some(KvLayout::Split));
}

#[test]
fn a_deadline_ends_a_text_with_what_there_is() {
    let script = Script::new().with_hook(|_| {
        thread::sleep(Duration::from_millis(1));
        None
    });
    let engine = engine(script);
    let request = endless().with_deadline(Instant::now() + Duration::from_millis(60));
    assert_eq!(engine.generate(request).complete().unwrap().finish, FinishReason::Deadline);
}

#[test]
fn a_lost_session_is_replaced_and_nobody_notices() {
    let script = Script::new();
    let failing = script.clone().with_hook(|step| (step.session < 1 && step.pass == 2).then_some(Fault::Lose));
    let engine = engine(failing);
    let requests: Vec<_> = (0..5).map(|one| ask(&format!("{one} is a prompt"))).collect();
    let all: Vec<_> = requests.iter().map(|request| engine.generate(request.clone())).collect();
    for (request, one) in requests.iter().zip(all) {
        assert_eq!(one.complete().unwrap().tokens, solo(&script, request).tokens);
    }
    assert_eq!(engine.stats().rebuilt, 1);
}
