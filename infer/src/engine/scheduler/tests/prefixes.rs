use super::*;
use crate::Sampling;
use infer_core::{AdapterSource, KvLayout, testing::Cuts};

const SYSTEM: &str = "You are a helpful assistant, and you answer in as few words as you can. ";

#[test]
fn what_prompts_begin_with_is_computed_once_also_when_they_come_together() {
    let mut kit = Kit::new(Script::new(), 8);
    let requests: Vec<Request> = (0..8).map(|i| ask(&format!("{SYSTEM}{i}: who?"), 6)).collect();
    let asked: Vec<Asked> = requests.iter().map(|request| kit.ask(request)).collect();
    kit.run();
    for (asked, request) in asked.into_iter().zip(&requests) {
        assert_eq!(asked.one().tokens, kit.solo(request).tokens);
    }
    let (stats, shared) = (kit.stats(), SYSTEM.len() as u64);
    assert_eq!((stats.prefix_hits, stats.cached_tokens), (7, 7 * shared));
    assert_eq!(stats.prefilled_tokens, shared + 8 * 7);
    kit.assert_all_is_free();
}

#[test]
fn a_conversation_goes_on_in_the_sequence_it_has() {
    let mut kit = Kit::new(Script::new(), 4);
    let mut said = SYSTEM.to_owned();
    for turn in 0..5 {
        let request = ask(&said, 10);
        let completion = kit.answer(&request);
        assert_eq!(completion.tokens, kit.solo(&request).tokens);
        if turn > 0 {
            // All but the last token drawn, and what was said since.
            assert_eq!(completion.stats.cached_tokens, said.len() - 8);
        }
        assert_eq!(kit.scheduler.cache.len(), 1, "there is one of it");
        said = format!("{said}{} Next: ", completion.text);
    }
    kit.assert_all_is_free();
}

#[test]
fn kept_sequences_go_when_requests_need_them() {
    let mut kit = Kit::new(Script::new(), 2);
    for i in 0..6 {
        let request = ask(&format!("{i} entirely different text, each time"), 4);
        assert_eq!(kit.answer(&request).tokens, kit.solo(&request).tokens);
    }
    assert_eq!(kit.scheduler.cache.len(), 2);
    assert_eq!(kit.stats().prefix_hits, 0);
    kit.assert_all_is_free();
}

#[test]
fn a_prompt_begins_with_what_a_running_text_holds() {
    let mut kit = Kit::with(Script::new(), 4, Settings::default());
    let first = kit.ask(&ask(&format!("{SYSTEM}one"), 30));
    kit.turns(5);
    let request = ask(&format!("{SYSTEM}two"), 5);
    let second = kit.ask(&request);
    kit.run();
    let second = second.one();
    assert_eq!((second.stats.cached_tokens, second.tokens), (SYSTEM.len(), kit.solo(&request).tokens));
    assert_eq!(first.one().tokens.len(), 30);
    assert_eq!(kit.scheduler.cache.len(), 0, "no budget, and nothing is kept");
}

#[test]
fn a_sequence_is_taken_over_where_little_of_it_is_lost_and_forked_where_much_is() {
    let mut kit = Kit::new(Script::new(), 4);
    kit.answer(&ask(SYSTEM, 3));
    let request = ask(&format!("{SYSTEM}one"), 3);
    assert_eq!(kit.answer(&request).stats.cached_tokens, SYSTEM.len());
    assert_eq!(kit.scheduler.cache.len(), 1, "it was taken over");
    kit.answer(&ask(&format!("{SYSTEM}{}", "much more that is said only once".repeat(3)), 3));
    assert_eq!(kit.scheduler.cache.len(), 1);
    let request = ask(&format!("{SYSTEM}two"), 3);
    let completion = kit.answer(&request);
    assert_eq!((completion.stats.cached_tokens, completion.tokens), (SYSTEM.len(), kit.solo(&request).tokens));
    assert_eq!(kit.scheduler.cache.len(), 2, "it was forked");
}

#[test]
fn the_only_sequence_there_is_is_cut_for_the_next_prompt() {
    let mut kit = Kit::new(Script::new(), 1);
    for i in 0..3 {
        let request = ask(&format!("{SYSTEM}{i} {}", "x".repeat(100)), 4);
        let completion = kit.answer(&request);
        assert_eq!(completion.tokens, kit.solo(&request).tokens);
        assert_eq!(completion.stats.cached_tokens, if i == 0 { 0 } else { SYSTEM.len() });
    }
}

#[test]
fn each_adapter_has_beginnings_of_its_own() {
    let adapter = |name| AdapterSource::new(name, name);
    let options = SessionOptions::new().with_sequences(4).with_adapter(adapter("a")).with_adapter(adapter("b"));
    let mut kit = Kit::with_options(Script::new(), options, Settings { cache: 1000, ..Settings::default() });
    for (name, cached) in
        [(None, 0), (Some("a"), 0), (Some("b"), 0), (Some("a"), SYSTEM.len() + 2), (None, SYSTEM.len() + 2)]
    {
        let request = ask(&format!("{SYSTEM}Hm."), 4);
        let request = name.map_or(request.clone(), |name| request.with_adapter(name));
        let completion = kit.answer(&request);
        assert_eq!(
            (completion.stats.cached_tokens, completion.tokens),
            (cached, kit.solo(&request).tokens),
            "{name:?}"
        );
    }
}

#[test]
fn a_model_that_cannot_go_back_goes_on_from_where_it_is() {
    let mut kit = Kit::new(Script::new().with_cuts(Cuts::Nowhere), 4);
    let said = SYSTEM.to_owned();
    let first = kit.answer(&ask(&said, 10));
    let further = ask(&format!("{said}{} And now?", first.text), 6);
    let completion = kit.answer(&further);
    assert_eq!((completion.stats.cached_tokens, completion.tokens), (SYSTEM.len() + 9, kit.solo(&further).tokens));
    // Elsewhere than at its end it cannot be forked.
    let other = ask(&format!("{SYSTEM}something else"), 6);
    let completion = kit.answer(&other);
    assert_eq!((completion.stats.cached_tokens, completion.tokens), (0, kit.solo(&other).tokens));
    kit.assert_all_is_free();
}

#[test]
fn a_sliding_window_is_forked_as_long_as_it_holds_all() {
    let mut kit = Kit::new(Script::new().with_cuts(Cuts::Window(100)), 4);
    kit.answer(&ask(&format!("{SYSTEM}one"), 4));
    let within = ask(&format!("{SYSTEM}two"), 4);
    assert_eq!(kit.answer(&within).stats.cached_tokens, SYSTEM.len());
    kit.answer(&ask(&"y".repeat(120), 4));
    let beyond = ask(&format!("{}z", "y".repeat(110)), 4);
    let completion = kit.answer(&beyond);
    assert_eq!((completion.stats.cached_tokens, completion.tokens), (0, kit.solo(&beyond).tokens));
    kit.assert_all_is_free();
}

#[test]
fn completions_share_the_prompt_also_where_sequences_can_only_be_forked_whole() {
    let mut kit = Kit::with(Script::new().with_cuts(Cuts::Nowhere), 4, Settings::default());
    let sampling = Sampling::default().with_temperature(1.0).with_seed(7);
    let request = ask("once upon a time", 12).with_sampling(sampling.clone());
    let asked = kit.ask(&request.clone().with_n(4));
    kit.run();
    for (seed, completion) in (7..).zip(asked.all()) {
        let alone = kit.solo(&request.clone().with_sampling(sampling.clone().with_seed(seed)));
        assert_eq!(completion.tokens, alone.tokens);
    }
    assert_eq!((kit.stats().prefilled_tokens, kit.stats().cached_tokens), (15 + 4, 3 * 15));
    kit.assert_all_is_free();
}

#[test]
fn where_forks_are_copies_it_is_the_same() {
    let mut kit = Kit::new(Script::new().with_layout(KvLayout::Split), 4);
    let requests: Vec<Request> = (0..4).map(|i| ask(&format!("{SYSTEM}{i}: who?"), 6).with_n(1 + i % 2)).collect();
    let asked: Vec<Asked> = requests.iter().map(|request| kit.ask(request)).collect();
    kit.run();
    for (asked, request) in asked.into_iter().zip(&requests) {
        assert_eq!(asked.all()[0].tokens, kit.solo(&request.clone().with_n(1)).tokens);
    }
    assert!(kit.stats().prefix_hits >= 5);
    kit.assert_all_is_free();
}
