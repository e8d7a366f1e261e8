//! The dimensions in a `config.json`, as the Hugging Face hub has them beside a model.

use infer::{
    Error, ErrorKind,
    cost::{Biases, Dims},
};
use serde_json::Value;
use std::path::Path;

/// What a `config.json` says that matters here.
#[derive(Debug)]
pub(super) struct Config {
    pub(super) architecture: String,
    pub(super) dims: Dims,
    /// The context it was trained for, if it says.
    pub(super) context: Option<usize>,
    /// The number format of the weights, if it says.
    pub(super) dtype: Option<String>,
}

pub(super) fn read(path: &Path) -> Result<Config, Error> {
    let name = path.display();
    let text = crate::args::file(path)?;
    let whole: Value = serde_json::from_str(&text)
        .map_err(|error| Error::new(ErrorKind::InvalidInput, format!("{name} is not JSON")).with_source(error))?;
    parse(&whole).map_err(|what| Error::invalid_input(format!("{name}: {what}")))
}

fn parse(whole: &Value) -> Result<Config, String> {
    // A model that also sees or hears has the part that writes in an object of its own.
    let fields = Fields(whole.get("text_config").filter(|part| part.is_object()).unwrap_or(whole));
    for (name, what) in [("kv_lora_rank", "compressed keys and values"), ("state_size", "a recurrent state")] {
        if fields.number(&[name])?.is_some() {
            return Err(format!("`{name}` says that the model has {what}, which is not counted like attention"));
        }
    }
    let architecture = fields.0.get("model_type").and_then(Value::as_str).unwrap_or("unknown").to_owned();
    let width = fields.needed(&["hidden_size", "n_embd", "d_model"])?;
    let heads = fields.needed(&["num_attention_heads", "n_head"])?;
    let kv_heads = fields.number(&["num_key_value_heads"])?.unwrap_or(heads);
    let head_dim =
        fields.number(&["head_dim"])?.map_or_else(|| width.checked_div(heads).ok_or("there are no heads"), Ok)?;
    let layers = fields.needed(&["num_hidden_layers", "n_layer", "num_layers"])?;
    let dims = Dims::new(layers, width, heads, kv_heads, head_dim, fields.needed(&["vocab_size"])?)
        // What a config leaves out is the library's default, and that is tied.
        .with_tied(fields.flag("tie_word_embeddings").unwrap_or(true));
    let dims = feed_forward(&fields, dims)?;
    let dims = family(&architecture, &fields, dims)?;
    dims.validate().map_err(|error| error.to_string())?;
    Ok(Config {
        architecture,
        dims,
        context: fields.number(&["max_position_embeddings", "n_positions", "n_ctx"])?,
        dtype: ["torch_dtype", "dtype"].iter().find_map(|name| Some(fields.0.get(name)?.as_str()?.to_owned())),
    })
}

fn feed_forward(fields: &Fields<'_>, dims: Dims) -> Result<Dims, String> {
    let dims = match fields.number(&["num_local_experts", "num_experts", "n_routed_experts"])? {
        None | Some(0) => dims,
        Some(experts) => {
            let used = fields.number(&["num_experts_per_tok"])?.unwrap_or(experts);
            dims.with_experts(experts, used, fields.number(&["n_shared_experts"])?.unwrap_or(0))
        }
    };
    let expert = if dims.experts > 0 { fields.number(&["moe_intermediate_size"])? } else { None };
    let inner = match expert {
        Some(inner) => Some(inner),
        None => fields.number(&["intermediate_size", "n_inner", "ffn_dim"])?,
    };
    Ok(inner.map_or(dims, |inner| dims.with_feed_forward(inner)))
}

/// What a family of models has by its code and not by its config.
fn family(architecture: &str, fields: &Fields<'_>, dims: Dims) -> Result<Dims, String> {
    Ok(match architecture {
        "gpt2" => {
            let positions = fields.number(&["n_positions", "max_position_embeddings"])?.unwrap_or(1024);
            let inner = dims.feed_forward.unwrap_or_else(|| dims.width.saturating_mul(4));
            dims.with_feed_forward(inner).with_gated(false).with_positions(positions).with_biases(Biases::All)
        }
        "qwen2" | "qwen2_moe" => dims.with_biases(Biases::Qkv),
        "qwen3" | "qwen3_moe" | "gemma3_text" => dims.with_qk_norm(true),
        _ if fields.flag("attention_bias") == Some(true) => dims.with_biases(Biases::Qkv),
        _ => dims,
    })
}

struct Fields<'v>(&'v Value);

impl Fields<'_> {
    /// The first of these that is there and not null.
    fn number(&self, names: &[&str]) -> Result<Option<usize>, String> {
        let Some((name, value)) =
            names.iter().find_map(|name| Some((name, self.0.get(name).filter(|value| !value.is_null())?)))
        else {
            return Ok(None);
        };
        match value.as_u64().and_then(|number| usize::try_from(number).ok()) {
            Some(number) => Ok(Some(number)),
            None => Err(format!("`{name}` is {value}, a whole number is wanted")),
        }
    }

    fn needed(&self, names: &[&str]) -> Result<usize, String> {
        self.number(names)?.ok_or_else(|| format!("there is no `{}`", names.join("`, nor `")))
    }

    fn flag(&self, name: &str) -> Option<bool> {
        self.0.get(name)?.as_bool()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Parameters of the published checkpoints, from the fields of their configs that matter here.
    #[test]
    fn published_configs_give_published_counts() {
        for (config, parameters) in [
            (
                r#"{"model_type":"gpt2","n_embd":768,"n_head":12,"n_layer":12,"n_positions":1024,"n_inner":null,"vocab_size":50257}"#,
                124_439_808,
            ),
            (
                r#"{"model_type":"llama","hidden_size":4096,"num_attention_heads":32,"num_key_value_heads":8,"num_hidden_layers":32,
                    "intermediate_size":14336,"vocab_size":128256,"tie_word_embeddings":false,"attention_bias":false}"#,
                8_030_261_248,
            ),
            (
                r#"{"model_type":"qwen2","hidden_size":896,"num_attention_heads":14,"num_key_value_heads":2,"num_hidden_layers":24,
                    "intermediate_size":4864,"vocab_size":151936,"tie_word_embeddings":true}"#,
                494_032_768,
            ),
            (
                r#"{"model_type":"qwen3","hidden_size":2560,"num_attention_heads":32,"num_key_value_heads":8,"head_dim":128,
                    "num_hidden_layers":36,"intermediate_size":9728,"vocab_size":151936,"tie_word_embeddings":true}"#,
                4_022_468_096,
            ),
            (
                r#"{"model_type":"mixtral","hidden_size":4096,"num_attention_heads":32,"num_key_value_heads":8,"num_hidden_layers":32,
                    "intermediate_size":14336,"vocab_size":32000,"tie_word_embeddings":false,"num_local_experts":8,"num_experts_per_tok":2}"#,
                46_702_792_704,
            ),
        ] {
            let config = parse(&serde_json::from_str(config).unwrap()).unwrap();
            assert_eq!(config.dims.parameters().total(), parameters, "{}", config.architecture);
        }
    }

    #[test]
    fn what_is_missing_or_wrong_is_named() {
        for (config, what) in [
            ("{}", "no `hidden_size`, nor `n_embd`"),
            (r#"{"hidden_size":-1}"#, "`hidden_size` is -1"),
            (r#"{"hidden_size":64,"num_attention_heads":0,"num_hidden_layers":1,"vocab_size":8}"#, "no heads"),
            (r#"{"kv_lora_rank":512}"#, "compressed keys"),
            (r#"[1]"#, "no `hidden_size`"),
        ] {
            let said = parse(&serde_json::from_str(config).unwrap()).unwrap_err();
            assert!(said.contains(what), "{said}");
        }
    }

    #[test]
    fn the_part_that_writes_is_found_in_a_larger_model() {
        let config = r#"{"model_type":"gemma3","text_config":{"model_type":"gemma3_text","hidden_size":640,"num_attention_heads":4,
            "num_key_value_heads":1,"head_dim":256,"num_hidden_layers":18,"intermediate_size":2048,"vocab_size":262144}}"#;
        let config = parse(&serde_json::from_str(config).unwrap()).unwrap();
        assert_eq!((config.architecture.as_str(), config.dims.tied), ("gemma3_text", true));
    }
}
