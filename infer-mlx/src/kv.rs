//! The keys and values of a session's sequences.
//!
//! Each sequence has, a layer, one buffer of keys and one of values: `[1, heads, capacity, size]`, of which the first rows hold positions and the
//! others nothing yet. New rows are written behind them, where nobody looks, into the memory that the cache still holds (`kv_write`): so a step
//! copies nothing, and a pass that fails has changed nothing that counts. A row that counts is never written again. From there all else follows:
//!
//! - A *commit* is a larger length, and new buffers where a buffer was too small.
//! - A *fork* has its parent's buffers and a length of its own. Whoever appends first has the rows behind the end; the other one copies
//!   before it writes ([`Tail`]).
//! - A *cut* is a smaller length.
//! - Layers that attend to a window append as all others do, and now and then begin a new buffer with the rows that the window still shows.
//!   Where older rows are needed again, for a cut or a fork, they are gone: `Unsupported`.

mod plan;
mod state;

pub(crate) use plan::{Look, Put, band};

use crate::{Array, DType, Owned, Scope, error::BACKEND};
use infer_core::{Error, Result, cost::KvRows};
use std::{cell::Cell, rc::Rc};

/// What a layer keeps of a position, and of how many.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct CacheShape {
    /// Heads of keys, and of values.
    pub(crate) kv_heads: usize,
    /// Numbers of a head.
    pub(crate) head_dim: usize,
    /// How many positions a token attends to, its own among them; `None` is all.
    pub(crate) window: Option<usize>,
}

/// Which layers go together: those with one window have their rows at the same places, and are planned as one *lane*.
#[derive(Debug)]
pub(crate) struct Layout {
    shapes: Vec<CacheShape>,
    /// Lane → its window.
    windows: Vec<Option<usize>>,
    /// Layer → its lane, and its place in it.
    places: Vec<(usize, usize)>,
    /// Whether `kv_write` writes into the buffer it is given. Elsewhere it gives a new one.
    in_place: bool,
}

impl Layout {
    /// A window that no sequence outgrows is none.
    pub(crate) fn new(layers: &[CacheShape], context: usize, in_place: bool) -> Self {
        let narrowed =
            |shape: &CacheShape| CacheShape { window: shape.window.filter(|&most| most < context), ..*shape };
        let shapes: Vec<_> = layers.iter().map(narrowed).collect();
        let (mut windows, mut counts, mut places) = (Vec::new(), Vec::new(), Vec::with_capacity(shapes.len()));
        for shape in &shapes {
            let lane = windows.iter().position(|&window| window == shape.window).unwrap_or_else(|| {
                windows.push(shape.window);
                counts.push(0);
                windows.len() - 1
            });
            places.push((lane, counts[lane]));
            counts[lane] += 1;
        }
        Self { shapes, windows, places, in_place }
    }

    /// Whether every sequence keeps all its positions.
    pub(crate) fn keeps_all(&self) -> bool {
        self.windows.iter().all(Option::is_none)
    }

    /// Windows, lane by lane.
    pub(crate) fn windows(&self) -> &[Option<usize>] {
        &self.windows
    }

    pub(crate) fn shape(&self, layer: usize) -> CacheShape {
        self.shapes[layer]
    }

    pub(crate) fn shapes(&self) -> &[CacheShape] {
        &self.shapes
    }

    /// The lane of a layer, and the layer's place in it.
    pub(crate) fn place(&self, layer: usize) -> (usize, usize) {
        self.places[layer]
    }

    /// Whether what is written into a buffer is a buffer of its own.
    pub(crate) fn copies(&self) -> bool {
        !self.in_place
    }

    /// Bytes that a sequence of `context` positions may come to take, of numbers of this type.
    pub(crate) fn most_bytes(&self, context: usize, dtype: DType) -> u64 {
        rows(&self.shapes).numbers(context).saturating_mul(dtype.bytes() as u64)
    }
}

/// The rows that a sequence comes to have. A window has some to spare: those that are computed at once, and those until the next buffer.
pub(crate) fn rows(layers: &[CacheShape]) -> KvRows {
    layers.iter().fold(KvRows::new(plan::STEP), |rows, shape| {
        let most = shape.window.map(|window| window + 4 * plan::STEP);
        rows.with_layer(2 * shape.kv_heads * shape.head_dim, most)
    })
}

/// The buffers of a lane's layers, for one sequence or several that share them.
#[derive(Clone)]
pub(crate) struct Lane {
    /// The position that row 0 holds.
    first: usize,
    /// Rows there are.
    capacity: usize,
    tail: Tail,
    /// Keys and values, layer by layer.
    buffers: Vec<[Owned; 2]>,
}

impl Lane {
    /// Buffers of `capacity` rows, in which `len` positions are from position `first` on.
    pub(crate) fn new(first: usize, len: usize, capacity: usize, buffers: Vec<[Owned; 2]>) -> Self {
        Self { first, capacity, tail: Tail(Rc::new(Cell::new(len))), buffers }
    }

    /// Keys and values of a layer of this lane.
    pub(crate) fn buffers(&self, place: usize) -> &[Owned; 2] {
        &self.buffers[place]
    }
}

/// Up to which position the rows of a buffer are written, whoever wrote them. It is shared with the buffer.
///
/// The one sequence that ends there may write behind it. Any other one that appends would write over somebody's rows, and has to have
/// buffers of its own first.
#[derive(Clone)]
struct Tail(Rc<Cell<usize>>);

impl Tail {
    /// Whether a sequence that ends at `len` may write behind that.
    fn is_owned_by(&self, len: usize) -> bool {
        self.0.get() == len || Rc::strong_count(&self.0) == 1
    }
}

/// What a sequence holds.
#[derive(Default)]
pub(crate) struct Kv {
    len: usize,
    /// Empty where nothing is held.
    lanes: Vec<Lane>,
}

impl Kv {
    /// Forgets all positions from `len` on.
    ///
    /// # Errors
    /// [`Unsupported`](infer_core::ErrorKind::Unsupported) where a window has dropped what the last of them attends to.
    pub(crate) fn truncate(&mut self, layout: &Layout, len: usize) -> Result<()> {
        self.check_kept(layout, len)?;
        self.len = len;
        if len == 0 {
            self.lanes.clear();
        }
        Ok(())
    }

    /// The first `len` positions, in the same buffers.
    ///
    /// # Errors
    /// [`Unsupported`](infer_core::ErrorKind::Unsupported), as [`truncate`](Self::truncate).
    pub(crate) fn fork(&self, layout: &Layout, len: usize) -> Result<Self> {
        self.check_kept(layout, len)?;
        Ok(Self { len, lanes: if len == 0 { Vec::new() } else { self.lanes.clone() } })
    }

    /// Bytes of its buffers, rows that hold nothing yet among them.
    #[cfg(test)]
    pub(crate) fn bytes(&self) -> u64 {
        let buffers = self.lanes.iter().flat_map(|lane| lane.buffers.iter().flatten());
        let bytes = |buffer: &Owned| {
            buffer.shape().iter().map(|&size| size as u64).product::<u64>() * buffer.dtype().bytes() as u64
        };
        buffers.map(bytes).sum()
    }

    fn check_kept(&self, layout: &Layout, len: usize) -> Result<()> {
        // The last position is there to be computed again, and to be saved, with what it attends to.
        let last = len.saturating_sub(1);
        let is_kept = |(lane, window): (&Lane, &Option<usize>)| lane.first <= plan::first_seen(last, *window);
        if len == 0 || len == self.len || self.lanes.iter().zip(layout.windows()).all(is_kept) {
            return Ok(());
        }
        let message = format!(
            "a sliding window has dropped positions that are needed to go on from {len}; compute the sequence again"
        );
        Err(Error::unsupported(message).with_backend(BACKEND))
    }
}

/// A sequence in a pass: what it holds, and what the pass has added so far. Nothing of it counts before [`commit`](Self::commit).
pub(crate) struct Growth {
    /// Where the pass will have brought it.
    end: usize,
    /// What was computed so far.
    len: usize,
    /// Whether it began with a position that was there before.
    again: bool,
    /// Lane → the buffers that are in place of those it had.
    anew: Vec<Option<Lane>>,
    /// Lane → where the tail of the buffers it had was before the pass wrote behind it.
    tails: Vec<Option<usize>>,
}

/// What a step has added to a sequence.
pub(crate) struct Grown<'s> {
    pub(crate) count: usize,
    /// Lane by lane.
    pub(crate) lanes: Vec<Made<'s>>,
}

/// What a step has made of a lane.
pub(crate) struct Made<'s> {
    pub(crate) put: Put,
    /// Layer by layer; empty where the rows went into the buffers that were there.
    pub(crate) buffers: Vec<[Array<'s>; 2]>,
    /// What the last of its layers has written.
    pub(crate) written: Option<[Array<'s>; 2]>,
}

impl<'s> Grown<'s> {
    /// What is needed of it outside of the scope that the step was built in: new buffers, and where nothing else is evaluated, what was
    /// written.
    pub(crate) fn keep<'p>(self, inner: &Scope<'p>, with_written: bool) -> Grown<'p> {
        let keep = |pair: [Array<'s>; 2]| pair.map(|array| inner.keep(array));
        let made = |Made { put, buffers, written }: Made<'s>| Made {
            put,
            buffers: buffers.into_iter().map(keep).collect(),
            written: written.filter(|_| with_written).map(keep),
        };
        Grown { count: self.count, lanes: self.lanes.into_iter().map(made).collect() }
    }

    /// All of it that is to be evaluated.
    pub(crate) fn arrays(&self) -> impl Iterator<Item = Array<'s>> {
        self.lanes.iter().flat_map(|made| made.buffers.iter().chain(&made.written)).flatten().copied()
    }
}

impl Growth {
    /// A sequence that is to grow to `end`.
    pub(crate) fn new(kv: &Kv, layout: &Layout, end: usize) -> Self {
        let lanes = layout.windows().len();
        let (anew, tails) = ((0..lanes).map(|_| None).collect(), vec![None; lanes]);
        Self { len: kv.len, end, again: false, anew, tails }
    }

    /// A sequence that is to grow to `end`, and whose last position is computed again: in other buffers, since a row that counts is never
    /// written again.
    pub(crate) fn from_last(kv: &Kv, layout: &Layout, end: usize) -> Self {
        Self { len: kv.len - 1, again: true, ..Self::new(kv, layout, end) }
    }

    /// Positions there are, those of the pass among them.
    pub(crate) fn len(&self) -> usize {
        self.len
    }

    /// The buffers of a lane, if there are any.
    pub(crate) fn lane<'k>(&'k self, kv: &'k Kv, lane: usize) -> Option<&'k Lane> {
        self.anew[lane].as_ref().or_else(|| kv.lanes.get(lane))
    }

    /// Where `count` new rows of a lane go. The rows behind the end are this sequence's from here on, until the pass ends.
    pub(crate) fn put(&mut self, kv: &Kv, layout: &Layout, lane: usize, count: usize) -> Put {
        let (window, coming) = (layout.windows()[lane], self.end - self.len);
        let Some(held) = self.lane(kv, lane) else {
            return Put::anew(plan::Rows { first: 0, len: 0, capacity: 0 }, coming, count, window);
        };
        let rows = plan::Rows { first: held.first, len: self.len, capacity: held.capacity };
        let is_written_again = self.again && self.anew[lane].is_none();
        let is_free = held.tail.is_owned_by(self.len) && !is_written_again;
        match Put::behind(rows, count).filter(|_| is_free) {
            Some(put) => {
                let tail = held.tail.0.replace(self.len + count);
                // Buffers that this pass has made are nobody else's, and go with it.
                if self.anew[lane].is_none() {
                    self.tails[lane].get_or_insert(tail);
                }
                put
            }
            None => Put::anew(rows, coming, count, window),
        }
    }

    /// A step was computed.
    pub(crate) fn grow(&mut self, grown: Grown<'_>) {
        self.len += grown.count;
        for (lane, Made { put, buffers, .. }) in self.anew.iter_mut().zip(grown.lanes) {
            if !buffers.is_empty() {
                let buffers = buffers.into_iter().map(|pair| pair.map(Array::own)).collect();
                *lane = Some(Lane::new(put.first(), self.len, put.capacity(), buffers));
            }
        }
    }

    /// The pass has succeeded.
    pub(crate) fn commit(self, kv: &mut Kv) {
        kv.len = self.len;
        if kv.lanes.is_empty() {
            kv.lanes = self.anew.into_iter().flatten().collect();
            return;
        }
        for (lane, anew) in kv.lanes.iter_mut().zip(self.anew) {
            if let Some(anew) = anew {
                *lane = anew;
            }
        }
    }

    /// The pass has failed: the rows behind the end are whose they were.
    pub(crate) fn discard(self, kv: &Kv) {
        for (lane, tail) in kv.lanes.iter().zip(self.tails) {
            if let Some(tail) = tail {
                lane.tail.0.set(tail);
            }
        }
    }
}

/// A count of rows, which is far below 2^31: a context is.
pub(crate) fn number(rows: usize) -> i32 {
    i32::try_from(rows).expect("buffers have fewer than 2^31 rows")
}
