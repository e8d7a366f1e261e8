//! Messages in the form of OpenAI's interface.

use super::fields::{Fields, said};
use infer::chat::{Message, ToolCall};
use serde::Deserialize;
use serde_json::value::RawValue;

/// The fields of a message.
const FIELDS: [&str; 6] = ["role", "content", "name", "tool_calls", "tool_call_id", "reasoning_content"];

/// The fields of a function.
const FUNCTION: [&str; 4] = ["name", "description", "parameters", "strict"];

/// The roles there are: of another one a template would make what it likes, or nothing.
const ROLES: [&str; 5] = ["system", "developer", "user", "assistant", "tool"];

/// A part of a message's content.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Part {
    r#type: String,
    text: Option<String>,
}

/// A call of a function, as it was answered before.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Call {
    id: Option<String>,
    #[serde(rename = "type")]
    _type: Option<String>,
    function: Function,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Function {
    name: String,
    /// A JSON object, as a text.
    arguments: String,
}

impl From<Call> for ToolCall {
    fn from(Call { id, function, .. }: Call) -> Self {
        let call = Self::new(function.name, function.arguments);
        match id {
            Some(id) => call.with_id(id),
            None => call,
        }
    }
}

/// Reads a list of messages.
pub(crate) fn parse(messages: &RawValue) -> Result<Vec<Message>, String> {
    let messages: Vec<Fields> =
        serde_json::from_str(messages.get()).map_err(|error| format!("`messages`: {}", said(&error)))?;
    if messages.is_empty() {
        return Err("`messages` is empty".to_owned());
    }
    let one = |(at, fields)| message(fields).map_err(|what| format!("message {at}: {what}"));
    messages.into_iter().enumerate().map(one).collect()
}

/// Each tool of a list has the fields of one, and no others: a schema by a wrong name would be none. What they say is looked at by who uses them.
pub(crate) fn check_tools(tools: &RawValue) -> Result<(), String> {
    let tools: Vec<Fields> = serde_json::from_str(tools.get()).map_err(|error| format!("`tools`: {}", said(&error)))?;
    tools
        .into_iter()
        .enumerate()
        .try_for_each(|(at, tool)| check_tool(tool).map_err(|what| format!("tool {at}: {what}")))
}

fn check_tool(mut tool: Fields) -> Result<(), String> {
    // A function may stand by itself.
    if tool.has("name") {
        return tool.check(&[&["type"], &FUNCTION[..]].concat());
    }
    tool.check(&["type", "function"])?;
    tool.take::<Fields>("function")?.map_or(Ok(()), |function| function.check(&FUNCTION))
}

fn message(mut fields: Fields) -> Result<Message, String> {
    fields.check(&FIELDS)?;
    let role: String = fields.take("role")?.ok_or("`role` is wanted")?;
    let calls =
        fields.take::<Vec<Call>>("tool_calls")?.map(|calls| calls.into_iter().map(ToolCall::from).collect::<Vec<_>>());
    let content = match fields.raw("content") {
        Some(content) => text(&content)?,
        // A message that calls tools may say nothing.
        None if calls.is_some() => String::new(),
        None => return Err("`content` is wanted".to_owned()),
    };
    let mut message = match calls {
        Some(calls) => Message::assistant_calls(calls),
        None => Message::new("", ""),
    };
    (message.role, message.content) = (role.into(), content);
    for name in ["name", "tool_call_id", "reasoning_content"] {
        if let Some(value) = fields.raw(name) {
            if !value.get().starts_with('"') {
                return Err(format!("`{name}`: a text is wanted"));
            }
            message = message.with_field(name, value.get());
        }
    }
    fields.end();
    if !ROLES.contains(&message.role.as_str()) {
        return Err(format!("unknown role `{}`; there are {}", message.role, ROLES.join(", ")));
    }
    Ok(message)
}

/// A text, or a list of parts that are texts.
fn text(content: &RawValue) -> Result<String, String> {
    let wrong = |error: serde_json::Error| format!("`content`: {}", said(&error));
    if content.get().starts_with('[') {
        let parts: Vec<Part> = serde_json::from_str(content.get()).map_err(wrong)?;
        return parts.into_iter().map(part).collect();
    }
    serde_json::from_str(content.get()).map_err(wrong)
}

fn part(part: Part) -> Result<String, String> {
    match (&*part.r#type, part.text) {
        ("text", Some(text)) => Ok(text),
        ("text", None) => Err("`content`: a part without `text`".to_owned()),
        (other, _) => Err(format!("`content`: a part is `{other}`; texts are taken, and nothing else")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(json: &str) -> Result<Vec<Message>, String> {
        parse(&RawValue::from_string(json.to_owned()).unwrap())
    }

    #[test]
    fn messages_are_those_of_openai() {
        let messages = read(
            r#"[{"role": "system", "content": "Be brief."},
                {"role": "user", "name": "Ann", "content": [{"type": "text", "text": "What"}, {"type": "text", "text": " now?"}]},
                {"role": "assistant", "content": null, "tool_calls": [
                    {"id": "c1", "type": "function", "function": {"name": "add", "arguments": "{\"a\": 1}"}}]},
                {"role": "tool", "tool_call_id": "c1", "content": "42"}]"#,
        );
        let expected = [
            Message::system("Be brief."),
            Message::user("What now?").with_field("name", r#""Ann""#),
            Message::assistant_calls([ToolCall::new("add", r#"{"a": 1}"#).with_id("c1")]),
            Message::tool("42").with_field("tool_call_id", r#""c1""#),
        ];
        assert_eq!(messages.unwrap(), expected);
    }

    #[test]
    fn tools_have_the_fields_of_tools() {
        let check = |json: &str| check_tools(&RawValue::from_string(json.to_owned()).unwrap());
        check(r#"[{"type": "function", "function": {"name": "f", "description": "", "parameters": {"any": 1}, "strict": true}}]"#).unwrap();
        check(r#"[{"name": "f"}, {"type": "function", "name": "f", "parameters": {}}]"#).unwrap();
        for (json, said) in [
            ("{}", "`tools`: invalid type: map, expected a sequence"),
            (
                r#"[{"name": "f"}, {"functoin": {"name": "f"}}]"#,
                "tool 1: unknown field `functoin`; did you mean `function`?",
            ),
            (r#"[{"name": "f", "descripton": ""}]"#, "tool 0: unknown field `descripton`; did you mean `description`?"),
            (r#"[{"function": {"name": "f", "schema": {}}}]"#, "tool 0: unknown field `schema`; there are name,"),
            (r#"[{"function": 3}]"#, "tool 0: `function`: invalid type: integer `3`"),
        ] {
            let error = check(json).unwrap_err();
            assert!(error.starts_with(said), "{json}: {error}");
        }
    }

    #[test]
    fn what_is_wrong_is_named_with_the_messages_number() {
        for (json, said) in [
            ("[]", "`messages` is empty"),
            ("{}", "`messages`: invalid type: map, expected a sequence"),
            (r#"[{"role": "user", "content": "a"}, {"content": "b"}]"#, "message 1: `role` is wanted"),
            (r#"[{"role": "user"}]"#, "message 0: `content` is wanted"),
            (r#"[{"role": "user", "content": 3}]"#, "message 0: `content`: invalid type: integer `3`"),
            (r#"[{"role": "user", "content": "a", "mood": 1}]"#, "message 0: unknown field `mood`; there are role,"),
            (
                r#"[{"rol": "user", "content": "a"}]"#,
                "message 0: unknown field `rol`; did you mean `role`? There are role,",
            ),
            (r#"[{"role": "user", "content": [{"type": "text"}]}]"#, "message 0: `content`: a part without `text`"),
            (
                r#"[{"role": "user", "content": [{"type": "image_url"}]}]"#,
                "message 0: `content`: a part is `image_url`",
            ),
            (r#"[{"role": "user", "content": "a", "name": 3}]"#, "message 0: `name`: a text is wanted"),
            (
                r#"[{"role": "assistant", "tool_calls": [{"function": {"name": "f"}}]}]"#,
                "message 0: `tool_calls`: missing field `arguments`",
            ),
            (r#"[{"role": "usr", "content": "a"}]"#, "message 0: unknown role `usr`; there are system, developer,"),
            (r#"[{"role": "user", "role": "user"}]"#, "`messages`: `role` stands twice"),
        ] {
            let error = read(json).unwrap_err();
            assert!(error.starts_with(said), "{json}: {error}");
        }
    }
}
