use crate::{
    Error, ErrorKind, Result, Token, Vocab,
    chat::{
        Message, RenderOptions, clock,
        guard::{Guarded, guard},
        json,
        message::Arguments,
        methods,
        values::{self, FACTOR, FIELD, OWN},
    },
};
use minijinja::{
    AutoEscape, Environment, State, UndefinedBehavior, Value,
    syntax::SyntaxConfig,
    value::{Rest, ValueKind, ValueOrKwargs},
};
use std::{
    collections::BTreeMap,
    error::Error as StdError,
    fmt,
    panic::{self, AssertUnwindSafe},
    sync::Arc,
    time::SystemTime,
};

/// The largest template there may be, in bytes. The largest in use have 20,000.
const MAX_SOURCE: usize = 256 << 10;
/// How deep macros and loops may call each other.
const MAX_RECURSION: usize = 200;
/// Filters of the engine that make much of little, and that no chat template uses.
const NOT_FILTERS: [&str; 5] = ["batch", "slice", "zip", "chain", "pprint"];
/// How templates ask, and for nothing else, whether a message has content.
const ASKS_FOR_CONTENT: [&str; 4] =
    ["content is none %}", "content is none -%}", "content'] is none %}", "content'] is none -%}"];
/// What a template is known by inside the engine.
const NAME: &str = "chat";

/// A chat template, parsed and ready to render conversations. `Send + Sync`, and cheap to clone.
#[derive(Clone)]
pub struct Template {
    environment: Environment<'static>,
    /// Whether it looks at the calls of a message.
    knows_calls: bool,
    /// Whether it asks if a message has content: with calls and without it, the content is `none` then, as in OpenAI's form.
    asks_for_content: bool,
    bos: Arc<str>,
    eos: Arc<str>,
}

impl Template {
    /// Parses a template.
    ///
    /// # Errors
    /// [`Template`](ErrorKind::Template), with the line, when it is not Jinja, or is larger or nested deeper than a chat
    /// template has any reason to be.
    ///
    /// ```
    /// use infer_core::{ErrorKind, chat::Template};
    ///
    /// let error = Template::new("Hello\n{{ messages[ }}").unwrap_err();
    /// assert_eq!(error.kind(), ErrorKind::Template);
    /// assert!(error.to_string().contains("line 2"), "{error}");
    /// ```
    pub fn new(source: &str) -> Result<Self> {
        if source.len() > MAX_SOURCE {
            let message =
                format!("chat template: it has {} bytes, the most there may be is {MAX_SOURCE}", source.len());
            return Err(Error::new(ErrorKind::Template, message));
        }
        let Guarded { plain, guarded } = guard(source).map_err(|refusal| {
            let message = format!("chat template, line {}: {}", refusal.line(source), refusal.reason);
            Error::new(ErrorKind::Template, message)
        })?;
        let mut environment = environment();
        // The first for its errors, which are about what was written.
        environment.add_template_owned(NAME, plain).map_err(|error| explain(&error))?;
        environment.add_template_owned(NAME, guarded).map_err(|error| explain(&error))?;
        Ok(Self {
            environment,
            knows_calls: source.contains("tool_calls"),
            asks_for_content: ASKS_FOR_CONTENT.iter().any(|test| source.contains(test)),
            bos: "".into(),
            eos: "".into(),
        })
    }

    /// Gives the template the texts of the vocabulary's special tokens, as `bos_token` and `eos_token`. Where there is
    /// none they stay empty.
    #[must_use]
    pub fn with_vocab(self, vocab: &Vocab) -> Self {
        let text = |token: Option<Token>| {
            let bytes = token.and_then(|token| vocab.bytes(token)).unwrap_or_default();
            String::from_utf8_lossy(bytes).into_owned()
        };
        let (bos, eos) = (text(vocab.special().bos), text(vocab.special().eos));
        self.with_bos(&bos).with_eos(&eos)
    }

    /// The text that the template sees as `bos_token`.
    #[must_use]
    pub fn with_bos(mut self, text: &str) -> Self {
        self.bos = text.into();
        self
    }

    /// The text that the template sees as `eos_token`.
    #[must_use]
    pub fn with_eos(mut self, text: &str) -> Self {
        self.eos = text.into();
        self
    }

    /// Renders a conversation.
    ///
    /// # Errors
    /// [`Template`](ErrorKind::Template), with the line, when the template refuses the conversation (many want user and
    /// assistant to take turns, beginning with the user), uses something undefined, or does more work than the
    /// conversation can need. [`InvalidInput`](ErrorKind::InvalidInput) for a field, a variable, arguments of a call or tools that are
    /// not JSON; [`Unsupported`](ErrorKind::Unsupported) for [calls](Message::assistant_calls) where the template knows none.
    ///
    /// ```
    /// use infer_core::{ErrorKind, chat::{Message, RenderOptions, Template}};
    ///
    /// let template = Template::new("{% if messages[0].role != 'user' %}{{ raise_exception('Users first!') }}{% endif %}")?;
    /// let error = template.render(&[Message::assistant("Hi!")], &RenderOptions::new()).unwrap_err();
    /// assert_eq!(error.kind(), ErrorKind::Template);
    /// assert!(error.to_string().contains("Users first!"), "{error}");
    /// # Ok::<(), infer_core::Error>(())
    /// ```
    pub fn render(&self, messages: &[Message], options: &RenderOptions) -> Result<String> {
        let has_calls = messages.iter().any(|message| !message.calls.is_empty());
        if has_calls && !self.knows_calls {
            return Err(Error::unsupported(
                "the chat template knows no calls of tools, and would leave them out; write them into the message's content",
            ));
        }
        let rendered = self.render_with(messages, options, Arguments::Object);
        if has_calls && rendered.as_ref().is_err_and(|error| error.kind() == ErrorKind::Template) {
            return self.render_with(messages, options, Arguments::Text).or(rendered);
        }
        rendered
    }

    fn render_with(&self, messages: &[Message], options: &RenderOptions, arguments: Arguments) -> Result<String> {
        let bytes = messages.iter().map(Message::bytes).sum::<usize>() + options.bytes();
        let mut environment = self.environment.clone();
        environment.set_fuel(Some(fuel(messages.len() as u64, bytes as u64)));
        let template = environment.get_template(NAME).map_err(|error| explain(&error))?;
        let context = self.context(messages, options, arguments)?;
        // The engine has corners where it panics (`loop.cycle()`); a template must not.
        match panic::catch_unwind(AssertUnwindSafe(|| template.render(context))) {
            Ok(rendered) => rendered.map_err(|error| explain(&error)),
            Err(_) => Err(Error::new(ErrorKind::Template, "chat template: the template engine panicked on it")),
        }
    }

    /// The template's globals, by the names the field gives them.
    fn context(&self, messages: &[Message], options: &RenderOptions, arguments: Arguments) -> Result<Value> {
        let messages = messages
            .iter()
            .map(|message| message.value(arguments, self.asks_for_content))
            .collect::<Result<Vec<Value>>>()?;
        let tools = options.tools.as_deref().map_or(Ok(Value::from(())), |tools| json::parse("tools", tools))?;
        let now = options.now.unwrap_or_else(SystemTime::now);
        let mut globals = BTreeMap::from([
            ("messages", values::list(messages)),
            ("add_generation_prompt", options.generation_prompt.into()),
            ("bos_token", Value::from(&*self.bos)),
            ("eos_token", Value::from(&*self.eos)),
            ("tools", tools),
            ("documents", Value::from(())),
            ("strftime_now", Value::from_function(move |format: &str| clock::strftime(now, format))),
        ]);
        for (name, text) in &options.variables {
            globals.insert(name, json::parse(name, text)?);
        }
        Ok(Value::from(globals))
    }
}

impl fmt::Debug for Template {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Template").field("bos", &self.bos).field("eos", &self.eos).finish_non_exhaustive()
    }
}

/// The work a template may do for so many messages, and so many bytes of messages, tools and variables. An instruction
/// costs one, and so do 64 bytes that it makes.
///
/// Some templates in use look through all messages for each message, or build the prompt by making a longer copy of it
/// for each piece, so it grows with the square of a conversation, within limits. With it each of the 70 templates that
/// come with llama.cpp renders 1,600 messages with tool calls.
fn fuel(messages: u64, bytes: u64) -> u64 {
    let once = 300_000 + 1000 * messages + 4 * bytes;
    let each_for_each = messages.saturating_mul(100 * messages + bytes / 4);
    once + each_for_each.min(16_000_000)
}

/// Jinja as chat templates expect it: blank lines treated as in the reference implementation, Python's methods, nothing
/// escaped, and no way to load anything.
fn environment() -> Environment<'static> {
    let mut environment = Environment::new();
    let syntax = SyntaxConfig::builder().trim_blocks(true).lstrip_blocks(true).build();
    environment.set_syntax(syntax.expect("the usual delimiters"));
    environment.set_undefined_behavior(UndefinedBehavior::Lenient);
    environment.set_auto_escape_callback(|_| AutoEscape::None);
    environment.set_recursion_limit(MAX_RECURSION);
    environment.set_unknown_method_callback(methods::call);
    environment.add_filter("tojson", json::tojson);
    environment.add_filter("map", |state: &mut State<'_, '_>, list: Value, options: Rest<ValueOrKwargs>| {
        let mapped = minijinja::filters::map(state, list, options)?;
        values::own(state, &Value::from(mapped))
    });
    for filter in NOT_FILTERS {
        environment.remove_filter(filter);
    }
    environment.remove_global("debug");
    environment.add_function("namespace", values::namespace);
    environment.add_function(OWN, values::own);
    environment.add_function(FIELD, values::field);
    environment.add_function(FACTOR, values::factor);
    // In Python a text and a map have a length and items, undefined has no items, and `none` is neither.
    let has_items = |value: &Value| !matches!(value.kind(), ValueKind::None | ValueKind::Number | ValueKind::Bool);
    environment.add_test("iterable", has_items);
    environment.add_test("sequence", has_items);
    environment.add_function("raise_exception", |text: &str| -> Result<Value, minijinja::Error> {
        Err(minijinja::Error::new(minijinja::ErrorKind::InvalidOperation, "raised")
            .with_source(Raised(text.to_owned())))
    });
    environment
}

/// What a template passed to `raise_exception`.
#[derive(Debug)]
struct Raised(String);

impl fmt::Display for Raised {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl StdError for Raised {}

/// The engine's error as ours: where in the template, what, and in the template's own words if it has any.
fn explain(error: &minijinja::Error) -> Error {
    let chain = std::iter::successors(Some(error as &dyn StdError), |&error| error.source());
    let mut line = None;
    let (mut said, mut reasons, mut exhausted) = (None, Vec::new(), false);
    for cause in chain {
        if let Some(Raised(text)) = cause.downcast_ref() {
            said = Some(text.clone());
        } else if let Some(cause) = cause.downcast_ref::<minijinja::Error>() {
            line = cause.line().or(line); // the innermost one: in the macro, not where it was called
            exhausted |= cause.kind() == minijinja::ErrorKind::OutOfFuel;
            reasons.push(match cause.detail() {
                Some(detail) => format!("{}: {detail}", cause.kind()),
                None => cause.kind().to_string(),
            });
        } else {
            reasons.push(cause.to_string());
        }
    }
    let place = line.map_or_else(|| "chat template".to_owned(), |line| format!("chat template, line {line}"));
    let message = match said {
        Some(text) => format!("{place}: it refuses this conversation: {text}"),
        None if exhausted => format!("{place}: stopped, for it does more work than the conversation can need"),
        None => format!("{place}: {}", reasons.join(": ")),
    };
    Error::new(ErrorKind::Template, message)
}
