//! Which weights an architecture wants, held against those that there are.

use super::{
    Weight,
    shards::{Place, Shards},
};
use crate::{
    Array, DType, Scope,
    config::{Affine, Layer, Quantization},
    error::error,
    linear::{Embedding, Linear, Matrix, Quantized, Rows},
    safetensors::Tensor,
};
use infer_core::{Error, ErrorKind, Result, cost};
use std::collections::HashSet;

/// The weights that were asked for so far.
pub(crate) struct Plan<'p> {
    shards: &'p Shards,
    quantization: &'p Quantization,
    prefix: &'static str,
    planned: Planned,
    taken: HashSet<Place>,
    /// Layers that can be quantised, and those that are passed over.
    layers: HashSet<String>,
    missing: Vec<String>,
    wrong: Vec<String>,
    refused: Vec<String>,
}

/// All of them: what is read, and what is computed from it.
#[derive(Default)]
pub(crate) struct Planned {
    pub(super) read: Vec<(Place, Weight)>,
    pub(super) computed: Vec<(Weight, Compute)>,
    weights: cost::Weights,
    /// Of numbers in floating point.
    dtype: Option<DType>,
}

/// Makes a weight when all others have been read.
pub(super) type Compute = Box<dyn for<'s> Fn(&'s Scope<'_>) -> Array<'s>>;

impl Planned {
    /// What is read, by the type of its numbers; the scales and biases of quantised weights are counted with them.
    pub(crate) fn weights(&self) -> &cost::Weights {
        &self.weights
    }

    /// The type of what is computed with all of them; `None` where there are none in floating point.
    pub(crate) fn dtype(&self) -> Option<DType> {
        self.dtype
    }

    /// Numbers of this type are among those that are computed with: where types differ, MLX computes in one that holds both.
    fn compute_in(&mut self, dtype: DType) {
        self.dtype = Some(match self.dtype {
            Some(other) if other != dtype => DType::F32,
            _ => dtype,
        });
    }
}

impl<'p> Plan<'p> {
    /// Nothing so far.
    pub(crate) fn new(shards: &'p Shards, quantization: &'p Quantization) -> Self {
        let (planned, taken, layers) = Default::default();
        let (missing, wrong, refused) = Default::default();
        Self { shards, quantization, prefix: "", planned, taken, layers, missing, wrong, refused }
    }

    /// From here on, names in the files begin with this.
    pub(crate) fn within(&mut self, prefix: &'static str) {
        self.prefix = prefix;
    }

    /// Whether there is a weight of this name.
    pub(crate) fn has(&self, name: &str) -> bool {
        self.shards.find(&self.full(name)).is_some()
    }

    /// A weight in floating point.
    pub(crate) fn tensor(&mut self, name: &str, shape: &[usize]) -> Weight {
        let weight = Weight::default();
        if let Some((place, tensor)) = self.take(name, shape, &[DType::F32, DType::F16, DType::Bf16]) {
            self.planned.weights.add(tensor.dtype().as_str(), tensor.elements(), tensor.bytes());
            self.planned.compute_in(tensor.dtype());
            self.planned.read.push((place, weight.clone()));
        }
        weight
    }

    /// A weight that is made of others, once they have been read.
    pub(crate) fn computed(&mut self, compute: impl for<'s> Fn(&'s Scope<'_>) -> Array<'s> + 'static) -> Weight {
        let weight = Weight::default();
        self.planned.computed.push((weight.clone(), Box::new(compute)));
        weight
    }

    /// A layer `x Wᵀ + b` that makes `outputs` numbers of `inputs`, quantised as the settings say.
    pub(crate) fn linear(&mut self, path: &str, inputs: usize, outputs: usize, has_bias: bool) -> Linear {
        let matrix = match self.affine(path, inputs) {
            Some(affine) => Matrix::Quantized(self.quantized(path, inputs, outputs, affine)),
            None => {
                let weight = self.tensor(&format!("{path}.weight"), &[outputs, inputs]);
                Matrix::Float(self.transposed(weight))
            }
        };
        Linear { matrix, bias: has_bias.then(|| self.tensor(&format!("{path}.bias"), &[outputs])) }
    }

    /// A table of `count` rows of `width` numbers, quantised as the settings say.
    pub(crate) fn embedding(&mut self, path: &str, count: usize, width: usize) -> Embedding {
        match self.affine(path, width) {
            Some(affine) => {
                let table = self.quantized(path, width, count, affine);
                Embedding { rows: Rows::Quantized(table.clone()), matrix: Matrix::Quantized(table) }
            }
            None => {
                let table = self.tensor(&format!("{path}.weight"), &[count, width]);
                let matrix = Matrix::Float(self.transposed(table.clone()));
                Embedding { rows: Rows::Float(table), matrix }
            }
        }
    }

    /// Passes over weights that are known to be of no use.
    pub(crate) fn ignore(&mut self, is_useless: impl Fn(&str) -> bool) {
        let prefix = self.prefix;
        self.pass_over(|name| name.strip_prefix(prefix).is_some_and(&is_useless));
    }

    /// Passes over weights of parts that are not run, by their full names.
    pub(crate) fn ignore_part(&mut self, prefix: &str) {
        self.pass_over(|name| name.starts_with(prefix));
    }

    /// Holds what was asked for against what there is.
    ///
    /// # Errors
    /// [`Unsupported`](ErrorKind::Unsupported) for weights that are quantised in another way; [`InvalidModel`](ErrorKind::InvalidModel), by their names,
    /// for weights that are missing, of another shape or type, or not known to the architecture.
    pub(crate) fn finish(self) -> Result<Planned> {
        let rest = self.shards.all().filter(|(place, _)| !self.taken.contains(place));
        let extra: Vec<_> = rest.map(|(_, tensor)| tensor.name().to_owned()).collect();
        let mut unknown: Vec<_> =
            self.quantization.quantized().filter(|&path| !self.layers.contains(path)).map(str::to_owned).collect();
        unknown.sort();
        let get = "the model's config.json and its weights do not belong together, or files are missing";
        let convert = "convert the model with mlx_lm.convert";
        self.report(ErrorKind::Unsupported, &self.refused, "weights cannot be used", convert)?;
        self.report(ErrorKind::InvalidModel, &self.wrong, "weights are not what config.json says", get)?;
        self.report(ErrorKind::InvalidModel, &self.missing, "weights are missing", get)?;
        self.report(ErrorKind::InvalidModel, &extra, "weights are not known to this architecture", get)?;
        let (what, mend) = (
            "`quantization` in config.json names what is no layer of the model",
            "mend the names, or take them out: how other layers are quantised their weights tell",
        );
        self.report(ErrorKind::InvalidModel, &unknown, what, mend)?;
        Ok(self.planned)
    }

    fn report(&self, kind: ErrorKind, names: &[String], what: &str, advice: &str) -> Result<()> {
        const SHOWN: usize = 5;
        if names.is_empty() {
            return Ok(());
        }
        let mut list = names.iter().take(SHOWN).cloned().collect::<Vec<_>>().join(", ");
        if names.len() > SHOWN {
            list += &format!(" and {} more", names.len() - SHOWN);
        }
        let message = format!("{}: {what}: {list}; {advice}", self.shards.folder().display());
        Err::<(), Error>(error(kind, message))
    }

    fn full(&self, name: &str) -> String {
        format!("{}{name}", self.prefix)
    }

    /// Takes weights by their full names, and what the settings say of their layers: these may be said to be quantised though their weights have been
    /// left out.
    fn pass_over(&mut self, is_useless: impl Fn(&str) -> bool) {
        let useless = self.shards.all().filter(|(_, tensor)| is_useless(tensor.name()));
        self.taken.extend(useless.map(|(place, _)| place));
        let layers = self.quantization.quantized().filter(|path| is_useless(&format!("{path}.weight")));
        self.layers.extend(layers.map(str::to_owned));
    }

    /// Takes a weight, and notes what is wrong with it.
    fn take(&mut self, name: &str, shape: &[usize], dtypes: &[DType]) -> Option<(Place, &'p Tensor)> {
        let name = self.full(name);
        let Some((place, tensor)) = self.shards.find(&name) else {
            self.missing.push(name);
            return None;
        };
        self.taken.insert(place);
        if tensor.shape() != shape {
            self.wrong.push(format!("{name} has the shape {:?}, not {shape:?}", tensor.shape()));
        } else if !dtypes.contains(&tensor.dtype()) {
            let wanted: Vec<_> = dtypes.iter().map(|dtype| dtype.as_str()).collect();
            self.wrong.push(format!("{name} is of type {}, not {}", tensor.dtype(), wanted.join(" or ")));
        } else {
            return Some((place, tensor));
        }
        None
    }

    /// How a layer is quantised, if it is.
    fn affine(&mut self, path: &str, inputs: usize) -> Option<Affine> {
        let full = self.full(path);
        self.layers.insert(full.clone());
        let last = |name: &str| {
            let (_, tensor) = self.shards.find(&format!("{full}.{name}"))?;
            Some((tensor.shape().last().copied()?, tensor.dtype()))
        };
        match self.quantization.layer(&full) {
            Layer::Float => None,
            Layer::Affine(affine) => Some(affine),
            Layer::Unsaid => {
                let (groups, dtype) = last("scales")?;
                let packed = last("weight").map_or(0, |(packed, _)| packed);
                let affine = Affine::of_shape(inputs, packed, groups).filter(|_| dtype.is_float());
                if affine.is_none() {
                    let shape =
                        format!("{packed} words and {groups} scales of type {dtype} for rows of {inputs} weights");
                    self.refused.push(format!("{full} has {shape}, which is no quantisation that is known"));
                }
                affine
            }
        }
    }

    fn quantized(&mut self, path: &str, inputs: usize, outputs: usize, affine: Affine) -> Quantized {
        let weights = [Weight::default(), Weight::default(), Weight::default()];
        let [packed, scales, biases] = weights.clone();
        let quantized = Quantized { packed, scales, biases, affine };
        let Some((words, groups)) = affine.row(inputs) else {
            let Affine { group_size, bits } = affine;
            let rows = format!("rows of {inputs} weights, which are no whole groups of {group_size} of {bits} bits");
            self.refused.push(format!("{} has {rows}", self.full(path)));
            return quantized;
        };
        let floats = &[DType::F32, DType::F16, DType::Bf16];
        let parts = [("weight", words, &[DType::U32][..]), ("scales", groups, floats), ("biases", groups, floats)];
        let mut bytes = 0;
        for ((name, columns, dtypes), weight) in parts.into_iter().zip(weights) {
            if let Some((place, tensor)) = self.take(&format!("{path}.{name}"), &[outputs, columns], dtypes) {
                bytes += tensor.bytes();
                if tensor.dtype().is_float() {
                    self.planned.compute_in(tensor.dtype());
                }
                self.planned.read.push((place, weight));
            }
        }
        let dtype = format!("{}-bit, groups of {}", affine.bits, affine.group_size);
        self.planned.weights.add(&dtype, (inputs as u64).saturating_mul(outputs as u64), bytes);
        quantized
    }

    /// A view of a matrix, transposed.
    fn transposed(&mut self, matrix: Weight) -> Weight {
        self.computed(move |scope| scope.enter(matrix.owned()).t())
    }
}
