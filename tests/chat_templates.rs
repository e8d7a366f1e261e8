//! The chat templates that come with llama.cpp, as models have them: which family each is of, and that what a template makes
//! of a call is read as that call again.

use infer::{
    Detokenizer, ModelSource, Token,
    chat::{AnswerFormat, AnswerParts, Message, OutputParser, RenderOptions, Template, ToolCall, ToolFormat},
};
use std::{collections::BTreeMap, fs, path::Path};

/// How many the pinned tree has: fewer means that a fixture is missing, more that the pin was moved.
const COUNT: usize = 70;

/// Those whose family is known. The others know no tools, or write calls in a way that no format can say: tags for each
/// argument, or code.
const FAMILIES: &[(&str, &[&str])] = &[
    ("apriel", &["Apriel-1.6-15b-Thinker-fixed", "unsloth-Apriel-1.5"]),
    ("command-r", &["Cohere2MoE", "CohereForAI-c4ai-command-r7b-12-2024-tool_use"]),
    (
        "deepseek-r1",
        &[
            "deepseek-ai-DeepSeek-R1-Distill-Llama-8B",
            "deepseek-ai-DeepSeek-R1-Distill-Qwen-32B",
            "llama-cpp-deepseek-r1",
        ],
    ),
    ("deepseek-v3", &["deepseek-ai-DeepSeek-V3.1"]),
    ("granite3", &["ibm-granite-granite-3.3-2B-Instruct"]),
    (
        "hermes",
        &[
            "Bielik-11B-v3.0-Instruct",
            "MiMo-VL",
            "NousResearch-Hermes-2-Pro-Llama-3-8B-tool_use",
            "NousResearch-Hermes-3-Llama-3.1-8B-tool_use",
            "Qwen-QwQ-32B",
            "Qwen-Qwen2.5-7B-Instruct",
            "Qwen-Qwen3-0.6B",
            "Reka-Edge",
            "ibm-granite-granite-4.0",
            "ibm-granite-granite-4.1",
        ],
    ),
    ("kimi-k2", &["Kimi-K2-Instruct", "Kimi-K2-Thinking", "moonshotai-Kimi-K2"]),
    ("llama-named", &["meetkai-functionary-medium-v3.1"]),
    (
        "llama3",
        &["meta-llama-Llama-3.1-8B-Instruct", "meta-llama-Llama-3.2-3B-Instruct", "meta-llama-Llama-3.3-70B-Instruct"],
    ),
    ("mistral", &["mistralai-Mistral-Nemo-Instruct-2407"]),
    ("mistral-named", &["mistralai-Ministral-3-14B-Reasoning-2512", "unsloth-mistral-Devstral-Small-2507"]),
    ("mistral-named-ids", &["Mistral-Small-3.2-24B-Instruct-2506"]),
    ("nemotron", &["NVIDIA-Nemotron-Nano-v2"]),
];

/// Those that do not show a call, and why.
const NO_CALLS: &[(&str, &str)] = &[
    ("Kimi-K2-Instruct", "no method named append"),
    ("Kimi-K2-Thinking", "no method named append"),
    ("ibm-granite-granite-3.3-2B-Instruct", "knows no calls"),
];

/// Those that show one call and no more.
const ONE_CALL: &[&str] =
    &["meta-llama-Llama-3.1-8B-Instruct", "meta-llama-Llama-3.2-3B-Instruct", "meta-llama-Llama-3.3-70B-Instruct"];

const TOOLS: &str = r#"[{"type": "function", "function": {"name": "weather", "description": "The weather.", "parameters":
    {"type": "object", "properties": {"city": {"type": "string"}, "days": {"type": "integer"}}, "required": ["city"]}}}]"#;

/// Every template by the name of its file.
fn templates() -> BTreeMap<String, String> {
    let folder = build_support::fixtures::templates().unwrap_or_else(|error| panic!("{error}"));
    let files = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let jinja = files.filter(|path| path.extension().is_some_and(|end| end == "jinja"));
    let name = |path: &Path| path.file_stem().unwrap().to_str().unwrap().to_owned();
    let all: BTreeMap<_, _> = jinja.map(|path| (name(&path), fs::read_to_string(path).unwrap())).collect();
    assert_eq!(all.len(), COUNT);
    all
}

#[test]
fn families_are_told_apart() {
    let mut found: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for (name, source) in templates() {
        if let Some(format) = ToolFormat::detect(&source) {
            found.entry(format.name).or_default().push(name);
        }
    }
    let expected: BTreeMap<String, Vec<String>> = FAMILIES
        .iter()
        .map(|(family, names)| ((*family).into(), names.iter().map(|&name| name.into()).collect()))
        .collect();
    assert_eq!(found, expected);
}

#[test]
fn reasoning_is_found_where_there_is_some() {
    let templates = templates();
    let end = |name: &str| AnswerFormat::detect(&templates[name]).reasoning.map(|markers| markers.end);
    for name in
        ["Qwen-Qwen3-0.6B", "Qwen-QwQ-32B", "deepseek-ai-DeepSeek-R1-Distill-Qwen-32B", "HuggingFaceTB-SmolLM3-3B"]
    {
        assert_eq!(end(name).as_deref(), Some("</think>"), "{name}");
    }
    assert_eq!(end("mistralai-Ministral-3-14B-Reasoning-2512").as_deref(), Some("[/THINK]"));
    for name in ["Qwen-Qwen2.5-7B-Instruct", "meta-llama-Llama-3.2-3B-Instruct", "google-gemma-2-2b-it"] {
        assert_eq!(end(name), None, "{name}");
    }
    // Some open it in the prompt, and some do so when they are told to.
    let open = |name: &str, thinking: &str| {
        let options = RenderOptions::new().with_variable("enable_thinking", thinking);
        let prompt = Template::new(&templates[name]).unwrap().render(&[Message::user("Hi")], &options).unwrap();
        AnswerFormat::detect(&templates[name]).for_prompt(&prompt).reasoning_open
    };
    assert!(open("Qwen-QwQ-32B", "true") && open("deepseek-ai-DeepSeek-R1-Distill-Qwen-32B", "true"));
    assert!(
        !open("Qwen-Qwen3-0.6B", "true") && !open("Qwen-Qwen3-0.6B", "false"),
        "it opens and closes it, or neither"
    );
}

/// What a template writes of these calls, behind what it writes for an answer to begin, where it begins all answers so.
fn written(source: &str, calls: &[ToolCall]) -> infer::Result<String> {
    let template = Template::new(source)?;
    let conversation = [Message::user("Weather?"), Message::assistant_calls(calls)];
    let options = RenderOptions::new().with_tools(TOOLS);
    let closed = options.clone().with_generation_prompt(false);
    let (open, before) =
        (template.render(&conversation[..1], &options)?, template.render(&conversation[..1], &closed)?);
    let after = template.render(&conversation, &closed)?;
    if let Some(answer) = after.strip_prefix(&open) {
        return Ok(answer.to_owned());
    }
    let common = before.bytes().zip(after.bytes()).take_while(|(before, after)| before == after).count();
    Ok(after[after.floor_char_boundary(common)..].to_owned())
}

#[test]
fn what_a_template_writes_of_a_call_is_read_as_that_call() {
    let calls = [
        ToolCall::new("weather", r#"{"city": "Rome", "days": 2}"#).with_id("abcDEF123"),
        ToolCall::new("weather", r#"{"city": "\"N\" <b>"}"#).with_id("abcDEF124"),
    ];
    for (name, source) in templates() {
        let Some(tools) = ToolFormat::detect(&source) else { continue };
        let calls = if ONE_CALL.contains(&name.as_str()) { &calls[..1] } else { &calls[..] };
        let text = written(&source, calls);
        if let Some((_, why)) = NO_CALLS.iter().find(|(without, _)| *without == name) {
            let error = text.unwrap_err().to_string();
            assert!(error.contains(why), "{name}: {error}");
            continue;
        }
        let text = text.unwrap_or_else(|error| panic!("{name}: {error}"));
        let mut parser = OutputParser::new(&AnswerFormat::new().with_tools(tools)).unwrap();
        let mut read = AnswerParts::default();
        parser.push(&text, &mut read);
        parser.finish(&mut read);
        let plain = |calls: &[ToolCall]| -> Vec<_> {
            calls.iter().map(|call| (call.name.clone(), call.arguments.clone())).collect()
        };
        assert_eq!(plain(&read.calls), plain(calls), "{name}: {text}");
    }
}

#[test]
fn marks_are_shown_whether_they_are_control_tokens_or_not() {
    let path = build_support::fixtures::vocabularies().unwrap().join("ggml-vocab-gemma-4.gguf");
    let model = ModelSource::new(path).with_vocab_only(true).open().unwrap();
    let vocab = model.tokenizer().vocab().clone();
    let token = |name: &str| {
        let named = |&token: &Token| vocab.bytes(token) == Some(name.as_bytes());
        (0..).map(Token).take(vocab.len()).find(named).unwrap()
    };
    let (tool, call) = (token("<|tool>"), token("<|tool_call>"));
    assert!(vocab.is_control(tool) && !vocab.is_control(call));
    let mut plain = Detokenizer::new(vocab.clone());
    assert_eq!(plain.decode(&[tool, call]).unwrap(), "<|tool_call>");
    let mut shown = Detokenizer::new(vocab.clone()).with_shown(["<|tool>", "<|tool_call>"]);
    assert_eq!(shown.decode(&[tool, call]).unwrap(), "<|tool><|tool_call>");
}
