//! The command with ONNX models: what works with GGUF files works with these, and any graph can be run on arrays.
#![cfg(feature = "onnx")]

mod kit;

use assert_cmd::Command;
use build_support::tiny;
use kit::{a_batch_is_answered, good, json, like_texts_have_like_vectors, model, run, text};
use serde_json::{Value, json};
use std::{fs, path::Path};

#[test]
fn a_folder_generates_text_and_knows_its_template() {
    let model = model("smollm2-onnx-int4");
    let arguments = ["generate", "--model", text(&model), "--threads", "1", "--json", "--max-tokens", "6", "--prompt"];
    let of = |prompt: &str| json(&[&arguments[..], &[prompt]].concat(), "");
    let report = of("The capital of France is");
    assert_eq!(report["tokens"].as_array().unwrap().len(), 6);
    assert_eq!(report["prompt_tokens"], 5);
    assert_ne!(report["tokens"], of("Once upon a time")["tokens"]);
    let report = json(&[&arguments[..], &["Say hello.", "--chat"]].concat(), "");
    assert!(!report["text"].as_str().unwrap().is_empty(), "{report}");
}

#[test]
fn a_conversation_goes_on_and_only_what_is_new_is_computed() {
    let model = model("smollm2-onnx-int4");
    let chat = |lines: &str, more: &[&str]| {
        run(&[&["chat", "--model", text(&model), "--threads", "1", "--max-tokens", "12"], more].concat(), lines)
    };
    let (code, answers, stderr) =
        chat("What is the capital of France? Answer with one word.\nAnd of Italy?\n", &["--system", "Be brief."]);
    assert_eq!(code, 0, "{stderr}");
    assert!(answers.contains("Paris") && answers.contains("Rome"), "{answers}");
    // Of each answer: tokens of the prompt, and those of them that were new.
    let figures: Vec<[usize; 2]> = stderr
        .lines()
        .filter(|line| line.contains("prompt tokens,"))
        .map(|line| {
            let mut numbers = line.split(|c: char| !c.is_ascii_digit()).filter_map(|number| number.parse().ok());
            std::array::from_fn(|_| numbers.next().unwrap())
        })
        .collect();
    let [[first, first_new], [second, second_new]] = figures[..] else { panic!("{stderr}") };
    assert!(first == first_new && second > first && second_new < second - first, "{stderr}");

    let (code, answers, stderr) = chat("Is water wet?\n/clear\nIs fire cold?\n", &["--regex", "(Yes|No)\\."]);
    assert_eq!(code, 0, "{stderr}");
    assert!(answers.lines().count() == 2 && answers.lines().all(|line| ["Yes.", "No."].contains(&line)), "{answers}");
    let (code, answers, stderr) = chat("/clean\n", &[]);
    assert!(code == 1 && answers.is_empty() && stderr.contains("there is no command /clean"), "{stderr}");
    let encoder = self::model("tiny-onnx-encoder");
    let (code, answers, stderr) = run(&["chat", "--model", text(&encoder)], "Hello\n");
    assert_eq!((code, answers.as_str()), (1, ""));
    assert!(stderr.contains("the model is an encoder"), "{stderr}");
}

#[test]
fn a_backend_may_be_named_and_another_one_refuses() {
    let (model, prompt) = (model("tiny-onnx"), ["--prompt", "abc", "--max-tokens", "3", "--threads", "1"]);
    let with =
        |backend: &str| run(&[&["generate", "--model", text(&model), "--backend", backend][..], &prompt].concat(), "");
    let (code, _, stderr) = with("onnx");
    assert_eq!(code, 0, "{stderr}");
    for other in ["llama", "mlx"] {
        let (code, stdout, stderr) = with(other);
        assert_eq!((code, stdout.as_str()), (1, ""));
        let said = format!("with an ONNX model, for the backend `onnx`, and the backend `{other}` was asked for");
        assert!(stderr.contains(&said), "{stderr}");
    }
}

#[test]
fn a_model_of_another_kind_is_told_the_right_command() {
    let decoder = model("tiny-onnx");
    let encoder = model("tiny-onnx-encoder");
    let graph = model("magika");
    let graph = if graph.is_dir() { graph.join("model.onnx") } else { graph };
    for (arguments, model, said) in [
        (&["embed", "a", "-m"][..], &decoder, "the model is a decoder: `infer generate`"),
        (&["classify", "a", "-m"], &decoder, "the model is a decoder: `infer generate`"),
        (&["generate", "--prompt", "a", "-m"], &encoder, "the model is an encoder: `infer embed`"),
        (&["generate", "--prompt", "a", "-m"], &graph, "the model is a graph: `infer run`"),
        (&["embed", "a", "-m"], &graph, "the model is a graph: `infer run`"),
    ] {
        let (code, stdout, stderr) = run(&[arguments, &[text(model)]].concat(), "");
        assert_eq!((code, stdout.as_str()), (1, ""), "{arguments:?}");
        assert!(stderr.contains(said), "{arguments:?}: {stderr}");
    }
}

#[test]
fn a_batch_of_requests_is_answered() {
    a_batch_is_answered(&model("tiny-onnx"), &["--threads", "1"]);
}

#[test]
fn texts_become_vectors_and_scores() {
    let minilm = model("minilm-onnx");
    like_texts_have_like_vectors(&minilm, &["--threads", "1"]);

    let classifier = model("tiny-onnx-classifier");
    let report = json(&["classify", "--model", text(&classifier), "--threads", "1", "--json", "one", "two"], "");
    let labels = report[1]["scores"].as_array().unwrap().iter().map(|score| score["label"].as_str().unwrap());
    assert!(labels.eq(tiny::LABELS), "{report}");
}

#[test]
fn text_is_tokens_and_files_are_inspected_without_a_runtime() {
    let minilm = model("minilm-onnx");
    assert_eq!(
        good(&["tokenize", "--model", text(&minilm), "--add", "--ids", "hello world"], ""),
        "101 7592 2088 102\n"
    );

    let folder = model("tiny-onnx");
    let mut command = Command::cargo_bin("infer").unwrap();
    command.timeout(test_kit::child::LONG);
    command.args(["inspect", text(&folder), "--json"]).env("INFER_ONNXRUNTIME_LIBRARY", "/no/such/library.so");
    let report: Value = serde_json::from_slice(&command.output().unwrap().stdout).unwrap();
    assert_eq!(report["backend"], "onnx", "{report}");
    assert!(report["format"].as_str().unwrap().starts_with("ONNX "), "{report}");
    assert!(report["layers"].as_u64() == Some(2) && report["parameters"].as_u64().unwrap() > 1000, "{report}");
    assert!(report["metadata"]["input.input_ids"].as_str().unwrap().contains("int64"), "{report}");

    let magika = model("magika").join("model.onnx");
    let page = good(&["inspect", text(&magika)], "");
    assert!(
        page.contains("for the backend onnx") && page.contains("input.bytes") && !page.contains("layers"),
        "{page}"
    );
}

#[test]
fn the_library_and_its_devices_are_listed() {
    let report = json(&["devices", "--json"], "");
    let all = |list: &str| report[list].as_array().unwrap().clone();
    let library = all("libraries").into_iter().find(|library| library["backend"] == "onnx").expect("it is there");
    assert!(library["version"].as_str().unwrap().starts_with("1."), "{library}");
    assert_eq!(library["variant"], Value::Null, "it does not say: {library}");
    let device = |device: &Value| device["backend"] == "onnx" && device["name"] == "CPU" && device["kind"] == "cpu";
    assert!(all("devices").iter().any(device), "{report}");
}

/// A `.npy` file of 32-bit integers.
fn npy(path: &Path, shape: &str, numbers: &[i32]) {
    let header = format!("{{'descr': '<i4', 'fortran_order': False, 'shape': {shape}, }}\n");
    let length = u16::try_from(header.len()).unwrap().to_le_bytes();
    let data = numbers.iter().flat_map(|number| number.to_le_bytes());
    let file = b"\x93NUMPY\x01\0".iter().copied().chain(length).chain(header.into_bytes()).chain(data);
    fs::write(path, file.collect::<Vec<u8>>()).unwrap();
}

/// The header of a `.npy` file, and its numbers.
fn floats(path: &Path) -> (String, Vec<f32>) {
    let bytes = fs::read(path).unwrap();
    let begin = 10 + usize::from(u16::from_le_bytes([bytes[8], bytes[9]]));
    let numbers = bytes[begin..].as_chunks::<4>().0.iter().map(|&bytes| f32::from_le_bytes(bytes)).collect();
    (String::from_utf8(bytes[10..begin].to_vec()).unwrap(), numbers)
}

#[test]
fn a_graph_is_run_on_arrays() {
    let (graph, folder) = (model("magika").join("model.onnx"), tempfile::tempdir().unwrap());
    let (input, output) = (folder.path().join("in.npy"), folder.path().join("out"));
    let numbers: Vec<i32> = (0..2 * 2048).map(|number| number * 7 % 257).collect();
    npy(&input, "(2, 2048)", &numbers);
    let named = format!("bytes={}", text(&input));
    let begin = ["run", "--model", text(&graph), "--threads", "1", "--input", &named, "--output"];

    let line = good(&[&begin[..], &[text(&output)]].concat(), "");
    let file = output.join("target_label.npy");
    assert_eq!(line, format!("target_label  float32 [2, 214]  {}\n", text(&file)));
    let (header, scores) = floats(&file);
    assert!(header.contains("'<f4'") && header.contains("(2, 214)"), "{header}");
    let sums: Vec<f32> = scores.chunks(214).map(|row| row.iter().sum()).collect();
    assert!(sums.iter().all(|sum| (sum - 1.0).abs() < 1e-3), "shares of 1: {sums:?}");

    // The only input needs no name; what comes out of an archive goes into one.
    let archive = folder.path().join("all.npz");
    let report = json(&["run", "-m", text(&graph), "-i", text(&input), "-o", text(&archive), "--json"], "");
    let row = json!({"name": "target_label", "dtype": "float32", "shape": [2, 214], "file": text(&archive)});
    assert_eq!(report["outputs"], json!([row]));
    let (code, _, stderr) = run(&["run", "-m", text(&graph), "-i", text(&archive)], "");
    assert!(code == 1 && stderr.contains("target_label") && stderr.contains("bytes"), "{stderr}");
    // Without a place for them, shapes are all that is told.
    assert_eq!(good(&["run", "-m", text(&graph), "-i", &named], ""), "target_label  float32 [2, 214]\n");
}

#[test]
fn arrays_that_do_not_fit_are_told_with_what_is_wanted() {
    let (graph, folder) = (model("magika").join("model.onnx"), tempfile::tempdir().unwrap());
    let file = |name: &str, shape: &str, numbers: &[i32]| {
        npy(&folder.path().join(name), shape, numbers);
        text(&folder.path().join(name)).to_owned()
    };
    let (short, flat) = (file("short.npy", "(1, 3)", &[1, 2, 3]), file("flat.npy", "(2048,)", &[1; 2048]));
    let cut = file("cut.npy", "(1, 2048)", &[1; 9]);
    let good = file("good.npy", "(1, 2048)", &[1; 2048]);
    for (inputs, code, said) in [
        (vec![], 1, "bytes"),
        (vec![format!("bytes={short}")], 1, "2048"),
        (vec![format!("bytes={flat}")], 1, "bytes"),
        (vec![format!("byte={good}")], 1, "byte"),
        (vec![format!("bytes={good}"), good.clone()], 1, "given already"),
        (vec![format!("bytes={cut}")], 1, "cut.npy ends after 36 of the 8192 bytes"),
        (vec![format!("bytes={}", text(&graph))], 1, "no .npy file"),
        (vec!["bytes=".into()], 2, "NAME=FILE"),
    ] {
        let flags = inputs.iter().flat_map(|input| ["--input", input.as_str()]);
        let arguments: Vec<&str> = ["run", "--model", text(&graph)].into_iter().chain(flags).collect();
        let (found, stdout, stderr) = run(&arguments, "");
        assert_eq!((found, stdout.as_str()), (code, ""), "{inputs:?}: {stderr}");
        assert!(stderr.starts_with("error: ") && stderr.contains(said), "{inputs:?}: {stderr}");
    }
    let (code, _, stderr) = run(&["run", "--model", &good], "");
    assert!(code == 1 && stderr.contains("good.npy"), "{stderr}");
    let (code, _, stderr) = run(&["run", "--model", text(&graph), "-i", &good, "--provider", "abacus"], "");
    assert!(code == 1 && stderr.contains("abacus"), "{stderr}");
}

/// A file of nothing may be as large as one likes, and say what it likes.
#[cfg(unix)]
#[test]
fn arrays_larger_than_memory_are_refused() {
    let (graph, folder) = (model("magika").join("model.onnx"), tempfile::tempdir().unwrap());
    let infer = assert_cmd::cargo::cargo_bin("infer");
    for (descr, shape, bytes, said) in [
        ("<i4", "(1000000, 2048)", 8_192_000_000_u64, "bytes of memory"),
        ("<i4", "(250000, 2048)", 2_048_000_000, "bytes of memory"),
        ("|S1", "(100000000,)", 100_000_000, "bytes of memory"),
        ("<i4", "(4611686018427387904, 4611686018427387904)", 64, "more than any memory holds"),
        ("<U4611686018427387904", "(1,)", 64, "more than any memory holds"),
        ("<i4", "(0, 18446744073709551615)", 0, "bytes"),
        ("<i4", "(1, 2048)", 64, "ends after"),
    ] {
        let path = folder.path().join("large.npy");
        let header = format!("{{'descr': '{descr}', 'fortran_order': False, 'shape': {shape}, }}\n");
        let length = u16::try_from(header.len()).unwrap().to_le_bytes();
        fs::write(&path, [b"\x93NUMPY\x01\0", &length[..], header.as_bytes()].concat()).unwrap();
        fs::File::options().append(true).open(&path).unwrap().set_len(10 + header.len() as u64 + bytes).unwrap();
        // KiB: room for the program and its graph, and for no such array.
        let mut command = Command::new("sh");
        command.args(["-c", "ulimit -v 4000000 && exec \"$0\" \"$@\""]).arg(&infer);
        command.args(["run", "--threads", "1", "--model", text(&graph), "--input", text(&path)]);
        let output = command.timeout(std::time::Duration::from_secs(60)).output().unwrap();
        let stderr = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(1), "{descr} {shape}: {stderr}");
        assert!(stderr.starts_with("error: ") && stderr.contains(said), "{descr} {shape}: {stderr}");
    }
}
