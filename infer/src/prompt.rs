//! From a request as it was made to one that a session can begin.

#[cfg(feature = "chat")]
mod chat;

use crate::{Prompt, Request};
use infer_core::{ModelInfo, Result, Token, Tokenizer};
use std::{mem, sync::Arc};

/// Encodes prompts, and finds out what they imply. `Send + Sync`: it is used where the caller is, not where passes run.
pub(crate) struct Prompter {
    tokenizer: Arc<dyn Tokenizer>,
    #[cfg(feature = "chat")]
    model: chat::ChatModel,
}

impl Prompter {
    /// For a model of which nothing but its tokenizer is known: it has no conversations.
    pub(crate) fn new(tokenizer: Arc<dyn Tokenizer>) -> Self {
        Self {
            tokenizer,
            #[cfg(feature = "chat")]
            model: chat::ChatModel::unknown(),
        }
    }

    pub(crate) fn for_model(tokenizer: Arc<dyn Tokenizer>, info: &ModelInfo) -> Self {
        #[cfg(not(feature = "chat"))]
        let _ = info;
        Self {
            tokenizer,
            #[cfg(feature = "chat")]
            model: chat::ChatModel::new(info),
        }
    }

    pub(crate) fn tokenizer(&self) -> &Arc<dyn Tokenizer> {
        &self.tokenizer
    }

    /// The request with its prompt taken out, as tokens, and with all that the prompt and its tools imply: the form of the
    /// answer, and what it must be.
    ///
    /// # Errors
    /// [`InvalidInput`](crate::ErrorKind::InvalidInput) for a text that is too long, tools that are wrong or contradict the
    /// constraint; [`Template`](crate::ErrorKind::Template) for a conversation that the template refuses;
    /// [`Unsupported`](crate::ErrorKind::Unsupported) where the model has no template, or none for tools.
    pub(crate) fn prepare(&self, mut request: Request) -> Result<(Request, Vec<Token>)> {
        let prompt = mem::replace(&mut request.prompt, Prompt::Tokens(Vec::new()));
        #[cfg(feature = "chat")]
        let prompt = self.model.prepare(&*self.tokenizer, prompt, &mut request)?;
        let tokens = match prompt {
            Prompt::Tokens(tokens) => tokens,
            Prompt::Text(text, special) => {
                let mut tokens = Vec::new();
                self.tokenizer.encode(&text, special, &mut tokens)?;
                tokens
            }
            #[cfg(feature = "chat")]
            Prompt::Chat(_) => unreachable!("a conversation was rendered"),
        };
        Ok((request, tokens))
    }
}
