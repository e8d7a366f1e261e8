//! What may have become of each request.

use super::{
    super::EngineStats,
    Ask, Draw, Fate, Harm, What, World,
    run::{self, BROKEN, Run},
};
use crate::{Completion, Finish, FinishReason, Generator, Happened, Overflow, engine::channel::Consumer};
use infer_core::{Batch, Error, ErrorKind, Model, OpenOptions, Result, Sampled, Session, Token, Want};
use std::task::{Context, Poll, Waker};

/// What has come of a request.
pub(super) enum Outcome {
    /// Nobody listened.
    Unknown,
    Scores(Result<Vec<f32>>),
    Text(Vec<Heard>, Option<Error>),
}

/// Who reads a stream.
pub(super) struct Listener {
    pub(super) stream: Consumer,
    pub(super) heard: Vec<Heard>,
    pub(super) error: Option<Error>,
}

/// What was heard of one completion.
#[derive(Clone, Default)]
pub(super) struct Heard {
    text: String,
    tokens: Vec<Sampled>,
    top: Vec<Vec<Sampled>>,
    finish: Option<Finish>,
}

impl Listener {
    pub(super) fn new(stream: Consumer, n: usize) -> Self {
        Self { stream, heard: vec![Heard::default(); n], error: None }
    }

    /// Takes all there is, without waiting.
    pub(super) fn read(&mut self) {
        let mut context = Context::from_waker(Waker::noop());
        while let Poll::Ready(Some(item)) = self.stream.poll(&mut context) {
            match item {
                Ok(piece) => {
                    let heard = &mut self.heard[piece.index];
                    assert!(heard.finish.is_none(), "something came after the end");
                    heard.text += &piece.text;
                    heard.tokens.extend(piece.tokens);
                    heard.top.extend(piece.top);
                    heard.finish = piece.finish;
                }
                Err(error) => self.error = Some(error),
            }
        }
    }
}

/// What a completion comes to alone.
struct Solo {
    text: String,
    tokens: Vec<Sampled>,
    reason: FinishReason,
}

impl Solo {
    fn of(world: &World, ask: &Ask, index: usize) -> Self {
        let mut request = ask.request(Some(index));
        if request.overflow == Overflow::Shift {
            // Only schedulers do that.
            let heard = run::alone(world, ask, index).heard.remove(0);
            let reason = heard.finish.expect("it has ended").reason;
            return Self { text: heard.text, tokens: heard.tokens, reason };
        }
        request.overflow = Overflow::Stop;
        let model = run::plain(world);
        let mut session = model.session(&run::options(world)).unwrap();
        let mut generator = Generator::new(model.tokenizer());
        let solo: Completion = generator.generate(&mut *session, &request).unwrap().complete().unwrap();
        Self { text: solo.text, tokens: solo.tokens, reason: solo.finish }
    }

    /// The prompt, and what follows it.
    fn log(&self, ask: &Ask) -> Vec<Token> {
        ask.prompt.iter().copied().chain(self.tokens.iter().map(|sampled| sampled.token)).collect()
    }
}

/// One request, and all that may be said against it.
struct Case<'a> {
    run: &'a Run<'a>,
    ask: &'a Ask,
    /// Of each completion; of a score, the one without tokens.
    solos: Vec<Solo>,
}

/// Looks at all that was asked for.
pub(super) fn outcomes(run: &Run<'_>, outcomes: &[Outcome], stats: &EngineStats) {
    let world = run.world;
    let (mut least, mut most) = (0, 0);
    for (ask, outcome) in world.asks.iter().zip(outcomes) {
        let refused = refusal(world, ask);
        most += ask.n() as u64;
        least += if refused.is_some() { 1 } else { ask.n() as u64 };
        let n = if refused.is_some() { 0 } else { ask.n() };
        let solos = match ask.what {
            What::Score => vec![Solo { text: String::new(), tokens: Vec::new(), reason: FinishReason::Length }],
            What::Generate { .. } => (0..n).map(|index| Solo::of(world, ask, index)).collect(),
        };
        Case { run, ask, solos }.check(outcome, refused);
    }
    let ended = stats.finished + stats.failed + stats.cancelled;
    assert!((least..=most).contains(&ended), "{ended} completions have ended of {least}: {stats:?}");
    prompts_add_up(run, stats);
}

/// Where nothing is computed twice: every token of a prompt was computed, or was there.
fn prompts_add_up(run: &Run<'_>, stats: &EngineStats) {
    let world = run.world;
    let is_plain = |ask: &Ask| {
        // A shift computes again, and of a request that fails some completions may not have been begun.
        let stops = matches!(ask.what, What::Score | What::Generate { overflow: Overflow::Stop, .. });
        ask.fate == Fate::Read && ask.poison.is_none() && stops
    };
    if world.cells.is_some() || !world.accidents.is_empty() || !world.asks.iter().all(is_plain) {
        return;
    }
    let accepted = world.asks.iter().filter(|ask| refusal(world, ask).is_none());
    let prompts: usize = accepted.map(|ask| ask.n() * ask.prompt.len()).sum();
    assert_eq!(stats.prefilled_tokens + stats.cached_tokens, prompts as u64, "tokens of prompts");
    assert_eq!((stats.preemptions, stats.rebuilt), (0, 0));
}

/// Why it cannot be begun.
fn refusal(world: &World, ask: &Ask) -> Option<ErrorKind> {
    let World { context, sequences, settings, .. } = world;
    if ask.n() > settings.sequences.unwrap_or(*sequences).min(*sequences) {
        return Some(ErrorKind::InvalidInput);
    }
    if ask.prompt.len() > *context {
        return Some(ErrorKind::ContextFull);
    }
    if let What::Generate { overflow, max_tokens, .. } = ask.what {
        match (overflow, max_tokens) {
            (Overflow::Shift, None) => return Some(ErrorKind::InvalidInput),
            (Overflow::Error, Some(most)) if ask.prompt.len() + most > *context => return Some(ErrorKind::ContextFull),
            _ => {}
        }
    }
    (ask.adapter == Some("unknown")).then_some(ErrorKind::InvalidInput)
}

impl Case<'_> {
    fn check(&self, outcome: &Outcome, refused: Option<ErrorKind>) {
        let is_left = self.may_be_cancelled() || self.may_be_late();
        match outcome {
            Outcome::Unknown => {}
            // While there is no session an adapter may be taken that is not known; it may be left before there is one.
            Outcome::Text(_, None) if refused.is_some() => assert!(is_left, "it was taken: {:?}", self.ask),
            Outcome::Scores(Err(error)) | Outcome::Text(_, Some(error)) if refused.is_some() => {
                let is_cancelled = is_left && error.kind() == ErrorKind::Cancelled;
                let is_excused = is_cancelled || self.may_fail(error.kind());
                assert!(refused == Some(error.kind()) || is_excused, "{error}, of {:?}", self.ask);
            }
            Outcome::Scores(Ok(scores)) => {
                assert_eq!(*scores, self.scores(), "of {:?}", self.ask);
                assert!(!self.must_fail(), "it got through: {:?}", self.ask);
            }
            Outcome::Scores(Err(error)) => {
                let is_cancelled = is_left && error.kind() == ErrorKind::Cancelled;
                let is_excused = is_cancelled || self.may_fail(error.kind());
                assert!(is_excused, "{error}, of {:?}", self.ask);
            }
            Outcome::Text(heard, error) => self.check_text(heard, error.as_ref()),
        }
    }

    fn check_text(&self, heard: &[Heard], error: Option<&Error>) {
        if let Some(error) = error {
            assert!(self.may_fail(error.kind()), "it has failed for no reason: {error}, {:?}", self.ask);
        }
        let mut is_whole = error.is_none();
        for (heard, solo) in heard.iter().zip(&self.solos) {
            let exact = self.exact(heard);
            let same = heard.tokens.iter().zip(&solo.tokens).take(exact).take_while(|(a, b)| is_same(a, b)).count();
            assert_eq!(same, heard.tokens.len().min(exact), "it goes another way than alone: {:?}", self.ask);
            let Some(finish) = &heard.finish else {
                assert!(error.is_some(), "a completion has not ended: {:?}", self.ask);
                continue;
            };
            is_whole &= self.check_end(heard, finish, solo, exact);
        }
        assert!(!is_whole || !self.must_fail(), "it got through: {:?}", self.ask);
    }

    /// Says whether it came to its own end.
    fn check_end(&self, heard: &Heard, finish: &Finish, solo: &Solo, exact: usize) -> bool {
        let stats = finish.stats;
        assert_eq!((stats.prompt_tokens, stats.generated_tokens), (self.ask.prompt.len(), heard.tokens.len()));
        assert!(stats.cached_tokens < stats.prompt_tokens);
        assert_eq!(finish.token_times.len(), heard.tokens.len());
        let wants_top = matches!(self.ask.what, What::Generate { draw: Draw::Rich, .. });
        assert_eq!(heard.top.len(), if wants_top { heard.tokens.len() } else { 0 });
        match finish.reason {
            FinishReason::Cancelled => assert!(self.may_be_cancelled(), "cancelled by nobody: {:?}", self.ask),
            FinishReason::Deadline => assert!(self.may_be_late(), "it had no deadline: {:?}", self.ask),
            FinishReason::ContextFull if heard.tokens.len() < solo.tokens.len() => {
                assert!(self.lacks_cells(heard.tokens.len()), "the context is not full: {:?}", self.ask);
            }
            reason if exact == usize::MAX => {
                let (ours, alone) = (&heard.text, &solo.text);
                let (count, counted) = (heard.tokens.len(), solo.tokens.len());
                assert_eq!((ours, reason, count), (alone, solo.reason, counted), "{:?}", self.ask);
                return true;
            }
            _ => return false,
        }
        false
    }

    /// Tokens of it that must be what they are alone: all, unless positions were moved and then computed again, or for want of cells.
    fn exact(&self, heard: &Heard) -> usize {
        let What::Generate { overflow: Overflow::Shift, .. } = self.ask.what else { return usize::MAX };
        let room = self.run.world.cells.unwrap_or(usize::MAX).min(self.run.world.context);
        let is_begun_again = heard.finish.as_ref().is_none_or(|finish| {
            let events = &finish.timeline.events;
            let begun = events.iter().filter(|event| matches!(event.what, Happened::Admitted { .. })).count();
            begun > 1 || finish.timeline.skipped > 0
        });
        if is_begun_again || room < self.run.world.context {
            (room + 1).saturating_sub(self.ask.prompt.len())
        } else {
            usize::MAX
        }
    }

    /// Alone it does not fit the cells there are.
    fn lacks_cells(&self, drawn: usize) -> bool {
        self.run.world.cells.is_some_and(|cells| self.ask.prompt.len() + drawn > cells)
    }

    fn may_be_cancelled(&self) -> bool {
        let seen = self.run.watch.seen();
        let was_interrupted = seen
            .failures
            .iter()
            .any(|failure| failure.kind == ErrorKind::Cancelled && failure.logs.iter().any(|log| self.is_mine(log)));
        matches!(self.ask.fate, Fate::Cancel(_)) || was_interrupted
    }

    fn may_be_late(&self) -> bool {
        matches!(self.ask.fate, Fate::Deadline(_))
    }

    /// Whether it may end with an error of this kind.
    fn may_fail(&self, kind: ErrorKind) -> bool {
        if self.is_poisoned() && self.ask.poison.is_some_and(|poison| poison.kind() == kind) {
            return true;
        }
        let drawn = self.solos.iter().map(|solo| solo.tokens.len()).max().unwrap_or(0);
        let is_strict = matches!(self.ask.what, What::Generate { overflow: Overflow::Error, .. });
        match kind {
            BROKEN => self.run.gave_up.lock().unwrap().times > 0,
            ErrorKind::OutOfCells => self.lacks_cells(if is_strict { drawn } else { 0 }),
            ErrorKind::ContextFull => {
                is_strict && self.solos.iter().any(|solo| solo.reason == FinishReason::ContextFull)
            }
            _ => self.failed_alone(kind),
        }
    }

    /// A pass that it was alone in has failed so; where it is the session that was lost, for the second time.
    fn failed_alone(&self, kind: ErrorKind) -> bool {
        let seen = self.run.watch.seen();
        let mine = || {
            seen.failures
                .iter()
                .filter(|failure| failure.kind == kind && failure.logs.iter().any(|log| self.is_mine(log)))
        };
        let alone = mine().filter(|failure| failure.logs.len() == 1).count();
        if kind == ErrorKind::SessionLost {
            let in_calls = seen.losses_in_calls;
            alone + in_calls > 0 && mine().count() + in_calls >= 2
        } else {
            alone > 0
        }
    }

    /// Whether this may have been fed for it.
    fn is_mine(&self, log: &[Token]) -> bool {
        if matches!(self.ask.what, What::Generate { overflow: Overflow::Shift, .. }) {
            // All but the first token may have gone.
            return log[0] == self.ask.prompt[0];
        }
        self.solos.iter().any(|solo| solo.log(self.ask).starts_with(log))
    }

    /// Whether the position that harms is computed before it ends.
    fn is_poisoned(&self) -> bool {
        self.is_reached(|solo| solo.tokens.len().saturating_sub(1))
    }

    /// The same where it is beyond doubt: forced tokens come several at once, and the last ones of a text are not computed.
    fn must_fail(&self) -> bool {
        let is_forced = matches!(self.ask.what, What::Generate { draw: Draw::Constrained, .. });
        self.is_reached(|solo| if is_forced { 0 } else { solo.tokens.len().saturating_sub(1) })
    }

    /// With so many of the drawn tokens computed.
    fn is_reached(&self, computed: impl Fn(&Solo) -> usize) -> bool {
        let Some(poison) = self.ask.poison else { return false };
        let fed = |solo: &Solo| (self.ask.prompt.len() + computed(solo)).min(self.run.world.context);
        match (poison.how, &self.ask.what) {
            // A score draws nothing.
            (Harm::LoseWhenSeated, What::Score) => false,
            (Harm::LoseWhenSeated, _) => true,
            _ => self.solos.iter().any(|solo| poison.at < fed(solo)),
        }
    }

    fn scores(&self) -> Vec<f32> {
        let world = self.run.world;
        let mut session = run::plain(world).session(&run::options(world)).unwrap();
        let mut options = OpenOptions::default();
        options.adapter = self.ask.adapter.map(str::to_owned);
        let seq = session.open(&options).unwrap();
        let (mut batch, mut scores) = (Batch::new(), Vec::new());
        for tokens in self.ask.prompt.chunks(world.batch) {
            batch.clear();
            batch.push(&seq, tokens, Want::Score);
            session.decode(&batch).unwrap();
            scores.extend_from_slice(session.outputs().scores(0));
        }
        scores.remove(0);
        scores
    }
}

/// Log-probabilities of forced tokens are no numbers.
fn is_same(a: &Sampled, b: &Sampled) -> bool {
    a.token == b.token && a.logprob.to_bits() == b.logprob.to_bits()
}
