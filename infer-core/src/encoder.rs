use crate::{Error, Interrupt, ModelInfo, Result, Token};
use std::sync::Arc;

/// How the hidden states of a text's tokens become its result.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[non_exhaustive]
pub enum Pooling {
    /// They stay as they are: one vector a token.
    None,
    /// Their mean.
    Mean,
    /// The first token's, which BERT's kind train for this.
    Cls,
    /// The last token's, as decoders that were made into encoders have it.
    Last,
    /// The largest of each of their numbers.
    Max,
    /// The vector that the model itself makes of them, where its graph gives one a text and does not say how.
    Model,
    /// The scores of a classification head: one number a label, or one in all for a reranker.
    Rank,
}

/// How an encoder is made. Whatever is left out takes the model's or the machine's own value.
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize), serde(default))]
#[non_exhaustive]
pub struct EncoderOptions {
    /// How tokens become one result; `None` is what the model was trained for, which a decoder does not say.
    pub pooling: Option<Pooling>,
    /// Divide each vector by its Euclidean length, so that the dot product of two is their cosine. Scores
    /// ([`Pooling::Rank`]) are left alone.
    pub normalize: bool,
    /// Tokens one text can have; `None` is what the model was trained for.
    pub context: Option<usize>,
    /// Tokens a pass is filled up to with several texts; `None` is the backend's default. A text cannot be cut: one that is
    /// longer has a pass of its own. More is not faster for ever, since every token of a pass is compared with every other one.
    pub batch: Option<usize>,
    /// Threads a pass uses; `None` is as many as this process may run on.
    pub threads: Option<usize>,
}

impl Default for EncoderOptions {
    fn default() -> Self {
        Self { pooling: None, normalize: true, context: None, batch: None, threads: None }
    }
}

impl EncoderOptions {
    /// As the model was trained, normalised.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Sets [`pooling`](Self::pooling).
    #[must_use]
    pub fn with_pooling(mut self, pooling: Pooling) -> Self {
        self.pooling = Some(pooling);
        self
    }

    /// Sets [`normalize`](Self::normalize).
    #[must_use]
    pub fn with_normalize(mut self, normalize: bool) -> Self {
        self.normalize = normalize;
        self
    }

    /// Sets [`context`](Self::context).
    #[must_use]
    pub fn with_context(mut self, tokens: usize) -> Self {
        self.context = Some(tokens);
        self
    }

    /// Sets [`batch`](Self::batch).
    #[must_use]
    pub fn with_batch(mut self, tokens: usize) -> Self {
        self.batch = Some(tokens);
        self
    }

    /// Sets [`threads`](Self::threads).
    #[must_use]
    pub fn with_threads(mut self, threads: usize) -> Self {
        self.threads = Some(threads);
        self
    }
}

/// What an encoder gives and takes. Fixed when it is made.
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[non_exhaustive]
pub struct EncoderInfo {
    /// How tokens become one result.
    pub pooling: Pooling,
    /// Numbers in one vector: the width of the hidden state, or the number of scores.
    pub width: usize,
    /// Whether vectors have length 1.
    pub normalized: bool,
    /// Tokens one text can have.
    pub context: usize,
    /// Tokens a pass is filled up to with several texts; a longer text has a pass of its own.
    pub batch: usize,
    /// Texts one pass can have.
    pub texts: usize,
    /// What the numbers of [`Pooling::Rank`] are the scores of, in order; empty where the model does not say.
    pub labels: Vec<String>,
}

impl EncoderInfo {
    /// An encoder with vectors of `width` numbers that takes texts of up to `context` tokens, one a pass.
    #[must_use]
    pub const fn new(pooling: Pooling, width: usize, context: usize) -> Self {
        Self { pooling, width, normalized: false, context, batch: context, texts: 1, labels: Vec::new() }
    }

    /// For backends: whether texts can be encoded, before anything is computed. `vocab` is how many tokens there are.
    ///
    /// # Errors
    /// [`InvalidInput`](crate::ErrorKind::InvalidInput), naming the text by its index, for one that is empty, longer than
    /// [`context`](Self::context), or has a token outside the vocabulary; and for more vectors than 2^32.
    pub fn check(&self, texts: &[&[Token]], vocab: usize) -> Result<()> {
        let mut vectors = 0_usize;
        for (index, text) in texts.iter().enumerate() {
            if text.is_empty() {
                return Err(Error::invalid_input(format!("text {index} has no tokens; give it one, or leave it out")));
            }
            if text.len() > self.context {
                return Err(Error::invalid_input(format!(
                    "text {index} has {} tokens, and {} fit; shorten it or cut it in pieces",
                    text.len(),
                    self.context
                )));
            }
            if let Some((at, token)) = text.iter().enumerate().find(|(_, token)| token.index() >= vocab) {
                return Err(Error::invalid_input(format!(
                    "token {at} of text {index} is {token}, outside the vocabulary of {vocab}"
                )));
            }
            vectors = vectors.saturating_add(if self.pooling == Pooling::None { text.len() } else { 1 });
        }
        match u32::try_from(vectors) {
            Ok(_) => Ok(()),
            Err(_) => Err(Error::invalid_input(format!("{vectors} vectors are wanted at once; encode fewer texts"))),
        }
    }

    /// For backends: divides a vector by its Euclidean length, where vectors are [`normalized`](Self::normalized). One of
    /// length 0 stays as it is.
    pub fn normalize(&self, vector: &mut [f32]) {
        if !self.normalized {
            return;
        }
        // In 64 bits: squares of 32-bit numbers neither overflow nor vanish there.
        let length = vector.iter().map(|&number| f64::from(number).powi(2)).sum::<f64>().sqrt();
        if length > 0.0 {
            vector.iter_mut().for_each(|number| *number = (f64::from(*number) / length) as f32);
        }
    }
}

/// A model that turns texts into vectors or scores: embeddings, classification, reranking.
///
/// It has no cells and remembers nothing: a result depends on the text alone, not on what was encoded before or beside it,
/// but for rounding: how many texts share a pass may decide in which order a runtime adds.
/// Like a [`Session`](crate::Session) it lives on the thread that made it.
///
/// ```
/// # #[cfg(feature = "testing")] {
/// use infer_core::{Encoder, EncoderOptions, Model, Special, testing::ScriptedModel};
///
/// let model = ScriptedModel::default();
/// let mut encoder = model.encoder(&EncoderOptions::new())?;
/// let mut texts = Vec::new();
/// for text in ["The ferry leaves at nine.", "A boat goes at nine.", "I like pears."] {
///     let mut tokens = Vec::new();
///     model.tokenizer().encode(text, Special::ADD, &mut tokens)?;
///     texts.push(tokens);
/// }
/// let texts: Vec<_> = texts.iter().map(Vec::as_slice).collect();
/// encoder.encode(&texts)?;
///
/// let vectors = encoder.vectors();
/// let dot = |a: &[f32], b: &[f32]| a.iter().zip(b).map(|(a, b)| a * b).sum::<f32>();
/// let [ferry, boat, pears] = [0, 1, 2].map(|text| vectors.vector(text).unwrap());
/// assert!(dot(ferry, boat) > dot(ferry, pears)); // of length 1, so the dot product is the cosine
/// # }
/// # Ok::<(), infer_core::Error>(())
/// ```
pub trait Encoder {
    /// The model.
    fn model(&self) -> &Arc<ModelInfo>;

    /// What it gives and takes.
    fn info(&self) -> &EncoderInfo;

    /// A handle that stops a running [`encode`](Self::encode) from any thread.
    fn interrupt(&self) -> Interrupt;

    /// Appends the tokens of two texts in the form this model compares them in, such as a query and a document for a
    /// reranker.
    ///
    /// # Errors
    /// [`Unsupported`](crate::ErrorKind::Unsupported) for a model that has no such form.
    fn pair(&self, first: &str, second: &str, out: &mut Vec<Token>) -> Result<()> {
        let _ = (first, second, out);
        Err(Error::unsupported("this model does not compare two texts"))
    }

    /// Encodes texts, each given as its tokens, special ones included. Any number of them: they are put into as many passes as
    /// it takes. Afterwards [`vectors`](Self::vectors) has the results, in the order of the texts.
    ///
    /// # Errors
    /// [`InvalidInput`](crate::ErrorKind::InvalidInput) for a text that is empty, longer than
    /// [`context`](EncoderInfo::context), or has a token outside the vocabulary, by its index, before anything is computed;
    /// [`OutOfMemory`](crate::ErrorKind::OutOfMemory) when the vectors do not fit the memory there is;
    /// [`Cancelled`](crate::ErrorKind::Cancelled); [`Runtime`](crate::ErrorKind::Runtime). There are no results then, and
    /// the encoder can be used again.
    fn encode(&mut self, texts: &[&[Token]]) -> Result<()>;

    /// What the last [`encode`](Self::encode) brought; empty after one that failed.
    fn vectors(&self) -> Vectors<'_>;
}

/// A boxed encoder is one.
impl<E: Encoder + ?Sized> Encoder for Box<E> {
    fn model(&self) -> &Arc<ModelInfo> {
        (**self).model()
    }

    fn info(&self) -> &EncoderInfo {
        (**self).info()
    }

    fn interrupt(&self) -> Interrupt {
        (**self).interrupt()
    }

    fn pair(&self, first: &str, second: &str, out: &mut Vec<Token>) -> Result<()> {
        (**self).pair(first, second, out)
    }

    fn encode(&mut self, texts: &[&[Token]]) -> Result<()> {
        (**self).encode(texts)
    }

    fn vectors(&self) -> Vectors<'_> {
        (**self).vectors()
    }
}

/// The vectors of some texts: a view that the next [`encode`](Encoder::encode) ends.
///
/// ```
/// use infer_core::Vectors;
///
/// let vectors = Vectors::new(&[1.0, 0.0, 0.6, 0.8], 2, &[1, 2]);
/// assert_eq!(vectors.len(), 2);
/// assert_eq!(vectors.vector(1), Some(&[0.6, 0.8][..]));
/// assert_eq!(vectors.vector(2), None);
/// ```
#[derive(Clone, Copy, Debug, Default)]
pub struct Vectors<'e> {
    data: &'e [f32],
    width: usize,
    ends: &'e [u32],
}

impl<'e> Vectors<'e> {
    /// For backends: `data` holds vectors of `width` numbers one after the other, those of text `i` ending before vector
    /// `ends[i]`.
    #[must_use]
    pub const fn new(data: &'e [f32], width: usize, ends: &'e [u32]) -> Self {
        Self { data, width, ends }
    }

    /// How many texts there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.ends.len()
    }

    /// Whether there is nothing to read.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.ends.is_empty()
    }

    /// Text `text`'s vector; the first one, where there is one a token. [`EncoderInfo::width`] numbers.
    #[must_use]
    pub fn vector(&self, text: usize) -> Option<&'e [f32]> {
        self.tokens(text).next()
    }

    /// All vectors of text `text`: one a token with [`Pooling::None`], else one.
    pub fn tokens(&self, text: usize) -> impl ExactSizeIterator<Item = &'e [f32]> + use<'e> {
        let end = self.ends.get(text).map_or(0, |&end| end as usize);
        let start = text.checked_sub(1).and_then(|before| self.ends.get(before)).map_or(0, |&end| end as usize);
        let part = self.data.get(start * self.width..end * self.width).unwrap_or_default();
        part.chunks_exact(self.width.max(1))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn finds_vectors_by_text() {
        let data: Vec<f32> = (0_u8..10).map(f32::from).collect();
        let vectors = Vectors::new(&data, 2, &[2, 2, 5]);
        assert_eq!(vectors.len(), 3);
        assert_eq!(vectors.tokens(0).collect::<Vec<_>>(), [&[0.0, 1.0][..], &[2.0, 3.0]]);
        assert_eq!((vectors.tokens(1).len(), vectors.vector(1)), (0, None));
        assert_eq!((vectors.tokens(2).len(), vectors.vector(2)), (3, Some(&[4.0, 5.0][..])));
        assert_eq!((vectors.tokens(3).len(), vectors.vector(3)), (0, None));
        assert!(Vectors::default().is_empty() && Vectors::default().vector(0).is_none());
    }
}
