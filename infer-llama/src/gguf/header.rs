//! What a GGUF header says.

use super::{DType, Value, value::Array};
use infer_core::ModelInfo;
use std::path::{Path, PathBuf};

/// The header of a model: its metadata and the list of its tensors. Reading it needs no native code and none of the weights.
///
/// A model that was split into several files has one header too: the metadata of the first file, and the tensors of all.
#[derive(Clone, Debug, PartialEq)]
pub struct Header {
    pub(super) version: u32,
    pub(super) metadata: Vec<(String, Value)>,
    pub(super) tensors: Vec<Tensor>,
    pub(super) parts: Vec<Part>,
}

/// One file of a model.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Part {
    pub(super) path: PathBuf,
    pub(super) bytes: u64,
    pub(super) data: u64,
}

/// A tensor as the header describes it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tensor {
    pub(super) name: String,
    pub(super) shape: Vec<u64>,
    pub(super) dtype: DType,
    pub(super) elements: u64,
    pub(super) bytes: u64,
    pub(super) offset: u64,
    pub(super) part: usize,
}

/// All tensors of one number format, taken together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Weights {
    /// The format.
    pub dtype: DType,
    /// How many tensors are of it.
    pub tensors: usize,
    /// The numbers in them.
    pub elements: u64,
    /// The bytes they take.
    pub bytes: u64,
}

impl Part {
    /// The file.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Its size.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Where the tensors' data begin, in bytes from the beginning of the file.
    #[must_use]
    pub fn data_offset(&self) -> u64 {
        self.data
    }
}

impl Tensor {
    /// Its name, such as `blk.0.attn_q.weight`.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Its sizes, the one that is contiguous in memory first.
    #[must_use]
    pub fn shape(&self) -> &[u64] {
        &self.shape
    }

    /// The format of its numbers.
    #[must_use]
    pub fn dtype(&self) -> DType {
        self.dtype
    }

    /// How many numbers it has.
    #[must_use]
    pub fn elements(&self) -> u64 {
        self.elements
    }

    /// How many bytes it takes.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Where it begins, in bytes from the beginning of its file.
    #[must_use]
    pub fn offset(&self) -> u64 {
        self.offset
    }

    /// Which of [`Header::parts`] it lies in.
    #[must_use]
    pub fn part(&self) -> usize {
        self.part
    }
}

impl Header {
    /// The version of the format: 2 or 3.
    #[must_use]
    pub fn version(&self) -> u32 {
        self.version
    }

    /// All metadata fields, in the order of the file.
    pub fn metadata(&self) -> impl ExactSizeIterator<Item = (&str, &Value)> {
        self.metadata.iter().map(|(key, value)| (key.as_str(), value))
    }

    /// All tensors, in the order of the files.
    #[must_use]
    pub fn tensors(&self) -> &[Tensor] {
        &self.tensors
    }

    /// The files the model lies in; one, unless it was split.
    #[must_use]
    pub fn parts(&self) -> &[Part] {
        &self.parts
    }

    /// A metadata field by its full name.
    #[must_use]
    pub fn value(&self, key: &str) -> Option<&Value> {
        self.metadata.iter().find(|(name, _)| name == key).map(|(_, value)| value)
    }

    /// A metadata field of the model's architecture: `field("block_count")` is `llama.block_count` in a `llama` model.
    #[must_use]
    pub fn field(&self, name: &str) -> Option<&Value> {
        self.value(&format!("{}.{name}", self.architecture()?))
    }

    /// The architecture, such as `llama`.
    #[must_use]
    pub fn architecture(&self) -> Option<&str> {
        self.value("general.architecture")?.as_str()
    }

    /// A tensor by its name.
    #[must_use]
    pub fn tensor(&self, name: &str) -> Option<&Tensor> {
        self.tensors.iter().find(|tensor| tensor.name == name)
    }

    /// The weights by number format, the format with the most bytes first.
    #[must_use]
    pub fn weights(&self) -> Vec<Weights> {
        let mut all: Vec<Weights> = Vec::new();
        for tensor in &self.tensors {
            let at = all.iter().position(|weights| weights.dtype == tensor.dtype).unwrap_or_else(|| {
                all.push(Weights { dtype: tensor.dtype, tensors: 0, elements: 0, bytes: 0 });
                all.len() - 1
            });
            all[at].tensors += 1;
            all[at].elements = all[at].elements.saturating_add(tensor.elements);
            all[at].bytes = all[at].bytes.saturating_add(tensor.bytes);
        }
        all.sort_by_key(|weights| std::cmp::Reverse(weights.bytes));
        all
    }

    /// A whole number that is one for all layers or an array with one for each, as a list with one entry a layer. `None`
    /// where it is neither, or not there.
    #[must_use]
    pub fn per_layer(&self, name: &str) -> Option<Vec<u64>> {
        let layers = usize::try_from(self.field("block_count")?.as_u64()?).ok().filter(|&layers| layers <= 4096)?;
        match self.field(name)? {
            Value::Array(array @ (Array::U32(_) | Array::I32(_))) => {
                (0..array.len()).map(|index| array.item(index)?.as_u64()).collect()
            }
            Value::Array(_) => None,
            value => value.as_u64().map(|value| vec![value; layers]),
        }
    }

    /// The same facts in the words that all backends share. Of a number that differs between layers it has the largest.
    #[must_use]
    pub fn info(&self) -> ModelInfo {
        let number = |name| self.field(name).and_then(Value::as_u64).and_then(|n| usize::try_from(n).ok()).unwrap_or(0);
        let largest = |name| {
            self.per_layer(name)
                .and_then(|all| all.into_iter().max())
                .and_then(|n| usize::try_from(n).ok())
                .unwrap_or(0)
        };
        let text = |key| self.value(key).and_then(Value::as_str).map(str::to_owned);
        let heads = largest("attention.head_count");
        let mut info = ModelInfo::default();
        info.architecture = self.architecture().unwrap_or_default().to_owned();
        info.name = text("general.name");
        info.vocab = self.vocab().unwrap_or(0);
        info.context = number("context_length");
        info.layers = number("block_count");
        info.width = number("embedding_length");
        info.heads = heads;
        info.kv_heads =
            if self.field("attention.head_count_kv").is_some() { largest("attention.head_count_kv") } else { heads };
        info.parameters = self.tensors.iter().fold(0, |sum: u64, tensor| sum.saturating_add(tensor.elements));
        info.bytes = self.tensors.iter().fold(0, |sum: u64, tensor| sum.saturating_add(tensor.bytes));
        info.chat_template = text("tokenizer.chat_template");
        info.description = self.description(&info);
        info
    }

    /// Lets go of arrays of more than 1,024 elements: the vocabulary, mostly.
    pub(crate) fn forget_large(&mut self) {
        self.metadata.retain(|(_, value)| !matches!(value, Value::Array(array) if array.len() > 1024));
        self.metadata.shrink_to_fit();
    }

    /// Entries of the vocabulary: the token list's, or what stands in for one.
    fn vocab(&self) -> Option<usize> {
        if let Some(tokens) = self.value("tokenizer.ggml.tokens").and_then(Value::as_strings) {
            return Some(tokens.len());
        }
        usize::try_from(self.field("vocab_size")?.as_u64()?).ok()
    }

    fn description(&self, info: &ModelInfo) -> String {
        let mut text = info.architecture.clone();
        if info.parameters > 0 {
            let parameters = match info.parameters {
                many @ 1_000_000_000.. => format!("{:.1} B", many as f64 / 1e9),
                many @ 1_000_000.. => format!("{:.0} M", many as f64 / 1e6),
                few => few.to_string(),
            };
            text += &format!(", {parameters} parameters");
        }
        if let Some(main) = self.weights().first() {
            text += &format!(", mostly {}", main.dtype);
        }
        text
    }
}
