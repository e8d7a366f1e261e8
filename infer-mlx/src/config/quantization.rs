//! `quantization`: how many bits the weights of each layer have.

use super::Config;
use infer_core::Result;
use serde_json::Value;
use std::collections::HashMap;

/// Bits a weight can have, as MLX stores them.
const BITS: [usize; 6] = [2, 3, 4, 5, 6, 8];
/// How many neighbours can share a scale and a bias.
const GROUPS: [usize; 3] = [32, 64, 128];

/// Whole numbers of a few bits, each group with a scale and a bias: a weight is `scale × number + bias`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Affine {
    pub(crate) group_size: usize,
    pub(crate) bits: usize,
}

/// What the settings say of a layer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Layer {
    /// It is not quantised.
    Float,
    /// It is quantised so.
    Affine(Affine),
    /// Nothing: it is quantised if it has scales, and their shape tells how.
    Unsaid,
}

/// How the layers of a model are quantised.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Quantization(Option<HashMap<String, Layer>>);

impl Quantization {
    /// Reads what the settings say.
    ///
    /// # Errors
    /// [`Unsupported`](infer_core::ErrorKind::Unsupported) for other ways to quantise, other numbers of bits, and other sizes of groups;
    /// [`InvalidModel`](infer_core::ErrorKind::InvalidModel) for what says none of it.
    pub(crate) fn read(config: &Config) -> Result<Self> {
        let Some(settings) = config.optional_part("quantization")? else {
            return match config.value("quantization_config") {
                None => Ok(Self::default()),
                Some(other) => Err(refuse_foreign(config, other)),
            };
        };
        let default = affine(&settings)?;
        let mut layers = HashMap::new();
        for (path, value) in settings.fields() {
            let layer = match value {
                Value::Bool(true) if is_path(path) => Layer::Affine(default),
                Value::Bool(false) => Layer::Float,
                Value::Object(_) => Layer::Affine(affine(&settings.part(path)?)?),
                Value::Null => continue,
                other if is_path(path) => return Err(settings.wrong(path, Some(other), "true, false or an object")),
                // The settings for all layers.
                _ => continue,
            };
            layers.insert(path.to_owned(), layer);
        }
        Ok(Self(Some(layers)))
    }

    /// What holds for the layer at this path, such as `model.layers.0.mlp.up_proj`.
    pub(crate) fn layer(&self, path: &str) -> Layer {
        match &self.0 {
            None => Layer::Float,
            Some(layers) => layers.get(path).copied().unwrap_or(Layer::Unsaid),
        }
    }

    /// The layers that are said to be quantised. That one is not is as true where there is none.
    pub(crate) fn quantized(&self) -> impl Iterator<Item = &str> {
        let layers = self.0.iter().flatten();
        layers.filter(|(_, layer)| matches!(layer, Layer::Affine(_))).map(|(path, _)| path.as_str())
    }
}

/// Whether a name is that of a layer, and not that of a setting for all of them.
fn is_path(name: &str) -> bool {
    name.contains('.') || name == "lm_head"
}

impl Affine {
    /// The settings that weights of this shape have in a layer that takes `inputs` numbers; `None` where none can.
    pub(crate) fn of_shape(inputs: usize, packed: usize, groups: usize) -> Option<Self> {
        let group_size = inputs.checked_div(groups)?;
        let bits = packed.checked_mul(32)?.checked_div(inputs)?;
        let found = Self { group_size, bits };
        (GROUPS.contains(&group_size) && BITS.contains(&bits)).then_some(found)
    }

    /// How many 32-bit words, and how many groups, a row of so many weights has; `None` where they do not come out even.
    pub(crate) fn row(self, inputs: usize) -> Option<(usize, usize)> {
        let bits = inputs.checked_mul(self.bits)?;
        (inputs.is_multiple_of(self.group_size) && bits.is_multiple_of(32))
            .then(|| (bits / 32, inputs / self.group_size))
    }
}

fn affine(settings: &Config) -> Result<Affine> {
    // What is left out is what MLX takes then.
    settings.only("mode", &["affine"])?;
    let number = |name: &str, known: &[usize], default: usize| {
        let found = settings.optional_size(name, 1 << 16)?.unwrap_or(default);
        if known.contains(&found) {
            return Ok(found);
        }
        let known: Vec<_> = known.iter().map(usize::to_string).collect();
        Err(settings.unsupported(format!(
            "`{}{name}` is {found}; supported are {}",
            settings.place(),
            known.join(", ")
        )))
    };
    Ok(Affine { group_size: number("group_size", &GROUPS, 64)?, bits: number("bits", &BITS, 4)? })
}

/// What other tools leave in a model that they have quantised.
fn refuse_foreign(config: &Config, settings: &Value) -> infer_core::Error {
    let method = settings.get("quant_method").map_or("unknown".to_owned(), Value::to_string);
    config.unsupported(format!(
        "`quantization_config` says that the weights are quantised by the method {method}, which is not supported; \
         those of MLX are (`quantization`): convert the model with mlx_lm.convert"
    ))
}
