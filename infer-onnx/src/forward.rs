//! Runs of a decoder's graph: tokens in, logits out, keys and values where they belong.

use crate::{
    DType,
    decoder::{Branch, Decoder, InUse, Ports, Whole, dimension},
    error::error,
    kv::{Growing, Kv, rows},
    raw::{self, Stop},
    session::Logits,
};
use infer_core::{
    Error, ErrorKind, Interrupt, Result, Token,
    state::{Reader, Writer},
};
use std::{ops::Range, sync::Arc};

/// A graph with the keys and values of so many sequences.
pub(crate) struct Forward {
    pub(crate) kv: Kv,
    graph: InUse,
    options: raw::RunOptions,
    decoder: Arc<Decoder>,
    /// Bytes of keys and values that were copied by this crate, ever.
    copied: u64,
    /// Whether a run has succeeded.
    proven: bool,
}

/// What a run computes: tokens of sequences that lie side by side, as many of each.
pub(crate) struct Call<'a> {
    pub(crate) slots: Range<u32>,
    /// Positions that each has before.
    pub(crate) past: &'a [usize],
    /// All tokens of the first, all of the second, …: no more of each than [`Forward::most_tokens`].
    pub(crate) tokens: &'a [Token],
}

impl Forward {
    pub(crate) fn new(decoder: &Arc<Decoder>, threads: usize, sequences: usize, context: usize) -> Result<Self> {
        let (graph, cells) = (decoder.graph(threads)?, decoder.ports().cells);
        let kv = if decoder.config().shares_buffer {
            Kv::Shared(raw::Cache::new(graph.binding()?, cells, sequences, context)?)
        } else {
            Kv::Growing(Growing::new(cells, sequences)?)
        };
        let options = raw::RunOptions::new("decoder")?;
        Ok(Self { kv, graph, options, decoder: decoder.clone(), copied: 0, proven: false })
    }

    pub(crate) fn interrupt(&self) -> Interrupt {
        self.options.interrupt()
    }

    /// # Errors
    /// [`Cancelled`](ErrorKind::Cancelled) while the interrupt is raised.
    pub(crate) fn check_interrupt(&self) -> Result<()> {
        check(&self.options)
    }

    /// Whether a run computes tokens of several sequences.
    pub(crate) fn batches(&self) -> bool {
        matches!(self.kv, Kv::Shared(_)) && self.decoder.ports().batches
    }

    /// How many tokens a run takes of a sequence that has so many positions before, at most.
    pub(crate) fn most_tokens(&self, past: usize) -> usize {
        self.decoder.ports().most_tokens(past)
    }

    pub(crate) fn copied(&self) -> u64 {
        self.copied
    }

    /// Runs the graph once. Keys and values of the tokens are there afterwards, and count once the pass is [committed](Kv::commit).
    ///
    /// # Errors
    /// [`Cancelled`](ErrorKind::Cancelled); [`InvalidModel`](ErrorKind::InvalidModel) for a graph that gives something else than what it
    /// declares; [`Runtime`](ErrorKind::Runtime) with what the runtime said. What counted before is as it was.
    pub(crate) fn run(&mut self, call: &Call<'_>) -> Result<Logits> {
        self.check_interrupt()?;
        let Self { kv, graph, options, decoder, copied, proven } = self;
        let ports = decoder.ports();
        let inputs = inputs(ports, call)?;
        let ran = match kv {
            Kv::Shared(cache) => cache.run(graph, options, rows(&call.slots), ports, inputs).map(|logits| (logits, 0)),
            Kv::Growing(growing) => {
                let which = (call.slots.start, call.past[0], call.tokens.len());
                growing.run(graph, options, ports, &inputs, which)
            }
        };
        let (value, more) = ran.map_err(|failure| refused(failure, decoder.config().shares_buffer && !*proven))?;
        *copied += more;
        *proven = true;
        Logits::new(value, ports.logits_dtype, call.past.len(), ports.vocab)
    }

    pub(crate) fn truncate(&mut self, slot: u32, len: usize) -> Result<()> {
        self.copied += self.kv.truncate(slot, len)?;
        Ok(())
    }

    /// All of [`Kv::save`], until it is interrupted.
    pub(crate) fn save(&self, slot: u32, len: usize, writer: &mut Writer<'_>) -> Result<()> {
        self.kv.save(slot, len, writer, || self.check_interrupt())
    }

    /// All of [`Kv::restore`], until it is interrupted.
    pub(crate) fn restore(&mut self, slot: u32, len: usize, reader: &mut Reader<'_>) -> Result<()> {
        let Self { kv, options, .. } = self;
        kv.restore(slot, len, reader, || check(options))
    }

    pub(crate) fn fork(&mut self, from: u32, to: u32, len: usize) -> Result<()> {
        self.copied += self.kv.fork(from, to, len)?;
        Ok(())
    }
}

fn check(options: &raw::RunOptions) -> Result<()> {
    options.stop().map_or(Ok(()), |stop| Err(Stop::into_error(stop)))
}

/// All inputs but keys and values.
fn inputs(ports: &Ports, call: &Call<'_>) -> Result<Vec<(usize, raw::Value)>> {
    let batch = call.past.len();
    let len = call.tokens.len() / batch;
    let total = call.past.iter().max().map_or(0, |past| past + len);
    let tokens = call.tokens.iter().map(|token| i64::from(token.0));
    // Ones up to where a row ends: the graph counts them.
    let mask = call.past.iter().flat_map(|past| (0..total).map(move |at| i64::from(at < past + len)));
    let positions = call.past.iter().flat_map(|&past| (past..past + len).map(dimension));
    let mut all = vec![whole(ports.tokens, [batch, len], tokens)?, whole(ports.mask, [batch, total], mask)?];
    if let Some(port) = ports.positions {
        all.push(whole(port, [batch, len], positions)?);
    }
    if let Some(Branch { index, rank }) = ports.branch {
        let mut value = raw::Value::tensor(DType::Bool, &[1][..rank])?;
        value.elements_mut::<bool>()?.fill(call.past.iter().any(|&past| past > 0));
        all.push((index, value));
    }
    Ok(all)
}

/// A tensor of whole numbers for an input.
fn whole(port: Whole, shape: [usize; 2], numbers: impl Iterator<Item = i64>) -> Result<(usize, raw::Value)> {
    let mut value = raw::Value::tensor(port.dtype, &shape.map(dimension))?;
    if port.dtype == DType::I64 {
        fill(value.elements_mut::<i64>()?, numbers);
    } else {
        // Tokens and positions are below 2^31: a context is, and so is a vocabulary.
        fill(value.elements_mut::<i32>()?, numbers.map(|number| number as i32));
    }
    Ok((port.index, value))
}

fn fill<T>(places: &mut [T], numbers: impl Iterator<Item = T>) {
    places.iter_mut().zip(numbers).for_each(|(place, number)| *place = number);
}

/// What a run is given is right by what is said of the graph: if it is refused, that is wrong, and no fault of the caller's.
fn refused(failure: Error, may_not_share: bool) -> Error {
    let hint = if may_not_share {
        "; if it gives keys and values as new tensors, `past_present_share_buffer` must be false in its genai_config.json"
    } else {
        ""
    };
    match failure.kind() {
        ErrorKind::InvalidInput | ErrorKind::Runtime => {
            error(ErrorKind::Runtime, format!("the graph does not run as its configuration says{hint}"))
                .with_source(failure)
        }
        _ => failure,
    }
}
