//! `infer batch`, with a tiny model: lines, errors, what is left when it is stopped, and how it goes on.

use serde_json::{Value, json};
use std::{
    fs,
    path::{Path, PathBuf},
    process::{Command, Output, Stdio},
    thread::sleep,
    time::{Duration, Instant},
};
use test_kit::child;

/// A folder with requests and answers.
struct Job {
    folder: tempfile::TempDir,
    model: PathBuf,
}

impl Job {
    fn new(lines: &[Value]) -> Self {
        Self::of_text(&lines.iter().map(|line| format!("{line}\n")).collect::<String>())
    }

    fn of_text(text: &str) -> Self {
        let model = build_support::fixtures::model("tiny-llama").expect("the tiny ones are made");
        let job = Self { folder: tempfile::tempdir().unwrap(), model };
        fs::write(job.path("in"), text).unwrap();
        job
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// `in` is the input, `out` the output; the tests run beside each other, so a thread each has to do.
    fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(assert_cmd::cargo::cargo_bin("infer"));
        command.args(["batch", "--threads", "1", "--input", "in", "--output", "out", "--model"]).arg(&self.model);
        command.args(arguments).current_dir(self.folder.path()).env_remove("INFER_LOG");
        command
    }

    /// Exit code, stdout and stderr.
    fn run(&self, arguments: &[&str]) -> (i32, String, String) {
        read(child::output(&mut self.command(arguments)))
    }

    /// The summary of a run, which must have ended so.
    fn summary(&self, code: i32, arguments: &[&str]) -> Value {
        let (ended, stdout, stderr) = self.run(&[&["--json"], arguments].concat());
        assert_eq!((ended, stdout.lines().count()), (code, 1), "{stdout}{stderr}");
        serde_json::from_str(&stdout).unwrap()
    }

    /// The answers, in the order of their requests, without what depends on how they were computed.
    fn answers(&self) -> Vec<Value> {
        let text = fs::read_to_string(self.path("out")).unwrap();
        assert!(text.is_empty() || text.ends_with('\n'), "{text}");
        let mut answers: Vec<Value> = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        answers.sort_by_key(|answer| answer["index"].as_u64().unwrap());
        for answer in &mut answers {
            if let Some(usage) = answer.get_mut("usage") {
                usage.as_object_mut().unwrap().remove("cached_tokens").unwrap();
            }
        }
        answers
    }
}

fn read(output: Output) -> (i32, String, String) {
    let text = |bytes| String::from_utf8(bytes).unwrap();
    (output.status.code().expect("it was not killed"), text(output.stdout), text(output.stderr))
}

/// Waits until so many lines are in a file.
fn wait_for_lines(path: &Path, count: usize) {
    let begun = Instant::now();
    while fs::read_to_string(path).map_or(0, |text| text.lines().count()) < count {
        assert!(begun.elapsed() < Duration::from_secs(120), "{count} lines never came");
        sleep(Duration::from_millis(5));
    }
}

/// Other requests beside one change how it is rounded. So two answers are the same, or differ from where the two most probable
/// tokens were nearly as probable.
fn assert_same(answer: &Value, undisturbed: &Value) {
    assert_eq!([&answer["index"], &answer["key"]], [&undisturbed["index"], &undisturbed["key"]]);
    let places = |answer: &Value| answer["logprobs"].as_array().unwrap().clone();
    let (places, undisturbed_places) = (places(answer), places(undisturbed));
    assert_eq!((places.len(), &answer["usage"]), (undisturbed_places.len(), &undisturbed["usage"]));
    let both = places.iter().zip(&undisturbed_places);
    match both.clone().find(|(place, undisturbed)| place["token"] != undisturbed["token"]) {
        None => assert_eq!(answer["text"], undisturbed["text"]),
        Some((_, place)) => {
            let [first, second] = [0, 1].map(|at: usize| place["top"][at]["logprob"].as_f64().unwrap());
            assert!(first - second < 0.05, "{answer}\n{undisturbed}");
        }
    }
}

fn prompts(count: usize, max_tokens: usize) -> Vec<Value> {
    let prompt = |at| {
        let prompt = format!("Number {at} is");
        json!({"prompt": prompt, "max_tokens": max_tokens, "ignore_eos": true, "logprobs": 2})
    };
    (0..count).map(prompt).collect()
}

#[test]
fn each_line_has_an_answer_with_its_number() {
    let job = Job::new(&[
        json!({"id": "first", "prompt": "The capital of France is", "max_tokens": 6, "ignore_eos": true}),
        json!({"prompt": [5, 6, 7], "max_tokens": 3, "ignore_eos": true, "logprobs": 2}),
        json!({"prompt": "Draw", "max_tokens": 8, "ignore_eos": true, "temperature": 1.5, "top_p": 0.9, "top_k": 50,
            "min_p": 0.01, "seed": 4, "n": 2}),
    ]);
    let summary = job.summary(0, &["--parallel", "3", "--ctx", "256"]);
    assert_eq!((&summary["requests"], &summary["errors"], &summary["tokens"]), (&3.into(), &0.into(), &25.into()));
    assert!(summary["total_s"].as_f64().unwrap() > 0.0, "{summary}");
    let answers = job.answers();
    assert_eq!(answers.len(), 3);
    assert_eq!((&answers[0]["index"], &answers[0]["id"]), (&0.into(), &"first".into()));
    assert_eq!((answers[0]["tokens"].as_array().unwrap().len(), &answers[0]["finish_reason"]), (6, &"length".into()));
    assert_eq!(answers[0]["usage"]["completion_tokens"], 6);
    assert!(answers[0]["text"].is_string() && answers[0].get("logprobs").is_none());
    let place = &answers[1]["logprobs"][0];
    assert_eq!((&place["token"], place["top"].as_array().unwrap().len()), (&answers[1]["tokens"][0], 2));
    assert_eq!(answers[1]["usage"]["prompt_tokens"], 3);
    let two = answers[2]["completions"].as_array().unwrap();
    assert!(two.len() == 2 && two[0]["tokens"] != two[1]["tokens"], "the seeds are different: {two:?}");
}

#[test]
fn answers_are_those_of_generate() {
    let job = Job::new(&prompts(4, 8));
    job.summary(0, &["--parallel", "4"]);
    for (at, answer) in job.answers().iter().enumerate() {
        let mut infer = Command::new(assert_cmd::cargo::cargo_bin("infer"));
        infer.args(["generate", "--json", "--ignore-eos", "--max-tokens", "8", "--threads", "1", "--model"]);
        let output = child::output(infer.arg(&job.model).args(["--prompt", &format!("Number {at} is")]));
        let alone: Value = serde_json::from_slice(&output.stdout).unwrap();
        assert_eq!((&answer["tokens"], &answer["text"]), (&alone["tokens"], &alone["text"]));
    }
}

#[test]
fn what_a_line_does_not_say_the_flags_say() {
    let job = Job::new(&[json!({"prompt": "a"}), json!({"prompt": "a", "max_tokens": 2, "temperature": 0})]);
    job.summary(0, &["--max-tokens", "5", "--ignore-eos", "--temperature", "2", "--seed", "3"]);
    let answers = job.answers();
    let count = |at: usize| answers[at]["tokens"].as_array().unwrap().len();
    assert_eq!((count(0), count(1)), (5, 2));
    assert_ne!(answers[0]["tokens"][0], answers[1]["tokens"][0]);
}

#[test]
fn a_bad_line_is_an_error_line_and_the_others_are_answered() {
    let lines = [
        r#"{"prompt": "a", "max_tokens": 2, "ignore_eos": true}"#,
        "hello",
        "",
        r#"{"id": 9, "prompt": "a", "maxtokens": 2}"#,
        r#"{"prompt": ""}"#,
        r#"{"prompt": "a", "temperature": -1}"#,
        r#"{"prompt": "a", "stop": ""}"#,
        r#"{"prompt": "a", "adapter": "nobody"}"#,
        r#"{"prompt": "a", "n": 100}"#,
        r#"{"prompt": [4294967295]}"#,
        r##"{"prompt": "a", "json_schema": {"$ref": "#/nowhere"}}"##,
        r#"{"prompt": "b", "max_tokens": 3, "ignore_eos": true}"#,
    ];
    let job = Job::of_text(&lines.join("\r\n"));
    let summary = job.summary(3, &[]);
    assert_eq!((&summary["requests"], &summary["errors"], &summary["tokens"]), (&11.into(), &9.into(), &5.into()));
    let answers = job.answers();
    let error = |at: usize| answers[at]["error"]["message"].as_str().unwrap();
    for (at, said) in [
        (1, "line 2: not JSON: expected value"),
        (2, "line 4: unknown field `maxtokens`"),
        (3, "line 5: the prompt"),
        (4, "line 6: temperature is -1"),
        (5, "line 7: "),
        (6, "line 8: "),
        (7, "line 9: "),
        (8, "line 10: "),
        (9, "line 11: "),
    ] {
        assert!(error(at).starts_with(said), "{}", error(at));
    }
    assert_eq!(answers[2]["id"], 9);
    assert!(error(6).contains("nobody"), "{}", error(6));
    assert_eq!(answers[10]["tokens"].as_array().unwrap().len(), 3);
    let (_, _, stderr) = job.run(&[]);
    assert!(stderr.contains("error: 9 requests have no answer: out says why"), "{stderr}");
}

#[test]
fn an_error_that_was_mended_is_answered_by_the_same_command() {
    let job = Job::of_text("{\"prompt\": \"a\", \"max_tokens\": 2}\n{\"prompt\": 3}\n");
    let first = job.summary(3, &[]);
    assert_eq!((&first["requests"], &first["errors"], &first["resumed"]), (&2.into(), &1.into(), &0.into()));
    fs::write(job.path("in"), "{\"prompt\": \"a\", \"max_tokens\": 2}\n{\"prompt\": \"3\", \"max_tokens\": 1}\n")
        .unwrap();
    let second = job.summary(0, &[]);
    assert_eq!((&second["requests"], &second["errors"], &second["resumed"]), (&2.into(), &0.into(), &1.into()));
    assert_eq!(second["tokens"], 1);
    assert!(job.answers().iter().all(|answer| answer.get("error").is_none()));
}

#[test]
fn what_is_killed_goes_on_where_it_was() {
    let lines = prompts(80, 100);
    let whole = Job::new(&lines);
    whole.summary(0, &["--parallel", "4"]);

    let job = Job::new(&lines);
    let mut child = job.command(&["--parallel", "4"]).stderr(Stdio::null()).spawn().unwrap();
    wait_for_lines(&job.path("out"), 5);
    child.kill().unwrap();
    child.wait().unwrap();
    let there = fs::read_to_string(job.path("out")).unwrap();
    let complete = there.lines().count();
    assert!((5..80).contains(&complete), "{complete}");
    // As a kill in the middle of a write leaves it.
    fs::write(job.path("out"), format!("{there}{{\"index\":79,\"text\":\"ha")).unwrap();

    let summary = job.summary(0, &["--parallel", "4"]);
    assert_eq!((&summary["requests"], &summary["resumed"]), (&80.into(), &complete.into()));
    assert_eq!(summary["tokens"], (80 - complete) * 100);
    assert!(fs::read_to_string(job.path("out")).unwrap().starts_with(&there), "what is there stays as it is");
    let (answers, undisturbed) = (job.answers(), whole.answers());
    assert_eq!(answers.len(), 80);
    for (answer, undisturbed) in answers.iter().zip(&undisturbed) {
        assert_same(answer, undisturbed);
    }

    // There is nothing left to do, so no model is loaded.
    let again = job.summary(0, &["--parallel", "4"]);
    assert_eq!(again["load_s"], 0.0);
    assert_eq!((&again["resumed"], &again["tokens"]), (&80.into(), &0.into()));
}

#[cfg(unix)]
#[test]
fn ctrl_c_leaves_what_is_answered() {
    let job = Job::new(&prompts(400, 100));
    let child =
        job.command(&["--parallel", "4", "--json"]).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    wait_for_lines(&job.path("out"), 3);
    assert!(Command::new("kill").args(["-INT", &child.id().to_string()]).status().unwrap().success());
    let (code, stdout, stderr) = read(child::ended(child));
    assert_eq!(code, 130, "{stderr}");
    assert!(stderr.starts_with("stopped: ") && stderr.contains("the same command goes on"), "{stderr}");
    let answers = job.answers();
    assert!((3..400).contains(&answers.len()));
    for answer in &answers {
        assert_eq!(answer["finish_reason"], "length", "half an answer is none: {answer}");
    }
    let summary: Value = serde_json::from_str(&stdout).unwrap();
    assert_eq!((&summary["requests"], &summary["errors"]), (&answers.len().into(), &0.into()));
}

#[test]
fn an_output_of_another_batch_is_refused() {
    let job = Job::new(&prompts(3, 2));
    job.summary(0, &[]);
    let before = fs::read(job.path("out")).unwrap();
    let refused = |job: &Job, arguments: &[&str], said: &str| {
        let (code, stdout, stderr) = job.run(arguments);
        assert_eq!((code, stdout.as_str()), (1, ""), "{stderr}");
        assert!(stderr.contains(said) && stderr.contains("--overwrite"), "{stderr}");
        assert_eq!(fs::read(job.path("out")).unwrap(), before);
    };
    refused(&job, &["--temperature", "0.5"], "request 0 has an answer that was made from another line");
    fs::write(job.path("in"), format!("{}\n", prompts(1, 2)[0])).unwrap();
    refused(&job, &[], "and the input has 1");
    fs::write(job.path("in"), "{\"prompt\": \"other\"}\n").unwrap();
    refused(&job, &[], "request 0 has an answer");
    // More of the same goes on.
    let lines: String = prompts(5, 2).iter().map(|line| format!("{line}\n")).collect();
    fs::write(job.path("in"), lines).unwrap();
    assert_eq!(job.summary(0, &[])["resumed"], 3);
    // And anew, if that is said.
    fs::write(job.path("in"), "{\"prompt\": \"other\", \"max_tokens\": 2}\n").unwrap();
    job.summary(0, &["--overwrite"]);
    assert_eq!(job.answers().len(), 1);
    fs::write(job.path("out"), "something else\n").unwrap();
    let (code, _, stderr) = job.run(&[]);
    assert!(code == 1 && stderr.contains("line 1 is no answer"), "{stderr}");
}

#[test]
fn stdin_is_an_input_too() {
    let job = Job::new(&[]);
    let run = |arguments: &[&str]| {
        let mut infer = assert_cmd::Command::cargo_bin("infer").unwrap();
        infer.timeout(child::LONG);
        infer.args(["batch", "--threads", "1", "--input", "-", "--output", "out", "--model"]).arg(&job.model);
        infer.args(arguments).current_dir(job.folder.path()).write_stdin("{\"prompt\": \"a\", \"max_tokens\": 2}\n");
        read(infer.output().unwrap())
    };
    let (code, _, stderr) = run(&[]);
    assert_eq!(code, 0, "{stderr}");
    assert!(stderr.contains("1 requests (0 answered before, 0 errors)"), "{stderr}");
    assert_eq!(job.answers().len(), 1);
    let (code, _, stderr) = run(&[]);
    assert!(code == 1 && stderr.contains("stdin or a pipe"), "{stderr}");
    assert_eq!(run(&["--overwrite"]).0, 0);
}

#[test]
fn an_empty_batch_is_done_at_once() {
    let job = Job::of_text("\n\n");
    let summary = job.summary(0, &[]);
    assert_eq!((&summary["requests"], &summary["tokens"]), (&0.into(), &0.into()));
    assert_eq!(fs::read(job.path("out")).unwrap(), b"");
}

#[test]
fn a_constraint_that_cannot_be_kept_is_told_with_where_it_stands_and_what_gives_more() {
    let job = Job::new(&[
        json!({"prompt": "a", "max_tokens": 3, "regex": "a{40}", "close": true}),
        json!({"prompt": "a", "max_tokens": 3, "regex": "a{", "close": true}),
    ]);
    fs::write(job.path("bad.json"), r#"{"type": "nothing"}"#).unwrap();
    fs::write(job.path("bad.lark"), "start: nowhere").unwrap();
    for (name, flag) in [("bad.json", "--json-schema"), ("bad.lark", "--grammar")] {
        let (code, _, stderr) = job.run(&[flag, name]);
        assert!(code == 1 && stderr.contains(&format!("error: {flag} {name}: ")), "{stderr}");
        assert_eq!(fs::read(job.path("out")).unwrap(), b"", "nothing is written");
    }
    assert_eq!(job.run(&[]).0, 3);
    let said: Vec<_> = job.answers().iter().map(|answer| answer["error"]["message"].to_string()).collect();
    assert!(said[0].contains("at most 2 tokens") && said[0].contains("max_tokens gives the text more"), "{said:?}");
    assert!(said[1].contains("line 2: ") && !said[1].contains("max_tokens"), "{said:?}");

    let mut infer = Command::new(assert_cmd::cargo::cargo_bin("infer"));
    infer.args(["generate", "--threads", "1", "--prompt", "a", "--regex", "a{40}", "--close", "--max-tokens", "3"]);
    let (code, _, stderr) = read(child::output(infer.arg("--model").arg(&job.model)));
    assert!(code == 1 && stderr.contains("--max-tokens gives the text more"), "{stderr}");
}

#[test]
fn a_log_is_told_how_far_it_has_come() {
    let job = Job::new(&prompts(3, 2));
    let (code, _, stderr) = job.run(&["--json"]);
    assert!(code == 0 && stderr.lines().any(|line| line == "answered 3 of 3, 0 errors, 6 tokens"), "{stderr}");
}

#[test]
fn what_cannot_begin_says_why() {
    let job = Job::new(&prompts(1, 1));
    for (arguments, code, said) in [
        (&["--parallel", "0"][..], 2, "--parallel"),
        (&["--temperature", "-1"], 2, "temperature is -1"),
        (&["--regex", "a", "--grammar", "b"], 2, "cannot be used with"),
        (&["--close"], 2, "--close"),
        (&["--json-schema", "nowhere"], 1, "cannot read nowhere"),
        (&["--adapter", "a=nowhere", "--adapter", "a=nowhere"], 2, "two adapters"),
    ] {
        let (ended, stdout, stderr) = job.run(arguments);
        assert_eq!((ended, stdout.as_str()), (code, ""), "{arguments:?}: {stderr}");
        assert!(stderr.contains(said), "{arguments:?}: {stderr}");
    }
    let run = |input: &str, output: &str| {
        let mut infer = Command::new(assert_cmd::cargo::cargo_bin("infer"));
        infer.args(["batch", "--model"]).arg(&job.model).args(["--input", input, "--output", output]);
        read(child::output(infer.current_dir(job.folder.path())))
    };
    let (code, _, stderr) = run("in", "in");
    assert!(code == 2 && stderr.contains("the same file"), "{stderr}");
    let (code, _, stderr) = run("nowhere", "out");
    assert!(code == 1 && stderr.contains("cannot read nowhere"), "{stderr}");
    assert!(!job.path("out").exists(), "nothing is written for an input that is not there");
    let (code, _, stderr) = run("in", "nowhere/out");
    assert!(code == 1 && stderr.contains("cannot write nowhere/out"), "{stderr}");
}

#[test]
fn lines_name_adapters() {
    let adapter = build_support::fixtures::model("tiny-lora").expect("the tiny ones are made");
    let line = json!({"prompt": "The capital of France is", "max_tokens": 6, "ignore_eos": true});
    let mut tuned = line.clone();
    tuned["adapter"] = "tuned".into();
    let job = Job::new(&[line, tuned]);
    job.summary(0, &["--adapter", &format!("tuned={}:4", adapter.display())]);
    let answers = job.answers();
    assert_ne!(answers[0]["tokens"], answers[1]["tokens"]);
}
