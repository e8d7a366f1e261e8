//! Tokens of any vocabulary as text: nothing lost, never half a character, and a copy is as good as the original.
#![no_main]

use infer_core::{Detokenizer, SpecialTokens, StopStrings, Token, TokenFlags, Vocab, VocabKind};
use infer_fuzz::{input::Bytes, seeds};
use libfuzzer_sys::fuzz_target;
use std::sync::Arc;

fuzz_target!(init: seeds::write_if_asked(first), |input: &[u8]| {
    let mut input = Bytes(input);
    let case = Case::new(&mut input);
    case.gives_the_bytes();
    case.gives_the_text();
    case.stops(input.byte());
});

/// A vocabulary, how its tokens are shown, and a text in tokens.
struct Case {
    vocab: Arc<Vocab>,
    special: bool,
    leading_space: bool,
    /// The last of them may be outside the vocabulary.
    tokens: Vec<Token>,
    /// Where a copy is made.
    cut: usize,
}

impl Case {
    fn new(input: &mut Bytes<'_>) -> Self {
        let how = input.byte();
        let kind = [VocabKind::Bpe, VocabKind::Spm, VocabKind::WordPiece, VocabKind::Other][usize::from(how % 4)];
        let mut pieces = Vec::new();
        for _ in 0..1 + how / 4 % 16 {
            let head = input.byte();
            let flags = if head & 0x80 == 0 { TokenFlags::TEXT } else { TokenFlags::CONTROL };
            pieces.push((input.take(usize::from(head % 8)), flags));
        }
        let vocab = Vocab::new(kind, SpecialTokens::default(), pieces).expect("small, without roles");
        let options = input.byte();
        let vocab = if options & 4 == 0 { vocab } else { vocab.with_space_prefix(options & 8 == 0) };
        let len = vocab.len() as u32 + 1;
        let count = usize::from(input.byte() % 64);
        let tokens: Vec<Token> = input.take(count).iter().map(|&byte| Token(u32::from(byte) % len)).collect();
        let cut = usize::from(input.byte()) % (tokens.len() + 1);
        Self { vocab: vocab.into(), special: options & 1 == 1, leading_space: options & 2 == 2, tokens, cut }
    }

    fn detokenizer(&self) -> Detokenizer {
        Detokenizer::new(self.vocab.clone()).with_special(self.special).with_leading_space(self.leading_space)
    }

    /// Those inside the vocabulary.
    fn known(&self) -> impl Iterator<Item = Token> {
        self.tokens.iter().copied().filter(|token| token.index() < self.vocab.len())
    }

    /// The bytes of all that is shown, joined; `None` where the vocabulary has rules of its own for joining them.
    fn joined(&self) -> Option<Vec<u8>> {
        let shown = self.known().filter(|&token| self.special || !self.vocab.is_control(token));
        let joined: Vec<u8> = shown.flat_map(|token| self.vocab.bytes(token).expect("it is known")).copied().collect();
        let strips = self.vocab.space_prefix() && !self.leading_space;
        let stripped = joined.strip_prefix(b" ").filter(|_| strips).map(<[u8]>::to_vec);
        (self.vocab.kind() != VocabKind::WordPiece).then(|| stripped.unwrap_or(joined))
    }

    fn bytes(&self) -> Vec<u8> {
        let (mut detokenizer, mut bytes) = (self.detokenizer(), Vec::new());
        for &token in &self.tokens {
            let before = bytes.clone();
            let pushed = detokenizer.push_bytes(token, &mut bytes);
            assert_eq!(pushed.is_ok(), token.index() < self.vocab.len());
            assert!(pushed.is_ok() || bytes == before, "a token that is refused changes nothing");
        }
        detokenizer.finish_bytes(&mut bytes);
        bytes
    }

    fn gives_the_bytes(&self) {
        let bytes = self.bytes();
        if let Some(joined) = self.joined() {
            assert_eq!(bytes, joined);
        }
        let fed: usize = self.known().filter_map(|token| self.vocab.bytes(token)).map(<[u8]>::len).sum();
        assert!(bytes.len() <= fed, "cleaning only takes away");
    }

    /// Text is that of the bytes, whenever it comes, and what was given is never taken back.
    fn gives_the_text(&self) {
        let whole = String::from_utf8_lossy(&self.bytes()).into_owned();
        let mut detokenizer = self.detokenizer();
        let mut text = String::new();
        for (at, &token) in self.tokens.iter().enumerate() {
            if at == self.cut {
                self.copy(&detokenizer, &text, &whole);
            }
            text.push_str(detokenizer.push(token).unwrap_or_default());
            assert!(whole.starts_with(&text), "{text:?} is given, and is no beginning of {whole:?}");
        }
        text.push_str(detokenizer.finish());
        assert_eq!(text, whole);
        let known: Vec<Token> = self.known().collect();
        assert_eq!(detokenizer.decode(&known).expect("all are known"), whole, "all at once, after a text");
        if let Some(&token) = known.last() {
            detokenizer.push(token).expect("it is known");
            detokenizer.reset();
            assert_eq!(detokenizer.finish(), "", "a text that was given up leaves nothing behind");
        }
    }

    /// A copy goes on where the original stands, and the original does not feel it.
    fn copy(&self, original: &Detokenizer, given: &str, whole: &str) {
        let (mut text, mut copy) = (given.to_owned(), original.clone());
        for &token in &self.tokens[self.cut..] {
            text.push_str(copy.push(token).unwrap_or_default());
        }
        text.push_str(copy.finish());
        assert_eq!(text, whole);
    }

    /// Text up to a stop string that is a part of it, however it is cut into pieces.
    fn stops(&self, seed: u8) {
        let whole = String::from_utf8_lossy(&self.bytes()).into_owned();
        let start = whole.char_indices().map(|(at, _)| at).nth(usize::from(seed) % (whole.chars().count() + 1));
        let Some(string) = start.and_then(|start| whole[start..].chars().take(3).collect::<String>().into()) else {
            return;
        };
        let mut stop = StopStrings::new([string.as_str()]).expect("it is not empty");
        let (mut detokenizer, mut text) = (self.detokenizer(), String::new());
        for &token in &self.tokens {
            text.push_str(stop.push(detokenizer.push(token).unwrap_or_default()).text);
        }
        text.push_str(stop.push(detokenizer.finish()).text);
        let first = whole.find(&string).expect("it is a part of the text");
        assert_eq!((text.as_str(), stop.stopped()), (&whole[..first], Some(0)));
    }
}

/// Byte-level pieces that cut characters, words of a WordPiece vocabulary, and a text with a space before it.
fn first() -> Vec<Vec<u8>> {
    let seed = |kind: u8, pieces: &[&[u8]], tokens: &[u8]| {
        let mut bytes = vec![kind + 4 * (pieces.len() as u8 - 1)];
        for piece in pieces {
            bytes.push(piece.len() as u8);
            bytes.extend_from_slice(piece);
        }
        bytes.extend([0, tokens.len() as u8]);
        bytes.extend_from_slice(tokens);
        bytes.extend([1, 1]);
        bytes
    };
    vec![
        seed(0, &[b"a\xf0", b"\x9f\x98", b"\x80b", b"\x80"], &[0, 1, 2, 0, 0, 3, 4]),
        seed(0, &[b"\xe2\x82", b"\xac", b"\xed\xa0\x80", b"\xf4\x90"], &[0, 1, 2, 3, 0]),
        seed(1, &[b" Hello", b" ", b"world", b""], &[1, 0, 3, 2]),
        seed(2, &[b" it", b" '", b" s", b" fine", b" .", b"re", b" 'v"], &[0, 1, 2, 3, 4, 6, 5]),
        seed(3, &[b"x", b"\xff"], &[0, 1, 0]),
    ]
}
