//! `genai_config.json`: what a folder made for onnxruntime-genai says of its decoder.

use crate::{
    decoder::{Config, Names, Pattern},
    error::BACKEND,
};
use infer_core::{Error, ErrorKind, Result};
use serde::{Deserialize, de::IgnoredAny};
use serde_json::{Map, Value};
use std::{
    fs,
    path::{Component, Path, PathBuf},
};

/// The file's name.
pub(crate) const FILE: &str = "genai_config.json";

#[derive(Deserialize)]
struct File {
    model: Model,
    #[serde(default)]
    search: Search,
}

#[derive(Deserialize)]
struct Model {
    #[serde(rename = "type", default)]
    architecture: String,
    #[serde(default)]
    context_length: usize,
    #[serde(default)]
    vocab_size: usize,
    decoder: Option<Decoder>,
    encoder: Option<IgnoredAny>,
    embedding: Option<IgnoredAny>,
    vision: Option<IgnoredAny>,
    speech: Option<IgnoredAny>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Search {
    past_present_share_buffer: bool,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Decoder {
    filename: String,
    session_options: Map<String, Value>,
    num_attention_heads: usize,
    num_key_value_heads: usize,
    num_hidden_layers: usize,
    head_size: usize,
    inputs: Inputs,
    outputs: Outputs,
    sliding_window: Option<IgnoredAny>,
    pipeline: Option<IgnoredAny>,
}

#[derive(Deserialize)]
#[serde(default)]
struct Inputs {
    input_ids: String,
    attention_mask: String,
    position_ids: String,
    past_key_names: String,
    past_value_names: String,
    past_names: String,
}

impl Default for Inputs {
    fn default() -> Self {
        Self {
            input_ids: "input_ids".into(),
            attention_mask: "attention_mask".into(),
            position_ids: "position_ids".into(),
            past_key_names: "past_key_values.%d.key".into(),
            past_value_names: "past_key_values.%d.value".into(),
            past_names: String::new(),
        }
    }
}

#[derive(Deserialize)]
#[serde(default)]
struct Outputs {
    logits: String,
    present_key_names: String,
    present_value_names: String,
    present_names: String,
}

impl Default for Outputs {
    fn default() -> Self {
        Self {
            logits: "logits".into(),
            present_key_names: "present.%d.key".into(),
            present_value_names: "present.%d.value".into(),
            present_names: String::new(),
        }
    }
}

/// Reads the configuration of a folder.
///
/// # Errors
/// [`Io`](ErrorKind::Io); [`InvalidModel`](ErrorKind::InvalidModel) for what is no such file, or names files outside its folder;
/// [`Unsupported`](ErrorKind::Unsupported) for libraries to load, models of several graphs, and caches of other kinds.
pub(crate) fn read(folder: &Path) -> Result<Config> {
    let path = folder.join(FILE);
    let text = fs::read_to_string(&path).map_err(|error| {
        Error::new(ErrorKind::Io, format!("{}: cannot be read", path.display()))
            .with_backend(BACKEND)
            .with_source(error)
    })?;
    parse(&text, folder)
        .map_err(|(kind, why)| Error::new(kind, format!("{}: {why}", path.display())).with_backend(BACKEND))
}

type Refusal = (ErrorKind, String);

fn parse(text: &str, folder: &Path) -> Result<Config, Refusal> {
    let file: File =
        serde_json::from_str(text).map_err(|error| (ErrorKind::InvalidModel, format!("not as expected: {error}")))?;
    let Model { decoder, .. } = &file.model;
    check_parts(&file.model)?;
    let decoder = decoder.as_ref().ok_or_else(|| invalid("there is no `model.decoder`"))?;
    check_options(&decoder.session_options)?;
    check_cache(decoder)?;
    let Decoder { inputs, outputs, .. } = decoder;
    let heads = decoder.num_attention_heads;
    Ok(Config {
        graph: inside(folder, "model.decoder.filename", &decoder.filename)?,
        architecture: file.model.architecture.clone(),
        context: file.model.context_length,
        vocab: file.model.vocab_size,
        layers: decoder.num_hidden_layers,
        kv_heads: if decoder.num_key_value_heads > 0 { decoder.num_key_value_heads } else { heads },
        head_size: decoder.head_size,
        names: Names {
            tokens: inputs.input_ids.clone(),
            mask: inputs.attention_mask.clone(),
            positions: inputs.position_ids.clone(),
            past: [
                pattern("past_key_names", &inputs.past_key_names)?,
                pattern("past_value_names", &inputs.past_value_names)?,
            ],
            present: [
                pattern("present_key_names", &outputs.present_key_names)?,
                pattern("present_value_names", &outputs.present_value_names)?,
            ],
            logits: outputs.logits.clone(),
        },
        shares_buffer: file.search.past_present_share_buffer,
        one_token: false,
    })
}

fn invalid(why: impl Into<String>) -> Refusal {
    (ErrorKind::InvalidModel, why.into())
}

fn unsupported(why: impl Into<String>) -> Refusal {
    (ErrorKind::Unsupported, why.into())
}

/// One graph that turns tokens into logits.
fn check_parts(model: &Model) -> Result<(), Refusal> {
    let parts = [
        ("encoder", &model.encoder),
        ("embedding", &model.embedding),
        ("vision", &model.vision),
        ("speech", &model.speech),
    ];
    match parts.iter().find(|(_, part)| part.is_some()) {
        Some((name, _)) => {
            Err(unsupported(format!("`model.{name}`: a model of several graphs; only those of one decoder are run")))
        }
        None => Ok(()),
    }
}

fn check_cache(decoder: &Decoder) -> Result<(), Refusal> {
    if decoder.sliding_window.is_some() {
        return Err(unsupported("`model.decoder.sliding_window`: a cache that is moved on is not supported"));
    }
    if decoder.pipeline.is_some() {
        return Err(unsupported("`model.decoder.pipeline`: a decoder of several graphs is not supported"));
    }
    if !decoder.inputs.past_names.is_empty() || !decoder.outputs.present_names.is_empty() {
        return Err(unsupported("`past_names`, `present_names`: keys and values in one tensor are not supported"));
    }
    Ok(())
}

/// A model says what it is, not what is run on this machine: libraries are not loaded on its word, and what it would like of the runtime
/// is the caller's to choose.
fn check_options(options: &Map<String, Value>) -> Result<(), Refusal> {
    const QUIET: [&str; 4] = ["log_id", "log_severity_level", "log_verbosity_level", "enable_profiling"];
    for (name, value) in options {
        match name.as_str() {
            "custom_ops_library" => {
                return Err(unsupported(format!(
                    "`session_options.custom_ops_library` wants the library {value} to be loaded, which is refused"
                )));
            }
            "provider_options" => check_providers(value)?,
            _ if QUIET.contains(&name.as_str()) => {}
            _ if names_file(name) => {
                return Err(unsupported(format!("`session_options.{name}` names a file: {value}")));
            }
            _ => tracing::debug!("{FILE}: `session_options.{name}` is left to who opens the model"),
        }
    }
    Ok(())
}

fn names_file(option: &str) -> bool {
    ["file", "path", "library", "folder"].iter().any(|word| option.contains(word))
}

/// Providers are chosen where the model is opened. Their options may name libraries and files.
fn check_providers(providers: &Value) -> Result<(), Refusal> {
    for (name, options) in providers.as_array().into_iter().flatten().filter_map(Value::as_object).flatten() {
        let named = options.as_object().into_iter().flatten().find(|(option, _)| names_file(option));
        if let Some((option, value)) = named {
            return Err(unsupported(format!("the option {option:?} of the provider {name:?} names a file: {value}")));
        }
        tracing::debug!(
            "{FILE}: made for the provider {name:?}; which one is used is chosen where the model is opened"
        );
    }
    Ok(())
}

/// A path that does not leave the folder.
fn inside(folder: &Path, what: &str, name: &str) -> Result<PathBuf, Refusal> {
    let path = Path::new(name);
    if name.is_empty() {
        return Err(invalid(format!("`{what}` is missing")));
    }
    // On Unix a backslash is a letter of a name; a folder for Windows must not get around this.
    if name.contains('\\') || !path.components().all(|part| matches!(part, Component::Normal(_) | Component::CurDir)) {
        return Err(invalid(format!("`{what}` is {name:?}, outside its folder, which is refused")));
    }
    Ok(folder.join(path))
}

fn pattern(what: &str, text: &str) -> Result<Pattern, Refusal> {
    Pattern::new(text)
        .ok_or_else(|| invalid(format!("`{what}` is {text:?}, without a place `%d` for the number of the layer")))
}

#[cfg(test)]
mod tests {
    use super::*;

    const FOLDER: &str = "some/folder";

    fn config(change: impl FnOnce(&mut Value)) -> Result<Config, Refusal> {
        let mut file = serde_json::json!({
            "model": {
                "type": "llama", "context_length": 64, "vocab_size": 300, "eos_token_id": [2, 3],
                "decoder": {
                    "filename": "model.onnx", "hidden_size": 32, "num_attention_heads": 4, "num_key_value_heads": 2,
                    "num_hidden_layers": 2, "head_size": 8,
                    "session_options": {"log_id": "x", "provider_options": [{"cuda": {"enable_cuda_graph": "0"}}]},
                    "inputs": {"input_ids": "ids", "past_key_names": "k_%d"},
                },
            },
            "search": {"past_present_share_buffer": true, "max_length": 64},
        });
        change(&mut file);
        parse(&file.to_string(), Path::new(FOLDER))
    }

    #[track_caller]
    fn refused(kind: ErrorKind, words: &str, change: impl FnOnce(&mut Value)) {
        let (found, why) = config(change).expect_err("it is refused");
        assert!(found == kind && why.contains(words), "{found:?}: {why}");
    }

    #[test]
    fn what_is_said_is_taken_and_names_have_defaults() {
        let found = config(|_| ()).unwrap();
        assert_eq!(found.graph, Path::new(FOLDER).join("model.onnx"));
        assert_eq!((found.context, found.vocab, found.layers), (64, 300, 2));
        assert_eq!((found.kv_heads, found.head_size), (2, 8));
        assert!(found.shares_buffer);
        let names = found.names;
        assert_eq!((names.tokens.as_str(), names.mask.as_str()), ("ids", "attention_mask"));
        assert_eq!((names.past[0].name(7), names.past[1].name(0)), ("k_7".into(), "past_key_values.0.value".into()));
        let alone = config(|file| file["search"] = serde_json::json!({})).unwrap();
        assert!(!alone.shares_buffer);
    }

    #[test]
    fn files_outside_the_folder_are_refused() {
        for name in ["../model.onnx", "/etc/model.onnx", "a/../../model.onnx", "..\\model.onnx", "C:\\model.onnx"] {
            refused(ErrorKind::InvalidModel, "outside its folder", |file| {
                file["model"]["decoder"]["filename"] = name.into();
            });
        }
        refused(ErrorKind::InvalidModel, "is missing", |file| file["model"]["decoder"]["filename"] = "".into());
        config(|file| file["model"]["decoder"]["filename"] = "./onnx/model.onnx".into()).unwrap();
    }

    #[test]
    fn libraries_and_files_of_options_are_refused() {
        for (option, value) in [
            ("custom_ops_library", "ops.so".into()),
            ("ep_context_file_path", "../x.onnx".into()),
            ("provider_options", serde_json::json!([{"VitisAI": {"config_file": "..\\vaip.json"}}])),
            ("provider_options", serde_json::json!([{"qnn": {"backend_path": "libQnnHtp.so"}}])),
        ] {
            refused(ErrorKind::Unsupported, option.split('_').next().unwrap(), |file| {
                file["model"]["decoder"]["session_options"][option] = value;
            });
        }
    }

    #[test]
    fn what_is_no_single_decoder_is_refused_by_name() {
        for part in ["encoder", "embedding", "vision", "speech"] {
            refused(ErrorKind::Unsupported, part, |file| file["model"][part] = serde_json::json!({}));
        }
        for part in ["sliding_window", "pipeline"] {
            refused(ErrorKind::Unsupported, part, |file| file["model"]["decoder"][part] = serde_json::json!({}));
        }
        refused(ErrorKind::Unsupported, "past_names", |file| {
            file["model"]["decoder"]["inputs"]["past_names"] = "past_%d".into();
        });
        refused(ErrorKind::InvalidModel, "%d", |file| {
            file["model"]["decoder"]["inputs"]["past_key_names"] = "past".into();
        });
        refused(ErrorKind::InvalidModel, "decoder", |file| {
            _ = file["model"].as_object_mut().unwrap().remove("decoder")
        });
        refused(ErrorKind::InvalidModel, "not as expected", |file| file["model"]["vocab_size"] = "many".into());
    }
}
