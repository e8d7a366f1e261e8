//! Over the linked door, with SmolLM2.

use infer_core::{Batch, OpenOptions, Sampling, Session as _, Special, Token, Tokenizer as _, Want};
use infer_llama::{KvLayout, Llama, Model, Session, SessionOptions};

fn model() -> Model {
    let llama = Llama::linked().unwrap();
    Model::open(&llama, build_support::fixtures::model("smollm2").unwrap()).unwrap()
}

fn encode(model: &Model, text: &str) -> Vec<Token> {
    let mut tokens = Vec::new();
    model.tokenizer().encode(text, Special::PARSE, &mut tokens).unwrap();
    tokens
}

fn generate(session: &mut Session, prompt: &[Token], n: usize) -> Vec<Token> {
    let seq = session.open(&OpenOptions::default()).unwrap();
    session.sample_with(&seq, &Sampling::greedy(), prompt).unwrap();
    let mut feed = prompt.to_vec();
    let mut out = Vec::new();
    let mut batch = Batch::new();
    while out.len() < n {
        batch.clear();
        batch.push(&seq, &feed, Want::Token);
        session.decode(&batch).unwrap();
        let token = session.outputs().token(0).unwrap();
        out.push(token);
        feed = vec![token];
    }
    out
}

#[test]
fn says_something() {
    let model = model();
    println!("{model:?} {:?}", model.info());
    let mut session = model
        .session(&SessionOptions::new().with_context(512).with_sequences(4).with_layout(KvLayout::Unified))
        .unwrap();
    let prompt = encode(&model, "<|im_start|>user\nWhat is the capital of France?<|im_end|>\n<|im_start|>assistant\n");
    let out = generate(&mut session, &prompt, 12);
    let vocab = model.tokenizer().vocab();
    let text: Vec<u8> = out.iter().flat_map(|&t| vocab.bytes(t).unwrap().to_vec()).collect();
    println!("{} {session:?}", String::from_utf8_lossy(&text));
}
