use super::damaged;
use crate::{Error, ModelInfo, Result, Token};
use std::fmt;
use twox_hash::XxHash3_128;

/// What tells one model from another: 128 bits over everything its file says of itself and some bytes of each tensor.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Fingerprint([u8; 16]);

impl Fingerprint {
    /// The fingerprint of these pieces, in this order and cut like this.
    #[must_use]
    pub fn of<P: AsRef<[u8]>>(pieces: impl IntoIterator<Item = P>) -> Self {
        let mut hasher = XxHash3_128::new();
        for piece in pieces {
            let piece = piece.as_ref();
            hasher.write(&(piece.len() as u64).to_le_bytes());
            hasher.write(piece);
        }
        Self(hasher.finish_128().to_le_bytes())
    }
}

impl fmt::Display for Fingerprint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl fmt::Debug for Fingerprint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Fingerprint({self})")
    }
}

/// The adapter that a saved sequence was computed with.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct UsedAdapter {
    /// What its session calls it, and by which another one finds its own.
    pub name: String,
    /// What tells it from others of that name: its weights, and how strong it is.
    pub fingerprint: Fingerprint,
}

impl UsedAdapter {
    /// An adapter of this name.
    #[must_use]
    pub fn new(name: impl Into<String>, fingerprint: Fingerprint) -> Self {
        Self { name: name.into(), fingerprint }
    }

    /// Whether `here`, which a session has under this name, is the same.
    ///
    /// # Errors
    /// [`InvalidInput`](crate::ErrorKind::InvalidInput) where it is another, or of another strength.
    pub fn check(&self, here: Fingerprint) -> Result<()> {
        if self.fingerprint == here {
            return Ok(());
        }
        Err(Error::invalid_input(format!(
            "the saved state was computed with another adapter {:?} than this session has under that name, or at another scale",
            self.name
        )))
    }
}

/// What a saved sequence is, and where it fits.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Header {
    /// The backend whose bytes the payload is.
    pub backend: String,
    /// The model.
    pub model: Fingerprint,
    /// The model in words, for errors.
    pub model_name: String,
    /// What else must be the same for the payload to fit, by name: number formats, layouts.
    pub shape: Vec<(String, String)>,
    /// The adapter the sequence was computed with.
    pub adapter: Option<UsedAdapter>,
    /// The tokens of the sequence.
    pub tokens: Vec<Token>,
    /// Bytes of the payload.
    pub payload: u64,
}

impl Header {
    /// The header of an empty sequence with nothing in its payload.
    #[must_use]
    pub fn new(backend: impl Into<String>, model: Fingerprint, model_name: impl Into<String>) -> Self {
        Self {
            backend: backend.into(),
            model,
            model_name: model_name.into(),
            shape: Vec::new(),
            adapter: None,
            tokens: Vec::new(),
            payload: 0,
        }
    }

    /// The header of an empty sequence of the model that this is known of, with nothing in its payload.
    #[must_use]
    pub fn of_model(backend: impl Into<String>, model: Fingerprint, info: &ModelInfo) -> Self {
        /// The name is for people, and comes from a file that may say anything.
        const NAME: usize = 256;
        let name = info.name.as_ref().unwrap_or(&info.description);
        Self::new(backend, model, &name[..name.floor_char_boundary(NAME)])
    }

    /// Adds to the [`shape`](Self::shape): something that must be the same, with its value.
    #[must_use]
    pub fn with_shape(mut self, name: impl Into<String>, value: impl ToString) -> Self {
        self.shape.push((name.into(), value.to_string()));
        self
    }

    /// Whether a state with this header can be restored where one that is saved gets the header `here`: all but adapter, tokens
    /// and payload must be the same.
    ///
    /// # Errors
    /// [`InvalidInput`](crate::ErrorKind::InvalidInput), with what does not fit.
    pub fn check(&self, here: &Self) -> Result<()> {
        if self.backend != here.backend {
            let message = format!("the saved state is of the backend {:?}, this is {:?}", self.backend, here.backend);
            return Err(Error::invalid_input(message));
        }
        if self.model != here.model {
            return Err(Error::invalid_input(format!(
                "the saved state is of another model: {:?} ({}), this is {:?} ({})",
                self.model_name, self.model, here.model_name, here.model
            )));
        }
        for (name, value) in &here.shape {
            let saved = self.shape.iter().find(|(other, _)| other == name).map(|(_, value)| value);
            if saved != Some(value) {
                let saved = saved.map_or("none", String::as_str);
                return Err(Error::invalid_input(format!(
                    "the saved state does not fit this session: its {name} is {saved}, here it is {value}"
                )));
            }
        }
        match self.shape.iter().find(|(name, _)| !here.shape.iter().any(|(other, _)| other == name)) {
            Some((name, value)) => Err(Error::invalid_input(format!(
                "the saved state does not fit this session: its {name} is {value}, here there is no such thing"
            ))),
            None => Ok(()),
        }
    }

    /// Checks that the tokens are of a vocabulary with so many.
    ///
    /// # Errors
    /// [`InvalidInput`](crate::ErrorKind::InvalidInput) where one is outside.
    pub fn check_tokens(&self, vocab: usize) -> Result<()> {
        if self.tokens.iter().any(|token| token.index() >= vocab) {
            return Err(Error::invalid_input("the saved state has a token outside the vocabulary"));
        }
        Ok(())
    }

    /// Checks that the sequence was computed without an adapter, for a backend that has none.
    ///
    /// # Errors
    /// [`InvalidInput`](crate::ErrorKind::InvalidInput), with the adapter's name.
    pub fn check_no_adapter(&self) -> Result<()> {
        match &self.adapter {
            None => Ok(()),
            Some(UsedAdapter { name, .. }) => Err(Error::invalid_input(format!(
                "the saved state was computed with the adapter {name:?}; there is none here"
            ))),
        }
    }

    /// Checks that the payload has so many bytes, for a backend where that follows from the number of positions.
    ///
    /// # Errors
    /// [`InvalidInput`](crate::ErrorKind::InvalidInput), with both numbers.
    pub fn check_payload(&self, bytes: u64) -> Result<()> {
        if self.payload == bytes {
            return Ok(());
        }
        Err(Error::invalid_input(format!(
            "the saved state has {} bytes for {} positions, which take {bytes} here",
            self.payload,
            self.tokens.len(),
        )))
    }

    /// Everything but tokens and payload.
    pub(super) fn describe(&self) -> Vec<u8> {
        let mut out = Vec::new();
        put(&mut out, &self.backend);
        out.extend(self.model.0);
        put(&mut out, &self.model_name);
        out.extend((self.shape.len() as u16).to_le_bytes());
        for (name, value) in &self.shape {
            put(&mut out, name);
            put(&mut out, value);
        }
        out.push(self.adapter.is_some().into());
        if let Some(adapter) = &self.adapter {
            put(&mut out, &adapter.name);
            out.extend(adapter.fingerprint.0);
        }
        out
    }

    pub(super) fn parse(mut bytes: &[u8], tokens: Vec<Token>, payload: u64) -> Result<Self> {
        let bytes = &mut bytes;
        let backend = take_text(bytes)?;
        let model = Fingerprint(take(bytes)?);
        let mut header = Self { tokens, payload, ..Self::new(backend, model, take_text(bytes)?) };
        for _ in 0..u16::from_le_bytes(take(bytes)?) {
            header.shape.push((take_text(bytes)?, take_text(bytes)?));
        }
        header.adapter = match take(bytes)? {
            [0] => None,
            [1] => Some(UsedAdapter::new(take_text(bytes)?, Fingerprint(take(bytes)?))),
            _ => return Err(damaged("its adapter is neither there nor missing")),
        };
        if bytes.is_empty() { Ok(header) } else { Err(damaged("its description is longer than it should be")) }
    }
}

/// A text with its length before it. One whose length does not fit is longer than a whole description can be, which the writer refuses.
fn put(out: &mut Vec<u8>, text: &str) {
    out.extend((text.len() as u16).to_le_bytes());
    out.extend(text.as_bytes());
}

fn take<const N: usize>(bytes: &mut &[u8]) -> Result<[u8; N]> {
    let (taken, rest) = bytes.split_first_chunk().ok_or_else(|| damaged("its description ends early"))?;
    *bytes = rest;
    Ok(*taken)
}

fn take_text(bytes: &mut &[u8]) -> Result<String> {
    let len = u16::from_le_bytes(take(bytes)?).into();
    let (text, rest) = bytes.split_at_checked(len).ok_or_else(|| damaged("its description ends early"))?;
    *bytes = rest;
    String::from_utf8(text.into()).map_err(|_| damaged("its description is not text"))
}
