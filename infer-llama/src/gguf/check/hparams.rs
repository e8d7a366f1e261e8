//! The numbers that describe the network.

use super::{Facts, Purpose};
use crate::gguf::{Array, Value};
use infer_core::Result;
use std::ops::RangeInclusive;

/// Array sizes inside llama.cpp; beyond them it asserts.
const LAYERS: RangeInclusive<u32> = 1..=512;
const MAX_EXPERTS: u32 = 1024;

/// Architectures in which keys and values may differ in length. All others assert that they do not.
const UNEQUAL_HEADS: &[&str] = &[
    "bailingmoe",
    "bailingmoe3",
    "deepseek2",
    "deepseek2-ocr",
    "deepseek32",
    "deepseek4",
    "dots3note",
    "falcon-h1",
    "gemma",
    "gemma2",
    "gemma3",
    "gemma3n",
    "gemma4",
    "gemma4-assistant",
    "gemma-embedding",
    "glm-dsa",
    "glm5-next",
    "gpt-oss",
    "hrm_text",
    "hy_v4",
    "jamba",
    "jina-bert-v2",
    "jina-bert-v3",
    "kimi-k3",
    "kimi-linear",
    "lfm2",
    "lfm2moe",
    "mimo2",
    "minicpm3",
    "mistral4",
    "nomic-bert",
    "nomic-bert-moe",
    "phimoe",
    "plamo2",
    "plamo3",
    "plm",
    "qwen3tts",
    "step35",
    "t5encoder",
];

/// Numbers that may not be 0 where they are given: llama.cpp divides by them.
const DIVISORS: &[&str] =
    &["ssm.conv_kernel", "ssm.inner_size", "ssm.state_size", "ssm.time_step_rank", "wkv.head_size", "num_loops"];

/// Numbers of 1 or more that an architecture asserts.
const ASSERTED: &[(&str, &str)] = &[
    ("bailingmoe2", "expert_count"),
    ("dflash", "attention.sliding_window"),
    ("ernie4_5-moe", "interleave_moe_layer_step"),
    ("glm4moe", "expert_count"),
    ("grovemoe", "expert_count"),
    ("grovemoe", "experts_per_group"),
    ("hrm_text", "hrm.h_cycles"),
    ("hrm_text", "hrm.l_cycles"),
    ("hrm_text", "hrm.layers_per_stack"),
    ("lfm2moe", "expert_count"),
    ("llada-moe", "expert_count"),
    ("minimax-m3", "attention.indexer.block_size"),
    ("smallthinker", "expert_count"),
];

/// Architectures in which a position always has several coordinates.
const SECTIONED: &[&str] =
    &["paddleocr", "qwen2vl", "qwen35", "qwen35moe", "qwen3tts", "qwen3vl", "qwen3vlmoe", "qwen4exp"];

pub(super) fn check(facts: &Facts<'_>, purpose: Purpose) -> Result<()> {
    if facts.architecture == "clip" {
        return facts.refuse("general.architecture is clip: a projector for images, not a language model");
    }
    check_context(facts, purpose)?;
    let layers = check_layers(facts, purpose)?;
    check_floats(facts)?;
    check_rope(facts)?;
    check_pooling(facts)?;
    check_positive(facts, purpose)?;
    if let Some(layers) = layers {
        check_experts(facts, layers)?;
        check_heads(facts, layers, purpose)?;
    }
    Ok(())
}

/// A whole number that has to lie in a range; missing is wrong only where a model is opened.
fn in_range(facts: &Facts<'_>, name: &str, range: RangeInclusive<u32>, purpose: Purpose) -> Result<Option<u32>> {
    let key = facts.key(name);
    match facts.u32(name)? {
        Some(value) if !range.contains(&value) => {
            facts.refuse(format!("{key} is {value}, {} to {} is possible", range.start(), range.end()))
        }
        None if purpose == Purpose::Model => facts.refuse(format!("{key} is missing")),
        value => Ok(value),
    }
}

fn check_context(facts: &Facts<'_>, purpose: Purpose) -> Result<()> {
    // Positions are counted in i32.
    in_range(facts, "context_length", 1..=i32::MAX.unsigned_abs(), purpose)?;
    in_range(facts, "embedding_length", 1..=1 << 24, purpose)?;
    Ok(())
}

fn check_layers(facts: &Facts<'_>, purpose: Purpose) -> Result<Option<u32>> {
    let Some(layers) = in_range(facts, "block_count", LAYERS, purpose)? else { return Ok(None) };
    for name in ["nextn_predict_layers", "posnet.block_count", "convnext.block_count"] {
        if let Some(some) = facts.u32(name)?.filter(|&some| some > layers) {
            let key = facts.key(name);
            return facts.refuse(format!("{key} is {some}, more than the {layers} of {}", facts.key("block_count")));
        }
    }
    Ok(Some(layers))
}

/// NaN is never meant; the epsilons of norms are asserted to be 0 or more when a pass runs.
fn check_floats(facts: &Facts<'_>) -> Result<()> {
    let prefix = facts.key("");
    for (key, value) in facts.header.metadata() {
        let Some(name) = key.strip_prefix(&prefix) else { continue };
        let nan = match value {
            Value::F32(number) => number.is_nan(),
            Value::F64(number) => number.is_nan(),
            Value::Array(Array::F32(items)) => items.iter().any(|number| number.is_nan()),
            Value::Array(Array::F64(items)) => items.iter().any(|number| number.is_nan()),
            _ => false,
        };
        if nan {
            return facts.refuse(format!("{key} is not a number (NaN)"));
        }
        if name.ends_with("epsilon") {
            match value {
                Value::F32(number) if number.is_finite() && *number >= 0.0 => {}
                Value::F32(number) => {
                    return facts.refuse(format!("{key} is {number}, a finite number of 0 or more is wanted"));
                }
                other => return facts.wrong_type(key, other, "f32"),
            }
        }
    }
    Ok(())
}

fn check_rope(facts: &Facts<'_>) -> Result<()> {
    for name in ["rope.freq_base", "rope.freq_base_swa", "attention.compress_rope_freq_base"] {
        if let Some(base) = facts.f32(name)?.filter(|base| !(base.is_finite() && *base > 0.0)) {
            return facts.refuse(format!("{} is {base}, a finite number above 0 is wanted", facts.key(name)));
        }
    }
    for name in ["rope.scaling.factor", "rope.scale_linear"] {
        if let Some(factor) = facts.f32(name)?.filter(|factor| !(factor.is_finite() && *factor >= 0.0)) {
            return facts.refuse(format!("{} is {factor}, a finite number of 0 or more is wanted", facts.key(name)));
        }
    }
    let key = facts.key("rope.scaling.type");
    if let Some(kind) = facts.text(&key)?.filter(|kind| !matches!(*kind, "none" | "linear" | "yarn" | "longrope")) {
        return facts.refuse(format!("{key} is {kind:?}; none, linear, yarn and longrope are known"));
    }
    let scale = facts.f32("attention.temperature_scale")?.is_some_and(|scale| scale != 0.0);
    if scale && facts.u32("attention.temperature_length")? == Some(0) {
        return facts.refuse(format!("{} is 0", facts.key("attention.temperature_length")));
    }
    Ok(())
}

fn check_positive(facts: &Facts<'_>, purpose: Purpose) -> Result<()> {
    for name in DIVISORS {
        if facts.u32(name)? == Some(0) {
            return facts.refuse(format!("{} is 0", facts.key(name)));
        }
    }
    for (_, name) in ASSERTED.iter().filter(|(architecture, _)| *architecture == facts.architecture) {
        if purpose == Purpose::Model && facts.u32(name)?.unwrap_or(0) == 0 {
            return facts.refuse(format!("{} is 0 or missing, this architecture wants at least 1", facts.key(name)));
        }
    }
    // Their inner width is a constant of the code.
    if matches!(facts.architecture, "jamba" | "granitehybrid") && purpose == Purpose::Model {
        let (inner, width) = (facts.u32("ssm.inner_size")?, facts.u32("embedding_length")?);
        if inner.map(u64::from) != width.map(|width| 2 * u64::from(width)) {
            return facts.refuse(format!(
                "{} is not twice {}",
                facts.key("ssm.inner_size"),
                facts.key("embedding_length")
            ));
        }
    }
    Ok(())
}

fn check_pooling(facts: &Facts<'_>) -> Result<()> {
    for name in ["pooling_type", "classifier.pooling_type"] {
        // 0 none, 1 mean, 2 cls, 3 last, 4 rank; -1 leaves it open.
        if let Some(kind) = facts.u32(name)?.filter(|&kind| kind > 4 && kind != u32::MAX) {
            return facts.refuse(format!("{} is {kind}, 0 to 4 is possible", facts.key(name)));
        }
    }
    Ok(())
}

fn check_experts(facts: &Facts<'_>, layers: u32) -> Result<()> {
    let count = facts.u32("expert_count")?.unwrap_or(0);
    // These take a single expert for none.
    if matches!(facts.architecture, "hunyuan-dense" | "hunyuan_vl") && count <= 1 {
        return Ok(());
    }
    let key = |name| facts.key(name);
    if count > MAX_EXPERTS {
        return facts.refuse(format!("{} is {count}, at most {MAX_EXPERTS} is possible", key("expert_count")));
    }
    let used =
        facts.per_layer("expert_used_count", layers as usize)?.and_then(|all| all.into_iter().max()).unwrap_or(0);
    if used > count || (used == 0) != (count == 0) {
        return facts.refuse(format!(
            "{} is {used} with an {} of {count}: none of none, or 1 to all of some is possible",
            key("expert_used_count"),
            key("expert_count")
        ));
    }
    let groups = facts.u32("expert_group_count")?.unwrap_or(0);
    let groups_used = facts.u32("expert_group_used_count")?.unwrap_or(0);
    let fits = match groups {
        0 => true,
        1 => count > 1,
        _ => groups < count && count.is_multiple_of(groups) && groups_used > 0 && groups_used < groups,
    };
    if !fits {
        return facts.refuse(format!(
            "{} is {groups}, of which {groups_used} are used, with {count} experts: groups must be equal, more than those \
             used and fewer than the experts",
            key("expert_group_count")
        ));
    }
    Ok(())
}

fn check_heads(facts: &Facts<'_>, layers: u32, purpose: Purpose) -> Result<()> {
    let Some(heads) = facts.per_layer("attention.head_count", layers as usize)? else {
        return if purpose == Purpose::Model && !without_attention(facts.architecture) {
            facts.refuse(format!("{} is missing", facts.key("attention.head_count")))
        } else {
            Ok(())
        };
    };
    let none = heads.iter().all(|&heads| heads == 0);
    if none && !without_attention(facts.architecture) {
        return facts.refuse(format!("{} is 0", facts.key("attention.head_count")));
    }
    if let Some(kv) = facts.per_layer("attention.head_count_kv", layers as usize)? {
        // A layer without either has no attention. A layer is grouped evenly or not at all.
        let uneven = |(&heads, &kv): (&u32, &u32)| heads != 0 && kv != 0 && !heads.is_multiple_of(kv);
        if let Some(layer) = heads.iter().zip(&kv).position(uneven) {
            let (heads, kv) = (heads[layer], kv[layer]);
            let key = facts.key("attention.head_count_kv");
            return facts.refuse(format!("{key} is {kv} in layer {layer}, which does not divide its {heads} heads"));
        }
    }
    // llama.cpp takes the first layer for all.
    if heads[0] > 0 { check_head_length(facts, heads[0]) } else { Ok(()) }
}

fn check_head_length(facts: &Facts<'_>, heads: u32) -> Result<()> {
    let (key_name, value_name) = ("attention.key_length", "attention.value_length");
    let even = facts.u32("embedding_length")?.map(|width| width / heads);
    let length = |name| facts.u32(name).map(|length| length.or(even));
    let (Some(key), Some(value)) = (length(key_name)?, length(value_name)?) else { return Ok(()) };
    for (name, length) in [(key_name, key), (value_name, value)] {
        if length == 0 {
            let name = facts.key(name);
            return facts.refuse(format!(
                "{name} is 0, or there are more heads ({heads}) than {} has",
                facts.key("embedding_length")
            ));
        }
    }
    if key != value && !UNEQUAL_HEADS.contains(&facts.architecture) {
        let (key_name, value_name) = (facts.key(key_name), facts.key(value_name));
        return facts
            .refuse(format!("{key_name} is {key} and {value_name} {value}; this architecture wants them equal"));
    }
    let rotated = facts.u32("rope.dimension_count")?.unwrap_or(key);
    if rotated > key || !rotated.is_multiple_of(2) {
        let name = facts.key("rope.dimension_count");
        return facts
            .refuse(format!("{name} is {rotated}: an even number of at most {key}, the length of a key, is wanted"));
    }
    check_sections(facts, rotated)?;
    let (Some(rotated), key) =
        (facts.u32("rope.dimension_count_swa")?, facts.u32("attention.key_length_swa")?.unwrap_or(key))
    else {
        return Ok(());
    };
    if rotated > key || !rotated.is_multiple_of(2) {
        let name = facts.key("rope.dimension_count_swa");
        return facts
            .refuse(format!("{name} is {rotated}: an even number of at most {key}, the length of a key, is wanted"));
    }
    Ok(())
}

/// How many of the `rotated` numbers turn with each of several coordinates of a position, where it has several.
fn check_sections(facts: &Facts<'_>, rotated: u32) -> Result<()> {
    let key = facts.key("rope.dimension_sections");
    let sizes: Option<Vec<u64>> = match facts.header.value(&key) {
        None if SECTIONED.contains(&facts.architecture) => {
            return facts.refuse(format!("{key} is missing, this architecture wants it"));
        }
        None => return Ok(()),
        Some(Value::Array(array @ (Array::I32(_) | Array::U32(_)))) => {
            (0..array.len()).map(|index| array.item(index)?.as_u64()).collect()
        }
        Some(other) => return facts.wrong_type(&key, other, "an array of i32 or u32"),
    };
    // One of the first three has to be there, and llama.cpp adds all four in 32 bits.
    let fit =
        |sizes: Vec<u64>| sizes.iter().take(3).any(|&size| size > 0) && sizes.iter().sum::<u64>() <= u64::from(rotated);
    if sizes.is_some_and(fit) {
        return Ok(());
    }
    let shown = facts.header.value(&key).map_or_else(String::new, ToString::to_string);
    facts
        .refuse(format!("{key} is {shown}: sizes of at most {rotated} together, the first three not all 0, are wanted"))
}

/// Recurrent architectures, whose layers have no heads.
fn without_attention(architecture: &str) -> bool {
    architecture.contains("mamba") || architecture.contains("rwkv") || architecture == "wavtokenizer-dec"
}
