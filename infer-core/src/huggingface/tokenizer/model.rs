//! The model of a tokenizer as the crate has it, less what only a control token may be.

use super::file::{self, Bpe, Unigram, WordLevel, WordPiece};
use std::{
    collections::{HashMap, HashSet},
    path::{Path, PathBuf},
    sync::Arc,
};
use tokenizers::{
    Model, ModelWrapper, Result as CrateResult, Token,
    models::{TrainerWrapper, bpe, unigram, wordlevel, wordpiece},
};

/// The text that stands for the token of unknown text: no part of a text is empty, so no text is it.
const UNKNOWN: &str = "";

/// Makes the model without the texts of control tokens, so that no text that is not read for them can become one: not whole words that are
/// looked up, not pieces that are pieced together. The ids stay as they are.
pub(super) fn build(model: file::Model, control: &HashSet<&str>) -> CrateResult<ModelWrapper> {
    match model {
        file::Model::Bpe(model) => bpe(model, control).map(ModelWrapper::BPE),
        file::Model::WordPiece(model) => word_piece(model, control).map(ModelWrapper::WordPiece),
        file::Model::WordLevel(model) => word_level(model, control).map(ModelWrapper::WordLevel),
        file::Model::Unigram(model) => unigram(model, control).map(ModelWrapper::Unigram),
    }
}

fn bpe(model: Bpe, control: &HashSet<&str>) -> CrateResult<bpe::BPE> {
    let prefix = model.continuing_subword_prefix.as_deref().unwrap_or_default();
    let is_gone = |text: &str| control.contains(text) || model.unk_token.as_deref() == Some(text);
    let merges = model.merges.iter().filter(|merge| !merge.is_comment()).filter_map(file::Merge::pair);
    let merges = merges
        .filter(|(first, second)| {
            let joined = format!("{first}{}", second.strip_prefix(prefix).unwrap_or(second));
            !is_gone(first) && !is_gone(second) && !is_gone(&joined)
        })
        .map(|(first, second)| (first.to_owned(), second.to_owned()))
        .collect();
    let mut builder = bpe::BPE::builder()
        .vocab_and_merges(plain(model.vocab, model.unk_token.as_deref(), control), merges)
        .fuse_unk(model.fuse_unk)
        .byte_fallback(model.byte_fallback)
        .ignore_merges(model.ignore_merges);
    if model.unk_token.is_some() {
        builder = builder.unk_token(UNKNOWN.to_owned());
    }
    if let Some(prefix) = model.continuing_subword_prefix {
        builder = builder.continuing_subword_prefix(prefix);
    }
    if let Some(suffix) = model.end_of_word_suffix {
        builder = builder.end_of_word_suffix(suffix);
    }
    builder.build()
}

fn word_piece(model: WordPiece, control: &HashSet<&str>) -> CrateResult<wordpiece::WordPiece> {
    let mut builder = wordpiece::WordPiece::builder()
        .vocab(plain(model.vocab, Some(model.unk_token.as_deref().unwrap_or("[UNK]")), control))
        .unk_token(UNKNOWN.to_owned());
    if let Some(prefix) = model.continuing_subword_prefix {
        builder = builder.continuing_subword_prefix(prefix);
    }
    if let Some(most) = model.max_input_chars_per_word {
        builder = builder.max_input_chars_per_word(most);
    }
    builder.build()
}

fn word_level(model: WordLevel, control: &HashSet<&str>) -> CrateResult<wordlevel::WordLevel> {
    wordlevel::WordLevel::builder()
        .vocab(plain(model.vocab, Some(model.unk_token.as_deref().unwrap_or("<unk>")), control))
        .unk_token(UNKNOWN.to_owned())
        .build()
}

fn unigram(mut model: Unigram, control: &HashSet<&str>) -> CrateResult<unigram::Unigram> {
    for (id, (piece, _)) in model.vocab.iter_mut().enumerate() {
        // A place in the list is an id, so none may be left out.
        if control.contains(piece.as_str()) || model.unk_id == Some(id) {
            UNKNOWN.clone_into(piece);
        }
    }
    unigram::Unigram::from(model.vocab, model.unk_id, model.byte_fallback)
}

/// A vocabulary without control tokens, and with that of unknown text under a text that no text is.
fn plain(vocab: HashMap<String, u32>, unknown: Option<&str>, control: &HashSet<&str>) -> bpe::Vocab {
    let unknown_id = unknown.and_then(|unknown| vocab.get(unknown).copied());
    let is_plain = |text: &str| !control.contains(text) && unknown != Some(text);
    let mut vocab: bpe::Vocab = vocab.into_iter().filter(|(text, _)| is_plain(text)).collect();
    if let Some(id) = unknown_id {
        vocab.insert(UNKNOWN.to_owned(), id);
    }
    vocab
}

/// A model that several tokenizers use, and that knows the ids which the file gives to added tokens: by itself the crate would number them
/// as they come.
#[derive(Clone)]
pub(super) struct Shared {
    pub(super) model: Arc<ModelWrapper>,
    pub(super) added: Arc<HashMap<String, u32>>,
}

impl Model for Shared {
    type Trainer = TrainerWrapper;

    fn tokenize(&self, word: &str) -> CrateResult<Vec<Token>> {
        self.model.tokenize(word)
    }

    fn token_to_id(&self, text: &str) -> Option<u32> {
        self.added.get(text).copied().or_else(|| self.model.token_to_id(text))
    }

    fn id_to_token(&self, id: u32) -> Option<String> {
        self.model.id_to_token(id)
    }

    fn get_vocab(&self) -> HashMap<String, u32> {
        self.model.get_vocab()
    }

    fn get_vocab_size(&self) -> usize {
        self.model.get_vocab_size()
    }

    fn save(&self, folder: &Path, prefix: Option<&str>) -> CrateResult<Vec<PathBuf>> {
        self.model.save(folder, prefix)
    }

    fn get_trainer(&self) -> TrainerWrapper {
        self.model.get_trainer()
    }
}
