use super::*;
use crate::Sampling;

#[test]
fn a_text_is_the_one_that_a_generator_makes() {
    let mut kit = Kit::new(Script::new().with_line("two and two is", " four"), 4);
    let request = ask("two and two is", 20);
    let (ours, alone) = (kit.answer(&request), kit.solo(&request));
    assert_eq!((&*ours.text, ours.finish), (" four", FinishReason::EndOfText));
    assert_eq!((ours.tokens, ours.stats.generated_tokens), (alone.tokens, 6));
    assert_eq!((ours.stats.prompt_tokens, ours.stats.cached_tokens), (14, 0));
    assert_eq!(ours.token_times.len(), 6);
    let happened: Vec<Happened> = ours.timeline.events.iter().map(|event| event.what).collect();
    let expected = [
        Happened::Queued,
        Happened::Admitted { tokens: 14, cached: 0 },
        Happened::Prefill { tokens: 14, steps: 1 },
        Happened::FirstToken,
        Happened::Ended { generated: 6 },
    ];
    assert_eq!(happened, expected);
    assert!(ours.timeline.events.is_sorted_by_key(|event| event.at));
    kit.assert_all_is_free();
}

#[test]
fn many_texts_share_passes_and_each_is_its_own() {
    let mut kit = Kit::new(Script::new(), 8);
    let requests: Vec<Request> = (0..20)
        .map(|i| {
            let sampling = Sampling::default().with_temperature(0.9).with_seed(i);
            let text = format!("{} text number {i} {}", i % 7, "x".repeat(i as usize * 13));
            ask(&text, 10 + i as usize).with_sampling(sampling)
        })
        .collect();
    let asked: Vec<Asked> = requests.iter().map(|request| kit.ask(request)).collect();
    kit.run();
    for (asked, request) in asked.into_iter().zip(&requests) {
        let (ours, alone) = (asked.one(), kit.solo(request));
        assert_eq!((ours.text, ours.tokens, ours.finish), (alone.text, alone.tokens, alone.finish));
    }
    let stats = kit.stats();
    assert_eq!((stats.finished, stats.failed, stats.generated_tokens), (20, 0, (10..30).sum()));
    assert!(stats.steps < 150, "passes are shared: {}", stats.steps);
    kit.assert_all_is_free();
}

#[test]
fn completions_of_one_prompt_compute_it_once() {
    let mut kit = Kit::new(Script::new(), 4);
    let sampling = Sampling::default().with_temperature(1.0).with_seed(7);
    let request = ask("once upon a time", 12).with_sampling(sampling.clone());
    let completions = {
        let asked = kit.ask(&request.clone().with_n(4));
        kit.run();
        asked.all()
    };
    assert_eq!(completions.len(), 4);
    for (seed, completion) in (7..).zip(&completions) {
        let alone = kit.solo(&request.clone().with_sampling(sampling.clone().with_seed(seed)));
        assert_eq!(drawn(completion), drawn(&alone));
    }
    let stats = kit.stats();
    assert_eq!((stats.prefilled_tokens, stats.cached_tokens), (16 + 3, 3 * 15));
    kit.assert_all_is_free();
}

#[test]
fn a_stream_that_is_dropped_frees_its_cells_before_the_next_pass() {
    let mut kit = Kit::new(Script::new(), 2);
    let (first, second) = (kit.ask(&ask("the first of them", 50)), kit.ask(&ask("the other", 50)));
    kit.turns(5);
    drop(first);
    kit.turns(1);
    assert_eq!(kit.stats().sequences, 1);
    kit.run();
    assert_eq!(second.one().tokens.len(), 50);
    assert_eq!((kit.stats().cancelled, kit.stats().finished), (1, 1));
    kit.assert_all_is_free();
}

#[test]
fn a_text_that_is_cancelled_says_how_far_it_came() {
    let mut kit = Kit::new(Script::new(), 1);
    let (first, waiting) = (kit.ask(&ask("the first of them", 50)), kit.ask(&ask("the other", 50)));
    kit.turns(5);
    waiting.stream.cancel();
    kit.turns(1);
    let waiting = waiting.one();
    assert_eq!((waiting.finish, waiting.tokens.len()), (FinishReason::Cancelled, 0));
    first.stream.cancel();
    kit.run();
    let first = first.one();
    assert_eq!(first.finish, FinishReason::Cancelled);
    assert!(first.tokens.len() >= 4);
    assert_eq!(kit.shared.waiting(), 0);
}

#[test]
fn a_deadline_ends_what_runs_and_what_waits() {
    let mut kit = Kit::new(Script::new(), 1);
    let soon = Instant::now() + Duration::from_millis(20);
    let runs = kit.ask(&ask("runs", 1000).with_deadline(soon));
    let waits = kit.ask(&ask("waits", 5).with_deadline(Instant::now()));
    kit.turns(1);
    assert_eq!(waits.one().finish, FinishReason::Deadline);
    std::thread::sleep(Duration::from_millis(25));
    kit.run();
    assert_eq!(runs.one().finish, FinishReason::Deadline);
    assert_eq!(kit.stats().cancelled, 2);
}

#[test]
fn without_tokens_to_draw_the_prompt_is_fed_all_the_same() {
    let mut kit = Kit::new(Script::new(), 1);
    let completion = kit.answer(&ask("a prompt to be remembered", 0));
    assert_eq!((completion.finish, completion.tokens.len()), (FinishReason::Length, 0));
    let completion = kit.answer(&ask("a prompt to be remembered, and more", 3));
    assert_eq!(completion.stats.cached_tokens, 25);
}

#[test]
fn the_context_may_be_filled_to_the_last_position() {
    let mut kit = Kit::new(Script::new().with_context(24), 1);
    let request = Request::text("a prompt of twenty-four!");
    let completion = kit.answer(&request);
    assert_eq!((completion.finish, completion.tokens.len()), (FinishReason::ContextFull, 1));
    let completion = kit.answer(&Request::text("a prompt"));
    assert_eq!((completion.finish, completion.tokens.len()), (FinishReason::ContextFull, 17));
    let error = {
        let asked = kit.ask(&Request::text("a prompt").with_overflow(Overflow::Error));
        kit.run();
        asked.error()
    };
    assert_eq!(error.kind(), ErrorKind::ContextFull);
}

#[test]
fn stopping_ends_everything_with_the_error() {
    let mut kit = Kit::new(Script::new(), 1);
    let asked = [kit.ask(&ask("runs", 50)), kit.ask(&ask("waits", 50))];
    kit.turns(3);
    kit.scheduler.stop(&Error::new(ErrorKind::Closed, "shut down"));
    assert!(kit.scheduler.is_idle());
    for asked in asked {
        assert_eq!(asked.error().kind(), ErrorKind::Closed);
    }
}

#[test]
fn an_engine_that_is_to_stop_begins_no_pass() {
    let mut kit = Kit::new(Script::new(), 1);
    let asked = kit.ask(&ask("runs", 50));
    kit.turns(3);
    kit.shared.stop();
    assert_eq!(kit.scheduler.turn(), Turn::Wait);
    assert!(!kit.scheduler.is_idle());
    drop(kit);
    assert_eq!(asked.error().kind(), ErrorKind::Closed, "and no stream hangs");
}
