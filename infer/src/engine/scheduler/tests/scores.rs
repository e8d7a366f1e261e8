use super::*;
use crate::engine::job::{ScoreJob, ScoreReply};
use infer_core::{Batch, OpenOptions, Want};
use std::sync::{atomic::AtomicBool, mpsc};

fn score(kit: &mut Kit, text: &str) -> (mpsc::Receiver<Result<Vec<f32>>>, Arc<AtomicBool>) {
    let (send, receive) = mpsc::channel();
    let cancelled = Arc::new(AtomicBool::new(false));
    let out = ScoreReply::new(move |scores| drop(send.send(scores)), cancelled.clone());
    let place = kit.shared.enter(usize::MAX).unwrap();
    let tokens = tokens(text);
    kit.scheduler.push_score(ScoreJob {
        id: 0,
        tokens,
        adapter: None,
        deadline: None,
        made: Instant::now(),
        out,
        place,
    });
    (receive, cancelled)
}

/// In one pass on a session of its own.
fn by_hand(kit: &Kit, text: &str) -> Vec<f32> {
    let mut session = kit.plain.session(&kit.options).unwrap();
    let seq = session.open(&OpenOptions::default()).unwrap();
    let mut batch = Batch::new();
    batch.push(&seq, &tokens(text), Want::Score);
    session.decode(&batch).unwrap();
    session.outputs().scores(0)[1..].to_vec()
}

#[test]
fn scores_ride_along_in_chunks() {
    let mut kit = Kit::with(Script::new(), 3, Settings { batch: Some(16), cache: 1000, ..Settings::default() });
    let text = "a text of which it is asked how probable it is, token by token";
    let asked = kit.ask(&ask(text, 10));
    let (first, _) = score(&mut kit, text);
    let (second, _) = score(&mut kit, "x");
    kit.run();
    assert_eq!(first.recv().unwrap().unwrap(), by_hand(&kit, text));
    assert!(second.recv().unwrap().unwrap().is_empty());
    assert_eq!(asked.one().tokens, kit.solo(&ask(text, 10)).tokens);
    assert_eq!(kit.stats().prefix_hits, 0, "scores need every pass");
    kit.assert_all_is_free();
}

#[test]
fn scores_are_cancelled_and_refused() {
    let mut kit = Kit::new(Script::new(), 1);
    let (unwanted, cancelled) = score(&mut kit, "unwanted");
    cancelled.store(true, std::sync::atomic::Ordering::Release);
    let (empty, _) = score(&mut kit, "");
    kit.run();
    assert_eq!(unwanted.recv().unwrap().unwrap_err().kind(), ErrorKind::Cancelled);
    assert_eq!(empty.recv().unwrap().unwrap_err().kind(), ErrorKind::InvalidInput);
    assert_eq!(kit.stats().prefilled_tokens, 0);
    let (stopped, _) = score(&mut kit, "stopped");
    kit.scheduler.stop(&Error::new(ErrorKind::Closed, "shut down"));
    assert_eq!(stopped.recv().unwrap().unwrap_err().kind(), ErrorKind::Closed);
}
