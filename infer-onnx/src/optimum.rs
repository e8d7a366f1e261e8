//! `config.json`: what a folder exported by Optimum (or for transformers.js) says of its decoder.

use crate::{
    decoder::{Config, Names, Pattern},
    error::BACKEND,
};
use infer_core::{Error, ErrorKind, Result};
use serde_json::{Map, Value};
use std::{fs, path::Path};

/// The file's name.
pub(crate) const FILE: &str = "config.json";

/// Reads the configuration in `folder` of the decoder in the file `graph`.
///
/// # Errors
/// [`Io`](ErrorKind::Io); [`InvalidModel`](ErrorKind::InvalidModel) for what is no such file.
pub(crate) fn read(folder: &Path, graph: &Path) -> Result<Config> {
    let path = folder.join(FILE);
    let failed = |kind, what| Error::new(kind, format!("{}: {what}", path.display())).with_backend(BACKEND);
    let text = fs::read_to_string(&path).map_err(|error| failed(ErrorKind::Io, "cannot be read").with_source(error))?;
    let file: Map<String, Value> = serde_json::from_str(&text)
        .map_err(|error| failed(ErrorKind::InvalidModel, "not as expected").with_source(error))?;
    Ok(config(&file, graph))
}

/// Numbers have several names, by architecture. One that is not there is 0, and asked of the graph.
fn config(file: &Map<String, Value>, graph: &Path) -> Config {
    let number = |names: &[&str]| names.iter().find_map(|&name| file.get(name)?.as_u64()).unwrap_or(0) as usize;
    let heads = number(&["num_attention_heads", "n_head", "num_heads"]);
    let width = number(&["hidden_size", "n_embd", "d_model"]);
    let or = |number: usize, other: usize| if number > 0 { number } else { other };
    Config {
        graph: graph.to_owned(),
        architecture: file.get("model_type").and_then(Value::as_str).unwrap_or_default().to_owned(),
        context: number(&["max_position_embeddings", "n_positions", "n_ctx"]),
        vocab: number(&["vocab_size"]),
        layers: number(&["num_hidden_layers", "n_layer", "num_layers"]),
        kv_heads: or(number(&["num_key_value_heads"]), heads),
        head_size: or(number(&["head_dim"]), width.checked_div(heads).unwrap_or(0)),
        names: Names {
            tokens: "input_ids".into(),
            mask: "attention_mask".into(),
            positions: "position_ids".into(),
            past: ["key", "value"].map(|part| Pattern::around("past_key_values.", &format!(".{part}"))),
            present: ["key", "value"].map(|part| Pattern::around("present.", &format!(".{part}"))),
            logits: "logits".into(),
        },
        shares_buffer: false,
        one_token: is_with_past(graph),
    }
}

/// Whether a graph is called as exporters call the one of two that takes keys and values.
pub(crate) fn is_with_past(graph: &Path) -> bool {
    graph.file_name().and_then(|name| name.to_str()).is_some_and(|name| name.contains("with_past"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(text: &str) -> Config {
        config(&serde_json::from_str(text).unwrap(), Path::new("onnx/model.onnx"))
    }

    #[test]
    fn numbers_have_the_names_of_their_architecture() {
        let llama = parsed(
            r#"{"model_type": "llama", "hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4, "num_key_value_heads": 2,
                "head_dim": null, "max_position_embeddings": 64, "vocab_size": 300, "eos_token_id": 2, "bos_token_id": null}"#,
        );
        assert_eq!((llama.kv_heads, llama.head_size), (2, 8));
        assert_eq!((llama.context, llama.layers, llama.vocab), (64, 2, 300));
        assert_eq!(llama.names.past[1].name(11), "past_key_values.11.value");
        let gpt2 = parsed(
            r#"{"model_type": "gpt2", "n_embd": 32, "n_layer": 3, "n_head": 4, "n_positions": 64, "n_ctx": 64}"#,
        );
        assert_eq!((gpt2.kv_heads, gpt2.head_size, gpt2.layers, gpt2.context), (4, 8, 3, 64));
        assert!(!gpt2.shares_buffer);
        assert!(!is_with_past(Path::new("with_past/decoder_model_merged.onnx")));
        assert!(is_with_past(Path::new("onnx/decoder_with_past_model_quantized.onnx")));
    }
}
