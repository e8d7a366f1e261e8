//! Draws depend on the constraint, the prompt and the tokens fed, and on nothing else.

use crate::kit::{draw, prompt, session, text, warm};
use infer_core::{
    Batch, Constraint, ErrorKind, OpenOptions, Sampled, Sampling, Session, SpecialTokens, Token, TokenFlags, Vocab,
    VocabKind, Want, Whitespace,
    sampling::Sampler,
    testing::{Scripted, byte_vocab},
};
use proptest::prelude::*;
use std::sync::Arc;

fn feed(session: &mut Scripted, seq: &infer_core::Sequence, tokens: &[Token]) -> Vec<Sampled> {
    let mut batch = Batch::new();
    let entry = batch.push(seq, tokens, Want::Token);
    session.decode(&batch).unwrap();
    session.outputs().sampled(entry).to_vec()
}

fn tokens(text: &str) -> Vec<Token> {
    text.bytes().map(|byte| Token(byte.into())).collect()
}

fn list() -> Constraint {
    Constraint::json_schema(
        r#"{"type": "array", "minItems": 2, "maxItems": 4, "items": {"anyOf": [
            {"type": "object", "properties": {"key": {"type": "string", "maxLength": 9}}, "required": ["key"], "additionalProperties": false},
            {"type": "number"}, {"const": "constant"}]}}"#,
    )
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    /// Cut anywhere and fed again, forked, in a session of its own, tokens forced or not: the same text.
    #[test]
    fn they_are_the_same_however_the_sequence_came_to_be(seed in any::<u64>(), at in any::<prop::sample::Index>()) {
        let sampling = warm(list(), seed);
        let mut session = session();
        let all = draw(&mut session, &sampling, 400, false).unwrap();
        prop_assert_eq!(&draw(&mut session, &sampling, 400, true).unwrap(), &all);
        let kept = at.index(all.len());
        let prompt = prompt();
        let fed = [&prompt[..], &all[..kept]].concat();

        let seq = session.open(&OpenOptions::default()).unwrap();
        session.sample_with(&seq, &sampling, &prompt).unwrap();
        feed(&mut session, &seq, &[&prompt[..], &all[..all.len() - 1]].concat());
        session.truncate(&seq, fed.len() - 1).unwrap();
        let drawn = feed(&mut session, &seq, &fed[fed.len() - 1..]);
        prop_assert_eq!(drawn[0].token, all[kept]);

        let fork = session.fork(&seq, fed.len() - 1).unwrap();
        session.sample_with(&fork, &sampling, &prompt).unwrap();
        let forked = feed(&mut session, &fork, &fed[fed.len() - 1..]);
        prop_assert!(forked.iter().zip(&drawn).all(|(a, b)| a.token == b.token));
        prop_assert_eq!(forked.len(), drawn.len());
    }

    /// A sampler that looks ahead draws what one does that does not.
    #[test]
    fn looking_ahead_changes_nothing(seed in any::<u64>(), ahead in prop::collection::vec(0u8..4, 400)) {
        let vocab = Arc::new(byte_vocab());
        let sampling = warm(list(), seed);
        let mut plain = Sampler::for_vocab(&sampling, &[], &vocab).unwrap();
        let mut looking = plain.clone();
        let mut text: Vec<Token> = Vec::new();
        for choice in ahead {
            let row: Vec<f32> = (0..vocab.len()).map(|i| ((i * 31 + text.len() * 17) % 23) as f32 / 4.0).collect();
            let (mut a, mut b) = (Vec::new(), Vec::new());
            plain.sample(&row, text.len(), &mut a).unwrap();
            looking.sample(&row, text.len(), &mut b).unwrap();
            prop_assert!(a.iter().map(|s| s.token).eq(b.iter().map(|s| s.token)));
            let next: Vec<Token> = a.iter().map(|s| s.token).collect();
            match choice {
                // Looked ahead at what then comes; at what does not; not brought back.
                0 | 1 => {
                    let at = if choice == 0 { &next[..] } else { &next[..1] };
                    let mut found = looking.look_ahead(text.len(), at).unwrap();
                    found.run();
                    looking.rejoin(found);
                }
                2 => drop(looking.look_ahead(text.len(), &next)),
                _ => {}
            }
            plain.accept(text.len(), &next);
            looking.accept(text.len(), &next);
            text.extend(&next);
            if vocab.is_end(text[text.len() - 1]) {
                break;
            }
        }
    }
}

#[test]
fn a_draw_has_no_side_effect() {
    let vocab = Arc::new(byte_vocab());
    let mut sampler = Sampler::for_vocab(&warm(Constraint::regex("[ab]cd[ef]"), 3), &tokens("xy"), &vocab).unwrap();
    let row = vec![0.0; vocab.len()];
    let mut first = Vec::new();
    sampler.sample(&row, 2, &mut first).unwrap();
    assert_eq!(first[1..].iter().map(|s| s.token).collect::<Vec<_>>(), tokens("cd"));
    for _ in 0..3 {
        let mut again = Vec::new();
        sampler.sample(&row, 2, &mut again).unwrap();
        assert!(again.iter().map(|s| s.token).eq(first.iter().map(|s| s.token)));
    }
    let mut all = Vec::new();
    sampler.distribution(&row, 2, &mut all).unwrap();
    assert_eq!(all.iter().map(|&(token, _)| token).collect::<Vec<_>>(), tokens("ab"));
}

#[test]
fn a_complete_text_is_followed_by_tokens_that_end_it_and_nothing_else() {
    let vocab = Arc::new(byte_vocab());
    let mut sampler = Sampler::for_vocab(&warm(Constraint::regex("ab?"), 0), &[], &vocab).unwrap();
    let row = vec![0.0; vocab.len()];
    let may_follow = |sampler: &mut Sampler, text: &str, ended: bool| {
        let mut fed = tokens(text);
        fed.extend(ended.then_some(Token(257)));
        sampler.truncate(0);
        sampler.accept(0, &fed);
        let mut all = Vec::new();
        sampler.distribution(&row, fed.len(), &mut all).map(|()| {
            let mut ids: Vec<u32> = all.iter().map(|(token, _)| token.0).collect();
            ids.sort_unstable();
            ids
        })
    };
    let ends: Vec<u32> = (0..260).filter(|&id| vocab.is_end(Token(id))).collect();
    assert_eq!(may_follow(&mut sampler, "", false).unwrap(), [u32::from(b'a')]);
    assert_eq!(may_follow(&mut sampler, "a", false).unwrap(), [&[u32::from(b'b')], &ends[..]].concat());
    assert_eq!(may_follow(&mut sampler, "ab", false).unwrap(), ends);
    assert_eq!(may_follow(&mut sampler, "a", true).unwrap(), ends, "what ended stays so");
    let error = may_follow(&mut sampler, "", true).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::InvalidConstraint);
    assert!(error.to_string().contains("token 0 ends a text that is not complete"), "{error}");
}

#[test]
fn what_was_fed_against_it_is_an_error_of_that_entry_alone() {
    let mut session = session();
    let (a, b) = (session.open(&OpenOptions::default()).unwrap(), session.open(&OpenOptions::default()).unwrap());
    let sampling = Sampling::greedy().with_constraint(Constraint::regex("[0-9]{8}"));
    for seq in [&a, &b] {
        session.sample_with(seq, &sampling, &tokens("n=")).unwrap();
    }
    let mut batch = Batch::new();
    let wrong = batch.push(&a, &tokens("n=12x"), Want::Token);
    let right = batch.push(&b, &tokens("n=12"), Want::Token);
    session.decode(&batch).unwrap();
    let outputs = session.outputs();
    let error = outputs.error(wrong).unwrap();
    assert_eq!(error.kind(), ErrorKind::InvalidConstraint);
    assert!(error.to_string().contains("token 2, 120, does not keep to the constraint"), "{error}");
    assert!(outputs.token(wrong).is_none() && outputs.error(right).is_none());
    assert!(outputs.token(right).is_some_and(|token| (48..58).contains(&token.0)));
    assert_eq!((a.len(), b.len()), (5, 4), "the pass is done");

    session.truncate(&a, 4).unwrap();
    session.truncate(&a, 3).unwrap();
    assert!((48..58).contains(&feed(&mut session, &a, &tokens("2"))[0].token.0), "cut, it goes on");
}

#[test]
fn what_is_too_much_to_follow_is_an_error_of_its_draw() {
    // Behind the bracket it could be any of them.
    let lists: Vec<String> = (0..2_100)
        .map(|i| format!(r#"{{"type": "array", "prefixItems": [{{"const": {i}}}], "minItems": 2}}"#))
        .collect();
    let constraint = Constraint::json_schema(format!(
        r#"{{"anyOf": [{{"const": "x"}}, {{"type": "object", "properties": {{"k": {{"anyOf": [{}]}}}}, "required": ["k"]}}]}}"#,
        lists.join(",")
    ));
    let mut session = session();
    let sampling = Sampling::greedy().with_constraint(constraint);
    let (seq, other) = (session.open(&OpenOptions::default()).unwrap(), session.open(&OpenOptions::default()).unwrap());
    session.sample_with(&seq, &sampling, &[]).unwrap();
    session.sample_with(&other, &sampling, &[]).unwrap();
    let mut batch = Batch::new();
    let entry = batch.push(&seq, &tokens("{\"k\": ["), Want::Token);
    session.decode(&batch).unwrap();
    let error = session.outputs().error(entry).unwrap().to_string();
    assert!(error.contains("items"), "{error}");
    let drawn = feed(&mut session, &other, &tokens("\"x"));
    assert_eq!(drawn[0].token, Token(b'"'.into()), "another text has its own measure");
    session.truncate(&seq, 0).unwrap();
    assert_eq!(feed(&mut session, &seq, &tokens("\"x"))[0].token, drawn[0].token, "cut, it goes on");
}

#[test]
fn the_log_probability_is_the_models_own() {
    let vocab = Arc::new(byte_vocab());
    let row: Vec<f32> = (0..vocab.len()).map(|i| (i % 7) as f32).collect();
    let mut free = Sampler::for_vocab(&Sampling::greedy(), &[], &vocab).unwrap();
    let constraint = Constraint::regex("a");
    let mut bound = Sampler::for_vocab(&Sampling::greedy().with_constraint(constraint), &[], &vocab).unwrap();
    let (mut all, mut drawn) = (Vec::new(), Vec::new());
    let biased = Sampling::greedy().with_logit_bias(Token(b'a'.into()), 100.0);
    Sampler::new(&biased, &[], vocab.len()).unwrap().sample(&row, 0, &mut all).unwrap();
    bound.sample(&row, 0, &mut drawn).unwrap();
    assert_eq!(drawn[0], all[0]);
    drawn.clear();
    free.sample(&row, 0, &mut drawn).unwrap();
    assert_ne!(drawn[0].token, all[0].token);
}

#[test]
fn a_text_of_several_bytes_a_character_is_whole() {
    let sampling = warm(Constraint::regex("[äöüß€😀]{4}"), 5);
    let drawn = draw(&mut session(), &sampling, 40, false).unwrap();
    assert_eq!(text(&drawn).chars().count(), 4);
}

/// What may follow is remembered with the place in the grammar, and places come again when a text is cut and goes on otherwise.
#[test]
fn what_was_cut_off_is_forgotten() {
    let bytes = (0..=u8::MAX).map(|byte| (vec![byte], TokenFlags::BYTE));
    let pieces = bytes.chain([(b"]]".to_vec(), TokenFlags::TEXT), (b"</s>".to_vec(), TokenFlags::END)]);
    let vocab = Arc::new(Vocab::new(VocabKind::Bpe, SpecialTokens::default(), pieces).unwrap());
    let constraint = Constraint::any_json().with_whitespace(Whitespace::Compact);
    let mut sampler = Sampler::for_vocab(&warm(constraint, 0), &[], &vocab).unwrap();
    let mut may_close_two = |text: &str| {
        sampler.truncate(0);
        sampler.accept(0, &tokens(text));
        let mut all = Vec::new();
        sampler.distribution(&vec![0.0_f32; vocab.len()], text.len(), &mut all).unwrap();
        all.iter().any(|&(token, _)| token == Token(256))
    };
    for _ in 0..2 {
        assert!(may_close_two("[[[1"));
        assert!(!may_close_two("[1,1"));
        assert!(may_close_two("[[1"));
        assert!(!may_close_two("[1"));
    }
}

#[test]
fn a_device_that_draws_is_told_what_may_follow_and_what_is_forced() {
    let vocab = Arc::new(byte_vocab());
    let sampling =
        Sampling::greedy().with_constraint(Constraint::regex("[ab]cd[ef]")).with_logit_bias(Token(b'b'.into()), 2.0);
    let mut sampler = Sampler::for_vocab(&sampling, &tokens("xy"), &vocab).unwrap();
    let (mut added, mut sampled, mut taken) = (Vec::new(), Vec::new(), Vec::new());
    assert!(sampler.additions(2, &mut added).unwrap());
    let allowed: Vec<_> = (0..).map(Token).zip(&added).filter(|(_, added)| **added > f32::NEG_INFINITY).collect();
    assert_eq!(allowed, [(Token(b'a'.into()), &0.0), (Token(b'b'.into()), &2.0)]);
    sampler.sample(&vec![0.0_f32; vocab.len()], 2, &mut sampled).unwrap();
    sampler.take_drawn(sampled[0], 2, &mut taken);
    assert!(taken.iter().map(|one| one.token).eq(tokens("bcd")));
    assert!(taken.iter().map(|one| one.token).eq(sampled.iter().map(|one| one.token)));
    sampler.accept(2, &tokens("x"));
    assert_eq!(sampler.additions(3, &mut added).unwrap_err().kind(), ErrorKind::InvalidConstraint);
}
