//! One stream of text on any session, driven by hand.

#[cfg(test)]
mod tests;

use crate::{
    Completion, Finish, FinishReason, Overflow, Piece, Request, Stats, piece::Collector, prompt::Prompter,
    reader::Reader,
};
use infer_core::{Batch, Error, ErrorKind, Model, OpenOptions, Result, Sequence, Session, Token, Tokenizer, Want};
use std::{
    sync::Arc,
    time::{Duration, Instant},
};

/// One text in the making: its tokens, and the sequence that holds as many of them as were computed.
///
/// It borrows the session only while it generates, so several of them can take turns on one session. It stays of use
/// after a text has ended: [`generate`](Self::generate) with a longer prompt, such as a conversation with one more
/// turn, computes only what is new.
///
/// ```no_run
/// use infer::{Generator, Request, SessionOptions};
///
/// let model = infer::open("model.gguf")?;
/// let mut session = model.session(&SessionOptions::new())?;
/// let mut generator = Generator::new(model.tokenizer());
/// let request = Request::text("The capital of France is").with_max_tokens(32);
/// for piece in generator.generate(&mut session, &request)? {
///     print!("{}", piece?.text);
/// }
/// # Ok::<(), infer::Error>(())
/// ```
pub struct Generator {
    prompter: Prompter,
    sequence: Option<Sequence>,
    /// The prompt and what was drawn, fed or not. The sequence always holds a beginning of it, hence the one rule: feed
    /// `log[sequence.len()..]`.
    log: Vec<Token>,
    /// What the sequence is computed with.
    adapter: Option<String>,
    batch: Batch,
}

impl Generator {
    /// A generator for sessions of the model that has this tokenizer; it opens its sequence when it first needs it.
    #[must_use]
    pub fn new(tokenizer: Arc<dyn Tokenizer>) -> Self {
        Self::with_prompter(Prompter::new(tokenizer))
    }

    /// A generator for sessions of this model, whose chat template it knows: it takes [conversations](Request::chat) and tools, and
    /// tells reasoning and calls from the rest of an answer.
    #[must_use]
    pub fn for_model(model: &dyn Model) -> Self {
        Self::with_prompter(Prompter::for_model(model.tokenizer(), model.info()))
    }

    fn with_prompter(prompter: Prompter) -> Self {
        Self { prompter, sequence: None, log: Vec::new(), adapter: None, batch: Batch::new() }
    }

    /// The last prompt and every token drawn after it.
    #[must_use]
    pub fn tokens(&self) -> &[Token] {
        &self.log
    }

    /// The sequence, where one is open: to fork it, to look at its length.
    #[must_use]
    pub fn sequence(&self) -> Option<&Sequence> {
        self.sequence.as_ref()
    }

    /// Forgets everything and closes the sequence. Needed before the generator is used with another session.
    pub fn reset(&mut self) {
        self.sequence = None;
        self.log.clear();
    }

    /// Begins to generate what follows the prompt. Nothing is computed yet: [`Pieces`] is an iterator, and its
    /// first step feeds the prompt, in chunks of what the session takes a pass.
    ///
    /// What the sequence holds already of a beginning of the prompt is kept and not computed again, unless it was computed with another
    /// adapter.
    ///
    /// # Errors
    /// [`InvalidInput`](ErrorKind::InvalidInput) for an empty prompt, more than one completion, a token outside the vocabulary, an empty stop string,
    /// sampling out of range, tools that are wrong or an adapter that is not there; [`ContextFull`](ErrorKind::ContextFull) for a prompt longer than the context;
    /// [`TooManySequences`](ErrorKind::TooManySequences); [`ForeignSequence`](ErrorKind::ForeignSequence) when the last
    /// text was made with another session: [`reset`](Self::reset) first; [`Unsupported`](ErrorKind::Unsupported) for what only an
    /// engine does, and for conversations and tools that the model's chat template does not know;
    /// [`Template`](ErrorKind::Template) for a conversation it refuses. The session is unharmed.
    pub fn generate<'a>(&'a mut self, session: &'a mut dyn Session, request: &Request) -> Result<Pieces<'a>> {
        check_by_hand(request)?;
        let (request, prompt) = self.prompter.prepare(request.clone())?;
        let context = session.limits().context;
        check_length(&prompt, context)?;
        // The last token that is drawn need not be fed.
        let reader = Reader::new(self.prompter.tokenizer().vocab(), &request, context - prompt.len() + 1)?;
        let cached_tokens = self.resume(session, &prompt, request.adapter.as_deref())?;
        let sequence = self.sequence.as_ref().expect("resume has opened it");
        session.sample_with(sequence, &request.sampling, &prompt)?;
        let stats = Stats { prompt_tokens: prompt.len(), cached_tokens, ..Stats::default() };
        let deadline = request.deadline;
        Ok(Pieces {
            generator: self,
            session,
            reader,
            state: State::Running,
            stats,
            deadline,
            wants_top: request.sampling.logprobs > 0,
            begun: None,
            token_times: Vec::new(),
        })
    }

    /// Makes the sequence hold a beginning of `prompt`, as much as it can without computing; returns how much.
    fn resume(&mut self, session: &mut dyn Session, prompt: &[Token], adapter: Option<&str>) -> Result<usize> {
        if self.adapter.as_deref() != adapter {
            self.reset();
            self.adapter = adapter.map(str::to_owned);
        }
        let common = self.log.iter().zip(prompt).take_while(|(ours, theirs)| ours == theirs).count();
        // The last token is always fed, since its pass is the one that draws.
        let wanted = common.min(prompt.len() - 1);
        let mut kept = 0;
        if let Some(sequence) = self.sequence.take_if(|sequence| !sequence.is_spent()) {
            kept = sequence.len().min(wanted);
            if kept == sequence.len() {
                self.sequence = Some(sequence);
            } else {
                match session.truncate(&sequence, kept) {
                    Ok(()) => self.sequence = Some(sequence),
                    // A model that cannot go back computes again.
                    Err(error) if error.kind() == ErrorKind::Unsupported => kept = 0,
                    Err(error) => {
                        self.sequence = Some(sequence);
                        return Err(error);
                    }
                }
            }
        }
        if self.sequence.as_ref().is_none_or(Sequence::is_spent) {
            self.sequence = None;
            let mut options = OpenOptions::default();
            options.adapter.clone_from(&self.adapter);
            self.sequence = Some(session.open(&options)?);
        }
        self.log.clear();
        self.log.extend_from_slice(prompt);
        Ok(kept)
    }
}

fn check_by_hand(request: &Request) -> Result<()> {
    if request.n != 1 {
        let message = format!("{} completions of one request; by hand there is one, ask an engine for more", request.n);
        return Err(Error::invalid_input(message));
    }
    if request.overflow != Overflow::Stop {
        return Err(Error::unsupported(
            "by hand a text stops where the context is full; ask an engine for another overflow",
        ));
    }
    Ok(())
}

fn check_length(prompt: &[Token], context: usize) -> Result<()> {
    if prompt.is_empty() {
        return Err(Error::invalid_input("the prompt has no tokens; a model needs at least one to continue from"));
    }
    if prompt.len() <= context {
        return Ok(());
    }
    let message = format!(
        "the prompt has {} tokens, the context {context}; shorten it, or make the session with more",
        prompt.len()
    );
    Err(Error::new(ErrorKind::ContextFull, message))
}

/// A text being generated: an iterator of [`Piece`]s that computes when it is asked for the next.
///
/// Stopping early is dropping it: every token drawn is in [`Generator::tokens`]. After an error it has ended; what was
/// computed is kept, and the session is as [`Session::decode`] says.
pub struct Pieces<'a> {
    generator: &'a mut Generator,
    session: &'a mut dyn Session,
    reader: Reader,
    state: State,
    stats: Stats,
    deadline: Option<Instant>,
    wants_top: bool,
    /// When the first step was asked for.
    begun: Option<Instant>,
    token_times: Vec<Duration>,
}

#[derive(Clone, Copy)]
enum State {
    Running,
    Finished(FinishReason),
    Failed,
}

impl Pieces<'_> {
    /// Why the text ended; `None` while it has not, and after an error.
    #[must_use]
    pub fn finish_reason(&self) -> Option<FinishReason> {
        match self.state {
            State::Finished(reason) => Some(reason),
            State::Running | State::Failed => None,
        }
    }

    /// Counts and times so far.
    #[must_use]
    pub fn stats(&self) -> Stats {
        self.stats
    }

    /// Generates all of it (or, where some pieces were taken, the rest).
    ///
    /// # Errors
    /// Those of a step: what [`Session::decode`] answers, [`Cancelled`](ErrorKind::Cancelled) apart, which is a
    /// [`FinishReason`]; [`InvalidInput`](ErrorKind::InvalidInput) where a step has failed before. The tokens so far are in
    /// [`Generator::tokens`].
    pub fn complete(mut self) -> Result<Completion> {
        let mut collector = Collector::default();
        for piece in &mut self {
            collector.push(piece?);
        }
        if let Some(reason) = self.finish_reason() {
            // Where the last piece had been taken already.
            collector.finish_with(|| Finish::new(reason, self.stats, Vec::new()));
        }
        let failed = || Error::invalid_input("this generation has ended with an error already; begin another one");
        collector.complete().ok_or_else(failed)
    }

    fn step(&mut self) -> Result<Piece> {
        let begun = *self.begun.get_or_insert_with(Instant::now);
        let mut piece = Piece::default();
        if self.deadline.is_some_and(|deadline| Instant::now() >= deadline) {
            self.finish(FinishReason::Deadline, &mut piece);
            return Ok(piece);
        }
        let draw = self.reader.wants_any();
        match self.feed(draw) {
            Ok(row) => {
                self.time(begun.elapsed());
                if draw { self.read(row, &mut piece)? } else { self.finish(FinishReason::Length, &mut piece) }
            }
            Err(error) if error.kind() == ErrorKind::Cancelled => self.finish(FinishReason::Cancelled, &mut piece),
            Err(error) => return Err(error),
        }
        Ok(piece)
    }

    fn time(&mut self, now: Duration) {
        match self.token_times.first() {
            Some(first) => self.stats.decode = now - *first,
            None => self.stats.prefill = now,
        }
        self.token_times.push(now);
    }

    /// Feeds what was not fed yet, in as many passes as it takes. Returns the entry of the last one, which has drawn.
    fn feed(&mut self, draw: bool) -> Result<usize> {
        let Generator { sequence, log, batch, .. } = &mut *self.generator;
        let sequence = sequence.as_ref().expect("a generation has a sequence");
        loop {
            let left = &log[sequence.len()..];
            let now = left.len().min(self.session.limits().batch);
            let want = if draw && now == left.len() { Want::Token } else { Want::Nothing };
            batch.clear();
            let row = batch.push(sequence, &left[..now], want);
            self.session.decode(batch)?;
            if now == left.len() {
                return Ok(row);
            }
        }
    }

    /// Takes the tokens that entry `row` of the last pass has drawn, up to the one that ends the text.
    fn read(&mut self, row: usize, piece: &mut Piece) -> Result<()> {
        let outputs = self.session.outputs();
        let sampled = outputs.sampled(row);
        let top = outputs.top(row);
        if sampled.is_empty() {
            let silent = || Error::new(ErrorKind::Runtime, "the session drew no token though one was wanted");
            let copy_of = |error: &Error| Error::new(error.kind(), error.to_string());
            return Err(outputs.error(row).map_or_else(silent, copy_of));
        }
        let now = *self.token_times.last().expect("the pass that drew was timed");
        let mut end = None;
        for (place, &sampled) in sampled.iter().enumerate() {
            if place > 0 {
                self.token_times.push(now);
            }
            if self.wants_top {
                piece.top.push(if place == 0 { top.to_vec() } else { Vec::new() });
            }
            self.generator.log.push(sampled.token);
            self.stats.generated_tokens += 1;
            piece.tokens.push(sampled);
            end = self.reader.take(sampled.token, piece)?;
            if end.is_some() {
                break;
            }
        }
        if let Some(reason) = end {
            self.finish(reason, piece);
        }
        Ok(())
    }

    fn finish(&mut self, reason: FinishReason, piece: &mut Piece) {
        let reason = self.reader.finish(reason, piece);
        self.state = State::Finished(reason);
        let times = std::mem::take(&mut self.token_times);
        piece.finish = Some(Finish::new(reason, self.stats, times));
    }
}

impl Iterator for Pieces<'_> {
    type Item = Result<Piece>;

    fn next(&mut self) -> Option<Result<Piece>> {
        let State::Running = self.state else { return None };
        let piece = self.step();
        if piece.is_err() {
            self.state = State::Failed;
        }
        Some(piece)
    }
}
