//! How two texts are put together for a classification head to compare.

use crate::{Tokenizer, raw};
use infer_core::{Result, Special, Token, Tokenizer as _, Vocab};

/// The form of a query and a document, as llama.cpp's tools make it.
#[derive(Debug, PartialEq)]
pub(super) enum Form {
    /// By the text the model was trained with.
    Template(Vec<Part>),
    /// By the special tokens of the vocabulary.
    Tokens { before: Option<Token>, between: Vec<Token>, after: Option<Token> },
}

/// A part of a template.
#[derive(Debug, PartialEq)]
pub(super) enum Part {
    /// A control token that the template names.
    Token(Token),
    /// What stands between two of them: one text, for words are not cut where the template ends and a text begins.
    Text(Vec<Piece>),
}

#[derive(Debug, PartialEq)]
pub(super) enum Piece {
    Literal(String),
    First,
    Second,
}

impl Form {
    /// By `{query}` and `{document}` in a template. `None` when one of them is not there.
    ///
    /// Names of control tokens count in the template and not in the texts: a document cannot end its own turn.
    pub(super) fn of_template(template: &str, vocab: &Vocab) -> Option<Self> {
        let (mut parts, mut pieces) = (Vec::new(), Vec::new());
        let controls: Vec<_> = (0..vocab.len() as u32)
            .map(Token)
            .filter(|&token| vocab.is_control(token))
            .filter_map(|token| Some((str::from_utf8(vocab.bytes(token)?).ok()?, token)))
            .filter(|(name, _)| !name.is_empty())
            .collect();
        let mut rest = template;
        while !rest.is_empty() {
            let places = [("{query}", Piece::First), ("{document}", Piece::Second)];
            let place = places.into_iter().find_map(|(name, piece)| Some((rest.strip_prefix(name)?, piece)));
            let here = controls.iter().filter(|(name, _)| rest.starts_with(name));
            let control = here.max_by_key(|(name, _)| name.len());
            if let Some((after, piece)) = place {
                pieces.push(piece);
                rest = after;
            } else if let Some((name, token)) = control {
                parts.extend((!pieces.is_empty()).then(|| Part::Text(std::mem::take(&mut pieces))));
                parts.push(Part::Token(*token));
                rest = &rest[name.len()..];
            } else {
                let (character, after) = rest.split_at(rest.chars().next().map_or(0, char::len_utf8));
                match pieces.last_mut() {
                    Some(Piece::Literal(text)) => text.push_str(character),
                    _ => pieces.push(Piece::Literal(character.to_owned())),
                }
                rest = after;
            }
        }
        parts.extend((!pieces.is_empty()).then_some(Part::Text(pieces)));
        let has = |wanted: &Piece| parts.iter().any(|part| matches!(part, Part::Text(all) if all.contains(wanted)));
        (has(&Piece::First) && has(&Piece::Second)).then_some(Self::Template(parts))
    }

    /// By what the vocabulary says is put before, between and after texts. `None` when nothing would stand between them.
    pub(super) fn of_vocab(vocab: &raw::VocabFacts) -> Option<Self> {
        let end = vocab.eos.or(vocab.sep).filter(|_| vocab.add_eos);
        let separator = vocab.sep.filter(|_| vocab.add_sep);
        let between: Vec<Token> = end.into_iter().chain(separator).collect();
        // BERT ends a text with its separator, and has no other end.
        let form = Self::Tokens { before: vocab.bos.filter(|_| vocab.add_bos), after: end.or(separator), between };
        (end.is_some() || separator.is_some()).then_some(form)
    }

    /// Appends the tokens of two texts. After an error `out` is as it was.
    pub(super) fn encode(&self, tokenizer: &Tokenizer, first: &str, second: &str, out: &mut Vec<Token>) -> Result<()> {
        let before_all = out.len();
        let mut add = || match self {
            Self::Template(parts) => parts.iter().try_for_each(|part| part.encode(tokenizer, first, second, out)),
            Self::Tokens { before, between, after } => {
                out.extend(before);
                tokenizer.encode(first, Special::NONE, out)?;
                out.extend(between);
                tokenizer.encode(second, Special::NONE, out)?;
                out.extend(after);
                Ok(())
            }
        };
        let done = add();
        if done.is_err() {
            out.truncate(before_all);
        }
        done
    }
}

impl Part {
    fn encode(&self, tokenizer: &Tokenizer, first: &str, second: &str, out: &mut Vec<Token>) -> Result<()> {
        let pieces = match self {
            Self::Token(token) => {
                out.push(*token);
                return Ok(());
            }
            Self::Text(pieces) => pieces,
        };
        let texts = pieces.iter().map(|piece| match piece {
            Piece::Literal(text) => text.as_str(),
            Piece::First => first,
            Piece::Second => second,
        });
        tokenizer.encode(&texts.collect::<String>(), Special::NONE, out)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use infer_core::testing::{IM_END, IM_START, byte_vocab};

    fn literal(text: &str) -> Piece {
        Piece::Literal(text.to_owned())
    }

    #[test]
    fn a_template_is_cut_at_its_control_tokens_and_its_places() {
        let form = Form::of_template("<|im_start|>é {query} / {document}<|im_end|>\n", &byte_vocab());
        let text = vec![literal("é "), Piece::First, literal(" / "), Piece::Second];
        let parts = vec![Part::Token(IM_START), Part::Text(text), Part::Token(IM_END), Part::Text(vec![literal("\n")])];
        assert_eq!(form, Some(Form::Template(parts)));
        for lacking in ["", "{query}", "{document} and {Query}"] {
            assert_eq!(Form::of_template(lacking, &byte_vocab()), None, "{lacking:?}");
        }
    }

    #[test]
    fn a_vocabulary_says_what_stands_between_two_texts() {
        let [bos, eos, sep] = [1, 2, 3].map(Token);
        let facts = |add_bos, add_eos, add_sep, eos| raw::VocabFacts {
            family: raw::Family::Other,
            tokens: 9,
            bos: Some(bos),
            eos,
            eot: None,
            sep: Some(sep),
            pad: None,
            add_bos,
            add_eos,
            add_sep,
        };
        let tokens = |before, between: &[Token], after| Some(Form::Tokens { before, between: between.into(), after });
        // XLM-RoBERTa: <s> a </s></s> b </s>, where </s> is both.
        let form = Form::of_vocab(&facts(true, true, true, Some(eos)));
        assert_eq!(form, tokens(Some(bos), &[eos, sep], Some(eos)));
        // BERT: [CLS] a [SEP] b [SEP].
        assert_eq!(Form::of_vocab(&facts(true, false, true, None)), tokens(Some(bos), &[sep], Some(sep)));
        assert_eq!(Form::of_vocab(&facts(false, true, false, None)), tokens(None, &[sep], Some(sep)));
        assert_eq!(Form::of_vocab(&facts(true, false, false, Some(eos))), None);
    }
}
