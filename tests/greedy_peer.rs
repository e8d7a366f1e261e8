//! Greedy tokens are those of a small C program over the very same linked object.

use infer::{Generator, Request, SessionOptions};
use kit::{
    greedy::Agreement,
    peer::{Greedy, Settings},
    prompts,
};
use std::path::Path;

#[test]
fn the_tokens_are_those_of_a_c_program() {
    let model = build_support::fixtures::model("smollm2").unwrap_or_else(|error| panic!("{error}"));
    let settings = Settings { model: &model, threads: 2, context: 2048, count: 64 };
    let prompts = &prompts::all()[..prompts::FEW];
    let greedy = Greedy::build(Path::new(env!("CARGO_TARGET_TMPDIR"))).unwrap_or_else(|error| panic!("{error}"));
    let runs = greedy.run(settings, prompts).unwrap_or_else(|error| panic!("{error}"));

    let opened = infer::open(&model).unwrap();
    let options = SessionOptions::new()
        .with_context(settings.context)
        .with_batch(settings.context)
        .with_threads(settings.threads);
    let mut session = opened.session(&options).unwrap();
    for (prompt, run) in prompts.iter().zip(&runs) {
        // A new sequence for each: nothing is reused, so that the very same passes are made.
        let request = Request::text(prompt.as_ref()).with_max_tokens(settings.count);
        let mut generator = Generator::new(opened.tokenizer());
        let done = generator.generate(&mut *session, &request).unwrap().complete().unwrap();
        let tokens: Vec<u32> = done.tokens.iter().map(|sampled| sampled.token.0).collect();
        assert_eq!(run.agrees_with(&tokens, 0.0), Ok(Agreement::Equal), "{prompt:?}");
        assert!(!tokens.is_empty());
    }
    assert_eq!(runs.len(), prompts::FEW);
}
