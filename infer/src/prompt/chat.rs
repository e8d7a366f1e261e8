use crate::{Prompt, Request, conversation};
use infer_core::{
    Detokenizer, Error, ModelInfo, Result, Special, Token, Tokenizer,
    chat::{AnswerFormat, Message, Template, ToolChoice, Tools},
};
use std::{borrow::Cow, sync::OnceLock};

/// Tokens at the end of a prompt among which the marker is that opens the reasoning.
const TAIL: usize = 16;

/// What is known of how a model converses.
pub(super) struct ChatModel {
    /// `None` where nothing is known of the model; inside, its template if it has one.
    source: Option<Option<String>>,
    /// Parsed when it is first needed.
    template: OnceLock<Template>,
    format: AnswerFormat,
}

impl ChatModel {
    pub(super) fn unknown() -> Self {
        Self { source: None, template: OnceLock::new(), format: AnswerFormat::new() }
    }

    pub(super) fn new(info: &ModelInfo) -> Self {
        let format = info.chat_template.as_deref().map(AnswerFormat::detect).unwrap_or_default();
        Self { source: Some(info.chat_template.clone()), template: OnceLock::new(), format }
    }

    /// Renders a conversation, and puts into the request what its tools and its prompt imply.
    pub(super) fn prepare(&self, tokenizer: &dyn Tokenizer, prompt: Prompt, request: &mut Request) -> Result<Prompt> {
        let tools = request.tools.as_deref().map(Tools::parse).transpose()?;
        let told = tools.as_ref().filter(|tools| !tools.is_empty() && request.tool_choice != ToolChoice::None);
        let is_chat = matches!(prompt, Prompt::Chat(_));
        let mut format = match request.answer_format.take() {
            Some(format) => Some(format),
            None if is_chat || told.is_some() => Some(self.detected(told.is_some())?),
            None => None,
        };
        if let Some(format) = format.as_mut().filter(|_| request.tool_choice == ToolChoice::None) {
            format.tools = None;
        }
        let prompt = match prompt {
            Prompt::Chat(messages) => self.render(tokenizer, &messages, told, request)?,
            other => other,
        };
        let format = format.map(|format| format.for_prompt(&end(&prompt, tokenizer))).unwrap_or_default();
        let vocab = tokenizer.vocab();
        let tools = tools.unwrap_or_default();
        let demanded = tools.constraint(&request.tool_choice, request.parallel_tool_calls, &format, vocab)?;
        if let Some(demanded) = demanded {
            if request.sampling.constraint.is_some() {
                return Err(Error::invalid_input(
                    "the answer must be a call of a tool and meet a constraint as well; leave out one of them",
                ));
            }
            request.sampling.constraint = Some(demanded);
        }
        request.answer_format = Some(format).filter(|format| *format != AnswerFormat::new());
        Ok(prompt)
    }

    /// What the template says of answers; with tools, that must be how calls look.
    fn detected(&self, with_tools: bool) -> Result<AnswerFormat> {
        if !with_tools {
            return Ok(self.format.clone().with_tools(None));
        }
        let source = self.source.as_ref().and_then(Option::as_deref).unwrap_or_default();
        if !source.contains("tools") {
            return Err(Error::unsupported(
                "the model has no chat template that knows tools; describe them in a message, and say with \
                 `Request::with_answer_format` how calls look",
            ));
        }
        if self.format.tools.is_none() {
            return Err(Error::unsupported(
                "how this model writes calls of tools is not known from its chat template; say it with \
                 `Request::with_answer_format`",
            ));
        }
        Ok(self.format.clone())
    }

    fn render(
        &self,
        tokenizer: &dyn Tokenizer,
        messages: &[Message],
        tools: Option<&Tools>,
        request: &Request,
    ) -> Result<Prompt> {
        let options = match tools {
            Some(tools) => &request.render.clone().with_tools(tools.as_json()),
            None => &request.render,
        };
        Ok(Prompt::Text(self.template(tokenizer)?.render(messages, options)?, Special::PARSE))
    }

    fn template(&self, tokenizer: &dyn Tokenizer) -> Result<&Template> {
        if let Some(template) = self.template.get() {
            return Ok(template);
        }
        let Some(source) = &self.source else {
            return Err(Error::unsupported(
                "a generator that knows only a tokenizer has no chat template; make it with `Generator::for_model`, or render \
                 the conversation with `chat_template`",
            ));
        };
        let template = conversation::template(source.as_deref(), tokenizer.vocab())?;
        Ok(self.template.get_or_init(|| template))
    }
}

/// The end of a prompt as text, control tokens by name.
fn end<'p>(prompt: &'p Prompt, tokenizer: &dyn Tokenizer) -> Cow<'p, str> {
    match prompt {
        Prompt::Text(text, _) => text.into(),
        Prompt::Tokens(tokens) => tail(tokens, tokenizer).into(),
        Prompt::Chat(_) => Cow::default(),
    }
}

/// Tokens outside the vocabulary are the session's to refuse.
fn tail(tokens: &[Token], tokenizer: &dyn Tokenizer) -> String {
    let tail = &tokens[tokens.len().saturating_sub(TAIL)..];
    let mut detokenizer = Detokenizer::new(tokenizer.vocab().clone()).with_special(true);
    detokenizer.decode(tail).unwrap_or_default()
}
