//! What lies at a path: the files that a model consists of, and what they say of it.

mod config;
mod find;
#[cfg(test)]
mod tests;

use crate::{
    Port, decoder,
    error::BACKEND,
    genai,
    header::{self, Contents, Header},
    optimum,
};
use config::Config;
use infer_core::{
    Error, ErrorKind, ModelInfo, Result,
    huggingface::{Settings, Tokenizer},
};
use std::{
    fmt,
    path::{Path, PathBuf},
};

/// The form a model comes in.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Form {
    /// A decoder with a `genai_config.json`, as the model builder of onnxruntime-genai writes it.
    Genai,
    /// A decoder with a `config.json`, as Optimum exports it: keys and values go in as `past_key_values.*` and come out as `present.*`.
    Optimum,
    /// A graph that takes tokens and gives hidden states, vectors or scores: for embeddings, classification, reranking.
    Encoder,
    /// Any other graph: named tensors in and out.
    Graph,
}

impl Form {
    /// Its name in one word.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Genai => "genai",
            Self::Optimum => "optimum",
            Self::Encoder => "encoder",
            Self::Graph => "graph",
        }
    }
}

impl fmt::Display for Form {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// The files of a model, and what they say of it: read without native code, and without the weights.
///
/// ```
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let path = build_support::fixtures::model("tiny-onnx")?;
/// let package = infer_onnx::Package::read(path)?;
/// println!("{}: {}", package.form(), package.info().description);
/// for port in &package.contents().inputs {
///     println!("takes {}: {}", port.name(), port.kind());
/// }
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug)]
pub struct Package {
    form: Form,
    folder: PathBuf,
    graph: PathBuf,
    tokenizer: Option<PathBuf>,
    settings: Settings,
    header: Header,
    contents: Contents,
    info: ModelInfo,
    decoder: Option<decoder::Config>,
}

impl Package {
    /// Looks at a folder, or at a graph with the files around it.
    ///
    /// A folder is one of onnxruntime-genai (`genai_config.json`), or has one of the graphs `model.onnx`, `decoder_model_merged.onnx` (two in
    /// one, as Optimum made them before), `decoder_with_past_model.onnx`, in itself or in a folder `onnx` in it, or has one graph by any name.
    ///
    /// # Errors
    /// [`Io`](ErrorKind::Io) for files that cannot be read; [`InvalidModel`](ErrorKind::InvalidModel) for a folder without a graph or with
    /// several of which none is the one, for a graph as in [`header::open`] and [`Header::check_files`], and for settings that are damaged or name files outside
    /// their folder; [`Unsupported`](ErrorKind::Unsupported) for a `genai_config.json` that wants libraries to be loaded, or describes
    /// something else than one decoder, and for a folder whose decoder is two graphs, neither of them in one with the other.
    pub fn read(path: impl AsRef<Path>) -> Result<Self> {
        let found = find::find(path.as_ref())?;
        let (folder, graph) = (found.folder, found.graph);
        let header = header::open(&graph)?;
        header.check_files(&graph)?;
        let contents = header::contents(&graph)?;
        let config = Config::read(&folder, found.genai.is_some())?;
        let form = if found.genai.is_some() { Form::Genai } else { form(&contents, &config) };
        let decoder = match (found.genai, form) {
            (Some(decoder), _) => Some(decoder),
            (None, Form::Optimum) => Some(optimum::read(&folder, &graph)?),
            (None, _) => None,
        };
        let settings = Settings::read(&folder).map_err(|error| error.with_backend(BACKEND))?;
        let tokenizer = folder.join("tokenizer.json");
        let tokenizer = tokenizer.exists().then_some(tokenizer);
        let info = info(&header, &contents, &config, settings.chat_template().map(str::to_owned));
        Ok(Self { form, folder, graph, tokenizer, settings, header, contents, info, decoder })
    }

    /// The form it comes in.
    #[must_use]
    pub fn form(&self) -> Form {
        self.form
    }

    /// The folder that the settings and the tokenizer lie in.
    #[must_use]
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// The graph's file.
    #[must_use]
    pub fn graph(&self) -> &Path {
        &self.graph
    }

    /// What the graph's file says of itself.
    #[must_use]
    pub fn header(&self) -> &Header {
        &self.header
    }

    /// What the graph takes and gives, its operators and its weights, as its file has them.
    #[must_use]
    pub fn contents(&self) -> &Contents {
        &self.contents
    }

    /// The facts in the words that all backends share. The vocabulary is the one the settings speak of, or 0: the tokenizer is not read.
    #[must_use]
    pub fn info(&self) -> &ModelInfo {
        &self.info
    }

    /// All files, with their sizes in bytes: the graph, its weights, the tokenizer.
    #[must_use]
    pub fn files(&self) -> Vec<(PathBuf, u64)> {
        let weights = self.header.files().iter().map(|file| self.graph.with_file_name(file.location()));
        let all = std::iter::once(self.graph.clone()).chain(weights).chain(self.tokenizer.clone());
        all.map(|file| {
            let size = std::fs::metadata(&file).map_or(0, |file| file.len());
            (file, size)
        })
        .collect()
    }

    /// What a decoder is made of.
    pub(crate) fn decoder(&self) -> Option<&decoder::Config> {
        self.decoder.as_ref()
    }

    /// Reads the tokenizer.
    ///
    /// # Errors
    /// [`InvalidModel`](ErrorKind::InvalidModel), with the file's name, where there is none; those of [`Tokenizer::open`].
    pub fn tokenizer(&self) -> Result<Tokenizer> {
        let Some(file) = &self.tokenizer else {
            let message = format!(
                "{}: there is no tokenizer.json, so text cannot become tokens; get it from where the model is from",
                self.folder.display()
            );
            return Err(Error::new(ErrorKind::InvalidModel, message).with_backend(BACKEND));
        };
        let read = Tokenizer::open_with(file, &self.settings).map_err(|error| error.with_backend(BACKEND))?;
        Ok(read.with_backend(BACKEND))
    }
}

/// What a graph is for, by what it takes and gives.
fn form(contents: &Contents, config: &Config) -> Form {
    let starts = |ports: &[Port], text: &str| ports.iter().any(|port| port.name().starts_with(text));
    let takes_tokens = contents.inputs.iter().any(|port| port.name() == "input_ids");
    let has_cache = starts(&contents.inputs, "past_key_values") || starts(&contents.outputs, "present");
    match () {
        () if takes_tokens && (has_cache || config.is_decoder()) => Form::Optimum,
        () if takes_tokens => Form::Encoder,
        () => Form::Graph,
    }
}

fn info(header: &Header, contents: &Contents, config: &Config, chat_template: Option<String>) -> ModelInfo {
    let mut info = ModelInfo::default();
    info.architecture = config.architecture().unwrap_or_default();
    info.name = config.name();
    info.vocab = config.number(&["vocab_size"]);
    info.context = config.number(&["context_length", "max_position_embeddings", "n_positions", "n_ctx"]);
    info.layers = config.number(&["num_hidden_layers", "n_layer", "num_layers", "n_layers"]);
    info.width = config.number(&["hidden_size", "n_embd", "d_model", "dim"]);
    info.heads = config.number(&["num_attention_heads", "n_head", "n_heads", "num_heads"]);
    info.kv_heads = match config.number(&["num_key_value_heads"]) {
        0 => info.heads,
        heads => heads,
    };
    info.parameters = contents.parameters();
    info.bytes = contents.bytes();
    info.chat_template = chat_template;
    info.description = description(&info, header, contents);
    info
}

fn description(info: &ModelInfo, header: &Header, contents: &Contents) -> String {
    let named = [info.architecture.as_str(), header.graph_name(), "a graph"].into_iter().find(|name| !name.is_empty());
    let mut text = named.unwrap_or_default().to_owned();
    if info.parameters > 0 {
        let parameters = match info.parameters {
            many @ 1_000_000_000.. => format!("{:.1} B", many as f64 / 1e9),
            many @ 1_000_000.. => format!("{:.0} M", many as f64 / 1e6),
            few => few.to_string(),
        };
        text += &format!(", {parameters} parameters");
    }
    if let Some(main) = contents.main_dtype() {
        text += &format!(", mostly {main}");
    }
    text
}
