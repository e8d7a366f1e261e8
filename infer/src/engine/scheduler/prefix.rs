//! Sequences of texts that have ended, kept for prompts that begin as they do.
//!
//! A list in the order of use. Looking something up compares tokens: an entry can only be better than the best one so far where it has the
//! prompt's token at that one's length, so most entries cost one comparison, however long they are and however many share a beginning.

use infer_core::{Sequence, Token};

/// A shared beginning of fewer tokens is computed again: taking it over would cost about as much.
pub(super) const LEAST: usize = 16;

/// What a sequence of the cache holds.
pub(super) struct Entry {
    pub(super) log: Vec<Token>,
    pub(super) seq: Sequence,
    /// What it was computed with.
    pub(super) adapter: u32,
}

pub(super) struct PrefixCache {
    /// The least recently used one first.
    entries: Vec<Entry>,
    /// Positions they hold together.
    held: usize,
    most: usize,
}

impl PrefixCache {
    /// A cache of at most so many positions.
    pub(super) fn new(most: usize) -> Self {
        Self { entries: Vec::new(), held: 0, most }
    }

    pub(super) fn len(&self) -> usize {
        self.entries.len()
    }

    /// Positions that are kept.
    pub(super) fn held(&self) -> usize {
        self.held
    }

    /// The entry with the longest beginning in common with `log`, and how long that is, if it is longer than `than`. With `whole`
    /// only entries that are a beginning of it.
    pub(super) fn longest(&self, log: &[Token], adapter: u32, than: usize, whole: bool) -> Option<(usize, usize)> {
        let mut best = None;
        let mut longest = than;
        // From the most recently used one on, which wins where several are as good.
        for (index, entry) in self.entries.iter().enumerate().rev() {
            if entry.adapter != adapter || entry.log.get(longest) != log.get(longest) || longest >= log.len() {
                continue;
            }
            let common = common(&entry.log, log);
            if common > longest && (!whole || common == entry.log.len()) {
                longest = common;
                best = Some((index, common));
            }
        }
        best
    }

    /// Makes an entry the most recently used one, and returns it.
    pub(super) fn touch(&mut self, index: usize) -> &Entry {
        let entry = self.entries.remove(index);
        self.entries.push(entry);
        self.entries.last().expect("one was pushed")
    }

    pub(super) fn newest(&self) -> Option<&Entry> {
        self.entries.last()
    }

    /// Takes the most recently used entry out.
    pub(super) fn take_newest(&mut self) -> Option<Entry> {
        let entry = self.entries.pop()?;
        self.held -= entry.log.len();
        Some(entry)
    }

    /// Drops the least recently used entry. Says whether there was one.
    pub(super) fn evict(&mut self) -> bool {
        if self.entries.is_empty() {
            return false;
        }
        self.held -= self.entries.remove(0).log.len();
        true
    }

    /// Keeps a sequence, within the budget. With `supersede`, entries that are a beginning of it go: it serves whatever they did.
    pub(super) fn keep(&mut self, entry: Entry, supersede: bool) {
        let len = entry.log.len();
        if len < LEAST || len > self.most {
            return;
        }
        if supersede && let Some((index, common)) = self.longest(&entry.log, entry.adapter, len - 1, false) {
            debug_assert_eq!(common, len);
            self.touch(index);
            return;
        }
        if supersede {
            self.retain(|old| old.adapter != entry.adapter || !is_beginning(&old.log, &entry.log));
        }
        while self.held + len > self.most {
            self.evict();
        }
        self.held += len;
        self.entries.push(entry);
    }

    /// Drops entries whose cells were lost.
    pub(super) fn sweep(&mut self) {
        self.retain(|entry| !entry.seq.is_spent());
    }

    pub(super) fn clear(&mut self) {
        self.entries.clear();
        self.held = 0;
    }

    fn retain(&mut self, keep: impl FnMut(&Entry) -> bool) {
        self.entries.retain(keep);
        self.held = self.entries.iter().map(|entry| entry.log.len()).sum();
    }
}

/// How long the beginning is that both have.
pub(super) fn common(a: &[Token], b: &[Token]) -> usize {
    const BLOCK: usize = 32;
    // Whole blocks first, which the compiler compares many tokens at a time.
    let blocks = a.chunks_exact(BLOCK).zip(b.chunks_exact(BLOCK)).take_while(|(a, b)| a == b).count();
    let from = blocks * BLOCK;
    from + a[from..].iter().zip(&b[from..]).take_while(|(a, b)| a == b).count()
}

fn is_beginning(short: &[Token], long: &[Token]) -> bool {
    // Texts differ more often at the end than at the beginning.
    short.len() <= long.len() && short.last() == long[..short.len()].last() && short == &long[..short.len()]
}

#[cfg(test)]
mod tests {
    use super::*;
    use infer_core::{
        Model, OpenOptions, Session, SessionOptions,
        testing::{Script, ScriptedModel},
    };

    fn tokens(range: std::ops::Range<u32>) -> Vec<Token> {
        range.map(Token).collect()
    }

    fn session() -> Box<dyn Session> {
        ScriptedModel::new(Script::new()).session(&SessionOptions::new().with_sequences(16)).unwrap()
    }

    fn entry(session: &mut dyn Session, log: Vec<Token>, adapter: u32) -> Entry {
        Entry { log, seq: session.open(&OpenOptions::default()).unwrap(), adapter }
    }

    #[test]
    fn finds_the_longest_beginning_of_the_same_adapter() {
        let mut session = session();
        let mut cache = PrefixCache::new(10_000);
        for (log, adapter) in [(tokens(0..40), 0), (tokens(0..90), 1), (tokens(5..80), 0)] {
            cache.keep(entry(&mut *session, log, adapter), true);
        }
        let prompt = tokens(0..100);
        assert_eq!(cache.longest(&prompt, 0, 0, false), Some((0, 40)));
        assert_eq!(cache.longest(&prompt, 1, 0, false), Some((1, 90)));
        assert_eq!(cache.longest(&prompt, 2, 0, false), None);
        assert_eq!(cache.longest(&prompt, 0, 40, false), None, "it is not longer than that");
        assert_eq!(cache.longest(&prompt[..40], 0, 0, false), Some((0, 40)));
        let mut other = tokens(0..60);
        other[20] = Token(7);
        assert_eq!(cache.longest(&other, 0, 0, false), Some((0, 20)));
        assert_eq!(cache.longest(&other, 0, 0, true), None, "no entry is a beginning of it");
        assert_eq!(cache.longest(&[], 0, 0, false), None);
    }

    #[test]
    fn the_least_recently_used_goes_first_and_the_budget_holds() {
        let mut session = session();
        let mut cache = PrefixCache::new(100);
        cache.keep(entry(&mut *session, tokens(0..40), 0), true);
        cache.keep(entry(&mut *session, tokens(100..140), 0), true);
        cache.touch(0);
        cache.keep(entry(&mut *session, tokens(200..250), 0), true);
        assert_eq!((cache.len(), cache.held()), (2, 90));
        assert_eq!(cache.longest(&tokens(100..140), 0, 0, false), None, "that was the one used least recently");
        cache.keep(entry(&mut *session, tokens(0..101), 0), true);
        assert_eq!((cache.len(), cache.held()), (2, 90), "longer than the budget");
        cache.keep(entry(&mut *session, tokens(300..300 + LEAST as u32 - 1), 0), true);
        assert_eq!(cache.len(), 2, "too short to be of use");
        while cache.evict() {}
        assert_eq!((cache.len(), cache.held(), session.usage().sequences), (0, 0, 0));
    }

    #[test]
    fn what_another_one_begins_with_is_not_kept_twice() {
        let mut session = session();
        let mut cache = PrefixCache::new(1000);
        cache.keep(entry(&mut *session, tokens(0..40), 0), true);
        cache.keep(entry(&mut *session, tokens(0..60), 0), true);
        assert_eq!((cache.len(), cache.held()), (1, 60));
        cache.keep(entry(&mut *session, tokens(0..50), 0), true);
        assert_eq!((cache.len(), cache.held()), (1, 60));
        // Where sequences cannot be cut a shorter one is of use of its own.
        cache.keep(entry(&mut *session, tokens(0..50), 0), false);
        assert_eq!((cache.len(), cache.held()), (2, 110));
        assert_eq!(cache.longest(&tokens(0..55), 0, 0, true), Some((1, 50)));
    }

    #[test]
    fn common_beginnings_of_all_lengths() {
        let a = tokens(0..200);
        for len in 0..200 {
            let mut b = a.clone();
            b[len] = Token(999);
            assert_eq!(common(&a, &b), len);
            assert_eq!(common(&a, &a[..len]), len);
        }
    }
}
