//! A model that turns texts into vectors.

mod open;
mod pack;
mod pair;

use self::{pack::Pack, pair::Form};
use crate::{
    Model,
    error::BACKEND,
    raw::{self, Pass},
};
use infer_core::{EncoderInfo, Error, ErrorKind, Interrupt, ModelInfo, Pooling, Result, Token, VectorTable, Vectors};
use std::{
    fmt,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
};

/// A llama.cpp context behind [`infer_core::Encoder`].
///
/// It is `Send` and not `Sync`, as a [`Session`](crate::Session) is, and has threads of its own.
///
/// What the trait leaves to a backend, here:
/// - Texts are sorted by length into passes that are as full as they can be, up to [`batch`](EncoderInfo::batch) tokens and
///   256 texts; a longer text has a pass of its own. Of recurrent and hybrid models a pass has one text. Once it has seen as many
///   texts as it will see, encoding allocates nothing in Rust.
/// - [`Rank`](Pooling::Rank) needs a classification head in the file. [`pair`](infer_core::Encoder::pair) is what llama.cpp's
///   server makes of a query and a document: the model's own `rerank` template, or both texts with the vocabulary's special tokens
///   around them.
/// - A decoder can be asked for any other pooling. It then computes logits too, which nobody looks at.
/// - The interrupt is polled between passes, and on the processor between the operations of one: it ends within milliseconds.
///
/// ```
/// # #[cfg(feature = "link")]
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let path = build_support::fixtures::model("minilm")?;
/// use infer_core::{Encoder as _, EncoderOptions, Special, Tokenizer as _};
/// use infer_llama::{Llama, Model};
///
/// let model = Model::open(&Llama::linked()?, path)?;
/// let mut encoder = model.encoder(&EncoderOptions::new().with_context(128))?;
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
/// # #[cfg(not(feature = "link"))]
/// # fn main() {}
/// ```
pub struct Encoder {
    context: raw::Encoder,
    batch: raw::Batch,
    info: EncoderInfo,
    vocab: usize,
    /// How two texts are compared, where they can be.
    form: Option<Form>,
    stop: Arc<AtomicBool>,
    model: Model,
    table: VectorTable,
    pack: Pack,
    /// The texts of the pass that is made: kept for its memory.
    texts: Vec<u32>,
}

impl Encoder {
    /// The model, as this crate has it.
    #[must_use]
    pub fn llama_model(&self) -> &Model {
        &self.model
    }

    /// Fills the native batch with texts that were found to fit.
    fn fill(&mut self, texts: &[&[Token]]) {
        self.batch.clear();
        for (sequence, &text) in (0..).zip(&self.texts) {
            for (position, token) in (0..).zip(texts[text as usize]) {
                self.batch.push(token.0.cast_signed(), position, sequence, true);
            }
        }
    }

    fn run(&mut self) -> Result<()> {
        if self.stop.load(Ordering::Relaxed) {
            return Err(cancelled());
        }
        let failed = |message: &str, code: i64| {
            Err(Error::new(ErrorKind::Runtime, message).with_backend(BACKEND).with_code(code))
        };
        match self.context.run(&mut self.batch)? {
            Pass::Done => Ok(()),
            Pass::Stopped => Err(cancelled()),
            // There are as many cells as tokens in a pass, and they were all given back.
            Pass::NoRoom => failed("the library finds no room in memory that was made for this pass", 1),
            Pass::Invalid => failed("the library calls the batch invalid", -1),
            Pass::Failed(code) => failed("the library failed in the middle of a pass", code.into()),
        }
    }

    /// Copies the rows of a pass to where the texts' vectors are to be.
    fn collect(&mut self) -> Result<()> {
        let Self { context, info, table, .. } = self;
        let mut place = 0;
        for (sequence, &text) in (0..).zip(&self.texts) {
            let text = text as usize;
            for vector in table.text_mut(text).chunks_exact_mut(info.width) {
                if info.pooling == Pooling::None {
                    vector.copy_from_slice(context.token(place)?);
                    place += 1;
                } else {
                    vector.copy_from_slice(context.text(sequence)?);
                }
            }
            table.end_text(text, info).map_err(|error| error.with_backend(BACKEND))?;
        }
        Ok(())
    }
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

    fn pair(&self, first: &str, second: &str, out: &mut Vec<Token>) -> Result<()> {
        let Some(form) = &self.form else {
            let message = "two texts are compared by an encoder with rank pooling, of a model whose file has a template \
                `rerank` for it, or whose vocabulary says what stands between two texts";
            return Err(Error::unsupported(message).with_backend(BACKEND));
        };
        form.encode(self.model.tokenizer(), first, second, out)
    }

    fn encode(&mut self, texts: &[&[Token]]) -> Result<()> {
        self.table.begin(&self.info, texts, self.vocab).map_err(|error| error.with_backend(BACKEND))?;
        self.pack.load(texts.iter().map(|text| text.len()));
        while self.pack.next_pass(self.info.batch, self.info.texts, &mut self.texts) {
            self.fill(texts);
            self.run()?;
            self.collect()?;
        }
        self.table.finish();
        Ok(())
    }

    fn vectors(&self) -> Vectors<'_> {
        self.table.vectors()
    }
}

fn cancelled() -> Error {
    Error::new(ErrorKind::Cancelled, "the pass was stopped by an interrupt").with_backend(BACKEND)
}

impl fmt::Debug for Encoder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Encoder").field("model", &self.model).field("info", &self.info).finish_non_exhaustive()
    }
}
