//! Every example runs, and does what it says.

use std::{
    path::Path,
    process::Command,
    sync::{Mutex, PoisonError},
};

/// One at a time: each uses all processors, and a runtime's threads wait for the slowest of them.
static TURN: Mutex<()> = Mutex::new(());

fn run(program: &str, arguments: &[&str]) -> (String, String) {
    let model = build_support::fixtures::model("smollm2").expect("`cargo xtask setup --only smollm2` brings it");
    run_with(program, &model, arguments)
}

fn run_with(program: &str, model: &Path, arguments: &[&str]) -> (String, String) {
    outcome(Command::new(program).arg(model).args(arguments))
}

fn outcome(command: &mut Command) -> (String, String) {
    let _turn = TURN.lock().unwrap_or_else(PoisonError::into_inner);
    let output = test_kit::child::output(command);
    let text = |bytes| String::from_utf8(bytes).unwrap();
    let (stdout, stderr) = (text(output.stdout), text(output.stderr));
    assert!(output.status.success(), "{stderr}");
    (stdout, stderr)
}

#[test]
fn chat_computes_only_what_is_new() {
    let (_, stderr) = run(env!("CARGO_BIN_EXE_chat"), &["What is 2+2?", "And 3+3?"]);
    let turns: Vec<Vec<usize>> = stderr
        .lines()
        .map(|line| line.split(|c: char| !c.is_ascii_digit()).filter_map(|number| number.parse().ok()).collect())
        .collect();
    let [first, second] = &turns[..] else { panic!("{stderr}") };
    assert_eq!(first[0], first[1], "of the first turn everything is new");
    assert!(second[0] < first[0] && second[1] > first[1], "{stderr}");
}

#[test]
fn two_stories_go_on_from_one_beginning() {
    let (stdout, _) = run(env!("CARGO_BIN_EXE_session_by_hand"), &[]);
    assert!(stdout.contains("… At last the boat") && stdout.contains("… Then he saw that"), "{stdout}");
}

#[test]
fn a_cancelled_text_goes_on_without_computing_again() {
    let (stdout, _) = run(env!("CARGO_BIN_EXE_cancel"), &[]);
    assert!(stdout.contains("ended by: cancelled"), "{stdout}");
    assert!(stdout.contains("tokens cached:"), "{stdout}");
}

#[test]
fn a_text_is_another_one_with_an_adapter() {
    let fixture = |name: &str| build_support::fixtures::model(name).expect("the tiny ones are made");
    let (model, adapter) = (fixture("tiny-llama"), fixture("tiny-lora"));
    let lines = |scale: &str| {
        let arguments = [adapter.to_str().unwrap(), scale];
        let (stdout, _) = run_with(env!("CARGO_BIN_EXE_lora"), &model, &arguments);
        let lines = stdout.lines().map(|line| line.split_once(": ").unwrap().1.to_owned());
        lines.collect::<Vec<_>>()
    };
    let [bare, tuned] = &lines("4")[..] else { panic!("two texts") };
    assert_ne!(bare, tuned);
    assert_eq!(lines("0"), [bare.clone(), bare.clone()]);
}

#[test]
fn a_question_finds_the_sentence_that_answers_it() {
    let model = build_support::fixtures::model("minilm").expect("`cargo xtask setup --only minilm` brings it");
    for (question, answer) in [
        ("When is the boat going?", "The ferry leaves the old harbour at nine."),
        ("Which fruit is in season?", "Pears ripen in September."),
        ("Can I bring my bike?", "Bicycles travel free of charge, dogs do not."),
    ] {
        let (stdout, _) = run_with(env!("CARGO_BIN_EXE_embed"), &model, &[question]);
        let best = stdout.lines().next().unwrap();
        assert!(best.ends_with(answer), "{question}\n{stdout}");
    }
}

#[test]
#[cfg(feature = "onnx")]
fn a_question_finds_its_sentence_on_onnx_runtime_too() {
    finds_its_sentence_on("onnx", "minilm-onnx");
}

#[test]
#[cfg(feature = "mlx")]
fn a_question_finds_its_sentence_on_mlx_too() {
    finds_its_sentence_on("mlx", "minilm-mlx");
}

/// The same weights in another format, on another runtime.
#[cfg(any(feature = "onnx", feature = "mlx"))]
fn finds_its_sentence_on(backend: &str, name: &str) {
    let [llama, other] = ["minilm", name].map(|name| build_support::fixtures::model(name).unwrap());
    let question = "Which fruit is in season?";
    let (theirs, _) = run_with(env!("CARGO_BIN_EXE_embed"), &llama, &[question]);
    let mut command = Command::new(env!("CARGO_BIN_EXE_embed"));
    let (stdout, _) = outcome(command.args(["--backend", backend]).arg(other).arg(question));
    assert!(stdout.lines().next().unwrap().ends_with("Pears ripen in September."), "{stdout}");
    let sentences = |text: &str| text.lines().map(|line| line[7..].to_owned()).collect::<Vec<_>>();
    assert_eq!(sentences(&stdout), sentences(&theirs));
}

/// The same numbers of 32 bits, in each runtime's own format; and others, which part somewhere.
#[test]
#[cfg(all(feature = "onnx", feature = "mlx"))]
fn one_prompt_comes_to_the_same_on_three_runtimes() {
    let run = |models: [&str; 3]| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_three_runtimes"));
        command.args(models.map(|name| build_support::fixtures::model(name).unwrap()));
        outcome(command.args(["The capital of France is", "8"])).0
    };
    let same = run(["smollm2-f32", "smollm2-onnx", "smollm2-mlx"]);
    let heads: Vec<&str> = same.lines().next().unwrap().split_whitespace().collect();
    assert_eq!(heads, ["llama", "onnx", "mlx"]);
    assert!(same.lines().nth(1).unwrap().matches("\" Paris\"").count() == 3, "{same}");
    assert!(same.ends_with("the same 8 tokens in all of them\n"), "{same}");
    let other = run(["smollm2-f32", "smollm2-onnx", "tiny-mlx-llama"]);
    assert!(other.contains("  <-\n") && other.contains("the same until place 0, where the best"), "{other}");
}

#[test]
#[cfg(feature = "onnx")]
fn files_are_told_apart_by_their_bytes() {
    let model = build_support::fixtures::model("magika").expect("`cargo xtask setup --only magika` brings it");
    let path = |file: &str| concat!(env!("CARGO_MANIFEST_DIR"), "/").to_owned() + file;
    let graph = model.join("model.onnx");
    let files = [
        (path("classify.rs"), "rust"),
        (path("Cargo.toml"), "toml"),
        (path("../README.md"), "markdown"),
        (path("tools.jinja"), "jinja"),
        (graph.to_str().unwrap().to_owned(), "onnx"),
        (path("tests"), "directory"),
        ("/dev/null".to_owned(), "empty"),
    ];
    let arguments: Vec<&str> = files.iter().map(|(file, _)| file.as_str()).collect();
    let (stdout, _) = run_with(env!("CARGO_BIN_EXE_classify"), &model, &arguments);
    for (line, (file, label)) in stdout.lines().zip(&files) {
        assert!(line.starts_with(&format!("{file}: {label}")), "{line}");
    }
    assert_eq!(stdout.lines().count(), files.len());
}

#[test]
#[cfg(feature = "onnx")]
fn any_graph_says_what_it_takes_and_gives() {
    let model = build_support::fixtures::model("tiny-onnx-encoder").expect("`cargo xtask setup` makes it");
    let (stdout, _) = run_with(env!("CARGO_BIN_EXE_onnx_graph"), &model.join("model.onnx"), &["3"]);
    assert!(stdout.contains("takes input_ids : int64[batch_size, sequence_length]\n"), "{stdout}");
    assert!(stdout.contains("gives last_hidden_state : float32[3, 3, "), "{stdout}");
    assert!(stdout.ends_with(" a run\n"), "{stdout}");
}

#[test]
#[cfg(feature = "mlx")]
fn arrays_go_with_their_scopes() {
    let (stdout, _) = outcome(&mut Command::new(env!("CARGO_BIN_EXE_mlx_arrays")));
    let [one, hundred] = ["\n1 steps: ", "\n100 steps: "].map(|steps| {
        let line = stdout.split_once(steps).unwrap_or_else(|| panic!("{stdout}")).1.lines().next().unwrap();
        line.rsplit_once("; ").unwrap().1.to_owned()
    });
    assert_eq!(one.split(' ').skip(1).collect::<Vec<_>>(), ["arrays", "are", "there"], "{stdout}");
    let count = |line: &str| line.split(' ').next().unwrap().parse::<usize>().unwrap();
    assert!(count(&hundred) < count(&one) + 110, "each step leaves the one array that it keeps: {stdout}");
    assert!(stdout.contains("length 1.000") && stdout.contains("refused: "), "{stdout}");
    assert!(stdout.ends_with("at the end: 0 arrays\n"), "{stdout}");
}

#[test]
fn a_function_is_called_and_its_result_told() {
    let (stdout, _) = run(env!("CARGO_BIN_EXE_tools"), &["How far is it from Bergen to Oslo by sea?"]);
    let (call, answer) = stdout.split_once('\n').unwrap();
    let (call, result) = call.split_once(" = ").unwrap();
    let known = call.starts_with("distance({\"from\": ") && result.ends_with(" km")
        || call.starts_with("ferry({\"port\": ") && result.starts_with("at ");
    assert!(known, "the first answer is a call that fits its schema: {stdout}");
    assert!(!answer.trim().is_empty(), "{stdout}");
}

#[test]
fn many_ask_and_share_what_they_have_in_common() {
    let (stdout, _) = run(env!("CARGO_BIN_EXE_serve_many"), &[]);
    assert!(stdout.matches("?\n    ").count() == 12, "{stdout}");
    let numbers = |line: &str| -> Vec<f64> {
        line.split(|c: char| !c.is_ascii_digit() && c != '.').filter_map(|number| number.parse().ok()).collect()
    };
    let (rate, figures) = (stdout.lines().rev().nth(1).unwrap(), stdout.lines().last().unwrap());
    assert!(numbers(rate)[0] > 12.0 && numbers(rate)[2] > 0.0, "{rate}");
    let [steps, computed, cached] = numbers(figures)[..] else { panic!("{figures}") };
    // A step for each token of one text after the other would be more; and what all prompts begin with is most of them.
    assert!(steps < numbers(rate)[0] && cached > computed, "{rate}\n{figures}");
}

#[test]
fn streams_are_awaited_dropped_and_ended_by_the_clock() {
    let (stdout, _) = run(env!("CARGO_BIN_EXE_async_stream"), &[]);
    assert!(stdout.contains("ended by: length, 32 tokens"), "{stdout}");
    let dropped = stdout.rsplit_once("dropped after ").unwrap().1.split_once(" tokens").unwrap().0;
    assert!((40..400).contains(&dropped.parse::<usize>().unwrap()), "{stdout}");
    assert!(stdout.contains("late: ended by: deadline"), "{stdout}");
}

#[test]
fn a_text_by_a_schema_is_a_struct() {
    let (stdout, _) = run(env!("CARGO_BIN_EXE_structured"), &[]);
    assert!(stdout.starts_with("{\"subject\": \""), "{stdout}");
    let stars = stdout.rsplit_once("stars: ").unwrap().1.trim().parse::<u8>().unwrap();
    assert!((1..=5).contains(&stars) && stdout.contains("\nmood: "), "{stdout}");
}
