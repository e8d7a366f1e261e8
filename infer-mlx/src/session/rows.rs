//! The rows of a step that something is wanted of, and what was found of them.

use super::{feed::Feed, plan::Piece};
use crate::{
    Array, DType, Scope,
    error::error,
    kv::number,
    models::Decoder,
    sampling::{Draw, Drawn},
};
use infer_core::{Error, ErrorKind, Result, Sampled, Token, Want};
use std::ops::Range;

/// What is wanted of a step: rows, each with the entry it is for.
#[derive(Default)]
pub(super) struct Wanted {
    /// Rows of the step.
    rows: usize,
    /// The logits of these.
    logits: Vec<Row>,
    /// Of these a token is drawn where the logits are. In the order in which draws are to stand.
    drawn: Vec<(Row, Draw)>,
    /// The hidden states of these.
    hidden: Vec<Row>,
    /// By these rows the token after each is scored.
    scored: Vec<usize>,
    targets: Vec<u32>,
    /// Which scores are an entry's.
    scores: Vec<(usize, Range<usize>)>,
}

/// A row of a step.
#[derive(Clone, Copy)]
struct Row {
    entry: usize,
    row: usize,
}

/// How rows of logits are to be.
#[derive(Clone, Copy)]
pub(super) struct Shape {
    /// Logits that are tokens. The model may give more.
    pub(super) vocab: usize,
    pub(super) width: usize,
    /// The type of numbers that draws are summed in.
    pub(super) wide: DType,
}

impl Wanted {
    /// What is wanted of these pieces. Takes the draws of those that end here.
    pub(super) fn of(pieces: &[Piece], feeds: &mut [Feed<'_>]) -> Self {
        let mut wanted = Self::default();
        for &Piece { entry, ref range } in pieces {
            let (feed, first) = (&mut feeds[entry], wanted.rows);
            wanted.rows += range.len();
            let (last, is_end) = (Row { entry, row: wanted.rows - 1 }, range.end == feed.tokens.len());
            match feed.want {
                Want::Token | Want::Logits if is_end && feed.error.is_none() => match feed.draw.take() {
                    Some(draw) => wanted.drawn.push((last, draw)),
                    None => wanted.logits.push(last),
                },
                Want::Embedding if is_end => wanted.hidden.push(last),
                Want::Score => {
                    let next = feed.tokens.get(range.start + 1..).unwrap_or_default();
                    let from = wanted.scored.len();
                    for (at, token) in next.iter().enumerate().take(range.len()) {
                        wanted.scored.push(first + at);
                        wanted.targets.push(token.0);
                    }
                    wanted.scores.push((entry, from..wanted.scored.len()));
                }
                _ => {}
            }
        }
        wanted.drawn.sort_by_key(|(_, draw)| draw.rank());
        wanted
    }

    /// Builds what is wanted, of the hidden states of a step.
    pub(super) fn find<'s>(self, hidden: Array<'s>, decoder: &dyn Decoder, shape: Shape) -> Found<'s> {
        let Self { rows, logits, drawn, hidden: states, scored, targets, scores } = self;
        let Shape { vocab, width, wide } = shape;
        let scope = hidden.scope();
        let head = |rows: Array<'s>| {
            let logits = decoder.head(rows);
            // Rows that pad a matrix are no tokens.
            let logits = if width > vocab { logits.slice(-1, 0..number(vocab)) } else { logits };
            logits.as_type(DType::F32)
        };
        let (places, draws): (Vec<_>, Vec<_>) = drawn.into_iter().unzip();
        let all: Vec<_> = logits.iter().chain(&places).map(|place| place.row).collect();
        let (mut read, mut drawn) = (None, None);
        if let Some(rows) = pick(hidden, rows, &all).map(head) {
            let count = number(logits.len());
            read = (count > 0).then(|| if draws.is_empty() { rows } else { rows.slice(0, 0..count) }.contiguous());
            let rows = if count == 0 { rows } else { rows.slice(0, count..) };
            drawn = (!draws.is_empty()).then(|| Drawn::of(rows, &draws, vocab, wide));
        }
        let score = |rows| {
            let logits = head(rows);
            let targets = scope.array(&targets, &[targets.len(), 1]);
            logits.take_along_axis(targets, -1) - logits.logsumexp(-1, true)
        };
        let states_at: Vec<_> = states.iter().map(|place| place.row).collect();
        Found {
            logits: read,
            drawn,
            hidden: pick(hidden, rows, &states_at).map(|rows| rows.as_type(DType::F32).contiguous()),
            scored: pick(hidden, rows, &scored).map(score),
            entries: Entries { logits: entries(&logits), drawn: entries(&places), hidden: entries(&states), scores },
        }
    }
}

/// Some of the rows of `hidden`, which has so many.
fn pick<'s>(hidden: Array<'s>, rows: usize, wanted: &[usize]) -> Option<Array<'s>> {
    let is_all = wanted.len() == rows && wanted.is_sorted();
    match *wanted {
        [] => None,
        _ if is_all => Some(hidden),
        [row] => Some(hidden.slice(0, number(row)..number(row) + 1)),
        _ => {
            let indices: Vec<_> = wanted.iter().map(|&row| row as u32).collect();
            Some(hidden.take(hidden.scope().array(&indices, &[indices.len()]), 0))
        }
    }
}

fn entries(rows: &[Row]) -> Vec<usize> {
    rows.iter().map(|row| row.entry).collect()
}

/// What was wanted, by entry. It can be read once it was evaluated.
pub(super) struct Found<'s> {
    /// `[rows, vocabulary]`, f32.
    logits: Option<Array<'s>>,
    drawn: Option<Drawn<'s>>,
    /// `[rows, width]`, f32.
    hidden: Option<Array<'s>>,
    /// `[rows, 1]`, f32.
    scored: Option<Array<'s>>,
    entries: Entries,
}

/// Which entries the rows are for.
struct Entries {
    logits: Vec<usize>,
    drawn: Vec<usize>,
    hidden: Vec<usize>,
    scores: Vec<(usize, Range<usize>)>,
}

impl<'s> Found<'s> {
    pub(super) fn is_empty(&self) -> bool {
        self.arrays().next().is_none()
    }

    pub(super) fn arrays(&self) -> impl Iterator<Item = Array<'s>> {
        let Self { logits, drawn, hidden, scored, .. } = self;
        let drawn = drawn.map(|Drawn { tokens, numbers }| [tokens, numbers]);
        [*logits, *hidden, *scored].into_iter().flatten().chain(drawn.into_iter().flatten())
    }

    /// The same, in the scope around `inner`.
    pub(super) fn keep<'p>(self, inner: &Scope<'p>) -> Found<'p> {
        let Self { logits, drawn, hidden, scored, entries } = self;
        let [logits, hidden, scored] = [logits, hidden, scored].map(|array| array.map(|array| inner.keep(array)));
        let keep = |Drawn { tokens, numbers }| Drawn { tokens: inner.keep(tokens), numbers: inner.keep(numbers) };
        Found { logits, drawn: drawn.map(keep), hidden, scored, entries }
    }

    /// An entry's row of logits, if it has one here.
    pub(super) fn logits(&self, entry: usize) -> Option<Result<&'s [f32]>> {
        row(self.logits?, &self.entries.logits, entry)
    }

    /// An entry's hidden state, if it has one here.
    pub(super) fn hidden(&self, entry: usize) -> Option<Result<&'s [f32]>> {
        row(self.hidden?, &self.entries.hidden, entry)
    }

    /// What was drawn for an entry here.
    pub(super) fn drawn(&self, entry: usize) -> Option<Result<Sampled>> {
        let (drawn, entries) = (self.drawn?, &self.entries.drawn);
        let numbers = row(drawn.numbers, entries, entry)?;
        let at = entries.iter().position(|&other| other == entry)?;
        Some(numbers.and_then(|numbers| {
            let token = Token(drawn.tokens.data::<u32>()?[at]);
            let &[logprob, logit] = numbers else { return Err(damaged("the device's answer has another shape")) };
            if logit == f32::NEG_INFINITY {
                let message = "the constraint or the logit bias forbids every token that the model does not";
                return Err(damaged(message));
            }
            if !logprob.is_finite() || logit.is_nan() {
                return Err(damaged("a logit is not a number or infinite: the device drew no token"));
            }
            Ok(Sampled::new(token, logprob))
        }))
    }

    /// Appends an entry's scores that were found here.
    pub(super) fn scores(&self, entry: usize, out: &mut Vec<f32>) -> Result<()> {
        let Some(scored) = self.scored else { return Ok(()) };
        for (_, range) in self.entries.scores.iter().filter(|(other, _)| *other == entry) {
            let scores = &scored.data::<f32>()?[range.clone()];
            if scores.iter().any(|score| score.is_nan()) {
                let message = "the logits that are to be scored are not numbers; the model or what was restored for it is damaged";
                return Err(damaged(message));
            }
            out.extend_from_slice(scores);
        }
        Ok(())
    }
}

fn row<'s>(rows: Array<'s>, entries: &[usize], entry: usize) -> Option<Result<&'s [f32]>> {
    let at = entries.iter().position(|&other| other == entry)?;
    Some(rows.data::<f32>().map(|data| {
        let width = data.len() / entries.len();
        &data[at * width..(at + 1) * width]
    }))
}

fn damaged(message: &str) -> Error {
    error(ErrorKind::Runtime, message)
}
