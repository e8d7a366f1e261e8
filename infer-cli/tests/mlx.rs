//! The command with MLX models: what works with GGUF files works with folders of safetensors.
#![cfg(feature = "mlx")]

mod kit;

use assert_cmd::Command;
use kit::{good, json, model, run, text};
use serde_json::{Value, json};
use std::fs;

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
        let (code, stdout, _) = with(other);
        assert_eq!((code, stdout.as_str()), (1, ""));
    }
}

#[test]
fn a_batch_of_requests_is_answered() {
    let (model, folder) = (model("tiny-mlx-gemma3"), tempfile::tempdir().unwrap());
    let (input, output) = (folder.path().join("in.jsonl"), folder.path().join("out.jsonl"));
    let line =
        |number: usize| json!({"prompt": format!("text {number}"), "max_tokens": 4 + number, "ignore_eos": true});
    fs::write(&input, (0..5).map(|number| format!("{}\n", line(number))).collect::<String>()).unwrap();
    let arguments = ["batch", "--model", text(&model), "--parallel", "3", "--ctx", "192"];
    good(&[&arguments[..], &["--input", text(&input), "--output", text(&output)]].concat(), "");
    let answers: Vec<Value> =
        fs::read_to_string(&output).unwrap().lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(answers.len(), 5);
    for answer in answers {
        let tokens = 4 + answer["index"].as_u64().unwrap() as usize;
        assert_eq!(answer["tokens"].as_array().unwrap().len(), tokens, "{answer}");
    }
}

#[test]
fn texts_become_vectors() {
    let minilm = model("minilm-mlx");
    let texts = ["The ferry leaves at nine.", "A boat goes at nine.", "Pears are sweet."];
    let arguments = [&["embed", "--model", text(&minilm), "--json"][..], &texts].concat();
    let report = json(&arguments, "");
    assert_eq!((&report["dimensions"], &report["normalized"]), (&384.into(), &true.into()));
    let vector = |index: usize| -> Vec<f64> {
        report["embeddings"][index][0].as_array().unwrap().iter().map(|number| number.as_f64().unwrap()).collect()
    };
    let cosine = |a: usize, b: usize| vector(a).iter().zip(vector(b)).map(|(a, b)| a * b).sum::<f64>();
    assert!(cosine(0, 1) > 0.5 && cosine(0, 2) < 0.3, "{} {}", cosine(0, 1), cosine(0, 2));
    let max = json(&[&arguments[..], &["--pooling", "max"]].concat(), "");
    assert_ne!(max["embeddings"][0], report["embeddings"][0]);
    // It has no head that scores.
    let (code, _, stderr) = run(&["rerank", "--model", text(&minilm), "--query", "ferry", "a boat"], "");
    assert_eq!(code, 1, "{stderr}");
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
    assert_eq!(library["variant"], "cpu", "{library}");
    let device = |device: &Value| device["backend"] == "mlx" && device["name"] == "CPU" && device["kind"] == "cpu";
    assert!(all("devices").iter().any(device), "{report}");
    let path = library["path"].as_str().unwrap();
    assert!(good(&["devices", "--library", path], "").starts_with("CPU"), "{path}");
}
