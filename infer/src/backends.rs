//! The only file that knows which backends are compiled in.

#[cfg(any(feature = "llama", feature = "llama-load"))]
pub mod llama;
#[cfg(not(any(feature = "llama", feature = "llama-load")))]
#[path = "backends/no_llama.rs"]
mod llama;

use crate::{Device, Inspection, Installed, Library, ModelSource, Variant};
use infer_core::{Error, Model, Result};
use std::{fmt, ops::ControlFlow, str::FromStr};

/// A native runtime behind the API. All of them are named here, compiled in or not.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Backend {
    /// llama.cpp, for GGUF files.
    Llama,
}

impl Backend {
    /// Every backend there is.
    pub const ALL: &'static [Self] = &[Self::Llama];

    /// The name by which it is chosen.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Llama => "llama",
        }
    }

    /// The features of this crate that bring it, any of which will do.
    #[must_use]
    pub const fn features(self) -> &'static [&'static str] {
        match self {
            Self::Llama => &["llama", "llama-load"],
        }
    }

    /// Whether this program has it.
    #[must_use]
    pub const fn is_compiled_in(self) -> bool {
        match self {
            Self::Llama => cfg!(any(feature = "llama", feature = "llama-load")),
        }
    }
}

/// Opens a model with a backend, if this program has it.
pub(crate) fn open(
    backend: Backend,
    source: &ModelSource,
    watch: &mut dyn FnMut(f32) -> ControlFlow<()>,
) -> Result<Box<dyn Model>> {
    match backend {
        Backend::Llama => llama::open(source, watch),
    }
}

/// Reads what a file says of itself with a backend, if this program has it.
pub(crate) fn inspect(backend: Backend, source: &ModelSource) -> Result<Inspection> {
    match backend {
        Backend::Llama => llama::inspect(source),
    }
}

/// The devices of all backends that this program has.
pub(crate) fn devices(library: &Library) -> Result<Vec<Device>> {
    llama::devices(library)
}

/// The libraries of all backends that this program can use, with what each can compute on.
pub(crate) fn installed() -> Vec<Installed> {
    llama::installed()
}

/// Whether a program may choose this variant of a backend's library.
pub(crate) const fn has_variant(variant: Variant) -> bool {
    match variant {
        Variant::Cpu => cfg!(feature = "llama-load"),
        Variant::Vulkan => cfg!(feature = "llama-vulkan"),
        Variant::Cuda => cfg!(feature = "llama-cuda"),
        Variant::Metal => cfg!(feature = "llama-metal"),
    }
}

/// Bytes of memory this process can still have: the machine's, less where a limit of its cgroup or of its address space
/// says so. `None` where the system does not say, or no backend is compiled in.
#[must_use]
pub fn available_memory() -> Option<u64> {
    llama::memory()
}

/// Which shared library.
#[cfg(any(feature = "llama", feature = "llama-load"))]
enum Shared<'p> {
    /// Whatever is found.
    Found,
    At(&'p std::path::Path),
    Built(Variant),
}

#[cfg(any(feature = "llama", feature = "llama-load"))]
impl fmt::Display for Shared<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Found => f.write_str("a library"),
            Self::At(path) => write!(f, "{}", path.display()),
            Self::Built(variant) => write!(f, "the {variant} variant of llama.cpp"),
        }
    }
}

/// The linked library where there is one.
#[cfg(any(feature = "llama", feature = "llama-load"))]
fn by_default() -> Result<infer_llama::Llama> {
    if cfg!(feature = "llama") { linked() } else { loaded(&Shared::Found) }
}

#[cfg(feature = "llama")]
fn linked() -> Result<infer_llama::Llama> {
    infer_llama::Llama::linked()
}

#[cfg(all(feature = "llama-load", not(feature = "llama")))]
fn linked() -> Result<infer_llama::Llama> {
    Err(Error::unsupported(format!("llama.cpp is not linked into this program; {}", built_with("llama"))))
}

#[cfg(feature = "llama-load")]
fn loaded(library: &Shared<'_>) -> Result<infer_llama::Llama> {
    let options = infer_llama::LoadOptions::new();
    infer_llama::Llama::load(&match library {
        Shared::Found => options,
        Shared::At(path) => options.with_path(path),
        Shared::Built(variant) if has_variant(*variant) => options.with_variant(variant.name()),
        Shared::Built(variant) => {
            let message = format!("{library} is not for this program; {}", built_with(variant.feature()));
            return Err(Error::unsupported(message));
        }
    })
}

#[cfg(all(feature = "llama", not(feature = "llama-load")))]
fn loaded(library: &Shared<'_>) -> Result<infer_llama::Llama> {
    let feature = match library {
        Shared::Built(variant) => variant.feature(),
        Shared::Found | Shared::At(_) => "llama-load",
    };
    Err(Error::unsupported(format!(
        "{library} cannot be loaded: llama.cpp is linked into this program; {}",
        built_with(feature)
    )))
}

/// How a program gets a feature: one of one's own, and the command.
#[cfg(any(feature = "llama", feature = "llama-load"))]
fn built_with(feature: &str) -> String {
    format!(
        "build it with the feature `{feature}` of `infer`; the command with `cargo install --path infer-cli --features {feature}`"
    )
}

/// Whether there is a linked library.
#[cfg(any(feature = "llama", feature = "llama-load"))]
const fn is_linked() -> bool {
    cfg!(feature = "llama")
}

/// A shared library that is there.
#[cfg(any(feature = "llama", feature = "llama-load"))]
struct Found {
    place: String,
    path: std::path::PathBuf,
    library: Result<infer_llama::Llama>,
}

#[cfg(feature = "llama-load")]
fn shared() -> Vec<Found> {
    let all = infer_llama::Llama::installed(&infer_llama::LoadOptions::new()).into_iter();
    all.map(|one| Found { place: one.place, path: one.path, library: one.library }).collect()
}

#[cfg(all(feature = "llama", not(feature = "llama-load")))]
fn shared() -> Vec<Found> {
    Vec::new()
}

impl fmt::Display for Backend {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for Backend {
    type Err = Error;

    fn from_str(name: &str) -> Result<Self> {
        Self::ALL.iter().copied().find(|backend| backend.name() == name).ok_or_else(|| {
            let known: Vec<_> = Self::ALL.iter().map(|backend| backend.name()).collect();
            Error::invalid_input(format!("there is no backend `{name}`; the backends are: {}", known.join(", ")))
        })
    }
}
