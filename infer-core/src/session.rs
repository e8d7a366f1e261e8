use crate::{
    Batch, Capabilities, Error, Interrupt, Limits, ModelInfo, Outputs, Result, Sampling, Sequence, Token, Usage,
};
use std::{
    io::{Read, Write},
    ops::Range,
    sync::Arc,
};

/// How a sequence is opened.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct OpenOptions {
    /// The adapter (LoRA) the sequence is computed with, by the name the session knows it under
    /// ([`SessionOptions::adapters`](crate::SessionOptions::adapters)); `None` for the bare model. A fork has its parent's.
    pub adapter: Option<String>,
}

impl OpenOptions {
    /// The bare model.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Sets [`adapter`](Self::adapter).
    #[must_use]
    pub fn with_adapter(mut self, name: impl Into<String>) -> Self {
        self.adapter = Some(name.into());
        self
    }
}

/// A model at work: it holds the keys and values of some sequences and runs forward passes over them.
///
/// It lives on the thread that made it (there is no `Send` bound), is object-safe, and is the same for every runtime, so
/// that one scheduler can drive any of them. One call is one forward pass over one batch; everything a caller does in
/// between (which sequence gets how many tokens, forking prefixes, cutting what was wrong) is cheap.
///
/// # Laws
/// - A pass is all or nothing: after an error no sequence has grown. Where a runtime cannot take a half-done pass back the
///   sequences of its batch are *spent* ([`Sequence::is_spent`]), and where it cannot tell which others it touched, all are.
/// - A handle that is wrong in any way (of another session, spent, changed since it was pushed) is an error, and nothing
///   else is touched.
/// - Results depend on the tokens of a sequence, its sampling and its prompt: not on how the tokens were cut into
///   batches, on what else was in them, or on forks and truncations before.
pub trait Session {
    /// The model.
    fn model(&self) -> &Arc<ModelInfo>;

    /// What this session is able to do.
    fn capabilities(&self) -> &Capabilities;

    /// What this session can take.
    fn limits(&self) -> &Limits;

    /// Sequences and cells in use.
    fn usage(&self) -> Usage;

    /// A handle that stops a running pass from any thread.
    fn interrupt(&self) -> Interrupt;

    /// Opens an empty sequence. Dropping the handle closes it.
    ///
    /// # Errors
    /// [`TooManySequences`](crate::ErrorKind::TooManySequences); [`InvalidInput`](crate::ErrorKind::InvalidInput) for an
    /// adapter that is not loaded.
    fn open(&mut self, options: &OpenOptions) -> Result<Sequence>;

    /// Opens a sequence that begins with the first `len` positions of `parent`, computed once and shared or copied by
    /// the runtime. Sampling is not inherited: see [`sample_with`](Self::sample_with).
    ///
    /// # Errors
    /// [`InvalidInput`](crate::ErrorKind::InvalidInput) when the parent is shorter than `len`;
    /// [`TooManySequences`](crate::ErrorKind::TooManySequences); [`OutOfCells`](crate::ErrorKind::OutOfCells) where a fork
    /// is a copy; [`Unsupported`](crate::ErrorKind::Unsupported) where the model cannot be forked at this length.
    fn fork(&mut self, parent: &Sequence, len: usize) -> Result<Sequence>;

    /// Cuts `seq` to its first `len` positions. A sampling that was set stays, in the state it had at that length.
    ///
    /// # Errors
    /// [`InvalidInput`](crate::ErrorKind::InvalidInput) when the sequence is shorter than `len`;
    /// [`Unsupported`](crate::ErrorKind::Unsupported) where the model cannot be cut at this length. Cutting to 0 always works.
    fn truncate(&mut self, seq: &Sequence, len: usize) -> Result<()>;

    /// Takes the positions `dropped` out of `seq` and moves those behind them up, computing nothing: the way to go on in a context
    /// that is full (a *context shift*). What stays was computed with the dropped tokens in view, and is kept as it is: the
    /// sequence is not the one that computing the remaining tokens would give.
    ///
    /// Positions mean other tokens from here on, so the sampling that was set ends. Set it again, with another seed where
    /// random numbers must not repeat.
    ///
    /// # Errors
    /// [`InvalidInput`](crate::ErrorKind::InvalidInput) for a range that is empty or reaches beyond the sequence;
    /// [`Unsupported`](crate::ErrorKind::Unsupported) where positions cannot be moved.
    fn shift(&mut self, seq: &Sequence, dropped: Range<usize>) -> Result<()> {
        let _ = (seq, dropped);
        Err(Error::unsupported("this session cannot move positions"))
    }

    /// Says how tokens of `seq` are drawn, from its present length on. `prompt` is what the sequence begins with, or is
    /// about to: tokens from position `prompt.len()` on are generated ones. Whatever the sequence holds already counts as
    /// fed, so the same sampling, prompt and tokens give the same draws also after a fork, a restore or a rebuild.
    ///
    /// # Errors
    /// [`InvalidInput`](crate::ErrorKind::InvalidInput) for parameters out of range or a token outside the vocabulary. Those of
    /// [`Constraint::compile`](crate::Constraint::compile): call that beforehand where this thread's time is dear.
    fn sample_with(&mut self, seq: &Sequence, sampling: &Sampling, prompt: &[Token]) -> Result<()>;

    /// Runs one forward pass over the batch. Afterwards [`outputs`](Self::outputs) has what was wanted. A constraint that cannot be
    /// kept any further is no error of the pass, but of [its entry](Outputs::error).
    ///
    /// # Errors
    /// Those of [`Slots::check`](crate::Slots::check) for a batch that is wrong;
    /// [`InvalidInput`](crate::ErrorKind::InvalidInput) where a token is wanted of a sequence without sampling, or where
    /// sequences of different adapters are in one batch: a pass is computed with one;
    /// [`OutOfCells`](crate::ErrorKind::OutOfCells); [`Cancelled`](crate::ErrorKind::Cancelled);
    /// [`Runtime`](crate::ErrorKind::Runtime) with what the native call said. No sequence has grown; the same batch may
    /// be tried again unless its sequences are spent.
    fn decode(&mut self, batch: &Batch) -> Result<()>;

    /// What the last pass brought: a view that the next `&mut` call ends.
    fn outputs(&self) -> Outputs<'_>;

    /// Writes the sequence's state, for [`restore`](Self::restore) of a session of the same model: its tokens, what was computed
    /// from them, and which adapter it has. Sampling is not part of it.
    ///
    /// Nothing is gathered in memory: the state is written in small pieces as it lies in the session, so a file is best behind a
    /// [`BufWriter`](std::io::BufWriter) (and a [`BufReader`](std::io::BufReader) later). The frame around it is
    /// [`state`](state/index.html)'s.
    ///
    /// ```
    /// # #[cfg(feature = "testing")] {
    /// use infer_core::{testing::*, *};
    ///
    /// let model = ScriptedModel::new(Script::new().with_line("two and two is", " four"));
    /// let prompt: Vec<Token> = b"two and two is".iter().map(|&byte| Token(byte.into())).collect();
    /// let mut batch = Batch::new();
    ///
    /// // A session computes the prompt, and saves it.
    /// let mut session = model.session(&SessionOptions::new())?;
    /// let seq = session.open(&OpenOptions::default())?;
    /// batch.push(&seq, &prompt, Want::Nothing);
    /// session.decode(&batch)?;
    /// let mut file = Vec::new();
    /// session.save(&seq, &mut file)?;
    ///
    /// // Another one goes on with it, in another process as well.
    /// let mut later = model.session(&SessionOptions::new())?;
    /// let seq = later.restore(&mut &file[..])?;
    /// assert_eq!(seq.len(), prompt.len());
    /// later.sample_with(&seq, &Sampling::default(), &prompt)?;
    /// batch.clear();
    /// batch.push(&seq, &[Token(b' '.into())], Want::Token);
    /// later.decode(&batch)?;
    /// assert_eq!(later.outputs().token(0), Some(Token(b'f'.into())));
    ///
    /// // What is damaged is refused.
    /// file[200] ^= 1;
    /// assert_eq!(later.restore(&mut &file[..]).unwrap_err().kind(), ErrorKind::InvalidInput);
    /// # }
    /// # Ok::<(), infer_core::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Io`](crate::ErrorKind::Io), with the writer's error as its source; [`Cancelled`](crate::ErrorKind::Cancelled) while the
    /// [interrupt](Self::interrupt) is raised; [`Unsupported`](crate::ErrorKind::Unsupported) where there is no such thing. What
    /// was written by then is no state.
    fn save(&mut self, seq: &Sequence, to: &mut dyn Write) -> Result<()> {
        let _ = (seq, to);
        Err(Error::unsupported("this session cannot save sequences"))
    }

    /// Opens a sequence from a state that [`save`](Self::save) wrote, with the adapter it had. How its tokens are drawn is to be set
    /// [anew](Self::sample_with).
    ///
    /// Nothing is read of `from` that follows the state, so several can lie one after the other.
    ///
    /// # Errors
    /// [`InvalidInput`](crate::ErrorKind::InvalidInput), which says what does not fit: a state that is damaged or cut short, of
    /// another model, of a session of another shape (number formats, layout of the cells), or computed with an adapter that is not
    /// here, or is another one under the same name or at another scale.
    /// [`ContextFull`](crate::ErrorKind::ContextFull) for more positions than the context;
    /// [`TooManySequences`](crate::ErrorKind::TooManySequences); [`OutOfCells`](crate::ErrorKind::OutOfCells);
    /// [`Io`](crate::ErrorKind::Io), with the reader's error as its source; [`Cancelled`](crate::ErrorKind::Cancelled) while the
    /// [interrupt](Self::interrupt) is raised; [`Unsupported`](crate::ErrorKind::Unsupported) where there is no such thing.
    /// Nothing is left behind.
    fn restore(&mut self, from: &mut dyn Read) -> Result<Sequence> {
        let _ = from;
        Err(Error::unsupported("this session cannot restore sequences"))
    }
}

/// A boxed session is one, so that `&mut session` serves wherever `&mut dyn Session` is taken.
impl<S: Session + ?Sized> Session for Box<S> {
    fn model(&self) -> &Arc<ModelInfo> {
        (**self).model()
    }

    fn capabilities(&self) -> &Capabilities {
        (**self).capabilities()
    }

    fn limits(&self) -> &Limits {
        (**self).limits()
    }

    fn usage(&self) -> Usage {
        (**self).usage()
    }

    fn interrupt(&self) -> Interrupt {
        (**self).interrupt()
    }

    fn open(&mut self, options: &OpenOptions) -> Result<Sequence> {
        (**self).open(options)
    }

    fn fork(&mut self, parent: &Sequence, len: usize) -> Result<Sequence> {
        (**self).fork(parent, len)
    }

    fn truncate(&mut self, seq: &Sequence, len: usize) -> Result<()> {
        (**self).truncate(seq, len)
    }

    fn shift(&mut self, seq: &Sequence, dropped: Range<usize>) -> Result<()> {
        (**self).shift(seq, dropped)
    }

    fn sample_with(&mut self, seq: &Sequence, sampling: &Sampling, prompt: &[Token]) -> Result<()> {
        (**self).sample_with(seq, sampling, prompt)
    }

    fn decode(&mut self, batch: &Batch) -> Result<()> {
        (**self).decode(batch)
    }

    fn outputs(&self) -> Outputs<'_> {
        (**self).outputs()
    }

    fn save(&mut self, seq: &Sequence, to: &mut dyn Write) -> Result<()> {
        (**self).save(seq, to)
    }

    fn restore(&mut self, from: &mut dyn Read) -> Result<Sequence> {
        (**self).restore(from)
    }
}
