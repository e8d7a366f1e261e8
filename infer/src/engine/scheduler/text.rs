//! A completion on its way from the queue to its end.

use super::{
    copy_of, prefix,
    timeline::{Happened, Timeline},
};
use crate::{
    Finish, FinishReason, Overflow, Request, Stats,
    engine::{
        channel::{Producer, Wish},
        job::ScoreReply,
        shared::Place,
    },
    reader::Reader,
};
use infer_core::{Error, ErrorKind, Outputs, Sampling, Sequence, Token, Want};
use std::{
    cell::{Cell, RefCell},
    rc::Rc,
    time::{Duration, Instant},
};

/// Tokens for which room is made at once, so that a text of usual length allocates nothing on its way.
const RESERVE: usize = 4096;

/// A request: what its completions have in common.
pub(super) struct Call {
    pub(super) id: u64,
    pub(super) made: Instant,
    pub(super) deadline: Option<Instant>,
    pub(super) overflow: Overflow,
    pub(super) wants_top: bool,
    pub(super) n: usize,
    /// What it is computed with: the scheduler's number for it.
    pub(super) adapter: u32,
    pub(super) out: Outlet,
    /// It has failed as a whole: its completions go.
    pub(super) is_over: Cell<bool>,
    /// In the queue; given up when the first of its completions is begun.
    pub(super) place: RefCell<Option<Place>>,
    pub(super) span: tracing::Span,
}

/// Where the results go.
pub(super) enum Outlet {
    Stream(Producer),
    Scores(RefCell<Option<ScoreReply>>),
}

impl Call {
    pub(super) fn wish(&self) -> Wish {
        match &self.out {
            Outlet::Stream(out) => out.wish(),
            Outlet::Scores(reply) if reply.borrow().as_ref().is_some_and(ScoreReply::is_cancelled) => Wish::Forget,
            Outlet::Scores(_) => Wish::Go,
        }
    }

    /// It waits no more.
    pub(super) fn leave_queue(&self) {
        self.place.borrow_mut().take();
    }

    /// Ends the request with an error, all completions of it.
    pub(super) fn fail(&self, error: Error) {
        if self.is_over.replace(true) {
            self.leave_queue();
        } else {
            self.tell(error);
        }
    }

    /// Tells the reader of a request that is over why.
    pub(super) fn tell(&self, error: Error) {
        self.leave_queue();
        self.span.in_scope(|| tracing::debug!(%error, "request failed"));
        match &self.out {
            Outlet::Stream(out) => out.fail(error),
            Outlet::Scores(reply) => {
                if let Some(reply) = reply.borrow_mut().take() {
                    reply.answer(Err(error));
                }
            }
        }
    }
}

/// What is wanted of the tokens.
pub(super) enum Aim {
    Generate { reader: Box<Reader>, sampling: Box<Sampling> },
    Score { scores: Vec<f32> },
}

/// One completion. Its log is all there is to it: the prompt and what was drawn. The sequence holds a beginning of the log, and may be
/// lost at any time.
pub(super) struct Text {
    /// Later ones have larger numbers.
    pub(super) serial: u64,
    pub(super) call: Rc<Call>,
    /// Which completion of the request it is.
    pub(super) index: usize,
    pub(super) log: Vec<Token>,
    /// Tokens of the log that were not drawn.
    pub(super) prompt: usize,
    pub(super) seq: Option<Sequence>,
    /// Its entry in the present batch, and what was wanted of it.
    pub(super) row: Option<(usize, Want)>,
    /// Tokens it is to be fed in this step.
    pub(super) share: usize,
    pub(super) aim: Aim,
    /// All of the log has been computed since it was given its sequence: what it lacks now is what was drawn last.
    pub(super) is_decoding: bool,
    /// Its positions were moved: they are not what computing the log would give.
    pub(super) is_shifted: bool,
    pub(super) shifts: u64,
    /// The completion that is computing what this one begins with, by its serial, and how much it must hold.
    pub(super) behind: Option<(u64, usize)>,
    /// It gave its cells up when so many texts had ended.
    pub(super) preempted_at: Option<u64>,
    /// From when on it was to be computed: a text that began later may be delayed by it.
    pub(super) since: Instant,
    pub(super) trial: super::faults::Trial,
    /// When it was last preferred to others that found no room in the batch.
    pub(super) served: u64,
    /// Tokens that may be drawn, as far as room is made for them at once.
    room: usize,
    pub(super) stats: Stats,
    pub(super) admitted: Option<Instant>,
    /// When the first token came.
    pub(super) began: Option<Instant>,
    token_times: Vec<Duration>,
    pub(super) timeline: Timeline,
    pub(super) ended: Option<Result<FinishReason, Error>>,
}

impl Text {
    pub(super) fn generation(
        serial: u64,
        call: Rc<Call>,
        index: usize,
        log: Vec<Token>,
        request: &Request,
        reader: Reader,
        room: usize,
    ) -> Self {
        let mut sampling = request.sampling.clone();
        sampling.seed = sampling.seed.wrapping_add(index as u64);
        let room = request.max_tokens.unwrap_or(room).min(room).min(RESERVE);
        let aim = Aim::Generate { reader: Box::new(reader), sampling: Box::new(sampling) };
        Self::new(serial, call, index, log, aim, room)
    }

    pub(super) fn score(serial: u64, call: Rc<Call>, tokens: Vec<Token>) -> Self {
        Self::new(serial, call, 0, tokens, Aim::Score { scores: Vec::new() }, 0)
    }

    fn new(serial: u64, call: Rc<Call>, index: usize, log: Vec<Token>, aim: Aim, room: usize) -> Self {
        let since = call.made;
        Self {
            serial,
            call,
            index,
            prompt: log.len(),
            seq: None,
            row: None,
            share: 0,
            aim,
            is_decoding: false,
            is_shifted: false,
            shifts: 0,
            behind: None,
            preempted_at: None,
            since,
            trial: super::faults::Trial::default(),
            served: 0,
            room,
            stats: Stats { prompt_tokens: log.len(), ..Stats::default() },
            admitted: None,
            began: None,
            token_times: Vec::new(),
            log,
            timeline: Timeline::new(),
            ended: None,
        }
    }

    /// Positions that its sequence holds.
    pub(super) fn held(&self) -> usize {
        self.seq.as_ref().map_or(0, Sequence::len)
    }

    /// Tokens that its sequence lacks: the one rule is to feed them.
    pub(super) fn lacks(&self) -> usize {
        self.log.len() - self.held()
    }

    /// Whether others may begin with what it holds.
    pub(super) fn is_exact(&self) -> bool {
        !self.is_shifted && matches!(self.aim, Aim::Generate { .. })
    }

    /// What of other sequences may serve it: all of its log but the last token, whose pass is to draw. Scores need every pass.
    pub(super) fn reusable(&self) -> &[Token] {
        match self.aim {
            Aim::Generate { .. } => &self.log[..self.log.len() - 1],
            Aim::Score { .. } => &[],
        }
    }

    /// A beginning must be so long to be worth taking over. What several completions have in common is computed once, always.
    pub(super) fn least_reuse(&self, donor: &Call) -> usize {
        if donor.id == self.call.id && self.call.n > 1 { 1 } else { prefix::LEAST }
    }

    /// What is wanted of the last `fed` tokens that it lacks.
    pub(super) fn want(&self, fed: usize) -> Want {
        match &self.aim {
            Aim::Score { .. } => Want::Score,
            Aim::Generate { reader, .. } if fed == self.lacks() && reader.wants_any() => Want::Token,
            Aim::Generate { .. } => Want::Nothing,
        }
    }

    pub(super) fn note(&mut self, now: Instant, what: Happened) {
        self.timeline.add(self.call.made, now, what);
    }

    /// It has a sequence: from here on nothing is allocated for it.
    pub(super) fn be_seated(&mut self, seq: Sequence) {
        self.seq = Some(seq);
        let left = self.room.saturating_sub(self.stats.generated_tokens);
        self.log.reserve_exact(left);
        self.token_times.reserve_exact(left);
        if let Aim::Score { scores } = &mut self.aim {
            scores.clear();
            scores.reserve_exact(self.log.len());
        }
    }

    /// Gives the sequence up.
    pub(super) fn unseat(&mut self) -> Option<Sequence> {
        self.row = None;
        self.is_decoding = false;
        self.is_shifted = false;
        self.seq.take()
    }

    /// Takes what the pass brought for it, and hands it to the reader of its stream. Returns how many tokens were drawn.
    pub(super) fn take(&mut self, outputs: Outputs<'_>, row: usize, want: Want, now: Instant) -> usize {
        match (want, &mut self.aim) {
            (Want::Score, Aim::Score { scores }) => {
                scores.extend_from_slice(outputs.scores(row));
                let (scored, held) = (scores.len(), self.held());
                if scored != held {
                    let message = format!("the session gave {scored} scores for {held} tokens");
                    self.ended = Some(Err(Error::new(ErrorKind::Runtime, message)));
                } else if self.lacks() == 0 {
                    self.ended = Some(Ok(FinishReason::Length));
                }
                0
            }
            (Want::Token, Aim::Generate { .. }) => self.take_tokens(outputs, row, now),
            _ => {
                if self.lacks() == 0 {
                    // It was fed, and nothing is to be drawn.
                    self.stats.prefill = self.since_admitted(now);
                    self.ended = Some(Ok(FinishReason::Length));
                }
                0
            }
        }
    }

    fn take_tokens(&mut self, outputs: Outputs<'_>, row: usize, now: Instant) -> usize {
        let (sampled, top) = (outputs.sampled(row), outputs.top(row));
        self.is_decoding = true;
        if sampled.is_empty() {
            let silent = || Error::new(ErrorKind::Runtime, "the session drew no token though one was wanted");
            self.ended = Some(Err(outputs.error(row).map_or_else(silent, copy_of)));
            return 0;
        }
        if self.began.is_none() {
            self.began = Some(now);
            self.stats.prefill = self.since_admitted(now);
            self.note(now, Happened::FirstToken);
        }
        let since = now.saturating_duration_since(self.call.made);
        let Self { call, index, log, aim, stats, token_times, ended, .. } = self;
        let (Aim::Generate { reader, .. }, Outlet::Stream(out)) = (aim, &call.out) else {
            unreachable!("tokens are drawn for generations, which have a stream")
        };
        let mut drawn = 0;
        out.push(*index, |piece| {
            for (place, &one) in sampled.iter().enumerate() {
                if call.wants_top {
                    piece.top.push(if place == 0 { top.to_vec() } else { Vec::new() });
                }
                log.push(one.token);
                token_times.push(since);
                piece.tokens.push(one);
                drawn += 1;
                *ended = reader.take(one.token, piece).transpose();
                if ended.is_some() {
                    break;
                }
            }
        });
        stats.generated_tokens += drawn;
        stats.decode = since.saturating_sub(token_times[0]);
        drawn
    }

    fn since_admitted(&self, now: Instant) -> Duration {
        self.admitted.map_or(Duration::ZERO, |admitted| now.saturating_duration_since(admitted))
    }

    /// Tells the reader of its stream, or whoever waits for the scores, that it has ended and how.
    pub(super) fn report(&mut self, reason: FinishReason, now: Instant) {
        let generated = self.stats.generated_tokens;
        self.call.leave_queue();
        self.note(now, Happened::Ended { generated });
        let Self { call, index, aim, stats, token_times, timeline, .. } = self;
        match (&call.out, aim) {
            (Outlet::Stream(out), Aim::Generate { reader, .. }) => {
                let mut reason = reason;
                out.push(*index, |piece| reason = reader.finish(reason, piece));
                let finish = Finish::new(reason, *stats, std::mem::take(token_times));
                let finish = finish.with_timeline(std::mem::take(timeline));
                call.span.in_scope(|| tracing::debug!(index, %reason, generated, "completion ended"));
                out.finish(*index, finish);
            }
            (Outlet::Scores(reply), Aim::Score { scores }) => {
                let scores = std::mem::take(scores);
                if let Some(reply) = reply.borrow_mut().take() {
                    reply.answer(score_of(reason, scores));
                }
            }
            _ => unreachable!("a stream is for a generation, and scores are for a score"),
        }
    }
}

/// The first token has nothing before it, so it has no score.
fn score_of(reason: FinishReason, mut scores: Vec<f32>) -> Result<Vec<f32>, Error> {
    match reason {
        FinishReason::Length => {
            scores.remove(0);
            Ok(scores)
        }
        reason => {
            let message = format!("ended before the tokens were scored: {reason}");
            Err(Error::new(ErrorKind::Cancelled, message))
        }
    }
}
