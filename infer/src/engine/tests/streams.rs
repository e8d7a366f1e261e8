use super::*;
use crate::Piece;
use futures_core::Stream;
use std::pin::Pin;

/// The next piece, awaited.
async fn next(generation: &mut Generation) -> Option<Result<Piece>> {
    std::future::poll_fn(|context| Pin::new(&mut *generation).poll_next(context)).await
}

#[test]
fn is_read_in_all_ways_alike() {
    let script = Script::new();
    let engine = engine(script.clone());
    let request = ask("one way or another");
    let alone = solo(&script, &request);
    let text = |pieces: &mut dyn Iterator<Item = Result<Piece>>| -> String {
        pieces.map(|piece| piece.unwrap().text).collect()
    };
    assert_eq!(text(&mut engine.generate(request.clone()).into_iter()), alone.text);
    assert_eq!(block_on(engine.generate(request.clone()).completed()).unwrap().tokens, alone.tokens);
    assert_eq!(engine.generate(request.clone()).complete_all().unwrap()[0].tokens, alone.tokens);
    assert_eq!(block_on(engine.generate(request.clone()).completed_all()).unwrap()[0].tokens, alone.tokens);

    let hold = Hold::of(4);
    let engine = super::engine(hold.on(script));
    let mut generation = engine.generate(request.clone());
    let mut read = generation.wait().unwrap().unwrap().text;
    hold.open();
    read += &(&mut generation).into_iter().next().map_or_else(String::new, |piece| piece.unwrap().text);
    while let Some(piece) = block_on(next(&mut generation)) {
        read += &piece.unwrap().text;
    }
    assert_eq!(read, alone.text);
    assert!(generation.wait().is_none() && block_on(next(&mut generation)).is_none(), "it has ended");
    assert_eq!(kind(generation.complete()), ErrorKind::InvalidInput);

    hold.close(4);
    let mut generation = engine.generate(request);
    let first = generation.wait().unwrap().unwrap();
    hold.open();
    let rest = generation.complete().unwrap();
    assert_eq!(first.text + &rest.text, alone.text);
}

#[test]
fn who_reads_slowly_gets_more_at_once_and_holds_nobody_up() {
    let engine = engine(Script::new());
    let slow = engine.generate(endless().with_max_tokens(500));
    let never = engine.generate(endless().with_max_tokens(500));
    assert_eq!(engine.generate(endless().with_max_tokens(500)).complete().unwrap().tokens.len(), 500);
    until("all have ended", || engine.stats().finished == 3);
    let pieces: Vec<_> = slow.into_iter().map(Result::unwrap).collect();
    assert_eq!((pieces.len(), pieces[0].tokens.len()), (1, 500));
    drop(never);
}

#[test]
fn one_that_is_dropped_is_forgotten_before_the_next_pass() {
    let hold = Hold::default();
    let engine = builder(hold.on(Script::new())).with_prefix_cache(0).build().unwrap();
    let generation = engine.generate(endless());
    hold.wait();
    drop(generation);
    hold.open();
    until("its sequence is free", || engine.stats().cancelled == 1 && engine.stats().sequences == 0);
    let stats = engine.stats();
    assert!(stats.generated_tokens <= 1, "the pass that ran may have drawn one: {stats}");
    assert_eq!((stats.cells, stats.running, stats.prefilling), (0, 0, 0));
}

#[test]
fn one_that_is_cancelled_says_how_far_it_came() {
    let engine = engine(Script::new());
    let mut generation = engine.generate(endless().with_n(2));
    let mut tokens = 0;
    while tokens < 10 {
        tokens += generation.wait().unwrap().unwrap().tokens.len();
    }
    generation.cancel();
    let rest = generation.complete_all().unwrap();
    assert!(rest.iter().all(|one| one.finish == FinishReason::Cancelled));
    let counted: usize = rest.iter().map(|one| one.stats.generated_tokens).sum();
    assert_eq!(tokens + rest.iter().map(|one| one.tokens.len()).sum::<usize>(), counted);
}

#[test]
fn a_waiting_one_that_is_dropped_gives_up_its_place() {
    let hold = Hold::default();
    let engine = builder(hold.on(Script::new())).with_sequences(1).with_queue(1, WhenFull::Error).build().unwrap();
    let running = engine.generate(ask("this runs"));
    hold.wait();
    let waiting = engine.generate(ask("this waits"));
    assert_eq!(kind(engine.generate(ask("this has no place")).complete()), ErrorKind::QueueFull);
    drop(waiting);
    hold.open();
    running.complete().unwrap();
    engine.generate(ask("this has one")).complete().unwrap();
}

#[test]
fn wakers_that_panic_are_no_business_of_others() {
    struct Panics;
    impl Wake for Panics {
        fn wake(self: Arc<Self>) {
            panic!("this waker panics");
        }
    }
    let hold = Hold::default();
    let engine = engine(hold.on(Script::new()));
    let mut generation = engine.generate(ask("this one's reader is broken"));
    let waker = Waker::from(Arc::new(Panics));
    assert!(Pin::new(&mut generation).poll_next(&mut Context::from_waker(&waker)).is_pending());
    hold.open();
    engine.generate(ask("this one is not")).complete().unwrap();
    generation.complete().unwrap();
}
