use super::*;

fn small(cells: usize, sequences: usize) -> Kit {
    Kit::new(Script::new().with_cells(cells), sequences)
}

/// Each is a text of its own from the first token on, 30 tokens long, and draws 20.
fn requests(count: usize) -> Vec<Request> {
    (0..count).map(|i| ask(&format!("{i}, and what comes after it {i}", i = i % 10), 20)).collect()
}

#[test]
fn too_few_cells_make_the_youngest_wait_and_be_computed_again() {
    let mut kit = small(120, 8);
    let all = requests(6);
    let asked: Vec<Asked> = all.iter().map(|request| kit.ask(request)).collect();
    kit.run();
    let mut preempted = 0;
    for (asked, request) in asked.into_iter().zip(&all) {
        let ours = asked.one();
        assert_eq!(ours.tokens, kit.solo(request).tokens);
        let is_preemption = |event: &&TimelineEvent| matches!(event.what, Happened::Preempted { .. });
        preempted += ours.timeline.events.iter().filter(is_preemption).count();
    }
    let stats = kit.stats();
    assert!(stats.preemptions > 0, "three begin, and two can end: {stats}");
    assert_eq!(stats.preemptions as usize, preempted);
    assert!(stats.preemptions < 12, "nobody takes cells back and forth: {stats}");
    kit.assert_all_is_free();
}

#[test]
fn a_preempted_text_is_counted_as_one_that_waits() {
    let mut kit = small(120, 8);
    let asked: Vec<Asked> = requests(6).iter().map(|request| kit.ask(request)).collect();
    while !kit.scheduler.is_idle() {
        kit.turns(1);
        let stats = kit.stats();
        let all = stats.waiting + stats.prefilling + stats.running + stats.finished as usize;
        assert_eq!(all, asked.len(), "{stats}");
    }
    assert!(kit.stats().preemptions > 0);
}

#[test]
fn the_oldest_text_is_never_preempted() {
    let mut kit = small(100, 8);
    let asked: Vec<Asked> = requests(8).iter().map(|request| kit.ask(request)).collect();
    kit.run();
    let first = asked.into_iter().next().unwrap().one();
    assert!(first.timeline.events.iter().all(|event| !matches!(event.what, Happened::Preempted { .. })));
}

#[test]
fn a_prompt_that_finds_no_room_beside_others_waits_for_it() {
    let mut kit = small(100, 4);
    let first = kit.ask(&ask(&"a".repeat(60), 30));
    kit.turns(3);
    let second = kit.ask(&ask(&"b".repeat(60), 30));
    kit.turns(3);
    assert_eq!((kit.stats().waiting, kit.stats().running), (1, 1));
    kit.run();
    assert_eq!((first.one().tokens.len(), second.one().tokens.len()), (30, 30));
    assert_eq!((kit.stats().preemptions, kit.stats().prefilled_tokens), (0, 120));
}

#[test]
fn kept_sequences_go_before_anybody_waits() {
    let mut kit = small(100, 4);
    kit.answer(&ask(&"a".repeat(60), 10));
    assert_eq!(kit.scheduler.cache.held(), 69);
    assert_eq!(kit.answer(&ask(&"b".repeat(60), 10)).tokens.len(), 10);
    assert_eq!((kit.stats().preemptions, kit.scheduler.cache.held()), (0, 69), "the newer one is kept");
}

#[test]
fn a_text_that_does_not_fit_alone_ends_as_it_is_to() {
    let mut kit = small(50, 4);
    let stops = kit.answer(&ask(&"a".repeat(40), 30));
    // The last token that is drawn need not be fed.
    assert_eq!((stops.finish, stops.tokens.len()), (FinishReason::ContextFull, 11));
    let asked = kit.ask(&ask(&"a".repeat(40), 30).with_overflow(Overflow::Error));
    kit.run();
    assert_eq!(asked.error().kind(), ErrorKind::OutOfCells);
    let shifts = kit.answer(&ask(&"b".repeat(40), 60).with_overflow(Overflow::Shift));
    assert_eq!((shifts.finish, shifts.tokens.len()), (FinishReason::Length, 60));
    kit.assert_all_is_free();
}

#[test]
fn a_prompt_larger_than_all_cells_is_an_error_that_says_so() {
    let mut kit = small(50, 4);
    let asked = kit.ask(&ask(&"a".repeat(60), 1));
    let other = kit.ask(&ask("short", 5));
    kit.run();
    let error = asked.error();
    assert_eq!(error.kind(), ErrorKind::OutOfCells);
    assert!(error.to_string().starts_with("the prompt has 60 tokens"), "{error}");
    assert_eq!(other.one().tokens.len(), 5);
    kit.assert_all_is_free();
}
