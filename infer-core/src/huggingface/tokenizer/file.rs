//! What a `tokenizer.json` says, as it says it.

use super::guard;
use serde::{Deserialize, Deserializer, de::IgnoredAny};
use serde_json::{Value, value::RawValue};
use std::collections::HashMap;

/// The file, taken apart as far as it is of use: what it says about truncation and padding is not, since whoever computes decides these.
#[derive(Deserialize)]
pub(super) struct File<'j> {
    #[serde(borrow)]
    model: &'j RawValue,
    #[serde(default)]
    pub(super) added_tokens: Vec<Added>,
    #[serde(default)]
    pub(super) normalizer: Option<Value>,
    #[serde(default)]
    pub(super) pre_tokenizer: Option<Value>,
    #[serde(default)]
    pub(super) post_processor: Option<Value>,
    #[serde(default)]
    pub(super) decoder: Option<Value>,
}

/// A token beside those of the model: recognised in a text before the model sees it.
#[derive(Deserialize)]
pub(super) struct Added {
    pub(super) id: u32,
    pub(super) content: String,
    #[serde(default)]
    pub(super) single_word: bool,
    #[serde(default)]
    pub(super) lstrip: bool,
    #[serde(default)]
    pub(super) rstrip: bool,
    pub(super) normalized: Option<bool>,
    #[serde(default)]
    pub(super) special: bool,
}

/// The vocabulary, and how words become tokens.
pub(super) enum Model {
    Bpe(Bpe),
    WordPiece(WordPiece),
    WordLevel(WordLevel),
    Unigram(Unigram),
}

#[derive(Deserialize)]
pub(super) struct Bpe {
    pub(super) vocab: HashMap<String, u32>,
    pub(super) merges: Vec<Merge>,
    pub(super) unk_token: Option<String>,
    pub(super) continuing_subword_prefix: Option<String>,
    pub(super) end_of_word_suffix: Option<String>,
    #[serde(default, deserialize_with = "or_false")]
    pub(super) fuse_unk: bool,
    #[serde(default, deserialize_with = "or_false")]
    pub(super) byte_fallback: bool,
    #[serde(default, deserialize_with = "or_false")]
    pub(super) ignore_merges: bool,
}

/// Two pieces that become one: as a pair, or in the older form as a line with a space between them.
#[derive(Deserialize)]
#[serde(untagged, expecting = "a merge is wanted: a list of two texts, or a text with a space between two")]
pub(super) enum Merge {
    Pair(String, String),
    Line(String),
}

#[derive(Deserialize)]
pub(super) struct WordPiece {
    pub(super) vocab: HashMap<String, u32>,
    pub(super) unk_token: Option<String>,
    pub(super) continuing_subword_prefix: Option<String>,
    pub(super) max_input_chars_per_word: Option<usize>,
}

#[derive(Deserialize)]
pub(super) struct WordLevel {
    pub(super) vocab: HashMap<String, u32>,
    pub(super) unk_token: Option<String>,
}

#[derive(Deserialize)]
pub(super) struct Unigram {
    /// Each token's text and score; its place is its id.
    pub(super) vocab: Vec<(String, f64)>,
    pub(super) unk_id: Option<usize>,
    #[serde(default, deserialize_with = "or_false")]
    pub(super) byte_fallback: bool,
}

impl<'j> File<'j> {
    /// Takes a file apart, and refuses what no tokenizer has a reason to say.
    pub(super) fn parse(json: &'j [u8]) -> Result<Self, String> {
        let file: Self = serde_json::from_slice(json).map_err(|error| error.to_string())?;
        let parts = [
            ("normalizer", &file.normalizer),
            ("pre_tokenizer", &file.pre_tokenizer),
            ("post_processor", &file.post_processor),
            ("decoder", &file.decoder),
        ];
        for (name, part) in parts {
            if let Some(part) = part {
                guard::check_part(part).map_err(|reason| format!("{name}: {reason}"))?;
            }
        }
        Ok(file)
    }

    /// Its model. The largest part by far, so it goes straight into the form it is used in.
    pub(super) fn model(&self) -> Result<Model, String> {
        let json = self.model.get();
        let model = match family(json)?.as_str() {
            "BPE" => serde_json::from_str(json).map(Model::Bpe),
            "WordPiece" => serde_json::from_str(json).map(Model::WordPiece),
            "WordLevel" => serde_json::from_str(json).map(Model::WordLevel),
            "Unigram" => serde_json::from_str(json).map(Model::Unigram),
            other => {
                return Err(format!(
                    "a model of type {other:?}; the types there are: BPE, WordPiece, WordLevel, Unigram"
                ));
            }
        };
        let model = model.map_err(|error| format!("model: {error}"))?;
        guard::check_model(&model)?;
        Ok(model)
    }
}

/// The type a model says it is of; older files do not, and are known by their fields.
fn family(json: &str) -> Result<String, String> {
    #[derive(Deserialize)]
    struct Fields {
        r#type: Option<String>,
        merges: Option<IgnoredAny>,
        max_input_chars_per_word: Option<IgnoredAny>,
        unk_id: Option<IgnoredAny>,
    }
    let fields: Fields = serde_json::from_str(json).map_err(|error| format!("model: {error}"))?;
    let by_fields = || match fields {
        Fields { merges: Some(_), .. } => "BPE".to_owned(),
        Fields { max_input_chars_per_word: Some(_), .. } => "WordPiece".to_owned(),
        Fields { unk_id: Some(_), .. } => "Unigram".to_owned(),
        _ => "WordLevel".to_owned(),
    };
    Ok(fields.r#type.clone().unwrap_or_else(by_fields))
}

/// Fields that are off where they are null, too.
fn or_false<'d, D: Deserializer<'d>>(field: D) -> Result<bool, D::Error> {
    Ok(Option::deserialize(field)?.unwrap_or(false))
}
