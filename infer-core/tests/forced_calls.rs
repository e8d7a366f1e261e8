//! Calls that must be made: whatever is drawn is a call, in the form of the model's family.

use infer_core::{
    Constraint, ErrorKind, Sampling, SpecialTokens, Token, TokenFlags, Vocab, VocabKind,
    chat::{AnswerFormat, AnswerParts, Markers, OutputParser, ToolCall, ToolChoice, ToolFormat, Tools},
    sampling::Sampler,
};
use std::sync::Arc;

const TOOLS: &str = r##"[
    {"type": "function", "function": {"name": "weather", "parameters": {"type": "object", "required": ["city", "days"], "properties": {
        "days": {"type": "integer", "minimum": 1, "maximum": 7}, "city": {"$ref": "#/$defs/city"}}, "$defs": {"city": {"enum": ["Rome", "Oslo \"N\""]}}}}},
    {"name": "now"},
    {"name": "zone-2", "parameters": {"properties": {"utc": {"type": "boolean"}}}}
]"##;

fn tools() -> Tools {
    Tools::parse(TOOLS).unwrap()
}

const END: Token = Token(256);

/// Each byte, what ends a text, and these control tokens.
fn vocab(control: &[&str]) -> Arc<Vocab> {
    let bytes = (0..=u8::MAX).map(|byte| (vec![byte], TokenFlags::BYTE));
    let end = [(b"<end>".to_vec(), TokenFlags::END)];
    let control = control.iter().map(|name| (name.as_bytes().to_vec(), TokenFlags::CONTROL));
    Arc::new(Vocab::new(VocabKind::Bpe, SpecialTokens::default(), bytes.chain(end).chain(control)).unwrap())
}

fn demand(choice: &ToolChoice, parallel: bool, format: &AnswerFormat, vocab: &Vocab) -> Constraint {
    tools().constraint(choice, parallel, format, vocab).unwrap().unwrap()
}

/// A text drawn where nothing speaks for one token more than for another; `None` where it has no end for long.
fn draw(constraint: &Constraint, vocab: &Arc<Vocab>, seed: u64) -> Option<String> {
    let sampling = Sampling::default().with_temperature(1.0).with_seed(seed).with_constraint(constraint.clone());
    let mut sampler = Sampler::for_vocab(&sampling, &[], vocab).unwrap();
    let (row, mut text, mut len) = (vec![0.0_f32; vocab.len()], Vec::new(), 0);
    while len < 2000 {
        let mut drawn = Vec::new();
        sampler.sample(&row, len, &mut drawn).unwrap();
        let tokens: Vec<Token> = drawn.iter().map(|sampled| sampled.token).collect();
        if tokens[0] == END {
            return Some(String::from_utf8(text).unwrap());
        }
        sampler.accept(len, &tokens);
        len += tokens.len();
        text.extend(tokens.iter().flat_map(|&token| vocab.bytes(token).unwrap()));
    }
    None
}

/// Whether a model may write these tokens and then end.
fn allows(constraint: &Constraint, vocab: &Arc<Vocab>, tokens: &[Token]) -> bool {
    let sampling =
        Sampling::default().with_temperature(1.0).with_constraint(constraint.clone().with_forced_tokens(false));
    let mut sampler = Sampler::for_vocab(&sampling, &[], vocab).unwrap();
    let (row, mut may) = (vec![0.0_f32; vocab.len()], Vec::new());
    tokens.iter().chain([&END]).enumerate().all(|(at, token)| {
        sampler.distribution(&row, at, &mut may).unwrap();
        sampler.accept(at, &[*token]);
        may.iter().any(|(other, _)| other == token)
    })
}

fn bytes(text: &str) -> Vec<Token> {
    text.bytes().map(|byte| Token(byte.into())).collect()
}

fn parse(format: &AnswerFormat, text: &str) -> AnswerParts {
    let (mut parser, mut parts) = (OutputParser::new(format).unwrap(), AnswerParts::default());
    parser.push(text, &mut parts);
    parser.finish(&mut parts);
    parts
}

/// Whether the call fits the schemas, asked of other code than that which made it.
fn fits(call: &ToolCall) -> bool {
    let given: serde_json::Value = serde_json::from_str(&call.arguments).unwrap();
    let given = given.as_object().unwrap();
    match call.name.as_str() {
        "weather" => {
            let days = given["days"].as_u64().unwrap();
            given.len() == 2
                && (1..=7).contains(&days)
                && ["Rome", "Oslo \"N\""].contains(&given["city"].as_str().unwrap())
        }
        "now" => given.is_empty(),
        "zone-2" => given.iter().all(|(name, value)| name == "utc" && value.is_boolean()),
        _ => false,
    }
}

#[test]
fn whatever_is_drawn_is_calls_in_the_form_of_each_family() {
    let vocab = vocab(&[]);
    for family in ToolFormat::known() {
        let format = AnswerFormat::new().with_tools(family.clone());
        let constraint = demand(&ToolChoice::Required, true, &format, &vocab);
        let mut most = 0;
        for seed in 0..12 {
            let text = draw(&constraint, &vocab, seed).unwrap_or_else(|| panic!("{}: no end", family.name));
            let read = parse(&format, &text);
            assert!(read.content.is_empty() && !read.calls.is_empty(), "{}: {text}", family.name);
            assert!(read.calls.iter().all(fits), "{}: {text}", family.name);
            most = most.max(read.calls.len());
        }
        assert!(most > 1, "{}: several calls may be", family.name);
    }
}

#[test]
fn one_function_that_is_named_is_called_once() {
    let vocab = vocab(&[]);
    for family in ToolFormat::known() {
        let format = AnswerFormat::new().with_tools(family);
        let named = demand(&ToolChoice::Named("zone-2".into()), true, &format, &vocab);
        let single = demand(&ToolChoice::Required, false, &format, &vocab);
        for seed in 0..6 {
            let calls = parse(&format, &draw(&named, &vocab, seed).unwrap()).calls;
            assert!(calls.len() == 1 && calls[0].name == "zone-2" && fits(&calls[0]), "{calls:?}");
            assert_eq!(parse(&format, &draw(&single, &vocab, seed).unwrap()).calls.len(), 1);
        }
    }
}

#[test]
fn markers_that_are_control_tokens_come_as_such() {
    let vocab = vocab(&["[TOOL_CALLS]", "[ARGS]", "[OTHER]"]);
    let (calls, args) = (Token(257), Token(258));
    let constraint =
        demand(&ToolChoice::Required, true, &AnswerFormat::new().with_tools(ToolFormat::mistral_named()), &vocab);
    let written = [vec![calls], bytes("now"), vec![args], bytes("{}")].concat();
    assert!(allows(&constraint, &vocab, &written));
    assert!(!allows(&constraint, &vocab, &bytes("[TOOL_CALLS]now[ARGS]{}")), "not letter by letter");
}

#[test]
fn the_form_is_the_one_that_models_write() {
    let vocab = vocab(&[]);
    let weather = r#"{"days": 2, "city": "Rome"}"#;
    for (family, text) in [
        (
            ToolFormat::hermes(),
            format!("<tool_call>\n{{\"name\": \"weather\", \"arguments\": {weather}}}\n</tool_call>"),
        ),
        (
            ToolFormat::llama3(),
            format!(
                "{{\"name\": \"weather\", \"parameters\": {weather}}}; {{\"name\": \"now\", \"parameters\": {{}}}}"
            ),
        ),
        (ToolFormat::llama_named(), format!("<function=weather>{weather}</function>")),
        (
            ToolFormat::mistral(),
            format!("[TOOL_CALLS][{{\"name\": \"weather\", \"arguments\": {weather}, \"id\": \"abcDEF123\"}}]"),
        ),
    ] {
        let format = AnswerFormat::new().with_tools(family);
        let constraint = demand(&ToolChoice::Required, true, &format, &vocab);
        assert!(allows(&constraint, &vocab, &bytes(&text)), "{text}");
        for wrong in ["weather", "Rome", "2"] {
            assert!(!allows(&constraint, &vocab, &bytes(&text.replace(wrong, "9"))), "{text} without {wrong}");
        }
        assert!(!allows(&constraint, &vocab, &bytes(&format!("Well. {text}"))));
    }
}

#[test]
fn reasoning_may_come_first() {
    let call = "<tool_call>\n{\"name\": \"now\", \"arguments\": {}}\n</tool_call>";
    let format =
        AnswerFormat::new().with_tools(ToolFormat::hermes()).with_reasoning(Markers::new("<think>", "</think>"));
    for control in [&["<think>", "</think>"][..], &[]] {
        let vocab = vocab(control);
        let think = |name: &str| match control.iter().position(|control| *control == name) {
            Some(at) => vec![Token(257 + at as u32)],
            None => bytes(name),
        };
        let thought = [bytes("\nWhat < is </ it?\n"), think("</think>"), bytes("\n\n"), bytes(call)].concat();
        let before = demand(&ToolChoice::Required, true, &format, &vocab);
        assert!(allows(&before, &vocab, &[think("<think>"), thought.clone()].concat()));
        assert!(allows(&before, &vocab, &bytes(call)));
        assert!(!allows(&before, &vocab, &thought));
        let inside = demand(&ToolChoice::Required, true, &format.clone().with_reasoning_open(true), &vocab);
        assert!(allows(&inside, &vocab, &thought));
        assert!(!allows(&inside, &vocab, &bytes(call)), "what was opened is closed first");
    }
}

#[test]
fn what_cannot_be_demanded_is_an_error() {
    let (vocab, hermes) = (vocab(&[]), AnswerFormat::new().with_tools(ToolFormat::hermes()));
    let ask = |tools: &str, choice: &ToolChoice, format: &AnswerFormat| {
        Tools::parse(tools).unwrap().constraint(choice, true, format, &vocab)
    };
    assert_eq!(ask(TOOLS, &ToolChoice::Auto, &hermes).unwrap(), None);
    assert_eq!(ask("[]", &ToolChoice::None, &hermes).unwrap(), None);
    let required = ToolChoice::Required;
    let refused = |tools: &str, choice: &ToolChoice, format: &AnswerFormat, kind: ErrorKind, said: &str| {
        let error = ask(tools, choice, format).unwrap_err();
        assert!(error.kind() == kind && error.to_string().contains(said), "{error}");
    };
    refused("[]", &required, &hermes, ErrorKind::InvalidInput, "no tools are given");
    let named = ToolChoice::Named("date".into());
    refused(
        TOOLS,
        &named,
        &hermes,
        ErrorKind::InvalidInput,
        "`date` is required, which is not given; there are: weather, now, zone-2",
    );
    refused(TOOLS, &required, &AnswerFormat::new(), ErrorKind::Unsupported, "ToolFormat");
    let odd = r#"[{"name": "a", "parameters": {"properties": {"x": {"uniqueItems": true}}}}]"#;
    refused(
        odd,
        &required,
        &hermes,
        ErrorKind::InvalidConstraint,
        "the parameters of the tool `a`: #/properties/x/uniqueItems",
    );
    let dangling = r##"[{"name": "a", "parameters": {"properties": {"x": {"$ref": "#/$defs/y"}}}}]"##;
    refused(dangling, &required, &hermes, ErrorKind::InvalidConstraint, "is not there");
}

#[test]
fn schemas_that_name_no_others_are_closed_only_at_their_top() {
    let vocab = vocab(&[]);
    let hermes = AnswerFormat::new().with_tools(ToolFormat::hermes());
    let may = |parameters: &str, arguments: &str| {
        let tools = Tools::parse(&format!("[{{\"name\": \"f\", \"parameters\": {parameters}}}]")).unwrap();
        let constraint = tools.constraint(&ToolChoice::Required, true, &hermes, &vocab).unwrap().unwrap();
        let text = format!("<tool_call>\n{{\"name\": \"f\", \"arguments\": {arguments}}}\n</tool_call>");
        allows(&constraint, &vocab, &bytes(&text))
    };
    let one = r#"{"properties": {"a": {"type": "integer"}}}"#;
    assert!(may(one, "{}") && may(one, "{\"a\": 1}"));
    assert!(!may(one, "{\"b\": 1}"), "not named");
    assert!(!may(one, "[]") && !may("{}", "3"), "arguments are an object");
    assert!(may("{}", "{\"b\": 1}"), "nothing is named");
    let open = r#"{"properties": {"a": {"type": "integer"}}, "additionalProperties": {"type": "integer"}}"#;
    assert!(may(open, "{\"a\": 1, \"b\": 1}"));
    let composed =
        r#"{"properties": {"a": {"type": "integer"}}, "anyOf": [{"properties": {"b": {"type": "integer"}}}]}"#;
    assert!(may(composed, "{\"a\": 1, \"b\": 1}"));
}
