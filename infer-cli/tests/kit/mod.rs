//! The command, run on models that come in folders.

use assert_cmd::Command;
use build_support::fixtures;
use serde_json::{Value, json};
use std::{
    fs,
    path::{Path, PathBuf},
};

pub(crate) fn model(name: &str) -> PathBuf {
    fixtures::model(name).expect("`cargo xtask setup` brings it")
}

/// Runs it, and gives exit code, stdout and stderr.
pub(crate) fn run(arguments: &[&str], stdin: &str) -> (i32, String, String) {
    let mut command = Command::cargo_bin("infer").unwrap();
    command.timeout(test_kit::child::LONG);
    let output = command.args(arguments).env_remove("INFER_LOG").write_stdin(stdin).output().unwrap();
    let text = |bytes| String::from_utf8(bytes).unwrap();
    (output.status.code().expect("it was not killed"), text(output.stdout), text(output.stderr))
}

pub(crate) fn good(arguments: &[&str], stdin: &str) -> String {
    let (code, stdout, stderr) = run(arguments, stdin);
    assert_eq!(code, 0, "{arguments:?}: {stderr}");
    stdout
}

pub(crate) fn json(arguments: &[&str], stdin: &str) -> Value {
    serde_json::from_str(&good(arguments, stdin)).unwrap()
}

pub(crate) fn text(path: &Path) -> &str {
    path.to_str().unwrap()
}

/// A batch of five requests comes to five answers, each of as many tokens as its line asks for. `more` are flags that the model wants.
pub(crate) fn a_batch_is_answered(model: &Path, more: &[&str]) {
    let folder = tempfile::tempdir().unwrap();
    let (input, output) = (folder.path().join("in.jsonl"), folder.path().join("out.jsonl"));
    let line =
        |number: usize| json!({"prompt": format!("text {number}"), "max_tokens": 4 + number, "ignore_eos": true});
    fs::write(&input, (0..5).map(|number| format!("{}\n", line(number))).collect::<String>()).unwrap();
    let arguments = ["batch", "--model", text(model), "--parallel", "3", "--ctx", "192"];
    good(&[&arguments[..], more, &["--input", text(&input), "--output", text(&output)]].concat(), "");
    let answers: Vec<Value> =
        fs::read_to_string(&output).unwrap().lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(answers.len(), 5);
    for answer in answers {
        let tokens = 4 + answer["index"].as_u64().unwrap() as usize;
        assert_eq!(answer["tokens"].as_array().unwrap().len(), tokens, "{answer}");
    }
}

/// MiniLM's vectors of like texts are alike, and pooled otherwise they are others. `more` are flags that the model wants.
pub(crate) fn like_texts_have_like_vectors(minilm: &Path, more: &[&str]) {
    let texts = ["The ferry leaves at nine.", "A boat goes at nine.", "Pears are sweet."];
    let arguments = [&["embed", "--model", text(minilm), "--json"][..], more, &texts].concat();
    let report = json(&arguments, "");
    assert_eq!((&report["dimensions"], &report["normalized"]), (&384.into(), &true.into()));
    let vector = |index: usize| -> Vec<f64> {
        report["embeddings"][index][0].as_array().unwrap().iter().map(|number| number.as_f64().unwrap()).collect()
    };
    let cosine = |a: usize, b: usize| vector(a).iter().zip(vector(b)).map(|(a, b)| a * b).sum::<f64>();
    assert!(cosine(0, 1) > 0.5 && cosine(0, 2) < 0.3, "{} {}", cosine(0, 1), cosine(0, 2));
    let max = json(&[&arguments[..], &["--pooling", "max"]].concat(), "");
    assert_ne!(max["embeddings"][0], report["embeddings"][0]);
}
