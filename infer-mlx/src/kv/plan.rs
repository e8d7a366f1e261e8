//! Where rows go, and which are looked at. Numbers only.

use std::ops::Range;

/// Rows by which buffers grow.
pub(super) const STEP: usize = 256;

/// The first position that the token at `position` attends to.
pub(super) fn first_seen(position: usize, window: Option<usize>) -> usize {
    window.map_or(0, |most| (position + 1).saturating_sub(most))
}

/// The rows of a buffer.
#[derive(Clone, Copy, Debug)]
pub(super) struct Rows {
    /// The position that row 0 holds.
    pub(super) first: usize,
    /// Positions there are, those that have no row any more among them.
    pub(super) len: usize,
    /// Rows there are.
    pub(super) capacity: usize,
}

/// Where the rows of a step go.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Put {
    /// The position that row 0 holds of the buffers that are written to.
    first: usize,
    /// Rows they have.
    capacity: usize,
    /// The row that the first new position gets.
    offset: usize,
    /// Where those buffers are new: the rows of the old ones that come first in them.
    kept: Option<Range<usize>>,
}

impl Put {
    /// Into the buffers that are there, if they have room.
    pub(super) fn behind(Rows { first, len, capacity }: Rows, count: usize) -> Option<Self> {
        let offset = len - first;
        (offset + count <= capacity).then_some(Self { first, capacity, offset, kept: None })
    }

    /// Into new buffers: with room for the `coming` rows of the whole pass; of a window's for the `count` rows of this step, and some more.
    pub(super) fn anew(Rows { first, len, .. }: Rows, coming: usize, count: usize, window: Option<usize>) -> Self {
        // What the last position attends to, and not the next one only: it may be computed again, and is saved with the others.
        let from = first_seen(len.saturating_sub(1), window).max(first);
        let kept = from - first..len - first;
        // What a window passes by need not be held; but a new buffer must last for many steps.
        let room = window.map_or(coming, |most| count + most.min(STEP));
        let capacity = (kept.len() + room).next_multiple_of(STEP);
        Self { first: from, capacity, offset: kept.len(), kept: Some(kept) }
    }

    pub(super) fn first(&self) -> usize {
        self.first
    }

    pub(crate) fn capacity(&self) -> usize {
        self.capacity
    }

    pub(crate) fn offset(&self) -> usize {
        self.offset
    }

    /// The rows of the old buffers that new ones begin with; `None` where there are no new ones.
    pub(crate) fn kept(&self) -> Option<&Range<usize>> {
        self.kept.as_ref()
    }

    /// The rows that `count` tokens attend to, the first of them at position `start`, once their own rows are there; and what each sees of those.
    pub(crate) fn seen(&self, start: usize, count: usize, window: Option<usize>) -> (Range<usize>, Look) {
        let (from, end) = (first_seen(start, window), start + count);
        let look = match window {
            _ if count == 1 => Look::All,
            Some(most) if first_seen(end - 1, window) > from => Look::Band { before: start - from, window: most },
            _ => Look::Causal,
        };
        (from - self.first..end - self.first, look)
    }
}

/// What tokens see of the rows that they attend to together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Look {
    /// All of them.
    All,
    /// Those up to their own.
    Causal,
    /// As many of those as the window has. The first token has `before` rows before its own.
    Band { before: usize, window: usize },
}

/// Which of `rows` rows each of `count` tokens sees: token by token.
pub(crate) fn band(count: usize, rows: usize, before: usize, window: usize) -> Vec<bool> {
    let sees = |token: usize, row: usize| row <= before + token && row + window > before + token;
    (0..count).flat_map(|token| (0..rows).map(move |row| sees(token, row))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn rows(first: usize, len: usize, capacity: usize) -> Rows {
        Rows { first, len, capacity }
    }

    const fn put(first: usize, capacity: usize, offset: usize, kept: Option<Range<usize>>) -> Put {
        Put { first, capacity, offset, kept }
    }

    #[test]
    fn buffers_grow_in_steps_and_hold_all_that_is_coming() {
        let none = rows(0, 0, 0);
        assert_eq!(Put::anew(none, 1, 1, None), put(0, 256, 0, Some(0..0)));
        assert_eq!(Put::anew(none, 600, 512, None), put(0, 768, 0, Some(0..0)));
        assert_eq!(Put::behind(rows(0, 255, 256), 1), Some(put(0, 256, 255, None)));
        assert_eq!(Put::behind(rows(0, 255, 256), 2), None);
        assert_eq!(Put::anew(rows(0, 256, 256), 1, 1, None), put(0, 512, 256, Some(0..256)));
    }

    #[test]
    fn a_window_keeps_what_the_last_token_sees_and_has_room_for_a_while() {
        // The token at 299 sees 200 to 299, the one at 300 sees 201 to 300.
        let anew = Put::anew(rows(0, 300, 300), 1, 1, Some(100));
        assert_eq!(anew, put(200, 256, 100, Some(200..300)));
        assert_eq!(anew.seen(300, 1, Some(100)), (1..101, Look::All));
        // Buffers that begin later keep all they have.
        assert_eq!(Put::anew(rows(250, 300, 50), 1, 1, Some(100)), put(250, 256, 50, Some(0..50)));
        // A long prompt takes no more than what is computed at once.
        assert_eq!(Put::anew(rows(0, 0, 0), 9000, 512, Some(100)), put(0, 768, 0, Some(0..0)));
    }

    #[test]
    fn tokens_attend_to_what_is_before_them_as_far_as_the_window() {
        let behind = |len| Put::behind(rows(0, len, 256), 5).unwrap();
        assert_eq!(behind(7).seen(7, 1, None), (0..8, Look::All));
        assert_eq!(behind(7).seen(7, 3, None), (0..10, Look::Causal));
        assert_eq!(behind(7).seen(7, 3, Some(10)), (0..10, Look::Causal));
        assert_eq!(behind(7).seen(7, 3, Some(9)), (0..10, Look::Band { before: 7, window: 9 }));
        assert_eq!(behind(20).seen(20, 2, Some(4)), (17..22, Look::Band { before: 3, window: 4 }));
        assert_eq!(behind(20).seen(20, 1, Some(4)), (17..21, Look::All));
        assert_eq!(Put::behind(rows(15, 20, 256), 1).unwrap().seen(20, 1, Some(4)), (2..6, Look::All));
    }

    #[test]
    fn a_band_is_as_wide_as_the_window() {
        let seen: Vec<u8> = band(2, 5, 3, 4).into_iter().map(u8::from).collect();
        assert_eq!(seen, [1, 1, 1, 1, 0, 0, 1, 1, 1, 1]);
    }
}
