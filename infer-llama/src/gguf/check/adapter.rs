//! Adapters (LoRA): small matrices that belong to those of a model.
//!
//! llama.cpp looks at a part of the shapes when it loads an adapter, and multiplies in the middle of a pass: shapes that do not
//! fit end the process there. Types of metadata are asserted.

use super::Facts;
use crate::gguf::{DType, Header, Tensor, Value};
use infer_core::{Error, ErrorKind, Result};
use std::collections::BTreeMap;

const ALPHA: &str = "adapter.lora.alpha";
const INVOCATION: &str = "adapter.alora.invocation_tokens";
const EMBEDDINGS: &str = "token_embd.weight";
/// What each of the two matrices is called after the one they belong to.
const ENDS: [&str; 2] = [".lora_a", ".lora_b"];

impl Header {
    /// Refuses what cannot be an adapter of this model: another kind of file, another architecture, matrices that do not fit
    /// the model's.
    ///
    /// # Errors
    /// [`InvalidModel`](ErrorKind::InvalidModel), naming the file and the field or tensor;
    /// [`Unsupported`](ErrorKind::Unsupported) for an adapter that llama.cpp cannot apply as it was meant.
    pub fn check_adapter(&self, model: &Self) -> Result<()> {
        let facts = Facts::new(self)?;
        check_fields(&facts, model)?;
        let pairs = pairs(&facts)?;
        if pairs.is_empty() {
            return facts.refuse("there are no tensors in this file whose names end in .lora_a and .lora_b");
        }
        pairs.iter().try_for_each(|(name, pair)| check_pair(&facts, model, name, *pair))
    }
}

fn check_fields(facts: &Facts<'_>, model: &Header) -> Result<()> {
    for (key, wanted) in [("general.type", "adapter"), ("adapter.type", "lora")] {
        let said = facts.text(key)?;
        if said != Some(wanted) {
            let said = said.map_or("missing".to_owned(), |said| format!("\"{said}\""));
            return facts.refuse(format!("{key} is {said}, \"{wanted}\" is wanted: this is no LoRA adapter"));
        }
    }
    let of_model = model.architecture().unwrap_or_default();
    if facts.architecture != of_model {
        return facts.refuse(format!(
            "general.architecture is \"{}\", and the model's \"{of_model}\": the adapter was made for another model",
            facts.architecture
        ));
    }
    match facts.header.value(ALPHA) {
        None => {}
        Some(Value::F32(alpha)) if alpha.is_finite() => {}
        Some(Value::F32(alpha)) => return facts.refuse(format!("{ALPHA} is {alpha}, a finite number is wanted")),
        Some(other) => return facts.wrong_type(ALPHA, other, "f32"),
    }
    if facts.header.value(INVOCATION).is_some() {
        let message = format!(
            "{INVOCATION} is there: an activated adapter (aLoRA), which takes effect from these tokens on; only adapters that hold \
             for all tokens are supported"
        );
        return Err(unsupported(facts, message));
    }
    Ok(())
}

/// The two matrices for one of the model.
type Pair<'h> = [Option<&'h Tensor>; 2];

fn pairs<'h>(facts: &Facts<'h>) -> Result<BTreeMap<&'h str, Pair<'h>>> {
    let mut pairs: BTreeMap<&str, Pair<'_>> = BTreeMap::new();
    for tensor in facts.header.tensors() {
        let ends = ENDS.iter().enumerate().find_map(|(side, end)| Some((side, tensor.name().strip_suffix(end)?)));
        match ends {
            // Taken out wherever it occurs, by llama.cpp.
            Some((side, name)) if !ENDS.iter().any(|end| name.contains(end)) => {
                pairs.entry(name).or_default()[side] = Some(tensor);
            }
            // Some converters write these beside the matrices.
            None if tensor.name().ends_with("_norm.weight") => {
                tracing::warn!(
                    "the tensor {} of the adapter is ignored: llama.cpp adapts matrices only",
                    tensor.name()
                );
            }
            _ => {
                return facts.refuse(format!(
                    "the tensor {}: the name of a matrix of the model, and .lora_a or .lora_b, is wanted",
                    tensor.name()
                ));
            }
        }
    }
    Ok(pairs)
}

fn check_pair(facts: &Facts<'_>, model: &Header, name: &str, pair: Pair<'_>) -> Result<()> {
    let [Some(a), Some(b)] = pair else {
        let (there, missing) = if pair[0].is_some() { (ENDS[0], ENDS[1]) } else { (ENDS[1], ENDS[0]) };
        return facts.refuse(format!("the tensor {name}{there} is there, and {name}{missing} is not"));
    };
    let Some(target) = model.tensor(name) else {
        return facts.refuse(format!("the model has no tensor {name}: the adapter was made for another model"));
    };
    for tensor in [a, b] {
        if !tensor.dtype().is_weight() {
            return facts.refuse(format!("the tensor {}: {} is no format for weights", tensor.name(), tensor.dtype()));
        }
    }
    let (in_model, of_a) = (sizes(target), sizes(a));
    let rank = of_a[if name == EMBEDDINGS { 0 } else { 1 }];
    let [inputs, outputs, experts, more] = in_model;
    if outputs == 1 || more != 1 {
        return facts.refuse(format!("the tensor {name}: llama.cpp adapts matrices only, and the model's is none"));
    }
    if target.dtype() == DType::NVFP4 {
        return Err(unsupported(facts, format!("the tensor {name}: llama.cpp adapts no NVFP4 matrices")));
    }
    let wanted = if name == EMBEDDINGS {
        // Computed backwards, so that rows of it can be picked.
        if model.tensor("output.weight").is_none() {
            let message = format!("the tensor {name}: llama.cpp cannot adapt embeddings that are the output as well");
            return Err(unsupported(facts, message));
        }
        [[rank, outputs, experts, 1], [rank, inputs, experts, 1]]
    } else {
        [[inputs, rank, experts, 1], [rank, outputs, experts, 1]]
    };
    for (tensor, wanted) in [a, b].into_iter().zip(wanted) {
        if sizes(tensor) != wanted {
            return facts.refuse(format!(
                "the tensor {} is {}, and {} would fit the model's {}: the adapter was made for another model",
                tensor.name(),
                spelt(sizes(tensor)),
                spelt(wanted),
                spelt(in_model)
            ));
        }
    }
    Ok(())
}

fn unsupported(facts: &Facts<'_>, message: String) -> Error {
    Error::new(ErrorKind::Unsupported, format!("{}: {message}", facts.header.parts[0].path().display()))
}

/// All four sizes that ggml has; those that are not stated are 1.
fn sizes(tensor: &Tensor) -> [u64; 4] {
    std::array::from_fn(|index| tensor.shape().get(index).copied().unwrap_or(1))
}

/// As people write a shape.
fn spelt(sizes: [u64; 4]) -> String {
    let last = sizes.iter().rposition(|&size| size != 1).unwrap_or(0).max(1);
    sizes[..=last].iter().map(u64::to_string).collect::<Vec<_>>().join(" × ")
}
