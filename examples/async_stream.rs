//! Streams on an asynchronous runtime, here tokio: several on one thread, one cancelled by a drop, one by the clock.
//!
//! `cargo run -p infer-examples --bin async_stream -- MODEL`

use futures_util::StreamExt;
use infer::{Engine, Request};
use std::{
    io::Write,
    time::{Duration, Instant},
};
use tokio::{runtime, time::timeout};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let path = std::env::args().nth(1).ok_or("which model? `cargo xtask model smollm2` prints the path of one")?;
    // The engine has a thread of its own, and neither needs a runtime nor starts one. Opening a model takes its time, so it is done before.
    let engine = Engine::builder(path).with_sequences(3).with_context(512).build()?;
    runtime::Builder::new_current_thread().enable_time().build()?.block_on(run(engine))
}

async fn run(engine: Engine) -> Result<(), Box<dyn std::error::Error>> {
    // They begin now, and are generated together, whoever is read first.
    let mut story = engine.generate(Request::text("Once upon a time, in a harbour,").with_max_tokens(32));
    let mut endless = engine.generate(Request::text("One, two, three,").with_max_tokens(400).with_ignore_end(true));
    let late = Request::text("A very long list of birds:").with_max_tokens(400).with_ignore_end(true);
    // The engine itself keeps a deadline: the text ends there, and says so.
    let late = engine.generate(late.with_deadline(Instant::now() + Duration::from_millis(400)));

    print!("story: ");
    while let Some(piece) = story.next().await {
        let piece = piece?;
        print!("{}", piece.text);
        std::io::stdout().flush()?;
        if let Some(finish) = piece.finish {
            println!("\n  ended by: {}, {} tokens", finish.reason, finish.stats.generated_tokens);
        }
    }

    // Whoever stops reading drops the stream. What it held is free before the next pass, and no token more is computed for it.
    let mut count = 0;
    while count < 40 {
        let Some(piece) = endless.next().await else { break };
        count += piece?.tokens.len();
    }
    drop(endless);
    println!("endless: dropped after {count} tokens");

    // The rest of a stream as a whole; a timeout around it drops it, too.
    let late = timeout(Duration::from_secs(60), late.completed()).await??;
    println!("late: ended by: {}, {} tokens", late.finish, late.tokens.len());
    Ok(())
}
