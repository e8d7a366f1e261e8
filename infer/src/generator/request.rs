use infer_core::{Sampling, Special, Token};

/// What is to be generated: a prompt, how tokens are drawn, and where the text ends.
///
/// The default is greedy decoding until the model ends the text or the context is full.
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
}

/// What a text begins with.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Prompt {
    /// Text, and how special tokens are treated when it is encoded.
    Text(String, Special),
    /// Tokens, fed as they are.
    Tokens(Vec<Token>),
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

    fn new(prompt: Prompt) -> Self {
        Self {
            prompt,
            sampling: Sampling::default(),
            max_tokens: None,
            stop: Vec::new(),
            stop_tokens: Vec::new(),
            ignore_end: false,
            adapter: None,
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
}
