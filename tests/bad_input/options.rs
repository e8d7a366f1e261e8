//! Sessions that cannot be, and files that describe none.

use super::{
    alone,
    files::{gguf::Field, tiny},
    model, options, said, tokens,
};
use infer::ErrorKind;
use infer_core::KvLayout;
use infer_llama::{Llama, Model};
use kit::child;
use std::process::Command;
use test_kit::Folder;

#[test]
fn sessions_that_cannot_be_are_refused() {
    const CASES: &[&str] = &[
        "no sequences",
        "more sequences than the library has",
        "no batch",
        "no micro-batch",
        "no threads",
        "100,000 threads",
        "a context beyond every memory",
        "no cells",
    ];
    let answers = child::cases("options::sessions_that_cannot_be_are_refused", CASES, |case| {
        let (_folder, model) = model();
        let (options, word) = match case {
            "no sequences" => (options().with_sequences(0), "sequences"),
            "more sequences than the library has" => (options().with_sequences(257), "sequences"),
            "no batch" => (options().with_batch(0), "batch"),
            "no micro-batch" => (options().with_micro_batch(0), "micro_batch"),
            "no threads" => (options().with_threads(0), "threads"),
            "100,000 threads" => (options().with_threads(100_000), "threads"),
            "a context beyond every memory" => (options().with_context(usize::MAX), "context"),
            _ => (options().with_layout(KvLayout::Unified).with_cells(0), "cells"),
        };
        let answer = said(model.session(&options), ErrorKind::InvalidInput, &[word]);
        assert!(alone(&model, &tokens(3)).iter().all(|logit| logit.is_finite()), "the model is as good as before");
        answer
    });
    assert!(answers.iter().all(|answer| answer == "refused"), "{answers:?}");
}

/// As many threads as the library takes, in an address space that has no room for their stacks.
#[cfg(target_os = "linux")]
#[test]
fn threads_that_cannot_be_started_are_an_error() {
    const NAME: &str = "options::threads_that_cannot_be_started_are_an_error";
    if let Some(case) = child::case() {
        let (_folder, model) = model();
        let threads = if case == "100,000" { 100_000 } else { 512 };
        let outcome = model.session(&options().with_threads(threads));
        match outcome {
            Ok(_) => child::answer("a session"),
            Err(error) => child::answer(&super::shown(&error)),
        }
        return;
    }
    for (case, wanted) in [("100,000", "InvalidInput: threads: 100000"), ("512", "")] {
        let program = std::env::current_exe().unwrap();
        let mut command = Command::new("sh");
        // KiB: room for the program and its model, and for the stacks of few threads.
        command.args(["-c", "ulimit -v 1000000 && exec \"$0\" \"$@\""]).arg(program);
        command.args(["--exact", NAME, "--nocapture", "--test-threads=1"]).env("INFER_TESTS_CASE", case);
        let output = child::run_command(command, child::LIMIT).expect_ok(case);
        assert!(output.contains(wanted), "{case} threads: {output}");
    }
}

#[test]
fn numbers_of_a_file_that_llama_cpp_takes_in_silence_are_refused() {
    const CASES: &[&str] = &["llama.rope.freq_base", "llama.pooling_type"];
    let answers =
        child::cases("options::numbers_of_a_file_that_llama_cpp_takes_in_silence_are_refused", CASES, |case| {
            let folder = Folder::new();
            let mut file = tiny::llama();
            file.set(case, if case.contains("rope") { Field::F32(-1.0) } else { Field::U32(17) });
            let path = folder.file("tiny.gguf", &file.bytes());
            said(Model::open(&Llama::linked().unwrap(), path), ErrorKind::InvalidModel, &[case, "tiny.gguf"])
        });
    assert!(answers.iter().all(|answer| answer == "refused"), "{answers:?}");
}
