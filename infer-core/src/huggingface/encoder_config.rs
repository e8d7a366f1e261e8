//! What the files beside a model's weights say of an encoder: how it pools, what its scores are of, how long a text can be.

use super::{invalid, settings::settings};
use crate::{Pooling, Result};
use serde_json::Value;
use std::path::{Component, Path};

/// Models whose learned positions begin behind that of the padding token, and are fewer by so many than their number.
const OFFSET_POSITIONS: [&str; 5] = ["roberta", "xlm-roberta", "camembert", "mpnet", "xlm-roberta-xl"];
/// Models with a learned vector for each position, whether or not their configuration says so.
const LEARNED_POSITIONS: [&str; 5] = ["bert", "distilbert", "albert", "electra", "layoutlm"];

/// What the files of a model say of it as an encoder; nothing of it need be said.
///
/// Of `config.json`, and of the files of sentence-transformers: `modules.json`, `1_Pooling/config.json`, `sentence_bert_config.json`.
#[derive(Clone, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct EncoderConfig {
    /// How hidden states are pooled.
    pub pooling: Option<Pooling>,
    /// A way of pooling, or a step behind it, that is not one of this library's.
    pub foreign: Option<String>,
    /// Whether it was made to classify.
    pub is_classifier: bool,
    /// Names of the scores.
    pub labels: Vec<String>,
    /// Positions there is a learned vector for: there are no others.
    pub positions: Option<usize>,
    /// Tokens of the longest texts it was trained with.
    pub longest: Option<usize>,
}

impl EncoderConfig {
    /// Reads these files, as far as they are there.
    ///
    /// # Errors
    /// [`Io`](crate::ErrorKind::Io) for one that cannot be read; [`InvalidModel`](crate::ErrorKind::InvalidModel), with its name, for one that is
    /// damaged, or names a place outside the folder.
    pub fn read(folder: impl AsRef<Path>) -> Result<Self> {
        let folder = folder.as_ref();
        let mut config = Self::default();
        if let Some(model) = settings::<Value>(&folder.join("config.json"))? {
            config.describe(&model);
        }
        if let Some(transformer) = settings::<Value>(&folder.join("sentence_bert_config.json"))? {
            config.longest = count(&transformer["max_seq_length"]);
        }
        config.pool(folder)?;
        Ok(config)
    }

    fn describe(&mut self, model: &Value) {
        let architectures = model["architectures"].as_array().into_iter().flatten().filter_map(Value::as_str);
        self.is_classifier = architectures.into_iter().any(|name| name.ends_with("ForSequenceClassification"));
        self.labels = labels(&model["id2label"]);
        let kind = model["model_type"].as_str().unwrap_or_default();
        let positions = count(&model["max_position_embeddings"]);
        let padding = count(&model["pad_token_id"]).unwrap_or(1);
        self.positions = if OFFSET_POSITIONS.contains(&kind) {
            positions.map(|count| count.saturating_sub(padding.saturating_add(1)))
        } else {
            let is_said = model["position_embedding_type"] == "absolute";
            positions.filter(|_| is_said || LEARNED_POSITIONS.contains(&kind))
        };
    }

    fn pool(&mut self, folder: &Path) -> Result<()> {
        let mut place = "1_Pooling".to_owned();
        let modules = settings::<Value>(&folder.join("modules.json"))?.unwrap_or_default();
        for module in modules.as_array().into_iter().flatten() {
            let kind = module["type"].as_str().unwrap_or_default().rsplit('.').next().unwrap_or_default();
            match kind {
                "Transformer" | "Normalize" => {}
                "Pooling" => {
                    if let Some(path) = module["path"].as_str() {
                        path.clone_into(&mut place);
                    }
                }
                _ => self.foreign = Some(format!("a step `{kind}` (modules.json)")),
            }
        }
        if !Path::new(&place).components().all(|part| matches!(part, Component::Normal(_))) {
            let message = format!(
                "{}: the pooling is said to be in `{}`, outside the folder",
                folder.join("modules.json").display(),
                place.escape_default()
            );
            return Err(invalid(message));
        }
        let Some(pooling) = settings::<Value>(&folder.join(&place).join("config.json"))? else { return Ok(()) };
        let names = pooling_names(&pooling);
        match names[..] {
            [] => {}
            ["mean" | "mean_tokens"] => self.pooling = Some(Pooling::Mean),
            ["cls" | "cls_token"] => self.pooling = Some(Pooling::Cls),
            ["max" | "max_tokens"] => self.pooling = Some(Pooling::Max),
            ["lasttoken"] => self.pooling = Some(Pooling::Last),
            _ => self.foreign = Some(format!("a pooling `{}` ({place}/config.json)", names.join("` with `"))),
        }
        Ok(())
    }
}

/// The ways of pooling that are on: sentence-transformers says it by one name, or by a flag for each.
fn pooling_names(config: &Value) -> Vec<&str> {
    let flags = config.as_object().into_iter().flatten().filter(|(_, value)| **value == Value::Bool(true));
    let flags = flags.filter_map(|(name, _)| name.strip_prefix("pooling_mode_"));
    let mut names: Vec<&str> = match &config["pooling_mode"] {
        Value::String(name) => vec![name],
        Value::Array(names) => names.iter().filter_map(Value::as_str).collect(),
        _ => flags.collect(),
    };
    names.sort_unstable();
    names
}

fn count(value: &Value) -> Option<usize> {
    usize::try_from(value.as_u64()?).ok()
}

/// The names by their numbers; none where some are missing, or where they say no more than the number.
fn labels(named: &Value) -> Vec<String> {
    let Some(named) = named.as_object() else { return Vec::new() };
    let label = |number: usize| named.get(&number.to_string()).and_then(Value::as_str).map(str::to_owned);
    let labels: Vec<_> = (0..named.len()).map_while(label).collect();
    let says_something = labels.iter().enumerate().any(|(number, label)| *label != format!("LABEL_{number}"));
    if labels.len() == named.len() && says_something { labels } else { Vec::new() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ErrorKind;
    use serde_json::json;
    use test_kit::Folder;

    fn with(files: &[(&str, Value)]) -> Folder {
        let folder = Folder::new();
        for (file, value) in files {
            folder.file(file, &value.to_string());
        }
        folder
    }

    #[test]
    fn a_pooling_is_said_by_a_flag_or_by_its_name() {
        for (said, pooling) in [
            (json!({"pooling_mode_mean_tokens": true, "pooling_mode_cls_token": false}), Some(Pooling::Mean)),
            (json!({"pooling_mode_cls_token": true, "include_prompt": true}), Some(Pooling::Cls)),
            (json!({"pooling_mode_lasttoken": true}), Some(Pooling::Last)),
            (json!({"pooling_mode_max_tokens": true}), Some(Pooling::Max)),
            (json!({"pooling_mode": "cls"}), Some(Pooling::Cls)),
            (json!({"word_embedding_dimension": 384}), None),
        ] {
            let folder = with(&[("1_Pooling/config.json", said.clone())]);
            let config = EncoderConfig::read(folder.path()).unwrap();
            assert_eq!((config.pooling, config.foreign), (pooling, None), "{said}");
        }
        assert_eq!(EncoderConfig::read("no such folder").unwrap(), EncoderConfig::default());
    }

    #[test]
    fn what_this_library_does_not_do_is_named() {
        let both = json!({"pooling_mode_mean_tokens": true, "pooling_mode_cls_token": true});
        let folder = with(&[("1_Pooling/config.json", both)]);
        let config = EncoderConfig::read(folder.path()).unwrap();
        assert_eq!(config.pooling, None);
        assert!(config.foreign.unwrap().contains("`cls_token` with `mean_tokens` (1_Pooling/config.json)"));

        let module =
            |kind: &str, path: &str| json!({"type": format!("sentence_transformers.models.{kind}"), "path": path});
        let modules = json!([module("Transformer", ""), module("Pooling", "7_Pooling"), module("Dense", "2_Dense")]);
        let pooling = json!({"pooling_mode_mean_tokens": true});
        let folder = with(&[("modules.json", modules), ("7_Pooling/config.json", pooling)]);
        let config = EncoderConfig::read(folder.path()).unwrap();
        assert_eq!(config.pooling, Some(Pooling::Mean));
        assert_eq!(config.foreign.as_deref(), Some("a step `Dense` (modules.json)"));

        for outside in ["../pooling", "/etc", "a/../../b"] {
            let folder = with(&[("modules.json", json!([module("Pooling", outside)]))]);
            let error = EncoderConfig::read(folder.path()).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::InvalidModel);
            assert!(error.to_string().contains(outside), "{error}");
        }
    }

    #[test]
    fn labels_are_in_the_order_of_their_numbers_or_none_at_all() {
        let named = |said: Value| labels(&said);
        assert_eq!(named(json!({"1": "b", "0": "a", "2": "c"})), ["a", "b", "c"]);
        for said in [json!({"0": "LABEL_0", "1": "LABEL_1"}), json!({"0": "a", "2": "c"}), json!({}), json!(null)] {
            assert_eq!(named(said), [""; 0]);
        }
    }

    #[test]
    fn texts_are_as_long_as_those_it_was_trained_with() {
        let folder = with(&[("sentence_bert_config.json", json!({"max_seq_length": 256}))]);
        assert_eq!(EncoderConfig::read(folder.path()).unwrap().longest, Some(256));
    }

    #[test]
    fn positions_are_counted_as_the_architecture_uses_them() {
        for (said, positions) in [
            (json!({"model_type": "bert", "max_position_embeddings": 512}), Some(512)),
            (json!({"model_type": "xlm-roberta", "max_position_embeddings": 514, "pad_token_id": 1}), Some(512)),
            (json!({"model_type": "modernbert", "max_position_embeddings": 8192}), None),
            (
                json!({"model_type": "x", "max_position_embeddings": 64, "position_embedding_type": "absolute"}),
                Some(64),
            ),
        ] {
            let folder = with(&[("config.json", said.clone())]);
            assert_eq!(EncoderConfig::read(folder.path()).unwrap().positions, positions, "{said}");
        }
    }
}
