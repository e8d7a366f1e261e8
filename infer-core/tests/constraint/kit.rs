//! A text drawn from the scripted session.

use infer_core::{testing::*, *};

pub(crate) const PROMPT: &[u8] = b"Say it:";

pub(crate) fn prompt() -> Vec<Token> {
    PROMPT.iter().map(|&byte| Token(byte.into())).collect()
}

pub(crate) fn warm(constraint: Constraint, seed: u64) -> Sampling {
    Sampling::default().with_temperature(1.0).with_seed(seed).with_constraint(constraint)
}

/// The tokens drawn until one ends the text, or `most` of them; those that are forced are fed with the one before, or drawn
/// again where `one_by_one`.
pub(crate) fn draw(session: &mut Scripted, sampling: &Sampling, most: usize, one_by_one: bool) -> Result<Vec<Token>> {
    let seq = session.open(&OpenOptions::default())?;
    let prompt = prompt();
    session.sample_with(&seq, sampling, &prompt)?;
    let (mut batch, mut next, mut drawn) = (Batch::new(), prompt, Vec::new());
    while drawn.len() < most {
        batch.clear();
        let entry = batch.push(&seq, &next, Want::Token);
        session.decode(&batch)?;
        let found = session.outputs().sampled(entry);
        assert!(!found.is_empty(), "{:?} {}", session.outputs().error(entry), drawn.len());
        assert!(found[1..].iter().all(|sampled| sampled.logprob.is_nan()), "nothing was computed for them");
        let found = if one_by_one { &found[..1] } else { found };
        next = found.iter().map(|sampled| sampled.token).collect();
        drawn.extend_from_slice(&next);
        if byte_vocab().is_end(*drawn.last().unwrap()) {
            break;
        }
    }
    Ok(drawn)
}

pub(crate) fn session() -> Scripted {
    ScriptedModel::default().scripted(&SessionOptions::new().with_sequences(3)).unwrap()
}

/// The text of the tokens before the one that ends it; there must be one.
pub(crate) fn text(tokens: &[Token]) -> String {
    let (last, text) = tokens.split_last().unwrap();
    let vocab = byte_vocab();
    let bytes: Vec<u8> = text.iter().flat_map(|&token| vocab.bytes(token).unwrap()).copied().collect();
    let text = String::from_utf8(bytes).unwrap();
    assert!(vocab.is_end(*last), "{text} is not complete");
    text
}

pub(crate) fn generate(sampling: &Sampling, most: usize) -> String {
    text(&draw(&mut session(), sampling, most, false).unwrap())
}
