//! Which types may cross threads, and what must not compile.

use infer_llama::{Encoder, Llama, Model, Session, Tokenizer};

fn send<T: Send + 'static>() {}
fn send_sync<T: Send + Sync + 'static>() {}

#[test]
fn what_may_cross_threads_does() {
    send_sync::<Llama>();
    send_sync::<Model>();
    send_sync::<Tokenizer>();
    send::<Session>();
    send::<Encoder>();
}

#[test]
fn misuse_does_not_compile() {
    trybuild::TestCases::new().compile_fail("tests/fail/*.rs");
}
