//! How a session is made: options checked first, then what the model's graph looks like, then the memory that keys and values may take.

use super::Session;
use crate::{
    DType, Model, SessionOptions,
    error::{BACKEND, error, invalid_input},
    kv::{Growth, Kv, Layout},
    models::Decoder,
    step::{Part, Step},
};
use infer_core::{
    Capabilities, Error, ErrorKind, KvLayout, Limits, Result, Results, Seats, Slots, Token, Tokenizer as _,
    machine::check_memory,
};
use std::sync::{Arc, atomic::AtomicBool};

/// Tokens of a batch, where nothing else is asked for.
const BATCH: usize = 512;
/// Tokens that are computed at once: enough for the weights to be read for many, few enough for an interrupt to be seen soon.
const MICRO_BATCH: usize = 512;
/// What a position, a number of tokens or of threads can be. Positions are exact in numbers of 32 bits.
const MOST: usize = 1 << 24;
/// Sequences a session can have.
const SEQUENCES: usize = 256;

impl Session {
    /// A session of `model`.
    ///
    /// # Errors
    /// [`InvalidInput`](ErrorKind::InvalidInput) for options out of range; [`Unsupported`](ErrorKind::Unsupported) for a model that is no decoder,
    /// for a layout that there is not, and for adapters; [`InvalidModel`](ErrorKind::InvalidModel) for a vocabulary that is larger than the
    /// model's, and for weights that do not fit together; [`OutOfMemory`](ErrorKind::OutOfMemory).
    pub(crate) fn new(model: &Model, options: &SessionOptions) -> Result<Self> {
        let decoder = model.decoder()?;
        let plan = Plan::new(model, options)?;
        let layout = Layout::new(decoder.layers(), plan.context, model.mlx().writes_in_place());
        let vocab = model.tokenizer().vocab().len();
        let facts = Facts::find(model, decoder, &layout)?;
        facts.check_vocab(model, vocab)?;
        plan.check_memory(&layout, facts.dtype)?;
        Ok(Self {
            slots: Slots::new(u32::try_from(plan.sequences).expect("it was checked to be small")),
            seats: Seats::new(plan.sequences),
            kvs: (0..plan.sequences).map(|_| Kv::default()).collect(),
            limits: Limits::new(plan.context, plan.batch, plan.sequences, vocab),
            capabilities: capabilities(&layout, options.device_sampling.unwrap_or(layout.copies())),
            micro_batch: plan.micro_batch,
            dtype: facts.dtype,
            width: facts.width,
            stop: Arc::new(AtomicBool::new(false)),
            running: Vec::new(),
            results: Results::default(),
            model: model.clone(),
            layout,
        })
    }
}

fn capabilities(layout: &Layout, device_sampling: bool) -> Capabilities {
    let mut capabilities = Capabilities::default();
    capabilities.truncate = layout.keeps_all();
    capabilities.fork = layout.keeps_all();
    capabilities.logits = true;
    capabilities.embedding = true;
    capabilities.score = true;
    capabilities.save = true;
    capabilities.device_sampling = device_sampling;
    capabilities
}

/// What a step of the model gives, found by building one. Nothing is computed.
struct Facts {
    /// Of keys and values.
    dtype: DType,
    /// Logits of a token.
    width: usize,
}

impl Facts {
    fn find(model: &Model, decoder: &dyn Decoder, layout: &Layout) -> Result<Self> {
        let scope = model.mlx().scope();
        let kv = Kv::default();
        let mut growth = Growth::new(&kv, layout, 1);
        let part = Part { kv: &kv, growth: &mut growth, tokens: &[Token(0)] };
        let mut step = Step::new(&scope, layout, [part]);
        let hidden = decoder.forward(&mut step);
        let logits = decoder.head(hidden);
        logits.check().map_err(|cause| {
            let message = format!("the model's weights do not fit together: {cause}");
            error(ErrorKind::InvalidModel, message).with_source(cause)
        })?;
        let written = step.finish().into_iter().flat_map(|grown| grown.lanes).find_map(|lane| lane.written);
        let dtype = written.map_or(hidden.dtype(), |[keys, _]| keys.dtype());
        Ok(Self { dtype, width: logits.shape().last().map_or(0, |&width| width as usize) })
    }

    /// Each token has a logit.
    fn check_vocab(&self, model: &Model, vocab: usize) -> Result<()> {
        if vocab <= self.width {
            return Ok(());
        }
        let message = format!(
            "{}: the model gives {} logits a token, and the tokenizer has {vocab} tokens: they are not of one model",
            model.package().folder().display(),
            self.width
        );
        Err(error(ErrorKind::InvalidModel, message))
    }
}

/// Options with everything that was left open decided.
struct Plan {
    context: usize,
    batch: usize,
    micro_batch: usize,
    sequences: usize,
}

impl Plan {
    fn new(model: &Model, options: &SessionOptions) -> Result<Self> {
        let common = &options.common;
        check_layout(common)?;
        if let Some(adapter) = common.adapters.first() {
            let message = format!("adapter {:?}: adapters are not supported; fuse it into the model", adapter.name);
            return Err(Error::unsupported(message).with_backend(BACKEND));
        }
        // What MLX computes on the CPU it computes on one thread, and what it computes elsewhere on none.
        common.threads.map(|threads| in_range("threads", threads, MOST)).transpose()?;
        Ok(Self {
            context: context(model, common.context)?,
            batch: common.batch.map_or(Ok(BATCH), |batch| in_range("batch", batch, MOST))?,
            micro_batch: options.micro_batch.map_or(Ok(MICRO_BATCH), |tokens| in_range("micro_batch", tokens, MOST))?,
            sequences: in_range("sequences", common.sequences, SEQUENCES)?,
        })
    }

    /// Memory for keys and values is taken as it is used: past this point it is too late.
    fn check_memory(&self, layout: &Layout, dtype: DType) -> Result<()> {
        let need = u128::from(layout.most_bytes(self.context, dtype)) * self.sequences as u128;
        let need = u64::try_from(need).unwrap_or(u64::MAX);
        let Self { sequences, context, .. } = self;
        let taker = || format!("keys and values of {sequences} sequences of {context} positions take");
        check_memory(need, taker, "ask for a smaller context or fewer sequences")
            .map_err(|error| error.with_backend(BACKEND))
    }
}

fn check_layout(options: &infer_core::SessionOptions) -> Result<()> {
    match options.layout {
        None | Some(KvLayout::Split) if options.cells.is_some() => Err(invalid_input(
            "cells are chosen where sequences share them; here each has room for a whole context, which the context says",
        )),
        None | Some(KvLayout::Split) => Ok(()),
        Some(other) => {
            Err(Error::unsupported(format!("keys and values lie sequence by sequence here (`split`), not {other}"))
                .with_backend(BACKEND))
        }
    }
}

/// The positions a sequence is to have: what was asked, else what the model was trained for.
fn context(model: &Model, asked: Option<usize>) -> Result<usize> {
    let trained = model.info().context.min(MOST);
    match asked {
        Some(asked) if asked > 0 => in_range("context", asked, if trained > 0 { trained } else { MOST }),
        _ if trained > 0 => Ok(trained),
        _ => Err(invalid_input("the model does not say what context it was trained for; ask for one")),
    }
}

fn in_range(what: &str, value: usize, most: usize) -> Result<usize> {
    if (1..=most).contains(&value) {
        return Ok(value);
    }
    Err(invalid_input(format!("{what}: {value} is asked for, 1 to {most} is possible")))
}
