//! Runs that are stopped: from another thread, and at a deadline.

mod kit;

use infer_core::ErrorKind;
use infer_onnx::{Graph, Input, TensorView};
use kit::{load, model};
use std::{
    sync::mpsc,
    thread,
    time::{Duration, Instant},
};

/// More rounds than a test has patience for.
const FOR_EVER: i64 = i64::MAX;

/// Adds for so many rounds.
fn inputs(rounds: &[i64; 1]) -> [(&'static str, Input<'_>); 2] {
    const ONES: [f32; 1024] = [1.0; 1024];
    [("n", TensorView::new(&[], rounds).unwrap().into()), ("x", TensorView::new(&[1024], &ONES).unwrap().into())]
}

#[track_caller]
fn goes_on(graph: &mut Graph) {
    graph.run(inputs(&[3])).unwrap();
    assert_eq!(graph.outputs().tensor("y").unwrap().as_slice::<f32>().unwrap()[0], 4.0);
}

#[test]
fn another_thread_stops_a_run() {
    let mut graph = load(&model::adding());
    let interrupt = graph.interrupt();
    let (begun, begins) = mpsc::channel();
    let other = thread::spawn({
        let interrupt = interrupt.clone();
        move || {
            begins.recv().unwrap();
            thread::sleep(Duration::from_millis(20));
            interrupt.raise();
        }
    });
    begun.send(()).unwrap();
    let error = graph.run(inputs(&[FOR_EVER])).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Cancelled, "{error}");
    assert_eq!(graph.outputs().iter().count(), 0);
    other.join().unwrap();
    // It is a level: the next run does not begin.
    assert_eq!(graph.run(inputs(&[3])).unwrap_err().kind(), ErrorKind::Cancelled);
    interrupt.lower();
    goes_on(&mut graph);
}

#[test]
fn a_deadline_stops_a_run() {
    let mut graph = load(&model::adding());
    let begun = Instant::now();
    let error = graph.run_until(begun + Duration::from_millis(20), inputs(&[FOR_EVER])).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Cancelled, "{error}");
    assert!(error.to_string().contains("deadline") && begun.elapsed() >= Duration::from_millis(20), "{error}");
    let error = graph.run_until(begun, inputs(&[3])).unwrap_err();
    assert!(error.to_string().contains("deadline"), "it has passed already: {error}");
    graph.run_until(Instant::now() + Duration::from_secs(600), inputs(&[3])).unwrap();
    goes_on(&mut graph);
}

#[test]
fn a_bound_run_is_stopped_too() {
    let mut graph = load(&model::adding());
    let mut binding = graph.binding().unwrap();
    binding.bind_zeros("x", &[1024]).unwrap();
    binding.bind_zeros("n", &[]).unwrap();
    binding.input_mut::<i64>("n").unwrap()[0] = FOR_EVER;
    let error = graph.run_bound_until(Instant::now() + Duration::from_millis(20), &mut binding).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Cancelled, "{error}");
    assert!(binding.outputs().get("y").is_err());
    binding.input_mut::<i64>("n").unwrap()[0] = 2;
    binding.input_mut::<f32>("x").unwrap().fill(0.5);
    graph.run_bound(&mut binding).unwrap();
    assert_eq!(binding.outputs().tensor("y").unwrap().as_slice::<f32>().unwrap()[0], 1.5);
    // Nor is anything shown where it is too late to begin.
    let error = graph.run_bound_until(Instant::now(), &mut binding).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Cancelled, "{error}");
    assert!(binding.outputs().get("y").is_err());
}
