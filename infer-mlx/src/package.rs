//! What lies in a model's folder: its settings, its weights, and what they say of it.

use crate::{
    DType, Mlx,
    config::{Config, Quantization},
    error::error,
    kv,
    models::{self, Built, Network},
    safetensors::Header,
    weights::{Plan, Planned, Shards},
};
use infer_core::{
    ErrorKind, ModelInfo, Result,
    cost::{Dims, KvRows, KvType, Weights},
};
use std::{
    ops::ControlFlow,
    path::{Path, PathBuf},
};

/// A model as its folder describes it: `config.json` and safetensors files, as the `mlx-community` and most others on the Hugging Face hub
/// have them. Read without native code, and without the weights; whoever has one knows that the architecture is built in, and that all
/// weights are there, as large as they must be.
///
/// ```no_run
/// let package = infer_mlx::Package::read("Qwen3-0.6B-4bit")?;
/// println!("{}: {} bytes of weights", package.info().description, package.weights().bytes());
/// # Ok::<(), infer_core::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct Package {
    config: Config,
    quantization: Quantization,
    shards: Shards,
    info: ModelInfo,
    weights: Weights,
    dims: Dims,
    kv: Option<(KvType, KvRows)>,
    is_encoder: bool,
}

impl Package {
    /// Looks at a folder, or at the one that a file lies in.
    ///
    /// # Errors
    /// [`Io`](ErrorKind::Io) for files that cannot be read; [`InvalidModel`](ErrorKind::InvalidModel) for a folder without `config.json` or
    /// weights, for files that are damaged or do not fit together, and for names of files outside the folder;
    /// [`Unsupported`](ErrorKind::Unsupported) for architectures that are not built in, weights that are quantised in another way than MLX's own
    /// (2, 3, 4, 5, 6 or 8 bits, in groups of 32, 64 or 128), and code that wants to be run.
    pub fn read(path: impl AsRef<Path>) -> Result<Self> {
        let folder = folder_of(path.as_ref())?;
        let config = Config::read(&folder)?;
        let quantization = Quantization::read(&config)?;
        let shards = Shards::open(&folder)?;
        let (Built { network, dims, context }, planned) = plan(&config, &quantization, &shards)?;
        let weights = planned.weights().clone();
        let info = info(&config, &dims, context, &weights)?;
        let kv = match &network {
            Network::Decoder(decoder) => Some((kv_type(planned.dtype()), kv::rows(decoder.layers()))),
            Network::Encoder(_) => None,
        };
        let is_encoder = kv.is_none();
        Ok(Self { config, quantization, shards, info, weights, dims, kv, is_encoder })
    }

    /// The folder.
    #[must_use]
    pub fn folder(&self) -> &Path {
        self.shards.folder()
    }

    /// The facts in the words that all backends share. It has no chat template: the tokenizer's files are not read.
    #[must_use]
    pub fn info(&self) -> &ModelInfo {
        &self.info
    }

    /// The weights by the type of their numbers. Of those that are quantised, scales and biases are counted with the bits that they belong to.
    #[must_use]
    pub fn weights(&self) -> &Weights {
        &self.weights
    }

    /// The dimensions that [`cost`](infer_core::cost) counts with.
    #[must_use]
    pub fn dims(&self) -> &Dims {
        &self.dims
    }

    /// What a session's sequence comes to hold of keys and values, and the format of these: that of what the model computes in, which is not to be
    /// chosen. `None` for an encoder.
    #[must_use]
    pub fn kv(&self) -> Option<&(KvType, KvRows)> {
        self.kv.as_ref()
    }

    /// Whether it reads texts, for vectors of them, and does not go on with any.
    #[must_use]
    pub fn is_encoder(&self) -> bool {
        self.is_encoder
    }

    /// What the files of weights say of themselves, file by file.
    #[must_use]
    pub fn headers(&self) -> &[Header] {
        self.shards.headers()
    }

    /// The file with its settings.
    pub(crate) fn config_path(&self) -> &Path {
        self.config.path()
    }

    /// What `config.json` says, name by name, the values as they stand there.
    #[must_use]
    pub fn settings(&self) -> Vec<(String, String)> {
        self.config.fields().map(|(name, value)| (name.to_owned(), value.to_string())).collect()
    }

    /// All files that are read, with their sizes in bytes.
    #[must_use]
    pub fn files(&self) -> Vec<(PathBuf, u64)> {
        let size = |path: &Path| std::fs::metadata(path).map_or(0, |file| file.len());
        let config = std::iter::once((self.config.path().to_owned(), size(self.config.path())));
        config.chain(self.headers().iter().map(|header| (header.path().to_owned(), header.bytes()))).collect()
    }

    /// Reads the weights. `watch` is told how much of them is read, from 0 to 1, and can end it.
    ///
    /// # Errors
    /// [`Cancelled`](ErrorKind::Cancelled) when `watch` ended it; [`Io`](ErrorKind::Io), and [`InvalidModel`](ErrorKind::InvalidModel) for files
    /// that have changed since the package was read; [`OutOfMemory`](ErrorKind::OutOfMemory); [`Runtime`](ErrorKind::Runtime).
    pub(crate) fn load(&self, mlx: &Mlx, watch: &mut dyn FnMut(f32) -> ControlFlow<()>) -> Result<Network> {
        let (built, planned) = plan(&self.config, &self.quantization, &self.shards)?;
        planned.read(&mlx.scope(), &self.shards, watch)?;
        Ok(built.network)
    }
}

fn kv_type(dtype: Option<DType>) -> KvType {
    match dtype {
        Some(DType::F16) => KvType::F16,
        Some(DType::Bf16) => KvType::Bf16,
        _ => KvType::F32,
    }
}

fn folder_of(path: &Path) -> Result<PathBuf> {
    let is_file = std::fs::metadata(path)
        .map(|found| found.is_file())
        .map_err(|why| error(ErrorKind::Io, format!("{} cannot be read: {why}", path.display())).with_source(why))?;
    if !is_file {
        return Ok(path.to_owned());
    }
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
    Ok(folder.unwrap_or(Path::new(".")).to_owned())
}

fn plan(config: &Config, quantization: &Quantization, shards: &Shards) -> Result<(Built, Planned)> {
    let mut plan = Plan::new(shards, quantization);
    let built = models::build(config, &mut plan)?;
    Ok((built, plan.finish()?))
}

fn info(config: &Config, dims: &Dims, context: usize, weights: &Weights) -> Result<ModelInfo> {
    let mut info = ModelInfo::default();
    info.architecture = config.text("model_type")?.unwrap_or_default().to_owned();
    // Folders of somebody's machine are no names.
    let name = config.text("_name_or_path")?.filter(|name| !name.is_empty() && !name.starts_with(['/', '.']));
    info.name = name.filter(|name| !name.contains('\\')).map(str::to_owned);
    info.vocab = dims.vocab;
    info.context = context;
    info.layers = dims.layers;
    info.width = dims.width;
    info.heads = dims.heads;
    info.kv_heads = dims.kv_heads;
    info.parameters = weights.elements();
    info.bytes = weights.bytes();
    info.description = description(&info, weights);
    Ok(info)
}

fn description(info: &ModelInfo, weights: &Weights) -> String {
    let parameters = match info.parameters {
        many @ 1_000_000_000.. => format!("{:.1} B", many as f64 / 1e9),
        many @ 1_000_000.. => format!("{:.0} M", many as f64 / 1e6),
        few => few.to_string(),
    };
    let mostly = weights.by_dtype().first().map_or(String::new(), |main| format!(", mostly {}", main.dtype));
    format!("{}, {parameters} parameters{mostly}", info.architecture)
}
