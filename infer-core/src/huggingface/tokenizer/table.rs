//! Every token of a file by its id, with what it is.

use super::{
    Settings,
    file::{Added, Model},
    invalid,
    pieces::Spelling,
};
use crate::{Result, SpecialTokens, Token, TokenFlags, Vocab, VocabKind};
use std::collections::{HashMap, HashSet};

/// How many ids may be missing among those of a vocabulary.
const MAX_HOLES: usize = 1 << 16;
/// Control tokens that end a turn, by the names they have in the models that are in use. Files do not always say it; llama.cpp goes by names
/// too.
const TURN_ENDS: &[&str] = &[
    "<|eot_id|>",
    "<|im_end|>",
    "<|end|>",
    "<end_of_turn>",
    "<turn|>",
    "<|end_of_text|>",
    "<|endoftext|>",
    "<EOT>",
    "[EOT]",
    "<｜end▁of▁sentence｜>",
    "<end_of_utterance>",
    "<|END_OF_TURN_TOKEN|>",
];
/// And those that end a message, all of a text, or a file in models that have seen much code.
const OTHER_ENDS: &[&str] = &[
    "<|eom_id|>",
    "<|return|>",
    "<|call|>",
    "<eos>",
    "</s>",
    "[EOS]",
    "<|fim_pad|>",
    "<fim-pad>",
    "<fim_pad>",
    "<|fim_repo|>",
    "<|repo_name|>",
    "<fim-repo>",
    "<reponame>",
    "<|file_sep|>",
];

/// All tokens, and those with a role.
pub(super) struct Table {
    entries: Vec<Option<Entry>>,
    pub(super) special: SpecialTokens,
    ends: HashSet<u32>,
    kind: VocabKind,
}

struct Entry {
    text: String,
    /// Where it is beside those of the model: its text is as it is.
    is_added: bool,
    is_control: bool,
}

impl Table {
    /// Lists the tokens. An added one beyond the rows that the weights have, where a file says how many, is left out: a tokenizer that several
    /// models share may have some that this one does not.
    pub(super) fn new(model: &Model, added: &mut Vec<Added>, spelling: &Spelling, settings: &Settings) -> Result<Self> {
        let texts = texts(model);
        let count = texts.len();
        let known: HashMap<&str, u32> = texts.iter().map(|&(text, id)| (text, id)).collect();
        let model_fits = |rows: usize| texts.iter().all(|&(_, id)| (id as usize) < rows);
        let rows = settings.vocab.filter(|&rows| model_fits(rows)).unwrap_or(usize::MAX);
        added.retain(|token| !token.content.is_empty() && (token.id as usize) < rows);
        let most = texts.iter().map(|&(_, id)| id).chain(added.iter().map(|token| token.id)).max();
        let len = most.map_or(0, |most| most as usize + 1);
        if len > count + added.len() + MAX_HOLES {
            return Err(invalid(format!(
                "a token has the id {}, and there are {} of them",
                len - 1,
                count + added.len()
            )));
        }
        let mut entries: Vec<Option<Entry>> = Vec::new();
        entries.resize_with(len, || None);
        for &(text, id) in &texts {
            let entry = Entry { text: text.to_owned(), is_added: false, is_control: false };
            if let Some(other) = entries[id as usize].replace(entry) {
                return Err(invalid(format!("both {:?} and {text:?} have the id {id}", other.text)));
            }
        }
        place(&mut entries, added, &known)?;
        let kind = match (spelling, model) {
            (Spelling::ByteLevel, _) => VocabKind::Bpe,
            (Spelling::Metaspace { .. }, _) => VocabKind::Spm,
            (Spelling::WordPiece { .. }, _) => VocabKind::WordPiece,
            (Spelling::Plain { .. }, Model::Bpe(_)) => VocabKind::Bpe,
            (Spelling::Plain { .. }, _) => VocabKind::Other,
        };
        let mut table = Self { entries, special: SpecialTokens::default(), ends: HashSet::new(), kind };
        table.find_roles(model, settings)?;
        Ok(table)
    }

    /// How many tokens there are, missing ones counted.
    pub(super) fn len(&self) -> usize {
        self.entries.len()
    }

    /// The texts of all control tokens, with their ids.
    pub(super) fn control(&self) -> impl Iterator<Item = (&str, u32)> {
        let control = (0..).zip(&self.entries).filter_map(|(id, entry)| Some((id, entry.as_ref()?)));
        control.filter(|(_, entry)| entry.is_control).map(|(id, entry)| (entry.text.as_str(), id))
    }

    /// Marks tokens that a model wants around a text: no text itself may have them.
    pub(super) fn mark_control(&mut self, tokens: impl Iterator<Item = Token>) -> Result<()> {
        for token in tokens {
            match self.entries.get_mut(token.index()) {
                Some(Some(entry)) => entry.is_control = true,
                _ => return Err(invalid(format!("post_processor: it adds token {token}, which is not there"))),
            }
        }
        Ok(())
    }

    fn find_roles(&mut self, model: &Model, settings: &Settings) -> Result<()> {
        let by_text: HashMap<&str, u32> =
            (0..).zip(&self.entries).filter_map(|(id, entry)| Some((entry.as_ref()?.text.as_str(), id))).collect();
        let named = |name: &Option<String>| name.as_deref().and_then(|name| by_text.get(name)).map(|&id| Token(id));
        let mut special = SpecialTokens {
            bos: named(&settings.bos).or(settings.bos_id.map(Token)).or_else(|| named(&settings.cls)),
            eos: named(&settings.eos).or(settings.ends.first().copied().map(Token)),
            sep: named(&settings.sep),
            pad: named(&settings.pad).or(settings.pad_id.map(Token)),
            ..SpecialTokens::default()
        };
        let by_role = [&settings.bos, &settings.eos, &settings.sep, &settings.cls, &settings.mask].map(&named);
        let named_pad = named(&settings.pad).map(|token| token.0);
        let unknown = unknown(model).and_then(|text| by_text.get(text)).copied();

        let is_added = |id: &u32| self.entries[*id as usize].as_ref().is_some_and(|entry| entry.is_added);
        let known = |names: &[&str]| -> Vec<u32> {
            names.iter().filter_map(|name| by_text.get(name).copied()).filter(is_added).collect()
        };
        let (turn_ends, other_ends) = (known(TURN_ENDS), known(OTHER_ENDS));
        special.eot = turn_ends.first().copied().map(Token);
        let said = settings.ends.iter().copied().chain(special.eos.map(|token| token.0));
        self.ends = said.chain(turn_ends).chain(other_ends).collect();

        if let Some(beyond) = self.ends.iter().find(|&&id| id as usize >= self.entries.len()) {
            return Err(invalid(format!("eos_token_id is {beyond}, outside the vocabulary of {}", self.entries.len())));
        }
        // What ends a text and was added is structure. What a model has among its own may be text too, such as a line break; padding is an
        // exclamation mark in some.
        for id in self.ends.iter().copied().chain(named_pad) {
            if let Some(entry) = self.entries[id as usize].as_mut().filter(|entry| entry.is_added) {
                entry.is_control = true;
            }
        }
        for id in by_role.into_iter().flatten().map(|token| token.0).chain(unknown) {
            if let Some(Some(entry)) = self.entries.get_mut(id as usize) {
                entry.is_control = true;
            }
        }
        self.special = special;
        Ok(())
    }

    /// The vocabulary as the core has it, with as many tokens as the weights have rows: those that only make up the number are nobody's.
    pub(super) fn vocab(&self, spelling: &Spelling, rows: Option<usize>) -> Result<Vocab> {
        let len = self.len();
        let rows = rows.filter(|&rows| rows > len && rows - len <= (rows / 16).max(1024)).unwrap_or(len);
        let pieces = (0..rows).map(|id| match self.entries.get(id).and_then(Option::as_ref) {
            None => (Vec::new(), TokenFlags::CONTROL),
            Some(entry) => {
                let (bytes, is_byte) = if entry.is_added || entry.is_control {
                    (entry.text.clone().into_bytes(), false)
                } else {
                    spelling.bytes(&entry.text)
                };
                let mut flags = TokenFlags::TEXT;
                flags.control = entry.is_control;
                flags.byte = is_byte;
                flags.end = u32::try_from(id).is_ok_and(|id| self.ends.contains(&id));
                (bytes, flags)
            }
        });
        Vocab::new(self.kind, self.special, pieces)
    }
}

/// Puts the added tokens into the table, over those of the model with their ids.
fn place(entries: &mut [Option<Entry>], added: &[Added], known: &HashMap<&str, u32>) -> Result<()> {
    let (mut ids, mut contents) = (HashSet::new(), HashSet::new());
    for token in added {
        let Added { id, content, special, .. } = token;
        if let Some(other) = known.get(content.as_str()).filter(|other| *other != id) {
            return Err(invalid(format!("added_tokens: {content:?} has the id {id}, and {other} in the model")));
        }
        if !ids.insert(*id) || !contents.insert(content.as_str()) {
            return Err(invalid(format!("added_tokens: {content:?}, or its id {id}, is there twice")));
        }
        let place = &mut entries[*id as usize];
        // The model would make a control token of that text.
        if let Some(other) = place.as_ref().filter(|other| *special && other.text != *content) {
            return Err(invalid(format!(
                "added_tokens: {content:?} has the id {id}, as {:?} has in the model",
                other.text
            )));
        }
        *place = Some(Entry { text: content.clone(), is_added: true, is_control: *special });
    }
    Ok(())
}

/// The tokens of a model with their ids.
fn texts(model: &Model) -> Vec<(&str, u32)> {
    match model {
        Model::Bpe(model) => of_map(&model.vocab),
        Model::WordPiece(model) => of_map(&model.vocab),
        Model::WordLevel(model) => of_map(&model.vocab),
        Model::Unigram(model) => model.vocab.iter().map(|(text, _)| text.as_str()).zip(0..).collect(),
    }
}

fn of_map(vocab: &HashMap<String, u32>) -> Vec<(&str, u32)> {
    vocab.iter().map(|(text, &id)| (text.as_str(), id)).collect()
}

/// The text of the token for unknown text.
fn unknown(model: &Model) -> Option<&str> {
    match model {
        Model::Bpe(model) => model.unk_token.as_deref(),
        Model::WordPiece(model) => Some(model.unk_token.as_deref().unwrap_or("[UNK]")),
        Model::WordLevel(model) => Some(model.unk_token.as_deref().unwrap_or("<unk>")),
        Model::Unigram(model) => model.vocab.get(model.unk_id?).map(|(text, _)| text.as_str()),
    }
}
