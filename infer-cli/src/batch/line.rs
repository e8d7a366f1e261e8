//! One line of a batch's input: a request as a JSON object.

use super::{
    fields::{Fields, said},
    message,
};
use crate::constraint::closed;
use infer::{Constraint, Prompt, Request, Sampling, Token, chat::ToolChoice};
use serde::Deserialize;
use serde_json::value::RawValue;
use std::collections::BTreeMap;

/// The fields there are.
const FIELDS: [&str; 38] = [
    "id",
    "prompt",
    "messages",
    "tools",
    "tool_choice",
    "parallel_tool_calls",
    "max_tokens",
    "stop",
    "stop_tokens",
    "ignore_eos",
    "n",
    "adapter",
    "logprobs",
    "seed",
    "temperature",
    "top_k",
    "top_p",
    "min_p",
    "typical_p",
    "top_n_sigma",
    "xtc_probability",
    "xtc_threshold",
    "dynatemp_range",
    "dynatemp_exponent",
    "dry_multiplier",
    "dry_base",
    "dry_allowed_length",
    "dry_window",
    "repetition_penalty",
    "frequency_penalty",
    "presence_penalty",
    "penalty_window",
    "logit_bias",
    "json_schema",
    "regex",
    "grammar",
    "lark",
    "close",
];

/// What a line does not say.
#[derive(Debug)]
pub(crate) struct Defaults {
    /// Its prompt does not matter.
    pub(crate) request: Request,
    /// Whether a text with a constraint is to come to its end within the tokens it may have.
    pub(crate) close: bool,
}

/// What a line asks for.
#[derive(Debug)]
pub(crate) struct Line {
    /// What the answer is to be known by, if the line says: a text or a number, as it is written.
    pub(crate) id: Option<Box<RawValue>>,
    pub(crate) request: Request,
    /// Whether log-probabilities are to be told.
    pub(crate) has_logprobs: bool,
}

/// A line that is no request, and what it is to be known by, where it says so much.
#[derive(Debug)]
pub(crate) struct BadLine {
    pub(crate) id: Option<Box<RawValue>>,
    pub(crate) what: String,
}

impl Line {
    /// Reads a line.
    pub(crate) fn parse(text: &str, defaults: &Defaults) -> Result<Self, BadLine> {
        let mut fields = Fields::of(text).map_err(|what| BadLine { id: None, what })?;
        let id = fields.raw("id");
        if id.as_ref().is_some_and(|id| id.get().starts_with(['{', '[', 't', 'f'])) {
            return Err(BadLine { id: None, what: "`id`: a text or a number is wanted".to_owned() });
        }
        match fields.check(&FIELDS).and_then(|()| request(&mut fields, defaults)) {
            Ok((request, has_logprobs)) => {
                fields.end();
                Ok(Self { id, request, has_logprobs })
            }
            Err(what) => Err(BadLine { id, what }),
        }
    }
}

fn request(fields: &mut Fields, defaults: &Defaults) -> Result<(Request, bool), String> {
    let mut request = defaults.request.clone();
    request.prompt = prompt(fields)?;
    if let Some(tools) = fields.raw("tools") {
        message::check_tools(&tools)?;
        request.tools = Some(tools.get().to_owned());
    }
    if let Some(choice) = fields.raw("tool_choice") {
        request.tool_choice = tool_choice(&choice)?;
    }
    fields.set("parallel_tool_calls", &mut request.parallel_tool_calls)?;
    if let Some(most) = fields.take("max_tokens")? {
        request.max_tokens = Some(most);
    }
    if let Some(stop) = fields.texts("stop")? {
        request.stop = stop;
    }
    fields.set("stop_tokens", &mut request.stop_tokens)?;
    fields.set("ignore_eos", &mut request.ignore_end)?;
    fields.set("n", &mut request.n)?;
    if let Some(adapter) = fields.take("adapter")? {
        request.adapter = Some(adapter);
    }
    let logprobs = fields.take("logprobs")?;
    request.sampling.logprobs = logprobs.unwrap_or(0);
    sampling(fields, &mut request.sampling)?;
    if let Some(constraint) = constraint(fields)? {
        request.sampling.constraint = Some(constraint);
    }
    close(fields, defaults, &mut request)?;
    Ok((request, logprobs.is_some()))
}

fn prompt(fields: &mut Fields) -> Result<Prompt, String> {
    match (fields.raw("prompt"), fields.raw("messages")) {
        (Some(_), Some(_)) => Err("it has `prompt` and `messages`; one of them is wanted".to_owned()),
        (None, None) => Err("`prompt` or `messages` is wanted".to_owned()),
        (None, Some(messages)) => Ok(Prompt::Chat(message::parse(&messages)?)),
        (Some(prompt), None) if prompt.get().starts_with('[') => {
            let tokens: Vec<Token> = read("prompt", &prompt)?;
            Ok(Request::tokens(tokens).prompt)
        }
        (Some(prompt), None) => Ok(Request::text(read::<String>("prompt", &prompt)?).prompt),
    }
}

/// What the text must be, where the line says.
fn constraint(fields: &mut Fields) -> Result<Option<Constraint>, String> {
    let schema = fields.raw("json_schema").map(|schema| Constraint::json_schema(schema.get()));
    let regex = fields.take::<String>("regex")?.map(Constraint::regex);
    let grammar = fields.take::<String>("grammar")?.map(Constraint::gbnf);
    let lark = fields.take::<String>("lark")?.map(Constraint::lark);
    let mut all = [schema, regex, grammar, lark].into_iter().flatten();
    match (all.next(), all.next()) {
        (_, Some(_)) => Err("of `json_schema`, `regex`, `grammar` and `lark` it may have one".to_owned()),
        (one, None) => Ok(one),
    }
}

/// Has a constrained text come to its end within the tokens it may have.
fn close(fields: &mut Fields, defaults: &Defaults, request: &mut Request) -> Result<(), String> {
    let close: Option<bool> = fields.take("close")?;
    let constraint = request.sampling.constraint.take();
    request.sampling.constraint = match (constraint, request.max_tokens) {
        (None, _) if close == Some(true) => return Err("`close` is for a text with a constraint".to_owned()),
        (Some(constraint), Some(most)) if close.unwrap_or(defaults.close) => Some(closed(constraint, most)),
        (constraint, _) => constraint,
    };
    Ok(())
}

/// `auto`, `none`, `required`, or the one function that is to be called.
fn tool_choice(choice: &RawValue) -> Result<ToolChoice, String> {
    #[derive(Deserialize)]
    #[serde(deny_unknown_fields)]
    struct Named {
        #[serde(rename = "type")]
        _type: Option<String>,
        function: Function,
    }
    #[derive(Deserialize)]
    #[serde(deny_unknown_fields)]
    struct Function {
        name: String,
    }
    match choice.get() {
        r#""auto""# => Ok(ToolChoice::Auto),
        r#""none""# => Ok(ToolChoice::None),
        r#""required""# => Ok(ToolChoice::Required),
        named if named.starts_with('{') => Ok(ToolChoice::Named(read::<Named>("tool_choice", choice)?.function.name)),
        other => Err(format!(
            "`tool_choice` is {other}; there are auto, none, required, and {{\"function\": {{\"name\": …}}}}"
        )),
    }
}

fn read<T: serde::de::DeserializeOwned>(name: &str, value: &RawValue) -> Result<T, String> {
    serde_json::from_str(value.get()).map_err(|error| format!("`{name}`: {}", said(&error)))
}

fn sampling(fields: &mut Fields, sampling: &mut Sampling) -> Result<(), String> {
    fields.set("seed", &mut sampling.seed)?;
    fields.set("temperature", &mut sampling.temperature)?;
    fields.set("top_k", &mut sampling.top_k)?;
    fields.set("top_p", &mut sampling.top_p)?;
    fields.set("min_p", &mut sampling.min_p)?;
    fields.set("typical_p", &mut sampling.typical_p)?;
    fields.set("top_n_sigma", &mut sampling.top_n_sigma)?;
    fields.set("xtc_probability", &mut sampling.xtc_probability)?;
    fields.set("xtc_threshold", &mut sampling.xtc_threshold)?;
    fields.set("dynatemp_range", &mut sampling.dynatemp_range)?;
    fields.set("dynatemp_exponent", &mut sampling.dynatemp_exponent)?;
    fields.set("dry_multiplier", &mut sampling.dry_multiplier)?;
    fields.set("dry_base", &mut sampling.dry_base)?;
    fields.set("dry_allowed_length", &mut sampling.dry_allowed_length)?;
    fields.set("dry_window", &mut sampling.dry_window)?;
    fields.set("repetition_penalty", &mut sampling.repetition_penalty)?;
    fields.set("frequency_penalty", &mut sampling.frequency_penalty)?;
    fields.set("presence_penalty", &mut sampling.presence_penalty)?;
    fields.set("penalty_window", &mut sampling.penalty_window)?;
    if let Some(bias) = fields.take::<BTreeMap<u32, f32>>("logit_bias")? {
        sampling.logit_bias = bias.into_iter().map(|(token, bias)| (Token(token), bias)).collect();
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use infer::{Special, chat::Message};

    fn defaults() -> Defaults {
        let sampling = Sampling::default().with_seed(3).with_top_p(0.5);
        let request = Request::text("").with_max_tokens(256).with_stop("\n").with_sampling(sampling);
        Defaults { request, close: false }
    }

    fn parse(line: &str) -> Result<Request, String> {
        Line::parse(line, &defaults()).map(|line| line.request).map_err(|bad| bad.what)
    }

    #[test]
    fn what_a_line_does_not_say_is_as_the_flags_say() {
        let line = Line::parse(r#"{"prompt": "a\nb"}"#, &defaults()).unwrap();
        let mut expected = defaults().request;
        expected.prompt = Prompt::Text("a\nb".into(), Special::ADD);
        assert_eq!((line.request, line.has_logprobs, line.id.is_none()), (expected, false, true));
    }

    #[test]
    fn a_prompt_is_a_text_or_tokens_or_messages() {
        assert_eq!(parse(r#"{"prompt": [1, 2]}"#).unwrap().prompt, Prompt::Tokens(vec![Token(1), Token(2)]));
        let chat = parse(r#"{"messages": [{"role": "user", "content": "Hi"}]}"#).unwrap();
        assert_eq!(chat.prompt, Request::chat([Message::user("Hi")]).prompt);
    }

    #[test]
    fn every_field_is_taken() {
        let line = r#"{"id": "a-1", "prompt": "x", "max_tokens": 7, "stop": ["a", "b"], "stop_tokens": [4], "ignore_eos": true,
            "n": 2, "adapter": "tuned", "logprobs": 3, "seed": 18446744073709551615, "temperature": 0.7, "top_k": 40,
            "top_p": 0.9, "min_p": 0.05, "typical_p": 0.8, "top_n_sigma": 1.5, "xtc_probability": 0.1, "xtc_threshold": 0.2,
            "dynatemp_range": 0.3, "dynatemp_exponent": 1.1, "dry_multiplier": 0.8, "dry_base": 1.5, "dry_allowed_length": 3,
            "dry_window": 99, "repetition_penalty": 1.2, "frequency_penalty": 0.25, "presence_penalty": 0.5,
            "penalty_window": 32, "logit_bias": {"5": -100, "6": 1.5}}"#;
        let sampling = Sampling::default()
            .with_seed(u64::MAX)
            .with_temperature(0.7)
            .with_top_k(40)
            .with_top_p(0.9)
            .with_min_p(0.05)
            .with_typical_p(0.8)
            .with_top_n_sigma(1.5)
            .with_xtc(0.1, 0.2)
            .with_dynatemp(0.3, 1.1)
            .with_dry_multiplier(0.8)
            .with_dry_base(1.5)
            .with_dry_allowed_length(3)
            .with_dry_window(99)
            .with_repetition_penalty(1.2)
            .with_frequency_penalty(0.25)
            .with_presence_penalty(0.5)
            .with_penalty_window(32)
            .with_logit_bias(Token(5), -100.0)
            .with_logit_bias(Token(6), 1.5)
            .with_logprobs(3);
        let expected = Request::text("x")
            .with_max_tokens(7)
            .with_stop("a")
            .with_stop("b")
            .with_stop_token(Token(4))
            .with_ignore_end(true)
            .with_n(2)
            .with_adapter("tuned")
            .with_sampling(sampling);
        let line = Line::parse(line, &defaults()).unwrap();
        assert_eq!((line.request, line.has_logprobs), (expected, true));
        assert_eq!(line.id.unwrap().get(), r#""a-1""#);
    }

    #[test]
    fn tools_are_those_of_openai() {
        let tools = r#"[{"type": "function",  "function": {"name": "time"}}]"#;
        let request = |more: &str| parse(&format!(r#"{{"prompt": "x", "tools": {tools}{more}}}"#));
        let choice =
            |choice: &str| request(&format!(r#", "tool_choice": {choice}"#)).map(|request| request.tool_choice);
        assert_eq!(request("").unwrap().tools.as_deref(), Some(tools));
        assert_eq!(choice(r#""none""#), Ok(ToolChoice::None));
        assert_eq!(choice(r#""auto""#), Ok(ToolChoice::Auto));
        assert_eq!(choice(r#""required""#), Ok(ToolChoice::Required));
        let named = choice(r#"{"type": "function", "function": {"name": "time"}}"#);
        assert_eq!(named, Ok(ToolChoice::Named("time".to_owned())));
        assert!(choice(r#""sometimes""#).unwrap_err().starts_with("`tool_choice` is \"sometimes\"; there are auto"));
        let said = "`tool_choice`: unknown field `name`, expected `type` or `function`";
        assert!(choice(r#"{"name": "time"}"#).unwrap_err().starts_with(said));
        assert!(choice(r#"{"type": "function"}"#).unwrap_err().starts_with("`tool_choice`: missing field `function`"));
        let said = "`tool_choice`: unknown field `nme`, expected `name`";
        assert!(choice(r#"{"function": {"nme": "time"}}"#).unwrap_err().starts_with(said));
        assert!(!request(r#", "parallel_tool_calls": false"#).unwrap().parallel_tool_calls);
        let wrong = parse(r#"{"prompt": "x", "tools": [{"function": {"name": "f", "paramters": {}}}]}"#).unwrap_err();
        assert!(wrong.starts_with("tool 0: unknown field `paramters`; did you mean `parameters`?"), "{wrong}");
    }

    #[test]
    fn a_constraint_is_one_of_four() {
        let constraint = |more: &str| {
            parse(&format!(r#"{{"prompt": "x", "max_tokens": 9, {more}}}"#)).map(|request| request.sampling.constraint)
        };
        // As it is written: the order of properties is the order in the document.
        let schema = r#"{"type": "object",  "properties": {"b": {}, "a": {}}}"#;
        assert_eq!(constraint(&format!(r#""json_schema": {schema}"#)), Ok(Some(Constraint::json_schema(schema))));
        assert_eq!(constraint(r#""regex": "a+""#), Ok(Some(Constraint::regex("a+"))));
        assert_eq!(constraint(r#""grammar": "root ::= \"a\"""#), Ok(Some(Constraint::gbnf(r#"root ::= "a""#))));
        assert_eq!(constraint(r#""lark": "start: \"a\"""#), Ok(Some(Constraint::lark(r#"start: "a""#))));
        let closed = constraint(r#""regex": "a+", "close": true"#);
        assert_eq!(closed, Ok(Some(Constraint::regex("a+").with_budget(8))));
        assert!(constraint(r#""regex": "a+", "lark": "b""#).unwrap_err().contains("it may have one"));
        assert!(constraint(r#""close": true"#).unwrap_err().contains("`close`"));
    }

    #[test]
    fn a_constraint_of_the_flags_is_closed_by_the_lines_own_number() {
        let mut defaults = defaults();
        defaults.close = true;
        defaults.request.sampling.constraint = Some(Constraint::any_json());
        let budget = |line: &str| {
            let request = Line::parse(line, &defaults).unwrap().request;
            request.sampling.constraint.and_then(|constraint| constraint.budget())
        };
        assert_eq!(budget(r#"{"prompt": "x"}"#), Some(255));
        assert_eq!(budget(r#"{"prompt": "x", "max_tokens": 20}"#), Some(19));
        assert_eq!(budget(r#"{"prompt": "x", "max_tokens": 20, "close": false}"#), None);
        assert_eq!(budget(r#"{"prompt": "x", "regex": "a"}"#), Some(255));
    }

    #[test]
    fn what_is_wrong_is_named_and_the_line_keeps_its_id() {
        for (line, said) in [
            ("hello", "not JSON: expected value at column 1"),
            ("{}", "`prompt` or `messages` is wanted"),
            (r#"{"prompt": null}"#, "`prompt` or `messages` is wanted"),
            (r#"{"prompt": "a", "messages": []}"#, "it has `prompt` and `messages`"),
            (r#"{"prompt": 3}"#, "`prompt`: invalid type: integer `3`, expected a string"),
            (r#"{"prompt": [-1]}"#, "`prompt`: invalid value: integer `-1`"),
            (r#"{"prompt": "a", "max_tokens": "many"}"#, "`max_tokens`: invalid type: string"),
            (r#"{"prompt": "a", "max_tokens": -1}"#, "`max_tokens`: invalid value: integer `-1`"),
            (r#"{"prompt": "a", "temperature": [1]}"#, "`temperature`: invalid type: sequence"),
            (r#"{"prompt": "a", "stop": 3}"#, "`stop`: invalid type: integer `3`"),
            (r#"{"prompt": "a", "logit_bias": {"a": 1}}"#, "`logit_bias`: "),
            (
                r#"{"prompt": "a", "maxtokens": 3}"#,
                "unknown field `maxtokens`; did you mean `max_tokens`? There are id, prompt,",
            ),
            (r#"{"prompt": "a", "budget": 3}"#, "unknown field `budget`; there are id, prompt, messages,"),
            // It is not told that `prompt` is missing.
            (r#"{"promt": "a", "temprature": "b"}"#, "unknown field `promt`; did you mean `prompt`?"),
            (r#"{"prompt": null, "mesages": null}"#, "unknown field `mesages`; did you mean `messages`?"),
            (r#"{"prompt": "a", "prompt": "b"}"#, "`prompt` stands twice"),
        ] {
            let error = parse(line).unwrap_err();
            assert!(error.starts_with(said), "{line}: {error}");
        }
        let bad = Line::parse(r#"{"id": 7, "prompt": 3}"#, &defaults()).unwrap_err();
        assert_eq!(bad.id.unwrap().get(), "7");
        assert!(parse(r#"{"id": [7], "prompt": "a"}"#).unwrap_err().starts_with("`id`"));
    }
}
