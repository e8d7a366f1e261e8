//! A generation is read with what runtimes have for streams: their methods are not hidden by its own, nor is it ambiguous which is meant.

use futures_core::Stream;
use infer::{Engine, Piece, Request, Result};
use infer_core::testing::{Script, ScriptedModel};
use std::{
    future::{Future, poll_fn},
    pin::Pin,
};
use test_kit::block_on;

/// What `futures`, `tokio-stream` and others call `StreamExt`, as far as names go.
trait StreamExt: Stream + Unpin + Sized {
    fn next(&mut self) -> impl Future<Output = Option<Self::Item>> {
        poll_fn(|context| Pin::new(&mut *self).poll_next(context))
    }

    async fn fold<A>(mut self, first: A, add: impl Fn(A, Self::Item) -> A) -> A {
        let mut all = first;
        while let Some(item) = self.next().await {
            all = add(all, item);
        }
        all
    }
}

impl<S: Stream + Unpin> StreamExt for S {}

#[test]
fn a_generation_is_a_stream_to_every_runtime() {
    let script = Script::new().with_line("Two and two is", " four.");
    let engine = Engine::builder_with(move || Ok(Box::new(ScriptedModel::new(script)))).build().unwrap();
    let ask = || engine.generate(Request::rendered("Two and two is"));
    let text = |text: String, piece: Result<Piece>| text + &piece.unwrap().text;
    let (folded, read) = block_on(async {
        let folded = ask().fold(String::new(), text).await;
        let mut generation = ask();
        let mut read = String::new();
        while let Some(piece) = generation.next().await {
            read = text(read, piece);
        }
        (folded, read)
    });
    assert_eq!((folded.as_str(), read.as_str()), (" four.", " four."));
    let again: String = ask().into_iter().map(|piece| piece.unwrap().text).collect();
    assert_eq!(again, " four.");
}
