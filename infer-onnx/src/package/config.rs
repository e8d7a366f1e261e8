//! The settings of a model: `config.json`, or `genai_config.json`.

use super::genai;
use crate::error::{BACKEND, error};
use infer_core::{ErrorKind, Result, huggingface};
use serde_json::Value;
use std::path::Path;

/// Objects of settings, the most telling first. What none of them has is not known.
pub(super) struct Config(Vec<Value>);

impl Config {
    /// Reads what the folder has.
    pub(super) fn read(folder: &Path, is_genai: bool) -> Result<Self> {
        let mut objects = Vec::new();
        if is_genai && let Some(mut genai) = settings(&folder.join(genai::FILE))? {
            let mut model = genai["model"].take();
            let decoder = model["decoder"].take();
            objects.extend([model, decoder]);
        }
        if let Some(mut config) = settings(&folder.join("config.json"))? {
            // Models of several kinds of input have their language model in here.
            let text = config.get_mut("text_config").map(Value::take);
            objects.extend([config].into_iter().chain(text));
        }
        Ok(Self(objects))
    }

    /// The first number that has one of these names; 0 where there is none.
    pub(super) fn number(&self, names: &[&str]) -> usize {
        let number = names.iter().find_map(|name| self.0.iter().find_map(|object| object.get(name)?.as_u64()));
        number.and_then(|number| usize::try_from(number).ok()).unwrap_or(0)
    }

    /// The name of the architecture, as the family of the model calls it.
    pub(super) fn architecture(&self) -> Option<String> {
        self.text("model_type").or_else(|| self.text("type"))
    }

    /// The model's own name.
    pub(super) fn name(&self) -> Option<String> {
        // Folders of somebody's machine are no names.
        self.text("_name_or_path").filter(|name| !name.starts_with(['/', '.']) && !name.contains('\\'))
    }

    /// Whether it was made to go on with a text.
    pub(super) fn is_decoder(&self) -> bool {
        let architectures = self.0.iter().filter_map(|object| object.get("architectures")?.as_array());
        architectures
            .flatten()
            .filter_map(Value::as_str)
            .any(|name| name.ends_with("ForCausalLM") || name.ends_with("LMHeadModel"))
    }

    fn text(&self, name: &str) -> Option<String> {
        let text = self.0.iter().find_map(|object| object.get(name)?.as_str())?;
        (!text.is_empty()).then(|| text.to_owned())
    }
}

/// What a file of settings says; `None` where there is none.
fn settings(path: &Path) -> Result<Option<Value>> {
    let json = huggingface::read_if_there(path).map_err(|error| error.with_backend(BACKEND))?;
    let parsed = json.map(|json| serde_json::from_slice(&json)).transpose();
    parsed.map_err(|wrong| error(ErrorKind::InvalidModel, format!("{}: {wrong}", path.display())))
}
