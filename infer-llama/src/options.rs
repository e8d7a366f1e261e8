//! What can be chosen when a library, a model or a session is opened.

mod kv;

pub use kv::KvType;

use crate::Adapter;
use infer_core::{AdapterSource, KvLayout, SessionOptions as CommonOptions};

/// Where the shared library is looked for.
#[cfg(feature = "load")]
#[derive(Clone, Debug, Default)]
pub struct LoadOptions(infer_sys::LoadOptions);

#[cfg(feature = "load")]
impl LoadOptions {
    /// First the file that the environment variable `INFER_LLAMA_LIBRARY` names, then the cache that `infer setup` fills, then
    /// beside the program. Never the current folder; and with raised privileges only a path given in code.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// This file and no other. The path must be absolute.
    #[must_use]
    pub fn with_path(self, path: impl Into<std::path::PathBuf>) -> Self {
        Self(self.0.with_path(path))
    }

    /// A library built as this variant: `cpu`, `vulkan`, ….
    #[must_use]
    pub fn with_variant(self, variant: impl Into<String>) -> Self {
        Self(self.0.with_variant(variant))
    }

    /// This folder as the cache. The path must be absolute.
    #[must_use]
    pub fn with_cache(self, folder: impl Into<std::path::PathBuf>) -> Self {
        Self(self.0.with_cache(folder))
    }

    /// Whether a library is first tried in a child process, where one that aborts, crashes, hangs or ends the process does no harm:
    /// it is then refused with what happened. `true`: one that cannot be tried is refused. `false`: none is tried. By default
    /// one is that the program lies beside which does it: `infer setup` puts both into the cache. A file that this process has
    /// opened before is not tried again.
    #[must_use]
    pub fn with_probe(self, probe: bool) -> Self {
        Self(self.0.with_probe(probe))
    }

    /// How long such a trial may take; a minute, unless it is set.
    #[must_use]
    pub fn with_probe_time(self, time: std::time::Duration) -> Self {
        Self(self.0.with_probe_time(time))
    }

    pub(crate) fn as_sys(&self) -> &infer_sys::LoadOptions {
        &self.0
    }
}

/// How a model is loaded. The default: its weights mapped, all layers on the devices there are, by their free memory.
///
/// ```
/// # #[cfg(feature = "link")]
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let path = build_support::fixtures::model("tiny-llama")?;
/// use infer_llama::{Llama, LoadMode, Model, ModelOptions};
///
/// // Read rather than mapped, looked through, and on the processor alone.
/// let options =
///     ModelOptions::new().with_load_mode(LoadMode::Copied).with_check_tensors(true).with_devices(["CPU"]);
/// let model = Model::open_with(&Llama::linked()?, path, &options)?;
/// let error = Model::open_with(&Llama::linked()?, "x.gguf", &options).unwrap_err();
/// assert!(error.to_string().contains("x.gguf"));
/// # drop(model);
/// # Ok(())
/// # }
/// # #[cfg(not(feature = "link"))]
/// # fn main() {}
/// ```
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct ModelOptions {
    /// Only the vocabulary and the metadata: quick, and in little memory. No session can be made.
    pub vocab_only: bool,
    /// How the weights come into memory.
    pub load_mode: LoadMode,
    /// The devices (GPUs) that layers are placed on, by the names that [`Llama::devices`](crate::Llama::devices) gives them, in this
    /// order. `None` is every device with memory of its own, or where there is none the integrated ones. `["CPU"]`, or nothing, is
    /// the processor alone: it always has what no device has, and cannot be named beside others.
    pub devices: Option<Vec<String>>,
    /// Layers that are computed on the devices, counted from the last, the output layer being one; `None` is all. What does not fit
    /// is not moved elsewhere: loading fails. Without a device it changes nothing.
    pub gpu_layers: Option<u32>,
    /// How the layers are spread over several devices.
    pub split_mode: SplitMode,
    /// How much of it each device has, in the order of [`devices`](Self::devices), which must be given too: parts of the sum.
    /// `None` is by the memory that is free.
    pub tensor_split: Option<Vec<f32>>,
    /// With [`SplitMode::None`], the device that has it all; `None` is the first.
    pub main_device: Option<String>,
    /// Rearrange weights for the processor, where that computes faster. What is rearranged is a copy in memory, beside the
    /// mapped file.
    pub repack: bool,
    /// Look at every block of every tensor while loading, and refuse numbers that cannot be.
    pub check_tensors: bool,
    /// Not even the weights: for estimates.
    pub(crate) absent: bool,
}

/// How a model is spread over several devices.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum SplitMode {
    /// Not at all: one device has it.
    None,
    /// Whole layers, one after another, each with its keys and values.
    #[default]
    Layer,
    /// The rows of each matrix, where the devices' driver can do that; else loading fails.
    Row,
}

/// How the weights come into memory.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum LoadMode {
    /// The file is mapped: pages are read when they are first used, shared between processes, and given up when memory is
    /// wanted. Changing or truncating the file while the model is open changes the weights, or ends the process.
    #[default]
    Mapped,
    /// Mapped, and kept in memory. Where the system does not let so much be locked (RLIMIT_MEMLOCK), opening the model is an error.
    Locked,
    /// Read into memory of its own.
    Copied,
    /// Read into memory of its own past the system's cache (direct I/O), for a file that nobody else is about to read. Linux only; where
    /// the file system cannot do it, opening the model is an error.
    Direct,
}

impl Default for ModelOptions {
    fn default() -> Self {
        Self {
            vocab_only: false,
            load_mode: LoadMode::Mapped,
            devices: None,
            gpu_layers: None,
            split_mode: SplitMode::Layer,
            tensor_split: None,
            main_device: None,
            repack: true,
            check_tensors: false,
            absent: false,
        }
    }
}

impl ModelOptions {
    /// The default.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Sets [`vocab_only`](Self::vocab_only).
    #[must_use]
    pub fn with_vocab_only(mut self, vocab_only: bool) -> Self {
        self.vocab_only = vocab_only;
        self
    }

    /// Sets [`load_mode`](Self::load_mode).
    #[must_use]
    pub fn with_load_mode(mut self, mode: LoadMode) -> Self {
        self.load_mode = mode;
        self
    }

    /// Sets [`devices`](Self::devices).
    #[must_use]
    pub fn with_devices<N: Into<String>>(mut self, names: impl IntoIterator<Item = N>) -> Self {
        self.devices = Some(names.into_iter().map(Into::into).collect());
        self
    }

    /// Sets [`split_mode`](Self::split_mode).
    #[must_use]
    pub fn with_split_mode(mut self, mode: SplitMode) -> Self {
        self.split_mode = mode;
        self
    }

    /// Sets [`tensor_split`](Self::tensor_split).
    #[must_use]
    pub fn with_tensor_split(mut self, parts: impl Into<Vec<f32>>) -> Self {
        self.tensor_split = Some(parts.into());
        self
    }

    /// Sets [`main_device`](Self::main_device).
    #[must_use]
    pub fn with_main_device(mut self, name: impl Into<String>) -> Self {
        self.main_device = Some(name.into());
        self
    }

    /// Sets [`gpu_layers`](Self::gpu_layers).
    #[must_use]
    pub fn with_gpu_layers(mut self, layers: u32) -> Self {
        self.gpu_layers = Some(layers);
        self
    }

    /// Sets [`repack`](Self::repack).
    #[must_use]
    pub fn with_repack(mut self, repack: bool) -> Self {
        self.repack = repack;
        self
    }

    /// Sets [`check_tensors`](Self::check_tensors).
    #[must_use]
    pub fn with_check_tensors(mut self, check: bool) -> Self {
        self.check_tensors = check;
        self
    }
}

/// How a session is made: what all backends have ([`infer_core::SessionOptions`]), and what only llama.cpp has.
///
/// ```
/// # #[cfg(feature = "link")]
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let path = build_support::fixtures::model("smollm2")?;
/// use infer_core::{KvLayout, Session as _};
/// use infer_llama::{KvType, Llama, Model, SessionOptions};
///
/// // Many sequences that begin alike: one pool of cells, shared by forks, with half the bytes a number.
/// let options = SessionOptions::new()
///     .with_context(256)
///     .with_sequences(8)
///     .with_layout(KvLayout::Unified)
///     .with_cells(512)
///     .with_kv_type(KvType::Q8_0);
/// let session = Model::open(&Llama::linked()?, path)?.session(&options)?;
/// assert_eq!((session.limits().sequences, session.usage().cells_free), (8, 512));
/// # Ok(())
/// # }
/// # #[cfg(not(feature = "link"))]
/// # fn main() {}
/// ```
#[derive(Clone, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct SessionOptions {
    /// What all backends have.
    pub common: CommonOptions,
    /// Tokens that are computed at once; a batch is cut into as many such pieces as it takes. `None` is 512. A model with a sliding
    /// window computes a batch in one piece, whatever is said here: at the pinned version cutting it may lose positions that lie in the
    /// window and are shared with a fork.
    pub micro_batch: Option<usize>,
    /// The number format of keys.
    pub keys: KvType,
    /// The number format of values.
    pub values: KvType,
    /// Compute attention without storing the scores; `None` where the library knows it to be good. Quantised values need
    /// it.
    pub flash_attention: Option<bool>,
    /// Draw tokens on the device that computes the logits, where the sampling allows it: greedy, or by temperature; on the processor
    /// also with top_k (1,024 at most) and min_p. The random numbers are the host's, so the same tokens are drawn, but for draws on the
    /// very edge between two. Logits then stay on the device unless they are asked for. Experimental in llama.cpp: off by default;
    /// whether the device can is a [capability](infer_core::Capabilities::device_sampling).
    pub device_sampling: bool,
    /// Adapters that are loaded already, beside those that are named by path in [`common`](Self::common).
    pub adapters: Vec<LoadedAdapter>,
}

/// An adapter that is loaded, with what a session calls it.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct LoadedAdapter {
    /// What sequences call it.
    pub name: String,
    /// The adapter: of the model that the session is made of.
    pub adapter: Adapter,
    /// How strongly it counts: 1 is as it was trained.
    pub scale: f32,
}

impl From<CommonOptions> for SessionOptions {
    fn from(common: CommonOptions) -> Self {
        Self { common, ..Self::default() }
    }
}

impl SessionOptions {
    /// One sequence with the model's own context.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Positions a sequence can have; 0 is what the model was trained for.
    #[must_use]
    pub fn with_context(mut self, context: usize) -> Self {
        self.common = self.common.with_context(context);
        self
    }

    /// Sequences that can be open at once; at most 256.
    #[must_use]
    pub fn with_sequences(mut self, sequences: usize) -> Self {
        self.common = self.common.with_sequences(sequences);
        self
    }

    /// Tokens one batch can hold; 2048 by default, at most the context.
    #[must_use]
    pub fn with_batch(mut self, batch: usize) -> Self {
        self.common = self.common.with_batch(batch);
        self
    }

    /// Threads a pass uses; by default what [`available_threads`](crate::available_threads) says. Never more than there are CPUs
    /// this process may run on: threads that cannot run at once wait for each other, for minutes a pass.
    #[must_use]
    pub fn with_threads(mut self, threads: usize) -> Self {
        self.common = self.common.with_threads(threads);
        self
    }

    /// Sets [`device_sampling`](Self::device_sampling).
    #[must_use]
    pub fn with_device_sampling(mut self, on: bool) -> Self {
        self.device_sampling = on;
        self
    }

    /// Adds an adapter (LoRA) that sequences can be [opened](infer_core::OpenOptions::adapter) with, from a file.
    #[must_use]
    pub fn with_adapter(mut self, source: AdapterSource) -> Self {
        self.common = self.common.with_adapter(source);
        self
    }

    /// Adds an adapter that is loaded already: what several sessions use need not be loaded by each.
    #[must_use]
    pub fn with_loaded_adapter(mut self, name: impl Into<String>, adapter: &Adapter, scale: f32) -> Self {
        self.adapters.push(LoadedAdapter { name: name.into(), adapter: adapter.clone(), scale });
        self
    }

    /// How the cells of several sequences lie; [`KvLayout::Split`] by default.
    #[must_use]
    pub fn with_layout(mut self, layout: KvLayout) -> Self {
        self.common = self.common.with_layout(layout);
        self
    }

    /// Cells in all, for [`KvLayout::Unified`]; by default the context for every sequence.
    #[must_use]
    pub fn with_cells(mut self, cells: usize) -> Self {
        self.common = self.common.with_cells(cells);
        self
    }

    /// Sets [`micro_batch`](Self::micro_batch).
    #[must_use]
    pub fn with_micro_batch(mut self, tokens: usize) -> Self {
        self.micro_batch = Some(tokens);
        self
    }

    /// Sets [`keys`](Self::keys) and [`values`](Self::values).
    #[must_use]
    pub fn with_kv_type(self, format: KvType) -> Self {
        self.with_kv_types(format, format)
    }

    /// Sets [`keys`](Self::keys) and [`values`](Self::values), each to its own.
    #[must_use]
    pub fn with_kv_types(mut self, keys: KvType, values: KvType) -> Self {
        (self.keys, self.values) = (keys, values);
        self
    }

    /// Sets [`flash_attention`](Self::flash_attention).
    #[must_use]
    pub fn with_flash_attention(mut self, on: bool) -> Self {
        self.flash_attention = Some(on);
        self
    }
}
