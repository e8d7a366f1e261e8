//! Greedy tokens are those of a small C program over the very same linked object.

use kit::{
    greedy::{Agreement, EPSILON, Settings},
    peer::Greedy,
    prompts,
};
use std::path::Path;

/// One thread: with more, a pass is as slow as the slowest of them, and tests run beside others.
const SETTINGS: Settings = Settings { threads: 1, context: 2048, count: 64 };
/// Small and odd, so that most prompts are cut in several places.
const CHUNK: usize = 13;

#[test]
fn the_tokens_are_those_of_a_c_program() {
    let path = build_support::fixtures::model("smollm2").unwrap_or_else(|error| panic!("{error}"));
    let prompts = &prompts::all()[..prompts::FEW];
    let greedy = Greedy::build(Path::new(env!("CARGO_TARGET_TMPDIR"))).unwrap_or_else(|error| panic!("{error}"));
    let runs = greedy.run(&path, SETTINGS, prompts).unwrap_or_else(|error| panic!("{error}"));
    assert_eq!(runs.len(), prompts::FEW);

    let model = infer::open(&path).unwrap();
    let (mut whole, mut chunked) = (SETTINGS.session(&*model, SETTINGS.context), SETTINGS.session(&*model, CHUNK));
    let mut equal = 0;
    for (prompt, run) in prompts.iter().zip(&runs) {
        // The very same passes: the very same tokens.
        let tokens = SETTINGS.generate(&*model, &mut *whole, prompt);
        assert_eq!(run.agrees_with(&tokens, 0.0), Ok(Agreement::Equal), "{prompt:?}");
        assert!(!tokens.is_empty());
        // The prompt in other pieces: other kernels for a long one, hence the same tokens up to a near-tie.
        let tokens = SETTINGS.generate(&*model, &mut *chunked, prompt);
        match run.agrees_with(&tokens, EPSILON) {
            Ok(Agreement::Equal) => equal += 1,
            Ok(Agreement::UntilNearTie(_)) => {}
            Err(why) => panic!("{prompt:?}: {why}"),
        }
    }
    assert!(equal >= prompts::FEW - 1, "only {equal} are equal: it is the one long prompt that may have a near-tie");
}
