//! From a request to a job: checked, encoded and given a place in the queue where it is made.

use super::{
    WhenFull,
    answer::{Answer, answer},
    channel::{Consumer, channel},
    core::Core,
    encode::{EncodeJob, Pairs, Wanted, copy_of},
    job::{Job, ScoreJob, ScoreReply},
    live::{Gate, Live},
    open::Made,
    shared::{Place, Shared},
};
use crate::{Prompt, Request, Worker, prompt::Prompter};
use infer_core::{EncoderInfo, Error, ErrorKind, ModelInfo, Result, Sampled, Special, Token};
use std::{
    sync::{
        Arc, OnceLock,
        atomic::{AtomicU64, Ordering},
    },
    thread::{self, ThreadId},
    time::Instant,
};

/// What all handles of an engine share, and the way of a request from its caller to the engine's thread.
pub(super) struct Inner {
    pub(super) worker: Worker<Core>,
    /// The worker's.
    pub(super) thread: ThreadId,
    pub(super) shared: Arc<Shared>,
    pub(super) gate: Arc<Gate>,
    pub(super) queue: Queue,
    pub(super) info: Arc<ModelInfo>,
    pub(super) prompter: Prompter,
    pub(super) session: Result<Made>,
    pub(super) encoder: Arc<OnceLock<EncoderInfo>>,
    pub(super) ids: AtomicU64,
}

/// The bound of the queue, and what happens beyond it.
pub(super) struct Queue {
    pub(super) bound: usize,
    pub(super) when_full: WhenFull,
}

impl Inner {
    pub(super) fn next_id(&self) -> u64 {
        self.ids.fetch_add(1, Ordering::Relaxed)
    }

    pub(super) fn generate(&self, id: u64, request: Request) -> Result<Consumer> {
        let made = Instant::now();
        let session = self.session()?;
        check_count(request.n, session.limits.sequences)?;
        request.sampling.validate(session.limits.vocab)?;
        let place = self.place(request.deadline)?;
        let (request, prompt) = self.prompter.prepare(request)?;
        if let Some(constraint) = &request.sampling.constraint {
            // Kept in the vocabulary, where the session finds it.
            constraint.compile(self.prompter.tokenizer().vocab())?;
        }
        session.check_room(&prompt)?;
        let (producer, consumer) = channel(request.n);
        let span = tracing::info_span!("request", id, prompt_tokens = prompt.len(), n = request.n);
        let job = Job { id, request, prompt, made, out: producer.with_live(self.live()), place, span };
        self.submit(|core| core.generate(job))?;
        Ok(consumer)
    }

    pub(super) fn score(&self, prompt: Prompt) -> Result<Answer<Vec<Sampled>>> {
        let made = Instant::now();
        let session = self.session()?;
        let place = self.place(None)?;
        let (_, tokens) = self.prompter.prepare(Request::new(prompt))?;
        session.check_room(&tokens)?;
        let (reply, answer) = answer(self.thread, self.live());
        let is_cancelled = reply.cancelled();
        let scored = tokens.clone();
        let out = ScoreReply::new(
            move |scores| {
                let with_token = |(&token, logprob)| Sampled::new(token, logprob);
                let scores = scores.map(|scores| scored.iter().skip(1).zip(scores).map(with_token).collect());
                reply.answer(scores);
            },
            is_cancelled,
        );
        let job = ScoreJob { id: self.next_id(), tokens, adapter: None, deadline: None, made, out, place };
        self.submit(|core| core.score(job))?;
        Ok(answer)
    }

    pub(super) fn encode_all<S: AsRef<str>>(&self, texts: impl IntoIterator<Item = S>) -> Result<Vec<Vec<Token>>> {
        texts.into_iter().map(|text| self.tokens(text.as_ref(), Special::ADD)).collect()
    }

    pub(super) fn tokens(&self, text: &str, special: Special) -> Result<Vec<Token>> {
        let mut tokens = Vec::new();
        self.prompter.tokenizer().encode(text, special, &mut tokens)?;
        Ok(tokens)
    }

    pub(super) fn encode<T: Send + 'static>(
        &self,
        wanted: Wanted,
        texts: Vec<Vec<Token>>,
        pairs: Option<Pairs>,
        read: impl FnOnce(Vec<Vec<f32>>) -> T + Send + 'static,
    ) -> Result<Answer<T>> {
        let place = Some(self.place(None)?);
        let (reply, answer) = answer(self.thread, self.live());
        let is_cancelled = reply.cancelled();
        let answered = Box::new(move |vectors: Result<Vec<Vec<f32>>>| reply.answer(vectors.map(read)));
        let job = EncodeJob {
            wanted,
            texts,
            pairs,
            answer: answered,
            is_cancelled,
            place,
            found: Vec::new(),
            order: Vec::new(),
            is_alone: false,
        };
        self.submit(|core| core.encode(job))?;
        Ok(answer)
    }

    fn session(&self) -> Result<&Made> {
        self.session.as_ref().map_err(copy_of)
    }

    /// A place in the queue.
    fn place(&self, until: Option<Instant>) -> Result<Place> {
        match self.queue.when_full {
            // Its own thread would wait for itself.
            WhenFull::Wait if thread::current().id() != self.thread => self.shared.enter_by(self.queue.bound, until),
            _ => self.shared.enter(self.queue.bound),
        }
    }

    fn live(&self) -> Live {
        self.gate.enter()
    }

    fn submit(&self, job: impl FnOnce(&mut Core) + Send + 'static) -> Result<()> {
        // Each job has a place, and the worker's queue has as many, so there is room. It is the worker that has ended, with its last words.
        self.worker.try_submit(job).map(drop)
    }

    pub(super) fn drain(&self, until: Option<Instant>) -> bool {
        self.shared.close();
        let until = if thread::current().id() == self.thread { Some(Instant::now()) } else { until };
        self.gate.wait(until)
    }
}

impl Drop for Inner {
    fn drop(&mut self) {
        // The pass that runs ends now; dropping the worker waits for the thread, unless this is it.
        self.shared.stop();
    }
}

impl Made {
    /// What no step could ever hold is said before it is tried.
    fn check_room(&self, tokens: &[Token]) -> Result<()> {
        if self.cells == 0 || tokens.len() <= self.cells || tokens.len() > self.limits.context {
            return Ok(());
        }
        let message = format!(
            "the prompt has {} tokens, and there are {} KV cells; shorten it, or have more cells",
            tokens.len(),
            self.cells
        );
        Err(Error::new(ErrorKind::OutOfCells, message))
    }
}

fn check_count(n: usize, sequences: usize) -> Result<()> {
    if (1..=sequences).contains(&n) {
        return Ok(());
    }
    Err(Error::invalid_input(format!(
        "{n} completions were asked for, and {sequences} sequences run at once; ask for at least 1 and no more than those"
    )))
}
