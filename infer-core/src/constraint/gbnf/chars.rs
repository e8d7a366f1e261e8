//! Sets of characters.

use std::fmt;

const LAST: u32 = char::MAX as u32;

/// Ranges of code points, both ends included, in order and apart.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Chars(Vec<(u32, u32)>);

impl Chars {
    pub(super) fn any() -> Self {
        Self(vec![(0, LAST)])
    }

    pub(super) fn of(ranges: impl IntoIterator<Item = (u32, u32)>) -> Self {
        let mut set = Self(ranges.into_iter().collect());
        set.order();
        set
    }

    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// All others.
    pub(super) fn negated(&self) -> Self {
        let (mut others, mut from) = (Vec::new(), 0);
        for &(first, last) in &self.0 {
            if first > from {
                others.push((from, first - 1));
            }
            from = last + 1;
        }
        if from <= LAST {
            others.push((from, LAST));
        }
        Self(others)
    }

    /// Adds others. Whether there were any new ones.
    pub(super) fn add(&mut self, other: &Self) -> bool {
        let before = self.0.clone();
        self.0.extend_from_slice(&other.0);
        self.order();
        self.0 != before
    }

    pub(super) fn meets(&self, other: &Self) -> bool {
        self.0.iter().any(|&(first, last)| other.0.iter().any(|&(from, to)| first <= to && from <= last))
    }

    fn order(&mut self) {
        self.0.sort_unstable();
        self.0.dedup_by(|next, kept| {
            let joins = next.0 <= kept.1.saturating_add(1);
            if joins {
                kept.1 = kept.1.max(next.1);
            }
            joins
        });
    }
}

/// As a class of a regular expression.
impl fmt::Display for Chars {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("[")?;
        for &(first, last) in &self.0 {
            write!(f, r"\x{{{first:x}}}")?;
            if last > first {
                write!(f, r"-\x{{{last:x}}}")?;
            }
        }
        f.write_str("]")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_are_joined_and_taken_apart() {
        let letters = Chars::of([(98, 100), (97, 97), (99, 122), (48, 57)]);
        assert_eq!(letters.to_string(), r"[\x{30}-\x{39}\x{61}-\x{7a}]");
        assert_eq!(letters.negated().negated(), letters);
        assert_eq!(Chars::any().negated(), Chars::default());
        assert!(letters.meets(&Chars::of([(57, 58)])) && !letters.meets(&Chars::of([(58, 96)])));
        let mut all = letters.clone();
        assert!(all.add(&letters.negated()) && all == Chars::any() && !all.add(&letters));
    }
}
