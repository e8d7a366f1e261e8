//! A model of each architecture, as small as can be: 2 layers of 32 numbers, 4 heads, 64 tokens. Its weights are zeros.

use super::safetensors::{Tensor, file};
use serde_json::{Value, json};
use test_kit::Folder;

const WIDTH: usize = 32;
const INNER: usize = 64;
const VOCAB: usize = 64;
const HEAD: usize = 8;
/// Rows of keys, and of values: two heads for four of queries.
const KEYS: usize = 2 * HEAD;

/// A model to be written: settings and weights.
#[derive(Clone)]
pub(crate) struct Model {
    pub(crate) config: Value,
    pub(crate) weights: Vec<Tensor>,
}

impl Model {
    /// Writes it, its weights in one file.
    pub(crate) fn write(&self) -> Folder {
        let folder = Folder::new();
        folder.file("config.json", &self.config.to_string());
        folder.file("model.safetensors", &file(&self.weights));
        folder
    }
}

/// All of them, by their `model_type`.
pub(crate) fn all() -> Vec<(&'static str, Model)> {
    let mistral = with(llama(), "model_type", "mistral");
    vec![
        ("llama", llama()),
        ("mistral", mistral),
        ("qwen2", qwen2()),
        ("qwen3", qwen3()),
        ("gemma3_text", gemma3()),
        ("gemma3", seeing_gemma3()),
        ("phi3", phi3()),
        ("bert", bert()),
    ]
}

pub(crate) fn llama() -> Model {
    let mut shapes = vec![("model.embed_tokens.weight".to_owned(), vec![VOCAB, WIDTH])];
    for layer in 0..2 {
        let mut add =
            |name: &str, shape: &[usize]| shapes.push((format!("model.layers.{layer}.{name}.weight"), shape.to_vec()));
        add("input_layernorm", &[WIDTH]);
        add("self_attn.q_proj", &[WIDTH, WIDTH]);
        add("self_attn.k_proj", &[KEYS, WIDTH]);
        add("self_attn.v_proj", &[KEYS, WIDTH]);
        add("self_attn.o_proj", &[WIDTH, WIDTH]);
        add("post_attention_layernorm", &[WIDTH]);
        add("mlp.gate_proj", &[INNER, WIDTH]);
        add("mlp.up_proj", &[INNER, WIDTH]);
        add("mlp.down_proj", &[WIDTH, INNER]);
    }
    shapes.push(("model.norm.weight".to_owned(), vec![WIDTH]));
    Model { config: config("llama", json!({})), weights: zeros(shapes) }
}

pub(crate) fn qwen2() -> Model {
    let mut model = with(llama(), "model_type", "qwen2");
    for layer in 0..2 {
        for (name, rows) in [("q", WIDTH), ("k", KEYS), ("v", KEYS)] {
            model.weights.push(Tensor::zeros(
                format!("model.layers.{layer}.self_attn.{name}_proj.bias"),
                "F32",
                &[rows],
            ));
        }
    }
    model
}

pub(crate) fn qwen3() -> Model {
    let mut model = with(llama(), "model_type", "qwen3");
    norm_heads(&mut model);
    model
}

pub(crate) fn gemma3() -> Model {
    let mut model = llama();
    model.config =
        config("gemma3_text", json!({"head_dim": HEAD, "query_pre_attn_scalar": HEAD, "sliding_window_pattern": 2}));
    norm_heads(&mut model);
    for layer in 0..2 {
        for name in ["pre_feedforward_layernorm", "post_feedforward_layernorm"] {
            model.weights.push(Tensor::zeros(format!("model.layers.{layer}.{name}.weight"), "F32", &[WIDTH]));
        }
    }
    model
}

/// One whose language model is a part of it.
pub(crate) fn seeing_gemma3() -> Model {
    let Model { config: text, mut weights } = gemma3();
    weights.iter_mut().for_each(|weight| weight.name.insert_str(0, "language_model."));
    Model { config: json!({"model_type": "gemma3", "vocab_size": VOCAB, "text_config": text}), weights }
}

pub(crate) fn phi3() -> Model {
    let mut model = with(llama(), "model_type", "phi3");
    model.weights.retain(|weight| {
        !["q_proj", "k_proj", "v_proj", "gate_proj", "up_proj"].iter().any(|part| weight.name.contains(part))
    });
    for layer in 0..2 {
        for (name, rows) in [("self_attn.qkv_proj", WIDTH + 2 * KEYS), ("mlp.gate_up_proj", 2 * INNER)] {
            model.weights.push(Tensor::zeros(format!("model.layers.{layer}.{name}.weight"), "F32", &[rows, WIDTH]));
        }
    }
    model
}

pub(crate) fn bert() -> Model {
    let positions = 16;
    let mut shapes = vec![
        ("embeddings.word_embeddings.weight".to_owned(), vec![VOCAB, WIDTH]),
        ("embeddings.position_embeddings.weight".to_owned(), vec![positions, WIDTH]),
        ("embeddings.token_type_embeddings.weight".to_owned(), vec![2, WIDTH]),
    ];
    let mut pair = |path: String, shape: &[usize]| {
        shapes.push((format!("{path}.weight"), shape.to_vec()));
        shapes.push((format!("{path}.bias"), vec![shape[0]]));
    };
    pair("embeddings.LayerNorm".to_owned(), &[WIDTH]);
    for layer in 0..2 {
        let path = format!("encoder.layer.{layer}");
        for name in ["self.query", "self.key", "self.value", "output.dense"] {
            pair(format!("{path}.attention.{name}"), &[WIDTH, WIDTH]);
        }
        pair(format!("{path}.attention.output.LayerNorm"), &[WIDTH]);
        pair(format!("{path}.intermediate.dense"), &[INNER, WIDTH]);
        pair(format!("{path}.output.dense"), &[WIDTH, INNER]);
        pair(format!("{path}.output.LayerNorm"), &[WIDTH]);
    }
    let config = json!({
        "model_type": "bert", "hidden_size": WIDTH, "num_hidden_layers": 2, "num_attention_heads": 4, "intermediate_size": INNER,
        "vocab_size": VOCAB, "max_position_embeddings": positions, "layer_norm_eps": 1e-12, "hidden_act": "gelu",
    });
    Model { config, weights: zeros(shapes) }
}

/// A Llama whose matrices have so many bits, in such groups, and whose norms are in half precision.
pub(crate) fn quantized(bits: usize, group_size: usize) -> Model {
    let mut model = llama();
    model.config["quantization"] = json!({"group_size": group_size, "bits": bits});
    let quantize = |weight: Tensor| match weight.shape[..] {
        [rows, columns] => {
            let path = weight.name.strip_suffix(".weight").expect("a matrix is a weight").to_owned();
            let part = |name, dtype, columns| Tensor::zeros(format!("{path}.{name}"), dtype, &[rows, columns]);
            let groups = columns / group_size;
            vec![
                part("weight", "U32", columns * bits / 32),
                part("scales", "F16", groups),
                part("biases", "F16", groups),
            ]
        }
        _ => vec![Tensor::zeros(weight.name, "F16", &weight.shape)],
    };
    model.weights = model.weights.into_iter().flat_map(quantize).collect();
    model
}

/// The settings that most families share, and more.
fn config(model_type: &str, more: Value) -> Value {
    let mut config = json!({
        "model_type": model_type, "hidden_size": WIDTH, "num_hidden_layers": 2, "num_attention_heads": 4, "num_key_value_heads": 2,
        "intermediate_size": INNER, "vocab_size": VOCAB, "max_position_embeddings": 128, "rms_norm_eps": 1e-5, "rope_theta": 10000.0,
        "tie_word_embeddings": true,
    });
    let more = more.as_object().expect("names and values").clone();
    config.as_object_mut().expect("names and values").extend(more);
    config
}

fn with(mut model: Model, name: &str, value: impl Into<Value>) -> Model {
    model.config[name] = value.into();
    model
}

fn norm_heads(model: &mut Model) {
    for layer in 0..2 {
        for name in ["q_norm", "k_norm"] {
            model.weights.push(Tensor::zeros(format!("model.layers.{layer}.self_attn.{name}.weight"), "F32", &[HEAD]));
        }
    }
}

fn zeros(shapes: Vec<(String, Vec<usize>)>) -> Vec<Tensor> {
    shapes.into_iter().map(|(name, shape)| Tensor::zeros(name, "F32", &shape)).collect()
}
