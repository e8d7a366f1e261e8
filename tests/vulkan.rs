//! The vulkan variant on a real device, or on a driver in software: slow, so that `cargo xtask vulkan` runs these, and nobody else.
//!
//! What is compared with the processor follows the near-tie rule: [`EPSILON`] on the processor's own lead.

use infer::{
    Batch, ErrorKind, Interrupt, Library, ModelSource, OpenOptions, Sampling, Sequence, Session, SessionOptions,
    Special, Token, Tokenizer as _, Variant, Want,
    llama::{self, Llama, LoadOptions, ModelOptions, Placed},
};
use kit::{
    child,
    greedy::{EPSILON, Run},
};
use std::{
    path::PathBuf,
    process,
    sync::mpsc,
    thread,
    time::{Duration, Instant},
};

const PROMPT: &str = "The capital of France is";

fn path() -> PathBuf {
    build_support::fixtures::model("smollm2").unwrap_or_else(|error| panic!("{error}"))
}

/// Tried in a child process first, as it is where a library is not known.
fn vulkan() -> Llama {
    let options = LoadOptions::new().with_variant("vulkan").with_probe(true);
    Llama::load(&options).unwrap_or_else(|error| panic!("{error}"))
}

/// The first device that is driven through Vulkan.
fn device(llama: &Llama) -> String {
    let devices = llama.devices().unwrap();
    let found = devices.iter().find(|device| device.name.starts_with("Vulkan"));
    found
        .unwrap_or_else(|| panic!("no Vulkan device; GGML_VK_VISIBLE_DEVICES=0 shows one in software: {devices:?}"))
        .name
        .clone()
}

fn on_device(llama: &Llama) -> llama::Model {
    llama::Model::open_with(llama, path(), &ModelOptions::new().with_devices([device(llama)])).unwrap()
}

fn on_processor(llama: &Llama) -> llama::Model {
    llama::Model::open_with(llama, path(), &ModelOptions::new().with_devices(["CPU"])).unwrap()
}

fn session(model: &llama::Model) -> llama::Session {
    let options = llama::SessionOptions::new().with_context(256).with_micro_batch(16).with_threads(2);
    model.session(&options).unwrap()
}

fn tokens(model: &llama::Model, text: &str) -> Vec<Token> {
    let mut tokens = Vec::new();
    model.tokenizer().encode(text, Special::PARSE, &mut tokens).unwrap();
    tokens
}

fn open(session: &mut dyn Session) -> Sequence {
    session.open(&OpenOptions::default()).unwrap()
}

fn pass(session: &mut dyn Session, sequence: &Sequence, tokens: &[Token]) -> infer::Result<()> {
    let mut batch = Batch::new();
    batch.push(sequence, tokens, Want::Logits);
    session.decode(&batch)
}

/// Greedy decoding, and how far each token stood above the next best.
fn greedy(session: &mut dyn Session, prompt: &[Token], count: usize) -> Run {
    let sequence = open(session);
    let (mut run, mut feed) = (Run::default(), prompt.to_vec());
    for _ in 0..count {
        pass(session, &sequence, &feed).unwrap();
        let mut ranked: Vec<(usize, f32)> = session.outputs().logits(0).unwrap().iter().copied().enumerate().collect();
        ranked.sort_by(|a, b| b.1.total_cmp(&a.1));
        let token = u32::try_from(ranked[0].0).unwrap();
        run.tokens.push(token);
        run.gaps.push(ranked[0].1 - ranked[1].1);
        feed = vec![Token(token)];
    }
    run
}

fn placed(model: &llama::Model) -> Vec<(String, usize, bool)> {
    let tuple = |placed: Placed| (placed.device, placed.layers, placed.output);
    model.placement().unwrap().into_iter().map(tuple).collect()
}

#[test]
#[ignore = "cargo xtask vulkan"]
fn its_devices_are_listed_beside_the_processor() {
    let name = device(&vulkan());
    let devices = infer::devices(&Library::Variant(Variant::Vulkan)).unwrap();
    let found = devices.iter().find(|device| device.name == name).unwrap();
    println!("{name}: {}, {:?} free of {:?} bytes", found.description, found.memory_free, found.memory_total);
    assert!(found.memory_total.is_some_and(|bytes| bytes > 0), "{found:?}");
    assert!(devices.iter().any(|device| device.kind == "cpu"), "{devices:?}");
    let installed = infer::installed();
    let of = |variant: &str| installed.iter().find(|library| library.variant.as_deref() == Some(variant));
    assert_eq!(of("vulkan").unwrap().devices.as_ref().unwrap(), &devices);
    assert!(of("cpu").unwrap().devices.as_ref().unwrap().iter().all(|device| device.name != name));
}

#[test]
#[ignore = "cargo xtask vulkan"]
fn all_layers_on_the_device_give_the_processors_tokens() {
    let llama = vulkan();
    let (device, model) = (device(&llama), on_device(&llama));
    let layers = model.info().layers;
    assert_eq!(placed(&model), [(device, layers, true)]);

    let linked = on_processor(&Llama::linked().unwrap());
    let prompt = tokens(&linked, PROMPT);
    let want = greedy(&mut session(&linked), &prompt, 5);
    let begin = Instant::now();
    let got = greedy(&mut session(&model), &prompt, 5);
    println!("5 tokens in {:.1} s: {:?}", begin.elapsed().as_secs_f64(), got.tokens);
    println!("{:?}", want.agrees_with(&got.tokens, EPSILON).unwrap());
}

/// The same tokens as the host draws from the logits that this device computes. The last sampling is the host's on both sides: a graph
/// with top_k and min_p ends the process in the driver in software.
#[test]
#[ignore = "cargo xtask vulkan"]
fn tokens_are_drawn_on_the_device() {
    let model = on_device(&vulkan());
    let prompt = tokens(&model, PROMPT);
    let [mut there, mut here] = [true, false].map(|on| {
        let options = llama::SessionOptions::new().with_context(256).with_micro_batch(16).with_threads(2);
        model.session(&options.with_device_sampling(on)).unwrap()
    });
    assert!(there.capabilities().device_sampling, "it has every operation that a draw needs");
    let warm = Sampling::default().with_temperature(1.0).with_seed(7);
    for sampling in [Sampling::greedy(), warm.clone(), warm.with_top_k(40).with_min_p(0.02)] {
        let [on_device, on_host] = [&mut there, &mut here].map(|session| {
            let sequence = open(session);
            session.sample_with(&sequence, &sampling, &prompt).unwrap();
            sequence
        });
        let mut feed = prompt.clone();
        for _ in 0..3 {
            let [drawn, expected] = [(&mut there, &on_device), (&mut here, &on_host)].map(|(session, sequence)| {
                let mut batch = Batch::new();
                batch.push(sequence, &feed, Want::Token);
                session.decode(&batch).unwrap();
                session.outputs().sampled(0)[0]
            });
            println!("{}: {:.4}, on the host {}: {:.4}", drawn.token, drawn.logprob, expected.token, expected.logprob);
            assert_eq!(drawn.token, expected.token, "{sampling:?}");
            assert!((drawn.logprob - expected.logprob).abs() < 1e-3);
            feed = vec![expected.token];
        }
    }
}

#[test]
#[ignore = "cargo xtask vulkan"]
fn layers_go_where_they_are_sent() {
    let llama = vulkan();
    let (device, options) = (device(&llama), ModelOptions::new);
    let open = |options: ModelOptions| llama::Model::open_with(&llama, path(), &options);
    let layers = on_processor(&llama).info().layers;
    let all = |name: &str| vec![(name.to_owned(), layers, true)];
    assert_eq!(placed(&open(options()).unwrap()), all(&device), "by default, what there is");
    assert_eq!(placed(&open(options().with_devices(["CPU"])).unwrap()), all("CPU"));
    assert_eq!(placed(&open(options().with_devices([&device]).with_tensor_split([1.0])).unwrap()), all(&device));
    let some = placed(&open(options().with_devices([&device]).with_gpu_layers(5)).unwrap());
    assert_eq!(some, [("CPU".to_owned(), layers - 4, false), (device.clone(), 4, true)]);

    // The same library on the processor alone computes what the linked one does.
    let (own, linked) = (on_processor(&llama), on_processor(&Llama::linked().unwrap()));
    let prompt = tokens(&linked, PROMPT);
    let want = greedy(&mut session(&linked), &prompt, 4);
    want.agrees_with(&greedy(&mut session(&own), &prompt, 4).tokens, EPSILON).unwrap();

    let error = open(options().with_devices(["Vulkan7"])).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::InvalidInput);
    assert!(error.to_string().contains(&format!("the devices are: {device}, CPU")), "{error}");
    // No driver of Vulkan splits rows: llama.cpp says so, and nothing is harmed.
    let error = open(options().with_split_mode(llama::SplitMode::Row)).unwrap_err();
    assert!(error.to_string().contains("does not support split buffers"), "{error}");
}

#[test]
#[ignore = "cargo xtask vulkan"]
fn memory_is_told_for_each_device() {
    let llama = vulkan();
    let device = device(&llama);
    let model_options = ModelOptions::new().with_devices([&device]);
    let options = llama::SessionOptions::new().with_context(256).with_threads(2);
    let model = llama::Model::open_with(&llama, path(), &model_options).unwrap();
    let measured = model.session(&options).unwrap().memory().unwrap();
    println!("{measured:#?}");
    let of = |name: &str| measured.buffers.iter().find(|buffer| buffer.name == name);
    let there = of(&device).unwrap_or_else(|| panic!("nothing on {device}"));
    assert!(!there.is_host && there.model > 50_000_000 && there.compute > 0, "{there:?}");
    // 30 layers of 3 key/value heads of 64 numbers, twice 2 bytes each.
    assert_eq!((there.context, measured.context()), (256 * 30 * 3 * 64 * 2 * 2, there.context));

    let expected = llama::estimate(&llama, path(), &model_options, &options).unwrap();
    let there_expected = expected.buffers.iter().find(|buffer| buffer.name == device).unwrap();
    assert_eq!(there_expected.context, there.context);
    let off = there_expected.model.abs_diff(there.model);
    assert!(
        off < there.model / 20,
        "{} bytes of weights were expected, and there are {}",
        there_expected.model,
        there.model
    );
}

/// Only the processor looks at an interrupt. It has a part in every micro-batch, the embedding of its tokens, so that a pass stops between two
/// of these; what was handed to the device already is still computed.
#[test]
#[ignore = "cargo xtask vulkan"]
fn an_interrupt_stops_a_pass_between_micro_batches() {
    let model = on_device(&vulkan());
    let options = llama::SessionOptions::new().with_context(256).with_micro_batch(4).with_threads(2);
    let mut session = model.session(&options).unwrap();
    let prompt = tokens(&model, &PROMPT.repeat(12));
    let pieces = prompt.chunks(4).len() - 2;
    assert!(pieces >= 10, "{pieces}");
    let sequence = open(&mut session);
    // The first pass of a shape compiles what it computes with.
    pass(&mut session, &sequence, &prompt[..4]).unwrap();
    let begin = Instant::now();
    pass(&mut session, &sequence, &prompt[4..8]).unwrap();
    let one = begin.elapsed();

    let interrupt: Interrupt = session.interrupt();
    let raised = thread::spawn({
        let interrupt = interrupt.clone();
        move || {
            thread::sleep(one * 2);
            interrupt.raise();
            Instant::now()
        }
    });
    let begin = Instant::now();
    let error = pass(&mut session, &sequence, &prompt[8..]).unwrap_err();
    let (end, raised) = (Instant::now(), raised.join().unwrap());
    interrupt.lower();
    assert_eq!(error.kind(), ErrorKind::Cancelled, "{error}");
    println!(
        "a micro-batch takes {one:.1?}, the whole pass {pieces} of them; it stopped {:.1?} after it began, {:.1?} after it was told",
        end - begin,
        end - raised
    );

    // As if it had not been: the sequence has what it had, and goes on.
    assert_eq!(sequence.len(), 8);
    pass(&mut session, &sequence, &prompt[8..12]).unwrap();
    let again = session.outputs().logits(0).unwrap().to_vec();
    let mut fresh = model.session(&options).unwrap();
    let undisturbed = open(&mut fresh);
    for piece in prompt[..12].chunks(4) {
        pass(&mut fresh, &undisturbed, piece).unwrap();
    }
    let want = fresh.outputs().logits(0).unwrap();
    let far = again.iter().zip(want).map(|(a, b)| (a - b).abs()).fold(0.0, f32::max);
    assert!(far < 1e-3, "the logits differ by {far}");
}

/// Three copies of llama.cpp in one process, of which none knows of the others: each has its own log, devices and backends.
#[test]
#[ignore = "cargo xtask vulkan"]
fn three_doors_take_turns() {
    let libraries = [Library::Linked, Library::Found, Library::Variant(Variant::Vulkan)];
    let models = libraries.map(|library| ModelSource::new(path()).with_library(library).open().unwrap());
    let options = SessionOptions::new().with_context(128).with_threads(2);
    let mut sessions = models.each_ref().map(|model| model.session(&options).unwrap());
    let mut prompt = Vec::new();
    models[0].tokenizer().encode(PROMPT, Special::PARSE, &mut prompt).unwrap();
    let sequences = sessions.each_mut().map(|session| open(&mut **session));
    let mut feeds = [(); 3].map(|()| prompt.clone());
    let mut runs = [(); 3].map(|()| Run::default());
    for _ in 0..3 {
        for (i, session) in sessions.iter_mut().enumerate() {
            pass(&mut **session, &sequences[i], &feeds[i]).unwrap();
            let mut ranked: Vec<(usize, f32)> =
                session.outputs().logits(0).unwrap().iter().copied().enumerate().collect();
            ranked.sort_by(|a, b| b.1.total_cmp(&a.1));
            feeds[i] = vec![Token(u32::try_from(ranked[0].0).unwrap())];
            runs[i].tokens.push(feeds[i][0].0);
            runs[i].gaps.push(ranked[0].1 - ranked[1].1);
        }
    }
    assert_eq!(runs[0], runs[1], "the same code, twice");
    runs[0].agrees_with(&runs[2].tokens, EPSILON).unwrap();
}

/// `exit` while a device computes, and while it has a model: nothing hangs, nothing crashes.
#[test]
#[ignore = "cargo xtask vulkan"]
fn a_process_ends_well_with_a_device_in_use() {
    if let Some(case) = child::case() {
        let (first, seen) = mpsc::channel();
        let work = thread::spawn(move || {
            let model = on_device(&vulkan());
            let mut session = session(&model);
            let prompt = tokens(&model, PROMPT);
            loop {
                let sequence = open(&mut session);
                // Interrupted, when the process ends.
                if pass(&mut session, &sequence, &prompt).is_err() || first.send(()).is_err() {
                    return;
                }
                if case == "idle" {
                    thread::park();
                }
            }
        });
        seen.recv().unwrap();
        assert!(!work.is_finished());
        child::answer("ends");
        process::exit(0);
    }
    for case in ["idle", "computing"] {
        let outcome = child::run("a_process_ends_well_with_a_device_in_use", case, Duration::from_secs(240));
        assert_eq!(outcome.expect_ok(case), "ends");
    }
}
