use std::time::SystemTime;

/// What a template is told besides the messages.
///
/// ```
/// use infer_core::chat::RenderOptions;
/// use std::time::{Duration, UNIX_EPOCH};
///
/// let options = RenderOptions::new()
///     .with_tools(r#"[{"type": "function", "function": {"name": "time"}}]"#)
///     .with_variable("enable_thinking", "false")
///     .with_now(UNIX_EPOCH + Duration::from_secs(1_700_000_000));
/// # let _ = options;
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RenderOptions {
    pub(super) generation_prompt: bool,
    pub(super) tools: Option<String>,
    pub(super) variables: Vec<(String, String)>,
    pub(super) now: Option<SystemTime>,
}

impl RenderOptions {
    /// A prompt that ends with what begins the model's turn; no tools; today's date for templates that ask.
    #[must_use]
    pub fn new() -> Self {
        Self { generation_prompt: true, tools: None, variables: Vec::new(), now: None }
    }

    /// Whether the prompt ends with what begins the model's turn (`add_generation_prompt`).
    #[must_use]
    pub fn with_generation_prompt(mut self, yes: bool) -> Self {
        self.generation_prompt = yes;
        self
    }

    /// The tools the model may call, as JSON text: a list of function schemas. Parsed when the template is rendered.
    #[must_use]
    pub fn with_tools(mut self, json: impl Into<String>) -> Self {
        self.tools = Some(json.into());
        self
    }

    /// A variable that this template knows, such as `enable_thinking`, as JSON text. It may replace one that every
    /// template has. Parsed when the template is rendered.
    #[must_use]
    pub fn with_variable(mut self, name: impl Into<String>, json: impl Into<String>) -> Self {
        self.variables.push((name.into(), json.into()));
        self
    }

    /// The moment that the template's `strftime_now` tells, in UTC. Without it, it is the moment of the call.
    #[must_use]
    pub fn with_now(mut self, now: SystemTime) -> Self {
        self.now = Some(now);
        self
    }

    pub(super) fn bytes(&self) -> usize {
        let variables = self.variables.iter().map(|(name, json)| name.len() + json.len()).sum::<usize>();
        variables + self.tools.as_ref().map_or(0, String::len)
    }
}

impl Default for RenderOptions {
    fn default() -> Self {
        Self::new()
    }
}
