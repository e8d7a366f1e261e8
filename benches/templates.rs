//! The model's chat template beside Jinja2, the engine it was written for: the same text, character for character.

use build_support::{cache::Cache, env::Env, fixtures, tools};
use infer::chat::{Message, RenderOptions};
use infer_benches::{Bar, Figure, Run};
use serde_json::{Value, json};
use std::{
    io::Write,
    process::{Command, ExitCode, Stdio},
};

/// What people write: several languages, blank edges, what looks like a tag or like the template's own marks.
const TEXTS: &[&str] = &[
    "Name three rivers.",
    "  leading and trailing  \n\n",
    "Где находится Байкал? 琵琶湖はどこ？ 🙂",
    "{{ not a template }} {% nor this %} <|im_end|>",
    "a \"quote\", a back\\slash, a\ttab",
    "",
];

fn main() -> ExitCode {
    let mut run = Run::from_args();
    let env = Env::from_process();
    let python = Cache::from_env(&env).and_then(|cache| tools::jinja2(&env, &cache));
    let Some(python) = python.unwrap_or_else(|error| panic!("{error}")) else {
        eprintln!("  Jinja2 is not there to compare with: cargo xtask peers");
        return ExitCode::FAILURE;
    };
    let path = fixtures::model("smollm2").unwrap_or_else(|error| panic!("{error}"));
    let model = infer::ModelSource::new(path).with_vocab_only(true).open().unwrap_or_else(|error| panic!("{error}"));
    let template = infer::chat_template(&*model).unwrap_or_else(|error| panic!("{error}"));

    let conversations = conversations();
    run.progress(&format!("{} conversations", conversations.len()));
    let theirs = render(python, model.info().chat_template.as_deref().unwrap_or_default(), &conversations);
    let options = RenderOptions::new().with_generation_prompt(true);
    let differ = conversations.iter().zip(&theirs).filter(|(conversation, theirs)| {
        let messages: Vec<_> = conversation.iter().map(|(role, text)| Message::new(*role, *text)).collect();
        template.render(&messages, &options).unwrap_or_else(|error| panic!("{error}")) != **theirs
    });
    let figure = Figure::new("templates/differ", differ.count() as f64, "conversations").with_bar(Bar::AtMost(0.0));
    run.figure(figure.with_note(format!("of {}, against Jinja2", conversations.len())));
    run.finish()
}

type Conversation = Vec<(&'static str, &'static str)>;

/// Each text as a first question, after a system message, and as an answer before another question.
fn conversations() -> Vec<Conversation> {
    let shapes = |text| {
        [
            vec![("user", text)],
            vec![("system", text), ("user", "Go on.")],
            vec![("user", "Begin."), ("assistant", text), ("user", text)],
        ]
    };
    TEXTS.iter().flat_map(|text| shapes(text)).collect()
}

fn render(mut python: Command, template: &str, conversations: &[Conversation]) -> Vec<String> {
    let message = |(role, content): &(&str, &str)| json!({ "role": role, "content": content });
    let all: Vec<Vec<Value>> = conversations.iter().map(|all| all.iter().map(message).collect()).collect();
    let task = json!({ "template": template, "bos": "<|im_start|>", "eos": "<|im_end|>", "conversations": all });
    python.arg(concat!(env!("CARGO_MANIFEST_DIR"), "/peers/template.py")).stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut child = python.spawn().unwrap_or_else(|error| panic!("cannot start Python: {error}"));
    let mut input = child.stdin.take().expect("it is piped");
    input.write_all(task.to_string().as_bytes()).expect("Python reads its input");
    drop(input);
    let output = child.wait_with_output().expect("Python ends");
    assert!(output.status.success(), "Jinja2 refused the template: see above");
    serde_json::from_slice(&output.stdout).expect("the script prints a list of texts")
}
