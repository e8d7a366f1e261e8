use serde_json::value::RawValue;
use std::collections::BTreeMap;

/// A function that the model wants called.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[non_exhaustive]
pub struct ToolCall {
    /// Its name. A model may write one that it was not given.
    pub name: String,
    /// What it is called with: the text of a JSON object, as the model wrote it. It is JSON, but that it fits the
    /// function's schema is certain only where it was [forced](super::ToolChoice::Required).
    pub arguments: String,
    /// What the answer to this call is to refer to, where the model says so.
    pub id: Option<String>,
}

impl ToolCall {
    /// A call of this function.
    #[must_use]
    pub fn new(name: impl Into<String>, arguments: impl Into<String>) -> Self {
        Self { name: name.into(), arguments: arguments.into(), id: None }
    }

    /// Sets [`id`](Self::id).
    #[must_use]
    pub fn with_id(mut self, id: impl Into<String>) -> Self {
        self.id = Some(id.into());
        self
    }
}

/// Whether the model calls tools.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize), serde(rename_all = "snake_case"))]
#[non_exhaustive]
pub enum ToolChoice {
    /// As it likes.
    #[default]
    Auto,
    /// It is not told of any, and what looks like a call is text.
    None,
    /// It must: the answer is one call or more, and nothing else.
    Required,
    /// It must call this one, once.
    Named(String),
}

/// The names of a call's fields, where it is a JSON object.
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Fields {
    /// The field with the function's name, such as `name`.
    pub name: String,
    /// The field with its arguments, such as `arguments` or `parameters`.
    pub arguments: String,
    /// The field with the call's id, where this family writes one.
    #[cfg_attr(feature = "serde", serde(default))]
    pub id: Option<String>,
}

impl Fields {
    /// Calls without an id.
    #[must_use]
    pub fn new(name: impl Into<String>, arguments: impl Into<String>) -> Self {
        Self { name: name.into(), arguments: arguments.into(), id: None }
    }

    /// Sets [`id`](Self::id).
    #[must_use]
    pub fn with_id(mut self, id: impl Into<String>) -> Self {
        self.id = Some(id.into());
        self
    }

    /// Whether an object with this key may be a call. `type` is what some models add as OpenAI's form has it.
    pub(super) fn know(&self, key: &str) -> bool {
        key == self.name || key == self.arguments || Some(key) == self.id.as_deref() || key == "type"
    }

    /// The calls in an object, or in a list of objects; `None` where one of them is none. A `bare` one must have all of its
    /// fields, since nothing else tells it from an answer that happens to be JSON.
    pub(super) fn read(&self, json: &str, bare: bool) -> Option<Vec<ToolCall>> {
        if json.starts_with('[') {
            let list: Vec<&RawValue> = serde_json::from_str(json).ok()?;
            return list.into_iter().map(|object| self.read_one(object.get(), bare)).collect();
        }
        Some(vec![self.read_one(json, bare)?])
    }

    fn read_one(&self, json: &str, bare: bool) -> Option<ToolCall> {
        let object: BTreeMap<String, &RawValue> = serde_json::from_str(json).ok()?;
        let name: String = serde_json::from_str(object.get(&self.name)?.get()).ok()?;
        let arguments = match object.get(&self.arguments) {
            Some(value) => arguments(value.get())?,
            None if bare => return None,
            None => "{}".to_owned(),
        };
        let id = self.id.as_ref().and_then(|id| object.get(id)).and_then(|id| match id.get() {
            text if text.starts_with('"') => serde_json::from_str(text).ok(),
            number if number.starts_with(|c: char| c.is_ascii_digit()) => Some(number.to_owned()),
            _ => None,
        });
        (!name.is_empty()).then_some(ToolCall { name, arguments, id })
    }
}

/// Arguments as a JSON object. Models may leave out an empty one, and may write one into a string as OpenAI's form has it.
pub(super) fn arguments(json: &str) -> Option<String> {
    match json.as_bytes().first()? {
        b'{' => serde_json::from_str::<&RawValue>(json).ok().map(|object| object.get().to_owned()),
        b'n' => Some("{}".to_owned()),
        b'"' => {
            let text: String = serde_json::from_str(json).ok()?;
            let text = text.trim();
            if text.is_empty() { Some("{}".to_owned()) } else { arguments(text).filter(|_| text.starts_with('{')) }
        }
        _ => None,
    }
}
