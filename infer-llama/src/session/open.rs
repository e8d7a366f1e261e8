//! How a session is made: options checked, memory looked at, and only then anything native.

use super::{Adapters, Ahead, Session, device};
use crate::{Model, SessionOptions, cells::Cells, convert, devices, error::BACKEND, memory::Shape, raw};
use infer_core::{
    Capabilities, Error, ErrorKind, KvLayout, Limits, Result, Results, Seats, Slots,
    machine::{Size, allowed_cpus, available_threads, check_memory},
};
use std::sync::{Arc, atomic::AtomicBool};

/// Numbers in a block of the quantised formats a cache can have.
const BLOCK: u64 = 32;
/// What llama.cpp rounds the number of cells up to.
pub(crate) const CELLS: usize = 256;
/// Rows of logits computed at once where every token wants one ([`Want::Score`](infer_core::Want::Score)): enough for weights to be read
/// for many tokens, few enough for their memory not to count.
const SCORED: usize = 32;
const BATCH: usize = 2048;
const MICRO_BATCH: usize = 512;

impl Session {
    pub(crate) fn new(model: &Model, options: &SessionOptions) -> Result<Self> {
        check_model(model)?;
        let plan = Plan::new(model, options)?;
        plan.check_memory(model)?;
        let stop = Arc::new(AtomicBool::new(false));
        let (adapters, loaded) = Adapters::load(model, options)?;
        let mut context = raw::Context::new(model.raw().clone(), plan.params, loaded, stop.clone())?;
        let shape = context.shape();
        check_context(&context)?;
        let per_sequence = shape.cells_per_sequence as usize;
        let batch = plan.batch.min(shape.batch as usize);
        let sequences = plan.params.sequences;
        let vocab = infer_core::Tokenizer::vocab(model.tokenizer()).len();
        let mut capabilities = capabilities(model, &mut context)?;
        capabilities.device_sampling = options.device_sampling && device::can_draw(model, &mut context, vocab)?;
        Ok(Self {
            context,
            stride: (shape.outputs as usize).min(batch),
            kv_types: (options.keys, options.values),
            batch: raw::Batch::new(batch, sequences),
            slots: Slots::new(sequences),
            seats: Seats::new(sequences as usize),
            adapted: vec![None; sequences as usize].into(),
            cells: Cells::new(sequences as usize, shape.cells as usize, plan.params.unified),
            total: shape.cells as usize,
            layout: plan.layout,
            limits: Limits::new(plan.context.min(per_sequence), batch, sequences as usize, vocab),
            answered: answered(&capabilities),
            capabilities,
            stop,
            model: model.clone(),
            adapters,
            results: Results::with_capacity(sequences as usize),
            places: Vec::with_capacity(sequences as usize),
            drawn: Vec::with_capacity(sequences as usize),
            running: Vec::with_capacity(sequences as usize),
            stored: false,
            moving: None,
            targets: Vec::new(),
            ahead: (plan.params.threads < number(available_threads().get())).then(Ahead::default),
        })
    }
}

fn capabilities(model: &Model, context: &mut raw::Context) -> Result<Capabilities> {
    let facts = model.facts();
    let can_cut = !facts.is_recurrent && !facts.is_hybrid;
    // What saves a state also moves positions: both need more of the library than its public functions.
    let settles = match context.settle().and_then(|()| context.state_len(0)) {
        Ok(_) => true,
        Err(error) if error.kind() == ErrorKind::Unsupported => false,
        Err(error) => return Err(error),
    };
    // The cache of a sliding window is made in full (the library's `swa_full`), so nothing of a sequence is lost. Of a memory that
    // the door does not know this is not certain.
    let exact = can_cut && (facts.window == 0 || settles);
    let mut capabilities = Capabilities::default();
    capabilities.truncate = exact;
    capabilities.fork = exact;
    capabilities.logits = true;
    capabilities.embedding = true;
    // The first token that is fed to a sequence with others in it is scored by feeding the one before it again.
    capabilities.score = can_cut;
    capabilities.save = settles;
    capabilities.shift = settles && can_cut && context.shape().can_shift;
    Ok(capabilities)
}

pub(crate) fn check_context(context: &raw::Context) -> Result<()> {
    let shape = context.shape();
    if shape.has_memory && shape.is_causal {
        return Ok(());
    }
    Err(Error::unsupported(
        "this model does not go from one token to the next: it has no session; its encoder embeds, ranks or classifies",
    )
    .with_backend(BACKEND))
}

/// A score that cannot be had is refused where it is wanted, with the reason.
fn answered(capabilities: &Capabilities) -> Capabilities {
    let mut answered = capabilities.clone();
    answered.score = true;
    answered
}

pub(crate) fn check_model(model: &Model) -> Result<()> {
    let facts = model.facts();
    let why = if model.is_vocab_only() {
        "the model was opened for its vocabulary only; open it with its weights to make a session"
    } else if facts.has_encoder || !facts.has_decoder {
        "this model is an encoder: it has no session"
    } else {
        return Ok(());
    };
    Err(Error::unsupported(why).with_backend(BACKEND))
}

/// The layout that a choice stands for.
fn layout(choice: Option<KvLayout>) -> Result<KvLayout> {
    match choice.unwrap_or(KvLayout::Split) {
        layout @ (KvLayout::Split | KvLayout::Unified) => Ok(layout),
        other => Err(Error::unsupported(format!("llama.cpp has no cells that lie {other}")).with_backend(BACKEND)),
    }
}

/// Options with everything that was left open decided.
pub(crate) struct Plan {
    context: usize,
    batch: usize,
    layout: KvLayout,
    shape: Shape,
    pub(crate) params: raw::ContextParams,
}

impl Plan {
    pub(crate) fn new(model: &Model, options: &SessionOptions) -> Result<Self> {
        let door = model.raw().door();
        let common = &options.common;
        let sequences = in_range("sequences", common.sequences, door.max_sequences() as usize)?;
        let context = context(model, common.context)?;
        let threads = threads(model, common.threads)?;
        let layout = layout(common.layout)?;
        let pool = match (layout, common.cells) {
            (KvLayout::Split, Some(_)) => {
                return Err(Error::invalid_input(
                    "cells are chosen for the unified layout; in the split one the context says it",
                ));
            }
            (KvLayout::Unified, Some(cells)) => Some(in_range("cells", cells, i32::MAX as usize)?),
            _ => None,
        };
        // Each sequence's cells are rounded up by themselves where they are its own.
        let cells = match pool {
            Some(cells) => cells.checked_next_multiple_of(CELLS),
            None => context.checked_next_multiple_of(CELLS).and_then(|cells| cells.checked_mul(sequences)),
        };
        let cells = cells.and_then(|cells| u32::try_from(cells).ok()).filter(|&cells| cells <= i32::MAX.unsigned_abs());
        let Some(cells) = cells else {
            return Err(Error::invalid_input(format!(
                "{sequences} sequences of {context} positions are more than 2^31 cells"
            )));
        };
        // Where a window is slid, the library looks for room for all parts of a pass before it computes the first, and what it takes for
        // a later one from a sequence that shares cells with a fork is missing in the earlier one: there must be one part only.
        let is_windowed = model.facts().window > 0;
        // A pass that is not to be stopped is not to be long.
        let is_short = is_windowed || model.facts().is_recurrent || model.facts().is_hybrid;
        let batch = match common.batch {
            Some(batch) => in_range("batch", batch, i32::MAX as usize)?,
            None if is_short => MICRO_BATCH.max(sequences),
            None => BATCH.max(sequences),
        };
        // A longer batch than there are cells could never run.
        let batch = batch.min(cells as usize);
        check_kv_types(model, options)?;
        let outputs = SCORED.min(batch).max(sequences);
        let micro_batch = match options.micro_batch {
            Some(tokens) if !is_windowed => in_range("micro_batch", tokens, i32::MAX as usize)?.min(batch),
            Some(tokens) => in_range("micro_batch", tokens, i32::MAX as usize).map(|_| batch)?,
            None if is_windowed => batch,
            None => MICRO_BATCH.min(batch),
        };
        Ok(Self {
            context,
            batch,
            layout,
            shape: Shape {
                cells: cells.into(),
                sequences: sequences as u64,
                rows: if options.device_sampling { 4 } else { 1 },
                outputs: outputs as u64,
                batch: batch as u64,
                micro_batch: micro_batch as u64,
                kv_bytes_of_32: (convert::kv_bytes_of_32(options.keys), convert::kv_bytes_of_32(options.values)),
            },
            params: raw::ContextParams {
                cells,
                // The library wants room for one token of each sequence.
                batch: number(batch.max(sequences)),
                ubatch: number(micro_batch),
                sequences: number(sequences),
                outputs: number(outputs),
                threads: number(threads),
                unified: layout == KvLayout::Unified,
                keys: convert::kv_format(options.keys),
                values: convert::kv_format(options.values),
                flash_attention: options.flash_attention,
                draws: options.device_sampling,
            },
        })
    }

    /// What is filled also where no cache is: lists of cells and of tokens.
    pub(crate) fn check_lists(&self, model: &Model) -> Result<()> {
        let lists = model.dims().need(self.shape).lists;
        let taker = || format!("lists of {} cells and {} tokens alone take", self.shape.cells, self.shape.batch);
        check_memory(lists, taker, "ask for a smaller context or batch, or fewer sequences")
            .map_err(|error| error.with_backend(BACKEND))
    }

    /// The library fills the cache as soon as it is made: past this point it is too late.
    fn check_memory(&self, model: &Model) -> Result<()> {
        let (here, all) = devices::in_machine(model.raw())?;
        let need = model.dims().need(self.shape).with_kv_share(here, all);
        let (cells, kv) = (self.shape.cells, Size(need.kv));
        let taker =
            || format!("a session with {cells} cells, whose keys and values are {kv} in the machine's memory, takes");
        check_memory(need.total(), taker, "ask for a smaller context or fewer sequences")
            .map_err(|error| error.with_backend(BACKEND))
    }
}

/// The library refuses some of these without a word, and ends the process for others.
fn check_kv_types(model: &Model, options: &SessionOptions) -> Result<()> {
    let (keys, values) = model.dims().heads();
    for (what, format, head) in [("keys", options.keys, keys), ("values", options.values, values)] {
        if format.is_quantised() && !head.is_multiple_of(BLOCK) {
            return Err(Error::unsupported(format!(
                "{what} of {format} come in blocks of {BLOCK} numbers, and a head of this model has {head}"
            ))
            .with_backend(BACKEND));
        }
    }
    if options.values.is_quantised() && options.flash_attention == Some(false) {
        let message = format!("values of {} need flash attention, which is turned off", options.values);
        return Err(Error::invalid_input(message));
    }
    Ok(())
}

/// The positions a sequence is to have: what was asked, else what the model was trained for.
pub(crate) fn context(model: &Model, asked: Option<usize>) -> Result<usize> {
    let most = model.positions().unwrap_or(i32::MAX as usize);
    match asked {
        Some(asked) if asked > 0 => in_range("context", asked, most),
        _ => Ok(model.info().context.clamp(1, most)),
    }
}

/// The threads of a pass: those asked for, as far as they can run at once, else as many as the process may use.
pub(crate) fn threads(model: &Model, asked: Option<usize>) -> Result<usize> {
    let most = model.raw().door().max_threads() as usize;
    match asked {
        Some(threads) => Ok(at_most_cpus(in_range("threads", threads, most)?)),
        None => Ok(available_threads().get().min(most)),
    }
}

/// Threads without a CPU are waited for at each of hundreds of barriers: a pass with 512 on two takes minutes.
fn at_most_cpus(threads: usize) -> usize {
    let cpus = allowed_cpus().get();
    if threads > cpus {
        tracing::warn!("{threads} threads are asked for and {cpus} can run at once in this process: {cpus} are used");
    }
    threads.min(cpus)
}

pub(crate) fn in_range(what: &str, value: usize, most: usize) -> Result<usize> {
    if (1..=most).contains(&value) {
        return Ok(value);
    }
    Err(Error::invalid_input(format!("{what}: {value} is asked for, 1 to {most} is possible")))
}

/// A number that was checked against the limits above.
pub(crate) fn number(value: usize) -> u32 {
    u32::try_from(value).expect("it was checked to be below 2^31")
}
