//! How an encoder is made: options checked, memory looked at, and only then anything native.

use super::{Encoder, Form, Pack};
use crate::{
    Model,
    error::BACKEND,
    gguf::Value,
    raw,
    session::open::{CELLS, context, in_range, number, threads},
};
use infer_core::{
    EncoderInfo, EncoderOptions, Error, Pooling, Result, Tokenizer as _, VectorTable, machine::check_memory,
};
use std::sync::{Arc, atomic::AtomicBool};

/// Tokens a pass is filled up to. The weights are read once a pass, and by then that costs little beside the arithmetic; while
/// attention grows with the square, since every token is compared with those of the other texts too, in vain.
const BATCH: usize = 512;

impl Encoder {
    pub(crate) fn new(model: &Model, options: &EncoderOptions) -> Result<Self> {
        check_model(model)?;
        let pooling = pooling(model, options.pooling)?;
        let plan = Plan::new(model, options, pooling)?;
        plan.check_memory(model)?;
        let stop = Arc::new(AtomicBool::new(false));
        let context = raw::Encoder::new(model.raw().clone(), plan.params, stop.clone())?;
        // A decoder's pass has no more tokens than it has cells.
        let most = plan.context.min(context.tokens());
        let rank = pooling == Pooling::Rank;
        let mut info = EncoderInfo::new(pooling, context.width(), most);
        info.normalized = options.normalize && !rank;
        info.batch = plan.batch.min(context.tokens());
        info.texts = plan.params.texts as usize;
        if rank {
            info.labels = labels(model)?;
        }
        let vocab = model.tokenizer().vocab();
        Ok(Self {
            batch: raw::Batch::new(context.tokens(), plan.params.texts),
            context,
            vocab: vocab.len(),
            form: if rank { form(model)? } else { None },
            stop,
            model: model.clone(),
            table: VectorTable::default(),
            pack: Pack::default(),
            texts: Vec::with_capacity(info.texts),
            info,
        })
    }
}

fn unsupported(message: impl Into<String>) -> Error {
    Error::unsupported(message).with_backend(BACKEND)
}

fn check_model(model: &Model) -> Result<()> {
    let facts = model.facts();
    if model.is_vocab_only() {
        return Err(unsupported(
            "the model was opened for its vocabulary only; open it with its weights to make an encoder",
        ));
    }
    if facts.has_encoder && facts.has_decoder {
        let message = format!(
            "{} is an encoder with a decoder behind it: what comes out between them is no embedding",
            model.info().architecture
        );
        return Err(unsupported(message));
    }
    Ok(())
}

/// What is asked for, else what the file says.
fn pooling(model: &Model, asked: Option<Pooling>) -> Result<Pooling> {
    let key = "pooling_type";
    let said = model.header().field(key).and_then(Value::as_u64);
    let pooling = match (asked, said) {
        (Some(asked), _) => asked,
        (None, Some(0)) => Pooling::None,
        (None, Some(1)) => Pooling::Mean,
        (None, Some(2)) => Pooling::Cls,
        (None, Some(3)) => Pooling::Last,
        (None, Some(4)) => Pooling::Rank,
        (None, _) => {
            let name = &model.info().architecture;
            let message = format!(
                "the model file does not say how hidden states are pooled ({name}.{key}): choose one, such as mean, or last for a \
                 decoder"
            );
            return Err(Error::invalid_input(message).with_backend(BACKEND));
        }
    };
    match pooling {
        Pooling::None | Pooling::Mean | Pooling::Cls | Pooling::Last => Ok(pooling),
        Pooling::Rank => check_head(model).map(|()| pooling),
        other => Err(unsupported(format!("this backend has no pooling {other:?}"))),
    }
}

/// Without a head the library hands out the beginning of a hidden state and calls it a score; and where a head gives another number
/// of scores than there are names, it reads one text's scores out of another's.
fn check_head(model: &Model) -> Result<()> {
    let heads = ["cls.output.weight", "cls.weight"];
    let head = heads.into_iter().find_map(|name| model.header().tensor(name));
    let Some(head) = head else {
        return Err(unsupported(format!(
            "rank pooling is the score of a classification head, and the model file has none (no {})",
            heads.join(", no ")
        )));
    };
    let (scores, names) = (head.shape().get(1).copied().unwrap_or(1), model.facts().class_outputs);
    if scores != names as u64 {
        return Err(unsupported(format!(
            "the classification head gives {scores} scores ({}), and the model file speaks of {names}",
            head.name()
        )));
    }
    Ok(())
}

/// The names of all scores, or nothing where one has none.
fn labels(model: &Model) -> Result<Vec<String>> {
    let scores = number(model.facts().class_outputs);
    let labels = (0..scores).map(|index| model.raw().class_label(index)).collect::<Result<Option<Vec<_>>>>()?;
    Ok(labels.unwrap_or_default())
}

fn form(model: &Model) -> Result<Option<Form>> {
    match model.header().value("tokenizer.chat_template.rerank").and_then(Value::as_str) {
        Some(template) => Ok(Form::of_template(template, model.tokenizer().vocab())),
        None => Ok(Form::of_vocab(&model.raw().vocab_facts()?)),
    }
}

/// Options with everything that was left open decided.
struct Plan {
    context: usize,
    batch: usize,
    params: raw::EncoderParams,
    /// Whether keys and values are stored, as far as the file tells: not where every token sees every other.
    has_cells: bool,
}

impl Plan {
    fn new(model: &Model, options: &EncoderOptions, pooling: Pooling) -> Result<Self> {
        let facts = model.facts();
        let context = match options.context {
            Some(0) => in_range("context", 0, i32::MAX as usize)?,
            asked => context(model, asked)?,
        };
        let batch = match options.batch {
            Some(batch) => in_range("batch", batch, i32::MAX as usize)?,
            None => BATCH,
        };
        let tokens = batch.max(context);
        let Some(cells) = tokens.checked_next_multiple_of(CELLS).filter(|&cells| cells <= i32::MAX as usize) else {
            return Err(Error::invalid_input(format!("a pass of {tokens} tokens is longer than the library counts")));
        };
        // A state is there for each text, and takes far more than a few cells.
        let texts = if facts.is_recurrent || facts.is_hybrid { 1 } else { model.raw().door().max_sequences() as usize };
        Ok(Self {
            context,
            batch,
            params: raw::EncoderParams {
                tokens: number(tokens),
                cells: number(cells),
                texts: number(texts.min(tokens)),
                threads: number(threads(model, options.threads)?),
                pooling,
            },
            has_cells: !matches!(model.header().field("attention.causal"), Some(Value::Bool(false))),
        })
    }

    /// The library takes memory for the longest pass there can be as soon as it is made.
    fn check_memory(&self, model: &Model) -> Result<()> {
        let need = model.dims().need_of_encoder(self.params.tokens.into(), self.has_cells);
        let taker = || format!("an encoder with passes of {} tokens takes", self.params.tokens);
        check_memory(need.total(), taker, "ask for a smaller context or batch")
            .map_err(|error| error.with_backend(BACKEND))
    }
}
