use super::{call::ToolCall, json, values};
use crate::Result;
use minijinja::Value;
use std::fmt;

/// Who says a message. Templates take any text; these are the ones they know.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize), serde(from = "String", into = "String"))]
#[non_exhaustive]
pub enum Role {
    /// `system`: how the model is to behave.
    System,
    /// `user`: the person, or the program, that asks.
    User,
    /// `assistant`: the model.
    Assistant,
    /// `tool`: what a tool answered.
    Tool,
    /// Any other one, such as `developer`.
    Other(String),
}

impl Role {
    /// The role as templates spell it.
    #[must_use]
    pub fn as_str(&self) -> &str {
        match self {
            Self::System => "system",
            Self::User => "user",
            Self::Assistant => "assistant",
            Self::Tool => "tool",
            Self::Other(name) => name,
        }
    }
}

impl From<String> for Role {
    fn from(name: String) -> Self {
        match name.as_str() {
            "system" => Self::System,
            "user" => Self::User,
            "assistant" => Self::Assistant,
            "tool" => Self::Tool,
            _ => Self::Other(name),
        }
    }
}

impl From<&str> for Role {
    fn from(name: &str) -> Self {
        Self::from(name.to_owned())
    }
}

impl From<Role> for String {
    fn from(role: Role) -> Self {
        match role {
            Role::Other(name) => name,
            known => known.as_str().to_owned(),
        }
    }
}

impl fmt::Display for Role {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// One message of a conversation.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Message {
    /// Who says it.
    pub role: Role,
    /// What is said.
    pub content: String,
    pub(super) calls: Vec<ToolCall>,
    pub(super) fields: Vec<(String, String)>,
}

/// How a template takes the arguments of a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Arguments {
    /// As an object, which it writes as JSON itself: most do.
    Object,
    /// As JSON text, as OpenAI's form has them.
    Text,
}

impl Message {
    /// A message of any role.
    #[must_use]
    pub fn new(role: impl Into<Role>, content: impl Into<String>) -> Self {
        Self { role: role.into(), content: content.into(), calls: Vec::new(), fields: Vec::new() }
    }

    /// How the model is to behave.
    #[must_use]
    pub fn system(content: impl Into<String>) -> Self {
        Self::new(Role::System, content)
    }

    /// What the user says.
    #[must_use]
    pub fn user(content: impl Into<String>) -> Self {
        Self::new(Role::User, content)
    }

    /// What the model said.
    #[must_use]
    pub fn assistant(content: impl Into<String>) -> Self {
        Self::new(Role::Assistant, content)
    }

    /// The functions that the model wanted called, to be followed by a [`tool_result`](Self::tool_result) for each. What it
    /// said or thought beside goes into [`content`](Self::content) and [`with_reasoning`](Self::with_reasoning).
    ///
    /// Templates read them as `tool_calls`, the arguments as an object or, where a template can do nothing with one, as text.
    #[must_use]
    pub fn assistant_calls(calls: impl Into<Vec<ToolCall>>) -> Self {
        Self { calls: calls.into(), ..Self::assistant("") }
    }

    /// What a tool answered to this call. Templates read the call's name as `name`, its id as `tool_call_id`.
    #[must_use]
    pub fn tool_result(call: &ToolCall, content: impl Into<String>) -> Self {
        let quoted = |text: &str| serde_json::Value::from(text).to_string();
        let message = Self::tool(content).with_field("name", quoted(&call.name));
        match &call.id {
            Some(id) => message.with_field("tool_call_id", quoted(id)),
            None => message,
        }
    }

    /// What a tool answered, without saying to which call.
    #[must_use]
    pub fn tool(content: impl Into<String>) -> Self {
        Self::new(Role::Tool, content)
    }

    /// Adds a field that the template reads from the message, such as `name`, `tool_calls` or `reasoning_content`, as
    /// JSON text. `content` itself may be replaced so, where a template takes it in parts. The text is parsed when the
    /// template is rendered.
    ///
    /// ```
    /// use infer_core::chat::Message;
    ///
    /// let call = Message::assistant("").with_field("tool_calls", r#"[{"name": "time", "arguments": {}}]"#);
    /// ```
    #[must_use]
    pub fn with_field(mut self, name: impl Into<String>, json: impl Into<String>) -> Self {
        self.fields.push((name.into(), json.into()));
        self
    }

    /// What the model thought before it said this, as templates read it: `reasoning_content`.
    #[must_use]
    pub fn with_reasoning(self, reasoning: &str) -> Self {
        self.with_field("reasoning_content", serde_json::Value::from(reasoning).to_string())
    }

    /// The message as the template sees it: its fields in the order they were given.
    ///
    /// `or_none` says whether the content beside calls may be `none`.
    pub(super) fn value(&self, arguments: Arguments, or_none: bool) -> Result<Value> {
        let is_none = or_none && self.content.is_empty() && !self.calls.is_empty();
        let content = if is_none { Value::from(()) } else { Value::from(&*self.content) };
        let mut fields =
            vec![(Value::from("role"), Value::from(self.role.as_str())), (Value::from("content"), content)];
        if !self.calls.is_empty() {
            let calls = self.calls.iter().map(|call| call_value(call, arguments)).collect::<Result<_>>()?;
            fields.push((Value::from("tool_calls"), values::list(calls)));
        }
        for (name, text) in &self.fields {
            fields.push((Value::from(&**name), json::parse(name, text)?));
        }
        Ok(values::map(fields))
    }

    pub(super) fn bytes(&self) -> usize {
        let fields = self.fields.iter().map(|(name, json)| name.len() + json.len()).sum::<usize>();
        let calls = self.calls.iter().map(|call| call.name.len() + call.arguments.len()).sum::<usize>();
        self.role.as_str().len() + self.content.len() + fields + calls
    }
}

/// A call as templates read it.
fn call_value(call: &ToolCall, arguments: Arguments) -> Result<Value> {
    let parsed = json::parse("arguments", &call.arguments)?;
    let arguments = match arguments {
        Arguments::Object => parsed,
        Arguments::Text => Value::from(&*call.arguments),
    };
    let function = [("name", Value::from(&*call.name)), ("arguments", arguments)];
    let id = call.id.iter().map(|id| ("id", Value::from(&**id)));
    let call = id.chain([("type", Value::from("function")), ("function", map(function))]);
    Ok(map(call))
}

fn map<'n>(fields: impl IntoIterator<Item = (&'n str, Value)>) -> Value {
    values::map(fields.into_iter().map(|(name, value)| (Value::from(name), value)))
}
