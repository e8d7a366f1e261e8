//! A conversation in which only what is new is computed.
//!
//! `cargo run -p infer-examples --bin chat -- MODEL [MESSAGE]...`: the messages, or a line of stdin a turn.

use infer::{
    Generator, Request, Sampling, SessionOptions,
    chat::{Message, RenderOptions},
};
use std::io::{BufRead, Write};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut arguments = std::env::args().skip(1);
    let path = arguments.next().ok_or("which model? `cargo xtask model smollm2` prints the path of one")?;
    let given: Vec<String> = arguments.collect();

    let model = infer::open(path)?;
    let template = infer::chat_template(&*model)?;
    let mut session = model.session(&SessionOptions::new().with_context(4096))?;
    let mut generator = Generator::new(model.tokenizer());
    let sampling = Sampling::default().with_temperature(0.7).with_top_p(0.9).with_seed(1);
    let mut messages = vec![Message::system("You are a friendly assistant. Answer briefly.")];

    let typed = std::io::stdin().lock().lines();
    let said: Box<dyn Iterator<Item = std::io::Result<String>>> =
        if given.is_empty() { Box::new(typed) } else { Box::new(given.into_iter().map(Ok)) };
    for said in said {
        messages.push(Message::user(said?));
        // The whole conversation is the prompt of each turn. The generator finds what its sequence holds of it already,
        // cuts what differs, and feeds the rest: the keys and values of earlier turns stay where they are.
        let prompt = template.render(&messages, &RenderOptions::new())?;
        let request = Request::rendered(prompt).with_sampling(sampling.clone()).with_max_tokens(200);
        let mut generation = generator.generate(&mut session, &request)?;
        let mut answer = String::new();
        for piece in &mut generation {
            let piece = piece?;
            answer += &piece.text;
            print!("{}", piece.text);
            std::io::stdout().flush()?;
        }
        let stats = generation.stats();
        println!();
        eprintln!("[{} of {} prompt tokens were new]", stats.prompt_tokens - stats.cached_tokens, stats.prompt_tokens);
        messages.push(Message::assistant(answer));
    }
    Ok(())
}
