//! Many requests at once, as a service has them: threads ask, and each forward pass is shared by all that are being answered.
//!
//! `cargo run -p infer-examples --bin serve_many -- MODEL`

use infer::{Completion, Engine, Request, Sampling, chat::Message};
use std::{thread, time::Instant};

const RULES: &str = "You are the information desk of a small harbour. The ferry leaves at nine and at four, tickets are sold on \
    board, cash only. Bicycles travel free of charge, dogs do not. The lighthouse is open on Sundays. Answer in one sentence.";

const QUESTIONS: [&str; 12] = [
    "When does the ferry leave?",
    "Where do I get a ticket?",
    "May I bring my bicycle?",
    "What does a dog cost?",
    "Is the lighthouse open today?",
    "Do you take cards?",
    "Is there a ferry in the evening?",
    "Can I take two bicycles?",
    "Who sells the tickets?",
    "When is the lighthouse open?",
    "Is the first ferry before ten?",
    "How do I pay?",
];

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let path = std::env::args().nth(1).ok_or("which model? `cargo xtask model smollm2` prints the path of one")?;
    // Six texts are generated at once; the others wait in the queue, and begin as soon as one has ended.
    let engine = Engine::builder(path).with_sequences(6).with_context(512).build()?;

    let begun = Instant::now();
    let answers = thread::scope(|scope| {
        // A handle on the engine is cheap, and belongs to whoever has it; the model stays on the engine's own thread.
        let threads = QUESTIONS.map(|question| {
            let engine = engine.clone();
            scope.spawn(move || answer(&engine, question))
        });
        threads.map(|thread| thread.join().expect("asking does not panic"))
    });
    let seconds = begun.elapsed().as_secs_f64();

    let mut tokens = 0;
    for (question, answer) in QUESTIONS.iter().zip(answers) {
        let answer = answer?;
        tokens += answer.tokens.len();
        println!("{question}\n    {}", answer.text.trim());
    }
    println!("\n{tokens} tokens in {seconds:.1} s, {:.1} a second", tokens as f64 / seconds);

    // All conversations begin alike. The first one computes that; the others go on from there.
    let stats = engine.stats();
    println!(
        "{} steps, {} tokens of prompts computed, {} cached",
        stats.steps, stats.prefilled_tokens, stats.cached_tokens
    );
    Ok(())
}

fn answer(engine: &Engine, question: &str) -> infer::Result<Completion> {
    let request = Request::chat([Message::system(RULES), Message::user(question)])
        .with_sampling(Sampling::default().with_temperature(0.6).with_seed(1))
        .with_max_tokens(40);
    engine.generate(request).complete()
}
