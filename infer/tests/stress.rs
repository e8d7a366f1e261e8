//! Engines over the scripted model, used by many threads at once and ended anywhere: nothing hangs, nothing is left, nobody gets another one's text.

use infer::{
    Engine, EngineBuilder, EngineStats, ErrorKind, FinishReason, Generation, Generator, Model, Overflow, Request,
    Sampling, SessionOptions, Token, WhenFull,
};
use infer_core::testing::{Script, ScriptedModel};
use std::{
    collections::HashMap,
    pin::pin,
    sync::{Arc, Mutex, mpsc},
    task::{Context, Poll, Wake, Waker},
    thread,
    time::{Duration, Instant},
};
use test_kit::{Random, block_on};

/// Longer than anything here takes.
const LONGEST: Duration = Duration::from_secs(120);

fn script() -> Script {
    Script::new().with_context(96).with_batch(64).with_line("e", "nd")
}

fn builder() -> EngineBuilder {
    Engine::builder_with(|| Ok(Box::new(ScriptedModel::new(script())) as Box<dyn Model>))
        .with_sequences(6)
        .with_context(96)
}

/// Runs it on a thread of its own, and fails where it hangs.
fn within_reason(work: impl FnOnce() + Send + 'static) {
    let (tell, told) = mpsc::channel();
    let working = thread::spawn(move || {
        work();
        let _ = tell.send(());
    });
    match told.recv_timeout(LONGEST) {
        Err(mpsc::RecvTimeoutError::Timeout) => panic!("it hangs"),
        _ => working.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)),
    }
}

/// One of a few hundred, so that what each comes to alone is computed once.
fn request(random: &mut Random) -> Request {
    let shared = "all of these begin alike, and then go on in another way";
    let text = format!("{}{}", &shared[..random.index(4) * 14], random.index(12));
    let prompt: Vec<Token> = text.bytes().map(|byte| Token(byte.into())).collect();
    let sampling = match random.index(3) {
        0 => Sampling::greedy(),
        seed => Sampling::default().with_temperature(0.8).with_seed(seed as u64),
    };
    Request::tokens(prompt).with_max_tokens(random.index(3) * 7).with_sampling(sampling)
}

/// What requests come to alone.
#[derive(Default)]
struct Solos(Mutex<HashMap<String, (String, Vec<u32>)>>);

impl Solos {
    fn of(&self, request: &Request) -> (String, Vec<u32>) {
        let name = format!("{request:?}");
        if let Some(solo) = self.0.lock().unwrap().get(&name) {
            return solo.clone();
        }
        let model = ScriptedModel::new(script());
        let mut session = model.session(&SessionOptions::new()).unwrap();
        let mut generator = Generator::new(model.tokenizer());
        let solo = generator.generate(&mut *session, request).unwrap().complete().unwrap();
        let solo = (solo.text, solo.tokens.iter().map(|sampled| sampled.token.0).collect());
        self.0.lock().unwrap().insert(name, solo.clone());
        solo
    }
}

/// Makes requests at random; a third of them does not get to its end.
fn customer(engine: &Engine, solos: &Solos, seed: u64, count: usize) {
    let mut random = Random(seed);
    let mut open: Vec<(Generation, Request, String)> = Vec::new();
    for _ in 0..count {
        let request = request(&mut random);
        open.push((engine.generate(request.clone()), request, String::new()));
        if open.len() < 1 + random.index(12) {
            continue;
        }
        let (mut generation, request, mut text) = open.swap_remove(random.index(open.len()));
        match random.index(6) {
            0 => {
                // Read, perhaps, and forgotten.
                if random.one_in(2) {
                    let _ = generation.wait();
                }
            }
            1 => {
                generation.cancel();
                let completion = generation.complete().unwrap();
                let (whole, _) = solos.of(&request);
                let is_cancelled = completion.finish == FinishReason::Cancelled;
                assert!(if is_cancelled { whole.starts_with(&completion.text) } else { whole == completion.text });
            }
            2 => {
                let completion = block_on(generation.completed()).unwrap();
                let tokens = completion.tokens.iter().map(|sampled| sampled.token.0).collect();
                assert_eq!((completion.text, tokens), solos.of(&request));
            }
            _ => {
                for piece in &mut generation {
                    text += &piece.unwrap().text;
                }
                assert_eq!(text, solos.of(&request).0);
            }
        }
    }
}

/// Looks until all cells are free and nothing is left to do.
fn is_empty_soon(engine: &Engine) {
    let begun = Instant::now();
    loop {
        let stats = engine.stats();
        if (stats.running, stats.prefilling, stats.waiting, stats.sequences, stats.cells) == (0, 0, 0, 0, 0) {
            return;
        }
        assert!(begun.elapsed() < LONGEST, "something is left: {stats}");
        thread::sleep(Duration::from_millis(1));
    }
}

/// `STRESS_REQUESTS` says how many requests.
#[test]
fn many_requests_of_many_threads_leave_nothing() {
    let all = std::env::var("STRESS_REQUESTS").ok().and_then(|count| count.parse().ok()).unwrap_or(10_000);
    within_reason(move || {
        // Fewer cells than all that run can fill, and fewer places than are asked for.
        let engine = builder().with_cells(200).with_prefix_cache(0).with_queue(16, WhenFull::Wait).build().unwrap();
        let solos = Solos::default();
        thread::scope(|scope| {
            for seed in 0..4 {
                let (engine, solos) = (engine.clone(), &solos);
                scope.spawn(move || customer(&engine, solos, seed, all / 4));
            }
        });
        is_empty_soon(&engine);
        // Who was dropped is counted by the step that finds it so.
        engine.drain();
        let begun = Instant::now();
        let is_counted = |stats: &EngineStats| stats.finished + stats.cancelled == all as u64 / 4 * 4;
        while !is_counted(&engine.stats()) && begun.elapsed() < LONGEST {
            thread::sleep(Duration::from_millis(1));
        }
        let stats = engine.stats();
        assert!(is_counted(&stats) && stats.failed == 0, "{stats}");
        engine.shutdown();
    });
}

/// Ends an engine when it is woken.
struct Ends(Mutex<Option<Engine>>, fn(Engine));

impl Wake for Ends {
    fn wake(self: Arc<Self>) {
        let engine = self.0.lock().unwrap().take();
        if let Some(engine) = engine {
            (self.1)(engine);
        }
    }
}

fn endless(random: &mut Random) -> Request {
    request(random).with_overflow(Overflow::Shift).with_max_tokens(1_000_000).with_ignore_end(true)
}

/// Every stream ends as an engine's do that has ended.
fn end_closed(generations: Vec<Generation>) {
    for generation in generations {
        match generation.into_iter().last() {
            Some(Err(error)) => assert_eq!(error.kind(), ErrorKind::Closed, "{error}"),
            other => panic!("it has ended with {other:?}"),
        }
    }
}

#[test]
fn an_engine_may_end_anywhere_while_texts_are_generated() {
    let rounds = std::env::var("STRESS_ENDS").ok().and_then(|count| count.parse().ok()).unwrap_or(50);
    within_reason(move || {
        for round in 0..rounds {
            let mut random = Random(round + 1);
            let engine = builder().with_queue(64, WhenFull::Error).build().unwrap();
            let mut texts: Vec<_> = (0..20).map(|_| engine.generate(endless(&mut random))).collect();
            let readers: Vec<_> =
                (0..3).map(|_| texts.pop().unwrap()).map(|one| thread::spawn(|| end_closed(vec![one]))).collect();
            let _ = texts[0].wait();
            thread::sleep(Duration::from_micros(random.below(500)));
            match round % 5 {
                0 => drop(engine),
                1 => engine.shutdown(),
                2 => {
                    // By several threads, each of which makes requests until it is told.
                    thread::scope(|scope| {
                        for seed in 1..4 {
                            let engine = engine.clone();
                            let mut random = Random(seed + round);
                            scope.spawn(move || {
                                while !matches!(engine.generate(endless(&mut random)).wait(), Some(Err(error)) if error.kind() == ErrorKind::Closed) {}
                            });
                        }
                        thread::sleep(Duration::from_millis(2));
                        engine.shutdown();
                    });
                }
                // On its own thread, where a reader is woken; as the last handle, and as one of several.
                by_waker => {
                    let end: fn(Engine) = if by_waker == 3 { drop } else { |engine| engine.shutdown() };
                    let waker = Waker::from(Arc::new(Ends(Mutex::new(Some(engine)), end)));
                    // The first one is sure to run.
                    let mut woken = pin!(texts.remove(0).completed());
                    let ended = loop {
                        match woken.as_mut().poll(&mut Context::from_waker(&waker)) {
                            Poll::Ready(ended) => break ended,
                            Poll::Pending => thread::sleep(Duration::from_micros(50)),
                        }
                    };
                    assert_eq!(ended.unwrap_err().kind(), ErrorKind::Closed);
                }
            }
            end_closed(texts);
            readers.into_iter().for_each(|reader| reader.join().unwrap());
        }
        no_thread_is_left();
    });
}

/// No thread of an engine. Its own last steps may still run where it was ended on itself.
#[cfg(target_os = "linux")]
fn no_thread_is_left() {
    let begun = Instant::now();
    let engines = || {
        let names = std::fs::read_dir("/proc/self/task")
            .unwrap()
            .filter_map(|task| std::fs::read_to_string(task.ok()?.path().join("comm")).ok());
        names.filter(|name| name.starts_with("infer-engine")).count()
    };
    // The other test has one.
    while engines() > 1 {
        assert!(begun.elapsed() < LONGEST, "{} threads of engines are left", engines());
        thread::sleep(Duration::from_millis(1));
    }
}

#[cfg(not(target_os = "linux"))]
fn no_thread_is_left() {}
