use super::candidate::is_of_name;
use crate::{Error, Result};
use serde_json::value::RawValue;
use std::collections::BTreeMap;

/// The longest name that a function may have.
const MAX_NAME: usize = 128;

/// The functions a model may call, read from their schemas.
///
/// ```
/// use infer_core::chat::Tools;
///
/// let tools = Tools::parse(r#"[{"type": "function", "function": {"name": "time", "parameters": {"type": "object"}}}]"#)?;
/// assert_eq!(tools.names().collect::<Vec<_>>(), ["time"]);
/// let error = Tools::parse(r#"[{"type": "function", "function": {"name": "what time?"}}]"#).unwrap_err();
/// assert!(error.to_string().contains("tool 0"), "{error}");
/// # Ok::<(), infer_core::Error>(())
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Tools {
    list: Vec<Tool>,
    /// All of them in OpenAI's form.
    json: String,
}

/// One function.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Tool {
    pub(super) name: String,
    /// The JSON schema of its arguments, as it was written.
    pub(super) parameters: Option<String>,
    /// Whether the schema is of one object whose properties it lists, and not put together of others.
    pub(super) is_plain: bool,
}

/// What puts a schema together of others, so that closing it would close out what those name.
const COMPOSING: [&str; 8] =
    ["$ref", "$dynamicRef", "allOf", "anyOf", "oneOf", "if", "patternProperties", "unevaluatedProperties"];

impl Tools {
    /// Reads a JSON list of functions, in OpenAI's form or each by itself: an object with `name` and, where it takes
    /// arguments, `parameters`, the JSON schema of an object.
    ///
    /// # Errors
    /// [`InvalidInput`](crate::ErrorKind::InvalidInput), which says which tool and what about it: not JSON, not a list, no name or
    /// one with characters that a call cannot be written with, the name of an earlier one, parameters that are not an object.
    pub fn parse(json: &str) -> Result<Self> {
        let invalid = |message: &str, error| Error::invalid_input(message).with_source(error);
        let value: &RawValue = serde_json::from_str(json).map_err(|error| invalid("`tools` is not JSON", error))?;
        let list: Vec<&RawValue> =
            serde_json::from_str(value.get()).map_err(|error| invalid("`tools` is not a list of functions", error))?;
        let mut tools = Self { list: Vec::with_capacity(list.len()), json: "[".to_owned() };
        for (at, json) in list.into_iter().enumerate() {
            tools.json.push_str(if at == 0 { "" } else { ", " });
            let tool = Tool::parse(json.get(), &mut tools.json)
                .map_err(|what| Error::invalid_input(format!("tool {at} {what}")))?;
            if let Some(same) = tools.names().position(|name| name == tool.name) {
                let message = format!("tool {at} has the name of tool {same}, `{}`", tool.name);
                return Err(Error::invalid_input(message));
            }
            tools.list.push(tool);
        }
        tools.json.push(']');
        Ok(tools)
    }

    /// Their names, in the order they were given.
    pub fn names(&self) -> impl ExactSizeIterator<Item = &str> {
        self.list.iter().map(|tool| tool.name.as_str())
    }

    /// All of them in OpenAI's form, as chat templates expect them:
    /// [`RenderOptions::with_tools`](super::RenderOptions::with_tools).
    #[must_use]
    pub fn as_json(&self) -> &str {
        &self.json
    }

    /// How many there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.list.len()
    }

    /// Whether there is none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.list.is_empty()
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &Tool> {
        self.list.iter()
    }
}

impl Tool {
    /// Reads a function and writes it in OpenAI's form. `Err` with what is wrong, as the predicate of a sentence.
    fn parse(json: &str, out: &mut String) -> std::result::Result<Self, String> {
        let object = object(json).ok_or("is not an object")?;
        let function = match object.get("function") {
            Some(function) => {
                out.push_str(json);
                self::object(function.get()).ok_or("has a `function` that is not an object")?
            }
            None => {
                out.push_str(&format!("{{\"type\": \"function\", \"function\": {json}}}"));
                object
            }
        };
        let name = function.get("name").ok_or("has no `name`")?.get();
        let name: String = serde_json::from_str(name).map_err(|_| "has a `name` that is not a text")?;
        if name.is_empty() || name.len() > MAX_NAME || !name.chars().all(is_of_name) {
            return Err(format!(
                "is called {name:?}; a name has 1 to {MAX_NAME} bytes: letters, digits, `_`, `-`, `.`, `/` and `:`"
            ));
        }
        let parameters = function.get("parameters").map(|parameters| parameters.get()).filter(|text| *text != "null");
        let Some(parameters) = parameters else { return Ok(Self { name, parameters: None, is_plain: false }) };
        let schema =
            self::object(parameters).ok_or_else(|| format!("(`{name}`) has `parameters` that are not an object"))?;
        if schema.get("type").is_some_and(|of| of.get() != "\"object\"") {
            return Err(format!("(`{name}`) has `parameters` whose `type` is not \"object\""));
        }
        let is_plain = schema.contains_key("properties") && !COMPOSING.iter().any(|key| schema.contains_key(*key));
        Ok(Self { name, parameters: Some(parameters.to_owned()), is_plain })
    }
}

/// The fields of an object; `None` where it is something else.
fn object(json: &str) -> Option<BTreeMap<String, &RawValue>> {
    serde_json::from_str(json).ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ErrorKind;

    #[test]
    fn both_forms_are_read() {
        let json = r#" [{"type": "function", "function": {"name": "a", "parameters": {"z": 1, "a": 1.50}}},
                        {"name": "b-2", "description": "x", "parameters": null}] "#;
        let tools = Tools::parse(json).unwrap();
        let parameters: Vec<_> = tools.iter().map(|tool| tool.parameters.as_deref()).collect();
        assert_eq!(tools.names().collect::<Vec<_>>(), ["a", "b-2"]);
        assert_eq!(parameters, [Some(r#"{"z": 1, "a": 1.50}"#), None], "a schema is kept as it was written");
        let wrapped = r#"{"type": "function", "function": {"name": "b-2", "description": "x", "parameters": null}}]"#;
        assert!(tools.as_json().ends_with(wrapped), "{}", tools.as_json());
        let none = Tools::parse("[]").unwrap();
        assert!(none.is_empty() && none.as_json() == "[]");
    }

    #[test]
    fn what_is_wrong_is_said() {
        for (json, said) in [
            ("", "`tools` is not JSON"),
            ("[{]", "`tools` is not JSON"),
            ("{}", "not a list"),
            ("[1]", "tool 0 is not an object"),
            ("[{\"function\": []}]", "tool 0 has a `function` that is not an object"),
            ("[{\"type\": \"function\"}]", "tool 0 has no `name`"),
            ("[{\"name\": 1}]", "tool 0 has a `name` that is not a text"),
            ("[{\"name\": \"\"}]", "tool 0 is called \"\""),
            ("[{\"name\": \"a\"}, {\"name\": \"a b\"}]", "tool 1 is called \"a b\""),
            ("[{\"name\": \"<a>\"}]", "tool 0 is called"),
            ("[{\"name\": \"a\"}, {\"name\": \"b\"}, {\"name\": \"a\"}]", "tool 2 has the name of tool 0, `a`"),
            ("[{\"name\": \"a\", \"parameters\": []}]", "tool 0 (`a`) has `parameters` that are not an object"),
            ("[{\"name\": \"a\", \"parameters\": {\"type\": \"string\"}}]", "whose `type` is not \"object\""),
            ("[{\"name\": \"a\", \"parameters\": true}]", "tool 0 (`a`) has `parameters` that are not an object"),
        ] {
            let error = Tools::parse(json).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::InvalidInput);
            assert!(error.to_string().contains(said), "{json}: {error}");
        }
        let long = format!("[{{\"name\": \"{}\"}}]", "a".repeat(MAX_NAME + 1));
        assert!(Tools::parse(&long).is_err());
    }
}
