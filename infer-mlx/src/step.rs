//! A step: the graph of one forward pass over tokens of several sequences, as a model's layers see it.
//!
//! A layer gets the tokens of all sequences as rows of one array, `[tokens, ...]`, whatever their sequences and lengths, and asks the step for
//! the two things in which sequences differ: the positions that [`rope`](Step::rope) turns by, and what a token
//! [attends](Step::attend) to. Nothing is computed here: the session evaluates the whole graph at once.

use crate::{
    Array, DType, Mask, Scope,
    kv::{CacheShape, Grown, Growth, Kv, Lane, Layout, Look, Made, Put, band, number},
    rope::Rope,
};
use infer_core::Token;
use std::ops::Range;

/// The tokens of a step that are of one sequence.
pub(crate) struct Part<'k> {
    pub(crate) kv: &'k Kv,
    pub(crate) growth: &'k mut Growth,
    pub(crate) tokens: &'k [Token],
}

/// A step that is being built.
pub(crate) struct Step<'k, 's> {
    scope: &'s Scope<'s>,
    layout: &'k Layout,
    segments: Vec<Segment<'k, 's>>,
    /// How many segments are of one token: they come first.
    singles: usize,
    /// `[tokens]`.
    tokens: Array<'s>,
    /// `[tokens, 1]`.
    positions: Array<'s>,
    turns: Vec<Turns<'s>>,
}

/// Tokens that follow each other in a sequence.
struct Segment<'k, 's> {
    /// Which rows of the step they are.
    rows: Range<usize>,
    lanes: Vec<Placed<'k, 's>>,
}

/// Where the rows of a segment go in a lane.
struct Placed<'k, 's> {
    held: Option<&'k Lane>,
    put: Put,
    /// The rows of the buffers that its tokens attend to, and what each sees of those.
    seen: Range<usize>,
    look: Look,
    mask: Option<Array<'s>>,
    /// Buffers that take the place of the old ones, layer by layer.
    made: Vec<[Array<'s>; 2]>,
    /// What the last layer so far has written.
    written: Option<[Array<'s>; 2]>,
}

/// The cosines and sines of a rotation: `[tokens, 1, dims]`, the sines with the sign they have in either half.
struct Turns<'s> {
    rope: Rope,
    dtype: DType,
    tables: [Array<'s>; 2],
}

impl<'k, 's> Step<'k, 's> {
    /// A step over the tokens of these parts, of which those of one token come first. A part's rows follow those of the part before.
    pub(crate) fn new(scope: &'s Scope<'s>, layout: &'k Layout, parts: impl IntoIterator<Item = Part<'k>>) -> Self {
        let (mut ids, mut positions, mut segments) = (Vec::<u32>::new(), Vec::<f32>::new(), Vec::new());
        let mut singles = 0;
        for Part { kv, growth, tokens } in parts {
            let (start, from, count) = (growth.len(), ids.len(), tokens.len());
            ids.extend(tokens.iter().map(|token| token.0));
            // A position is exact in 32 bits: a context has fewer than 2^24.
            positions.extend((start..start + count).map(|position| position as f32));
            singles += usize::from(count == 1);
            segments.push(Segment { rows: from..ids.len(), lanes: Placed::in_all(kv, growth, layout, count) });
        }
        let rows = ids.len();
        let (tokens, positions) = (scope.array(&ids, &[rows]), scope.array(&positions, &[rows, 1]));
        Self { scope, layout, segments, singles, tokens, positions, turns: Vec::new() }
    }

    /// The tokens, `[tokens]`, as unsigned numbers of 32 bits.
    pub(crate) fn tokens(&self) -> Array<'s> {
        self.tokens
    }

    /// Turns each token's heads by its position: `x` is `[tokens, heads, size]`, and so is the result. Cosines and sines are computed once
    /// for all that turn alike.
    pub(crate) fn rope(&mut self, x: Array<'s>, rope: &Rope) -> Array<'s> {
        let [cos, sin] = self.turns(rope, x.dtype());
        let (half, dims) = (rope.dims() / 2, rope.dims());
        let size = x.shape().last().map_or(dims, |&size| size as usize);
        let part = |range: Range<usize>| x.slice(-1, span(&range));
        let turned = if dims == size { x } else { part(0..dims) };
        // (a, b) becomes (a cos - b sin, b cos + a sin): each number meets the other one of its pair.
        let partners = if rope.is_traditional() {
            let pairs = turned.reshape(&[self.rows(), -1, number(half), 2]);
            let swapped = self.scope.concat(&[pairs.slice(-1, 1..2), pairs.slice(-1, 0..1)], -1);
            swapped.reshape(&[self.rows(), -1, number(dims)])
        } else {
            self.scope.concat(&[part(half..dims), part(0..half)], -1)
        };
        let turned = turned * cos + partners * sin;
        if dims == size { turned } else { self.scope.concat(&[turned, part(dims..size)], -1) }
    }

    fn turns(&mut self, rope: &Rope, dtype: DType) -> [Array<'s>; 2] {
        let known = self.turns.iter().find(|known| known.dtype == dtype && known.rope.is_same(rope));
        if let Some(known) = known {
            return known.tables;
        }
        let angles = rope.angles(self.positions);
        let [mut cos, mut sin] = [angles.cos(), angles.sin()];
        if let Some(scale) = rope.input_scale() {
            (cos, sin) = (cos * scale, sin * scale);
        }
        if dtype != DType::F32 {
            (cos, sin) = (cos.as_type(dtype), sin.as_type(dtype));
        }
        let tables = [self.pairs(rope, [cos, cos]), self.pairs(rope, [-sin, sin])];
        self.turns.push(Turns { rope: rope.clone(), dtype, tables });
        tables
    }

    /// Numbers for the first and for the second of each pair, where those are.
    fn pairs(&self, rope: &Rope, numbers: [Array<'s>; 2]) -> Array<'s> {
        if rope.is_traditional() {
            self.scope.stack(&numbers, -1).reshape(&[self.rows(), 1, number(rope.dims())])
        } else {
            self.scope.concat(&numbers, -1)
        }
    }

    /// What each token attends to, as `[tokens, heads * size]`: `q` is `[tokens, heads, size]`; `k` and `v` are `[tokens, heads of these, size]`,
    /// and are kept in the cache.
    pub(crate) fn attend(&mut self, layer: usize, q: Array<'s>, k: Array<'s>, v: Array<'s>, scale: f32) -> Array<'s> {
        let (lane, place) = self.layout.place(layer);
        let at = At { shape: self.layout.shape(layer), lane, place, copies: self.layout.copies() };
        let mut out = Vec::with_capacity(1 + self.segments.len() - self.singles);
        if self.singles > 0 {
            out.push(self.attend_singles(at, [q, k, v], scale));
        }
        let (scope, alone) = (self.scope, self.segments.len() == 1);
        for Segment { rows, lanes } in &mut self.segments[self.singles..] {
            // As attention has it: head by head.
            let [q, k, v] = [q, k, v].map(|x| {
                let x = if alone { x } else { x.slice(0, span(rows)) };
                x.expand_dims(0).transpose(&[0, 2, 1, 3])
            });
            let placed = &mut lanes[lane];
            let [keys, values] = placed.write(scope, at, [k, v]);
            let attended = q.attention(keys, values, scale, placed.mask(scope, rows.len()));
            out.push(attended.transpose(&[0, 2, 1, 3]).reshape(&[number(rows.len()), -1]));
        }
        self.joined(&out)
    }

    /// Those rows that are the only ones of their sequences. Such a token sees all that its cache has, so its heads that share keys attend
    /// together, as if they were tokens: keys are read once for all of them.
    fn attend_singles(&mut self, at: At, [q, k, v]: [Array<'s>; 3], scale: f32) -> Array<'s> {
        let (count, heads, size) = (self.singles, number(at.shape.kv_heads), number(at.shape.head_dim));
        let one_by_one = |x: Array<'s>, each: i32| {
            let x = if count == self.row_count() { x } else { x.slice(0, 0..number(count)) };
            let x = x.reshape(&[number(count), heads, each, size]);
            if count == 1 { vec![x] } else { x.split(0, &vec![1; count]) }
        };
        let (q, k, v) = (one_by_one(q, -1), one_by_one(k, 1), one_by_one(v, 1));
        let scope = self.scope;
        let mut out = Vec::with_capacity(count);
        for (index, Segment { lanes, .. }) in self.segments[..count].iter_mut().enumerate() {
            let [keys, values] = lanes[at.lane].write(scope, at, [k[index], v[index]]);
            out.push(q[index].attention(keys, values, scale, Mask::None));
        }
        self.joined(&out).reshape(&[number(count), -1])
    }

    fn joined(&self, parts: &[Array<'s>]) -> Array<'s> {
        if let [alone] = *parts { alone } else { self.scope.concat(parts, 0) }
    }

    fn row_count(&self) -> usize {
        self.segments.last().map_or(0, |last| last.rows.end)
    }

    fn rows(&self) -> i32 {
        number(self.row_count())
    }

    /// What was made, part by part.
    pub(crate) fn finish(self) -> Vec<Grown<'s>> {
        let grown = |Segment { rows, lanes }: Segment<'k, 's>| Grown {
            count: rows.len(),
            lanes: lanes
                .into_iter()
                .map(|placed| Made { put: placed.put, buffers: placed.made, written: placed.written })
                .collect(),
        };
        self.segments.into_iter().map(grown).collect()
    }
}

/// A layer's place in the cache.
#[derive(Clone, Copy)]
struct At {
    shape: CacheShape,
    lane: usize,
    place: usize,
    /// Whether what is written is a buffer of its own.
    copies: bool,
}

impl<'k, 's> Placed<'k, 's> {
    /// The places of `count` tokens, lane by lane.
    fn in_all(kv: &'k Kv, growth: &'k mut Growth, layout: &Layout, count: usize) -> Vec<Self> {
        let windows = layout.windows().iter().enumerate();
        let puts: Vec<_> = windows.map(|(lane, &window)| (growth.put(kv, layout, lane, count), window)).collect();
        let growth: &'k Growth = growth;
        let placed = |(lane, (put, window)): (usize, (Put, Option<usize>))| {
            let (seen, look) = put.seen(growth.len(), count, window);
            Self { held: growth.lane(kv, lane), put, seen, look, mask: None, made: Vec::new(), written: None }
        };
        puts.into_iter().enumerate().map(placed).collect()
    }

    /// Puts rows of keys and of values, each `[1, heads, count, size]`, where they belong; what is attended to of them and of those before.
    fn write(&mut self, scope: &'s Scope<'s>, at: At, rows: [Array<'s>; 2]) -> [Array<'s>; 2] {
        let held = self.held.map(|lane| lane.buffers(at.place));
        let write = |which: usize| {
            let (rows, old) = (rows[which], held.map(|pair| scope.enter(&pair[which])));
            let buffer = match (self.put.kept(), old) {
                (None, Some(old)) => old,
                (kept, old) => {
                    let kept = kept.cloned().unwrap_or_default();
                    let room = [1, at.shape.kv_heads, self.put.capacity() - kept.len(), at.shape.head_dim];
                    let room = scope.zeros(&room, rows.dtype());
                    let old = old.filter(|_| !kept.is_empty());
                    old.map_or(room, |old| scope.concat(&[old.slice(2, span(&kept)), room], 2))
                }
            };
            buffer.kv_write(rows, 2, number(self.put.offset()))
        };
        let written = [write(0), write(1)];
        if self.put.kept().is_some() || at.copies {
            self.made.push(written);
        }
        self.written = Some(written);
        written.map(|buffer| buffer.slice(2, span(&self.seen)))
    }

    fn mask(&mut self, scope: &'s Scope<'s>, count: usize) -> Mask<'s> {
        match self.look {
            Look::All => Mask::None,
            Look::Causal => Mask::Causal,
            Look::Band { before, window } => {
                let rows = self.seen.len();
                let made = || scope.array(&band(count, rows, before, window), &[count, rows]);
                Mask::Array(*self.mask.get_or_insert_with(made))
            }
        }
    }
}

/// A range as arrays have it.
fn span(range: &Range<usize>) -> Range<i32> {
    number(range.start)..number(range.end)
}
