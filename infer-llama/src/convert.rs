//! llama.cpp's enums and ours.

use crate::{
    devices::DeviceKind,
    options::{KvType, LoadMode, ModelOptions, SplitMode},
    raw::{Family, KvFormat, ModelParams, Placement, Split, Weights},
};
use infer_core::VocabKind;
use infer_sys::llama::bindings::{
    GGML_BACKEND_DEVICE_TYPE_ACCEL, GGML_BACKEND_DEVICE_TYPE_CPU, GGML_BACKEND_DEVICE_TYPE_GPU,
    GGML_BACKEND_DEVICE_TYPE_IGPU,
};

pub(crate) fn vocab_kind(family: Family) -> VocabKind {
    match family {
        // Unigram vocabularies mark spaces as SentencePiece's own do.
        Family::SentencePiece | Family::Unigram => VocabKind::Spm,
        Family::BytePair => VocabKind::Bpe,
        Family::WordPiece => VocabKind::WordPiece,
        Family::None | Family::Other => VocabKind::Other,
    }
}

pub(crate) fn device_kind(kind: i32) -> DeviceKind {
    match u32::try_from(kind) {
        Ok(GGML_BACKEND_DEVICE_TYPE_CPU) => DeviceKind::Cpu,
        Ok(GGML_BACKEND_DEVICE_TYPE_GPU) => DeviceKind::Gpu,
        Ok(GGML_BACKEND_DEVICE_TYPE_IGPU) => DeviceKind::IntegratedGpu,
        Ok(GGML_BACKEND_DEVICE_TYPE_ACCEL) => DeviceKind::Accelerator,
        _ => DeviceKind::Other,
    }
}

pub(crate) fn split(mode: SplitMode) -> Split {
    match mode {
        SplitMode::None => Split::None,
        SplitMode::Layer => Split::Layer,
        SplitMode::Row => Split::Row,
    }
}

pub(crate) fn kv_format(kind: KvType) -> KvFormat {
    match kind {
        KvType::F32 => KvFormat::F32,
        KvType::F16 => KvFormat::F16,
        KvType::Bf16 => KvFormat::BF16,
        KvType::Q8_0 => KvFormat::Q8_0,
        KvType::Q5_1 => KvFormat::Q5_1,
        KvType::Q5_0 => KvFormat::Q5_0,
        KvType::Q4_1 => KvFormat::Q4_1,
        KvType::Q4_0 => KvFormat::Q4_0,
        KvType::Iq4Nl => KvFormat::IQ4NL,
    }
}

/// Bytes that 32 numbers take: those of a block of the quantised formats, with its scale (and its smallest number) of 16 bits each.
pub(crate) fn kv_bytes_of_32(kind: KvType) -> u64 {
    match kind {
        KvType::F32 => 128,
        KvType::F16 | KvType::Bf16 => 64,
        KvType::Q8_0 => 34,
        KvType::Q5_1 => 24,
        KvType::Q5_0 => 22,
        KvType::Q4_1 => 20,
        KvType::Q4_0 | KvType::Iq4Nl => 18,
    }
}

pub(crate) fn model_params(options: &ModelOptions, placement: Placement, can_map: bool) -> ModelParams {
    ModelParams {
        placement,
        weights: match options.load_mode {
            _ if options.absent => Weights::Absent,
            // Of a vocabulary there is nothing to map, and the library insists on an alignment that such files need not have.
            _ if options.vocab_only => Weights::Copied,
            LoadMode::Locked => Weights::Locked { mapped: can_map },
            LoadMode::Mapped if can_map => Weights::Mapped,
            LoadMode::Mapped | LoadMode::Copied => Weights::Copied,
            LoadMode::Direct => Weights::Direct,
        },
        vocab_only: options.vocab_only,
        check_tensors: options.check_tensors,
        repack: options.repack,
    }
}
