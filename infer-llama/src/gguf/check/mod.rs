//! What llama.cpp does not survive, or survives and computes nonsense with.
//!
//! At the pinned version a header can end the process by way of an assertion, a division by zero or a wild read, and other
//! headers load without a word and give wrong answers. Each such case is refused here by the name of its field. Where a
//! check mirrors an assertion it is as strict as that and no stricter, so that no file which works is refused; what
//! llama.cpp itself refuses with a reason (a missing tensor, a wrong shape) is left to it.

mod adapter;
mod hparams;
mod tensors;
mod vocab;

use super::{Array, Header, Value, invalid};
use infer_core::Result;

/// What a model file is opened for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Purpose {
    /// Its vocabulary only: weights are not looked at, and need not be there.
    Vocab,
    /// Everything.
    Model,
}

impl Header {
    /// Refuses what llama.cpp would end the process over, or take in silence and compute nonsense with.
    ///
    /// # Errors
    /// [`InvalidModel`](infer_core::ErrorKind::InvalidModel), naming the file and the field or tensor.
    pub fn check(&self, purpose: Purpose) -> Result<()> {
        let facts = Facts::new(self)?;
        if self.value("general.type").and_then(Value::as_str) == Some("adapter") {
            return facts.refuse(
                "general.type is \"adapter\": it is an adapter, not a model; open the model that it was made for and give this file \
                 to a session of it (SessionOptions::with_adapter, `infer generate --adapter`)",
            );
        }
        vocab::check(&facts)?;
        hparams::check(&facts, purpose)?;
        if purpose == Purpose::Model {
            tensors::check(&facts)?;
        }
        Ok(())
    }
}

/// A header with its architecture known, and fields read the way llama.cpp reads them: of one type, or not at all.
struct Facts<'h> {
    header: &'h Header,
    architecture: &'h str,
}

impl<'h> Facts<'h> {
    fn new(header: &'h Header) -> Result<Self> {
        let architecture = match header.value("general.architecture") {
            Some(Value::String(bytes)) => str::from_utf8(bytes).ok().filter(|name| is_word(name)),
            _ => None,
        };
        let Some(architecture) = architecture else {
            let said = header.value("general.architecture").map_or("missing".into(), |value| value.to_string());
            let message = format!("general.architecture is {said}, the name of an architecture is wanted");
            return Err(invalid(header.parts[0].path(), message));
        };
        Ok(Self { header, architecture })
    }

    fn refuse<T>(&self, message: impl AsRef<str>) -> Result<T> {
        Err(invalid(self.header.parts[0].path(), message))
    }

    /// The full name of one of the architecture's fields.
    fn key(&self, name: &str) -> String {
        format!("{}.{name}", self.architecture)
    }

    fn wrong_type<T>(&self, key: &str, value: &Value, wanted: &str) -> Result<T> {
        self.refuse(format!("{key} is of type {}, {wanted} is wanted", value.type_name()))
    }

    fn u32_at(&self, key: &str) -> Result<Option<u32>> {
        match self.header.value(key) {
            None => Ok(None),
            Some(&Value::U32(value)) => Ok(Some(value)),
            Some(other) => self.wrong_type(key, other, "u32"),
        }
    }

    fn u32(&self, name: &str) -> Result<Option<u32>> {
        self.u32_at(&self.key(name))
    }

    fn f32(&self, name: &str) -> Result<Option<f32>> {
        let key = self.key(name);
        match self.header.value(&key) {
            None => Ok(None),
            Some(&Value::F32(value)) => Ok(Some(value)),
            Some(other) => self.wrong_type(&key, other, "f32"),
        }
    }

    /// A string that C must read as Rust does.
    fn text(&self, key: &str) -> Result<Option<&'h str>> {
        match self.header.value(key) {
            None => Ok(None),
            Some(Value::String(bytes)) => match str::from_utf8(bytes) {
                Ok(text) if !text.contains('\0') => Ok(Some(text)),
                _ => self.refuse(format!("{key} has a NUL, or is not UTF-8")),
            },
            Some(other) => self.wrong_type(key, other, "a string"),
        }
    }

    /// A number that may differ between layers: one for all (`u32`), or an array with one for each of `layers`.
    fn per_layer(&self, name: &str, layers: usize) -> Result<Option<Vec<u32>>> {
        let key = self.key(name);
        let all = match self.header.value(&key) {
            None => return Ok(None),
            Some(&Value::U32(value)) => return Ok(Some(vec![value; layers])),
            Some(Value::Array(Array::U32(items))) => items.clone(),
            Some(Value::Array(Array::I32(items))) => {
                let Ok(items) = items.iter().map(|&item| u32::try_from(item)).collect() else {
                    return self.refuse(format!("{key} has a negative number"));
                };
                items
            }
            Some(Value::Array(Array::Bool(items))) => items.iter().map(|&item| item.into()).collect(),
            Some(other) => return self.wrong_type(&key, other, "u32, or an array with one number a layer,"),
        };
        if all.len() != layers {
            return self.refuse(format!("{key} has {} numbers for {layers} layers", all.len()));
        }
        Ok(Some(all))
    }
}

fn is_word(name: &str) -> bool {
    !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.'))
}
