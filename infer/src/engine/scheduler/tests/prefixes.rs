use super::*;

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
    assert_eq!(stats.prompt_tokens, shared + 8 * 7);
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
            assert_eq!(completion.stats.reused_tokens, said.len() - 8);
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
