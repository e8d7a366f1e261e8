//! `embed`, `rerank` and `classify` with real models: MiniLM, SmolLM2, and tiny ones whose weights are random.

use assert_cmd::Command;
use build_support::{fixtures, tiny};
use serde_json::Value;
use std::path::Path;

/// Runs a command with a model, and gives exit code, stdout and stderr.
fn run(model: &Path, arguments: &[&str], stdin: &str) -> (i32, String, String) {
    let mut command = Command::cargo_bin("infer").unwrap();
    command.timeout(test_kit::child::LONG);
    command.arg(arguments[0]).arg("--model").arg(model).args(&arguments[1..]).env_remove("INFER_LOG");
    let output = command.args(["--threads", "1"]).write_stdin(stdin).output().unwrap();
    let text = |bytes| String::from_utf8(bytes).unwrap();
    (output.status.code().expect("it was not killed"), text(output.stdout), text(output.stderr))
}

fn json(model: &str, arguments: &[&str], stdin: &str) -> Value {
    let model = fixtures::model(model).expect("`cargo xtask setup` brings it");
    let (code, stdout, stderr) = run(&model, &[&[arguments[0], "--json"], &arguments[1..]].concat(), stdin);
    assert_eq!((code, stderr.as_str()), (0, ""), "{arguments:?}");
    serde_json::from_str(&stdout).unwrap()
}

fn numbers(vector: &Value) -> Vec<f64> {
    vector.as_array().unwrap().iter().map(|number| number.as_f64().unwrap()).collect()
}

#[test]
fn embeddings_are_lines_or_json_of_arguments_or_stdin() {
    let report =
        json("minilm", &["embed", "The ferry leaves at nine.", "A boat goes at nine.", "Pears are sweet."], "");
    assert_eq!((&report["dimensions"], &report["normalized"]), (&384.into(), &true.into()));
    assert_eq!(report["tokens"], serde_json::json!([8, 8, 7]));
    let vectors: Vec<Vec<f64>> = (0..3).map(|text| numbers(&report["embeddings"][text][0])).collect();
    let cosine = |a: usize, b: usize| vectors[a].iter().zip(&vectors[b]).map(|(a, b)| a * b).sum::<f64>();
    assert!(cosine(0, 1) > 0.5 && cosine(0, 2) < 0.3, "{} {}", cosine(0, 1), cosine(0, 2));

    let piped = json("minilm", &["embed", "-"], "The ferry leaves at nine.\nA boat goes at nine.\n");
    assert_eq!(piped["embeddings"].as_array().unwrap().len(), 2);
    let model = fixtures::model("minilm").unwrap();
    let (code, stdout, _) = run(&model, &["embed", "The ferry leaves at nine."], "");
    let line: Vec<f64> = stdout.split_whitespace().map(|number| number.parse().unwrap()).collect();
    assert_eq!((code, stdout.lines().count(), line.len()), (0, 1, 384));
    assert!(line.iter().zip(&vectors[0]).all(|(a, b)| (a - b).abs() < 1e-3));
}

#[test]
fn a_decoder_is_pooled_as_it_is_told() {
    let report = json("smollm2", &["embed", "--pooling", "none", "--no-normalize", "--ctx", "60", "one two three"], "");
    let rows = report["embeddings"][0].as_array().unwrap();
    assert_eq!((rows.len(), &report["normalized"]), (report["tokens"][0].as_u64().unwrap() as usize, &false.into()));
    let last = json("smollm2", &["embed", "--pooling", "last", "--no-normalize", "--ctx", "60", "one two three"], "");
    assert_eq!(last["embeddings"][0][0], *rows.last().unwrap());

    let (code, stdout, stderr) = run(&fixtures::model("smollm2").unwrap(), &["embed", "one"], "");
    assert_eq!((code, stdout.as_str()), (1, ""));
    assert!(stderr.contains("does not say how hidden states are pooled"), "{stderr}");
}

#[test]
fn a_classifier_scores_its_labels_and_a_reranker_sorts() {
    let report = json("tiny-rank", &["classify", "one", "two"], "");
    let labels: Vec<&str> =
        report[1]["scores"].as_array().unwrap().iter().map(|score| score["label"].as_str().unwrap()).collect();
    assert_eq!((labels, report[1]["text"].as_str()), (tiny::LABELS.to_vec(), Some("two")));
    let (code, _, stderr) = run(&fixtures::model("tiny-rank").unwrap(), &["rerank", "--query", "q", "a"], "");
    assert!(code == 1 && stderr.contains("gives 3 scores"), "{stderr}");
    let (code, stdout, stderr) = run(&fixtures::model("tiny-rank").unwrap(), &["embed", "a"], "");
    assert_eq!((code, stdout.as_str()), (1, ""));
    assert!(stderr.contains("gives no vectors but 3 scores: it classifies; use `infer classify`"), "{stderr}");
    let (code, stdout, _) = run(&fixtures::model("tiny-rank").unwrap(), &["embed", "--pooling", "mean", "a"], "");
    assert_eq!((code, stdout.lines().count()), (0, 1), "with another pooling there are vectors");
    let (code, _, stderr) = run(&fixtures::model("minilm").unwrap(), &["rerank", "--query", "q", "a"], "");
    assert!(code == 1 && stderr.contains("classification head"), "{stderr}");

    // The same model with the first of its labels only.
    let mut reranker = tiny::rank();
    reranker.remove("bert.classifier.output_labels");
    for name in ["cls.output.weight", "cls.output.bias"] {
        let tensor = reranker.tensor(name);
        let labels = tensor.shape.last_mut().unwrap();
        tensor.data.truncate(tensor.data.len() / *labels as usize);
        *labels = 1;
    }
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("reranker.gguf");
    std::fs::write(&path, reranker.bytes()).unwrap();
    let documents = ["one", "two", "three", "four"];
    let arguments = [&["rerank", "--json", "--query", "which?"], &documents[..]].concat();
    let (code, stdout, stderr) = run(&path, &arguments, "");
    assert_eq!((code, stderr.as_str()), (0, ""));
    let (code, _, said) = run(&path, &["embed", "one"], "");
    assert!(code == 1 && said.contains("use `infer rerank`"), "{said}");
    let ranked: Vec<Value> = serde_json::from_str(&stdout).unwrap();
    let scores: Vec<f64> = ranked.iter().map(|ranked| ranked["score"].as_f64().unwrap()).collect();
    assert!(scores.is_sorted_by(|a, b| a > b), "{scores:?}");
    for document in &ranked {
        assert_eq!(document["text"], documents[document["index"].as_u64().unwrap() as usize]);
    }
}

#[test]
fn no_texts_on_stdin_are_an_error() {
    for command in [&["embed"][..], &["embed", "-"], &["classify"], &["rerank", "--query", "q"]] {
        let (code, stdout, stderr) = run(Path::new("no-model"), command, "");
        assert_eq!((code, stdout.as_str()), (1, ""), "{command:?}");
        assert!(stderr.contains("stdin is empty"), "{command:?}: {stderr}");
    }
}
