//! The tiny models, and one of them in pieces.

#[allow(unused_imports, reason = "each test uses a part of it")]
pub(crate) use build_support::tiny::{HEADS, KV_HEADS, LAYERS, WIDTH, gpt2, llama};

use super::gguf::{Field, Gguf};

/// The first layer of [`llama`], whose keys and values depend on nothing but their token and its position.
pub(crate) fn one_layer() -> Gguf {
    let mut gguf = llama();
    gguf.set("llama.block_count", Field::U32(1));
    gguf.tensors.retain(|tensor| !tensor.name.starts_with("blk.1."));
    gguf
}

/// The first tensors with the metadata in one file, the others in a second one.
pub(crate) fn split(mut first: Gguf) -> [Gguf; 2] {
    let total = first.tensors.len() as i32;
    let mut second = Gguf::new();
    second.tensors = first.tensors.split_off(5);
    first
        .set("split.no", Field::U16(0))
        .set("split.count", Field::U16(2))
        .set("split.tensors.count", Field::I32(total));
    second
        .set("split.no", Field::U16(1))
        .set("split.count", Field::U16(2))
        .set("split.tensors.count", Field::I32(total));
    [first, second]
}
