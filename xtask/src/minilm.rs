//! all-MiniLM-L6-v2: from the files of its Python package to GGUF, in the names llama.cpp reads.

use std::fs::{self, File};
use std::io::{BufWriter, Write};
use std::path::Path;

use build_support::cache::sha256_file;
use build_support::gguf::{Field, Gguf, Tensor};
use build_support::{Error, Result, fixtures};
use serde_json::Value;

/// Of what is written.
const SHA256: &str = "9256d49ce40597b873b5fd82b31d05a07ad0317d6a2fe82abdeb3a8a1b633c20";

/// ggml's number of the format, and the file's for "all of it".
const F32: u32 = 0;
/// llama.cpp's number for the mean of all tokens.
const MEAN: u32 = 1;
const NORMAL: i32 = 1;
const CONTROL: i32 = 3;
/// Tokens whose text is no text.
const CONTROL_TOKENS: [&str; 5] = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"];

/// Makes the model file in `folder`, of what was unpacked there, which is removed.
pub(crate) fn convert(folder: &Path) -> Result<()> {
    let config = json(&folder.join("config.json"))?;
    let pooling = json(&folder.join("1_Pooling/config.json"))?;
    if pooling["pooling_mode_mean_tokens"] != true || config["architectures"][0] != "BertModel" {
        return Err(Error::new("this is another model: BertModel with mean pooling is what is converted here"));
    }
    let mut model = Gguf::new();
    describe(&mut model, &config)?;
    vocabulary(&mut model, &config, &folder.join("vocab.txt"), &folder.join("tokenizer_config.json"))?;
    weights(&mut model, &folder.join("model.safetensors"))?;

    let path = folder.join(fixtures::MINILM);
    let mut file = BufWriter::new(File::create(&path).map_err(|error| failed(&path, error))?);
    model.write_to(&mut file).and_then(|()| file.flush()).map_err(|error| failed(&path, error))?;
    let found = sha256_file(&path)?;
    if found != SHA256 {
        return Err(Error::new(format!(
            "the converted model has sha256 {found}, {SHA256} is pinned in xtask/src/minilm.rs"
        )));
    }
    for file in ["config.json", "vocab.txt", "tokenizer_config.json", "model.safetensors"] {
        fs::remove_file(folder.join(file)).map_err(|error| failed(&folder.join(file), error))?;
    }
    fs::remove_dir_all(folder.join("1_Pooling")).map_err(|error| failed(folder, error))
}

fn describe(model: &mut Gguf, config: &Value) -> Result<()> {
    let number = |key: &str| u32::try_from(config[key].as_u64().unwrap_or(u64::MAX)).map_err(|_| lacks(key));
    let epsilon = config["layer_norm_eps"].as_f64().ok_or_else(|| lacks("layer_norm_eps"))?;
    model
        .set("general.architecture", Field::text("bert"))
        .set("general.type", Field::text("model"))
        .set("general.name", Field::text("all-MiniLM-L6-v2"))
        .set("general.license", Field::text("apache-2.0"))
        .set("general.file_type", Field::U32(F32))
        .set("general.quantization_version", Field::U32(2))
        .set("bert.block_count", Field::U32(number("num_hidden_layers")?))
        .set("bert.context_length", Field::U32(number("max_position_embeddings")?))
        .set("bert.embedding_length", Field::U32(number("hidden_size")?))
        .set("bert.feed_forward_length", Field::U32(number("intermediate_size")?))
        .set("bert.attention.head_count", Field::U32(number("num_attention_heads")?))
        .set("bert.attention.layer_norm_epsilon", Field::F32(epsilon as f32))
        .set("bert.attention.causal", Field::Bool(false))
        .set("bert.pooling_type", Field::U32(MEAN))
        .set("tokenizer.ggml.token_type_count", Field::U32(number("type_vocab_size")?));
    Ok(())
}

/// A WordPiece vocabulary, as llama.cpp spells it: what begins a word has a mark in front, and what goes on with one has none.
fn vocabulary(model: &mut Gguf, config: &Value, list: &Path, tokenizer: &Path) -> Result<()> {
    let text = fs::read_to_string(list).map_err(|error| failed(list, error))?;
    let tokens: Vec<&str> = text.lines().collect();
    if config["vocab_size"] != tokens.len() {
        return Err(Error::new(format!("{} has {} tokens, and the model others", list.display(), tokens.len())));
    }
    let id = |name: &str| {
        let id = tokens.iter().position(|token| *token == name).ok_or_else(|| lacks(name))?;
        Ok(Field::U32(u32::try_from(id).map_err(|_| lacks(name))?))
    };
    let spelt = |token: &&str| match token.strip_prefix("##") {
        _ if CONTROL_TOKENS.contains(token) => token.as_bytes().to_vec(),
        Some(rest) => rest.as_bytes().to_vec(),
        None => format!("\u{2581}{token}").into_bytes(),
    };
    let kind = |token: &&str| if CONTROL_TOKENS.contains(token) { CONTROL } else { NORMAL };
    let lowercase = json(tokenizer)?["do_lower_case"].as_bool().ok_or_else(|| lacks("do_lower_case"))?;
    model
        .set("tokenizer.ggml.model", Field::text("bert"))
        .set("tokenizer.ggml.pre", Field::text("bert-bge"))
        .set("tokenizer.ggml.tokens", Field::Strs(tokens.iter().map(spelt).collect()))
        .set("tokenizer.ggml.token_type", Field::I32s(tokens.iter().map(kind).collect()))
        .set("tokenizer.ggml.normalizer.lowercase", Field::Bool(lowercase))
        .set("tokenizer.ggml.bos_token_id", id("[CLS]")?)
        // The field's name is spelt like this.
        .set("tokenizer.ggml.seperator_token_id", id("[SEP]")?)
        .set("tokenizer.ggml.unknown_token_id", id("[UNK]")?)
        .set("tokenizer.ggml.padding_token_id", id("[PAD]")?)
        .set("tokenizer.ggml.mask_token_id", id("[MASK]")?);
    Ok(())
}

/// The tensors of a safetensors file: eight bytes with the length of a JSON header, the header, the numbers.
fn weights(model: &mut Gguf, path: &Path) -> Result<()> {
    let malformed = || Error::new(format!("{} is no safetensors file of 32-bit floats", path.display()));
    let bytes = fs::read(path).map_err(|error| failed(path, error))?;
    let (length, rest) = bytes.split_first_chunk().ok_or_else(malformed)?;
    let length = usize::try_from(u64::from_le_bytes(*length)).map_err(|_| malformed())?;
    let (header, numbers) = rest.split_at_checked(length).ok_or_else(malformed)?;
    let header: Value = serde_json::from_slice(header).map_err(|_| malformed())?;
    for (name, about) in header.as_object().ok_or_else(malformed)? {
        let Some(name) = renamed(name) else { continue };
        let list = |value: &Value| value.as_array()?.iter().map(Value::as_u64).collect::<Option<Vec<u64>>>();
        let mut shape = list(&about["shape"]).ok_or_else(malformed)?;
        // Here the contiguous dimension comes last, there first.
        shape.reverse();
        let offsets = list(&about["data_offsets"]).ok_or_else(malformed)?;
        let &[start, end] = &offsets[..] else { return Err(malformed()) };
        let data = numbers.get(start as usize..end as usize).ok_or_else(malformed)?;
        if about["dtype"] != "F32" || data.len() as u64 != shape.iter().product::<u64>() * 4 {
            return Err(malformed());
        }
        model.tensors.push(Tensor { name, shape, dtype: F32, data: data.to_vec() });
    }
    Ok(())
}

/// llama.cpp's name of a tensor; `None` for one that embeddings do without: positions that count themselves, and the pooler that
/// was trained for another task.
fn renamed(name: &str) -> Option<String> {
    let (stem, kind) = name.rsplit_once('.')?;
    let Some(inside) = stem.strip_prefix("encoder.layer.") else {
        let name = match stem {
            "embeddings.word_embeddings" => "token_embd",
            "embeddings.position_embeddings" => "position_embd",
            "embeddings.token_type_embeddings" => "token_types",
            "embeddings.LayerNorm" => "token_embd_norm",
            _ => return None,
        };
        return Some(format!("{name}.{kind}"));
    };
    let (layer, part) = inside.split_once('.')?;
    let part = match part {
        "attention.self.query" => "attn_q",
        "attention.self.key" => "attn_k",
        "attention.self.value" => "attn_v",
        "attention.output.dense" => "attn_output",
        "attention.output.LayerNorm" => "attn_output_norm",
        "intermediate.dense" => "ffn_up",
        "output.dense" => "ffn_down",
        "output.LayerNorm" => "layer_output_norm",
        _ => return None,
    };
    Some(format!("blk.{layer}.{part}.{kind}"))
}

fn json(path: &Path) -> Result<Value> {
    let text = fs::read_to_string(path).map_err(|error| failed(path, error))?;
    serde_json::from_str(&text).map_err(|error| failed(path, error))
}

fn failed(path: &Path, error: impl std::fmt::Display) -> Error {
    Error::new(format!("{}: {error}", path.display()))
}

fn lacks(what: &str) -> Error {
    Error::new(format!("the model's files do not say what {what} is"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tensors_have_the_names_that_llama_cpp_reads() {
        for (theirs, ours) in [
            ("embeddings.word_embeddings.weight", Some("token_embd.weight")),
            ("embeddings.LayerNorm.bias", Some("token_embd_norm.bias")),
            ("encoder.layer.5.attention.self.key.bias", Some("blk.5.attn_k.bias")),
            ("encoder.layer.0.attention.output.LayerNorm.weight", Some("blk.0.attn_output_norm.weight")),
            ("encoder.layer.0.output.LayerNorm.weight", Some("blk.0.layer_output_norm.weight")),
            ("embeddings.position_ids", None),
            ("pooler.dense.weight", None),
            ("__metadata__", None),
        ] {
            assert_eq!(renamed(theirs).as_deref(), ours, "{theirs}");
        }
    }
}
