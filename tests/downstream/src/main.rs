//! Opens the model given as the first argument and answers the prompt given as the second.

use infer::chat::{Message, RenderOptions};
use infer::{Generator, Request, SessionOptions};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut arguments = std::env::args().skip(1);
    let (Some(path), Some(prompt)) = (arguments.next(), arguments.next()) else {
        return Err("usage: downstream MODEL PROMPT".into());
    };
    let model = infer::open(path)?;
    let prompt = infer::chat_template(&*model)?.render(&[Message::user(prompt)], &RenderOptions::new())?;
    let mut session = model.session(&SessionOptions::new().with_context(512))?;
    let request = Request::rendered(prompt).with_max_tokens(32);
    let answer = Generator::new(model.tokenizer()).generate(&mut *session, &request)?.complete()?;
    println!("{}", answer.text);
    Ok(())
}
