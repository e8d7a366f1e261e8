use super::call::Fields;
use crate::{Error, Result};

/// What stands before and after a part of an answer.
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Markers {
    /// Before it.
    pub begin: String,
    /// After it.
    pub end: String,
}

impl Markers {
    /// A part between these two.
    #[must_use]
    pub fn new(begin: impl Into<String>, end: impl Into<String>) -> Self {
        Self { begin: begin.into(), end: end.into() }
    }

    /// Whether a prompt ends within such a part, since the template has opened it.
    fn opened_by(&self, prompt: &str) -> bool {
        prompt.trim_end().ends_with(self.begin.trim())
    }
}

/// How the calls of a family of models look, as data: what [`OutputParser`](super::OutputParser) reads, and what
/// [`Tools::constraint`](super::Tools::constraint) demands.
///
/// The families of [`known`](Self::known) are found by [`detect`](Self::detect). Another one is a value of this type, by
/// hand or (feature `serde`) from a file:
///
/// ```
/// use infer_core::chat::{Fields, ToolBody, ToolFormat};
///
/// let format = ToolFormat::new("ours", ToolBody::Object(Fields::new("fn", "args"))).with_markers("<<CALL>>", "<<END>>");
/// ```
///
/// A marker is written as the model writes it, blanks included. Read, the blanks beside it may be others or none: they belong
/// to the marker, not to the text.
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[non_exhaustive]
pub struct ToolFormat {
    /// What the family is called.
    pub name: String,
    /// Around each call, or around the list of all. The end may be empty: then a call ends where its JSON does.
    pub call: Markers,
    /// What is between the markers.
    pub body: ToolBody,
    /// Whether an answer may also consist of calls alone, without what [`call`](Self::call) begins with.
    #[cfg_attr(feature = "serde", serde(default))]
    pub bare: bool,
    /// Between two calls.
    #[cfg_attr(feature = "serde", serde(default))]
    pub separator: String,
    /// Around all calls of an answer, where the family has such markers besides those of each call.
    #[cfg_attr(feature = "serde", serde(default))]
    pub section: Option<Markers>,
    /// What an id is that a model must write, as a regular expression: for calls that are forced.
    #[cfg_attr(feature = "serde", serde(default = "id_pattern"))]
    pub id_pattern: String,
    /// Texts that are all in the chat templates of the family …
    #[cfg_attr(feature = "serde", serde(default))]
    pub clues: Vec<String>,
    /// … and texts none of which is, so that it is not taken for another one.
    #[cfg_attr(feature = "serde", serde(default))]
    pub counter_clues: Vec<String>,
}

/// What most templates want of an id.
fn id_pattern() -> String {
    "[a-zA-Z0-9]{9}".to_owned()
}

/// What is between the markers of a call.
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize), serde(rename_all = "snake_case"))]
#[non_exhaustive]
pub enum ToolBody {
    /// A JSON object with the function's name and its arguments.
    Object(Fields),
    /// A list of such objects: all calls between one pair of markers.
    List(Fields),
    /// The function's name, and then its arguments as a JSON object.
    Named {
        /// Between the name and the call's id, where the family writes one.
        #[cfg_attr(feature = "serde", serde(default))]
        id: Option<String>,
        /// Before the arguments.
        arguments: String,
    },
}

impl ToolFormat {
    /// A family whose calls have this body; no markers yet.
    #[must_use]
    pub fn new(name: impl Into<String>, body: ToolBody) -> Self {
        Self {
            name: name.into(),
            call: Markers::new("", ""),
            body,
            bare: false,
            separator: String::new(),
            section: None,
            id_pattern: id_pattern(),
            clues: Vec::new(),
            counter_clues: Vec::new(),
        }
    }

    /// Sets [`call`](Self::call).
    #[must_use]
    pub fn with_markers(mut self, begin: impl Into<String>, end: impl Into<String>) -> Self {
        self.call = Markers::new(begin, end);
        self
    }

    /// Sets [`bare`](Self::bare).
    #[must_use]
    pub fn with_bare(mut self, bare: bool) -> Self {
        self.bare = bare;
        self
    }

    /// Sets [`separator`](Self::separator).
    #[must_use]
    pub fn with_separator(mut self, separator: impl Into<String>) -> Self {
        self.separator = separator.into();
        self
    }

    /// Sets [`section`](Self::section).
    #[must_use]
    pub fn with_section(mut self, begin: impl Into<String>, end: impl Into<String>) -> Self {
        self.section = Some(Markers::new(begin, end));
        self
    }

    /// Sets [`id_pattern`](Self::id_pattern); without it, nine letters and digits.
    #[must_use]
    pub fn with_id_pattern(mut self, pattern: impl Into<String>) -> Self {
        self.id_pattern = pattern.into();
        self
    }

    /// Sets [`clues`](Self::clues) and [`counter_clues`](Self::counter_clues).
    #[must_use]
    pub fn with_clues(mut self, clues: &[&str], counter_clues: &[&str]) -> Self {
        let owned = |texts: &[&str]| texts.iter().map(|&text| text.to_owned()).collect();
        (self.clues, self.counter_clues) = (owned(clues), owned(counter_clues));
        self
    }

    /// Whether a chat template is of this family, by its clues; without any, it is of none.
    #[must_use]
    pub fn is_of(&self, template: &str) -> bool {
        let within = |clue: &String| template.contains(clue.as_str());
        !self.clues.is_empty() && self.clues.iter().all(within) && !self.counter_clues.iter().any(within)
    }

    /// The family of [`known`](Self::known) that a chat template is of; `None` where it is of none, or knows no tools.
    #[must_use]
    pub fn detect(template: &str) -> Option<Self> {
        Self::known().into_iter().find(|format| format.is_of(template))
    }

    /// A mistake in a format that was made by hand.
    pub(super) fn check(&self) -> Result<()> {
        let invalid = |what: &str| Err(Error::invalid_input(format!("tool format `{}`: {what}", self.name)));
        if self.call.begin.trim().is_empty() && !self.bare {
            return invalid("a call begins with nothing; give it a marker, or say that it is bare");
        }
        match &self.body {
            ToolBody::Object(fields) | ToolBody::List(fields) => {
                if fields.name.is_empty() || fields.arguments.is_empty() || fields.name == fields.arguments {
                    return invalid("a call's name and its arguments need fields of their own");
                }
            }
            ToolBody::Named { .. } if self.bare => {
                return invalid("a bare call is a JSON object or a list; one with its name before it is not");
            }
            ToolBody::Named { id, arguments } => {
                if arguments.trim().is_empty() || id.as_ref().is_some_and(|id| id.trim().is_empty()) {
                    return invalid("a name needs something after it to end with");
                }
            }
        }
        if self.id_pattern.contains('/') {
            return invalid("the pattern of an id has a `/`, which ends a pattern in a grammar; no id has one");
        }
        if self.section.as_ref().is_some_and(|section| section.begin.trim().is_empty()) {
            return invalid("a section begins with nothing; leave it out");
        }
        Ok(())
    }

    /// Every marker there is, without the blanks around it.
    pub(super) fn markers(&self) -> impl Iterator<Item = &str> {
        let (id, arguments) = match &self.body {
            ToolBody::Named { id, arguments } => (id.as_deref(), Some(arguments.as_str())),
            _ => (None, None),
        };
        let section = self.section.iter().flat_map(|section| [section.begin.as_str(), section.end.as_str()]);
        let call = [self.call.begin.as_str(), self.call.end.as_str(), self.separator.as_str()];
        let all = call.into_iter().chain(section).chain(id).chain(arguments);
        all.map(str::trim).filter(|marker| !marker.is_empty())
    }
}

/// How a model's answers are laid out: which part is thought, which is a call, and which is said.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize), serde(default))]
#[non_exhaustive]
pub struct AnswerFormat {
    /// How calls look; without it none is read.
    pub tools: Option<ToolFormat>,
    /// What stands around a model's reasoning; without it all is content.
    pub reasoning: Option<Markers>,
    /// Whether the answer begins inside its reasoning, since the prompt ends with the marker. Of no effect without
    /// [`reasoning`](Self::reasoning).
    pub reasoning_open: bool,
}

/// What stands around reasoning, in the templates there are; the first whose end is in a template counts.
const REASONING: [(&str, &str); 5] = [
    ("<think>", "</think>"),
    ("[THINK]", "[/THINK]"),
    ("<|START_THINKING|>", "<|END_THINKING|>"),
    ("<seed:think>", "</seed:think>"),
    ("<|inner_prefix|>", "<|inner_suffix|>"),
];

impl AnswerFormat {
    /// Nothing but content.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// What a chat template says of the answers it is for.
    #[must_use]
    pub fn detect(template: &str) -> Self {
        let reasoning = REASONING.iter().find(|(_, end)| template.contains(end));
        Self {
            tools: ToolFormat::detect(template),
            reasoning: reasoning.map(|&(begin, end)| Markers::new(begin, end)),
            reasoning_open: false,
        }
    }

    /// Sets [`tools`](Self::tools).
    #[must_use]
    pub fn with_tools(mut self, tools: impl Into<Option<ToolFormat>>) -> Self {
        self.tools = tools.into();
        self
    }

    /// Sets [`reasoning`](Self::reasoning).
    #[must_use]
    pub fn with_reasoning(mut self, reasoning: impl Into<Option<Markers>>) -> Self {
        self.reasoning = reasoning.into();
        self
    }

    /// Sets [`reasoning_open`](Self::reasoning_open).
    #[must_use]
    pub fn with_reasoning_open(mut self, open: bool) -> Self {
        self.reasoning_open = open;
        self
    }

    /// Sets [`reasoning_open`](Self::reasoning_open) as this prompt leaves it.
    #[must_use]
    pub fn for_prompt(self, prompt: &str) -> Self {
        let open = self.reasoning.as_ref().is_some_and(|markers| markers.opened_by(prompt));
        self.with_reasoning_open(open)
    }

    /// Every marker there is, without the blanks around it. What a [`Detokenizer`](crate::Detokenizer) leaves out of a text, it
    /// must not leave out of these: [`with_shown`](crate::Detokenizer::with_shown).
    pub fn markers(&self) -> impl Iterator<Item = &str> {
        let tools = self.tools.iter().flat_map(ToolFormat::markers);
        let reasoning = self.reasoning.iter().flat_map(|markers| [markers.begin.trim(), markers.end.trim()]);
        tools.chain(reasoning).filter(|marker| !marker.is_empty())
    }
}
