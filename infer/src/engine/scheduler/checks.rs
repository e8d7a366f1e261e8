//! What is wrong with a request is said before anything of it is computed, and of that request alone.

use super::{
    Scheduler,
    text::{Call, Outlet, Text},
    timeline::Happened,
};
use crate::{
    Overflow, Request,
    engine::job::{Job, ScoreJob},
    reader::Reader,
};
use infer_core::{Error, ErrorKind, Limits, ModelInfo, OpenOptions, Result, Token};
use std::{
    cell::{Cell, RefCell},
    rc::Rc,
    time::Instant,
};

impl Scheduler {
    /// Takes a request; what is wrong with it ends it at once.
    pub(crate) fn push(&mut self, job: Job) {
        let Job { id, request, prompt, made, out, place, span } = job;
        let readers = self.check(&request, &prompt);
        let (adapter, readers) = match readers {
            Ok(checked) => checked,
            Err(error) => {
                self.stats.failed += 1;
                self.publish();
                span.in_scope(|| tracing::debug!(%error, "request refused"));
                out.fail(error);
                return;
            }
        };
        let call = Rc::new(Call {
            id,
            made,
            deadline: request.deadline,
            overflow: request.overflow,
            wants_top: request.sampling.logprobs > 0,
            n: request.n,
            adapter,
            out: Outlet::Stream(out),
            is_over: Cell::new(false),
            place: RefCell::new(Some(place)),
            span,
        });
        let room = self.limits.context - prompt.len() + 1;
        for (index, reader) in readers.into_iter().enumerate() {
            let serial = self.next_serial();
            self.queue(Text::generation(serial, call.clone(), index, prompt.clone(), &request, reader, room));
        }
    }

    /// Takes tokens that are to be scored.
    pub(crate) fn push_score(&mut self, job: ScoreJob) {
        let ScoreJob { id, tokens, adapter, deadline, made, out, place } = job;
        let adapter = match self.check_score(&tokens, adapter.as_deref()) {
            Ok(adapter) => adapter,
            Err(error) => {
                self.stats.failed += 1;
                self.publish();
                out.answer(Err(error));
                return;
            }
        };
        let span = tracing::info_span!("score", id, tokens = tokens.len());
        let call = Rc::new(Call {
            id,
            made,
            deadline,
            overflow: Overflow::Stop,
            wants_top: false,
            n: 1,
            adapter,
            out: Outlet::Scores(RefCell::new(Some(out))),
            is_over: Cell::new(false),
            place: RefCell::new(Some(place)),
            span,
        });
        let text = Text::score(self.next_serial(), call, tokens);
        self.queue(text);
    }

    fn queue(&mut self, mut text: Text) {
        text.note(Instant::now(), Happened::Queued);
        self.waiting.push_back(text);
    }

    fn next_serial(&mut self) -> u64 {
        self.serials += 1;
        self.serials
    }

    /// The number of its adapter, and a reader for each completion.
    fn check(&mut self, request: &Request, prompt: &[Token]) -> Result<(u32, Vec<Reader>)> {
        let seats = self.settings.sequences.unwrap_or(usize::MAX).min(self.limits.sequences);
        check_count(request.n, seats)?;
        check_tokens(prompt, &self.limits, self.model.info())?;
        request.sampling.validate(self.limits.vocab)?;
        self.check_overflow(request, prompt)?;
        let room = match request.overflow {
            Overflow::Shift => usize::MAX,
            // The last token that is drawn need not be fed.
            _ => self.limits.context - prompt.len() + 1,
        };
        let readers = (0..request.n).map(|_| Reader::new(&self.vocab, request, room)).collect::<Result<_>>()?;
        Ok((self.adapter(request.adapter.as_deref())?, readers))
    }

    fn check_overflow(&self, request: &Request, prompt: &[Token]) -> Result<()> {
        let context = self.limits.context;
        let (all, larger) = room(context, self.model.info());
        match (request.overflow, request.max_tokens) {
            (Overflow::Error, Some(most)) if prompt.len().saturating_add(most) > context => {
                let message = format!(
                    "the prompt has {} tokens and {most} may follow, the context has {context}{all}; ask for fewer, or shorten the \
                     prompt{larger}",
                    prompt.len()
                );
                Err(Error::new(ErrorKind::ContextFull, message))
            }
            (Overflow::Shift, None) => Err(Error::invalid_input(
                "a text that goes on where the context is full may never end; say with `max_tokens` how long it may be",
            )),
            (Overflow::Shift, _) if context < 2 => Err(Error::invalid_input(
                "in a context of one position nothing is left when the oldest goes; make the engine's context larger",
            )),
            (Overflow::Shift, _) if request.sampling.constraint.is_some() => Err(Error::invalid_input(
                "a text with a constraint cannot go on where the context is full: the constraint has to know all of it",
            )),
            (Overflow::Shift, _) if !self.capabilities.shift => Err(Error::unsupported(
                "this model's positions cannot be moved, so a text cannot go on where the context is full",
            )),
            _ => Ok(()),
        }
    }

    fn check_score(&mut self, tokens: &[Token], adapter: Option<&str>) -> Result<u32> {
        if !self.capabilities.score {
            return Err(Error::unsupported("this session does not score tokens"));
        }
        check_tokens(tokens, &self.limits, self.model.info())?;
        self.adapter(adapter)
    }

    /// The number of an adapter. The session must know it; where there is none at the moment, the one that begins the text will say so.
    fn adapter(&mut self, name: Option<&str>) -> Result<u32> {
        let known = self.adapters.iter().position(|known| known.as_deref() == name);
        let index = known.map_or_else(|| self.new_adapter(name), Ok)?;
        Ok(u32::try_from(index).expect("sessions have fewer adapters"))
    }

    fn new_adapter(&mut self, name: Option<&str>) -> Result<usize> {
        if let (Some(session), Some(name)) = (&mut self.session, name) {
            match session.open(&OpenOptions::new().with_adapter(name)) {
                // It would have been refused for its name first; a session that is lost is found to be so by the next step.
                Err(error) if matches!(error.kind(), ErrorKind::TooManySequences | ErrorKind::SessionLost) => {}
                Err(error) => return Err(error),
                Ok(_probe) => {}
            }
        }
        self.adapters.push(name.map(str::to_owned));
        Ok(self.adapters.len() - 1)
    }
}

fn check_count(n: usize, sequences: usize) -> Result<()> {
    if n == 0 {
        return Err(Error::invalid_input("0 completions were asked for; ask for one at least"));
    }
    if n > sequences {
        return Err(Error::invalid_input(format!(
            "{n} completions were asked for, and there are {sequences} sequences; ask for fewer, or have more sequences"
        )));
    }
    Ok(())
}

fn check_tokens(prompt: &[Token], limits: &Limits, info: &ModelInfo) -> Result<()> {
    let Limits { context, vocab, .. } = *limits;
    if prompt.is_empty() {
        return Err(Error::invalid_input("the prompt has no tokens; a model needs at least one to continue from"));
    }
    if let Some(at) = prompt.iter().position(|token| token.index() >= vocab) {
        let token = prompt[at];
        return Err(Error::invalid_input(format!(
            "token {token} at {at} of the prompt is outside the vocabulary of {vocab}"
        )));
    }
    if prompt.len() > context {
        let (all, larger) = room(context, info);
        let message = format!("the prompt has {} tokens, the context {context}{all}; shorten it{larger}", prompt.len());
        return Err(Error::new(ErrorKind::ContextFull, message));
    }
    Ok(())
}

/// A text has reached the end of the context that was not to.
pub(super) fn context_full(text: &Text, context: usize, info: &ModelInfo) -> Error {
    let (all, larger) = room(context, info);
    let message = format!(
        "the context of {context}{all} is full after a prompt of {} tokens and {} generated ones; ask for fewer tokens{larger}",
        text.prompt, text.stats.generated_tokens
    );
    Error::new(ErrorKind::ContextFull, message)
}

/// What is to be said of a context that is too small, and what can be done about it.
fn room(context: usize, info: &ModelInfo) -> (&'static str, &'static str) {
    let is_all = info.context > 0 && context >= info.context;
    if is_all { (", all the model was trained for", "") } else { ("", ", or make the context larger") }
}
