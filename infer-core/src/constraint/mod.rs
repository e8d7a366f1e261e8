#[cfg(feature = "constraint")]
mod allowed;
#[cfg(feature = "constraint")]
pub(crate) mod cache;
#[cfg(feature = "constraint")]
mod closing;
#[cfg(feature = "constraint")]
pub(crate) mod compile;
#[cfg(feature = "constraint")]
mod gbnf;
#[cfg(feature = "constraint")]
pub(crate) mod guide;
#[cfg(feature = "constraint")]
pub(crate) mod schema;
#[cfg(all(test, feature = "testing"))]
mod tests;

#[cfg(not(feature = "constraint"))]
use crate::Error;
use crate::{Result, Vocab};
use std::sync::Arc;

/// What generated text must be: a JSON schema, a regular expression or a grammar, as data.
///
/// Set by [`Sampling::with_constraint`](crate::Sampling::with_constraint). It says nothing about the prompt: the text begins with
/// the first generated token. Where the text is complete and nothing may follow, the token drawn is one that
/// [ends](crate::Vocab::is_end) a generation; before it is complete, none of them is.
///
/// ```
/// use infer_core::{Constraint, Sampling};
///
/// let schema = r#"{"type": "object", "properties": {"name": {"type": "string"}}, "required": ["name"]}"#;
/// let sampling = Sampling::default().with_constraint(Constraint::json_schema(schema).with_budget(64));
/// assert_eq!(sampling.constraint.as_ref().and_then(Constraint::budget), Some(64));
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Constraint {
    format: ConstraintFormat,
    text: String,
    #[cfg_attr(feature = "serde", serde(default))]
    whitespace: Whitespace,
    #[cfg_attr(feature = "serde", serde(default))]
    budget: Option<usize>,
    #[cfg_attr(feature = "serde", serde(default = "yes"))]
    forced_tokens: bool,
}

/// How the text of a [`Constraint`] is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[non_exhaustive]
pub enum ConstraintFormat {
    /// A JSON schema, draft 2020-12 where it does not name another.
    JsonSchema,
    /// A regular expression in the syntax of the crate `regex`, which the whole text must match.
    Regex,
    /// A Lark grammar, as `llguidance` reads it; its start is `start`.
    Lark,
    /// A grammar in llama.cpp's GBNF; its start is `root`.
    Gbnf,
}

/// The whitespace between the parts of a JSON document, where a schema constrains it.
///
/// Whitespace that may be as long as it likes is what a model at temperature 1 fills its budget with; here it always has an end.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[non_exhaustive]
pub enum Whitespace {
    /// One space after each comma and colon: `{"a": [1, 2]}`. What most models write by themselves on one line.
    #[default]
    Spaced,
    /// None: `{"a":[1,2]}`.
    Compact,
    /// As the model likes, where JSON allows it: none, a space, or a line break with an indentation of up to 20 spaces.
    Flexible,
}

#[cfg(feature = "serde")]
fn yes() -> bool {
    true
}

impl Constraint {
    /// A JSON document that this schema allows.
    ///
    /// A keyword that cannot be kept is an error when it is compiled, and never passed over.
    pub fn json_schema(schema: impl Into<String>) -> Self {
        Self::new(ConstraintFormat::JsonSchema, schema.into())
    }

    /// Any JSON value.
    #[must_use]
    pub fn any_json() -> Self {
        Self::json_schema("true")
    }

    /// A text that this regular expression matches as a whole.
    pub fn regex(expression: impl Into<String>) -> Self {
        Self::new(ConstraintFormat::Regex, expression.into())
    }

    /// A text of this Lark grammar.
    pub fn lark(grammar: impl Into<String>) -> Self {
        Self::new(ConstraintFormat::Lark, grammar.into())
    }

    /// A text of this grammar in llama.cpp's GBNF.
    pub fn gbnf(grammar: impl Into<String>) -> Self {
        Self::new(ConstraintFormat::Gbnf, grammar.into())
    }

    fn new(format: ConstraintFormat, text: String) -> Self {
        Self { format, text, whitespace: Whitespace::default(), budget: None, forced_tokens: true }
    }

    /// Has the text end within `tokens` tokens, counted from the prompt's end, the one that ends the generation not among them.
    #[must_use]
    pub fn with_budget(mut self, tokens: usize) -> Self {
        self.budget = Some(tokens);
        self
    }

    /// Chooses the whitespace of a JSON document; other formats say theirs themselves.
    #[must_use]
    pub fn with_whitespace(mut self, whitespace: Whitespace) -> Self {
        self.whitespace = whitespace;
        self
    }

    /// Whether tokens without an alternative are taken without asking the model: on, unless turned off here.
    ///
    /// Where only one text can follow, one token of it is the only one allowed: the longest that fits. Such tokens come with
    /// the drawn one ([`Outputs::sampled`](crate::Outputs::sampled)) and save a pass each when they are fed together; fed one
    /// by one, they are drawn again. Off, the model chooses how such a text is cut into tokens.
    #[must_use]
    pub fn with_forced_tokens(mut self, forced: bool) -> Self {
        self.forced_tokens = forced;
        self
    }

    /// How [`text`](Self::text) is written.
    #[must_use]
    pub fn format(&self) -> ConstraintFormat {
        self.format
    }

    /// The schema, expression or grammar.
    #[must_use]
    pub fn text(&self) -> &str {
        &self.text
    }

    /// The whitespace of a JSON document.
    #[must_use]
    pub fn whitespace(&self) -> Whitespace {
        self.whitespace
    }

    /// Within how many tokens the text ends, if it was said.
    #[must_use]
    pub fn budget(&self) -> Option<usize> {
        self.budget
    }

    /// Whether tokens without an alternative are taken without asking the model.
    #[must_use]
    pub fn forced_tokens(&self) -> bool {
        self.forced_tokens
    }

    /// Compiles it for a vocabulary, which keeps the result for the next use: a first use takes from milliseconds to a
    /// second. Called beforehand, on a thread that has the time, it spares the thread that runs the passes.
    ///
    /// # Errors
    /// [`InvalidConstraint`](crate::ErrorKind::InvalidConstraint), saying where, for a text that is not of its format, asks for what cannot be
    /// kept, is too large, or that no text of the vocabulary meets. [`Unsupported`](crate::ErrorKind::Unsupported) without
    /// the feature `constraint`.
    pub fn compile(&self, vocab: &Arc<Vocab>) -> Result<()> {
        #[cfg(feature = "constraint")]
        return guide::Guide::new(self.for_vocab(vocab)?, self).map(drop);
        #[cfg(not(feature = "constraint"))]
        {
            let _ = vocab;
            Err(unsupported())
        }
    }

    #[cfg(feature = "constraint")]
    pub(crate) fn for_vocab(&self, vocab: &Vocab) -> Result<Arc<compile::Compiled>> {
        vocab.constraints.get(self, vocab)
    }

    /// What is compiled: without what only says how it is followed.
    #[cfg(feature = "constraint")]
    fn grammar_only(mut self) -> Self {
        self.budget = None;
        self.forced_tokens = true;
        self
    }
}

/// What a build without the feature answers.
#[cfg(not(feature = "constraint"))]
pub(crate) fn unsupported() -> Error {
    Error::unsupported("this build has no constraints; build it with the feature `constraint`")
}
