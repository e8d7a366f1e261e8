//! The engine on real models: a text among others is what it is by itself, up to a near-tie, and what only a runtime can show.

use infer::{
    AdapterSource, Backend, Completion, EncoderOptions, Engine, ErrorKind, FinishReason, Generator, KvLayout, Model,
    Request, Sampling, SessionOptions, Special,
};
use kit::{
    greedy::{Agreement, Run},
    prompts,
};
use std::{path::PathBuf, sync::LazyLock, time::Duration};

/// How far logits are moved by the order in which the cells of a pool lie, as the conformance suite has measured it.
const SCATTERED: f32 = 1.5;
/// The same for the tiny models.
const TINY: f32 = 0.03;
/// Numbers of MiniLM's vectors, by which texts were beside one.
const MINILM: f32 = 0.0005;
const COUNT: usize = 16;

fn path(name: &str) -> PathBuf {
    build_support::fixtures::model(name).unwrap_or_else(|error| panic!("{error}"))
}

fn engine(layout: KvLayout) -> Engine {
    Engine::builder(path("smollm2"))
        .with_sequences(4)
        .with_context(1024)
        .with_layout(layout)
        .with_threads(1)
        .build()
        .unwrap()
}

/// One engine for the tests that can share it.
static UNIFIED: LazyLock<Engine> = LazyLock::new(|| engine(KvLayout::Unified));

fn request(prompt: &str) -> Request {
    Request::text(prompt).with_max_tokens(COUNT)
}

/// The greedy run of a request by itself, with how sure each choice was: the difference of two log-probabilities is that of the logits.
fn solo(model: &dyn Model, session: &SessionOptions, request: &Request) -> Run {
    let mut session = model.session(session).unwrap();
    let request = request.clone().with_sampling(Sampling::greedy().with_logprobs(2));
    let done = Generator::new(model.tokenizer()).generate(&mut session, &request).unwrap().complete().unwrap();
    Run { tokens: ids(&done), gaps: done.top.iter().map(|top| top[0].logprob - top[1].logprob).collect() }
}

fn ids(done: &Completion) -> Vec<u32> {
    done.tokens.iter().map(|sampled| sampled.token.0).collect()
}

/// How many agree to the end; those that do not must differ at a near-tie.
fn agreeing(runs: &[(Run, Completion)], epsilon: f32) -> usize {
    let equal = runs.iter().filter(|(run, done)| match run.agrees_with(&ids(done), epsilon) {
        Ok(agreement) => agreement == Agreement::Equal,
        Err(why) => panic!("{why}"),
    });
    equal.count()
}

fn one_session() -> SessionOptions {
    SessionOptions::new().with_context(1024).with_threads(1)
}

#[test]
fn batched_is_solo_in_both_layouts() {
    let model = infer::open(path("smollm2")).unwrap();
    let requests: Vec<_> = prompts::all()[..prompts::FEW].iter().map(|prompt| request(prompt)).collect();
    let runs: Vec<_> = requests.iter().map(|request| solo(&*model, &one_session(), request)).collect();
    let split = engine(KvLayout::Split);
    for engine in [&*UNIFIED, &split] {
        let all: Vec<_> = requests.iter().map(|request| engine.generate(request.clone())).collect();
        let done = all.into_iter().map(|one| one.complete().unwrap());
        let pairs: Vec<_> = runs.iter().cloned().zip(done).collect();
        let equal = agreeing(&pairs, SCATTERED);
        assert!(equal * 2 >= pairs.len(), "only {equal} of {} are equal in {:?}", pairs.len(), engine.layout());
    }
    assert_eq!(split.layout(), Some(KvLayout::Split));
}

#[test]
fn what_begins_as_another_text_did_is_not_computed_again_and_comes_to_the_same() {
    // Of its own: what others generate meanwhile would push it out of the cache.
    let engine = engine(KvLayout::Unified);
    let model = infer::open(path("smollm2")).unwrap();
    let beginning = format!("From the log of another lighthouse. {}", prompts::logbook(6));
    for (place, end) in [" the sea was", " nobody came", " it is a long winter"].into_iter().enumerate() {
        let request = request(&format!("{beginning}{end}"));
        let done = engine.generate(request.clone()).complete().unwrap();
        let (prompt, cached) = (done.stats.prompt_tokens, done.stats.cached_tokens);
        assert_eq!(cached > prompt / 2, place > 0, "{cached} of {prompt}");
        agreeing(&[(solo(&*model, &one_session(), &request), done)], SCATTERED);
    }
}

#[test]
fn completions_share_a_prompt_and_go_their_ways() {
    let before = UNIFIED.stats();
    let sampling = Sampling::default().with_temperature(1.0).with_seed(3);
    let request =
        request("Once upon a time, in a village by a lake whose name nobody could remember, there was a baker who")
            .with_sampling(sampling)
            .with_n(3);
    let all = UNIFIED.generate(request).complete_all().unwrap();
    let prompt = all[0].stats.prompt_tokens;
    assert!(all[1..].iter().all(|one| one.stats.cached_tokens == prompt - 1));
    assert!(all[0].text != all[1].text && all[1].text != all[2].text && all[0].text != all[2].text);
    assert!(UNIFIED.stats().prefix_hits >= before.prefix_hits + 2);
}

#[test]
fn a_token_has_the_probability_it_is_scored_with() {
    let sampling = Sampling::greedy().with_logprobs(3);
    let request = request("The capital of France is").with_sampling(sampling);
    let done = UNIFIED.generate(request).complete().unwrap();
    assert!(done.top.iter().zip(&done.tokens).all(|(top, drawn)| top.len() == 3 && top[0].token == drawn.token));
    let mut tokens = UNIFIED.tokenize("The capital of France is", Special::ADD).unwrap();
    tokens.extend(done.tokens.iter().map(|drawn| drawn.token));
    let scored = UNIFIED.score(tokens).wait().unwrap();
    let scored = &scored[scored.len() - done.tokens.len()..];
    for (scored, drawn) in scored.iter().zip(&done.tokens) {
        assert_eq!(scored.token, drawn.token);
        assert!((scored.logprob - drawn.logprob).abs() < SCATTERED, "{scored:?} against {drawn:?}");
    }
    let sum = |tokens: &[infer::Sampled]| tokens.iter().map(|one| one.logprob).sum::<f32>();
    assert!((sum(scored) - sum(&done.tokens)).abs() < 0.5, "{} against {}", sum(scored), sum(&done.tokens));
}

#[test]
fn a_conversation_is_answered_by_the_models_own_template() {
    let message = infer::chat::Message::user("What is the capital of France? Answer with one word.");
    let done = UNIFIED.generate(Request::chat([message]).with_max_tokens(COUNT)).complete().unwrap();
    assert!(done.text.contains("Paris"), "{}", done.text);
    assert!(!done.text.contains("<|im"), "{}", done.text);
}

#[test]
fn adapters_are_computed_beside_the_bare_model() {
    let model = infer::open(path("tiny-llama")).unwrap();
    let adapter = || AdapterSource::new("other", path("tiny-lora"));
    let engine =
        Engine::builder(path("tiny-llama")).with_context(256).with_threads(1).with_adapter(adapter()).build().unwrap();
    let options = SessionOptions::new().with_context(256).with_threads(1).with_adapter(adapter());
    let bare = request("between two rivers").with_ignore_end(true);
    let adapted = bare.clone().with_adapter("other");
    let both = [engine.generate(bare.clone()), engine.generate(adapted.clone()), engine.generate(bare.clone())];
    let [first, other, again] = both.map(|one| one.complete().unwrap());
    assert_ne!(ids(&first), ids(&other));
    assert_eq!(other.stats.cached_tokens, 0, "what the bare model computed is of no use to it");
    let runs = [(solo(&*model, &options, &bare), first), (solo(&*model, &options, &adapted), other)];
    agreeing(&runs, TINY);
    agreeing(&[(runs[0].0.clone(), again)], TINY);
    let error = engine.generate(bare.with_adapter("nobody")).complete().unwrap_err();
    assert_eq!(error.kind(), ErrorKind::InvalidInput, "{error}");
}

#[test]
fn an_encoder_is_an_engine_of_its_own() {
    const TEXTS: [&str; 3] = ["The ferry leaves at nine.", "A boat sails at nine o'clock.", "I do not like pears."];
    let engine = Engine::builder(path("minilm")).with_threads(1).build().unwrap();
    let vectors = engine.embed(TEXTS).wait().unwrap();
    let model = infer::open(path("minilm")).unwrap();
    let mut encoder = model.encoder(&EncoderOptions::new().with_threads(1)).unwrap();
    for (text, vector) in TEXTS.iter().zip(&vectors) {
        let tokens = engine.tokenize(text, Special::ADD).unwrap();
        encoder.encode(&[&tokens]).unwrap();
        let alone = encoder.vectors().vector(0).unwrap();
        assert!(alone.iter().zip(vector).all(|(a, b)| (a - b).abs() < MINILM), "{text}");
    }
    let cosine = |a: &[f32], b: &[f32]| a.iter().zip(b).map(|(a, b)| a * b).sum::<f32>();
    assert!((cosine(&vectors[0], &vectors[0]) - 1.0).abs() < 1e-4);
    assert!(cosine(&vectors[0], &vectors[1]) > cosine(&vectors[0], &vectors[2]) + 0.3);
    let error = engine.generate(request("It cannot say")).complete().unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unsupported);
    assert!(error.to_string().contains("no session"), "{error}");
    assert!(engine.limits().is_none());
}

#[test]
fn documents_are_ranked_as_by_hand() {
    let engine = Engine::builder(path("tiny-rank")).with_threads(1).build().unwrap();
    let documents = ["one river", "two rivers and a lake", "no water at all"];
    let model = infer::open(path("tiny-rank")).unwrap();
    let mut encoder = model.encoder(&EncoderOptions::new().with_threads(1)).unwrap();
    let answer = engine.rerank("which rivers", documents).wait();
    if encoder.info().width != 1 {
        assert_eq!(answer.unwrap_err().kind(), ErrorKind::Unsupported);
        let scores = engine.classify(documents).wait().unwrap();
        assert!(scores.iter().all(|scores| scores.len() == encoder.info().width));
        return;
    }
    for (document, score) in documents.iter().zip(answer.unwrap()) {
        let mut tokens = Vec::new();
        encoder.pair("which rivers", document, &mut tokens).unwrap();
        encoder.encode(&[&tokens]).unwrap();
        assert!((encoder.vectors().vector(0).unwrap()[0] - score).abs() < TINY);
    }
}

#[test]
fn the_default_fits_and_its_end_does_not_wait_for_a_long_prompt() {
    let engine = Engine::open(path("smollm2")).unwrap();
    let limits = engine.limits().unwrap();
    assert_eq!((limits.context, limits.sequences), (4096, 8));
    assert_eq!(engine.layout(), Some(KvLayout::Split));
    let long = prompts::logbook(100);
    let mut generation = engine.generate(request(&long));
    // Two thousand tokens take seconds.
    std::thread::sleep(Duration::from_millis(100));
    engine.shutdown();
    let error = generation.wait().unwrap().unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Closed, "{error}");
}

#[test]
fn a_cancelled_text_keeps_what_it_said() {
    let mut generation = UNIFIED.generate(Request::text("Numbers: one, two, three,").with_ignore_end(true));
    let first = generation.wait().unwrap().unwrap();
    generation.cancel();
    let rest = generation.complete().unwrap();
    assert_eq!(rest.finish, FinishReason::Cancelled);
    assert_eq!(rest.stats.generated_tokens, first.tokens.len() + rest.tokens.len());
}

/// Keys and values live in ONNX Runtime or MLX; the scheduler does not know.
#[test]
fn folders_for_other_runtimes_are_served_like_any_model() {
    for (backend, name) in [
        (Backend::Onnx, "tiny-onnx"),
        (Backend::Onnx, "tiny-onnx-plain"),
        (Backend::Mlx, "tiny-mlx-llama"),
        (Backend::Mlx, "tiny-mlx-gemma3"),
    ] {
        let model = infer::open(path(name)).unwrap();
        let session = SessionOptions::new().with_context(96).with_threads(1);
        let requests: Vec<_> = (0..7).map(|number| boats(number, 1 + number)).collect();
        let runs: Vec<_> = requests.iter().map(|request| solo(&*model, &session, request)).collect();
        let engine =
            Engine::builder(path(name)).with_backend(backend).with_sequences(3).with_context(96).with_threads(1);
        let engine = engine.build().unwrap();
        let all: Vec<_> = requests.iter().map(|request| engine.generate(request.clone())).collect();
        let pairs: Vec<_> = runs.into_iter().zip(all.into_iter().map(|one| one.complete().unwrap())).collect();
        assert!(agreeing(&pairs, TINY) * 2 >= pairs.len(), "{name}");
        // What begins as a text before it did is not computed again, or is, as the model allows; and comes to the same.
        let again = engine.generate(requests[6].clone()).complete().unwrap();
        agreeing(&[(pairs[6].0.clone(), again)], TINY);
    }
}

fn boats(number: usize, times: usize) -> Request {
    Request::text(format!("{number} boats").repeat(times)).with_max_tokens(COUNT).with_ignore_end(true)
}

/// MLX's streams belong to threads, and its arrays to streams; those who ask know nothing of it. `cargo xtask bench soak` does this for minutes.
#[test]
fn eight_threads_hammer_one_engine_of_mlx() {
    const ROUNDS: usize = 12;
    let model = infer::open(path("tiny-mlx-llama")).unwrap();
    let session = SessionOptions::new().with_context(96);
    let runs: Vec<_> = (0..8).map(|number| solo(&*model, &session, &boats(number, 3))).collect();
    let engine = Engine::builder(path("tiny-mlx-llama")).with_sequences(5).with_context(96).build().unwrap();
    let hammer = |number: usize| {
        for round in 0..ROUNDS {
            let mut generation = engine.generate(boats(number, 3));
            match (number + round) % 4 {
                // Given up before it has begun, or where it is.
                0 => drop(generation),
                1 => {
                    assert!(generation.wait().unwrap().is_ok());
                    generation.cancel();
                    // It may have come to its end before.
                    let finish = generation.complete().unwrap().finish;
                    assert!(matches!(finish, FinishReason::Cancelled | FinishReason::Length), "{finish}");
                }
                _ => {
                    agreeing(&[(runs[number].clone(), generation.complete().unwrap())], TINY);
                }
            }
        }
    };
    std::thread::scope(|scope| {
        let hammer = &hammer;
        let threads: Vec<_> = (0..8).map(|number| scope.spawn(move || hammer(number))).collect();
        threads.into_iter().for_each(|thread| thread.join().unwrap());
    });
    assert_eq!(engine.stats().failed, 0);
}
