//! One request being answered.

use super::channel::Consumer;
use crate::{Completion, Piece, piece::Collector};
use infer_core::{Error, ErrorKind, Result};
use std::{
    fmt,
    future::poll_fn,
    pin::Pin,
    task::{Context, Poll},
    thread::{self, ThreadId},
};

/// A request to an [`Engine`](crate::Engine) being answered: a stream of [`Piece`]s, awaited or waited for.
///
/// - **Awaited**, it is a [`futures_core::Stream`] for any runtime: `while let Some(piece) = generation.next().await`.
/// - **Waited for**, it is `for piece in generation`, or `for piece in &mut generation` to go on with it afterwards, or
///   [`wait`](Self::wait). It is not an `Iterator` itself, whose methods would clash with those of streams.
/// - **As a whole**: [`complete`](Self::complete) waits for all of it, [`completed`](Self::completed) awaits it.
///
/// A piece has one token or more: whoever reads slowly gets more at once, and holds nobody up. What is not read is kept, and is bounded by
/// the request's [`max_tokens`](crate::Request::max_tokens) or the context.
///
/// Whatever is wrong with the request is the first item, an error; nothing was computed then. After an error there is nothing. Every
/// completion ends with a piece that has a [`finish`](Piece::finish), or the stream ends with an error.
///
/// Dropping it forgets the request: its cells are free before the next pass. [`cancel`](Self::cancel) ends it and lets it say how far it came.
#[must_use = "a generation that is dropped is forgotten: read it, wait for it or await it"]
pub struct Generation {
    id: u64,
    n: usize,
    source: Source,
    /// The engine's own thread, where nobody may wait for it.
    engine: ThreadId,
}

enum Source {
    Channel(Consumer),
    /// It was refused, for this reason until it is read.
    Refused(Option<Error>),
}

impl Generation {
    pub(super) fn new(id: u64, n: usize, engine: ThreadId, consumer: Result<Consumer>) -> Self {
        let source = match consumer {
            Ok(consumer) => Source::Channel(consumer),
            Err(error) => Source::Refused(Some(error)),
        };
        Self { id, n, source, engine }
    }

    /// Its number among all requests of the engine, as logs and [`EngineStats`](crate::EngineStats) have it.
    #[must_use]
    pub fn id(&self) -> u64 {
        self.id
    }

    /// Ends it: what came until then can be read, and each completion that was running ends with
    /// [`FinishReason::Cancelled`](crate::FinishReason::Cancelled). One that has ended is not touched.
    pub fn cancel(&self) {
        if let Source::Channel(consumer) = &self.source {
            consumer.cancel();
        }
    }

    /// Waits for what comes next; `None` when all has been read.
    ///
    /// On the engine's own thread, where wakers run, it does not wait: where there is nothing yet it says so with an error, and can be asked
    /// again.
    pub fn wait(&mut self) -> Option<Result<Piece>> {
        match &mut self.source {
            Source::Refused(error) => error.take().map(Err),
            Source::Channel(consumer) if thread::current().id() == self.engine => match consumer.look() {
                Poll::Ready(item) => item,
                Poll::Pending => Some(Err(Error::invalid_input(
                    "the engine's own thread cannot wait for what it has to generate: await it, or wait on another thread",
                ))),
            },
            Source::Channel(consumer) => consumer.wait(),
        }
    }

    /// Waits for all of it, or what is left of it.
    ///
    /// # Errors
    /// What the stream ends with; [`InvalidInput`](ErrorKind::InvalidInput) for a request of several completions, see
    /// [`complete_all`](Self::complete_all), and where the end had been read already.
    pub fn complete(mut self) -> Result<Completion> {
        self.check_one()?;
        let mut whole = Whole::new(1);
        while let Some(piece) = self.wait() {
            whole.push(piece?);
        }
        whole.one()
    }

    /// As [`complete`](Self::complete), for all completions of the request.
    ///
    /// # Errors
    /// As [`complete`](Self::complete).
    pub fn complete_all(mut self) -> Result<Vec<Completion>> {
        let mut whole = Whole::new(self.n);
        while let Some(piece) = self.wait() {
            whole.push(piece?);
        }
        whole.all()
    }

    /// Awaits all of it, or what is left of it.
    ///
    /// # Errors
    /// As [`complete`](Self::complete).
    pub async fn completed(mut self) -> Result<Completion> {
        self.check_one()?;
        let mut whole = Whole::new(1);
        while let Some(piece) = self.next_piece().await {
            whole.push(piece?);
        }
        whole.one()
    }

    /// As [`completed`](Self::completed), for all completions of the request.
    ///
    /// # Errors
    /// As [`complete`](Self::complete).
    pub async fn completed_all(mut self) -> Result<Vec<Completion>> {
        let mut whole = Whole::new(self.n);
        while let Some(piece) = self.next_piece().await {
            whole.push(piece?);
        }
        whole.all()
    }

    /// Private methods hide those of a trait, too: it must not be called `next`, which every `StreamExt` has.
    async fn next_piece(&mut self) -> Option<Result<Piece>> {
        poll_fn(|context| self.poll_piece(context)).await
    }

    fn poll_piece(&mut self, context: &mut Context<'_>) -> Poll<Option<Result<Piece>>> {
        match &mut self.source {
            Source::Channel(consumer) => consumer.poll(context),
            Source::Refused(error) => Poll::Ready(error.take().map(Err)),
        }
    }

    /// A refused request says why it was, whatever is asked of it.
    fn check_one(&mut self) -> Result<()> {
        if let Source::Refused(error) = &mut self.source
            && let Some(error) = error.take()
        {
            return Err(error);
        }
        if self.n == 1 {
            return Ok(());
        }
        Err(Error::invalid_input(format!("the request has {} completions; `complete_all` collects them", self.n)))
    }
}

/// The completions of a request, put together.
struct Whole(Vec<Collector>);

impl Whole {
    fn new(n: usize) -> Self {
        Self((0..n).map(|_| Collector::default()).collect())
    }

    fn push(&mut self, piece: Piece) {
        self.0[piece.index].push(piece);
    }

    fn all(self) -> Result<Vec<Completion>> {
        let read = || Error::new(ErrorKind::InvalidInput, "the end of this generation has been read already");
        self.0.into_iter().map(|collector| collector.complete().ok_or_else(read)).collect()
    }

    fn one(self) -> Result<Completion> {
        self.all().map(|mut all| all.remove(0))
    }
}

impl futures_core::Stream for Generation {
    type Item = Result<Piece>;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Result<Piece>>> {
        self.poll_piece(context)
    }
}

/// The pieces of a [`Generation`], waited for one after the other.
pub struct Blocking<G>(G);

impl Iterator for Blocking<Generation> {
    type Item = Result<Piece>;

    fn next(&mut self) -> Option<Result<Piece>> {
        self.0.wait()
    }
}

impl Iterator for Blocking<&mut Generation> {
    type Item = Result<Piece>;

    fn next(&mut self) -> Option<Result<Piece>> {
        self.0.wait()
    }
}

impl IntoIterator for Generation {
    type Item = Result<Piece>;
    type IntoIter = Blocking<Self>;

    fn into_iter(self) -> Blocking<Self> {
        Blocking(self)
    }
}

impl<'a> IntoIterator for &'a mut Generation {
    type Item = Result<Piece>;
    type IntoIter = Blocking<&'a mut Generation>;

    fn into_iter(self) -> Self::IntoIter {
        Blocking(self)
    }
}

impl fmt::Debug for Generation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Generation").field("id", &self.id).finish_non_exhaustive()
    }
}
