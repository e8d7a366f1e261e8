use super::*;
use crate::Sampling;

fn shifting(text: &str, max_tokens: usize) -> Request {
    let sampling = Sampling::default().with_temperature(0.8).with_seed(3);
    ask(text, max_tokens).with_overflow(Overflow::Shift).with_sampling(sampling)
}

#[test]
fn a_text_goes_on_where_the_context_is_full() {
    let mut kit = Kit::new(Script::new().with_context(40), 2);
    let completion = kit.answer(&shifting("a beginning", 150));
    assert_eq!((completion.finish, completion.tokens.len()), (FinishReason::Length, 150));
    let shifts: Vec<usize> = completion
        .timeline
        .events
        .iter()
        .filter_map(|event| if let Happened::Shifted { dropped } = event.what { Some(dropped) } else { None })
        .collect();
    assert_eq!(shifts, [18; 7], "of 40 the first 4 stay, and of the others half");
    assert_eq!(kit.stats().prefilled_tokens, 11, "nothing is computed again");
    // Until the context was full it is the text that it is without.
    let plain = kit.solo(&shifting("a beginning", 29).with_overflow(Overflow::Stop));
    assert_eq!(completion.tokens[..29], plain.tokens);
    assert_eq!(kit.scheduler.cache.len(), 0, "what was moved is not what its tokens would give");
    kit.assert_all_is_free();
}

#[test]
fn nobody_begins_with_what_was_moved() {
    let mut kit = Kit::new(Script::new().with_context(40), 3);
    let mut asked = kit.ask(&shifting("a beginning that is long enough", 100));
    kit.turns(30);
    asked.read();
    let log = kit.scheduler.running[0].log.clone();
    assert!(kit.scheduler.running[0].is_shifted && log.len() < 40);
    let request = Request::tokens(log[..20].to_vec()).with_max_tokens(5);
    let other = kit.ask(&request);
    kit.run();
    let other = other.one();
    assert_eq!((other.stats.cached_tokens, other.tokens), (0, kit.solo(&request).tokens));
}
