//! How a session is made: options checked first, then the graph, then room for keys and values.

use super::{Session, score::SCORED};
use crate::{
    decoder::{Cells, Decoder},
    error::{BACKEND, error, invalid_input},
    forward::Forward,
};
use infer_core::{
    Capabilities, Error, ErrorKind, KvLayout, Limits, ModelInfo, Result, Results, Seats, SessionOptions, Slots, Vocab,
    machine::{allowed_cpus, available_threads, check_memory},
};
use std::sync::Arc;

/// More tokens at once are computed no faster, and their rows of logits take memory.
const BATCH: usize = 512;
/// What a position, a number of tokens or of threads can be.
const MOST: usize = i32::MAX as usize;
/// Sequences a session can have.
const SEQUENCES: usize = 256;

impl Session {
    /// A session of `decoder`, the graph of the model that `info` describes, for tokens of `vocab`.
    ///
    /// # Errors
    /// [`InvalidInput`](ErrorKind::InvalidInput) for options out of range; [`Unsupported`](ErrorKind::Unsupported) for a layout that there
    /// is not, and for adapters; [`InvalidModel`](ErrorKind::InvalidModel) for a vocabulary that is not the graph's;
    /// [`OutOfMemory`](ErrorKind::OutOfMemory); [`Runtime`](ErrorKind::Runtime) with what the runtime said.
    pub(crate) fn new(
        decoder: &Arc<Decoder>,
        info: &Arc<ModelInfo>,
        vocab: &Arc<Vocab>,
        options: &SessionOptions,
    ) -> Result<Self> {
        let plan = Plan::new(decoder, options)?;
        check_vocab(decoder, vocab)?;
        plan.check_memory(&decoder.ports().cells)?;
        let forward = Forward::new(decoder, plan.threads, plan.sequences, plan.context)?;
        let last_only = decoder.ports().last_only;
        Ok(Self {
            interrupt: forward.interrupt(),
            forward,
            slots: Slots::new(u32::try_from(plan.sequences).expect("it was checked to be small")),
            seats: Seats::new(plan.sequences),
            limits: Limits::new(plan.context, plan.batch, plan.sequences, vocab.len()),
            capabilities: capabilities(),
            info: info.clone(),
            vocab: vocab.clone(),
            decoder: decoder.clone(),
            results: Results::default(),
            scored: if last_only { 1 } else { SCORED },
            work: Default::default(),
        })
    }
}

fn capabilities() -> Capabilities {
    let mut capabilities = Capabilities::default();
    capabilities.truncate = true;
    capabilities.fork = true;
    capabilities.logits = true;
    capabilities.score = true;
    capabilities.save = true;
    capabilities
}

/// Rows of logits are as long as the vocabulary, or tokens mean something else than was trained.
fn check_vocab(decoder: &Decoder, vocab: &Vocab) -> Result<()> {
    let (tokens, logits) = (vocab.len(), decoder.ports().vocab);
    if tokens == logits {
        return Ok(());
    }
    Err(error(
        ErrorKind::InvalidModel,
        format!(
            "{}: the graph gives {logits} logits a token, and the tokenizer has {tokens} tokens: they are not of one model",
            decoder.config().graph.display()
        ),
    ))
}

/// Options with everything that was left open decided.
struct Plan {
    context: usize,
    batch: usize,
    sequences: usize,
    threads: usize,
}

impl Plan {
    fn new(decoder: &Decoder, options: &SessionOptions) -> Result<Self> {
        check_layout(options)?;
        if let Some(adapter) = options.adapters.first() {
            let message = format!("adapter {:?}: a graph takes no adapters; merge it into the model", adapter.name);
            return Err(Error::unsupported(message).with_backend(BACKEND));
        }
        let sequences = in_range("sequences", options.sequences, SEQUENCES)?;
        let batch = options.batch.map_or(Ok(BATCH), |batch| in_range("batch", batch, MOST))?;
        Ok(Self { context: context(decoder, options.context)?, batch, sequences, threads: threads(options.threads)? })
    }

    /// Memory for keys and values is given as it is used: past this point it is too late.
    fn check_memory(&self, cells: &Cells) -> Result<()> {
        let position = cells.tensors() as u128 * cells.heads as u128 * cells.bytes() as u128;
        let need = u64::try_from(position * self.context as u128 * self.sequences as u128).unwrap_or(u64::MAX);
        let Self { sequences, context, .. } = self;
        let taker = || format!("keys and values of {sequences} sequences of {context} positions take");
        check_memory(need, taker, "ask for a smaller context or fewer sequences")
            .map_err(|error| error.with_backend(BACKEND))
    }
}

fn check_layout(options: &SessionOptions) -> Result<()> {
    match options.layout {
        None | Some(KvLayout::Split) if options.cells.is_some() => Err(invalid_input(
            "cells are chosen where sequences share them; here each has room for a whole context, which the context says",
        )),
        None | Some(KvLayout::Split) => Ok(()),
        Some(other) => Err(Error::unsupported(format!(
            "a graph's keys and values lie sequence by sequence (`split`), not {other}"
        ))
        .with_backend(BACKEND)),
    }
}

/// The positions a sequence is to have: what was asked, else what the model was trained for.
fn context(decoder: &Decoder, asked: Option<usize>) -> Result<usize> {
    let trained = decoder.config().context;
    match asked {
        Some(asked) if asked > 0 => in_range("context", asked, if trained > 0 { trained.min(MOST) } else { MOST }),
        _ if trained > 0 => Ok(trained.min(MOST)),
        _ => Err(invalid_input("the model does not say what context it was trained for; ask for one")),
    }
}

/// The threads of a run: those asked for, as far as they can run at once, else as many as the process may use.
pub(crate) fn threads(asked: Option<usize>) -> Result<usize> {
    let Some(asked) = asked else { return Ok(available_threads().get()) };
    let (asked, cpus) = (in_range("threads", asked, MOST)?, allowed_cpus().get());
    if asked > cpus {
        tracing::warn!("{asked} threads are asked for and {cpus} can run at once in this process: {cpus} are used");
    }
    Ok(asked.min(cpus))
}

fn in_range(what: &str, value: usize, most: usize) -> Result<usize> {
    if (1..=most).contains(&value) {
        return Ok(value);
    }
    Err(invalid_input(format!("{what}: {value} is asked for, 1 to {most} is possible")))
}
