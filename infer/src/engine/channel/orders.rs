//! The channel in orders of the scheduler's choice: `cargo xtask orders`. A wake-up that is lost is a deadlock.

use super::{Consumer, Producer, Wish, channel};
use crate::{Finish, FinishReason, Piece, Stats, sync::check_orders};
use infer_core::{Error, ErrorKind, Result, Sampled, Token};
use shuttle::{future::block_on, thread};
use std::{
    future::poll_fn,
    sync::Arc,
    task::{Context, Poll, Wake, Waker},
};

const TOKENS: u32 = 3;

fn write(producer: &Producer, index: usize) {
    for token in 0..TOKENS {
        producer.push(index, |piece| piece.tokens.push(Sampled::new(Token(token), 0.0)));
    }
}

fn end(producer: &Producer, index: usize) {
    producer.finish(index, Finish::new(FinishReason::EndOfText, Stats::default(), Vec::new()));
}

/// How it is read to its end.
type Read = fn(&Consumer) -> Option<Result<Piece>>;

const WAYS: [Read; 3] = [Consumer::wait, awaited, |consumer| {
    // Looked at by a task that is forgotten, and then waited for.
    let looked = consumer.poll(&mut Context::from_waker(Waker::noop()));
    if let Poll::Ready(item) = looked { item } else { awaited(consumer) }
}];

fn awaited(consumer: &Consumer) -> Option<Result<Piece>> {
    block_on(poll_fn(|context| consumer.poll(context)))
}

/// Reads all; the tokens of each completion, and what ended it.
fn all(consumer: &Consumer, read: Read, n: usize) -> (Vec<Vec<Token>>, Option<ErrorKind>) {
    let (mut tokens, mut ended, mut error) = (vec![Vec::new(); n], vec![false; n], None);
    while let Some(item) = read(consumer) {
        match item {
            Ok(piece) => {
                assert!(!piece.is_empty() && error.is_none() && !ended[piece.index]);
                tokens[piece.index].extend(piece.tokens.iter().map(|sampled| sampled.token));
                ended[piece.index] = piece.finish.is_some();
            }
            Err(failed) => assert!(error.replace(failed.kind()).is_none()),
        }
    }
    assert!(read(consumer).is_none(), "it stays at its end");
    assert!(error.is_some() || ended.iter().all(|ended| *ended));
    (tokens, error)
}

#[test]
fn a_reader_is_woken_for_all_that_comes() {
    for read in WAYS {
        check_orders(move || {
            let (producer, consumer) = channel(2);
            let engine = thread::spawn(move || {
                write(&producer, 0);
                end(&producer, 0);
                write(&producer, 1);
                end(&producer, 1);
            });
            let whole: Vec<_> = (0..TOKENS).map(Token).collect();
            assert_eq!(all(&consumer, read, 2), (vec![whole.clone(), whole], None));
            engine.join().unwrap();
        });
    }
}

#[test]
fn a_stream_without_its_engine_ends() {
    for read in WAYS {
        check_orders(move || {
            let (producer, consumer) = channel(1);
            let engine = thread::spawn(move || write(&producer, 0));
            let whole = (0..TOKENS).map(Token).collect();
            assert_eq!(all(&consumer, read, 1), (vec![whole], Some(ErrorKind::Closed)));
            engine.join().unwrap();

            let (producer, consumer) = channel(1);
            let engine = thread::spawn(move || producer.fail(Error::from(ErrorKind::SessionLost)));
            assert_eq!(all(&consumer, read, 1), (vec![Vec::new()], Some(ErrorKind::SessionLost)));
            engine.join().unwrap();
        });
    }
}

#[test]
fn a_wish_is_heard_and_a_dropped_reader_stalls_nobody() {
    check_orders(|| {
        let (producer, consumer) = channel(1);
        let engine = thread::spawn(move || {
            while producer.wish() == Wish::Go {
                write(&producer, 0);
                thread::yield_now();
            }
            end(&producer, 0);
            while producer.wish() != Wish::Forget {
                thread::yield_now();
            }
        });
        consumer.cancel();
        while consumer.wait().unwrap().unwrap().finish.is_none() {}
        drop(consumer);
        engine.join().unwrap();
    });
}

#[test]
fn a_waker_that_panics_ends_no_engine() {
    struct Loud;
    impl Wake for Loud {
        fn wake(self: Arc<Self>) {
            std::panic::resume_unwind(Box::new("as planned"))
        }
    }
    check_orders(|| {
        let (producer, consumer) = channel(1);
        let engine = thread::spawn(move || {
            write(&producer, 0);
            end(&producer, 0);
        });
        let waker = Waker::from(Arc::new(Loud));
        let looked = consumer.poll(&mut Context::from_waker(&waker));
        engine.join().expect("it has come to its end");
        if looked.is_pending() {
            assert_eq!(all(&consumer, Consumer::wait, 1).1, None);
        }
    });
}
