//! A model is opened on the engine's thread; one that is open here cannot be sent there.

fn main() {
    let model = infer::open("model.gguf").unwrap();
    let _ = infer::Engine::builder_with(move || Ok(model)).build();
}
