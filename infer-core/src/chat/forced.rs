//! Calls that must be made, as a grammar.

use super::{
    call::{Fields, ToolChoice},
    format::{AnswerFormat, ToolBody, ToolFormat},
    tools::{Tool, Tools},
};
use crate::{Constraint, Error, Result, Token, Vocab};
use std::fmt::Write;

impl Tools {
    /// What an answer must be so that it is calls and nothing else, as this choice demands it: in the form of the model's
    /// family, of functions that there are, with arguments that their schemas allow. `None` where nothing is demanded.
    ///
    /// With [`Required`](ToolChoice::Required) it is one call or, if `parallel`, more; with [`Named`](ToolChoice::Named) one of that
    /// function. Where the format has reasoning, it may come first, and has no end but the token limit. Markers that are control tokens in
    /// `vocab` must come as these tokens.
    ///
    /// At the top of a schema, arguments that it does not name are not written unless it says `additionalProperties`.
    ///
    /// # Errors
    /// [`InvalidInput`](crate::ErrorKind::InvalidInput) where a call is demanded and there is no tool, or none of that name;
    /// [`InvalidConstraint`](crate::ErrorKind::InvalidConstraint) for a schema that asks for what cannot be kept, saying where;
    /// [`Unsupported`](crate::ErrorKind::Unsupported) where the format does not say how calls look.
    pub fn constraint(
        &self,
        choice: &ToolChoice,
        parallel: bool,
        format: &AnswerFormat,
        vocab: &Vocab,
    ) -> Result<Option<Constraint>> {
        let (tools, parallel): (Vec<&Tool>, bool) = match choice {
            ToolChoice::Auto | ToolChoice::None => return Ok(None),
            ToolChoice::Required if self.is_empty() => {
                return Err(Error::invalid_input("a call of a tool is required, and no tools are given"));
            }
            ToolChoice::Required => (self.iter().collect(), parallel),
            ToolChoice::Named(name) => (vec![self.named(name)?], false),
        };
        let Some(family) = &format.tools else {
            return Err(Error::unsupported(
                "a call of a tool is required, but how this model writes calls is not known from its chat template; say it with a \
                 `ToolFormat`",
            ));
        };
        family.check()?;
        let writer = Writer { family, control: control(format, vocab) };
        let mut grammar = String::new();
        writer.start(&mut grammar, parallel);
        writer.reasoning(&mut grammar, format);
        writer.calls(&mut grammar, &tools)?;
        Ok(Some(Constraint::lark(grammar)))
    }

    fn named(&self, name: &str) -> Result<&Tool> {
        self.iter().find(|tool| tool.name == name).ok_or_else(|| {
            let names: Vec<&str> = self.names().collect();
            let there_are = if names.is_empty() { "none".to_owned() } else { names.join(", ") };
            Error::invalid_input(format!(
                "a call of the tool `{name}` is required, which is not given; there are: {there_are}"
            ))
        })
    }
}

/// The control tokens that are marks of this format, by name, the longest first.
fn control<'v>(format: &AnswerFormat, vocab: &'v Vocab) -> Vec<(&'v str, Token)> {
    let markers: Vec<&str> = format.markers().collect();
    let tokens = (0..).map(Token).take(vocab.len()).filter(|&token| vocab.is_control(token));
    let named = tokens.filter_map(|token| Some((std::str::from_utf8(vocab.bytes(token)?).ok()?, token)));
    let marks = named.filter(|(name, _)| !name.is_empty() && markers.iter().any(|marker| marker.contains(name)));
    let mut marks: Vec<_> = marks.collect();
    marks.sort_by_key(|(name, _)| std::cmp::Reverse(name.len()));
    marks
}

/// Writes the rules of a grammar in Lark.
struct Writer<'f> {
    family: &'f ToolFormat,
    control: Vec<(&'f str, Token)>,
}

impl Writer<'_> {
    /// `start`, which wants `calls`, `call` and, for its reasoning, `thought`.
    fn start(&self, out: &mut String, parallel: bool) {
        let section = self.family.section.as_ref();
        let (open, close) = section.map_or(("", ""), |section| (section.begin.as_str(), section.end.as_str()));
        let (open, close) = (self.text(open), self.text(close));
        let more = match (&self.family.body, parallel) {
            (_, false) => String::new(),
            (ToolBody::List(_), true) => "(\", \" call)*".to_owned(),
            (_, true) => format!("({} {} call {})*", self.text(&self.family.separator), self.begin(), self.end()),
        };
        let calls = match &self.family.body {
            ToolBody::List(_) => format!("{} \"[\" call {more} \"]\" {}", self.begin(), self.end()),
            _ => format!("{} call {} {more}", self.begin(), self.end()),
        };
        line(out, format_args!("start: thought {open} {calls} {close}"));
    }

    /// What a call begins with; nothing where nothing is needed.
    fn begin(&self) -> String {
        if self.family.bare { String::new() } else { self.text(&self.family.call.begin) }
    }

    fn end(&self) -> String {
        self.text(&self.family.call.end)
    }

    /// `thought`, which may be empty.
    fn reasoning(&self, out: &mut String, format: &AnswerFormat) {
        let Some(markers) = &format.reasoning else { return line(out, format_args!("thought: \"\"")) };
        let (begin, end) = (markers.begin.trim(), markers.end.trim());
        if format.reasoning_open {
            line(out, format_args!("thought: inside after"));
        } else {
            line(out, format_args!("thought: ({} inside after)?", self.text(begin)));
        }
        match self.control.iter().find(|(name, _)| *name == end) {
            Some(_) => line(out, format_args!("inside: /(.|\\n)*/ {}", self.text(end))),
            None => line(out, format_args!("inside[suffix={}]: /(.|\\n)*/", quoted(end))),
        }
        line(out, format_args!("after: /\\n?\\n?/"));
    }

    /// `call`, one of these, and the schema of each one's arguments.
    fn calls(&self, out: &mut String, tools: &[&Tool]) -> Result<()> {
        let names: Vec<String> = (0..tools.len()).map(|at| format!("call-{at}")).collect();
        line(out, format_args!("call: {}", names.join(" | ")));
        for (at, tool) in tools.iter().enumerate() {
            let arguments = if tool.parameters.is_some() { format!("arguments-{at}") } else { "\"{}\"".to_owned() };
            line(out, format_args!("call-{at}: {}", self.call(&tool.name, &arguments)));
            if let Some(schema) = &tool.parameters {
                let schema = prepared(&closed(schema, tool.is_plain)).map_err(|error| {
                    let message = format!("the parameters of the tool `{}`: {error}", tool.name);
                    Error::new(error.kind(), message)
                })?;
                line(out, format_args!("arguments-{at}: %json {schema}"));
            }
        }
        line(out, format_args!("id: /{}/", self.family.id_pattern));
        Ok(())
    }

    fn call(&self, name: &str, arguments: &str) -> String {
        match &self.family.body {
            ToolBody::Object(fields) | ToolBody::List(fields) => self.object(fields, name, arguments),
            ToolBody::Named { id, arguments: marker } => {
                let id = id.as_ref().map_or(String::new(), |id| format!("{} id", self.text(id)));
                format!("{} {id} {} {arguments}", quoted(name), self.text(marker))
            }
        }
    }

    /// A call as an object: its name, its arguments and, where there is one, its id.
    fn object(&self, fields: &Fields, name: &str, arguments: &str) -> String {
        let json = |text: &str| serde_json::Value::from(text).to_string();
        let before = format!("{{{}: {}, {}: ", json(&fields.name), json(name), json(&fields.arguments));
        match &fields.id {
            None => format!("{} {arguments} \"}}\"", quoted(&before)),
            Some(id) => {
                let between = format!(", {}: \"", json(id));
                format!("{} {arguments} {} id {}", quoted(&before), quoted(&between), quoted("\"}"))
            }
        }
    }

    /// A marker: as text, and where a control token stands for a part of it, as that token.
    fn text(&self, marker: &str) -> String {
        let (mut out, mut rest, mut plain) = (Vec::new(), marker, 0);
        while plain < rest.len() {
            let (text, from) = rest.split_at(plain);
            match self.control.iter().find(|(name, _)| from.starts_with(name)) {
                Some((name, token)) => {
                    out.extend((!text.is_empty()).then(|| quoted(text)));
                    out.push(format!("<[{token}]>"));
                    (rest, plain) = (&from[name.len()..], 0);
                }
                None => plain += from.chars().next().map_or(1, char::len_utf8),
            }
        }
        out.extend((!rest.is_empty()).then(|| quoted(rest)));
        out.join(" ")
    }
}

/// A schema for exactly one object.
fn closed(schema: &str, is_plain: bool) -> String {
    let inside = schema.trim_start().strip_prefix('{').unwrap_or(schema).trim_start();
    let comma = if inside.starts_with('}') { "" } else { "," };
    // Of two fields of one name the last counts: the schema's own.
    let others = if is_plain { ",\"additionalProperties\":false" } else { "" };
    format!("{{\"type\":\"object\"{others}{comma}{inside}")
}

/// A schema as a grammar takes it. It is one of its own there: `$ref`s in it are to itself.
#[cfg(feature = "constraint")]
fn prepared(schema: &str) -> Result<String> {
    let schema = crate::constraint::schema::prepare(schema, crate::Whitespace::Spaced)?;
    Ok(schema.to_string())
}

/// Nothing will read it: sampling says that constraints are not supported.
#[cfg(not(feature = "constraint"))]
fn prepared(schema: &str) -> Result<String> {
    Ok(schema.to_owned())
}

/// A text as Lark has it, which is as JSON has it.
fn quoted(text: &str) -> String {
    serde_json::Value::from(text).to_string()
}

fn line(out: &mut String, text: std::fmt::Arguments<'_>) {
    writeln!(out, "{text}").expect("a String takes everything");
}
