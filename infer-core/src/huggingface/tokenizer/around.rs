//! What a model wants around a text, and around two of them.

use super::{Settings, Tokenizer};
use crate::{Result as CoreResult, Special, Token, Tokenizer as _};
use tokenizers::{Encoding, PostProcessor, PostProcessorWrapper};

/// Stand for the texts, while the post-processor is asked what it puts around them.
const FIRST: u32 = u32::MAX;
const SECOND: u32 = u32::MAX - 1;

/// What is put around a text. It does not depend on the text, so the post-processor is asked once.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Around {
    pub(super) before: Vec<Token>,
    pub(super) after: Vec<Token>,
    pub(super) pair: Option<PairForm>,
}

/// The form in which two texts are compared.
#[derive(Clone, Debug, PartialEq)]
pub struct PairForm {
    before: Vec<Token>,
    between: Vec<Token>,
    after: Vec<Token>,
    /// What the tokens of the first text, and of the second, are to a model that is told which is which (`token_type_ids`).
    types: [u32; 2],
}

impl PairForm {
    /// What stands between the two texts.
    #[must_use]
    pub fn between(&self) -> &[Token] {
        &self.between
    }

    /// What the tokens of the first text, with what stands behind it, and of the second are (`token_type_ids`).
    #[must_use]
    pub fn types(&self) -> [u32; 2] {
        self.types
    }

    /// Appends the tokens of two texts in this form.
    ///
    /// # Errors
    /// Those of [`encode`](crate::Tokenizer::encode); `out` is then as it was.
    pub fn encode(&self, tokenizer: &Tokenizer, first: &str, second: &str, out: &mut Vec<Token>) -> CoreResult<()> {
        let start = out.len();
        out.extend_from_slice(&self.before);
        let texts = tokenizer.encode(first, Special::NONE, out).and_then(|()| {
            out.extend_from_slice(&self.between);
            tokenizer.encode(second, Special::NONE, out)
        });
        match texts {
            Ok(()) => out.extend_from_slice(&self.after),
            Err(_) => out.truncate(start),
        }
        texts
    }
}

impl Around {
    /// What this post-processor puts there, with the bos and eos that the files beside the tokenizer insist on.
    pub(super) fn new(
        processor: Option<&PostProcessorWrapper>,
        settings: &Settings,
        bos: Option<Token>,
        eos: Option<Token>,
    ) -> Result<Self, String> {
        let mut around = Self::default();
        if let Some(processor) = processor {
            let (ids, _) = process(processor, None)?;
            let [before, after] = cut(&ids, [FIRST]).ok_or("post_processor: it does not put a text in once")?;
            (around.before, around.after) = (before, after);
            around.pair = pair(processor)?;
        }
        insist(&mut around.before, settings.add_bos, bos, 0);
        let end = around.after.len();
        insist(&mut around.after, settings.add_eos, eos, end);
        Ok(around)
    }

    /// Every token of it.
    pub(super) fn tokens(&self) -> impl Iterator<Item = Token> + '_ {
        let pair = self.pair.iter().flat_map(|pair| [&pair.before, &pair.between, &pair.after]).flatten();
        self.before.iter().chain(&self.after).chain(pair).copied()
    }
}

/// The form in which it compares two texts; `None` where it says no more than that one follows the other.
fn pair(processor: &PostProcessorWrapper) -> Result<Option<PairForm>, String> {
    let (ids, types) = process(processor, Some(SECOND))?;
    let type_of = |mark| ids.iter().position(|&id| id == mark).and_then(|at| types.get(at)).copied().unwrap_or(0);
    let types = [type_of(FIRST), type_of(SECOND)];
    let form = cut(&ids, [FIRST, SECOND]).map(|[before, between, after]| PairForm { before, between, after, types });
    Ok(form.filter(|_| ids.len() > 2))
}

/// What it makes of one text, or of two, of one token each; and the types of the tokens.
fn process(processor: &PostProcessorWrapper, second: Option<u32>) -> Result<(Vec<u32>, Vec<u32>), String> {
    let text = |id| Encoding::from_tokens(vec![tokenizers::Token::new(id, "a".to_owned(), (0, 1))], 0);
    let processed =
        processor.process(text(FIRST), second.map(text), true).map_err(|error| format!("post_processor: {error}"))?;
    Ok((processed.get_ids().to_vec(), processed.get_type_ids().to_vec()))
}

/// What stands before, between and after `marks`; `None` where they are not each there once, in this order.
fn cut<const MARKS: usize, const PARTS: usize>(ids: &[u32], marks: [u32; MARKS]) -> Option<[Vec<Token>; PARTS]> {
    let mut parts: [Vec<Token>; PARTS] = std::array::from_fn(|_| Vec::new());
    let mut part = 0;
    for &id in ids {
        if marks.get(part) == Some(&id) {
            part += 1;
        } else if id == FIRST || id == SECOND {
            return None;
        } else {
            parts.get_mut(part)?.push(Token(id));
        }
    }
    (part == MARKS).then_some(parts)
}

/// Puts a token in at this place, or takes it out, where somebody says so.
fn insist(tokens: &mut Vec<Token>, wanted: Option<bool>, token: Option<Token>, place: usize) {
    let Some((wanted, token)) = wanted.zip(token) else {
        return;
    };
    if !wanted {
        tokens.retain(|&one| one != token);
    } else if !tokens.contains(&token) {
        tokens.insert(place, token);
    }
}
