//! One stream of text on any session, driven by hand.

mod output;
mod reader;
mod request;
#[cfg(test)]
mod tests;

pub use output::{Completion, FinishReason, Piece, Stats};
pub use request::{Prompt, Request};

use infer_core::{Batch, Error, ErrorKind, OpenOptions, Result, Sequence, Session, Token, Tokenizer, Want};
use reader::Reader;
use std::{sync::Arc, time::Instant};

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
    tokenizer: Arc<dyn Tokenizer>,
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
        Self { tokenizer, sequence: None, log: Vec::new(), adapter: None, batch: Batch::new() }
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

    /// Begins to generate what follows the prompt. Nothing is computed yet: the [`Generation`] is an iterator, and its
    /// first step feeds the prompt, in chunks of what the session takes a pass.
    ///
    /// What the sequence holds already of a beginning of the prompt is kept and not computed again, unless it was computed with another
    /// adapter.
    ///
    /// # Errors
    /// [`InvalidInput`](ErrorKind::InvalidInput) for an empty prompt, a token outside the vocabulary, an empty stop string,
    /// sampling out of range or an adapter that is not there; [`ContextFull`](ErrorKind::ContextFull) for a prompt longer than the context;
    /// [`TooManySequences`](ErrorKind::TooManySequences); [`ForeignSequence`](ErrorKind::ForeignSequence) when the last
    /// text was made with another session: [`reset`](Self::reset) first. The session is unharmed.
    pub fn generate<'a>(&'a mut self, session: &'a mut dyn Session, request: &Request) -> Result<Generation<'a>> {
        let mut encoded = Vec::new();
        let prompt = match &request.prompt {
            Prompt::Tokens(tokens) => tokens,
            Prompt::Text(text, special) => {
                self.tokenizer.encode(text, *special, &mut encoded)?;
                &encoded
            }
        };
        let context = session.limits().context;
        check_length(prompt, context)?;
        // The last token that is drawn need not be fed.
        let reader = Reader::new(self.tokenizer.vocab(), request, context - prompt.len() + 1)?;
        let reused_tokens = self.resume(session, prompt, request.adapter.as_deref())?;
        let sequence = self.sequence.as_ref().expect("resume has opened it");
        session.sample_with(sequence, &request.sampling, prompt)?;
        let stats = Stats { prompt_tokens: prompt.len(), reused_tokens, ..Stats::default() };
        Ok(Generation { generator: self, session, reader, state: State::Running, stats, first: None })
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
pub struct Generation<'a> {
    generator: &'a mut Generator,
    session: &'a mut dyn Session,
    reader: Reader,
    state: State,
    stats: Stats,
    /// When the first token was drawn.
    first: Option<Instant>,
}

#[derive(Clone, Copy)]
enum State {
    Running,
    Finished(FinishReason),
    Failed,
}

impl Generation<'_> {
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
        let (mut text, mut tokens, mut top) = (String::new(), Vec::new(), Vec::new());
        for piece in &mut self {
            let piece = piece?;
            text.push_str(&piece.text);
            tokens.extend(piece.tokens);
            if tokens.len() > top.len() {
                top.push(piece.top);
                top.resize(tokens.len(), Vec::new());
            }
        }
        let failed = || Error::invalid_input("this generation has ended with an error already; begin another one");
        let finish = self.finish_reason().ok_or_else(failed)?;
        Ok(Completion { text, tokens, top, finish, stats: self.stats })
    }

    fn step(&mut self) -> Result<Piece> {
        let begun = Instant::now();
        let mut piece = Piece::default();
        let draw = self.reader.wants_any();
        match self.feed(draw) {
            Ok(row) if draw => self.read(row, &mut piece)?,
            Ok(_) => self.finish(FinishReason::Length, &mut piece),
            Err(error) if error.kind() == ErrorKind::Cancelled => {
                self.finish(FinishReason::Cancelled, &mut piece);
                return Ok(piece);
            }
            Err(error) => return Err(error),
        }
        match self.first {
            Some(first) => self.stats.decode = first.elapsed(),
            None => {
                self.stats.prefill = begun.elapsed();
                self.first = Some(Instant::now());
            }
        }
        Ok(piece)
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
        piece.top.extend_from_slice(outputs.top(row));
        if sampled.is_empty() {
            return Err(Error::new(ErrorKind::Runtime, "the session drew no token though one was wanted"));
        }
        let mut end = None;
        for &sampled in sampled {
            self.generator.log.push(sampled.token);
            self.stats.generated_tokens += 1;
            piece.tokens.push(sampled);
            end = self.reader.take(sampled.token, &mut piece.text)?;
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
        self.reader.finish(reason, &mut piece.text);
        self.state = State::Finished(reason);
    }
}

impl Iterator for Generation<'_> {
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
