//! One model, with and without an adapter (LoRA): its weights are there once, and each text says what it is computed with.
//!
//! `cargo run -p infer-examples --bin lora -- MODEL ADAPTER [SCALE]`

use infer::{AdapterSource, Generator, Request, SessionOptions};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut arguments = std::env::args().skip(1);
    let (Some(model), Some(adapter)) = (arguments.next(), arguments.next()) else {
        return Err(
            "which model, and which adapter? `cargo xtask model tiny-llama` and `tiny-lora` print the paths of two"
                .into(),
        );
    };
    let scale = arguments.next().map_or(Ok(1.0), |scale| scale.parse())?;

    let model = infer::open(model)?;
    // A session knows its adapters by name. Both texts have a sequence of their own in it, open at the same time.
    let source = AdapterSource::new("tuned", adapter).with_scale(scale);
    let options = SessionOptions::new().with_context(256).with_sequences(2).with_adapter(source);
    let mut session = model.session(&options)?;

    let request = Request::text("The capital of France is").with_max_tokens(12);
    for (title, request) in [("bare", request.clone()), ("tuned", request.with_adapter("tuned"))] {
        let mut generator = Generator::new(model.tokenizer());
        let done = generator.generate(&mut session, &request)?.complete()?;
        let tokens: Vec<_> = done.tokens.iter().map(|sampled| sampled.token.0).collect();
        println!("{title}: {:?} {tokens:?}", done.text);
    }
    Ok(())
}
