use super::*;
use crate::{ErrorKind, SpecialTokens, TokenFlags};
use proptest::prelude::*;

fn vocab(kind: VocabKind, pieces: &[(&[u8], TokenFlags)]) -> Arc<Vocab> {
    Arc::new(Vocab::new(kind, SpecialTokens::default(), pieces.iter().copied()).unwrap())
}

/// A vocabulary whose token `n` is piece `n`, and the tokens of all pieces in order.
fn pieces(kind: VocabKind, pieces: &[impl AsRef<[u8]>]) -> (Arc<Vocab>, Vec<Token>) {
    let with_flags: Vec<_> = pieces.iter().map(|piece| (piece.as_ref(), TokenFlags::TEXT)).collect();
    (vocab(kind, &with_flags), (0..).take(pieces.len()).map(Token).collect())
}

#[test]
fn half_a_character_waits_for_the_other_half() {
    let (vocab, _) = pieces(VocabKind::Bpe, &[b"a\xF0".as_slice(), b"\x9F\x98", b"\x80b", b"\x80"]);
    let mut text = Detokenizer::new(vocab);
    assert_eq!(text.push(Token(0)).unwrap(), "a");
    assert_eq!(text.push(Token(1)).unwrap(), "");
    assert_eq!(text.push(Token(2)).unwrap(), "😀b");
    assert_eq!(text.push(Token(0)).unwrap(), "a");
    assert_eq!(text.push(Token(0)).unwrap(), "\u{FFFD}a", "what cannot become a character is given at once");
    assert_eq!(text.finish(), "\u{FFFD}");
    assert_eq!(text.push(Token(3)).unwrap(), "\u{FFFD}", "a new text");
    assert_eq!(text.finish(), "");
}

#[test]
fn control_tokens_give_their_name_on_request() {
    let vocab = vocab(VocabKind::Bpe, &[(b"<s>", TokenFlags::CONTROL), (b"hi", TokenFlags::TEXT)]);
    let mut plain = Detokenizer::new(vocab.clone());
    assert_eq!(plain.decode(&[Token(0), Token(1), Token(0)]).unwrap(), "hi");
    let mut special = Detokenizer::new(vocab).with_special(true);
    assert_eq!(special.decode(&[Token(0), Token(1)]).unwrap(), "<s>hi");
}

#[test]
fn control_tokens_that_are_marks_can_be_shown_alone() {
    let pieces: [(&[u8], TokenFlags); 6] = [
        (b"<s>", TokenFlags::CONTROL),
        (b"<|call|>", TokenFlags::CONTROL),
        (b"hi", TokenFlags::TEXT),
        (b"<|section|>", TokenFlags::CONTROL),
        (b"", TokenFlags::CONTROL),
        (b"\xff", TokenFlags::CONTROL),
    ];
    let vocab = vocab(VocabKind::Bpe, &pieces);
    let all: Vec<Token> = (0..6).map(Token).collect();
    let shown = |texts: &[&str]| {
        let mut text = Detokenizer::new(vocab.clone()).with_shown(texts.iter().copied());
        text.decode(&all).unwrap()
    };
    assert_eq!(shown(&[]), "hi");
    assert_eq!(shown(&["<|call|>"]), "<|call|>hi");
    assert_eq!(
        shown(&["<|section|><|call|>[", "<|call"]),
        "<|call|>hi<|section|>",
        "a mark may be more than one token"
    );
    assert_eq!(shown(&["<|other|>", "hi"]), "hi");
}

#[test]
fn the_space_before_a_sentencepiece_text_is_taken_away_once() {
    let begin: [(&[u8], TokenFlags); 4] = [
        (b"<s>", TokenFlags::CONTROL),
        (b" Hello", TokenFlags::TEXT),
        (b"  ", TokenFlags::TEXT),
        (b"", TokenFlags::TEXT),
    ];
    let spm = vocab(VocabKind::Spm, &begin);
    let mut text = Detokenizer::new(spm.clone());
    assert_eq!(text.decode(&[Token(0), Token(3), Token(1), Token(1)]).unwrap(), "Hello Hello");
    assert_eq!(text.decode(&[Token(2), Token(1)]).unwrap(), "  Hello");
    let mut completion = Detokenizer::new(spm.clone()).with_leading_space(true);
    assert_eq!(completion.decode(&[Token(1)]).unwrap(), " Hello");
    let bare = Arc::new(Vocab::clone(&spm).with_space_prefix(false));
    assert_eq!(Detokenizer::new(bare).decode(&[Token(1)]).unwrap(), " Hello");
}

#[test]
fn wordpiece_is_cleaned_across_tokens() {
    let (vocab, tokens) = pieces(VocabKind::WordPiece, &[" it", " '", " s", " fine", " .", " ("]);
    let mut text = Detokenizer::new(vocab);
    let given: Vec<String> = tokens.iter().map(|&token| text.push(token).unwrap().to_owned()).collect();
    assert_eq!(given, [" it", "", "'s", " fine", ".", " ("]);
    assert_eq!(text.finish(), "");
}

#[test]
fn a_token_outside_the_vocabulary_changes_nothing() {
    let (vocab, _) = pieces(VocabKind::Bpe, &[b"\xE2\x82".as_slice(), b"\xAC"]);
    let mut text = Detokenizer::new(vocab);
    text.push(Token(0)).unwrap();
    let error = text.push(Token(2)).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::InvalidInput);
    assert_eq!(error.to_string(), "token 2 is outside the vocabulary of 2");
    assert_eq!(text.push(Token(1)).unwrap(), "€");
}

#[test]
fn bytes_after_text_lose_nothing() {
    let (vocab, _) = pieces(VocabKind::Bpe, &[b"\xE2\x82".as_slice(), b"\xAC"]);
    let mut text = Detokenizer::new(vocab);
    assert_eq!(text.push(Token(0)).unwrap(), "");
    let mut bytes = Vec::new();
    text.push_bytes(Token(1), &mut bytes).unwrap();
    assert_eq!(bytes, "€".as_bytes());
}

/// Bytes near the limits of UTF-8, so that short strings of them are often almost valid.
fn bytes() -> impl Strategy<Value = Vec<u8>> {
    let limits = [0x00, 0x41, 0x7F, 0x80, 0x8F, 0x90, 0x9F, 0xA0, 0xBF, 0xC0, 0xC1, 0xC2, 0xDF];
    let leads = [0xE0, 0xE1, 0xEC, 0xED, 0xEE, 0xEF, 0xF0, 0xF1, 0xF3, 0xF4, 0xF5, 0xFF];
    let byte = prop_oneof![prop::sample::select(limits.to_vec()), prop::sample::select(leads.to_vec()), any::<u8>()];
    prop_oneof![
        prop::collection::vec(byte, 0..5),
        any::<[char; 2]>().prop_map(|chars| String::from_iter(chars).into_bytes())
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    #[test]
    fn any_split_of_any_bytes_gives_the_whole_text(split in prop::collection::vec(bytes(), 0..12)) {
        let whole = split.concat();
        let (vocab, tokens) = pieces(VocabKind::Bpe, &split);
        let mut detokenizer = Detokenizer::new(vocab);
        let (mut text, mut raw, mut fed) = (String::new(), Vec::new(), Vec::new());
        for &token in &tokens {
            text.push_str(detokenizer.push(token).unwrap());
            fed.extend_from_slice(&split[token.index()]);
            // Nothing is given that could still change, and nothing is withheld that cannot.
            let tail = fed.utf8_chunks().last().map_or(&[][..], |chunk| chunk.invalid());
            let waits = std::str::from_utf8(tail).is_err_and(|error| error.error_len().is_none());
            let certain = &fed[..fed.len() - if waits { tail.len() } else { 0 }];
            prop_assert_eq!(&text, &String::from_utf8_lossy(certain));
        }
        text.push_str(detokenizer.finish());
        prop_assert_eq!(&text, &String::from_utf8_lossy(&whole));
        for &token in &tokens {
            detokenizer.push_bytes(token, &mut raw).unwrap();
        }
        detokenizer.finish_bytes(&mut raw);
        prop_assert_eq!(&raw, &whole);
        prop_assert_eq!(detokenizer.decode(&tokens).unwrap(), text);
    }
}
