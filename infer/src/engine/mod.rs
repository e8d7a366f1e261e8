//! Many requests, one forward pass.

mod answer;
mod builder;
mod channel;
mod core;
mod encode;
mod generation;
mod inner;
mod job;
mod live;
mod open;
#[cfg(all(shuttle, test))]
mod orders;
mod scheduler;
mod settings;
mod shared;
#[cfg(all(test, feature = "chat", not(shuttle)))]
mod tests;

pub use answer::Answer;
pub use builder::{EngineBuilder, WhenFull};
pub use generation::{Blocking, Generation};
pub use scheduler::{EngineStats, Happened, StepTimes, Timeline, TimelineEvent};

use self::{
    core::{Core, Plan},
    encode::{Pairs, Wanted},
    inner::{Inner, Queue},
    live::Gate,
    open::Made,
};
use crate::{ModelSource, Prompt, Request, Worker, prompt::Prompter};
#[cfg(doc)]
use infer_core::ErrorKind;
use infer_core::{
    Capabilities, Detokenizer, EncoderInfo, KvLayout, Limits, Model, ModelInfo, Result, Sampled, Special, Token,
    Tokenizer,
};
use std::{
    fmt,
    sync::{Arc, OnceLock, atomic::AtomicU64},
    thread,
    time::Instant,
};

/// A model that serves many requests at once: each forward pass is shared by all texts that are being generated.
///
/// It is a handle, cheap to clone and to send: the model lives on a thread of the engine's own, which ends when the last handle is
/// dropped, or at [`shutdown`](Self::shutdown). No method but those that say so waits for a pass. No asynchronous runtime is needed, and
/// any will do.
///
/// ```
/// use infer::{Engine, Request};
/// # use infer_core::testing::{Script, ScriptedModel};
/// # let script = Script::new().with_line("The capital of France is", " Paris.").with_line("Two and two is", " four.");
/// # let open = || Ok(Box::new(ScriptedModel::new(script)) as Box<dyn infer::Model>);
///
/// # if false {
/// let engine = Engine::open("model.gguf")?;
/// # }
/// # let engine = Engine::builder_with(open).build()?;
/// // Both are generated at once.
/// let france = engine.generate(Request::text("The capital of France is").with_max_tokens(16));
/// let sum = engine.generate(Request::text("Two and two is").with_max_tokens(16));
/// for piece in france {
///     print!("{}", piece?.text);
/// }
/// println!("{}", sum.complete()?.text);
/// # Ok::<(), infer::Error>(())
/// ```
///
/// # What is shared
///
/// One pass computes a token of each running text, and chunks of the prompts of new ones beside them. A prompt that begins as another text
/// does, one that is running or has ended, is computed from where they differ. Completions of one request ([`Request::n`]) share its prompt.
/// What a text comes to does not depend on others beside it, but for rounding.
///
/// # The end
///
/// Requests that have not ended when the engine is shut down, or its last handle dropped, end with [`Closed`](ErrorKind::Closed); a
/// running pass is stopped. To let them end first, [`drain`](Self::drain). A handle may be dropped anywhere, also by the engine's own
/// thread, in a waker.
#[derive(Clone)]
pub struct Engine(Arc<Inner>);

/// Making one.
impl Engine {
    /// Opens a model file, everything else by default.
    ///
    /// # Errors
    /// Those of [`EngineBuilder::build`].
    pub fn open(source: impl Into<ModelSource>) -> Result<Self> {
        Self::builder(source).build()
    }

    /// Begins to make an engine for a model file, given as its path or as a [`ModelSource`].
    pub fn builder(source: impl Into<ModelSource>) -> EngineBuilder {
        EngineBuilder::of(source.into())
    }

    /// Begins to make an engine for a model that a function opens, on the engine's thread: any [`Model`] will do.
    pub fn builder_with(open: impl FnOnce() -> Result<Box<dyn Model>> + Send + 'static) -> EngineBuilder {
        EngineBuilder::over(open)
    }

    fn start(plan: Plan, made: &OnceLock<Made>, queue: Queue, template: Option<String>) -> Result<Self> {
        let (shared, encoder) = (plan.shared.clone(), plan.encoder_info.clone());
        // The bound is on waiting requests, of which each job is one.
        let worker =
            Worker::driven("infer-engine", queue.bound.saturating_add(1), move || Core::open(plan), Core::turn)?;
        let (thread, info, tokenizer, refused) = worker
            .call(|core| (thread::current().id(), core.info.clone(), core.tokenizer.clone(), core.refused.take()))?;
        let session = match refused {
            Some(error) => Err(error),
            None => Ok(made.get().expect("a session was made").clone()),
        };
        let prompter = match template {
            Some(template) => Prompter::for_model(tokenizer, &with_template(&info, template)),
            None => Prompter::for_model(tokenizer, &info),
        };
        let (gate, ids) = (Gate::new(), AtomicU64::new(0));
        Ok(Self(Arc::new(Inner { worker, thread, shared, gate, queue, info, prompter, session, encoder, ids })))
    }
}

/// Requests.
impl Engine {
    /// Generates what follows a prompt. Returns at once, but for [`WhenFull::Wait`]: the prompt is rendered and encoded, and a
    /// [constraint](infer_core::Sampling::constraint) compiled, on this thread.
    ///
    /// Whatever is wrong is the first item of the stream:
    /// [`InvalidInput`](ErrorKind::InvalidInput) for an empty prompt or one with tokens outside the vocabulary, sampling out of range, an
    /// empty stop string, an adapter that is not there, no completions or more than there are sequences, a context that is to be shifted
    /// without `max_tokens`; [`ContextFull`](ErrorKind::ContextFull) for a prompt that is longer than the context, or with
    /// [`Overflow::Error`](crate::Overflow::Error) does not fit together with `max_tokens`; [`OutOfCells`](ErrorKind::OutOfCells) for one
    /// that is longer than all cells there are; [`Template`](ErrorKind::Template); [`InvalidConstraint`](ErrorKind::InvalidConstraint);
    /// [`QueueFull`](ErrorKind::QueueFull); [`Closed`](ErrorKind::Closed) after [`shutdown`](Self::shutdown) or [`drain`](Self::drain);
    /// [`Unsupported`](ErrorKind::Unsupported) for a model that does not generate. Errors while it runs come after the text so far:
    /// [`SessionLost`](ErrorKind::SessionLost) where no other session could be made or the request loses each one,
    /// [`Panicked`](ErrorKind::Panicked), [`Closed`](ErrorKind::Closed), and what [`Session::decode`](infer_core::Session::decode) answers.
    pub fn generate(&self, request: Request) -> Generation {
        let (id, n) = (self.0.next_id(), request.n);
        Generation::new(id, n, self.0.thread, self.0.generate(id, request))
    }

    /// The log-probability of each token of a prompt but the first, given all before it. The prompt is at most a context long.
    ///
    /// The answer's errors are those of [`generate`](Self::generate); [`Unsupported`](ErrorKind::Unsupported) too for a session that does
    /// not [score](infer_core::Capabilities::score).
    pub fn score(&self, prompt: impl Into<Prompt>) -> Answer<Vec<Sampled>> {
        self.0.score(prompt.into()).unwrap_or_else(Answer::failed)
    }

    /// A vector for each text, by the model's encoder: embeddings, of length 1 unless the encoder was
    /// [made](EngineBuilder::with_encoder) otherwise. Texts of all who ask share passes, which take turns with those of generated texts.
    ///
    /// The answer's errors: [`InvalidInput`](ErrorKind::InvalidInput) for a text that is empty or longer than the encoder's context, by its
    /// index; [`Unsupported`](ErrorKind::Unsupported) for a model that has no encoder, or one that gives scores; those of making an
    /// [encoder](Model::encoder); [`QueueFull`](ErrorKind::QueueFull); [`Closed`](ErrorKind::Closed).
    pub fn embed<S: AsRef<str>>(&self, texts: impl IntoIterator<Item = S>) -> Answer<Vec<Vec<f32>>> {
        let texts = self.0.encode_all(texts);
        let job = texts.and_then(|texts| self.0.encode(Wanted::Vectors, texts, None, |vectors| vectors));
        job.unwrap_or_else(Answer::failed)
    }

    /// How well each document answers the query, by a reranker: a score each, in the order of the documents, and the higher the better.
    ///
    /// The answer's errors are those of [`embed`](Self::embed), with [`Unsupported`](ErrorKind::Unsupported) for a model that is no
    /// reranker.
    pub fn rerank<S: Into<String>>(
        &self,
        query: impl Into<String>,
        documents: impl IntoIterator<Item = S>,
    ) -> Answer<Vec<f32>> {
        let pairs = Pairs { query: query.into(), documents: documents.into_iter().map(Into::into).collect() };
        let scores = |vectors: Vec<Vec<f32>>| vectors.into_iter().flatten().collect();
        self.0.encode(Wanted::Score, Vec::new(), Some(pairs), scores).unwrap_or_else(Answer::failed)
    }

    /// The scores of each text, one for each of the classifier's [labels](EncoderInfo::labels). They are what the model gives, not
    /// probabilities.
    ///
    /// The answer's errors are those of [`embed`](Self::embed), with [`Unsupported`](ErrorKind::Unsupported) for a model that is no
    /// classifier.
    pub fn classify<S: AsRef<str>>(&self, texts: impl IntoIterator<Item = S>) -> Answer<Vec<Vec<f32>>> {
        let texts = self.0.encode_all(texts);
        let job = texts.and_then(|texts| self.0.encode(Wanted::Labels, texts, None, |scores| scores));
        job.unwrap_or_else(Answer::failed)
    }

    /// The tokens of a text.
    ///
    /// # Errors
    /// Those of [`Tokenizer::encode`].
    pub fn tokenize(&self, text: &str, special: Special) -> Result<Vec<Token>> {
        self.0.tokens(text, special)
    }

    /// The text of tokens; control tokens have none.
    ///
    /// # Errors
    /// [`InvalidInput`](ErrorKind::InvalidInput) for a token outside the vocabulary.
    pub fn detokenize(&self, tokens: &[Token]) -> Result<String> {
        Detokenizer::new(self.tokenizer().vocab().clone()).decode(tokens)
    }
}

/// What it is, and how it is doing.
impl Engine {
    /// What the model file says of itself.
    #[must_use]
    pub fn model(&self) -> &Arc<ModelInfo> {
        &self.0.info
    }

    /// The model's tokenizer, with its vocabulary.
    #[must_use]
    pub fn tokenizer(&self) -> &Arc<dyn Tokenizer> {
        self.0.prompter.tokenizer()
    }

    /// What its session takes: positions of a text, tokens of a pass, texts at once, entries of the vocabulary. `None` for a model that
    /// does not generate.
    #[must_use]
    pub fn limits(&self) -> Option<&Limits> {
        Some(&self.0.session.as_ref().ok()?.limits)
    }

    /// What its session is able to do. `None` for a model that does not generate.
    #[must_use]
    pub fn capabilities(&self) -> Option<&Capabilities> {
        Some(&self.0.session.as_ref().ok()?.capabilities)
    }

    /// How the cells lie; `None` where the backend decides, and for a model that does not generate.
    #[must_use]
    pub fn layout(&self) -> Option<KvLayout> {
        self.0.session.as_ref().ok()?.layout
    }

    /// What its encoder gives and takes; `None` while there is none.
    #[must_use]
    pub fn encoder(&self) -> Option<&EncoderInfo> {
        self.0.encoder.get()
    }

    /// Figures as of the last step; a text whose end was read is counted among them. Waits for nothing.
    #[must_use]
    pub fn stats(&self) -> EngineStats {
        self.0.shared.stats()
    }

    /// Takes no more requests, and waits until those there are have ended; then [`shutdown`](Self::shutdown) interrupts nobody. For all
    /// handles of the engine. On the engine's own thread, in a waker, it does not wait.
    pub fn drain(&self) {
        self.0.drain(None);
    }

    /// As [`drain`](Self::drain), until this time at the latest. Says whether all have ended.
    pub fn drain_until(&self, deadline: Instant) -> bool {
        self.0.drain(Some(deadline))
    }

    /// Ends the engine: requests that have not ended end with [`Closed`](ErrorKind::Closed), a running pass is stopped, and it returns when
    /// the model is closed. For all handles: what they ask for afterwards is [`Closed`](ErrorKind::Closed), while what does not need the
    /// model, such as [`tokenize`](Self::tokenize), still works. On the engine's own thread it does not wait.
    pub fn shutdown(&self) {
        self.0.shared.stop();
        self.0.worker.shutdown();
    }
}

impl fmt::Debug for Engine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = self.0.info.name.as_ref().unwrap_or(&self.0.info.description);
        f.debug_struct("Engine").field("model", name).finish_non_exhaustive()
    }
}

/// The same model with another chat template.
fn with_template(info: &ModelInfo, template: String) -> ModelInfo {
    let mut info = info.clone();
    info.chat_template = Some(template);
    info
}
