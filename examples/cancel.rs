//! Stopping a pass from another thread, and what is left then: everything that was computed.
//!
//! `cargo run -p infer-examples --bin cancel -- MODEL`

use infer::{FinishReason, Generator, Request, Sequence, SessionOptions};
use std::{
    io::Write,
    thread::{sleep, spawn},
    time::Duration,
};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let path = std::env::args().nth(1).ok_or("which model? `cargo xtask model smollm2` prints the path of one")?;
    let model = infer::open(path)?;
    let mut session = model.session(&SessionOptions::new().with_context(2048))?;
    let mut generator = Generator::new(model.tokenizer());

    // The session stays on this thread; its interrupt may go to any. A raise stops the pass that is running, or, where
    // none is, the next one: a cancel that comes a moment too early is not lost.
    let interrupt = session.interrupt();
    let canceller = spawn(move || {
        sleep(Duration::from_millis(700));
        interrupt.raise();
    });

    let request = Request::text("A long history of tea:").with_max_tokens(1000).with_ignore_end(true);
    let mut generation = generator.generate(&mut session, &request)?;
    for piece in &mut generation {
        print!("{}", piece?.text);
        std::io::stdout().flush()?;
    }
    // A cancelled text is a text that has ended, not an error.
    let reason = generation.finish_reason().map_or("", FinishReason::as_str);
    println!("\n\nended by: {reason}, after {} tokens", generation.stats().generated_tokens);
    canceller.join().expect("raising an interrupt does not panic");

    // All tokens are in the log, and the sequence holds all of them but the last: the stopped pass was to feed it.
    let log = generator.tokens().to_vec();
    println!("{} tokens in the log, {} in the sequence", log.len(), generator.sequence().map_or(0, Sequence::len));

    // The interrupt stays raised until it is lowered. Then the text goes on where it was; nothing is computed twice.
    session.interrupt().lower();
    let rest = generator.generate(&mut session, &Request::tokens(log).with_max_tokens(20))?.complete()?;
    println!("and on, with {} tokens cached:{}", rest.stats.cached_tokens, rest.text);
    Ok(())
}
