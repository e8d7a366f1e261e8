//! Keys and values as bytes: layer by layer, keys before values, head by head, position by position. Of a layer with a window, as many of the
//! last positions as it has.

use super::{Kv, Lane, Layout, plan};
use crate::{Array, DType, Mlx, Scope};
use infer_core::{
    Result,
    state::{Reader, Writer},
};

impl Layout {
    /// The positions of a layer that are saved of `len`: the first one, and how many.
    fn saved(&self, lane: usize, len: usize) -> (usize, usize) {
        // One more than the next token sees: the last one may be computed again.
        let first = plan::first_seen(len.saturating_sub(1), self.windows()[lane]);
        (first, len - first)
    }

    /// Bytes that `len` positions are saved in, of numbers of this type.
    pub(crate) fn saved_bytes(&self, len: usize, dtype: DType) -> u64 {
        let layer = |layer: usize| {
            let shape = self.shape(layer);
            let (_, count) = self.saved(self.place(layer).0, len);
            (2 * shape.kv_heads * shape.head_dim * dtype.bytes() * count) as u64
        };
        (0..self.shapes().len()).map(layer).sum()
    }
}

impl Kv {
    /// Writes all positions; `check` is asked between layers whether to go on.
    pub(crate) fn save(
        &self,
        mlx: &Mlx,
        layout: &Layout,
        writer: &mut Writer<'_>,
        check: impl Fn() -> Result<()>,
    ) -> Result<()> {
        if self.len == 0 {
            return Ok(());
        }
        for layer in 0..layout.shapes().len() {
            check()?;
            let (lane, place) = layout.place(layer);
            let held = &self.lanes[lane];
            let (first, count) = layout.saved(lane, self.len);
            let rows: Vec<_> = (first - held.first..first - held.first + count).map(|row| row as u32).collect();
            for buffer in held.buffers(place) {
                let scope = mlx.scope();
                // A copy whatever the shape: memory that steps write into cannot be looked at.
                let rows = scope.enter(buffer).take(scope.array(&rows, &[count]), 2).contiguous();
                let bytes = rows.view(DType::U8);
                scope.eval([bytes])?;
                writer.write(bytes.data()?)?;
            }
        }
        Ok(())
    }

    /// Reads `len` positions that were saved of numbers of type `dtype`.
    pub(crate) fn restore(
        mlx: &Mlx,
        layout: &Layout,
        (len, dtype): (usize, DType),
        reader: &mut Reader<'_>,
        check: impl Fn() -> Result<()>,
    ) -> Result<Self> {
        let mut kv = Self::default();
        if len == 0 {
            return Ok(kv);
        }
        let mut buffers: Vec<Vec<_>> = layout.windows().iter().map(|_| Vec::new()).collect();
        for layer in 0..layout.shapes().len() {
            check()?;
            let lane = layout.place(layer).0;
            let (_, count) = layout.saved(lane, len);
            let scope = mlx.scope();
            let mut tensor = || restored(&scope, layout, layer, count, dtype, reader);
            let pair = [tensor()?, tensor()?];
            scope.eval(pair)?;
            buffers[lane].push(pair.map(Array::own));
        }
        kv.len = len;
        let lane = |(lane, buffers)| {
            let (first, count) = layout.saved(lane, len);
            Lane::new(first, len, capacity(count), buffers)
        };
        kv.lanes = buffers.into_iter().enumerate().map(lane).collect();
        Ok(kv)
    }
}

/// A buffer with the rows that come next.
fn restored<'s>(
    scope: &'s Scope<'_>,
    layout: &Layout,
    layer: usize,
    count: usize,
    dtype: DType,
    reader: &mut Reader<'_>,
) -> Result<Array<'s>> {
    let shape = layout.shape(layer);
    let size = shape.head_dim * dtype.bytes();
    let mut bytes = vec![0_u8; shape.kv_heads * count * size];
    reader.read_ahead(&mut bytes)?;
    let rows = scope.array(&bytes, &[1, shape.kv_heads, count, size]).view(dtype);
    let room = [1, shape.kv_heads, capacity(count) - count, shape.head_dim];
    Ok(scope.concat(&[rows, scope.zeros(&room, dtype)], 2))
}

/// With room for more, however many there are.
fn capacity(count: usize) -> usize {
    (count + 1).next_multiple_of(plan::STEP)
}
