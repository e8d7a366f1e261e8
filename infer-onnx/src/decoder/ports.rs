//! Which input and output of a graph is what. Everything a session relies on is checked here, by name.

use super::{Cells, Config, Pattern};
use crate::{DType, Dim, Port, ValueType, error::BACKEND};
use infer_core::{Error, ErrorKind, Result};
use std::collections::HashSet;

/// An input of whole numbers, by its index.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Whole {
    pub(crate) index: usize,
    /// [`DType::I64`] or [`DType::I32`].
    pub(crate) dtype: DType,
}

/// An input of one bool, which says whether what is fed has something before it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Branch {
    pub(crate) index: usize,
    /// Dimensions, each of them 1.
    pub(crate) rank: usize,
}

/// What exporters call it.
const BRANCH: &str = "use_cache_branch";

/// Inputs and outputs by their indices.
#[derive(Clone, Debug)]
pub(crate) struct Ports {
    pub(crate) tokens: Whole,
    pub(crate) mask: Whole,
    pub(crate) positions: Option<Whole>,
    /// Where it is two graphs in one.
    pub(crate) branch: Option<Branch>,
    /// The inputs of layer 0's keys, its values, those of layer 1, ….
    pub(crate) past: Vec<usize>,
    /// Outputs in the same order.
    pub(crate) present: Vec<usize>,
    pub(crate) logits: usize,
    /// [`DType::F32`], [`DType::F16`] or [`DType::Bf16`].
    pub(crate) logits_dtype: DType,
    /// Whether there is a row of logits for the last token only, as far as the graph says.
    pub(crate) last_only: bool,
    pub(crate) cells: Cells,
    /// Logits of a row.
    pub(crate) vocab: usize,
    /// Whether a run takes more rows than one.
    pub(crate) batches: bool,
    /// Whether a run takes one token only, of each row.
    pub(crate) one_token: bool,
}

impl Ports {
    /// How many tokens a run takes of a sequence that has so many positions before, at most.
    ///
    /// What takes keys and values in a graph of two was made from a run of one token, and for some architectures that leaves out what
    /// hides later tokens from earlier ones: it computes more than one wrongly, and does not say so.
    pub(crate) fn most_tokens(&self, past: usize) -> usize {
        if self.one_token || (self.branch.is_some() && past > 0) { 1 } else { usize::MAX }
    }

    /// # Errors
    /// [`InvalidModel`](ErrorKind::InvalidModel) and [`Unsupported`](ErrorKind::Unsupported), with the name of what is missing, too much,
    /// or not as it should be.
    pub(crate) fn new(config: &Config, inputs: &[Port], outputs: &[Port]) -> Result<Self> {
        let finder = Finder { config, inputs, outputs };
        finder
            .check()
            .map_err(|(kind, why)| Error::new(kind, format!("{}: {why}", config.graph.display())).with_backend(BACKEND))
    }
}

type Refusal = (ErrorKind, String);

/// More bytes of keys and values than a position has in any model there is: sizes are multiplied from here on.
const MOST_BYTES: usize = i32::MAX as usize;

struct Finder<'a> {
    config: &'a Config,
    inputs: &'a [Port],
    outputs: &'a [Port],
}

impl Finder<'_> {
    fn check(&self) -> Result<Ports, Refusal> {
        let names = &self.config.names;
        let layers = self.layers()?;
        let tokens = self.whole(&names.tokens)?.ok_or_else(|| no("input", &names.tokens))?;
        let mask = self.whole(&names.mask)?.ok_or_else(|| no("input", &names.mask))?;
        let positions = self.whole(&names.positions)?;
        let past = indices("input", self.inputs, &names.past, layers)?;
        let present = indices("output", self.outputs, &names.present, layers)?;
        let branch = self.branch()?;
        let whole = [Some(tokens), Some(mask), positions].into_iter().flatten().map(|port| port.index);
        apart("input", self.inputs, whole.chain(past.iter().copied()))?;
        apart("output", self.outputs, present.iter().copied())?;
        self.check_rest(&past)?;
        let cells = self.cells(layers, &past, &present)?;
        let logits = position(self.outputs, &names.logits).ok_or_else(|| no("output", &names.logits))?;
        let (logits_dtype, vocab, last_only) = self.logits(&self.outputs[logits])?;
        let batches = self.batches(&past, [Some(tokens), Some(mask), positions])?;
        let one_token = self.config.one_token;
        Ok(Ports {
            tokens,
            mask,
            positions,
            branch,
            past,
            present,
            logits,
            logits_dtype,
            last_only,
            cells,
            vocab,
            batches,
            one_token,
        })
    }

    /// As many as the graph takes keys for.
    fn layers(&self) -> Result<usize, Refusal> {
        let [keys, _] = &self.config.names.past;
        let layers = self.inputs.iter().filter_map(|port| keys.layer(&port.name)?.checked_add(1));
        let found = layers.max().unwrap_or(0);
        let said = self.config.layers;
        if found == 0 {
            return Err(unsupported(format!(
                "it takes no keys and values (no input {:?}): a decoder that computes a whole text for each token is not supported; \
                 export it with its cache",
                keys.name(0)
            )));
        }
        if said > 0 && said != found {
            return Err(invalid(format!("it takes keys and values of {found} layers, its configuration says {said}")));
        }
        Ok(found)
    }

    fn whole(&self, name: &str) -> Result<Option<Whole>, Refusal> {
        let Some(index) = position(self.inputs, name) else { return Ok(None) };
        let port = &self.inputs[index];
        check_rank("input", port, 2)?;
        match tensor(port).0 {
            Some(dtype @ (DType::I64 | DType::I32)) => Ok(Some(Whole { index, dtype })),
            _ => Err(unsupported(format!("its input {name:?} is {}, not whole numbers of 32 or 64 bits", port.kind))),
        }
    }

    fn branch(&self) -> Result<Option<Branch>, Refusal> {
        let Some(index) = position(self.inputs, BRANCH) else { return Ok(None) };
        let port = &self.inputs[index];
        let (dtype, dims) = tensor(port);
        let one = |dim: &Dim| matches!(dim, Dim::Dynamic(_) | Dim::Fixed(1));
        if dtype != Some(DType::Bool) || dims.len() > 1 || !dims.iter().all(one) {
            return Err(unsupported(format!("its input {BRANCH:?} is {}, not one bool", port.kind)));
        }
        if self.config.shares_buffer {
            return Err(unsupported(format!(
                "it is two graphs in one ({BRANCH:?}), which give keys and values as new tensors: `past_present_share_buffer` must \
                 be false in its genai_config.json"
            )));
        }
        Ok(Some(Branch { index, rank: dims.len() }))
    }

    /// Whether rows may be many. What grows with a text must not be fixed.
    fn batches(&self, past: &[usize], whole: [Option<Whole>; 3]) -> Result<bool, Refusal> {
        let past = past.iter().map(|&index| (index, 2));
        let mut batches = true;
        for (index, grows) in whole.into_iter().flatten().map(|port| (port.index, 1)).chain(past) {
            let port = &self.inputs[index];
            let (_, dims) = tensor(port);
            if let Dim::Fixed(_) = dims[grows] {
                return Err(unsupported(format!(
                    "its input {:?} is {}, of a fixed length; a graph is needed that takes texts of any",
                    port.name, port.kind
                )));
            }
            match dims[0] {
                Dim::Dynamic(_) => {}
                Dim::Fixed(1) => batches = false,
                Dim::Fixed(rows) => {
                    return Err(unsupported(format!("its input {:?} always has {rows} rows", port.name)));
                }
            }
        }
        Ok(batches)
    }

    /// Nothing is left that nobody would fill in.
    fn check_rest(&self, past: &[usize]) -> Result<(), Refusal> {
        let names = &self.config.names;
        let known = [&names.tokens, &names.mask, &names.positions].map(String::as_str);
        for (index, port) in self.inputs.iter().enumerate() {
            let name = port.name.as_str();
            if known.contains(&name) || name == BRANCH || past.contains(&index) || port.is_optional() {
                continue;
            }
            return Err(unsupported(format!("its input {name:?} is none that a decoder of text is known to have")));
        }
        Ok(())
    }

    fn cells(&self, layers: usize, past: &[usize], present: &[usize]) -> Result<Cells, Refusal> {
        let first = &self.inputs[past[0]];
        check_rank("input", first, 4)?;
        let (Some(dtype @ (DType::F32 | DType::F16 | DType::Bf16)), dims) = tensor(first) else {
            return Err(unsupported(format!("its input {:?} is {}", first.name, first.kind)));
        };
        let heads = agreed("heads of keys and values", self.config.kv_heads, &dims[1], first)?;
        let size = agreed("numbers in a key", self.config.head_size, &dims[3], first)?;
        let cells = Cells { layers, heads, size, dtype };
        let bytes = dtype.bytes(size).and_then(|bytes| bytes.checked_mul(heads)?.checked_mul(cells.tensors()));
        if !bytes.is_some_and(|bytes| (1..=MOST_BYTES).contains(&bytes)) {
            return Err(invalid(format!(
                "{heads} heads of {size} numbers in each of {layers} layers are none that can be"
            )));
        }
        let all = past.iter().map(|&index| ("input", &self.inputs[index]));
        for (kind, port) in all.chain(present.iter().map(|&index| ("output", &self.outputs[index]))) {
            check_rank(kind, port, 4)?;
            let (found, dims) = tensor(port);
            let differs = |dim: &Dim, wanted: usize| matches!(dim, Dim::Fixed(size) if *size != wanted);
            if found != Some(dtype) || differs(&dims[1], heads) || differs(&dims[3], size) {
                return Err(unsupported(format!(
                    "its {kind} {:?} is {}, where {dtype}[rows, {heads}, positions, {size}] is expected",
                    port.name, port.kind
                )));
            }
        }
        Ok(cells)
    }

    fn logits(&self, port: &Port) -> Result<(DType, usize, bool), Refusal> {
        check_rank("output", port, 3)?;
        let (Some(dtype @ (DType::F32 | DType::F16 | DType::Bf16)), dims) = tensor(port) else {
            return Err(unsupported(format!("its output {:?} is {}", port.name, port.kind)));
        };
        Ok((dtype, agreed("logits in a row", self.config.vocab, &dims[2], port)?, dims[1] == Dim::Fixed(1)))
    }
}

/// Of a tensor, what its elements and dimensions are.
fn tensor(port: &Port) -> (Option<DType>, &[Dim]) {
    match &port.kind {
        ValueType::Tensor { dtype, dims } => (Some(*dtype), dims.as_deref().unwrap_or_default()),
        _ => (None, &[]),
    }
}

fn invalid(why: impl Into<String>) -> Refusal {
    (ErrorKind::InvalidModel, why.into())
}

fn unsupported(why: impl Into<String>) -> Refusal {
    (ErrorKind::Unsupported, why.into())
}

fn no(kind: &str, name: &str) -> Refusal {
    unsupported(format!("it has no {kind} {name:?}, which a decoder of text has"))
}

fn position(ports: &[Port], name: &str) -> Option<usize> {
    ports.iter().position(|port| port.name == name)
}

/// The ports of keys and values, layer by layer.
fn indices(kind: &str, ports: &[Port], patterns: &[Pattern; 2], layers: usize) -> Result<Vec<usize>, Refusal> {
    let names = (0..layers).flat_map(|layer| patterns.each_ref().map(|pattern| pattern.name(layer)));
    names.map(|name| position(ports, &name).ok_or_else(|| no(kind, &name))).collect()
}

/// No two are the same one, whatever names a configuration gives them.
fn apart(kind: &str, ports: &[Port], indices: impl Iterator<Item = usize>) -> Result<(), Refusal> {
    let mut seen = HashSet::new();
    match indices.into_iter().find(|&index| !seen.insert(index)) {
        Some(index) => Err(invalid(format!("its {kind} {:?} is to be two things at once", ports[index].name))),
        None => Ok(()),
    }
}

fn check_rank(kind: &str, port: &Port, rank: usize) -> Result<(), Refusal> {
    if tensor(port).1.len() == rank {
        return Ok(());
    }
    Err(unsupported(format!("its {kind} {:?} is {}, not a tensor of {rank} dimensions", port.name, port.kind)))
}

/// A number that the configuration says, the graph, or both.
fn agreed(what: &str, said: usize, found: &Dim, port: &Port) -> Result<usize, Refusal> {
    match (said, found) {
        (0, Dim::Dynamic(_)) => Err(invalid(format!(
            "neither the graph ({:?}) nor its configuration says how many {what} there are",
            port.name
        ))),
        (said, Dim::Dynamic(_)) => Ok(said),
        (said, &Dim::Fixed(found)) if said != 0 && said != found => {
            Err(invalid(format!("{what}: the configuration says {said}, the graph ({:?}) {found}", port.name)))
        }
        (_, &Dim::Fixed(found)) => Ok(found),
    }
}

#[cfg(test)]
mod tests;
