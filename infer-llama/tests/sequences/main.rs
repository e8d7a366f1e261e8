//! What a sequence can do beside growing: positions moved, tokens scored, hidden states given; and the number formats of its cache.

mod cache;
mod hidden;
#[path = "../kit/mod.rs"]
mod kit;
#[path = "../kit/linked.rs"]
mod linked;
mod scores;
mod shift;

use infer_core::{Batch, Error, Sequence, Session as _, Special, Token, Tokenizer as _, Want};
use infer_llama::{Model, Session};

const DECODERS: [&str; 4] = ["tiny-llama", "tiny-gemma3", "tiny-mamba", "tiny-lfm2"];

fn wanting(session: &mut Session, seq: &Sequence, tokens: &[Token], want: Want) -> Result<(), Error> {
    let mut batch = Batch::new();
    batch.push(seq, tokens, want);
    session.decode(&batch)
}

fn words(model: &Model, text: &str) -> Vec<Token> {
    let mut tokens = Vec::new();
    model.tokenizer().encode(text, Special::PARSE, &mut tokens).unwrap();
    tokens
}
