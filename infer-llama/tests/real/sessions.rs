//! Sessions: whatever is done with sequences, in however many passes and threads, equals computing their tokens at once.

use crate::{
    SMOLLM2, alone, encode,
    kit::tiny,
    linked::{apart, assert_near, feed, open, options},
    llama, story,
};
use infer_core::{Batch, ErrorKind, KvLayout, Sampling, Session as _, Token, Tokenizer as _, Want};
use infer_llama::{KvType, Model, Session, SessionOptions};
use std::{
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    thread,
    time::Duration,
};
use test_kit::{Folder, Listener};

fn generate(session: &mut Session, prompt: &[Token], sampling: &Sampling, count: usize) -> Vec<Token> {
    let seq = open(session);
    session.sample_with(&seq, sampling, prompt).unwrap();
    let (mut batch, mut feed, mut drawn) = (Batch::new(), prompt.to_vec(), Vec::new());
    while drawn.len() < count {
        batch.clear();
        batch.push(&seq, &feed, Want::Token);
        session.decode(&batch).unwrap();
        feed = vec![session.outputs().token(0).unwrap()];
        drawn.push(feed[0]);
    }
    drawn
}

#[test]
fn answers_a_question_and_again_the_same() {
    let prompt = encode("<|im_start|>user\nWhat is the capital of France?<|im_end|>\n<|im_start|>assistant\n");
    let mut session = SMOLLM2.session(&options()).unwrap();
    let first = generate(&mut session, &prompt, &Sampling::greedy(), 8);
    let vocab = SMOLLM2.tokenizer().vocab();
    let text: Vec<u8> = first.iter().flat_map(|&token| vocab.bytes(token).unwrap().to_vec()).collect();
    assert!(String::from_utf8_lossy(&text).contains("Paris"), "{}", String::from_utf8_lossy(&text));
    assert_eq!(generate(&mut session, &prompt, &Sampling::greedy(), 8), first);
    let warm = Sampling::default().with_temperature(0.8).with_top_k(40).with_seed(3);
    let drawn = generate(&mut session, &prompt, &warm, 8);
    assert_eq!(generate(&mut session, &prompt, &warm, 8), drawn);
}

#[test]
fn forks_cuts_and_chunks_equal_recomputing() {
    let prompt = story();
    let (cut, tail) = (prompt.len() / 2, encode(" Suddenly the borrow checker"));
    let whole = alone(&SMOLLM2, &prompt);
    let branch = alone(&SMOLLM2, &[&prompt[..cut], &tail].concat());
    for layout in [KvLayout::Split, KvLayout::Unified] {
        let options = options().with_sequences(3).with_layout(layout).with_micro_batch(8);
        let mut session = SMOLLM2.session(&options).unwrap();
        let seq = open(&mut session);
        let chunks = prompt.chunks(5).map(|chunk| feed(&mut session, &seq, chunk)).last().unwrap();
        assert_near(&chunks, &whole, &format!("{layout:?}: in chunks"));

        let child = session.fork(&seq, cut).unwrap();
        let grandchild = session.fork(&child, cut).unwrap();
        assert_near(&feed(&mut session, &child, &tail), &branch, &format!("{layout:?}: forked"));
        assert_near(&feed(&mut session, &grandchild, &prompt[cut..]), &whole, &format!("{layout:?}: forked twice"));
        session.truncate(&seq, cut).unwrap();
        assert_near(&feed(&mut session, &seq, &tail), &branch, &format!("{layout:?}: truncated"));
        session.truncate(&seq, 0).unwrap();
        assert_near(&feed(&mut session, &seq, &prompt), &whole, &format!("{layout:?}: from nothing"));
    }
}

/// A copy between streams is put off by the library until the next pass: what happens to the original before that must not
/// reach it.
#[test]
fn a_fork_keeps_what_its_parent_gives_up() {
    let prompt = story();
    let whole = alone(&SMOLLM2, &[&prompt[..], &prompt[..1]].concat());
    for layout in [KvLayout::Split, KvLayout::Unified] {
        let options = options().with_sequences(4).with_layout(layout);
        let mut session = SMOLLM2.session(&options).unwrap();
        let seq = open(&mut session);
        feed(&mut session, &seq, &prompt);
        let child = session.fork(&seq, prompt.len()).unwrap();
        let grandchild = session.fork(&child, prompt.len()).unwrap();
        drop(seq);
        let other = open(&mut session);
        let mut batch = Batch::new();
        batch.push(&other, &prompt[3..9], Want::Nothing);
        batch.push(&grandchild, &prompt[..1], Want::Logits);
        batch.push(&child, &prompt[..1], Want::Logits);
        session.decode(&batch).unwrap();
        let out = session.outputs();
        assert!(out.logits(0).is_none());
        assert_near(out.logits(1).unwrap(), &whole, &format!("{layout:?}: grandchild"));
        assert_near(out.logits(2).unwrap(), &whole, &format!("{layout:?}: child"));
    }
}

#[test]
fn a_batch_of_many_equals_each_alone() {
    let prompts =
        ["The sky is", "Two plus two equals four, and three plus three equals", "In Rust, a lifetime"].map(encode);
    let single: Vec<_> = prompts.iter().map(|prompt| alone(&SMOLLM2, prompt)).collect();
    for layout in [KvLayout::Split, KvLayout::Unified] {
        let options = options().with_sequences(3).with_layout(layout);
        let mut session = SMOLLM2.session(&options).unwrap();
        let seqs: Vec<_> = prompts.iter().map(|_| open(&mut session)).collect();
        let mut batch = Batch::new();
        // Not in the order of the slots: rows go by entry.
        for index in [2, 0, 1] {
            batch.push(&seqs[index], &prompts[index], Want::Logits);
        }
        session.decode(&batch).unwrap();
        for (entry, index) in [2, 0, 1].into_iter().enumerate() {
            let row = session.outputs().logits(entry).unwrap();
            assert_near(row, &single[index], &format!("{layout:?}: prompt {index}"));
        }
    }
}

#[test]
fn an_interrupt_from_another_thread_ends_a_long_prefill() {
    let prompt: Vec<_> = story().into_iter().cycle().take(4000).collect();
    let options = options().with_context(4096).with_sequences(2).with_batch(4096).with_threads(2);
    let mut session = SMOLLM2.session(&options).unwrap();
    let (seq, other) = (open(&mut session), open(&mut session));
    feed(&mut session, &other, &prompt[..20]);
    feed(&mut session, &seq, &prompt[..7]);
    let used = session.usage();

    let interrupt = session.interrupt();
    let raiser = thread::spawn({
        let interrupt = interrupt.clone();
        move || {
            // The pass takes many seconds. Raised before it begins, it is seen as well.
            thread::sleep(Duration::from_millis(300));
            interrupt.raise();
        }
    });
    let mut batch = Batch::new();
    batch.push(&seq, &prompt[7..], Want::Logits);
    let error = session.decode(&batch).unwrap_err();
    raiser.join().unwrap();
    assert_eq!((error.kind(), seq.len(), session.usage()), (ErrorKind::Cancelled, 7, used));
    assert!(session.outputs().is_empty());

    interrupt.lower();
    let next = feed(&mut session, &seq, &prompt[7..20]);
    assert_near(&next, &alone(&SMOLLM2, &prompt[..20]), "the interrupted one");
    let next = feed(&mut session, &other, &prompt[20..21]);
    assert_near(&next, &alone(&SMOLLM2, &prompt[..21]), "the other one");
}

#[test]
fn a_pool_without_room_says_so_and_dropped_sequences_make_room() {
    let prompt: Vec<_> = story().into_iter().cycle().take(100).collect();
    let options = options().with_sequences(2).with_layout(KvLayout::Unified).with_cells(256);
    let mut session = SMOLLM2.session(&options).unwrap();
    let (first, second) = (open(&mut session), open(&mut session));
    for _ in 0..2 {
        feed(&mut session, &first, &prompt);
    }
    feed(&mut session, &second, &prompt[..30]);
    let mut batch = Batch::new();
    batch.push(&second, &prompt[30..60], Want::Logits);
    let error = session.decode(&batch).unwrap_err();
    assert_eq!((error.kind(), second.len(), session.usage().cells), (ErrorKind::OutOfCells, 30, 230));
    drop(first);
    session.decode(&batch).unwrap();
    let row = session.outputs().logits(0).unwrap().to_vec();
    // Its cells lie in two pieces now, the later positions before the earlier ones: sums of 16-bit numbers in another order.
    let apart = apart(&row, &alone(&SMOLLM2, &prompt[..60]));
    assert!(apart < 1.5, "after room was made: {apart}");
    for _ in 0..6 {
        let again = open(&mut session);
        feed(&mut session, &again, &prompt);
    }
}

#[test]
fn two_sessions_of_one_model_run_at_the_same_time() {
    let prompts = ["Once there was", "The capital of Italy is"].map(encode);
    let run = |prompt: &[Token]| {
        let mut session = SMOLLM2.session(&options()).unwrap();
        generate(&mut session, prompt, &Sampling::greedy(), 12)
    };
    let one_by_one = prompts.each_ref().map(|prompt| run(prompt));
    let at_once =
        thread::scope(|scope| prompts.each_ref().map(|p| scope.spawn(|| run(p))).map(|run| run.join().unwrap()));
    assert_eq!(one_by_one, at_once);
}

#[test]
fn a_session_may_move_between_threads() {
    let mut session = SMOLLM2.session(&options()).unwrap();
    let (prompt, seq) = (story(), open(&mut session));
    let whole = alone(&SMOLLM2, &prompt);
    feed(&mut session, &seq, &prompt[..9]);
    let rest = thread::spawn({
        let prompt = prompt.clone();
        move || feed(&mut session, &seq, &prompt[9..])
    });
    assert_near(&rest.join().unwrap(), &whole, "half here, half there");
}

#[test]
fn keys_and_values_in_other_formats_are_close() {
    let prompt = story();
    let usual = alone(&SMOLLM2, &prompt);
    for (format, near) in [(KvType::F32, 0.1), (KvType::Bf16, 1.0), (KvType::Q8_0, 1.0)] {
        let mut session = SMOLLM2.session(&options().with_kv_type(format)).unwrap();
        let seq = open(&mut session);
        let row = feed(&mut session, &seq, &prompt);
        let apart = apart(&usual, &row);
        assert!(apart < near, "{format:?}: {apart}");
    }
}

#[test]
fn a_session_that_does_not_fit_the_memory_is_refused_before_it_is_made() {
    let error = SMOLLM2.session(&SessionOptions::new().with_context(1 << 20).with_sequences(256)).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::OutOfMemory);
    assert!(error.to_string().contains("GiB"), "{error}");
}

/// Past the last learned position the library reads outside a tensor, and asserts.
#[test]
fn learned_positions_bound_the_context() {
    let folder = Folder::new();
    let model = Model::open(&llama(), folder.file("gpt2.gguf", &tiny::gpt2(64).bytes())).unwrap();
    let error = model.session(&SessionOptions::new().with_context(65)).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::InvalidInput);
    let mut session = model.session(&options().with_context(0)).unwrap();
    assert_eq!(session.limits().context, 64);
    let seq = open(&mut session);
    feed(&mut session, &seq, &[Token(7); 64]);
    let mut batch = Batch::new();
    batch.push(&seq, &[Token(7)], Want::Logits);
    assert_eq!(session.decode(&batch).unwrap_err().kind(), ErrorKind::ContextFull);
}

/// 512 threads on two CPUs wait for each other at every barrier: a pass took minutes.
#[test]
#[cfg(target_os = "linux")]
fn there_are_no_more_threads_than_cpus() {
    let folder = Folder::new();
    let model = Model::open(&llama(), folder.file("tiny.gguf", &tiny::llama().bytes())).unwrap();
    let running = || std::fs::read_dir("/proc/self/task").unwrap().count();
    let before = running();
    let mut session = model.session(&options().with_threads(512)).unwrap();
    // Other tests start threads meanwhile, a few.
    assert!(running() < before + thread::available_parallelism().unwrap().get() + 128);
    let seq = open(&mut session);
    feed(&mut session, &seq, &[Token(1), Token(2)]);
}

/// It would wait for the making of the first one, which waits for the subscriber.
#[test]
fn a_subscriber_that_makes_a_session_while_one_is_made_is_refused() {
    let folder = Folder::new();
    let model = Model::open(&llama(), folder.file("tiny.gguf", &tiny::llama().bytes())).unwrap();
    let refused = Arc::new(AtomicUsize::new(0));
    let (makes, count) = (model.clone(), refused.clone());
    let meddler = Listener::new(move |_| {
        let error = makes.session(&options()).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::InvalidInput);
        count.fetch_add(1, Ordering::Relaxed);
    });
    tracing::subscriber::with_default(meddler, || model.session(&options()).unwrap());
    assert!(refused.load(Ordering::Relaxed) > 0);
    model.session(&options()).unwrap();
}
