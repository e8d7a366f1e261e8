//! `infer chat` with a real model, on a pipe.

use std::{
    io::{BufRead, BufReader, Read, Write},
    process::{ChildStderr, ChildStdin, ChildStdout, Command, Output, Stdio},
    thread::JoinHandle,
};

fn infer(arguments: &[&str]) -> Command {
    let model = build_support::fixtures::model("smollm2").expect("`cargo xtask setup --only smollm2` brings it");
    let mut command = Command::new(assert_cmd::cargo::cargo_bin("infer"));
    command.args(["chat", "--threads", "1", "--model"]).arg(model).args(arguments).env_remove("INFER_LOG");
    command
}

/// Says these lines, and gives exit code, stdout and stderr.
fn say(lines: &str, arguments: &[&str]) -> (i32, String, String) {
    let mut command = assert_cmd::Command::from_std(infer(arguments));
    command.timeout(test_kit::child::LONG);
    let output = command.write_stdin(lines).output().unwrap();
    let text = |bytes| String::from_utf8(bytes).unwrap();
    (output.status.code().expect("it was not killed"), text(output.stdout), text(output.stderr))
}

/// Of each answer: tokens of the prompt, those that were new, those of the answer.
fn figures(stderr: &str) -> Vec<[usize; 3]> {
    let lines = stderr.lines().filter(|line| line.contains("prompt tokens,"));
    let numbers = lines.map(|line| {
        let mut numbers = line.split(|c: char| !c.is_ascii_digit()).filter_map(|number| number.parse().ok());
        std::array::from_fn(|_| numbers.next().unwrap())
    });
    numbers.collect()
}

#[test]
fn a_conversation_is_kept_and_only_what_is_new_is_computed() {
    let (code, stdout, stderr) =
        say("My name is Ann.\n\nWhat is my name?\n", &["--system", "Be brief.", "--max-tokens", "24"]);
    assert_eq!(code, 0, "{stderr}");
    assert!(stdout.ends_with('\n') && stdout.lines().count() >= 2, "{stdout}");
    let [[first, first_new, _], [second, second_new, _]] = figures(&stderr)[..] else { panic!("{stderr}") };
    assert_eq!(first, first_new);
    assert!(second > first && second_new < second - first, "{stderr}");
}

#[test]
fn commands_are_no_messages() {
    let ask = ["--max-tokens", "8"];
    let (_, once, first) = say("What is 2+2?\n", &ask);
    let (code, twice, stderr) = say("/help\nWhat is 2+2?\n/clear\nWhat is 2+2?\n/exit\nAnd 3+3?\n", &ask);
    assert_eq!((code, twice), (0, once.repeat(2)), "{stderr}");
    assert!(stderr.contains("/clear begins the conversation anew"), "{stderr}");
    let figures = [figures(&first), figures(&stderr)].concat();
    assert_eq!((figures.len(), figures[2][0]), (3, figures[0][0]), "nothing is left of what was cleared: {stderr}");
    let (code, stdout, stderr) = say("/clean\nHello\n", &ask);
    assert!(code == 1 && stdout.is_empty() && stderr.contains("there is no command /clean"), "{stderr}");
    let (code, _, stderr) = say(" /clean means what?", &ask);
    assert_eq!((code, self::figures(&stderr).len()), (0, 1), "a space before it, and no line break after it: {stderr}");
}

#[test]
fn a_conversation_that_is_too_long_forgets_its_beginning() {
    let message = "Tell me something about ".to_owned() + &"very ".repeat(20) + "old boats.\n";
    let (code, stdout, stderr) = say(&message.repeat(6), &["--ctx", "256", "--max-tokens", "32"]);
    assert_eq!(code, 0, "{stderr}");
    assert!(stdout.lines().count() >= 6, "{stdout}");
    let figures = figures(&stderr);
    assert!(stderr.contains("oldest turns are left out") && figures.len() == 6, "{stderr}");
    assert!(figures.iter().all(|[prompt, ..]| prompt + 32 <= 256), "{stderr}");
    // What is too long alone cannot be helped.
    let (code, stdout, stderr) = say(&message.repeat(10).replace('\n', " "), &["--ctx", "256"]);
    assert_eq!((code, stdout.as_str()), (1, ""));
    assert!(stderr.contains("the prompt has") && stderr.contains("256"), "{stderr}");
}

#[test]
fn answers_keep_to_what_was_asked_for() {
    let (code, stdout, stderr) = say("Is water wet?\nIs fire cold?\n", &["--regex", "(Yes|No)\\."]);
    assert_eq!(code, 0, "{stderr}");
    assert!(stdout.lines().count() == 2 && stdout.lines().all(|line| ["Yes.", "No."].contains(&line)), "{stdout}");
    let (code, stdout, _) = say("One two three", &["--stop", " ", "--max-tokens", "8", "--temperature", "0.5"]);
    assert!(code == 0 && !stdout.contains(' '), "{stdout}");
}

#[test]
fn a_model_without_a_template_does_not_talk() {
    let model = build_support::fixtures::model("tiny-llama").expect("the tiny ones are made");
    let mut command = assert_cmd::Command::cargo_bin("infer").unwrap();
    command.timeout(test_kit::child::LONG);
    let output = command.args(["chat", "--model"]).arg(model).write_stdin("Hello\n").output().unwrap();
    assert_eq!((output.status.code(), output.stdout.len()), (Some(1), 0));
    assert!(String::from_utf8(output.stderr).unwrap().contains("chat template"));
}

/// A conversation that goes on while it is looked at.
struct Live {
    id: u32,
    ends: JoinHandle<Output>,
    stdin: ChildStdin,
    stdout: ChildStdout,
    stderr: BufReader<ChildStderr>,
}

impl Live {
    fn new(arguments: &[&str]) -> Self {
        let mut command = infer(arguments);
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let (stdin, stdout) = (child.stdin.take().unwrap(), child.stdout.take().unwrap());
        let stderr = BufReader::new(child.stderr.take().unwrap());
        Self { id: child.id(), ends: test_kit::child::watched(child, test_kit::child::LONG), stdin, stdout, stderr }
    }

    fn say(&mut self, line: &str) {
        writeln!(self.stdin, "{line}").unwrap();
    }

    /// Waits until something of an answer has come.
    fn wait_for_text(&mut self) {
        self.stdout.read_exact(&mut [0; 8]).unwrap();
    }

    fn note(&mut self) -> String {
        let mut line = String::new();
        self.stderr.read_line(&mut line).unwrap();
        line
    }

    #[cfg(unix)]
    fn press_ctrl_c(&self) {
        assert!(Command::new("kill").args(["-INT", &self.id.to_string()]).status().unwrap().success());
    }
}

#[cfg(unix)]
#[test]
fn ctrl_c_stops_an_answer_and_then_the_program() {
    let mut live = Live::new(&["--max-tokens", "4000", "--ctx", "8192", "--system", "You tell very long stories."]);
    live.say("Write a very long story of a ship.");
    live.wait_for_text();
    live.press_ctrl_c();
    let note = live.note();
    assert!(note.contains(", stopped]"), "{note}");
    let [first, _, said] = figures(&note)[0];
    live.say("How did it end?");
    live.wait_for_text();
    live.press_ctrl_c();
    let note = live.note();
    let [prompt, new, _] = figures(&note)[0];
    assert!(prompt >= first + said && new < prompt - first, "what was said until then stays: {note}");
    // Nothing is being answered now.
    live.press_ctrl_c();
    assert_eq!(live.ends.join().unwrap().status.code(), Some(130));
}
