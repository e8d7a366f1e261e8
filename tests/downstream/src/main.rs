//! Opens the model given as the first argument and continues the text given as the second.

use infer::{Generator, Request, SessionOptions};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut arguments = std::env::args().skip(1);
    let (Some(path), Some(prompt)) = (arguments.next(), arguments.next()) else {
        return Err("usage: downstream MODEL PROMPT".into());
    };
    let model = infer::open(path)?;
    let mut session = model.session(&SessionOptions::new().with_context(512))?;
    let request = Request::text(prompt).with_max_tokens(8);
    let answer = Generator::new(model.tokenizer()).generate(&mut session, &request)?.complete()?;
    println!("{}", answer.text);
    Ok(())
}
