#[cfg(feature = "chat")]
use infer_core::chat::{AnswerFormat, Message, RenderOptions, ToolChoice};
use infer_core::{Sampling, Special, Token};
use std::time::Instant;

/// What is to be generated: a prompt, how tokens are drawn, and where the text ends.
///
/// The default is greedy decoding until the model ends the text or the context is full. A [`Generator`](crate::Generator)
/// takes one by hand, an engine takes many at once.
///
/// ```
/// use infer::{Request, Sampling};
///
/// let request = Request::text("Three rivers:")
///     .with_sampling(Sampling::default().with_temperature(0.7).with_seed(42))
///     .with_max_tokens(64)
///     .with_stop("\n\n");
/// assert_eq!(request.stop, ["\n\n"]);
/// ```
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Request {
    /// What the text begins with.
    pub prompt: Prompt,
    /// How tokens are drawn.
    pub sampling: Sampling,
    /// Tokens drawn at most; `None` is as many as the context has room for. With 0 the prompt is fed and nothing drawn.
    pub max_tokens: Option<usize>,
    /// Texts that end the generation; they are not part of the result, wherever tokens begin or end.
    pub stop: Vec<String>,
    /// Tokens that end the generation, besides those the model itself ends a text with.
    pub stop_tokens: Vec<Token>,
    /// Go on where the model would end the text.
    pub ignore_end: bool,
    /// The adapter (LoRA) it is computed with, by the name the session knows it under; `None` for the bare model.
    pub adapter: Option<String>,
    /// How many completions are generated from the one prompt, which is computed once. The seed of the first is the one of
    /// [`sampling`](Self::sampling), of each further one the next number. For engines.
    pub n: usize,
    /// When to stop at the latest, whatever there is by then: it ends with [`FinishReason::Deadline`](crate::FinishReason::Deadline).
    pub deadline: Option<Instant>,
    /// What happens where the context is full.
    pub overflow: Overflow,
    /// What the chat template is told besides the messages, where the prompt is a conversation.
    #[cfg(feature = "chat")]
    pub render: RenderOptions,
    /// The functions that the model may call: JSON text, a list of schemas in OpenAI's form ([`Tools::parse`]). The chat template
    /// tells the model of them; where the prompt is no conversation, that was done by whoever wrote it.
    ///
    /// [`Tools::parse`]: infer_core::chat::Tools::parse
    #[cfg(feature = "chat")]
    pub tools: Option<String>,
    /// Whether it calls them. [`Required`](ToolChoice::Required) and [`Named`](ToolChoice::Named) constrain the answer, so they need the
    /// feature `constraint` and go with no other constraint.
    #[cfg(feature = "chat")]
    pub tool_choice: ToolChoice,
    /// Whether an answer that must be a call may be several; on, unless turned off.
    #[cfg(feature = "chat")]
    pub parallel_tool_calls: bool,
    /// How the answer is laid out: what of it is reasoning, and how calls look. `None` is what the model's chat template
    /// says, where the prompt is a conversation or there are [`tools`](Self::tools), and else nothing but text.
    #[cfg(feature = "chat")]
    pub answer_format: Option<AnswerFormat>,
}

/// What happens where a text does not fit the context.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Overflow {
    /// It ends where the context is full, with [`FinishReason::ContextFull`](crate::FinishReason::ContextFull).
    #[default]
    Stop,
    /// An error: before anything is computed where prompt and [`max_tokens`](Request::max_tokens) do not fit together, else where
    /// the context is full.
    Error,
    /// The older half of its tokens goes, but for the first four, and what follows moves up (a *context shift*): the text goes on, and what
    /// was dropped is not known any more. Needs [`max_tokens`](Request::max_tokens), since such a text may never end. For engines, and
    /// sessions that [can](crate::Capabilities::shift).
    Shift,
}

/// What a text begins with.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Prompt {
    /// Text, and how special tokens are treated when it is encoded.
    Text(String, Special),
    /// Tokens, fed as they are.
    Tokens(Vec<Token>),
    /// A conversation, rendered by the model's own chat template. For engines, and generators that
    /// [know the model](crate::Generator::for_model).
    #[cfg(feature = "chat")]
    Chat(Vec<Message>),
}

impl From<&str> for Prompt {
    fn from(text: &str) -> Self {
        Self::from(text.to_owned())
    }
}

/// With the tokens that the model wants before a text.
impl From<String> for Prompt {
    fn from(text: String) -> Self {
        Self::Text(text, Special::ADD)
    }
}

impl From<Vec<Token>> for Prompt {
    fn from(tokens: Vec<Token>) -> Self {
        Self::Tokens(tokens)
    }
}

impl From<&[Token]> for Prompt {
    fn from(tokens: &[Token]) -> Self {
        Self::Tokens(tokens.to_vec())
    }
}

impl Request {
    /// Continues a text, with the tokens that the model wants before one. Names of control tokens in it are text.
    #[must_use]
    pub fn text(text: impl Into<String>) -> Self {
        Self::new(Prompt::Text(text.into(), Special::ADD))
    }

    /// Answers a conversation: `text` is what a chat template made of it, so names of control tokens in it are control
    /// tokens and nothing is added.
    #[must_use]
    pub fn rendered(text: impl Into<String>) -> Self {
        Self::new(Prompt::Text(text.into(), Special::PARSE))
    }

    /// Continues these tokens.
    #[must_use]
    pub fn tokens(tokens: impl Into<Vec<Token>>) -> Self {
        Self::new(Prompt::Tokens(tokens.into()))
    }

    /// Answers a conversation, which the model's own chat template renders.
    #[cfg(feature = "chat")]
    #[must_use]
    pub fn chat(messages: impl Into<Vec<Message>>) -> Self {
        Self::new(Prompt::Chat(messages.into()))
    }

    pub(crate) fn new(prompt: Prompt) -> Self {
        Self {
            prompt,
            sampling: Sampling::default(),
            max_tokens: None,
            stop: Vec::new(),
            stop_tokens: Vec::new(),
            ignore_end: false,
            adapter: None,
            n: 1,
            deadline: None,
            overflow: Overflow::Stop,
            #[cfg(feature = "chat")]
            render: RenderOptions::new(),
            #[cfg(feature = "chat")]
            tools: None,
            #[cfg(feature = "chat")]
            tool_choice: ToolChoice::Auto,
            #[cfg(feature = "chat")]
            parallel_tool_calls: true,
            #[cfg(feature = "chat")]
            answer_format: None,
        }
    }

    /// How tokens are drawn.
    #[must_use]
    pub fn with_sampling(mut self, sampling: Sampling) -> Self {
        self.sampling = sampling;
        self
    }

    /// Tokens drawn at most.
    #[must_use]
    pub fn with_max_tokens(mut self, max_tokens: usize) -> Self {
        self.max_tokens = Some(max_tokens);
        self
    }

    /// Adds a text that ends the generation.
    #[must_use]
    pub fn with_stop(mut self, text: impl Into<String>) -> Self {
        self.stop.push(text.into());
        self
    }

    /// Adds a token that ends the generation.
    #[must_use]
    pub fn with_stop_token(mut self, token: Token) -> Self {
        self.stop_tokens.push(token);
        self
    }

    /// The adapter (LoRA) it is computed with, one of those that the session was made with
    /// ([`SessionOptions::with_adapter`](infer_core::SessionOptions::with_adapter)).
    #[must_use]
    pub fn with_adapter(mut self, name: impl Into<String>) -> Self {
        self.adapter = Some(name.into());
        self
    }

    /// Go on where the model would end the text: for measuring, and for text without an end.
    #[must_use]
    pub fn with_ignore_end(mut self, ignore_end: bool) -> Self {
        self.ignore_end = ignore_end;
        self
    }

    /// How many completions are generated from the one prompt.
    #[must_use]
    pub fn with_n(mut self, n: usize) -> Self {
        self.n = n;
        self
    }

    /// When to stop at the latest.
    #[must_use]
    pub fn with_deadline(mut self, deadline: Instant) -> Self {
        self.deadline = Some(deadline);
        self
    }

    /// What happens where the context is full.
    #[must_use]
    pub fn with_overflow(mut self, overflow: Overflow) -> Self {
        self.overflow = overflow;
        self
    }

    /// What the chat template is told besides the messages.
    #[cfg(feature = "chat")]
    #[must_use]
    pub fn with_render_options(mut self, options: RenderOptions) -> Self {
        self.render = options;
        self
    }

    /// The functions that the model may call: JSON text, a list of schemas in OpenAI's form. It is read when the text begins.
    ///
    /// ```
    /// use infer::{Request, chat::{Message, ToolChoice}};
    ///
    /// let request = Request::chat([Message::user("How late is it in Rome?")])
    ///     .with_tools(
    ///         r#"[{"type": "function", "function": {"name": "time", "description": "Tells the time in a city.",
    ///             "parameters": {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}}}]"#,
    ///     )
    ///     .with_tool_choice(ToolChoice::Required);
    /// ```
    #[cfg(feature = "chat")]
    #[must_use]
    pub fn with_tools(mut self, json: impl Into<String>) -> Self {
        self.tools = Some(json.into());
        self
    }

    /// Whether the model calls tools.
    #[cfg(feature = "chat")]
    #[must_use]
    pub fn with_tool_choice(mut self, choice: ToolChoice) -> Self {
        self.tool_choice = choice;
        self
    }

    /// Whether an answer that must be a call may be several.
    #[cfg(feature = "chat")]
    #[must_use]
    pub fn with_parallel_tool_calls(mut self, parallel: bool) -> Self {
        self.parallel_tool_calls = parallel;
        self
    }

    /// How the answer is laid out, where the model's chat template does not say so.
    #[cfg(feature = "chat")]
    #[must_use]
    pub fn with_answer_format(mut self, format: AnswerFormat) -> Self {
        self.answer_format = Some(format);
        self
    }
}
