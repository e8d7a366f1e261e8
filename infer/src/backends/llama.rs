//! llama.cpp itself, with what only it has: options of a model and of a session, GGUF headers, its devices.
//!
//! [`open`](crate::open) and the traits are enough for most programs, and for those that are to run on other backends too.

pub use infer_llama::*;

use super::{Shared, by_default, linked, loaded, shared};
use crate::{Backend, Inspection, Library, ModelKind, ModelSource};
use infer_core::{
    Result,
    cost::{Biases, Dims, Weights},
};
use infer_llama::gguf::{Header, Value};
use std::{ops::ControlFlow, path::Path};

fn library(choice: &Library) -> Result<Llama> {
    match choice {
        Library::Default => by_default(),
        Library::Linked => linked(),
        Library::Found => loaded(&Shared::Found),
        Library::At(path) => loaded(&Shared::At(path)),
        Library::Variant(variant) => loaded(&Shared::Built(*variant)),
    }
}

pub(super) fn open(
    source: &ModelSource,
    watch: &mut dyn FnMut(f32) -> ControlFlow<()>,
) -> Result<Box<dyn infer_core::Model>> {
    let llama = library(&source.library)?;
    let mut options = ModelOptions::new().with_vocab_only(source.vocab_only);
    options.devices.clone_from(&source.devices);
    Ok(Box::new(Model::open_watched(&llama, &source.path, &options, watch)?))
}

pub(super) fn devices(choice: &Library) -> Result<Vec<crate::Device>> {
    devices_of(&library(choice)?)
}

fn devices_of(llama: &Llama) -> Result<Vec<crate::Device>> {
    let known = |bytes| Some(bytes).filter(|&bytes| bytes > 0);
    let devices = llama.devices()?.into_iter().map(|device| crate::Device {
        backend: Backend::Llama,
        kind: match device.kind {
            DeviceKind::Cpu => "cpu",
            DeviceKind::Gpu => "gpu",
            DeviceKind::IntegratedGpu => "integrated-gpu",
            DeviceKind::Accelerator => "accelerator",
            _ => "other",
        },
        name: device.name,
        description: device.description,
        memory_free: known(device.memory_free),
        memory_total: known(device.memory_total),
    });
    Ok(devices.collect())
}

pub(super) fn installed() -> Vec<crate::Installed> {
    let described = |place: &str, path: Option<&Path>, llama: Result<Llama>| crate::Installed {
        backend: Backend::Llama,
        place: place.to_owned(),
        path: path.map(Path::to_owned),
        version: llama.as_ref().ok().map(|llama| llama.version().to_owned()),
        variant: llama.as_ref().ok().map(|llama| llama.variant().to_owned()),
        devices: llama.and_then(|llama| devices_of(&llama)),
    };
    let linked = super::is_linked().then(|| described("linked into this program", None, linked()));
    linked
        .into_iter()
        .chain(shared().into_iter().map(|one| described(&one.place, Some(&one.path), one.library)))
        .collect()
}

pub(super) fn inspect(source: &ModelSource) -> Result<Inspection> {
    let header = gguf::open(&source.path)?;
    let mut weights = Weights::default();
    for tensor in header.tensors() {
        weights.add(&tensor.dtype().name().to_lowercase(), tensor.elements(), tensor.bytes());
    }
    let family = |key| header.value(key).and_then(Value::as_str);
    let tokenizer = family("tokenizer.ggml.model").map(|model| match family("tokenizer.ggml.pre") {
        Some(pre) => format!("{model} ({pre})"),
        None => model.to_owned(),
    });
    Ok(Inspection {
        backend: Backend::Llama,
        kind: kind(&header),
        format: format!("GGUF {}", header.version()),
        files: header.parts().iter().map(|part| (part.path().to_owned(), part.bytes())).collect(),
        info: header.info(),
        weights,
        dims: dims(&header),
        kv: None,
        tokenizer,
        metadata: header.metadata().map(|(name, value)| (name.to_owned(), value.to_string())).collect(),
    })
}

/// What it does. Models with an encoder and a decoder (T5) are neither, and an adapter is no model.
fn kind(header: &Header) -> Option<ModelKind> {
    let is_adapter = header.value("general.type").and_then(Value::as_str) == Some("adapter");
    let is_causal = header.field("attention.causal") != Some(&Value::Bool(false));
    match &*header.info().architecture {
        _ if is_adapter => None,
        "t5" | "t5encoder" => None,
        _ if is_causal => Some(ModelKind::Decoder),
        _ => Some(ModelKind::Encoder),
    }
}

/// The dimensions of a transformer, as its fields and the presence of tensors tell them.
fn dims(header: &Header) -> Option<Dims> {
    let field = |name: &str| usize::try_from(header.field(name)?.as_u64()?).ok();
    let largest = |name: &str| usize::try_from(header.per_layer(name)?.into_iter().max()?).ok();
    let has = |name: &str| header.tensor(name).is_some();
    // Compressed keys and values, and state that does not grow: other formulas hold for these.
    if field("attention.kv_lora_rank").is_some() || field("ssm.state_size").is_some() {
        return None;
    }
    let info = header.info();
    let head_dim = match field("attention.key_length") {
        Some(length) => length,
        None => info.width.checked_div(info.heads)?,
    };
    let mut dims = Dims::new(info.layers, info.width, info.heads, info.kv_heads, head_dim, info.vocab)
        .with_tied(!has("output.weight"))
        .with_encoder(header.field("attention.causal") == Some(&Value::Bool(false)))
        .with_qk_norm(has("blk.0.attn_q_norm.weight"));
    let experts = field("expert_count").unwrap_or(0);
    if experts > 0 {
        dims = dims.with_experts(
            experts,
            field("expert_used_count").unwrap_or(experts),
            field("expert_shared_count").unwrap_or(0),
        );
    }
    let expert_width = field("expert_feed_forward_length").filter(|_| experts > 0);
    if let Some(inner) = expert_width.or_else(|| largest("feed_forward_length")) {
        // Some files keep both matrices that lead into the inner width in one.
        let joined =
            header.tensor("blk.0.ffn_up.weight").is_some_and(|up| up.shape().get(1) == Some(&(2 * inner as u64)));
        let gated = joined || has("blk.0.ffn_gate.weight") || has("blk.0.ffn_gate_exps.weight");
        dims = dims.with_feed_forward(inner).with_gated(gated);
    }
    if has("blk.0.attn_output.bias") {
        dims = dims.with_biases(Biases::All);
    } else if has("blk.0.attn_q.bias") || has("blk.0.attn_qkv.bias") {
        dims = dims.with_biases(Biases::Qkv);
    }
    let positions = header.tensor("position_embd.weight").and_then(|table| table.shape().get(1).copied());
    if let Some(positions) = positions.and_then(|positions| usize::try_from(positions).ok()) {
        dims = dims.with_positions(positions);
    }
    dims.validate().is_ok().then_some(dims)
}
