//! Everything here runs on the scripted session; what a real runtime does with a generator is in the command's tests.

#[cfg(feature = "chat")]
mod answers;

use super::*;
use infer_core::{
    AdapterSource, Model, Sampling, SessionOptions, Special, Tokenizer,
    testing::{ByteTokenizer, Cuts, EOS, Fault, IM_END, Script, ScriptedModel},
};
use std::sync::{
    Mutex,
    atomic::{AtomicBool, Ordering},
};

fn encode(text: &str) -> Vec<Token> {
    let mut tokens = Vec::new();
    ByteTokenizer::default().encode(text, Special::PARSE, &mut tokens).unwrap();
    tokens
}

fn start(script: Script) -> (Box<dyn Session>, Generator) {
    let model = ScriptedModel::new(script);
    let session = model.session(&SessionOptions::new()).unwrap();
    (session, Generator::new(model.tokenizer()))
}

/// A prompt in which control tokens are written by name.
fn ask(prompt: &str) -> Request {
    Request::rendered(prompt)
}

fn complete(script: Script, request: &Request) -> Completion {
    let (mut session, mut generator) = start(script);
    finish(&mut session, &mut generator, request)
}

fn finish(session: &mut dyn Session, generator: &mut Generator, request: &Request) -> Completion {
    generator.generate(session, request).unwrap().complete().unwrap()
}

fn refusal(session: &mut dyn Session, generator: &mut Generator, request: &Request) -> ErrorKind {
    generator.generate(session, request).map(|_| ()).unwrap_err().kind()
}

fn ids(tokens: &[infer_core::Sampled]) -> Vec<Token> {
    tokens.iter().map(|sampled| sampled.token).collect()
}

/// A script that counts its passes.
fn counting(script: Script) -> (Script, Arc<Mutex<u64>>) {
    let passes = Arc::new(Mutex::new(0));
    let seen = passes.clone();
    let script = script.with_hook(move |step| {
        *seen.lock().unwrap() = step.pass + 1;
        None
    });
    (script, passes)
}

#[test]
fn the_text_is_what_the_model_says_and_ends_where_it_ends() {
    let done = complete(Script::new().with_line("2 + 2 = ", "4."), &ask("2 + 2 = "));
    assert_eq!((done.text.as_str(), done.finish), ("4.", FinishReason::EndOfText));
    assert_eq!(ids(&done.tokens), [encode("4."), vec![EOS]].concat());
    assert_eq!((done.stats.prompt_tokens, done.stats.cached_tokens, done.stats.generated_tokens), (8, 0, 3));
}

#[test]
fn the_most_probable_tokens_come_with_each_drawn_one() {
    let script = Script::new().with_line("2 + 2 = ", "4.");
    let request = ask("2 + 2 = ").with_sampling(Sampling::greedy().with_logprobs(3));
    let done = complete(script.clone(), &request);
    assert_eq!(done.top.len(), done.tokens.len());
    for (drawn, top) in done.tokens.iter().zip(&done.top) {
        assert_eq!((top.len(), top[0]), (3, *drawn), "greedy, the most probable one is drawn");
    }
    let none = complete(script.clone(), &ask("2 + 2 = "));
    assert!(none.top.is_empty());
    let (mut session, mut generator) = start(script);
    let piece = generator.generate(&mut session, &request).unwrap().next().unwrap().unwrap();
    assert_eq!(piece.top, done.top[..1]);
}

#[test]
fn a_long_prompt_is_fed_in_chunks_with_the_same_result() {
    let prompt = "a prompt of forty bytes, more or less: ok";
    let script = Script::new().with_line(": ok", " and on");
    let whole = complete(script.clone(), &ask(prompt));
    for batch in [1, 3, prompt.len() - 1, prompt.len()] {
        let (script, passes) = counting(script.clone().with_batch(batch));
        let chunked = complete(script, &ask(prompt).with_max_tokens(1));
        assert_eq!(chunked.tokens[..], whole.tokens[..1], "batches of {batch}");
        assert_eq!(*passes.lock().unwrap() as usize, prompt.len().div_ceil(batch), "batches of {batch}");
    }
    assert_eq!(whole.text, " and on");
}

#[test]
fn a_stop_string_is_found_across_tokens_and_left_out() {
    let script = Script::new().with_line("go: ", "one two END three");
    let (mut session, mut generator) = start(script.clone());
    let request = ask("go: ").with_stop("absent").with_stop("END");
    let mut generation = generator.generate(&mut session, &request).unwrap();
    let pieces: Vec<Piece> = (&mut generation).map(Result::unwrap).collect();
    assert_eq!(generation.finish_reason(), Some(FinishReason::StopString(1)));
    assert_eq!(pieces.iter().map(|piece| piece.text.as_str()).collect::<String>(), "one two ");
    assert!(pieces.iter().all(|piece| !piece.text.contains('E')), "a beginning of the stop string was shown");
    assert_eq!(generator.tokens(), encode("go: one two END"), "what was drawn is kept");

    // Held back and then not a stop string after all: nothing is lost.
    assert_eq!(complete(script, &ask("go: ").with_stop("END three!")).text, "one two END three");
}

#[test]
fn half_a_character_waits_for_the_other_half() {
    let script = Script::new().with_line("x", "a\u{e9}\u{1f600}b");
    let (mut session, mut generator) = start(script.clone());
    let generation = generator.generate(&mut session, &ask("x")).unwrap();
    let texts: Vec<String> = generation.map(|piece| piece.unwrap().text).collect();
    assert_eq!(texts, ["a", "", "\u{e9}", "", "", "", "\u{1f600}", "b", ""]);

    // Cut in the middle of one, the rest is not lost in silence.
    let cut = complete(script, &ask("x").with_max_tokens(2));
    assert_eq!((cut.text.as_str(), cut.finish), ("a\u{fffd}", FinishReason::Length));
}

#[test]
fn tokens_can_be_counted_stopped_at_and_ignored() {
    let script = Script::new().with_line("x", "abc<|im_end|>").with_line("abc<|im_end|>", "def");
    let length = complete(script.clone(), &ask("x").with_max_tokens(2));
    assert_eq!((length.text.as_str(), length.finish), ("ab", FinishReason::Length));
    let none = complete(script.clone(), &ask("x").with_max_tokens(0));
    assert_eq!((none.text.as_str(), none.tokens.len(), none.finish), ("", 0, FinishReason::Length));
    let b = encode("b")[0];
    let stopped = complete(script.clone(), &ask("x").with_stop_token(b));
    assert_eq!((stopped.text.as_str(), stopped.finish), ("a", FinishReason::StopToken(b)));
    let ended = complete(script.clone(), &ask("x"));
    assert_eq!((ended.text.as_str(), ended.tokens.last().map(|last| last.token)), ("abc", Some(IM_END)));
    let on = complete(script, &ask("x").with_ignore_end(true).with_max_tokens(7));
    assert_eq!((on.text.as_str(), on.finish), ("abcdef", FinishReason::Length));
}

#[test]
fn the_context_is_an_error_before_and_a_reason_after_the_first_token() {
    let script = Script::new().with_context(8).with_line("12345678", "9").with_line("1234", "56789");
    let (mut session, mut generator) = start(script.clone());
    assert_eq!(refusal(&mut session, &mut generator, &ask("123456789")), ErrorKind::ContextFull);
    assert_eq!(refusal(&mut session, &mut generator, &ask("")), ErrorKind::InvalidInput);
    assert_eq!(session.usage().sequences, 0, "nothing was begun");

    // The token drawn after the last position still counts; it is the one that could not be fed.
    let full = complete(script.clone(), &ask("12345678"));
    assert_eq!((full.text.as_str(), full.finish), ("9", FinishReason::ContextFull));
    let grown = complete(script, &ask("1234"));
    assert_eq!((grown.text.as_str(), grown.finish), ("56789", FinishReason::ContextFull));
}

#[test]
fn a_longer_prompt_computes_only_what_is_new() {
    let (script, passes) = counting(Script::new().with_batch(1).with_line("first?", "yes").with_line("second?", "no"));
    let (mut session, mut generator) = start(script.clone());
    finish(&mut session, &mut generator, &ask("first?"));
    let before = *passes.lock().unwrap();
    let prompt = encode("first?yes</s>second?");
    let done = finish(&mut session, &mut generator, &Request::tokens(prompt.clone()));
    assert_eq!(done.text, "no");
    // "first?yes" was fed; the end that was drawn never was.
    assert_eq!(done.stats.cached_tokens, 9);
    assert_eq!((*passes.lock().unwrap() - before) as usize, (prompt.len() - 9) + 2);

    // The same prompt again, and one that leaves the text early: cut, not wrong.
    for prompt in ["first?yes</s>second?", "first?second?"] {
        let done = finish(&mut session, &mut generator, &ask(prompt));
        assert_eq!(done.text, complete(script.clone(), &ask(prompt)).text);
    }
    assert_eq!(session.usage().sequences, 1);
}

#[test]
fn a_model_that_cannot_go_back_computes_again() {
    let script = Script::new().with_cuts(Cuts::Nowhere).with_line("first?", "yes").with_line("second?", "no");
    let (mut session, mut generator) = start(script);
    finish(&mut session, &mut generator, &ask("first?"));
    let done = finish(&mut session, &mut generator, &ask("second?"));
    assert_eq!((done.text.as_str(), done.stats.cached_tokens), ("no", 0));
    assert_eq!(session.usage().sequences, 1);
}

#[test]
fn a_cancelled_generation_keeps_what_it_has_and_can_go_on() {
    let armed = Arc::new(AtomicBool::new(true));
    let hook = armed.clone();
    let script = Script::new().with_line("count: ", "1 2 3 4").with_hook(move |step| {
        if step.pass == 3 && hook.swap(false, Ordering::Relaxed) {
            step.interrupt.raise();
        }
        None
    });
    let (mut session, mut generator) = start(script);
    let part = finish(&mut session, &mut generator, &ask("count: ").with_stop("2 9"));
    assert_eq!((part.text.as_str(), part.finish), ("1 2", FinishReason::Cancelled), "held-back text comes out");

    // The interrupt is a level: nothing runs until it is lowered.
    let log = generator.tokens().to_vec();
    let none = finish(&mut session, &mut generator, &Request::tokens(log.clone()));
    assert_eq!((none.text.as_str(), none.finish), ("", FinishReason::Cancelled));
    session.interrupt().lower();
    let rest = finish(&mut session, &mut generator, &Request::tokens(log.clone()));
    assert_eq!((rest.text.as_str(), rest.finish), (" 3 4", FinishReason::EndOfText));
    assert_eq!(rest.stats.cached_tokens, log.len() - 1);
}

#[test]
fn after_an_error_the_session_and_the_generator_are_of_use() {
    for fault in [Fault::Error(ErrorKind::OutOfCells), Fault::Spend(ErrorKind::Runtime)] {
        let (mut session, mut generator) = start(Script::new().with_line("x", "abcd").with_fault(2, fault));
        let mut generation = generator.generate(&mut session, &ask("x")).unwrap();
        assert_eq!(generation.by_ref().take(2).map(|piece| piece.unwrap().text).collect::<String>(), "ab");
        assert!(generation.next().unwrap().is_err());
        assert!(generation.next().is_none(), "an error ends it");
        assert_eq!(generation.finish_reason(), None);
        let log = generator.tokens().to_vec();
        let rest = finish(&mut session, &mut generator, &Request::tokens(log.clone()));
        assert_eq!((rest.text.as_str(), rest.finish), ("cd", FinishReason::EndOfText), "{fault:?}");
    }
}

#[test]
fn a_generator_may_follow_to_another_session_when_told_so() {
    let script = Script::new().with_line("x", "abc");
    let (mut first, mut generator) = start(script.clone());
    let (mut second, _) = start(script);
    finish(&mut *first, &mut generator, &ask("x"));
    assert_eq!(refusal(&mut *second, &mut generator, &ask("x")), ErrorKind::ForeignSequence);
    generator.reset();
    let done = finish(&mut *second, &mut generator, &ask("x"));
    assert_eq!(done.text, "abc");
    assert_eq!(first.usage().sequences, 0);
}

#[test]
fn a_bad_request_is_an_error_before_anything_is_computed() {
    let (script, passes) = counting(Script::new());
    let (mut session, mut generator) = start(script);
    let hot = Sampling::default().with_temperature(-1.0);
    for request in [ask("x").with_stop(""), ask("x").with_sampling(hot), Request::tokens([Token(100_000)])] {
        assert_eq!(refusal(&mut session, &mut generator, &request), ErrorKind::InvalidInput);
    }
    assert_eq!(*passes.lock().unwrap(), 0);
}

#[test]
fn dropping_it_early_keeps_every_token() {
    let (mut session, mut generator) = start(Script::new().with_line("x", "abcdef"));
    let taken = generator.generate(&mut session, &ask("x")).unwrap().take(3).count();
    assert_eq!((taken, generator.tokens()), (3, &encode("xabc")[..]));
    assert_eq!(generator.sequence().map(Sequence::len), Some(3), "the last one drawn is not fed yet");
}

#[test]
fn what_was_computed_with_another_adapter_is_not_reused() {
    let model = ScriptedModel::new(Script::new());
    let options = SessionOptions::new().with_adapter(AdapterSource::new("a", "no file is opened"));
    let mut session = model.session(&options).unwrap();
    let mut generator = Generator::new(model.tokenizer());
    let bare = ask("a prompt of some length").with_max_tokens(8);
    let adapted = bare.clone().with_adapter("a");
    let first = finish(&mut session, &mut generator, &bare);
    let second = finish(&mut session, &mut generator, &adapted);
    assert_eq!(second.stats.cached_tokens, 0);
    assert_ne!(ids(&first.tokens), ids(&second.tokens), "the adapter counts");
    let again = finish(&mut session, &mut generator, &adapted);
    assert!(again.stats.cached_tokens > 0);
    assert_eq!(ids(&again.tokens), ids(&second.tokens));
    assert_eq!(refusal(&mut session, &mut generator, &bare.clone().with_adapter("b")), ErrorKind::InvalidInput);
    assert_eq!(ids(&finish(&mut session, &mut generator, &bare).tokens), ids(&first.tokens));
}
