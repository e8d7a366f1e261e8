use crate::{Error, Result, Token, Tokenizer, Vocab};
use std::{fmt, sync::Arc};

/// What ends a repetition for DRY: sequences of tokens. A repetition is followed back no further than the last of them.
///
/// A line break or a colon comes in many tokens (`:`, `":`, `::`), or split between two. [`of_texts`](Self::of_texts) finds
/// them all in a vocabulary; [`new`](Self::new) takes sequences as they are. Either way the result is plain data that needs no
/// vocabulary any more. A clone shares it.
///
/// ```
/// use infer_core::{DryBreakers, Sampling, Token};
///
/// let breakers = DryBreakers::new([vec![Token(13)], vec![Token(7), Token(8)]]);
/// let sampling = Sampling::default().with_dry_multiplier(0.8).with_dry_breakers(breakers);
/// assert!(sampling.validate(32_000).is_ok());
/// assert!(sampling.validate(10).is_err());
/// ```
#[derive(Clone, PartialEq)]
#[cfg_attr(
    feature = "serde",
    derive(serde::Serialize, serde::Deserialize),
    serde(from = "Vec<Vec<Token>>", into = "Vec<Vec<Token>>")
)]
pub struct DryBreakers(Arc<Table>);

/// The sequences, none empty: by their first token, of those with the same one the longest first, without doublets.
#[derive(PartialEq)]
struct Table {
    heads: Vec<Token>,
    tokens: Vec<Token>,
    /// Sequence → where its tokens end in `tokens`; they begin where those of the one before end.
    ends: Vec<usize>,
    /// The most tokens that a sequence has after its first.
    longest_tail: usize,
}

impl DryBreakers {
    /// The texts that llama.cpp's programs take where nothing else is said: line break, colon, quotation mark, asterisk.
    pub const COMMON: [&str; 4] = ["\n", ":", "\"", "*"];

    /// The most bytes a text may have for [`of_texts`](Self::of_texts).
    pub const LONGEST: usize = 40;

    /// These sequences. One without tokens breaks nothing and is left out.
    pub fn new<S: AsRef<[Token]>>(sequences: impl IntoIterator<Item = S>) -> Self {
        let mut sequences: Vec<S> = sequences.into_iter().filter(|sequence| !sequence.as_ref().is_empty()).collect();
        let key = |sequence: &S| {
            let sequence = sequence.as_ref();
            (sequence[0], usize::MAX - sequence.len())
        };
        sequences.sort_by(|a, b| key(a).cmp(&key(b)).then_with(|| a.as_ref().cmp(b.as_ref())));
        sequences.dedup_by(|a, b| (*a).as_ref() == (*b).as_ref());
        let mut table = Table { heads: Vec::new(), tokens: Vec::new(), ends: Vec::new(), longest_tail: 0 };
        for sequence in sequences.iter().map(AsRef::as_ref) {
            table.heads.push(sequence[0]);
            table.tokens.extend_from_slice(sequence);
            table.ends.push(table.tokens.len());
            table.longest_tail = table.longest_tail.max(sequence.len() - 1);
        }
        Self(Arc::new(table))
    }

    /// Every way in which one of `texts` can stand in a text of this vocabulary: each token that has it in it, and each token
    /// that ends with a beginning of it, followed by the tokens of the rest.
    ///
    /// How the rest is split is asked of the tokenizer; where it cannot be (it would begin within a character, or the
    /// tokenizer changes what it is given), that way is left out. The bytes of a control token are its name.
    ///
    /// It looks at every token of the vocabulary, which takes milliseconds: do it once, and clone the result.
    ///
    /// # Errors
    /// [`InvalidInput`](crate::ErrorKind::InvalidInput) for an empty text and for one of more than [`LONGEST`](Self::LONGEST)
    /// bytes; those of [`Tokenizer::encode`].
    pub fn of_texts<T: AsRef<str>>(texts: impl IntoIterator<Item = T>, tokenizer: &dyn Tokenizer) -> Result<Self> {
        let mut sequences = Vec::new();
        for text in texts {
            let text = text.as_ref();
            if text.is_empty() || text.len() > Self::LONGEST {
                return Err(Error::invalid_input(format!(
                    "a DRY breaker of {} bytes, it must have between 1 and {}",
                    text.len(),
                    Self::LONGEST
                )));
            }
            occurrences(text, tokenizer, &mut sequences)?;
        }
        Ok(Self::new(sequences))
    }

    /// How many sequences there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.0.ends.len()
    }

    /// Whether there is none, so that repetitions go back as far as the window.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.ends.is_empty()
    }

    /// The sequences, by their first token.
    pub fn iter(&self) -> impl Iterator<Item = &[Token]> {
        (0..self.len()).map(|index| self.0.sequence(index))
    }

    pub(crate) fn tokens(&self) -> impl Iterator<Item = Token> + '_ {
        self.0.tokens.iter().copied()
    }

    /// The most tokens that a sequence has after its first.
    pub(super) fn longest_tail(&self) -> usize {
        self.0.longest_tail
    }

    /// Whether the token alone is a breaker.
    pub(super) fn is_single(&self, token: Token) -> bool {
        // Of those with this first token the shortest stands last.
        let after = self.0.heads.partition_point(|&head| head <= token);
        after.checked_sub(1).is_some_and(|last| self.0.sequence(last) == [token])
    }

    /// The longest breaker that `head`, followed by `rest`, begins with: how many tokens it has after the first.
    pub(super) fn tail(&self, head: Token, rest: &[Token]) -> Option<usize> {
        let table = &*self.0;
        let first = table.heads.partition_point(|&other| other < head);
        let same = table.heads[first..].iter().take_while(|&&other| other == head).count();
        (first..first + same).map(|at| &table.sequence(at)[1..]).find(|tail| rest.starts_with(tail)).map(<[Token]>::len)
    }
}

impl Table {
    fn sequence(&self, index: usize) -> &[Token] {
        let start = index.checked_sub(1).map_or(0, |before| self.ends[before]);
        &self.tokens[start..self.ends[index]]
    }
}

impl Default for DryBreakers {
    fn default() -> Self {
        Self::new::<&[Token]>([])
    }
}

impl fmt::Debug for DryBreakers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.iter()).finish()
    }
}

impl From<Vec<Vec<Token>>> for DryBreakers {
    fn from(sequences: Vec<Vec<Token>>) -> Self {
        Self::new(sequences)
    }
}

impl From<DryBreakers> for Vec<Vec<Token>> {
    fn from(breakers: DryBreakers) -> Self {
        breakers.iter().map(<[Token]>::to_vec).collect()
    }
}

/// Appends every way in which `text` can stand in a text of this vocabulary.
fn occurrences(text: &str, tokenizer: &dyn Tokenizer, out: &mut Vec<Vec<Token>>) -> Result<()> {
    let (vocab, bytes) = (tokenizer.vocab(), text.as_bytes());
    // By how many bytes of the text come before them.
    let rests: Vec<Option<Vec<Token>>> = (0..bytes.len()).map(|at| rest(text, at, tokenizer)).collect::<Result<_>>()?;
    for id in 0..vocab.len() as u32 {
        let token = Token(id);
        let piece = vocab.bytes(token).unwrap_or_default();
        if piece.windows(bytes.len()).any(|part| part == bytes) {
            out.push(vec![token]);
            continue;
        }
        let most = piece.len().min(bytes.len() - 1);
        for begun in (1..=most).filter(|&begun| piece.ends_with(&bytes[..begun])) {
            out.extend(rests[begun].iter().map(|rest| [&[token], &rest[..]].concat()));
        }
    }
    Ok(())
}

/// The tokens of `text` from byte `at` on; `None` where they would not be just that.
fn rest(text: &str, at: usize, tokenizer: &dyn Tokenizer) -> Result<Option<Vec<Token>>> {
    let Some(rest) = text.get(at..).filter(|_| at > 0) else { return Ok(None) };
    let mut tokens = Vec::new();
    tokenizer.encode(rest, crate::Special::NONE, &mut tokens)?;
    let vocab: &Vocab = tokenizer.vocab();
    let piece = |token: &Token| vocab.bytes(*token).unwrap_or_default();
    // Some vocabularies put a space before any text, as a token of its own where none begins with both.
    if vocab.space_prefix() && !rest.starts_with(' ') && tokens.first().is_some_and(|first| piece(first) == b" ") {
        tokens.remove(0);
    }
    let is_just_that = tokens.iter().flat_map(piece).eq(rest.as_bytes());
    Ok(is_just_that.then_some(tokens))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Special, SpecialTokens, TokenFlags, VocabKind};

    /// Splits off the longest piece each time.
    struct Longest(Arc<Vocab>);

    impl Tokenizer for Longest {
        fn vocab(&self) -> &Arc<Vocab> {
            &self.0
        }

        fn encode(&self, text: &str, _: Special, out: &mut Vec<Token>) -> Result<()> {
            let mut left = text.as_bytes();
            if self.0.space_prefix() {
                out.push(Token(0));
            }
            while !left.is_empty() {
                let fits =
                    (0..self.0.len() as u32).map(Token).filter(|&token| left.starts_with(self.0.bytes(token).unwrap()));
                let best = fits.max_by_key(|&token| self.0.bytes(token).unwrap().len());
                let best = best.ok_or_else(|| Error::invalid_input("no piece"))?;
                out.push(best);
                left = &left[self.0.bytes(best).unwrap().len()..];
            }
            Ok(())
        }
    }

    fn tokenizer(kind: VocabKind, pieces: &[&[u8]]) -> Longest {
        let pieces = pieces.iter().map(|piece| (piece, TokenFlags::TEXT));
        Longest(Arc::new(Vocab::new(kind, SpecialTokens::default(), pieces).unwrap()))
    }

    fn ids(breakers: &DryBreakers) -> Vec<Vec<u32>> {
        breakers.iter().map(|sequence| sequence.iter().map(|token| token.0).collect()).collect()
    }

    #[test]
    fn a_text_is_found_within_tokens_and_across_them() {
        let pieces: [&[u8]; 8] = [b" ", b"a", b"ab", b"xab", b"b", b"c", b"bcd", b"xabcx"];
        let tokenizer = tokenizer(VocabKind::Bpe, &pieces);
        let one = DryBreakers::of_texts(["a"], &tokenizer).unwrap();
        assert_eq!(ids(&one), [[1], [2], [3], [7]]);
        // "abc": whole in 7; after "a" comes "bc" as b, c; after "ab" and "xab" comes c.
        let three = DryBreakers::of_texts(["abc"], &tokenizer).unwrap();
        assert_eq!(ids(&three), [vec![1, 4, 5], vec![2, 5], vec![3, 5], vec![7]]);
        assert_eq!((three.len(), three.longest_tail()), (4, 2));
        // A token that ends with two beginnings of a text begins it in both ways.
        let twice = DryBreakers::of_texts(["aab"], &self::tokenizer(VocabKind::Bpe, &[b"aa", b"b", b"a"])).unwrap();
        assert_eq!(ids(&twice), [vec![0, 2, 1], vec![0, 1], vec![2, 2, 1]]);
    }

    #[test]
    fn a_rest_that_a_tokenizer_changes_is_left_out() {
        // With a space before any text, the rest of "ab" is " ", "b": the space is no part of it.
        let spaced = DryBreakers::of_texts(["ab"], &tokenizer(VocabKind::Spm, &[b" ", b"a", b"b"])).unwrap();
        assert_eq!(ids(&spaced), [[1, 2]]);
        // The rest of a character is no text that could be split.
        let halves = tokenizer(VocabKind::Bpe, &["é".as_bytes(), b"\xC3", b"\xA9"]);
        assert_eq!(ids(&DryBreakers::of_texts(["é"], &halves).unwrap()), [[0]]);
    }

    #[test]
    fn texts_of_no_use_are_refused() {
        let tokenizer = tokenizer(VocabKind::Bpe, &[b"a"]);
        for (text, says) in [("", "of 0 bytes"), (&"a".repeat(41), "of 41 bytes, it must have between 1 and 40")] {
            let error = DryBreakers::of_texts([text], &tokenizer).unwrap_err();
            assert!(error.to_string().contains(says), "{error}");
        }
        assert!(DryBreakers::of_texts(["a".repeat(40)], &tokenizer).is_ok());
        let unknown = DryBreakers::of_texts(["ab"], &tokenizer).unwrap_err();
        assert_eq!(unknown.to_string(), "no piece", "what the tokenizer says is said");
    }

    #[test]
    fn the_longest_that_fits_is_found() {
        let t = |ids: &[u32]| ids.iter().copied().map(Token).collect::<Vec<_>>();
        let breakers = DryBreakers::new([t(&[5]), t(&[5, 6]), t(&[5, 6, 7]), t(&[2, 3]), t(&[]), t(&[5, 6])]);
        assert_eq!(breakers.len(), 4);
        assert_eq!(breakers.tail(Token(5), &t(&[6, 7, 8])), Some(2));
        assert_eq!(breakers.tail(Token(5), &t(&[6])), Some(1));
        assert_eq!(breakers.tail(Token(5), &t(&[7])), Some(0));
        assert_eq!((breakers.tail(Token(2), &t(&[])), breakers.tail(Token(4), &t(&[]))), (None, None));
        let single: Vec<u32> = (0..9).filter(|&id| breakers.is_single(Token(id))).collect();
        assert_eq!(single, [5]);
        assert!(DryBreakers::default().is_empty() && !DryBreakers::default().is_single(Token(0)));
    }

    #[test]
    fn is_stored_as_lists_of_tokens() {
        let breakers = DryBreakers::new([vec![Token(5), Token(6)], vec![Token(1)]]);
        let json = serde_json::to_string(&breakers).unwrap();
        assert_eq!(json, "[[1],[5,6]]");
        assert_eq!(serde_json::from_str::<DryBreakers>("[[5,6],[],[1],[1]]").unwrap(), breakers);
    }
}
