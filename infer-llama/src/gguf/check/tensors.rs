//! The weights, as far as the header describes them.

use super::Facts;
use crate::gguf::{DType, Tensor, invalid};
use infer_core::Result;

/// What ggml asserts of the address of mapped weights.
const ALIGNMENT: u64 = 32;

pub(super) fn check(facts: &Facts<'_>) -> Result<()> {
    let header = facts.header;
    let refuse = |tensor: &Tensor, message: String| {
        Err(invalid(header.parts[tensor.part].path(), format!("the tensor {}: {message}", tensor.name())))
    };
    if header.tensors().is_empty() {
        return facts.refuse("there are no tensors in this file: it has a vocabulary at most");
    }
    let mut total = 0_u64;
    for tensor in header.tensors() {
        let dtype = tensor.dtype();
        let table = dtype == DType::I32 && is_table(tensor.name());
        if !dtype.is_weight() && !table {
            return refuse(tensor, format!("{dtype} is no format for weights"));
        }
        if dtype != DType::F32 && wants_floats(tensor.name()) {
            return refuse(
                tensor,
                format!("it is {dtype}, and added to or multiplied with F32 element by element: F32 is wanted"),
            );
        }
        if !tensor.offset().is_multiple_of(ALIGNMENT) {
            let message = format!("it lies at byte {}, which is no multiple of {ALIGNMENT}", tensor.offset());
            return refuse(tensor, message);
        }
        let Some(sum) = total.checked_add(tensor.bytes()) else {
            return refuse(tensor, "all tensors together overflow".to_owned());
        };
        total = sum;
    }
    Ok(())
}

/// Tables of token ids, in an architecture that routes by them.
fn is_table(name: &str) -> bool {
    name.contains("tid2eid")
}

/// Norms, biases, scales and the like: ggml has no operation for them in another format and aborts in the middle of a pass.
fn wants_floats(name: &str) -> bool {
    let stem = name.strip_suffix(".weight").unwrap_or(name);
    name.contains("norm")
        || name.ends_with(".bias")
        || [".scale", ".input_scale", "layer_output_scale.weight"].iter().any(|end| name.ends_with(end))
        || stem.ends_with("attn_sinks")
        || stem.contains("rope_freqs")
        || stem.contains("rope_factors")
        || ["ssm_a", "ssm_d", "ssm_conv1d", "shortconv.conv"].iter().any(|end| stem.ends_with(end))
}
