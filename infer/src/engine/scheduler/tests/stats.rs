//! Who has read an end finds it in the figures.

use super::*;
use infer_core::testing::Fault;
use std::{sync::Mutex, task::Wake};

/// Reads a stream as soon as there is something, on the scheduler's own thread, and keeps what the figures are when an end was read.
struct Watcher {
    stream: Consumer,
    shared: Arc<Shared>,
    ends: Mutex<Vec<(Option<FinishReason>, EngineStats)>>,
}

impl Watcher {
    fn on(kit: &Kit, asked: Asked) -> Arc<Self> {
        let (stream, shared) = (asked.stream, kit.shared.clone());
        let watcher = Arc::new(Self { stream, shared, ends: Mutex::default() });
        watcher.clone().wake();
        watcher
    }

    /// How the only completion ended, and the figures then: finished, failed, cancelled; texts that ran, and sequences.
    fn end(&self) -> (Option<FinishReason>, [u64; 3], [usize; 2]) {
        let ends = self.ends.lock().unwrap();
        let [(reason, stats)] = &ends[..] else { panic!("{ends:?}") };
        let counts = [stats.finished, stats.failed, stats.cancelled];
        (*reason, counts, [stats.running + stats.prefilling, stats.sequences])
    }
}

impl Wake for Watcher {
    fn wake(self: Arc<Self>) {
        let waker = Waker::from(self.clone());
        while let Poll::Ready(Some(item)) = self.stream.poll(&mut Context::from_waker(&waker)) {
            let reason = match item {
                Ok(Piece { finish: None, .. }) => continue,
                Ok(Piece { finish, .. }) => finish.map(|finish| finish.reason),
                Err(_) => None,
            };
            self.ends.lock().unwrap().push((reason, self.shared.stats()));
        }
    }
}

fn kit(script: Script, sequences: usize) -> Kit {
    Kit::with(script, sequences, Settings { cache: 0, ..Settings::default() })
}

#[test]
fn one_that_ended_is_counted_and_runs_no_more_when_its_end_is_read() {
    let mut kit = kit(Script::new(), 2);
    let asked = kit.ask(&ask("this one ends", 5));
    let short = Watcher::on(&kit, asked);
    let asked = kit.ask(&ask("this one goes on", 9));
    let long = Watcher::on(&kit, asked);
    kit.run();
    assert_eq!(short.end(), (Some(FinishReason::Length), [1, 0, 0], [1, 1]));
    assert_eq!(long.end(), (Some(FinishReason::Length), [2, 0, 0], [0, 0]));
    assert_eq!(long.ends.lock().unwrap()[0].1.generated_tokens, 14);
}

#[test]
fn so_is_one_that_is_cancelled_or_late_running_or_not() {
    let mut kit = kit(Script::new(), 1);
    let asked = kit.ask(&ask("this one runs", 1000));
    let runs = Watcher::on(&kit, asked);
    let asked = kit.ask(&ask("this one waits", 5).with_deadline(Instant::now()));
    let waits = Watcher::on(&kit, asked);
    kit.turns(3);
    assert_eq!(waits.end(), (Some(FinishReason::Deadline), [0, 0, 1], [0, 0]), "nothing was begun yet");
    runs.stream.cancel();
    kit.run();
    assert_eq!(runs.end(), (Some(FinishReason::Cancelled), [0, 0, 2], [0, 0]));
}

#[test]
fn so_is_one_that_fails() {
    let script = Script::new().with_fault(2, Fault::Error(ErrorKind::Runtime));
    let mut kit = kit(script, 1);
    let asked = kit.ask(&ask("its third pass fails", 9));
    let fails = Watcher::on(&kit, asked);
    kit.run();
    assert_eq!(fails.end(), (None, [0, 1, 0], [0, 0]));
}

#[test]
fn so_are_those_that_are_stopped() {
    let mut kit = kit(Script::new(), 1);
    let asked = kit.ask(&ask("this one runs", 1000));
    let runs = Watcher::on(&kit, asked);
    kit.turns(3);
    kit.scheduler.stop(&Error::from(ErrorKind::Closed));
    let (reason, counts, [running, _]) = runs.end();
    assert_eq!((reason, counts, running), (None, [0, 1, 0], 0));
}
