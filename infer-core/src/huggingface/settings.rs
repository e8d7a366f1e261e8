//! What the files beside a `tokenizer.json` say about its tokens.

use super::invalid;
use crate::{Error, ErrorKind, Result};
use serde::{Deserialize, de::DeserializeOwned};
use std::{
    fs::File,
    io::{ErrorKind as IoErrorKind, Read},
    path::Path,
};

/// The largest file of settings there may be, in bytes. The largest in use have some million.
const MAX_SETTINGS: u64 = 32 << 20;

/// What the files beside a `tokenizer.json` say about its tokens: their roles, which of them end a text, and the chat template.
///
/// Roles and template are in `tokenizer_config.json` and `special_tokens_map.json`, a template by itself in `chat_template.jinja`; ids, and how many
/// tokens the weights have rows for, in `generation_config.json`, `config.json` and `genai_config.json`.
#[derive(Clone, Debug, Default)]
pub struct Settings {
    pub(super) bos: Option<String>,
    pub(super) eos: Option<String>,
    pub(super) sep: Option<String>,
    pub(super) pad: Option<String>,
    pub(super) cls: Option<String>,
    pub(super) mask: Option<String>,
    pub(super) add_bos: Option<bool>,
    pub(super) add_eos: Option<bool>,
    pub(super) bos_id: Option<u32>,
    pub(super) pad_id: Option<u32>,
    /// Tokens that end a generation; the first is the end of sequence where no file names it.
    pub(super) ends: Vec<u32>,
    /// Rows of the weights' table of tokens.
    pub(super) vocab: Option<usize>,
    pub(super) chat_template: Option<String>,
}

/// Of `tokenizer_config.json` and `special_tokens_map.json`.
#[derive(Default, Deserialize)]
struct TokenSettings {
    bos_token: Option<Named>,
    eos_token: Option<Named>,
    sep_token: Option<Named>,
    pad_token: Option<Named>,
    cls_token: Option<Named>,
    mask_token: Option<Named>,
    add_bos_token: Option<bool>,
    add_eos_token: Option<bool>,
    chat_template: Option<Templates>,
}

/// A token by its text, which newer files put into an object.
#[derive(Deserialize)]
#[serde(untagged, expecting = "a token is wanted: its text, or an object with that as `content`")]
enum Named {
    Text(String),
    Token { content: String },
}

/// One template, or several for several purposes.
#[derive(Deserialize)]
#[serde(untagged, expecting = "a chat template is wanted: a text, or a list of such with their names")]
enum Templates {
    One(String),
    Several(Vec<Template>),
}

#[derive(Deserialize)]
struct Template {
    name: String,
    template: String,
}

/// Of `generation_config.json`, of `config.json`, and of `model` in `genai_config.json`.
#[derive(Default, Deserialize)]
struct Ids {
    bos_token_id: Option<Numbers>,
    eos_token_id: Option<Numbers>,
    pad_token_id: Option<Numbers>,
    vocab_size: Option<usize>,
    /// Models of several kinds of input have their language model in here.
    text_config: Option<Box<Ids>>,
}

/// An id, or several.
#[derive(Deserialize)]
#[serde(untagged, expecting = "the id of a token is wanted: a whole number, or a list of such")]
enum Numbers {
    One(i64),
    Several(Vec<i64>),
}

#[derive(Deserialize)]
struct Genai {
    model: Option<Ids>,
}

impl Settings {
    /// Reads whatever of these files is in the folder.
    ///
    /// # Errors
    /// [`Io`](ErrorKind::Io) for a file that is there and cannot be read; [`InvalidModel`](ErrorKind::InvalidModel), with the file's name, for one that is
    /// damaged or larger than any has a reason to be.
    pub fn read(folder: impl AsRef<Path>) -> Result<Self> {
        let folder = folder.as_ref();
        let mut all = Self::default();
        for name in ["tokenizer_config.json", "special_tokens_map.json"] {
            if let Some(settings) = settings::<TokenSettings>(&folder.join(name))? {
                all.add_settings(settings);
            }
        }
        if let Some(template) = read_if_there(folder.join("chat_template.jinja"))? {
            // It is what newer tools write, and it has the last word.
            all.chat_template = Some(String::from_utf8_lossy(&template).into_owned());
        }
        if let Some(Genai { model: Some(ids) }) = settings(&folder.join("genai_config.json"))? {
            all.add_ids(ids);
        }
        for name in ["generation_config.json", "config.json"] {
            if let Some(ids) = settings(&folder.join(name))? {
                all.add_ids(ids);
            }
        }
        Ok(all)
    }

    /// The chat template, as the model's authors wrote it; where they wrote several, the one for a conversation.
    #[must_use]
    pub fn chat_template(&self) -> Option<&str> {
        self.chat_template.as_deref()
    }

    fn add_settings(&mut self, settings: TokenSettings) {
        let add = |name: &mut Option<String>, named: Option<Named>| {
            if name.is_none() {
                *name = named.map(|named| match named {
                    Named::Text(text) | Named::Token { content: text } => text,
                });
            }
        };
        add(&mut self.bos, settings.bos_token);
        add(&mut self.eos, settings.eos_token);
        add(&mut self.sep, settings.sep_token);
        add(&mut self.pad, settings.pad_token);
        add(&mut self.cls, settings.cls_token);
        add(&mut self.mask, settings.mask_token);
        self.add_bos = self.add_bos.or(settings.add_bos_token);
        self.add_eos = self.add_eos.or(settings.add_eos_token);
        if self.chat_template.is_none() {
            self.chat_template = settings.chat_template.and_then(Templates::into_default);
        }
    }

    fn add_ids(&mut self, ids: Ids) {
        let Ids { bos_token_id, eos_token_id, pad_token_id, vocab_size, text_config } = ids;
        self.ends.extend(eos_token_id.into_iter().flat_map(Numbers::ids));
        self.bos_id = self.bos_id.or_else(|| bos_token_id?.ids().first().copied());
        self.pad_id = self.pad_id.or_else(|| pad_token_id?.ids().first().copied());
        self.vocab = self.vocab.or(vocab_size);
        if let Some(ids) = text_config {
            self.add_ids(*ids);
        }
    }
}

impl Templates {
    /// The one for a conversation.
    fn into_default(self) -> Option<String> {
        match self {
            Self::One(template) => Some(template),
            Self::Several(mut templates) => {
                let place = templates.iter().position(|template| template.name == "default").unwrap_or(0);
                (!templates.is_empty()).then(|| templates.swap_remove(place).template)
            }
        }
    }
}

impl Numbers {
    /// The ids; a negative number says that there is none.
    fn ids(self) -> Vec<u32> {
        let numbers = match self {
            Self::One(number) => vec![number],
            Self::Several(numbers) => numbers,
        };
        numbers
            .into_iter()
            .filter(|number| *number >= 0)
            .map(|number| u32::try_from(number).unwrap_or(u32::MAX))
            .collect()
    }
}

/// What a file of settings says; `None` where there is none.
pub(super) fn settings<T: DeserializeOwned>(path: &Path) -> Result<Option<T>> {
    let json = read_if_there(path)?;
    let parsed = json.map(|json| serde_json::from_slice(&json)).transpose();
    parsed.map_err(|error| named(path, error))
}

/// A file of settings as it is, such as a `config.json`; `None` where there is none.
///
/// # Errors
/// [`Io`](ErrorKind::Io) for a file that cannot be read, or is no file; [`InvalidModel`](ErrorKind::InvalidModel) for one of more than 32 MiB.
pub fn read_if_there(path: impl AsRef<Path>) -> Result<Option<Vec<u8>>> {
    let path = path.as_ref();
    match std::fs::metadata(path) {
        Err(error) if error.kind() == IoErrorKind::NotFound => Ok(None),
        _ => read_file(path, MAX_SETTINGS).map(Some),
    }
}

/// All of a file that has at most `most` bytes.
pub(super) fn read_file(path: &Path, most: u64) -> Result<Vec<u8>> {
    let failed = |what: &str| Error::new(ErrorKind::Io, format!("{} {what}", path.display()));
    let unreadable = |error: std::io::Error| failed("cannot be read").with_source(error);
    // Opening a pipe would wait for someone to write to it.
    if !std::fs::metadata(path).map_err(unreadable)?.is_file() {
        return Err(failed("is not a regular file"));
    }
    let mut bytes = Vec::new();
    File::open(path).map_err(unreadable)?.take(most + 1).read_to_end(&mut bytes).map_err(unreadable)?;
    if bytes.len() as u64 > most {
        let message = format!("{} has more than {most} bytes, which is more than any such file needs", path.display());
        return Err(invalid(message));
    }
    Ok(bytes)
}

/// What is wrong with this file.
pub(super) fn named(path: &Path, what: impl std::fmt::Display) -> Error {
    invalid(format!("{}: {what}", path.display()))
}
