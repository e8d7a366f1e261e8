//! Two stories from one beginning, one forward pass a step for both: what a scheduler does, in one page.
//!
//! `cargo run -p infer-examples --bin session_by_hand -- MODEL`

use infer::{Batch, Detokenizer, OpenOptions, Sampling, Sequence, SessionOptions, Special, Token, Want};

const BEGINNING: &str = "It had rained for three days, and the old lighthouse keeper had run out of tea. He went down \
    the stairs, all two hundred and twelve of them, and looked at the sea. There was a boat out there, very small and very \
    far away, and it was coming closer. He had not seen a boat in a month. He sat down on the lowest step and waited. ";
const ENDINGS: [&str; 2] = ["At last the boat", "Then he saw that"];

/// A story: its tokens, and the sequence that holds those of them that were computed.
struct Story {
    log: Vec<Token>,
    sequence: Sequence,
    entry: usize,
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let path = std::env::args().nth(1).ok_or("which model? `cargo xtask model smollm2` prints the path of one")?;
    let model = infer::open(path)?;
    let tokenizer = model.tokenizer();
    let options = SessionOptions::new().with_context(1024).with_sequences(ENDINGS.len()).with_batch(32);
    let mut session = model.session(&options)?;
    let mut batch = Batch::new();

    // A prompt that is longer than a batch is fed in chunks. Nothing is wanted back: it has no ending yet.
    let mut beginning = Vec::new();
    tokenizer.encode(BEGINNING.trim_end(), Special::ADD, &mut beginning)?;
    let first = session.open(&OpenOptions::default())?;
    for chunk in beginning.chunks(session.limits().batch) {
        batch.clear();
        batch.push(&first, chunk, Want::Nothing);
        session.decode(&batch)?;
    }

    // The beginning is computed once: the second sequence begins with it, shared or copied as the session's cells lie.
    let second = session.fork(&first, first.len())?;
    let mut stories = Vec::new();
    for (sequence, ending) in [first, second].into_iter().zip(ENDINGS) {
        let mut log = beginning.clone();
        tokenizer.encode(&format!(" {ending}"), Special::NONE, &mut log)?;
        // Everything up to here is the prompt. What is drawn depends on it, on the seed, and on nothing else.
        session.sample_with(&sequence, &Sampling::default().with_temperature(0.8).with_seed(7), &log)?;
        stories.push(Story { log, sequence, entry: 0 });
    }

    // One rule: feed what is in the log and not yet in the sequence. The first time that is an ending, then a token.
    for _ in 0..48 {
        batch.clear();
        for story in &mut stories {
            let todo = &story.log[story.sequence.len()..];
            story.entry = batch.push(&story.sequence, todo, Want::Token);
        }
        session.decode(&batch)?;
        let outputs = session.outputs();
        for story in &mut stories {
            story.log.extend(outputs.token(story.entry));
        }
    }

    for story in &stories {
        let mut detokenizer = Detokenizer::new(tokenizer.vocab().clone());
        let mut text = String::new();
        for &token in &story.log[beginning.len()..] {
            text += detokenizer.push(token)?;
        }
        println!("…{text}{}\n", detokenizer.finish());
    }
    Ok(())
}
