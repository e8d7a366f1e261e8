//! What is tested, and what is known of each.

use crate::opened::{
    DEVICE, DRAWING, HOST, Opened, SCARCE, SPLIT, UNIFIED, faked, linked, loaded, mlx, onnx, path, scripted,
};
use build_support::tiny;
use infer::{AdapterSource, Pooling};
use infer_core::{
    KvLayout,
    testing::{Cuts, Script},
};
use infer_sys::llama::fake;
use kit::expectation::Exception;

/// Something that promises what a [`Model`] promises.
pub(crate) struct Subject {
    pub(crate) name: &'static str,
    pub(crate) kind: Kind,
    /// Opens it on the thread that asks.
    pub(crate) open: fn() -> Opened,
    /// How far apart two logits (numbers of a vector) may be that are the same number: 0 where nothing but the tokens decides.
    pub(crate) epsilon: f32,
    /// The same, where the cells of a sequence do not lie in the order of its positions, so that attention adds in another
    /// order.
    pub(crate) scattered: f32,
    /// What its cells hold.
    pub(crate) cells: Cells,
    /// Whether tokens are drawn where the logits are computed.
    pub(crate) draws: bool,
    /// How much can be asked of it in a second.
    pub(crate) pace: Pace,
    /// The same with a pool of cells that a few sequences fill, where that can be had.
    pub(crate) scarce: Option<fn() -> Opened>,
    /// An adapter for it, and one for another model.
    pub(crate) adapters: Option<fn() -> [AdapterSource; 2]>,
    /// An encoder's own pooling, and its labels.
    pub(crate) pooling: Pooling,
    pub(crate) labels: &'static [&'static str],
    /// What it is known to fail.
    pub(crate) exceptions: &'static [Exception],
}

/// What can be made of a model.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Session,
    Encoder,
}

/// What a cell is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Cells {
    /// A position, of all sequences that have it in common.
    Shared,
    /// A position of one sequence: a fork has its own.
    Copied,
    /// The state of a sequence, however long.
    States,
}

/// How long a token takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Pace {
    /// Next to nothing.
    Quick,
    /// Milliseconds.
    Slow,
}

/// Cells are of 16 bits, and a pass of one token adds up in another order than a pass of many. Measured over the whole suite, logits of
/// size 3 are at most 0.014 apart (`llama`), 0.005 (`gemma3`, `lfm2`) or 0.00001 (`mamba`), and the encoders' numbers 0.003.
const TINY: f32 = 0.03;
/// SmolLM2's weights are of 4 bits and its products of whole numbers. Measured over the whole suite, whose passes are of fewer than 64
/// tokens: equal to the bit, where the cells of a sequence lie in its own order.
const SMOLLM2: f32 = 0.001;
/// Its attention adds up in 16 bits, cell by cell: up to 1.07 apart where they lie in another order, as sequences that share a pool
/// of cells come to have them.
const SMOLLM2_SCATTERED: f32 = 1.5;

/// Weights of 32 bits. Texts beside one decide in which order its numbers are added up: vectors of length 1 are 0.0001 apart.
const MINILM: f32 = 0.0005;

/// Numbers are of 32 bits, and a pass of one token adds up in another order than a pass of many. Measured over the whole suite, logits of
/// SmolLM2 with such weights are at most 0.00005 apart.
const ONNX: f32 = 0.0005;
/// Weights of 4 bits, and products of whole numbers: what goes into a product is rounded to 8 bits, so that a last bit that differs becomes
/// a step. Measured over the whole suite: at most 0.65.
const ONNX_INT4: f32 = 1.0;

/// As `ONNX`, in MLX's kernels.
const MLX: f32 = 0.0005;
/// Weights of 4 bits, whose products are of floats.
const MLX_4BIT: f32 = 0.005;

/// Weights of 32 bits, and padding that is masked: beside other texts, products are cut for the processor in other places.
const PADDED: f32 = 1e-4;

const DECODER: Subject = Subject {
    name: "",
    kind: Kind::Session,
    open: || panic!("every subject says how it is opened"),
    epsilon: 0.0,
    scattered: 0.0,
    cells: Cells::Shared,
    draws: false,
    pace: Pace::Quick,
    scarce: None,
    adapters: None,
    pooling: Pooling::None,
    labels: &[],
    exceptions: &[],
};

const TINY_DECODER: Subject = Subject { epsilon: TINY, scattered: TINY, ..DECODER };

const TINY_ONNX: Subject = Subject { epsilon: ONNX, scattered: ONNX, cells: Cells::Copied, ..DECODER };

const TINY_MLX: Subject = Subject { epsilon: MLX, scattered: MLX, cells: Cells::Copied, ..DECODER };

const ENCODER: Subject = Subject { kind: Kind::Encoder, pooling: Pooling::Mean, ..DECODER };

/// All of them. A runtime joins here.
pub(crate) fn all() -> &'static [Subject] {
    &[
        Subject {
            name: "scripted_unified",
            open: || scripted(Script::new()),
            scarce: Some(|| scripted(Script::new().with_cells(256))),
            ..DECODER
        },
        Subject {
            name: "scripted_split",
            open: || scripted(Script::new().with_layout(KvLayout::Split)),
            cells: Cells::Copied,
            ..DECODER
        },
        Subject { name: "scripted_recurrent", open: || scripted(Script::new().with_cuts(Cuts::Nowhere)), ..DECODER },
        Subject { name: "scripted_window", open: || scripted(Script::new().with_cuts(Cuts::Window(32))), ..DECODER },
        Subject {
            name: "faked_unified",
            open: || faked(fake_decoder(), "tiny-llama", UNIFIED),
            scarce: Some(|| faked(fake_decoder(), "tiny-llama", SCARCE)),
            ..DECODER
        },
        Subject {
            name: "faked_split",
            open: || faked(fake_decoder(), "tiny-llama", SPLIT),
            cells: Cells::Copied,
            ..DECODER
        },
        Subject {
            name: "faked_recurrent",
            open: || faked(fake_decoder().with_kind(fake::Kind::Recurrent), "tiny-llama", UNIFIED),
            cells: Cells::States,
            ..DECODER
        },
        Subject {
            name: "tiny_llama_unified",
            open: || linked("tiny-llama", UNIFIED),
            adapters: Some(tiny_adapters),
            scarce: Some(|| linked("tiny-llama", SCARCE)),
            ..TINY_DECODER
        },
        Subject {
            name: "tiny_llama_split",
            open: || linked("tiny-llama", SPLIT),
            cells: Cells::Copied,
            adapters: Some(tiny_adapters),
            ..TINY_DECODER
        },
        Subject {
            name: "tiny_llama_drawing_in_the_graph",
            open: || linked("tiny-llama", DRAWING),
            draws: true,
            ..TINY_DECODER
        },
        Subject {
            name: "tiny_llama_loaded",
            open: || loaded("tiny-llama", UNIFIED),
            adapters: Some(tiny_adapters),
            ..TINY_DECODER
        },
        Subject { name: "tiny_gemma3_unified", open: || linked("tiny-gemma3", UNIFIED), ..TINY_DECODER },
        Subject {
            name: "tiny_gemma3_split",
            open: || linked("tiny-gemma3", SPLIT),
            cells: Cells::Copied,
            ..TINY_DECODER
        },
        Subject {
            name: "tiny_mamba_unified",
            open: || linked("tiny-mamba", UNIFIED),
            cells: Cells::States,
            ..TINY_DECODER
        },
        Subject {
            name: "tiny_mamba_split",
            open: || linked("tiny-mamba", SPLIT),
            cells: Cells::States,
            ..TINY_DECODER
        },
        Subject { name: "tiny_lfm2_unified", open: || linked("tiny-lfm2", UNIFIED), ..TINY_DECODER },
        Subject { name: "tiny_lfm2_split", open: || linked("tiny-lfm2", SPLIT), cells: Cells::Copied, ..TINY_DECODER },
        Subject {
            name: "smollm2_unified",
            open: || linked("smollm2", UNIFIED),
            epsilon: SMOLLM2,
            scattered: SMOLLM2_SCATTERED,
            pace: Pace::Slow,
            ..DECODER
        },
        Subject {
            name: "smollm2_split",
            open: || linked("smollm2", SPLIT),
            epsilon: SMOLLM2,
            scattered: SMOLLM2,
            cells: Cells::Copied,
            pace: Pace::Slow,
            ..DECODER
        },
        Subject { name: "tiny_onnx_split", open: || onnx("tiny-onnx"), ..TINY_ONNX },
        Subject { name: "tiny_onnx_f16_split", open: || onnx("tiny-onnx-f16"), ..TINY_ONNX },
        Subject { name: "tiny_onnx_plain_split", open: || onnx("tiny-onnx-plain"), ..TINY_ONNX },
        Subject { name: "tiny_onnx_no_positions_split", open: || onnx("tiny-onnx-no-positions"), ..TINY_ONNX },
        Subject { name: "tiny_onnx_merged_split", open: || onnx("tiny-onnx-merged"), ..TINY_ONNX },
        Subject {
            name: "smollm2_onnx_int4_split",
            open: || onnx("smollm2-onnx-int4"),
            epsilon: ONNX_INT4,
            scattered: ONNX_INT4,
            pace: Pace::Slow,
            ..TINY_ONNX
        },
        Subject { name: "tiny_mlx_llama_split", open: || mlx("tiny-mlx-llama", HOST), ..TINY_MLX },
        Subject {
            name: "tiny_mlx_llama_drawing_in_the_graph_split",
            open: || mlx("tiny-mlx-llama", DEVICE),
            draws: true,
            ..TINY_MLX
        },
        Subject {
            name: "tiny_mlx_llama_4bit_split",
            open: || mlx("tiny-mlx-llama-mixed", HOST),
            epsilon: MLX_4BIT,
            scattered: MLX_4BIT,
            ..TINY_MLX
        },
        Subject { name: "tiny_mlx_mistral_split", open: || mlx("tiny-mlx-mistral-windows", HOST), ..TINY_MLX },
        Subject { name: "tiny_mlx_qwen2_split", open: || mlx("tiny-mlx-qwen2", HOST), ..TINY_MLX },
        Subject { name: "tiny_mlx_qwen3_split", open: || mlx("tiny-mlx-qwen3", HOST), ..TINY_MLX },
        Subject { name: "tiny_mlx_gemma3_split", open: || mlx("tiny-mlx-gemma3", HOST), ..TINY_MLX },
        Subject { name: "tiny_mlx_phi3_split", open: || mlx("tiny-mlx-phi3-longrope", HOST), ..TINY_MLX },
        Subject { name: "smollm2_mlx_split", open: || mlx("smollm2-mlx", HOST), pace: Pace::Slow, ..TINY_MLX },
        Subject { name: "scripted_encoder", open: || scripted(Script::new()), ..ENCODER },
        Subject {
            name: "faked_encoder",
            open: || faked(fake_decoder().with_kind(fake::Kind::Encoder), "tiny-bert", SPLIT),
            exceptions: &[Exception {
                case: "poolings_are_what_they_say",
                why: "its pooled numbers are made up, text by text: the faked library does not add up those of the tokens",
            }],
            ..ENCODER
        },
        Subject { name: "tiny_bert", open: || linked("tiny-bert", SPLIT), epsilon: TINY, ..ENCODER },
        Subject { name: "minilm", open: || linked("minilm", SPLIT), epsilon: MINILM, pace: Pace::Slow, ..ENCODER },
        Subject {
            name: "tiny_rank",
            open: || linked("tiny-rank", SPLIT),
            epsilon: TINY,
            pooling: Pooling::Rank,
            labels: &tiny::LABELS,
            ..ENCODER
        },
        Subject { name: "tiny_onnx_encoder", open: || onnx("tiny-onnx-encoder"), epsilon: PADDED, ..ENCODER },
        Subject { name: "minilm_onnx", open: || onnx("minilm-onnx"), epsilon: PADDED, pace: Pace::Slow, ..ENCODER },
        Subject { name: "minilm_mlx", open: || mlx("minilm-mlx", HOST), epsilon: PADDED, pace: Pace::Slow, ..ENCODER },
        Subject {
            name: "tiny_onnx_classifier",
            open: || onnx("tiny-onnx-classifier"),
            epsilon: PADDED,
            pooling: Pooling::Rank,
            labels: &tiny::LABELS,
            ..ENCODER
        },
    ]
}

fn tiny_adapters() -> [AdapterSource; 2] {
    ["tiny-lora", "tiny-lora-other"].map(|name| AdapterSource::new(name, path(name)))
}

/// As wide as the file says that goes with it.
fn fake_decoder() -> fake::Script {
    fake::Script::new().with_width(tiny::WIDTH as u16)
}
