//! How an engine is made.

use super::{
    Engine, Queue,
    core::Plan,
    open::{Factory, Made, MakeSession, Opener, Progress, Shape},
    settings::Settings,
    shared::Shared,
};
use crate::{Backend, ModelSource};
use infer_core::{AdapterSource, EncoderOptions, Error, KvLayout, Model, Result, Session, SessionOptions};
use std::{
    fmt,
    ops::ControlFlow,
    sync::{Arc, OnceLock},
    time::Duration,
};

/// Requests that may wait, unless it is said.
const USUAL_QUEUE: usize = 1024;
/// Sequences that run at once, unless it is said.
const USUAL_SEQUENCES: usize = 8;
/// Sequences that the prefix cache keeps beside those that run: as many as run, within these bounds.
const CACHED: (usize, usize) = (8, 64);

/// What happens to a request for which there is no place in the queue.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum WhenFull {
    /// It is refused with [`QueueFull`](crate::ErrorKind::QueueFull), at once.
    #[default]
    Error,
    /// The call that makes it blocks its thread until there is a place, or the request's deadline comes and it is refused. Not for
    /// threads that run asynchronous tasks: these are better refused, and try again later.
    Wait,
}

/// How an [`Engine`] is made: [`Engine::builder`] begins it, [`build`](Self::build) ends it.
///
/// Whatever is left out fits the model and the machine. `docs/engine.md` says how to size an engine.
///
/// ```no_run
/// use infer::{Engine, KvLayout, WhenFull};
/// use std::time::Duration;
///
/// let engine = Engine::builder("model.gguf")
///     .with_sequences(32)
///     .with_context(2048)
///     .with_layout(KvLayout::Unified)
///     .with_cells(24_000)
///     .with_step_time(Duration::from_millis(80))
///     .with_queue(256, WhenFull::Error)
///     .build()?;
/// # Ok::<(), infer::Error>(())
/// ```
#[must_use = "nothing is opened before `build`"]
pub struct EngineBuilder {
    opener: Opener,
    backend: Option<Backend>,
    progress: Option<Progress>,
    make: MakeSession,
    shape: Shape,
    settings: Settings,
    prefix_cache: Option<usize>,
    queue: usize,
    when_full: WhenFull,
    encoder: Option<EncoderOptions>,
    chat_template: Option<String>,
}

impl EngineBuilder {
    pub(super) fn new(opener: Opener) -> Self {
        let shape = Shape {
            common: SessionOptions::new(),
            sequences: USUAL_SEQUENCES,
            cached: 0,
            context: None,
            layout: None,
            cells: None,
        };
        Self {
            opener,
            backend: None,
            progress: None,
            make: Box::new(|model, options| model.session(options)),
            shape,
            settings: Settings::default(),
            prefix_cache: None,
            queue: USUAL_QUEUE,
            when_full: WhenFull::default(),
            encoder: None,
            chat_template: None,
        }
    }

    /// For a model that is opened by a function.
    pub(super) fn over(open: impl FnOnce() -> Result<Box<dyn Model>> + Send + 'static) -> Self {
        Self::new(Opener::Function(Box::new(open)))
    }

    pub(super) fn of(source: ModelSource) -> Self {
        Self::new(Opener::Source(source))
    }

    /// The backend that is to open the model file, whatever the file looks like. A model that a function opens has its own, and
    /// [`build`](Self::build) is then [`InvalidInput`](crate::ErrorKind::InvalidInput).
    pub fn with_backend(mut self, backend: Backend) -> Self {
        self.backend = Some(backend);
        self
    }

    /// Texts that are generated at once; 8 by default. Each of a request's [`n`](crate::Request::n) completions is one. Further requests
    /// wait in the queue.
    pub fn with_sequences(mut self, sequences: usize) -> Self {
        self.shape.sequences = sequences;
        self
    }

    /// Positions that one text can have, its prompt included. By default what the model was trained for, but no more than 4,096, and
    /// halved until the session fits the memory; 0 is what the model was trained for, whatever that is.
    pub fn with_context(mut self, positions: usize) -> Self {
        self.shape.context = Some(positions);
        self
    }

    /// How the cells of the texts lie. By default [`KvLayout::Split`], each text has its own: as measured with llama.cpp on processors, more tokens a
    /// second, also where texts share a beginning, which is copied. [`KvLayout::Unified`] where texts differ much in length, or memory is short:
    /// cells go where they are needed, a shared beginning is there once, and the prefix cache keeps more texts than run at once.
    pub fn with_layout(mut self, layout: KvLayout) -> Self {
        self.shape.layout = Some(layout);
        self
    }

    /// Cells in all: this chooses the unified layout. There by default half of what all texts could fill (context × sequences), and halved
    /// until the session fits the memory. Where they run out, the prefix cache goes first; then the text that began last waits, and is computed
    /// again later.
    pub fn with_cells(mut self, cells: usize) -> Self {
        self.shape.cells = Some(cells);
        self
    }

    /// Tokens that one step computes at most; what the backend takes a pass by default.
    pub fn with_batch(mut self, tokens: usize) -> Self {
        self.settings.batch = Some(tokens);
        self.shape.common.batch = Some(tokens);
        self
    }

    /// How long a step may take while texts are being generated: prompts that come meanwhile are cut into chunks that keep to it, but for
    /// a few tokens a step. Short, running texts flow evenly and new ones wait longer for their first token; long, the other way round. By
    /// default three times what a step of the running texts alone takes, as it is measured.
    pub fn with_step_time(mut self, target: Duration) -> Self {
        self.settings.step_time = Some(target);
        self
    }

    /// Positions that sequences of finished texts may keep, for prompts that begin as they do; 0 is no prefix cache. By default all cells
    /// that running texts leave free: those give way to them, the least recently used first. A beginning of fewer than 16 tokens is
    /// computed again.
    pub fn with_prefix_cache(mut self, positions: usize) -> Self {
        self.prefix_cache = Some(positions);
        self
    }

    /// Threads a pass uses; by default as many as this process may run on. A pass waits for the slowest of them: where others compute
    /// beside it, more than there are cores free make every pass slow.
    pub fn with_threads(mut self, threads: usize) -> Self {
        self.shape.common.threads = Some(threads);
        self
    }

    /// Requests that may wait to be begun, and what happens to one more; 1,024 by default, and an error.
    pub fn with_queue(mut self, requests: usize, when_full: WhenFull) -> Self {
        (self.queue, self.when_full) = (requests, when_full);
        self
    }

    /// Adds an adapter (LoRA) that requests can [name](crate::Request::with_adapter).
    pub fn with_adapter(mut self, adapter: AdapterSource) -> Self {
        self.shape.common.adapters.push(adapter);
        self
    }

    /// Makes the encoder with the engine, and with these options. Without it, it is made with the default ones: for a model that is nothing
    /// else at once, for others by the first call of [`embed`](Engine::embed), [`rerank`](Engine::rerank) or
    /// [`classify`](Engine::classify).
    pub fn with_encoder(mut self, options: EncoderOptions) -> Self {
        self.encoder = Some(options);
        self
    }

    /// The chat template (Jinja) in place of the model's own.
    #[cfg(feature = "chat")]
    pub fn with_chat_template(mut self, template: impl Into<String>) -> Self {
        self.chat_template = Some(template.into());
        self
    }

    /// Is told, on the engine's thread, how much of the model is loaded, from 0 to 1; [`Break`](ControlFlow::Break) gives up, and
    /// [`build`](Self::build) is then [`Cancelled`](crate::ErrorKind::Cancelled). A model that a function opens says nothing.
    pub fn with_progress(mut self, progress: impl FnMut(f32) -> ControlFlow<()> + Send + 'static) -> Self {
        self.progress = Some(Box::new(progress));
        self
    }

    /// How sessions are made, the first one and those that replace a lost one: for options that only one backend has. The function is
    /// called on the engine's thread with the options that the engine would take, which it does well to keep to.
    ///
    /// ```no_run
    /// # #[cfg(feature = "llama")]
    /// # fn main() -> infer::Result<()> {
    /// use infer::{Engine, Model, llama};
    ///
    /// // Keys and values in 8 bits: half the memory.
    /// let model = llama::Model::open(&llama::Llama::linked()?, "model.gguf")?;
    /// let sessions = model.clone();
    /// let engine = Engine::builder_with(move || Ok(Box::new(model) as Box<dyn Model>))
    ///     .with_sessions(move |_, options| {
    ///         let options = llama::SessionOptions::from(options.clone()).with_kv_type(llama::KvType::Q8_0);
    ///         Ok(Box::new(sessions.session(&options)?))
    ///     })
    ///     .build()?;
    /// # Ok(())
    /// # }
    /// # #[cfg(not(feature = "llama"))]
    /// # fn main() {}
    /// ```
    pub fn with_sessions(
        mut self,
        make: impl FnMut(&dyn Model, &SessionOptions) -> Result<Box<dyn Session>> + Send + 'static,
    ) -> Self {
        self.make = Box::new(make);
        self
    }

    /// Starts the engine's thread and opens the model on it; returns when the first request can be taken.
    ///
    /// # Errors
    /// Those of [`open`](crate::open), [`Model::session`] and [`Model::encoder`]; [`OutOfMemory`](crate::ErrorKind::OutOfMemory) where
    /// what was chosen does not fit; [`Template`](crate::ErrorKind::Template) for a chat template that was given and cannot be parsed;
    /// [`InvalidInput`](crate::ErrorKind::InvalidInput) for a queue or a number of sequences of 0;
    /// [`Cancelled`](crate::ErrorKind::Cancelled) where the progress function ended it; [`Panicked`](crate::ErrorKind::Panicked) where
    /// one of the given functions panicked.
    pub fn build(self) -> Result<Engine> {
        let Self {
            opener,
            backend,
            progress,
            make,
            mut shape,
            mut settings,
            queue,
            when_full,
            encoder,
            chat_template,
            ..
        } = self;
        let opener = match (opener, backend) {
            (Opener::Source(source), Some(backend)) => Opener::Source(source.with_backend(backend)),
            (Opener::Function(_), Some(backend)) => {
                return Err(Error::invalid_input(format!(
                    "the backend was to be {backend}, and the model is opened by a function; leave the choice to that function"
                )));
            }
            (opener, None) => opener,
        };
        for (name, number) in [("sequences", shape.sequences), ("places in the queue", queue)] {
            if number == 0 {
                return Err(Error::invalid_input(format!("the engine was to have no {name}; it must have at least 1")));
            }
        }
        #[cfg(feature = "chat")]
        if let Some(template) = &chat_template {
            infer_core::chat::Template::new(template)?;
        }
        settings.sequences = Some(shape.sequences);
        settings.cache = self.prefix_cache.unwrap_or(usize::MAX);
        if settings.cache > 0 {
            shape.cached = shape.sequences.clamp(CACHED.0, CACHED.1);
        }
        let mut encoder_default = EncoderOptions::new();
        encoder_default.threads = shape.common.threads;
        let made = Arc::<OnceLock<Made>>::default();
        let plan = Plan {
            opener,
            progress,
            factory: Factory { make, shape, fitted: None, made: made.clone() },
            settings,
            encoder,
            encoder_default,
            encoder_info: Arc::default(),
            shared: Arc::new(Shared::new()),
        };
        Engine::start(plan, &made, Queue { bound: queue, when_full }, chat_template)
    }
}

impl fmt::Debug for EngineBuilder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("EngineBuilder")
            .field("shape", &self.shape)
            .field("settings", &self.settings)
            .finish_non_exhaustive()
    }
}
