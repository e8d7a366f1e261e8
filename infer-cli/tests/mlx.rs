//! The command with MLX models: what works with GGUF files works with folders of safetensors.
#![cfg(feature = "mlx")]

mod kit;

use assert_cmd::Command;
use kit::{a_batch_is_answered, good, json, like_texts_have_like_vectors, model, run, text};
use serde_json::Value;
use std::{fs, path::Path};

#[test]
fn a_folder_generates_text_and_knows_its_template() {
    let model = model("smollm2-mlx-4bit");
    let arguments = ["generate", "--model", text(&model), "--json", "--max-tokens", "6", "--prompt"];
    let of = |prompt: &str| json(&[&arguments[..], &[prompt]].concat(), "");
    let report = of("The capital of France is");
    assert!(report["text"].as_str().unwrap().contains("Paris"), "{report}");
    assert_eq!(report["tokens"].as_array().unwrap().len(), 6);
    assert_eq!(report["prompt_tokens"], 5);
    let report = json(&[&arguments[..], &["Say hello.", "--chat"]].concat(), "");
    assert!(!report["text"].as_str().unwrap().is_empty(), "{report}");
}

#[test]
fn a_conversation_goes_on() {
    let model = model("smollm2-mlx-4bit");
    let stdin = "What is the capital of France? Answer with one word.\nAnd of Italy?\n";
    let answers = good(&["chat", "--model", text(&model), "--max-tokens", "12"], stdin);
    assert!(answers.contains("Paris") && answers.contains("Rom"), "{answers}");
}

#[test]
fn a_backend_may_be_named_and_another_one_refuses() {
    let (model, prompt) = (model("tiny-mlx-llama"), ["--prompt", "abc", "--max-tokens", "3"]);
    let with =
        |backend: &str| run(&[&["generate", "--model", text(&model), "--backend", backend][..], &prompt].concat(), "");
    let (code, _, stderr) = with("mlx");
    assert_eq!(code, 0, "{stderr}");
    for other in ["llama", "onnx"] {
        let (code, stdout, stderr) = with(other);
        assert_eq!((code, stdout.as_str()), (1, ""));
        let said = format!("safetensors, for the backend `mlx`, and the backend `{other}` was asked for");
        assert!(stderr.contains(text(&model)) && stderr.contains(&said), "{stderr}");
    }
}

#[test]
fn a_batch_of_requests_is_answered() {
    a_batch_is_answered(&model("tiny-mlx-gemma3"), &[]);
}

#[test]
fn texts_become_vectors() {
    let minilm = model("minilm-mlx");
    like_texts_have_like_vectors(&minilm, &[]);
    // It has no head that scores, and MLX would have none.
    let (code, _, stderr) = run(&["rerank", "--model", text(&minilm), "--query", "ferry", "a boat"], "");
    assert_eq!(code, 1, "{stderr}");
    assert!(stderr.contains("ONNX Runtime and llama.cpp do"), "{stderr}");
}

#[test]
fn a_model_of_another_kind_is_told_the_right_command() {
    let (decoder, encoder) = (model("tiny-mlx-llama"), model("minilm-mlx"));
    let of = |arguments: &[&str]| {
        let (code, stdout, stderr) = run(arguments, "");
        assert_eq!((code, stdout.as_str()), (1, ""), "{arguments:?}: {stderr}");
        assert!(stderr.starts_with("error: "), "{stderr}");
        stderr
    };
    let (is_decoder, is_encoder) =
        ("the model is a decoder: `infer generate`", "the model is an encoder: `infer embed`");
    for arguments in [&["embed", "-m"][..], &["classify", "-m"], &["rerank", "--query", "a", "-m"]] {
        let stderr = of(&[arguments, &[text(&decoder), "text"]].concat());
        assert!(stderr.contains("is no encoder") && stderr.contains(is_decoder), "{stderr}");
    }
    let folder = tempfile::tempdir().unwrap();
    let (input, output) = (folder.path().join("in.jsonl"), folder.path().join("out.jsonl"));
    fs::write(&input, "{\"prompt\": \"a\"}\n").unwrap();
    for arguments in [
        &["generate", "--prompt", "a", "-m"][..],
        &["chat", "-m"],
        &["batch", "--input", text(&input), "--output", text(&output), "-m"],
    ] {
        let stderr = of(&[arguments, &[text(&encoder)]].concat());
        assert!(stderr.contains("is no decoder") && stderr.contains(is_encoder), "{stderr}");
    }
    for (model, said) in [(&decoder, is_decoder), (&encoder, is_encoder)] {
        let stderr = of(&["run", "--model", text(model)]);
        assert!(stderr.contains("graphs of ONNX") && stderr.contains("`mlx`") && stderr.contains(said), "{stderr}");
    }
    let kind = |model: &Path| json(&["inspect", text(model), "--json"], "")["kind"].clone();
    assert_eq!((kind(&decoder), kind(&encoder)), ("decoder".into(), "encoder".into()));
}

#[test]
fn a_cache_is_counted_as_a_session_takes_it() {
    let of =
        |name: &str, more: &[&str]| json(&[&["cost", text(&model(name)), "--json"], more].concat(), "")["kv"].clone();
    // Layers × 2 × heads × numbers of a head, in what the model computes in. (4-bit weights have scales of a type of their own.)
    for (name, position, kind, bytes) in
        [("smollm2-mlx-4bit", 30 * 2 * 3 * 64, "f32", 4), ("tiny-mlx-llama-f16", 2 * 2 * 2 * 16, "f16", 2)]
    {
        for (ctx, rows) in [("1", 256), ("256", 256), ("257", 512), ("500", 512)] {
            let kv = of(name, &["--ctx", ctx]);
            assert_eq!((&kv["type"], &kv["step"]), (&kind.into(), &256.into()), "{name}: {kv}");
            assert_eq!(kv["bytes_per_position"], position * bytes, "{name}: {kv}");
            assert_eq!(kv["bytes"], position * bytes * rows, "{name}, {ctx}: {kv}");
        }
        assert_eq!(of(name, &["--kv", kind, "--ctx", "9"]), of(name, &["--ctx", "9"]));
        let (code, stdout, stderr) = run(&["cost", text(&model(name)), "--kv", "q8_0"], "");
        assert_eq!((code, stdout.as_str()), (1, ""), "{stderr}");
        assert!(stderr.contains("no KV cache in q8_0") && stderr.contains(&format!("which is {kind}")), "{stderr}");
    }
    assert_eq!(of("minilm-mlx", &[]), Value::Null);
    let page = good(&["cost", text(&model("tiny-mlx-gemma3-bf16")), "--ctx", "5000"], "");
    assert!(page.contains("in bf16, taken in steps of 256 positions a sequence"), "{page}");
    assert!(page.contains("sliding window"), "{page}");
}

#[test]
fn text_is_tokens_and_folders_are_inspected_without_a_runtime() {
    let minilm = model("minilm-mlx");
    assert_eq!(
        good(&["tokenize", "--model", text(&minilm), "--add", "--ids", "hello world"], ""),
        "101 7592 2088 102\n"
    );

    let without = |arguments: &[&str]| {
        let mut command = Command::cargo_bin("infer").unwrap();
        command.timeout(test_kit::child::LONG);
        let output = command.args(arguments).env("INFER_MLX_LIBRARY", "/no/such/library.so").output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).unwrap()
    };
    let folder = model("smollm2-mlx-4bit");
    let report: Value = serde_json::from_str(&without(&["inspect", text(&folder), "--json"])).unwrap();
    assert_eq!((&report["backend"], &report["format"]), (&"mlx".into(), &"safetensors".into()), "{report}");
    assert!(report["layers"] == 30 && report["vocab"] == 49152 && report["kv_heads"] == 3, "{report}");
    assert!(report["chat_template"].as_str().unwrap().contains("<|im_start|>"), "{report}");
    let page = without(&["inspect", text(&folder)]);
    assert!(page.contains("for the backend mlx") && page.contains("4-bit") && page.contains("metadata\n"), "{page}");

    let report: Value = serde_json::from_str(&without(&["cost", text(&folder), "--ctx", "1024", "--json"])).unwrap();
    assert!(report["weights"]["bytes"].as_u64().unwrap() > 50_000_000, "{report}");
}

#[test]
fn the_library_and_its_devices_are_listed() {
    let report = json(&["devices", "--json"], "");
    let all = |list: &str| report[list].as_array().unwrap().clone();
    let library = all("libraries").into_iter().find(|library| library["backend"] == "mlx").expect("it is there");
    assert_eq!((&library["variant"], &library["version"]), (&"cpu".into(), &"0.32.2".into()), "{library}");
    let device = |device: &Value| device["backend"] == "mlx" && device["name"] == "CPU" && device["kind"] == "cpu";
    assert!(all("devices").iter().any(device), "{report}");
    let path = library["path"].as_str().unwrap();
    assert!(good(&["devices", "--library", path], "").starts_with("CPU"), "{path}");
    assert!(good(&["devices"], "").contains(&format!("mlx 0.32.2 cpu, the cache: {path}\n")), "{path}");
}

/// A runtime that is not set up, and one whose variable is wrong, are listed with what to do.
#[test]
fn what_is_missing_is_listed_with_the_command_that_brings_it() {
    let folder = tempfile::tempdir().unwrap();
    let listed = |variable: &str, value: &Path, more: &[&str]| {
        let mut command = Command::cargo_bin("infer").unwrap();
        command.timeout(test_kit::child::LONG);
        let output = command.arg("devices").args(more).env(variable, value).output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).unwrap()
    };
    let page = listed("INFER_CACHE", folder.path(), &[]);
    for backend in ["onnx", "mlx"] {
        assert!(page.contains(&format!("{backend}: cannot be used\n")), "{page}");
        assert!(page.contains(&format!("`infer setup {backend}`")), "{page}");
    }
    let report: Value = serde_json::from_str(&listed("INFER_CACHE", folder.path(), &["--json"])).unwrap();
    let runtime =
        |name: &str| report["runtimes"].as_array().unwrap().iter().find(|one| one["backend"] == name).unwrap().clone();
    assert_eq!((&runtime("llama")["usable"], &runtime("mlx")["usable"]), (&true.into(), &false.into()), "{report}");
    assert!(runtime("mlx")["error"].as_str().unwrap().contains("`infer setup mlx`"), "{report}");

    let wrong = folder.path().join("libwrong.so");
    fs::write(&wrong, "no library").unwrap();
    let page = listed("INFER_MLX_LIBRARY", &wrong, &[]);
    let (_, of_mlx) = page.split_once("mlx: cannot be used\n").unwrap_or_else(|| panic!("{page}"));
    assert!(of_mlx.contains("INFER_MLX_LIBRARY") && of_mlx.contains(text(&wrong)), "{page}");
    assert!(of_mlx.contains("the cache: ") && of_mlx.contains("(not what is asked for)"), "{page}");
}
