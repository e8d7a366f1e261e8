//! `config.json`: the sizes and settings of a model, each looked at before anything is made of it.

mod quantization;

pub(crate) use quantization::{Affine, Layer, Quantization};

use crate::error::error;
use infer_core::{Error, ErrorKind, Result};
use serde_json::{Map, Value};
use std::{
    fs::File,
    io::Read,
    path::{Path, PathBuf},
};

/// The file's name.
pub(crate) const FILE: &str = "config.json";

/// The largest file of settings there may be, in bytes. The largest in use have some hundred thousand.
const MAX_BYTES: u64 = 32 << 20;

/// The most that a size may be: far beyond every model, and small enough that their products can be counted.
pub(crate) mod most {
    pub(crate) const LAYERS: usize = 4096;
    pub(crate) const WIDTH: usize = 1 << 20;
    pub(crate) const HEADS: usize = 1 << 14;
    pub(crate) const HEAD_DIM: usize = 1 << 14;
    pub(crate) const INNER: usize = 1 << 24;
    pub(crate) const VOCAB: usize = 1 << 28;
    pub(crate) const POSITIONS: usize = 1 << 30;
}

/// The settings of a model, or of a part of it.
#[derive(Clone, Debug)]
pub(crate) struct Config {
    path: PathBuf,
    /// Which part these are, for messages: `text_config.`, or nothing.
    part: String,
    fields: Map<String, Value>,
}

impl Config {
    /// Reads the settings in a folder.
    ///
    /// # Errors
    /// [`Io`](ErrorKind::Io); [`InvalidModel`](ErrorKind::InvalidModel) for what is no object in JSON;
    /// [`Unsupported`](ErrorKind::Unsupported) for a model that wants code of its own to be run.
    pub(crate) fn read(folder: &Path) -> Result<Self> {
        let path = folder.join(FILE);
        let fields = match serde_json::from_slice(&read_file(&path)?) {
            Ok(Value::Object(fields)) => fields,
            Ok(_) => return Err(invalid(&path, "is no object in JSON, with names and values; get it again")),
            Err(why) => return Err(invalid(&path, format!("is not JSON: {why}"))),
        };
        let config = Self { path, part: String::new(), fields };
        match config.value("model_file") {
            Some(file) => Err(config.unsupported(format!(
                "`model_file` wants the code in {file} to be run, which is never done: only architectures that are built in are"
            ))),
            None => Ok(config),
        }
    }

    /// These settings, as if they had been read.
    #[cfg(test)]
    pub(crate) fn of(path: &str, fields: Value) -> Self {
        let Value::Object(fields) = fields else { panic!("settings are an object") };
        Self { path: path.into(), part: String::new(), fields }
    }

    /// The file.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// The settings in an object of these settings.
    pub(crate) fn part(&self, name: &str) -> Result<Self> {
        match self.value(name) {
            Some(Value::Object(fields)) => {
                Ok(Self { path: self.path.clone(), part: format!("{}{name}.", self.part), fields: fields.clone() })
            }
            found => Err(self.wrong(name, found, "an object")),
        }
    }

    /// The part of this name, where there is one.
    pub(crate) fn optional_part(&self, name: &str) -> Result<Option<Self>> {
        self.value(name).map(|_| self.part(name)).transpose()
    }

    /// The same settings with a value in the place of one that is not there.
    pub(crate) fn with_default(mut self, name: &str, value: impl Into<Value>) -> Self {
        if self.value(name).is_none() {
            self.fields.insert(name.to_owned(), value.into());
        }
        self
    }

    /// The same settings with this value, whatever was there.
    pub(crate) fn with(mut self, name: &str, value: impl Into<Value>) -> Self {
        self.fields.insert(name.to_owned(), value.into());
        self
    }

    /// What stands under a name; `null` is nothing.
    pub(crate) fn value(&self, name: &str) -> Option<&Value> {
        self.fields.get(name).filter(|value| !value.is_null())
    }

    /// All names and values.
    pub(crate) fn fields(&self) -> impl Iterator<Item = (&str, &Value)> {
        self.fields.iter().map(|(name, value)| (name.as_str(), value))
    }

    /// A size: a whole number from 1 to `most`.
    pub(crate) fn size(&self, name: &str, most: usize) -> Result<usize> {
        self.optional_size(name, most)?.ok_or_else(|| self.wrong(name, None, &wanted(most)))
    }

    /// A size that need not be there.
    pub(crate) fn optional_size(&self, name: &str, most: usize) -> Result<Option<usize>> {
        let Some(value) = self.value(name) else { return Ok(None) };
        let size = value.as_u64().and_then(|size| usize::try_from(size).ok());
        match size.filter(|size| (1..=most).contains(size)) {
            Some(size) => Ok(Some(size)),
            None => Err(self.wrong(name, Some(value), &wanted(most))),
        }
    }

    /// A number above 0.
    pub(crate) fn positive(&self, name: &str) -> Result<f64> {
        self.optional_positive(name)?.ok_or_else(|| self.wrong(name, None, "a number above 0"))
    }

    /// A number above 0 that need not be there.
    pub(crate) fn optional_positive(&self, name: &str) -> Result<Option<f64>> {
        let Some(value) = self.value(name) else { return Ok(None) };
        match above_zero(value) {
            Some(number) => Ok(Some(number)),
            None => Err(self.wrong(name, Some(value), "a number above 0")),
        }
    }

    /// Numbers above 0, as many as `count`.
    pub(crate) fn positives(&self, name: &str, count: usize) -> Result<Vec<f64>> {
        let numbers = self
            .value(name)
            .and_then(Value::as_array)
            .and_then(|numbers| numbers.iter().map(above_zero).collect::<Option<Vec<_>>>());
        match numbers.filter(|numbers| numbers.len() == count) {
            Some(numbers) => Ok(numbers),
            None => Err(self.wrong(name, self.value(name), &format!("a list of {count} numbers above 0"))),
        }
    }

    /// Yes or no, that need not be said.
    pub(crate) fn flag(&self, name: &str) -> Result<Option<bool>> {
        match self.value(name) {
            None => Ok(None),
            Some(Value::Bool(flag)) => Ok(Some(*flag)),
            found => Err(self.wrong(name, found, "true or false")),
        }
    }

    /// A text that need not be there.
    pub(crate) fn text(&self, name: &str) -> Result<Option<&str>> {
        match self.value(name) {
            None => Ok(None),
            Some(Value::String(text)) => Ok(Some(text)),
            found => Err(self.wrong(name, found, "a text")),
        }
    }

    /// Texts, one a layer, that need not be there.
    pub(crate) fn texts(&self, name: &str, count: usize) -> Result<Option<Vec<&str>>> {
        let Some(value) = self.value(name) else { return Ok(None) };
        let texts = value.as_array().and_then(|texts| texts.iter().map(Value::as_str).collect::<Option<Vec<_>>>());
        match texts.filter(|texts| texts.len() == count) {
            Some(texts) => Ok(Some(texts)),
            None => Err(self.wrong(name, Some(value), &format!("a list of {count} texts, one a layer,"))),
        }
    }

    /// Refuses a choice that the code of an architecture does not have. What is not said is what it has.
    pub(crate) fn only(&self, name: &str, known: &[&str]) -> Result<()> {
        match self.text(name)? {
            Some(found) if !known.contains(&found) => {
                Err(self.unsupported(format!("`{}{name}` is {found:?}; supported is {}", self.part, known.join(", "))))
            }
            _ => Ok(()),
        }
    }

    /// Which part these settings are, before the name of one of them.
    pub(crate) fn place(&self) -> &str {
        &self.part
    }

    /// What cannot be true.
    pub(crate) fn invalid(&self, message: impl AsRef<str>) -> Error {
        invalid(&self.path, message)
    }

    /// What may be true, and is not supported.
    pub(crate) fn unsupported(&self, message: impl AsRef<str>) -> Error {
        error(ErrorKind::Unsupported, format!("{}: {}", self.path.display(), message.as_ref()))
    }

    fn wrong(&self, name: &str, found: Option<&Value>, wanted: &str) -> Error {
        let name = format!("{}{name}", self.part);
        match found {
            None => self.invalid(format!("`{name}` is missing; {wanted} is wanted")),
            Some(value) => self.invalid(format!("`{name}` is {}; {wanted} is wanted", shown(value))),
        }
    }
}

/// A number above 0. What is none in 32 bits is none in the computation.
fn above_zero(value: &Value) -> Option<f64> {
    value.as_f64().filter(|&number| (number as f32).is_finite() && number as f32 > 0.0)
}

fn wanted(most: usize) -> String {
    format!("a whole number from 1 to {most}")
}

/// A value in a message: not all of it where it is long.
fn shown(value: &Value) -> String {
    const LONGEST: usize = 80;
    let mut text = value.to_string();
    if let Some((end, _)) = text.char_indices().nth(LONGEST) {
        text.truncate(end);
        text.push('…');
    }
    text
}

/// All of a regular file of settings.
pub(crate) fn read_file(path: &Path) -> Result<Vec<u8>> {
    let failed = |what: &str| error(ErrorKind::Io, format!("{} {what}", path.display()));
    let unreadable = |why: std::io::Error| failed(&format!("cannot be read: {why}")).with_source(why);
    // Opening a pipe would wait for someone to write to it.
    if !std::fs::metadata(path).map_err(unreadable)?.is_file() {
        return Err(failed("is not a regular file"));
    }
    let mut bytes = Vec::new();
    File::open(path).map_err(unreadable)?.take(MAX_BYTES + 1).read_to_end(&mut bytes).map_err(unreadable)?;
    if bytes.len() as u64 > MAX_BYTES {
        return Err(invalid(path, format!("has more than {MAX_BYTES} bytes, which is more than any such file needs")));
    }
    Ok(bytes)
}

fn invalid(path: &Path, message: impl AsRef<str>) -> Error {
    error(ErrorKind::InvalidModel, format!("{}: {}", path.display(), message.as_ref()))
}
