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

/// Inputs and outputs by their indices.
#[derive(Clone, Debug)]
pub(crate) struct Ports {
    pub(crate) tokens: Whole,
    pub(crate) mask: Whole,
    pub(crate) positions: Option<Whole>,
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
}

impl Ports {
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
        let whole = [Some(tokens), Some(mask), positions].into_iter().flatten().map(|port| port.index);
        apart("input", self.inputs, whole.chain(past.iter().copied()))?;
        apart("output", self.outputs, present.iter().copied())?;
        self.check_rest(&past)?;
        let cells = self.cells(layers, &past, &present)?;
        let logits = position(self.outputs, &names.logits).ok_or_else(|| no("output", &names.logits))?;
        let (logits_dtype, vocab, last_only) = self.logits(&self.outputs[logits])?;
        let batches = self.batches(&past, [Some(tokens), Some(mask), positions])?;
        Ok(Ports { tokens, mask, positions, past, present, logits, logits_dtype, last_only, cells, vocab, batches })
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
        let known = [&names.tokens, &names.mask, &names.positions];
        for (index, port) in self.inputs.iter().enumerate() {
            let name = &port.name;
            if known.contains(&name) || past.contains(&index) || port.is_optional() {
                continue;
            }
            return Err(unsupported(match name.as_str() {
                "use_cache_branch" => "it is two graphs in one, of which the input \"use_cache_branch\" chooses; that form, which exporters \
                                       no longer make, is not supported: export the model again, as one graph with its cache"
                    .into(),
                _ => format!("its input {name:?} is none that a decoder of text is known to have"),
            }));
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
mod tests {
    use super::*;
    use crate::decoder::Names;

    fn port(name: &str, dtype: DType, shape: &[i64]) -> Port {
        Port { name: name.into(), kind: kind(dtype, shape), has_default: false }
    }

    /// -1 is a dimension that is not fixed.
    fn kind(dtype: DType, shape: &[i64]) -> ValueType {
        let dim = |&size: &i64| usize::try_from(size).map_or(Dim::Dynamic(None), Dim::Fixed);
        ValueType::Tensor { dtype, dims: Some(shape.iter().map(dim).collect()) }
    }

    fn sample() -> (Config, Vec<Port>, Vec<Port>) {
        let past = ["key", "value"].map(|part| Pattern::around("past_key_values.", &format!(".{part}")));
        let present = ["key", "value"].map(|part| Pattern::around("present.", &format!(".{part}")));
        let mut inputs = vec![port("input_ids", DType::I64, &[-1, -1]), port("attention_mask", DType::I64, &[-1, -1])];
        let mut outputs = vec![port("logits", DType::F32, &[-1, -1, 300])];
        for layer in 0..2 {
            inputs.extend(past.each_ref().map(|pattern| port(&pattern.name(layer), DType::F32, &[-1, 2, -1, 8])));
            outputs.extend(present.each_ref().map(|pattern| port(&pattern.name(layer), DType::F32, &[-1, 2, -1, 8])));
        }
        let names = Names {
            tokens: "input_ids".into(),
            mask: "attention_mask".into(),
            positions: "position_ids".into(),
            past,
            present,
            logits: "logits".into(),
        };
        let config = Config {
            graph: "model.onnx".into(),
            architecture: "llama".into(),
            context: 64,
            vocab: 300,
            layers: 2,
            kv_heads: 2,
            head_size: 8,
            names,
            shares_buffer: false,
        };
        (config, inputs, outputs)
    }

    fn found(change: impl FnOnce(&mut Config, &mut Vec<Port>, &mut Vec<Port>)) -> Result<Ports> {
        let (mut config, mut inputs, mut outputs) = sample();
        change(&mut config, &mut inputs, &mut outputs);
        Ports::new(&config, &inputs, &outputs)
    }

    #[track_caller]
    fn refused(words: &str, change: impl FnOnce(&mut Config, &mut Vec<Port>, &mut Vec<Port>)) {
        let error = found(change).unwrap_err();
        assert!(matches!(error.kind(), ErrorKind::InvalidModel | ErrorKind::Unsupported), "{error}");
        assert!(error.to_string().contains(words) && error.to_string().starts_with("model.onnx: "), "{error}");
    }

    #[test]
    fn ports_are_found_by_name_in_any_order() {
        let ports = found(|_, inputs, outputs| {
            inputs.reverse();
            outputs.reverse();
        })
        .unwrap();
        assert_eq!((ports.tokens.index, ports.mask.index, ports.positions), (5, 4, None));
        assert_eq!((ports.past, ports.present, ports.logits), (vec![3, 2, 1, 0], vec![3, 2, 1, 0], 4));
        assert_eq!(ports.cells, Cells { layers: 2, heads: 2, size: 8, dtype: DType::F32 });
        assert_eq!((ports.vocab, ports.last_only, ports.batches), (300, false, true));
        assert_eq!((ports.cells.tensors(), ports.cells.bytes(), ports.cells.shape(3, 5)), (4, 32, [3, 2, 5, 8]));
        let ports = found(|config, inputs, outputs| {
            // What the files do not say, the graph does.
            (config.layers, config.kv_heads, config.head_size, config.vocab) = (0, 0, 0, 0);
            inputs.push(port("position_ids", DType::I32, &[-1, -1]));
            outputs[0].kind = kind(DType::F32, &[-1, 1, 300]);
            inputs[0].kind = kind(DType::I64, &[1, -1]);
        })
        .unwrap();
        assert!(!ports.batches);
        assert_eq!(ports.positions, Some(Whole { index: 6, dtype: DType::I32 }));
        assert!(ports.last_only);
    }

    #[test]
    fn what_is_not_as_it_should_be_is_named() {
        refused("no input \"input_ids\"", |_, inputs, _| _ = inputs.remove(0));
        refused("no input \"attention_mask\"", |_, inputs, _| _ = inputs.remove(1));
        refused("no output \"logits\"", |_, _, outputs| _ = outputs.remove(0));
        refused("past_key_values.1.value", |_, inputs, _| _ = inputs.pop());
        refused("present.1.value", |_, _, outputs| _ = outputs.pop());
        refused("takes no keys and values", |_, inputs, _| inputs.truncate(2));
        refused("use_cache_branch", |_, inputs, _| inputs.push(port("use_cache_branch", DType::Bool, &[1])));
        refused("\"pixels\"", |_, inputs, _| inputs.push(port("pixels", DType::F32, &[1])));
        refused("of 2 layers, its configuration says 3", |config, _, _| config.layers = 3);
        refused("\"logits\"", |config, _, _| config.vocab = 301);
        refused("heads of keys", |config, _, _| config.kv_heads = 4);
        refused("how many logits", |config, _, outputs| {
            (config.vocab, outputs[0].kind) = (0, kind(DType::F32, &[-1, -1, -1]));
        });
        refused("\"input_ids\" is float32", |_, inputs, _| inputs[0].kind = kind(DType::F32, &[-1, -1]));
        refused("\"input_ids\" is int64[", |_, inputs, _| inputs[0].kind = kind(DType::I64, &[-1, -1, 1]));
        refused("\"past_key_values.0.value\"", |_, inputs, _| inputs[3].kind = kind(DType::F16, &[-1, 2, -1, 8]));
        refused("\"past_key_values.0.key\"", |_, inputs, _| inputs[2].kind = ValueType::Opaque);
        refused("\"past_key_values.0.key\"", |_, inputs, _| inputs[2].kind = kind(DType::I8, &[-1, 2, -1, 8]));
        refused("\"past_key_values.1.key\"", |_, inputs, _| inputs[4].kind = kind(DType::F32, &[-1, 2, -1, 4]));
        refused("fixed length", |_, inputs, _| inputs[0].kind = kind(DType::I64, &[-1, 1]));
        refused("fixed length", |_, inputs, _| inputs[2].kind = kind(DType::F32, &[-1, 2, 64, 8]));
        refused("always has 4 rows", |_, inputs, _| inputs[1].kind = kind(DType::I64, &[4, -1]));
        refused("\"present.0.key\"", |_, _, outputs| outputs[1].kind = kind(DType::F32, &[-1, 2, -1]));
        // A name may say any number.
        refused("takes no keys", |_, inputs, _| {
            inputs.truncate(2);
            inputs.push(port("past_key_values.18446744073709551615.key", DType::F32, &[-1, 2, -1, 8]));
        });
        refused("to be two things", |config, inputs, _| {
            config.names.mask = "input_ids".into();
            inputs.remove(1);
        });
        refused("to be two things", |config, _, _| config.names.positions = "attention_mask".into());
        refused("to be two things", |config, _, _| config.names.present[1] = config.names.present[0].clone());
    }

    #[test]
    fn sizes_that_cannot_be_are_no_keys() {
        for (heads, size) in [(0, 8), (2, 0), (1 << 62, 8), (2, i64::MAX), (1 << 20, 1 << 20)] {
            let fixed = [-1, heads, -1, size];
            refused("none that can be", |config, inputs, outputs| {
                (config.kv_heads, config.head_size) = (0, 0);
                inputs[2..].iter_mut().chain(&mut outputs[1..]).for_each(|port| port.kind = kind(DType::F32, &fixed));
            });
        }
        refused("none that can be", |config, inputs, outputs| {
            (config.kv_heads, config.head_size) = (usize::MAX, usize::MAX);
            let ports = inputs[2..].iter_mut().chain(&mut outputs[1..]);
            ports.for_each(|port| port.kind = kind(DType::F32, &[-1, -1, -1, -1]));
        });
    }

    #[test]
    fn a_pattern_knows_its_own_names() {
        let pattern = Pattern::new("past.%d.key").unwrap();
        assert_eq!((pattern.name(12), pattern.layer("past.12.key")), ("past.12.key".into(), Some(12)));
        for other in ["past.12.value", "past..key", "past.+1.key", "past.01.key", "ast.1.key"] {
            assert_eq!(pattern.layer(other), None, "{other}");
        }
        assert_eq!((Pattern::new("past"), Pattern::new("%d.%d")), (None, None));
    }
}
