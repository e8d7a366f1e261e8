use infer_core::{Error, Model, Result, Vocab, chat::Template};

/// The chat template that comes with a model, told the model's special tokens.
///
/// ```no_run
/// use infer::{Generator, Request, SessionOptions};
/// use infer::chat::{Message, RenderOptions};
///
/// let model = infer::open("model.gguf")?;
/// let template = infer::chat_template(&*model)?;
/// let prompt = template.render(&[Message::user("Name three rivers.")], &RenderOptions::new())?;
/// let mut session = model.session(&SessionOptions::new())?;
/// let answer = Generator::new(model.tokenizer()).generate(&mut session, &Request::rendered(prompt))?.complete()?;
/// println!("{}", answer.text);
/// # Ok::<(), infer::Error>(())
/// ```
///
/// # Errors
/// [`Unsupported`](crate::ErrorKind::Unsupported) when there is none in the file;
/// [`Template`](crate::ErrorKind::Template) when it cannot be parsed.
pub fn chat_template(model: &dyn Model) -> Result<Template> {
    template(model.info().chat_template.as_deref(), model.tokenizer().vocab())
}

/// The template with this source, told the special tokens of `vocab`.
pub(crate) fn template(source: Option<&str>, vocab: &Vocab) -> Result<Template> {
    let Some(source) = source else {
        return Err(Error::unsupported(
            "the model's file has no chat template; write the turns into the prompt by hand, or use a model that was tuned \
             for conversations",
        ));
    };
    Ok(Template::new(source)?.with_vocab(vocab))
}
