//! A model that turns texts into vectors.

mod open;
mod pool;

use self::pool::pool;
use crate::{
    DType, Model,
    error::{BACKEND, error},
};
use infer_core::{
    EncoderInfo, Error, ErrorKind, Interrupt, ModelInfo, PaddedPasses, PassRoom, Result, Token, VectorTable, Vectors,
};
use std::{
    fmt,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
};

/// A BERT behind [`infer_core::Encoder`].
///
/// What the trait leaves to a backend, here:
/// - Texts are sorted by length and cut into passes, so that padding and passes together cost least, up to
///   [`batch`](EncoderInfo::batch) tokens with the padding; a longer text has a pass of its own. A pass is one graph, evaluated at once.
/// - [`None`](infer_core::Pooling::None), [`Mean`](infer_core::Pooling::Mean), [`Cls`](infer_core::Pooling::Cls), [`Last`](infer_core::Pooling::Last) and [`Max`](infer_core::Pooling::Max) are
///   of its hidden states; by default what `1_Pooling/config.json` says. They are pooled where they are computed, in 32 bits.
/// - There are no classification heads: [`Rank`](infer_core::Pooling::Rank) and [`pair`](infer_core::Encoder::pair) are `Unsupported`.
/// - The interrupt is looked at before each pass, which itself cannot be stopped.
///
/// Like all that is made of MLX it stays on its thread.
///
/// ```
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let path = build_support::fixtures::model("minilm-mlx")?;
/// use infer_core::{Encoder as _, EncoderOptions, Special, Tokenizer as _};
/// use infer_mlx::{LoadOptions, Mlx, Model};
///
/// let model = Model::open(&Mlx::load(&LoadOptions::new())?, path)?;
/// let mut encoder = model.encoder(&EncoderOptions::new())?;
/// let (mut question, mut answer) = (Vec::new(), Vec::new());
/// model.tokenizer().encode("When does the boat go?", Special::ADD, &mut question)?;
/// model.tokenizer().encode("The ferry leaves at nine.", Special::ADD, &mut answer)?;
///
/// encoder.encode(&[&question, &answer])?;
/// let vectors = encoder.vectors();
/// let (question, answer) = (vectors.vector(0).unwrap(), vectors.vector(1).unwrap());
/// let cosine: f32 = question.iter().zip(answer).map(|(a, b)| a * b).sum();
/// assert!(cosine > 0.4);
/// # Ok(())
/// # }
/// ```
pub struct Encoder {
    model: Model,
    info: EncoderInfo,
    vocab: usize,
    /// What is at places behind a text.
    padding: Token,
    stop: Arc<AtomicBool>,
    table: VectorTable,
    passes: PaddedPasses,
    /// The tokens of the pass that is made, row by row: kept for its memory.
    tokens: Vec<u32>,
}

impl Encoder {
    /// The model, as this crate has it.
    #[must_use]
    pub fn mlx_model(&self) -> &Model {
        &self.model
    }

    /// Computes some texts together, by their places in `texts`, and puts their vectors where they are to be.
    fn pass(&mut self, texts: &[&[Token]], pass: usize) -> Result<()> {
        if self.stop.load(Ordering::Relaxed) {
            return Err(error(ErrorKind::Cancelled, "the pass was stopped by an interrupt"));
        }
        let Self { model, info, padding, table, passes, tokens, .. } = self;
        let batch = passes.pass(pass);
        let lengths: Vec<u32> = batch.iter().map(|&text| count(texts[text as usize].len())).collect();
        // The longest text is the first.
        let longest = texts[batch[0] as usize].len();
        tokens.clear();
        for &text in batch {
            let end = tokens.len() + longest;
            tokens.extend(texts[text as usize].iter().map(|token| token.0));
            tokens.resize(end, padding.0);
        }
        let scope = model.mlx().scope();
        let found = {
            // Freed before anything is evaluated, so that memory is used again as soon as it can be.
            let inner = scope.nest();
            let tokens = inner.array(tokens, &[batch.len(), longest]);
            let lengths = inner.array(&lengths, &[batch.len(), 1]);
            let is_padded = texts[batch[batch.len() - 1] as usize].len() < longest;
            let mask = is_padded.then(|| inner.arange(0, longest as i32, DType::U32).lt(lengths));
            let hidden = model.bert()?.forward(&inner, tokens, mask, None, longest).as_type(DType::F32);
            inner.keep(pool(hidden, info.pooling, mask, lengths).contiguous())
        };
        scope.eval([found])?;
        let rows = found.data::<f32>()?.chunks_exact(found.shape().iter().skip(1).map(|&size| size as usize).product());
        for (&text, row) in batch.iter().zip(rows) {
            let place = table.text_mut(text as usize);
            place.copy_from_slice(&row[..place.len()]);
            table.end_text(text as usize, info).map_err(|error| error.with_backend(BACKEND))?;
        }
        Ok(())
    }
}

/// A number of tokens, of which there are fewer than positions.
fn count(tokens: usize) -> u32 {
    u32::try_from(tokens).expect("it was checked to be within the model's positions")
}

impl infer_core::Encoder for Encoder {
    fn model(&self) -> &Arc<ModelInfo> {
        self.model.info()
    }

    fn info(&self) -> &EncoderInfo {
        &self.info
    }

    fn interrupt(&self) -> Interrupt {
        let stop = self.stop.clone();
        Interrupt::new(move |raised| stop.store(raised, Ordering::Relaxed))
    }

    fn pair(&self, _: &str, _: &str, _: &mut Vec<Token>) -> Result<()> {
        let message = "two texts are compared by an encoder with rank pooling, of a model with a classification head; \
                       this backend has none";
        Err(Error::unsupported(message).with_backend(BACKEND))
    }

    fn encode(&mut self, texts: &[&[Token]]) -> Result<()> {
        self.table.begin(&self.info, texts, self.vocab).map_err(|error| error.with_backend(BACKEND))?;
        let room = PassRoom { tokens: self.info.batch, texts: self.info.texts, is_masked: true };
        self.passes.plan(|text| texts[text].len(), texts.len(), room);
        for pass in 0..self.passes.len() {
            self.pass(texts, pass)?;
        }
        self.table.finish();
        Ok(())
    }

    fn vectors(&self) -> Vectors<'_> {
        self.table.vectors()
    }
}

impl fmt::Debug for Encoder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Encoder").field("model", &self.model).field("info", &self.info).finish_non_exhaustive()
    }
}
