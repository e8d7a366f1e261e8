//! Who is served when.

use super::*;
use infer_core::AdapterSource;

fn kit(batch: usize, sequences: usize, step_time: Option<Duration>) -> Kit {
    let settings = Settings { batch: Some(batch), step_time, cache: 0, ..Settings::default() };
    let adapter = |name| AdapterSource::new(name, name);
    let options = SessionOptions::new().with_sequences(sequences).with_adapter(adapter("a")).with_adapter(adapter("b"));
    Kit::with_options(Script::new(), options, settings)
}

/// How many tokens it has had by now.
fn count(asked: &mut Asked) -> usize {
    asked.read();
    asked.parts.first().map_or(0, |part| part.tokens().len())
}

#[test]
fn a_long_prompt_is_cut_so_that_running_texts_get_a_token_a_step() {
    // No time at all: the smallest chunks there are.
    let mut kit = kit(256, 4, Some(Duration::ZERO));
    let mut running = kit.ask(&ask("runs", 500));
    kit.turns(5);
    let before = count(&mut running);
    let mut long = kit.ask(&ask(&"long".repeat(100), 3));
    kit.turns(20);
    assert_eq!(count(&mut running) - before, 20);
    assert_eq!(count(&mut long), 0);
    kit.turns(30);
    assert_eq!(count(&mut long), 1, "400 tokens at {} a step", pace::LEAST);
}

#[test]
fn with_time_enough_a_prompt_is_fed_in_one() {
    let mut kit = kit(512, 4, Some(Duration::from_secs(1000)));
    let _running = kit.ask(&ask("runs", 500));
    kit.turns(5);
    kit.scheduler.pace.measured(1, 1000, Duration::from_millis(1));
    let mut long = kit.ask(&ask(&"long".repeat(100), 3));
    kit.turns(1);
    assert_eq!(count(&mut long), 1);
}

#[test]
fn prompts_that_came_before_anybody_ran_hold_nobody_back_and_are_not_cut() {
    let mut kit = kit(256, 8, Some(Duration::ZERO));
    let mut asked: Vec<Asked> = (0..8).map(|i| kit.ask(&ask(&format!("{i} {}", "x".repeat(60)), 50))).collect();
    kit.turns(2);
    assert!(asked.iter_mut().all(|asked| count(asked) > 0), "496 tokens and 4 are two batches");
}

#[test]
fn texts_of_a_burst_go_on_together_once_its_prompts_are_computed() {
    let mut kit = kit(256, 8, None);
    let mut asked: Vec<Asked> = (0..8).map(|i| kit.ask(&ask(&format!("{i} {}", "x".repeat(78)), 50))).collect();
    kit.turns(3);
    let counts: Vec<_> = asked.iter_mut().map(count).collect();
    assert_eq!(counts, [1; 8], "640 tokens are three batches, and none of those that were first went on");
    kit.turns(10);
    assert!(asked.iter_mut().all(|asked| count(asked) == 11));
}

#[test]
fn prompts_of_a_burst_are_not_cut_where_a_step_that_is_a_little_longer_takes_them_whole() {
    let mut kit = kit(1000, 8, None);
    // A second is what 300 tokens take.
    kit.scheduler.pace.measured(0, 3000, Duration::from_secs(10));
    let mut asked: Vec<Asked> = (0..8).map(|i| kit.ask(&ask(&format!("{i} {}", "x".repeat(118)), 50))).collect();
    let mut begun = Vec::new();
    for _ in 0..3 {
        kit.turns(1);
        begun.push(asked.iter_mut().filter_map(|asked| (count(asked) > 0).then_some(())).count());
    }
    assert_eq!(begun, [3, 6, 8], "of 300 tokens a step, 120 a prompt");
}

#[test]
fn a_text_that_waits_for_a_long_prompt_of_its_burst_is_fed_now_and_then() {
    let mut kit = kit(64, 64, None);
    let mut others: Vec<Asked> = (0..60).map(|i| kit.ask(&ask(&format!("{i} {}", "x".repeat(60)), 3))).collect();
    let mut short = kit.ask(&ask("short", 50));
    kit.turns(1);
    assert_eq!(count(&mut short), 1);
    kit.turns(2 * fill::PAUSE as usize);
    assert_eq!((count(&mut short), count(&mut others[59])), (3, 0));
}

#[test]
fn nobody_pauses_for_a_prompt_of_the_same_burst_that_takes_many_batches() {
    let mut kit = kit(64, 4, None);
    let mut long = kit.ask(&ask(&"long".repeat(400), 3));
    let mut short = kit.ask(&ask("short", 50));
    kit.turns(11);
    assert_eq!((count(&mut short), count(&mut long)), (11, 0));
}

#[test]
fn a_short_prompt_does_not_wait_for_a_long_one_before_it() {
    let mut kit = kit(64, 4, None);
    let mut long = kit.ask(&ask(&"long".repeat(400), 3));
    kit.turns(2);
    let mut short = kit.ask(&ask(&"short".repeat(6), 3));
    kit.turns(2);
    assert_eq!((count(&mut short) > 0, count(&mut long)), (true, 0));
}

#[test]
fn short_prompts_without_end_do_not_starve_a_long_one() {
    let mut kit = kit(64, 4, Some(Duration::from_secs(1000)));
    kit.scheduler.pace.measured(1, 1000, Duration::from_millis(1));
    let mut long = kit.ask(&ask(&"long".repeat(400), 1));
    let (mut turns, mut others) = (0, Vec::new());
    while count(&mut long) == 0 {
        while kit.stats().waiting < 4 {
            others.push(kit.ask(&ask(&"short".repeat(12), 0)));
        }
        kit.turns(1);
        turns += 1;
        assert!(turns < 80, "1,600 tokens, half of 64 a step at least");
    }
}

#[test]
fn more_texts_than_a_batch_holds_take_turns() {
    for batch in [1, 2, 3, 5] {
        let mut kit = kit(batch, 12, None);
        let mut asked: Vec<Asked> = (0..12).map(|i| kit.ask(&ask(&format!("{i}"), 40))).collect();
        kit.turns(12 * 30 / batch);
        let counts: Vec<usize> = asked.iter_mut().map(count).collect();
        let (least, most) = (counts.iter().min().unwrap(), counts.iter().max().unwrap());
        assert!(*least > 10 && most - least <= 3, "batches of {batch}: {counts:?}");
        kit.run();
    }
}

#[test]
fn adapters_take_turns() {
    let mut kit = kit(64, 9, None);
    let names: [Option<&str>; 3] = [None, Some("a"), Some("b")];
    let mut asked: Vec<Asked> = (0..9)
        .map(|i| {
            let request = ask(&format!("{i} texts"), 30);
            kit.ask(&names[i % 3].map_or(request.clone(), |name| request.with_adapter(name)))
        })
        .collect();
    kit.turns(45);
    let counts: Vec<usize> = asked.iter_mut().map(count).collect();
    assert!(counts.iter().all(|count| (10..=15).contains(count)), "{counts:?}");
    kit.run();
}

#[test]
fn one_that_needs_many_sequences_is_not_passed_for_ever() {
    let mut kit = kit(64, 4, None);
    let mut early: Vec<Asked> = (0..4).map(|i| kit.ask(&ask(&format!("{i} early"), 10 + i * 5))).collect();
    kit.turns(3);
    let many = kit.ask(&ask("all four at once", 5).with_n(4));
    let mut late = kit.ask(&ask("late", 5));
    while count(&mut early[3]) < 25 {
        kit.turns(1);
        assert_eq!(count(&mut late), 0, "who came later waits");
    }
    kit.run();
    assert_eq!((many.all().len(), count(&mut late)), (4, 5));
}
