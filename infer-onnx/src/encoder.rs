//! A model that turns texts into vectors.

mod graph;
mod lanes;
mod open;
mod pooling;
mod ports;

use self::{
    lanes::Lanes,
    ports::{Input, Ports},
};
use crate::{
    DType, Model,
    error::{BACKEND, error},
    raw::{RunOptions, Session, Stop, Value},
};
use infer_core::{
    EncoderInfo, Error, ErrorKind, Interrupt, ModelInfo, PaddedPasses, PassRoom, Pooling, Result, Token, VectorTable,
    Vectors,
};
use std::{fmt, sync::Arc};

/// An ONNX graph of hidden states, vectors or scores behind [`infer_core::Encoder`].
///
/// It is `Send` and not `Sync`: it has a session of ONNX Runtime of its own, with threads of its own.
///
/// What the trait leaves to a backend, here:
/// - Texts are sorted by length and cut into passes, so that padding and passes together cost least, up to
///   [`batch`](EncoderInfo::batch) tokens with the padding; a longer text has a pass of its own. A graph without an `attention_mask` has only
///   texts of one length in a pass.
/// - Several passes are computed at once, each on one of the [`threads`](infer_core::EncoderOptions::threads), where the CPU alone computes; a
///   single one has all threads. For that the graph is loaded once more when it is first of use, with the same weights: what a pass computes for
///   its tokens is then in memory once a thread. A failure is that of the first pass that fails, as one by one.
/// - On an x86-64 CPU with AVX2 what lies between the products of matrices is computed by this library's own kernels, put into the graph when it
///   is loaded ([`own_kernels`](crate::GraphOptions::own_kernels)): additions with GELUs, normalisations, softmaxes and the transposes that
///   make heads. Elsewhere on the CPU GELUs and normalisations stay apart from the additions before them, which the runtime computes in less
///   time than both in one, unless the [configuration](crate::GraphOptions::with_config) has something else for
///   `optimization.disable_specified_optimizers`.
/// - The graph takes `input_ids`, and where it asks for them `attention_mask`, `token_type_ids` and `position_ids`; it gives
///   `last_hidden_state` (or `token_embeddings`), `sentence_embedding`, or `logits` with a number for each label.
/// - [`None`](Pooling::None), [`Mean`](Pooling::Mean), [`Cls`](Pooling::Cls), [`Last`](Pooling::Last) and [`Max`](Pooling::Max) are of its hidden
///   states. [`Rank`](Pooling::Rank) are its logits, and `id2label` of `config.json` names them. [`Model`](Pooling::Model) is its
///   `sentence_embedding`. By default what `1_Pooling/config.json` says, or the one thing that the graph gives.
/// - [`pair`](infer_core::Encoder::pair) joins two texts as the tokenizer's post-processor does.
/// - The interrupt ends a pass between two operators.
///
/// ```
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let path = build_support::fixtures::model("minilm-onnx")?;
/// use infer_core::{Encoder as _, EncoderOptions, Special, Tokenizer as _};
/// use infer_onnx::{LoadOptions, Model, Onnx};
///
/// let model = Model::open(&Onnx::load(&LoadOptions::new())?, path)?;
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
    session: Session,
    lanes: Lanes,
    options: RunOptions,
    ports: Ports,
    info: EncoderInfo,
    vocab: usize,
    /// What is at places behind a text.
    padding: Token,
    model: Model,
    table: VectorTable,
    passes: PaddedPasses,
}

impl Encoder {
    /// The model, as this crate has it.
    #[must_use]
    pub fn onnx_model(&self) -> &Model {
        &self.model
    }

    /// Computes all passes.
    fn compute(&mut self, texts: &[&[Token]]) -> Result<()> {
        let Self { session, lanes, options, ports, info, padding, model, table, passes, .. } = self;
        let run = |session: &mut Session, batch: &[u32]| {
            let of = |row: usize| texts[batch[row] as usize];
            // The longest text is the first.
            let shape = ports.shape(batch.len(), of(0).len());
            run(session, options, ports, shape, *padding, batch.len(), of).map(|output| (output, shape))
        };
        let mut place = |batch: &[u32], (output, shape): (Value, [usize; 2])| {
            let rows = ports.rows(&output, shape)?;
            if rows.width() != info.width {
                let message = format!("the graph gives vectors of {} numbers, and gave {}", info.width, rows.width());
                return Err(error(ErrorKind::Runtime, message));
            }
            for (row, &text) in batch.iter().enumerate() {
                let text = text as usize;
                let part = table.text_mut(text);
                if ports.output.is_pooled {
                    rows.copy(row, part);
                } else {
                    rows.pool(info.pooling, row * shape[1], texts[text].len(), part);
                }
                table.end_text(text, info).map_err(|error| error.with_backend(BACKEND))?;
            }
            Ok(())
        };
        match lanes.sessions(model, passes.len()) {
            [] => (0..passes.len()).try_for_each(|pass| {
                let batch = passes.pass(pass);
                place(batch, run(session, batch)?)
            }),
            sessions => lanes::compute(sessions, passes, run, place),
        }
    }
}

/// One run of the graph over texts that are the rows of a table with padding, and what it gives.
fn run<'t>(
    session: &mut Session,
    options: &RunOptions,
    ports: &Ports,
    shape: [usize; 2],
    padding: Token,
    texts: usize,
    of: impl Fn(usize) -> &'t [Token],
) -> Result<Value> {
    if let Some(stop) = options.stop() {
        return Err(Stop::into_error(stop));
    }
    let mut values = Vec::with_capacity(ports.inputs.len());
    for input in &ports.inputs {
        values.push((input.index, table(input, ports, shape, padding, texts, &of)?));
    }
    let inputs: Vec<(usize, &Value)> = values.iter().map(|(index, value)| (*index, value)).collect();
    let mut outputs = [(ports.output.index, None)];
    session.run(options, &inputs, &mut outputs)?;
    let [(_, output)] = outputs;
    output.ok_or_else(|| error(ErrorKind::Runtime, "the graph gave nothing for the output it was asked for"))
}

/// What one input is of these texts. Where the graph wants more rows than there are texts, they are the first text again.
fn table<'t>(
    input: &Input,
    ports: &Ports,
    [rows, columns]: [usize; 2],
    padding: Token,
    texts: usize,
    of: &impl Fn(usize) -> &'t [Token],
) -> Result<Value> {
    let mut value = Value::tensor(input.dtype, &[rows, columns].map(|length| length as i64))?;
    let text = |row: usize| of(if row < texts { row } else { 0 });
    let numbers = (0..rows).flat_map(|row| input.what.numbers(text(row), columns, padding, ports));
    if input.dtype == DType::I32 {
        // Tokens are those of a vocabulary, and the others are smaller.
        value.elements_mut::<i32>()?.iter_mut().zip(numbers).for_each(|(cell, number)| *cell = number as i32);
    } else {
        value.elements_mut::<i64>()?.iter_mut().zip(numbers).for_each(|(cell, number)| *cell = number);
    }
    Ok(value)
}

impl infer_core::Encoder for Encoder {
    fn model(&self) -> &Arc<ModelInfo> {
        self.model.info()
    }

    fn info(&self) -> &EncoderInfo {
        &self.info
    }

    fn interrupt(&self) -> Interrupt {
        self.options.interrupt()
    }

    fn pair(&self, first: &str, second: &str, out: &mut Vec<Token>) -> Result<()> {
        if self.info.pooling != Pooling::Rank {
            let message =
                "two texts are compared by an encoder with rank pooling, of a model with a classification head";
            return Err(Error::unsupported(message).with_backend(BACKEND));
        }
        let tokenizer = self.model.tokenizer();
        match tokenizer.pair_form() {
            Some(form) => form.encode(tokenizer, first, second, out),
            None => {
                let message = "the model's tokenizer.json does not say how two texts are put together (post_processor)";
                Err(Error::unsupported(message).with_backend(BACKEND))
            }
        }
    }

    fn encode(&mut self, texts: &[&[Token]]) -> Result<()> {
        self.table.begin(&self.info, texts, self.vocab).map_err(|error| error.with_backend(BACKEND))?;
        let room = PassRoom { tokens: self.info.batch, texts: self.info.texts, is_masked: self.ports.is_masked() };
        self.passes.plan(|text| texts[text].len(), texts.len(), room);
        self.compute(texts)?;
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
