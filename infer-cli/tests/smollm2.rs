//! The command with a real model: SmolLM2-135M-Instruct, as `cargo xtask setup` brings it.

use assert_cmd::Command;
use serde_json::Value;
use std::path::PathBuf;

fn model() -> PathBuf {
    build_support::fixtures::model("smollm2").expect("`cargo xtask setup --only smollm2` brings it")
}

fn infer(arguments: &[&str]) -> Command {
    let mut command = Command::cargo_bin("infer").unwrap();
    command.timeout(test_kit::child::LONG);
    command.arg(arguments[0]).arg("--model").arg(model()).args(&arguments[1..]).env_remove("INFER_LOG");
    if arguments[0] == "generate" {
        // The tests run beside each other, and a runtime's threads wait for the slowest of them.
        command.args(["--threads", "1"]);
    }
    command
}

/// Runs it, and gives exit code, stdout and stderr.
fn run(arguments: &[&str]) -> (i32, String, String) {
    output(&mut infer(arguments))
}

fn output(command: &mut Command) -> (i32, String, String) {
    let output = command.output().unwrap();
    let text = |bytes| String::from_utf8(bytes).unwrap();
    (output.status.code().expect("it was not killed"), text(output.stdout), text(output.stderr))
}

fn generate(arguments: &[&str]) -> Value {
    let (code, stdout, stderr) = run(&[&["generate", "--json"], arguments].concat());
    assert_eq!((code, stderr.as_str()), (0, ""), "{arguments:?}");
    assert_eq!(stdout.lines().count(), 1, "{stdout}");
    serde_json::from_str(&stdout).unwrap()
}

#[test]
fn greedy_text_is_the_same_each_time_and_nothing_else_is_on_stdout() {
    let arguments = ["--prompt", "The capital of France is", "--max-tokens", "12"];
    let report = generate(&arguments);
    let text = report["text"].as_str().unwrap();
    assert!(text.contains("Paris"), "{text}");
    assert_eq!(report["tokens"].as_array().unwrap().len(), 12);
    assert_eq!((&report["prompt_tokens"], &report["finish_reason"]), (&5.into(), &"length".into()));
    for time in ["load_s", "prefill_s", "decode_s"] {
        assert!(report[time].as_f64().unwrap() > 0.0, "{report}");
    }
    assert_eq!(report.as_object().unwrap().len(), 7, "{report}");

    let (code, stdout, stderr) = run(&[&["generate"], &arguments[..]].concat());
    assert_eq!((code, stdout.as_str()), (0, text));
    assert!(stderr.contains("12 tokens in"), "{stderr}");
}

#[test]
fn a_seed_repeats_and_another_one_does_not() {
    let draw = |seed: &str| {
        let arguments = ["--prompt", "Once upon a time", "--max-tokens", "16", "--temperature", "1.5", "--seed", seed];
        generate(&arguments)["tokens"].clone()
    };
    assert_eq!(draw("7"), draw("7"));
    assert_ne!(draw("7"), draw("8"));
}

#[test]
fn log_probabilities_are_there_where_they_are_asked_for() {
    let report = generate(&["--prompt", "The capital of France is", "--max-tokens", "3", "--logprobs", "2"]);
    let (tokens, places) = (report["tokens"].as_array().unwrap(), report["logprobs"].as_array().unwrap());
    assert_eq!(places.len(), 3);
    for (token, place) in tokens.iter().zip(places) {
        let top = place["top"].as_array().unwrap();
        assert_eq!((&place["token"], &top[0]["token"], top.len()), (token, token, 2), "{report}");
        let [first, second] = [0, 1].map(|at: usize| top[at]["logprob"].as_f64().unwrap());
        assert!(place["logprob"].as_f64() == Some(first) && second <= first && first <= 0.0, "{report}");
    }
    let none = generate(&["--prompt", "The capital of France is", "--max-tokens", "3", "--logprobs", "0"]);
    assert_eq!(none["logprobs"][2]["top"], Value::Array(Vec::new()));
}

#[test]
fn a_repetition_is_left_by_dry() {
    let count = "1 2 3 4 5\n1 2 3 4 5\n1 2 3 4 5\n1 2 3 4";
    let text = |more: &[&str]| {
        let report = generate(&[&["--prompt", count, "--max-tokens", "2"], more].concat());
        report["text"].as_str().unwrap().to_owned()
    };
    assert_eq!(text(&[]), " 5");
    assert_ne!(text(&["--dry-multiplier", "8"]), " 5");
    // What follows a breaker has no past.
    assert_eq!(text(&["--dry-multiplier", "8", "--dry-breaker", "4"]), " 5");
}

#[test]
fn a_prompt_comes_from_stdin_or_a_file_without_its_last_line_break() {
    let prompt = "One, two, three,";
    let tokens = generate(&["--prompt", prompt, "--max-tokens", "4"])["tokens"].clone();
    let mut piped = infer(&["generate", "--json", "--max-tokens", "4"]);
    let (code, stdout, _) = output(piped.write_stdin(format!("{prompt}\n")));
    assert_eq!((code, &serde_json::from_str::<Value>(&stdout).unwrap()["tokens"]), (0, &tokens));

    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("prompt");
    std::fs::write(&file, format!("{prompt}\r\n")).unwrap();
    let report = generate(&["--file", file.to_str().unwrap(), "--max-tokens", "4"]);
    assert_eq!(report["tokens"], tokens);
}

#[test]
fn a_message_is_answered_through_the_models_own_template() {
    let asked = ["--chat", "--prompt", "What is 2+2?", "--max-tokens", "24"];
    let report = generate(&asked);
    assert_eq!(report["finish_reason"], "end_of_text", "{report}");
    let text = report["text"].as_str().unwrap();
    assert!(text.contains('4') && !text.contains("<|im_end|>"), "{report}");
    let bare = generate(&["--prompt", "What is 2+2?", "--max-tokens", "1"])["prompt_tokens"].as_u64().unwrap();
    let own = report["prompt_tokens"].as_u64().unwrap();
    let other = generate(&[&asked[..], &["--system", "Be brief."]].concat())["prompt_tokens"].as_u64().unwrap();
    assert!(own > other && other > bare, "the template's own system message is longer than ours: {own} {other} {bare}");
}

#[test]
fn a_stop_string_ends_it_and_is_left_out() {
    let report = generate(&["--prompt", "One, two, three,", "--max-tokens", "32", "--stop", " five"]);
    assert_eq!((&report["text"], &report["finish_reason"]), (&" four,".into(), &"stop".into()));
}

#[test]
fn a_text_keeps_to_a_schema_an_expression_or_a_grammar() {
    let folder = tempfile::tempdir().unwrap();
    let file = |name: &str, text: &str| {
        let path = folder.path().join(name);
        std::fs::write(&path, text).unwrap();
        path.to_str().unwrap().to_owned()
    };
    let schema = file(
        "schema.json",
        r#"{"type": "object", "properties": {"name": {"type": "string"}, "big": {"type": "boolean"}}, "required": ["name", "big"],
            "additionalProperties": false}"#,
    );
    let ask = ["--chat", "--prompt", "Describe the city of Rome.", "--max-tokens", "32"];
    let text = |more: &[&str]| {
        let report = generate(&[&ask, more].concat());
        assert_eq!(report["finish_reason"], "end_of_text", "{report}");
        report["text"].as_str().unwrap().to_owned()
    };
    let city: Value = serde_json::from_str(&text(&["--json-schema", &schema, "--close"])).unwrap();
    assert!(city["name"].is_string() && city["big"].is_boolean() && city.as_object().unwrap().len() == 2, "{city}");
    assert!(["old", "new"].contains(&&*text(&["--regex", "old|new"])));
    let gbnf = file("city.gbnf", "root ::= \"Rome is \" [a-z]+ \".\"");
    assert!(text(&["--grammar", &gbnf]).starts_with("Rome is "));
    let lark = file("city.lark", "start: \"Rome, \" /[a-z]{3,5}/");
    assert!(text(&["--grammar", &lark]).starts_with("Rome, "));

    for (arguments, said) in [
        (["--json-schema", &*file("bad.json", r#"{"$ref": "nowhere"}"#)], "nowhere"),
        (["--json-schema", &gbnf], "JSON"),
        (["--regex", "(a"], "regular expression"),
        (["--grammar", &schema], "gram"),
    ] {
        let (code, stdout, stderr) = run(&[&["generate"], &ask[..], &arguments].concat());
        assert_eq!((code, stdout.as_str()), (1, ""), "{arguments:?}: {stderr}");
        assert!(stderr.contains(said), "{arguments:?}: {stderr}");
    }
}

#[test]
fn context_and_prompt_have_to_fit() {
    let own = generate(&["--prompt", "Hello", "--max-tokens", "1", "--ctx", "0"]);
    assert_eq!(own["tokens"].as_array().unwrap().len(), 1);

    let long = "word ".repeat(400);
    let (code, stdout, stderr) = run(&["generate", "--prompt", &long, "--ctx", "256"]);
    assert_eq!((code, stdout.as_str()), (1, ""));
    assert!(stderr.starts_with("error: the prompt has 4") && stderr.contains("the context 256"), "{stderr}");

    let full = generate(&["--prompt", &"word ".repeat(250), "--ctx", "256", "--ignore-end"]);
    assert_eq!(full["finish_reason"], "context_full", "{full}");

    let (code, stdout, stderr) = run(&["generate", "--prompt", ""]);
    assert_eq!((code, stdout.as_str()), (1, ""));
    assert!(stderr.contains("the prompt has no tokens"), "{stderr}");
}

#[test]
fn a_reader_that_goes_away_ends_it_quietly() {
    use std::process::{Command, Stdio};
    let mut child = Command::new(assert_cmd::cargo::cargo_bin("infer"))
        .args(["generate", "--prompt", "Once", "--max-tokens", "2000", "--ignore-end", "--threads", "1", "--model"])
        .arg(model())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    drop(child.stdout.take());
    let output = test_kit::child::ended(child);
    assert_eq!((output.status.code(), output.stderr.as_slice()), (Some(0), &b""[..]));
}

#[cfg(unix)]
#[test]
fn ctrl_c_ends_the_text_and_keeps_what_there_is() {
    use std::{
        io::Read,
        process::{Command, Stdio},
    };
    let mut child = Command::new(assert_cmd::cargo::cargo_bin("infer"))
        .args(["generate", "--prompt", "Once", "--max-tokens", "8000", "--ignore-end", "--threads", "1", "--model"])
        .arg(model())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let (id, mut stdout) = (child.id(), child.stdout.take().unwrap());
    let ends = test_kit::child::watched(child, test_kit::child::LONG);
    // The first bytes say that it is at work.
    stdout.read_exact(&mut [0; 8]).unwrap();
    assert!(Command::new("kill").args(["-INT", &id.to_string()]).status().unwrap().success());
    stdout.read_to_end(&mut Vec::new()).unwrap();
    let output = ends.join().unwrap();
    let stderr = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(0), "{stderr}");
    assert!(stderr.contains("ended by: cancelled"), "{stderr}");
}

#[test]
fn tokens_give_the_text_back() {
    let text = "Hello, wörld! 你好 🙂\n\tend  ";
    let (code, stdout, _) = output(infer(&["tokenize", "--json"]).write_stdin(text));
    let report: Value = serde_json::from_str(&stdout).unwrap();
    let mut bytes = Vec::new();
    for piece in report["pieces"].as_array().unwrap() {
        match piece {
            Value::String(text) => bytes.extend_from_slice(text.as_bytes()),
            piece => bytes.extend(serde_json::from_value::<Vec<u8>>(piece.clone()).unwrap()),
        }
    }
    assert_eq!((code, String::from_utf8(bytes).unwrap().as_str()), (0, text));

    let (_, ids, _) = output(infer(&["tokenize", "--ids"]).write_stdin(text));
    let expected: Vec<String> = report["tokens"].as_array().unwrap().iter().map(Value::to_string).collect();
    assert_eq!(ids, expected.join(" ") + "\n");
}

#[test]
fn names_of_control_tokens_are_text_unless_asked_for() {
    let count = |more: &[&str]| {
        let (code, stdout, _) = run(&[&["tokenize", "<|im_end|>", "--ids"], more].concat());
        assert_eq!(code, 0);
        stdout.split_whitespace().count()
    };
    assert!(count(&[]) > 1);
    assert_eq!(count(&["--special"]), 1);
    let (_, lines, _) = run(&["tokenize", "a b"]);
    assert_eq!(lines.lines().count(), 2, "{lines}");
    assert!(lines.contains("\" b\""), "{lines}");
}

#[test]
fn the_file_is_inspected_and_counted_without_a_runtime() {
    let run = |command: &str| {
        let mut infer = Command::cargo_bin("infer").unwrap();
        infer.timeout(test_kit::child::LONG);
        let (code, stdout, stderr) = output(infer.arg(command).arg(model()).arg("--json"));
        assert_eq!((code, stderr.as_str()), (0, ""));
        serde_json::from_str::<Value>(&stdout).unwrap()
    };
    let file = run("inspect");
    assert_eq!((&file["architecture"], &file["layers"], &file["kv_heads"]), (&"llama".into(), &30.into(), &3.into()));
    assert_eq!((&file["format"], &file["tokenizer"]), (&"GGUF 3".into(), &"gpt2 (smollm)".into()));
    assert_eq!(file["weights"][0]["dtype"], "q4_1");
    assert!(file["chat_template"].as_str().unwrap().contains("<|im_start|>"));
    let cost = run("cost");
    assert_eq!(cost["parameters"]["total"], 134_515_008);
    assert_eq!(cost["kv"]["bytes_per_position"], 22_528 + 512);
}

#[test]
fn a_library_that_is_there_is_not_made_again() {
    let library = build_support::setup::library(&build_support::env::Env::from_process()).unwrap();
    assert!(library.exists(), "`cargo xtask setup --only llama` makes {}", library.display());
    let setup = || output(Command::cargo_bin("infer").unwrap().timeout(test_kit::child::LONG).arg("setup"));
    let path = format!("{}\n", library.display());
    // The first time it may be one of an older shim.
    let (code, stdout, stderr) = setup();
    assert_eq!((code, stdout), (0, path.clone()), "{stderr}");
    let (code, stdout, stderr) = setup();
    assert_eq!((code, stdout), (0, path), "{stderr}");
    assert!(stderr.contains("nothing was fetched or built"), "{stderr}");
}

#[test]
fn the_processor_is_a_device() {
    let mut infer = Command::cargo_bin("infer").unwrap();
    infer.timeout(test_kit::child::LONG);
    let (code, stdout, stderr) = output(infer.args(["devices", "--json"]));
    assert_eq!((code, stderr.as_str()), (0, ""));
    let report: Value = serde_json::from_str(&stdout).unwrap();
    let devices = report["devices"].as_array().unwrap();
    assert!(devices.iter().any(|device| device["kind"] == "cpu" && device["backend"] == "llama"), "{stdout}");
    let libraries = report["libraries"].as_array().unwrap();
    let linked = libraries.iter().find(|library| library["place"] == "linked into this program").unwrap();
    assert_eq!((&linked["variant"], &linked["error"]), (&Value::from("cpu"), &Value::Null), "{stdout}");
}

#[test]
fn a_device_is_chosen_by_its_name() {
    let on =
        |device| run(&["generate", "--prompt", "The capital of France is", "--max-tokens", "2", "--device", device]);
    let (code, stdout, stderr) = on("CPU");
    assert!(code == 0 && stdout.contains("Paris"), "{stdout}{stderr}");
    let (code, _, stderr) = on("Nowhere7");
    assert!(code == 1 && stderr.contains("no device \"Nowhere7\"") && stderr.contains("CPU"), "{stderr}");
    for way in ["`infer setup llama --variant vulkan`", "`cargo install --path infer-cli --features llama-vulkan`"] {
        assert!(stderr.contains(way), "{stderr}");
    }
}
