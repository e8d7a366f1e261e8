//! Greedy tokens beside those of a small C program over the very same linked object: all prompts.

use infer_benches::{Bar, Figure, Run};
use kit::{
    greedy::{Agreement, Settings},
    peer::Greedy,
    prompts,
};
use std::{path::Path, process::ExitCode};

fn main() -> ExitCode {
    let mut run = Run::from_args();
    let settings = Settings { threads: 2, context: 2048, count: 64 };
    let path = build_support::fixtures::model("smollm2").unwrap_or_else(|error| panic!("{error}"));
    let mut prompts = prompts::all();
    if run.quick() {
        prompts.truncate(prompts::FEW);
    }
    run.progress(&format!("{} prompts of {} tokens, in C and in Rust", prompts.len(), settings.count));
    let greedy = Greedy::build(Path::new(env!("CARGO_TARGET_TMPDIR"))).unwrap_or_else(|error| panic!("{error}"));
    let theirs = greedy.run(&path, settings, &prompts).unwrap_or_else(|error| panic!("{error}"));

    let model = infer::open(&path).unwrap_or_else(|error| panic!("{error}"));
    let mut session = settings.session(&*model, settings.context);
    let (mut tokens, mut differ) = (0, 0);
    for (prompt, theirs) in prompts.iter().zip(&theirs) {
        let ours = settings.generate(&*model, &mut *session, prompt);
        tokens += ours.len();
        if theirs.agrees_with(&ours, 0.0) != Ok(Agreement::Equal) {
            differ += 1;
            eprintln!("{prompt:?}: {:?}", theirs.agrees_with(&ours, 0.0));
        }
    }
    let figure = Figure::new("greedy/differ", f64::from(differ), "prompts").with_bar(Bar::AtMost(0.0));
    run.figure(figure.with_note(format!("of {}, {tokens} tokens in all", prompts.len())));
    run.finish()
}
