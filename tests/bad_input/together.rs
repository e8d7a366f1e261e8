//! Several threads, models and sessions at once; panics in callbacks; interrupts at any moment.

use super::{alone, feed, files::tiny, model, open, options, shown, tokens};
use infer::{ErrorKind, Session as _, Token};
use infer_llama::{Llama, Model, ModelOptions, Session};
use kit::child;
use std::{
    ops::ControlFlow,
    panic::{self, AssertUnwindSafe},
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
    thread,
    time::{Duration, Instant},
};
use test_kit::{Folder, Listener, text};

/// What a listener has heard.
#[derive(Clone, Default)]
struct Heard {
    lines: Arc<AtomicUsize>,
    /// Those that are not whole: that have another one inside, or end in the middle of this one, which many threads write.
    broken: Arc<Mutex<Vec<String>>>,
}

impl Heard {
    fn listener(&self) -> impl tracing::Subscriber {
        let Self { lines, broken } = self.clone();
        Listener::new(move |event| {
            let text = text(event);
            if text.contains('\n') || text.matches("general.architecture").count() > 1 {
                broken.lock().unwrap().push(text);
            }
            lines.fetch_add(1, Ordering::Relaxed);
        })
    }
}

fn file(folder: &Folder, name: &str) -> std::path::PathBuf {
    folder.file(name, &tiny::llama().bytes())
}

#[test]
fn many_threads_log_whole_lines() {
    let answers = child::cases("together::many_threads_log_whole_lines", &["all"], |_| {
        let heard = Heard::default();
        tracing::subscriber::set_global_default(heard.listener()).unwrap();
        let folder = Folder::new();
        let path = file(&folder, "tiny.gguf");
        thread::scope(|scope| {
            for _ in 0..8 {
                scope.spawn(|| {
                    for _ in 0..5 {
                        let model = Model::open(&Llama::linked().unwrap(), &path).unwrap();
                        drop(model.session(&options()).unwrap());
                    }
                });
            }
        });
        let (lines, broken) = (heard.lines.load(Ordering::Relaxed), heard.broken.lock().unwrap().clone());
        assert!(lines > 8 * 5 * 20, "{lines} lines of 40 loads");
        format!("{broken:?}")
    });
    assert!(answers.iter().all(|answer| answer == "[]"), "{answers:?}");
}

#[test]
fn two_models_and_two_sessions_of_each_run_at_once() {
    let answers = child::cases("together::two_models_and_two_sessions_of_each_run_at_once", &["all"], |_| {
        let folder = Folder::new();
        let llama = Llama::linked().unwrap();
        let [first, second] = [("llama.gguf", tiny::llama()), ("gpt2.gguf", tiny::gpt2(256))]
            .map(|(name, file)| Model::open(&llama, folder.file(name, &file.bytes())).unwrap());
        let wanted = [&first, &second].map(|model| alone(model, &tokens(30)));
        thread::scope(|scope| {
            for (model, wanted) in
                [(&first, &wanted[0]), (&second, &wanted[1]), (&first, &wanted[0]), (&second, &wanted[1])]
            {
                scope.spawn(move || {
                    for _ in 0..50 {
                        assert_eq!(
                            &alone(model, &tokens(30)),
                            wanted,
                            "a session of its own, made and gone beside others"
                        );
                    }
                });
            }
        });
        "the same".to_owned()
    });
    assert!(answers.iter().all(|answer| answer == "the same"), "{answers:?}");
}

#[test]
fn a_panic_in_a_callback_goes_on_where_the_call_was_made() {
    const CASES: &[&str] = &["progress", "log of a load", "log of a context"];
    let answers = child::cases("together::a_panic_in_a_callback_goes_on_where_the_call_was_made", CASES, |case| {
        let folder = Folder::new();
        let (path, llama) = (file(&folder, "tiny.gguf"), Llama::linked().unwrap());
        let loud = || Listener::new(|_| panic!("from the subscriber"));
        let model = Model::open(&llama, &path).unwrap();
        let raised = panic::catch_unwind(AssertUnwindSafe(|| match case {
            "progress" => {
                let mut watch = |_| panic!("from the closure");
                drop(Model::open_watched(&llama, &path, &ModelOptions::new(), &mut watch));
            }
            "log of a load" => tracing::subscriber::with_default(loud(), || drop(Model::open(&llama, &path))),
            _ => tracing::subscriber::with_default(loud(), || drop(model.session(&options()))),
        }));
        let payload = raised.expect_err("it panics");
        let text =
            payload.downcast_ref::<&str>().map_or_else(|| "something else".to_owned(), |text| (*text).to_owned());
        // All is as it was: the same file opens, and computes.
        assert_eq!(alone(&Model::open(&llama, &path).unwrap(), &tokens(3)), alone(&model, &tokens(3)));
        text
    });
    for answer in answers {
        assert!(answer.starts_with("from the "), "{answer}");
    }
}

#[test]
fn an_interrupt_comes_at_any_moment() {
    const CASES: &[&str] = &["load", "prefill", "decode", "raised beforehand", "raised and lowered all the time"];
    let answers = child::cases("together::an_interrupt_comes_at_any_moment", CASES, |case| match case {
        "load" => {
            let folder = Folder::new();
            let (path, llama) = (file(&folder, "tiny.gguf"), Llama::linked().unwrap());
            let mut calls = 0;
            let mut watch = |_| {
                calls += 1;
                if calls > 2 { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
            };
            let error = Model::open_watched(&llama, &path, &ModelOptions::new(), &mut watch).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Cancelled, "{}", shown(&error));
            assert!(Model::open(&llama, &path).is_ok());
            "stopped".to_owned()
        }
        "raised beforehand" => {
            let (_folder, model) = model();
            let mut session = model.session(&options()).unwrap();
            let seq = open(&mut session);
            feed(&mut session, &seq, &tokens(5)).unwrap();
            session.interrupt().raise();
            let error = feed(&mut session, &seq, &tokens(3)).unwrap_err();
            assert_eq!((error.kind(), seq.len()), (ErrorKind::Cancelled, 5));
            session.interrupt().lower();
            goes_on(&model, &mut session, &seq, 5, 5);
            "stopped".to_owned()
        }
        _ => at_random(case),
    });
    assert!(answers.iter().all(|answer| answer == "stopped"), "{answers:?}");
}

/// Passes while another thread raises the interrupt: each has its result whole, or left nothing behind.
fn at_random(case: &str) -> String {
    let (_folder, model) = model();
    let mut session = model.session(&options().with_batch(256).with_micro_batch(8)).unwrap();
    let seq = open(&mut session);
    let (interrupt, over) = (session.interrupt(), AtomicBool::new(false));
    let piece = if case == "decode" { 1 } else { 48 };
    thread::scope(|scope| {
        scope.spawn(|| {
            // Some pauses are shorter than a pass, and some are long enough for one on a machine that is busy.
            for pause in [40, 300, 2_000, 10_000, 50_000].map(Duration::from_micros).into_iter().cycle() {
                if over.load(Ordering::Relaxed) {
                    break;
                }
                interrupt.raise();
                thread::sleep(Duration::from_micros(40));
                interrupt.lower();
                thread::sleep(pause);
            }
        });
        let (mut stopped, mut done) = (0, 0);
        let patience = Instant::now() + Duration::from_secs(30);
        while (stopped <= 30 || done <= 30) && Instant::now() < patience {
            let before = seq.len();
            if before + piece > 240 {
                session.truncate(&seq, 0).unwrap();
                continue;
            }
            let next: Vec<Token> = tokens(256)[before..before + piece].to_vec();
            match feed(&mut session, &seq, &next) {
                Ok(_) => (done += 1, assert_eq!(seq.len(), before + piece)).1,
                Err(error) => {
                    assert_eq!((error.kind(), seq.len()), (ErrorKind::Cancelled, before), "{}", shown(&error));
                    stopped += 1;
                }
            }
        }
        over.store(true, Ordering::Relaxed);
        assert!(stopped > 0 && done > 0, "{stopped} passes were stopped, {done} were not");
    });
    session.interrupt().lower();
    let len = seq.len();
    goes_on(&model, &mut session, &seq, len, piece);
    "stopped".to_owned()
}

/// A sequence that holds the first `len` of [`tokens`], fed by so many, computes what it would have without any interrupt.
fn goes_on(model: &Model, session: &mut Session, seq: &infer::Sequence, len: usize, piece: usize) {
    let next = tokens(len as u32 + 1);
    let row = feed(session, seq, &next[len..]).unwrap();
    // Passes of other sizes add numbers of 16 bits in another order, which shows more the longer a sequence is: so these are the same.
    let apart_from = |tokens: &[Token]| {
        let mut quiet = model.session(&options().with_batch(256).with_micro_batch(8)).unwrap();
        let seq = open(&mut quiet);
        for piece in tokens[..len].chunks(piece) {
            feed(&mut quiet, &seq, piece).unwrap();
        }
        let quiet = feed(&mut quiet, &seq, &tokens[len..]).unwrap();
        row.iter().zip(quiet).map(|(a, b)| (a - b).abs()).fold(0.0, f32::max)
    };
    // One token that is another is another thing, wherever it weighs most.
    let with_other = |at: usize| {
        let mut wrong = next.clone();
        wrong[at] = Token(255);
        apart_from(&wrong)
    };
    let apart = apart_from(&next);
    let wrong =
        [0, len / 4, len / 2, len * 3 / 4, len.saturating_sub(1)].map(with_other).into_iter().fold(0.0, f32::max);
    assert!(apart < 1e-3 && wrong > 0.5, "after interrupts: {apart} apart, and {wrong} with one other token");
}
