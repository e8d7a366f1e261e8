//! What threads share, over the faked door: a model and its tokenizer, handles of sequences, interrupts, and the log.
//!
//! A program of its own, without the test harness: under ThreadSanitizer (`cargo xtask sanitize thread`) the standard library is not
//! instrumented, and what its channels and waiting locks order looks unordered. Here threads are started and joined, which the
//! sanitizer follows, and meet at atomics.

mod kit;

use infer_core::{
    Batch, KvLayout, OpenOptions, Sampling, Sequence, Session as _, Special, Token, Tokenizer as _, Want,
};
use infer_llama::{Llama, Model, Session, SessionOptions};
use infer_sys::llama::fake::{self, Script};
use kit::tiny;
use std::{
    hint,
    sync::atomic::{AtomicBool, AtomicUsize, Ordering},
    thread,
};
use test_kit::Folder;

const THREADS: usize = 4;
const ROUNDS: usize = 60;

fn main() {
    let cases: [(&str, fn()); 5] = [
        ("one tokenizer encodes on many threads", one_tokenizer_encodes_on_many_threads),
        ("handles are dropped on other threads during passes", handles_are_dropped_on_other_threads_during_passes),
        ("an interrupt comes from other threads", an_interrupt_comes_from_other_threads),
        ("sessions are made and moved on many threads", sessions_are_made_and_moved_on_many_threads),
        ("models are opened and log on many threads", models_are_opened_and_log_on_many_threads),
    ];
    // The harness's words, for whoever runs or leaves out a test by its name.
    let (mut only, mut skip) = (Vec::new(), Vec::new());
    let mut words = std::env::args().skip(1);
    while let Some(word) = words.next() {
        match word.as_str() {
            "--skip" => skip.extend(words.next()),
            flag if flag.starts_with('-') => {}
            _ => only.push(word),
        }
    }
    let named = |name: &str, words: &[String]| words.iter().any(|word| name.contains(word.as_str()));
    if std::env::var_os("INFER_CANARY").is_some() {
        return a_race();
    }
    for (name, case) in cases {
        if (only.is_empty() || named(name, &only)) && !named(name, &skip) {
            case();
            println!("{name}: ok");
        }
    }
}

/// What the sanitizer must see, for `cargo xtask sanitize`: one that sees nothing proves nothing.
fn a_race() {
    struct Shared(std::cell::UnsafeCell<u32>);
    // SAFETY: it is not: nothing orders the two writes.
    unsafe impl Sync for Shared {}
    let shared = Shared(0.into());
    thread::scope(|scope| {
        for number in 0..2 {
            let shared = &shared;
            // SAFETY: as above.
            scope.spawn(move || unsafe { shared.0.get().write(number) });
        }
    });
}

/// A model of which every thread knows.
fn model() -> (Folder, Model) {
    let folder = Folder::new();
    let path = folder.file("tiny.gguf", &tiny::llama().bytes());
    let _ = Script::new().install();
    let model = Model::open(&Llama::from_api(fake::api()).unwrap(), path).unwrap();
    (folder, model)
}

fn session(model: &Model) -> Session {
    let options = SessionOptions::new().with_context(256).with_sequences(8).with_threads(1);
    model.session(&options.with_layout(KvLayout::Unified)).unwrap()
}

fn open(session: &mut Session) -> Sequence {
    session.open(&OpenOptions::default()).unwrap()
}

fn feed(session: &mut Session, seq: &Sequence, tokens: &[Token]) -> infer_core::Result<()> {
    let mut batch = Batch::new();
    batch.push(seq, tokens, Want::Logits);
    session.decode(&batch)
}

/// Lets threads go on together, by atomics alone.
#[derive(Default)]
struct Gate(AtomicUsize);

impl Gate {
    fn wait(&self) {
        self.0.fetch_add(1, Ordering::AcqRel);
        while self.0.load(Ordering::Acquire) < THREADS {
            hint::spin_loop();
            thread::yield_now();
        }
    }
}

fn one_tokenizer_encodes_on_many_threads() {
    let (_folder, model) = model();
    let (gate, texts) = (Gate::default(), ["a text", "é\n", "", "<|im_end|> and more"]);
    thread::scope(|scope| {
        for text in texts {
            let (gate, tokenizer) = (&gate, model.tokenizer().clone());
            scope.spawn(move || {
                gate.wait();
                let mut first = Vec::new();
                tokenizer.encode(text, Special::PARSE, &mut first).unwrap();
                for _ in 0..ROUNDS {
                    let mut again = Vec::new();
                    tokenizer.encode(text, Special::PARSE, &mut again).unwrap();
                    assert_eq!(again, first);
                    assert!(again.iter().all(|&token| tokenizer.vocab().bytes(token).is_some()));
                }
            });
        }
    });
}

fn handles_are_dropped_on_other_threads_during_passes() {
    let (_folder, model) = model();
    let mut session = session(&model);
    for _ in 0..ROUNDS / 4 {
        let stays = open(&mut session);
        let goes: Vec<_> = (0..THREADS).map(|_| open(&mut session)).collect();
        for seq in &goes {
            feed(&mut session, seq, &[Token(1), Token(2)]).unwrap();
        }
        let begun = AtomicBool::new(false);
        thread::scope(|scope| {
            for seq in goes {
                let begun = &begun;
                scope.spawn(move || {
                    while !begun.load(Ordering::Acquire) {
                        thread::yield_now();
                    }
                    assert_eq!((seq.len(), seq.is_spent()), (2, false));
                });
            }
            begun.store(true, Ordering::Release);
            for token in 0..8 {
                feed(&mut session, &stays, &[Token(token)]).unwrap();
                assert!(session.usage().sequences >= 1);
            }
        });
        assert_eq!((stays.len(), session.usage().sequences), (8, 1));
    }
}

fn an_interrupt_comes_from_other_threads() {
    let (_folder, model) = model();
    let mut session = session(&model);
    let over = AtomicBool::new(false);
    thread::scope(|scope| {
        for _ in 0..THREADS {
            let (interrupt, over) = (session.interrupt(), &over);
            scope.spawn(move || {
                while !over.load(Ordering::Acquire) {
                    interrupt.raise();
                    thread::yield_now();
                    interrupt.lower();
                }
            });
        }
        let seq = open(&mut session);
        for _ in 0..ROUNDS {
            let before = seq.len();
            let done = feed(&mut session, &seq, &[Token(3), Token(4), Token(5)]).is_ok();
            assert_eq!(seq.len(), before + if done { 3 } else { 0 });
        }
        over.store(true, Ordering::Release);
    });
    session.interrupt().lower();
    let seq = open(&mut session);
    feed(&mut session, &seq, &[Token(1)]).unwrap();
}

fn sessions_are_made_and_moved_on_many_threads() {
    let (_folder, model) = model();
    let gate = Gate::default();
    thread::scope(|scope| {
        for number in 0..THREADS {
            let (gate, model) = (&gate, model.clone());
            scope.spawn(move || {
                gate.wait();
                for round in 0..ROUNDS / 10 {
                    let mut session = session(&model);
                    let seq = open(&mut session);
                    let sampling = Sampling::default().with_seed(round as u64);
                    session.sample_with(&seq, &sampling, &[Token(number as u32)]).unwrap();
                    feed(&mut session, &seq, &[Token(number as u32)]).unwrap();
                    // Goes on elsewhere, and ends there.
                    let moved = thread::spawn(move || {
                        feed(&mut session, &seq, &[Token(7)]).unwrap();
                        (session.outputs().logits(0).unwrap().to_vec(), seq.len())
                    });
                    assert_eq!(moved.join().unwrap().1, 2);
                }
            });
        }
    });
}

fn models_are_opened_and_log_on_many_threads() {
    let folder = Folder::new();
    let path = folder.file("tiny.gguf", &tiny::llama().bytes());
    let gate = Gate::default();
    thread::scope(|scope| {
        for _ in 0..THREADS {
            let (gate, path) = (&gate, &path);
            scope.spawn(move || {
                gate.wait();
                for round in 0..ROUNDS / 10 {
                    // One in two fails, with its log and none of another thread's.
                    let fails = round % 2 == 0;
                    let script = Script::new();
                    let fault = fake::Fault::Result(-1);
                    let _ = if fails { script.with_load_fault(fault) } else { script }.install();
                    let llama = Llama::from_api(fake::api()).unwrap();
                    match Model::open(&llama, path) {
                        Ok(model) => drop(session(&model)),
                        Err(error) => assert_eq!(error.log(), Some("fake: error loading model: as planned\n")),
                    }
                }
            });
        }
    });
}
