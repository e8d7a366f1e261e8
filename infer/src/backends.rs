//! The only file that knows which backends are compiled in.

#[cfg(any(feature = "llama", feature = "llama-load"))]
pub mod llama;
#[cfg(not(any(feature = "llama", feature = "llama-load")))]
#[path = "backends/no_llama.rs"]
mod llama;

#[cfg(feature = "onnx")]
pub mod onnx;
#[cfg(not(feature = "onnx"))]
#[path = "backends/no_onnx.rs"]
mod onnx;

use crate::{Device, Inspection, Installed, Library, ModelSource, Variant};
use infer_core::{Error, Model, Result};
use std::{fmt, ops::ControlFlow, str::FromStr};

/// A native runtime behind the API. All of them are named here, compiled in or not.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Backend {
    /// llama.cpp, for GGUF files.
    Llama,
    /// ONNX Runtime, for ONNX files and the folders they come in.
    Onnx,
}

impl Backend {
    /// Every backend there is.
    pub const ALL: &'static [Self] = &[Self::Llama, Self::Onnx];

    /// The name by which it is chosen.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Llama => "llama",
            Self::Onnx => "onnx",
        }
    }

    /// The features of this crate that bring it, any of which will do.
    #[must_use]
    pub const fn features(self) -> &'static [&'static str] {
        match self {
            Self::Llama => &["llama", "llama-load"],
            Self::Onnx => &["onnx"],
        }
    }

    /// Whether this program has it.
    #[must_use]
    pub const fn is_compiled_in(self) -> bool {
        match self {
            Self::Llama => cfg!(any(feature = "llama", feature = "llama-load")),
            Self::Onnx => cfg!(feature = "onnx"),
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
        Backend::Onnx => onnx::open(source, watch),
    }
}

/// Reads what a file says of itself with a backend, if this program has it.
pub(crate) fn inspect(backend: Backend, source: &ModelSource) -> Result<Inspection> {
    match backend {
        Backend::Llama => llama::inspect(source),
        Backend::Onnx => onnx::inspect(source),
    }
}

/// The devices of all backends that this program has, and of a library of one's own those of the one it is of.
pub(crate) fn devices(library: &Library) -> Result<Vec<Device>> {
    let (mut devices, mut refused) = (Vec::new(), None);
    for of_backend in [llama::devices, onnx::devices] {
        match of_backend(library) {
            Ok(found) => devices.extend(found),
            Err(error) => refused = refused.or(Some(error)),
        }
        // It says of which backend it is only when it is opened.
        if matches!(library, Library::At(_)) && !devices.is_empty() {
            break;
        }
    }
    match refused {
        Some(error) if devices.is_empty() => Err(error),
        _ => Ok(devices),
    }
}

/// The libraries of all backends that this program can use, with what each can compute on.
pub(crate) fn installed() -> Vec<Installed> {
    llama::installed().into_iter().chain(onnx::installed()).collect()
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

/// The error of a model, or a file, of a backend that is not compiled in.
#[cfg(any(not(feature = "onnx"), not(any(feature = "llama", feature = "llama-load"))))]
fn missing(backend: Backend, source: &ModelSource) -> Error {
    let features = backend.features().join("` or `");
    Error::unsupported(format!(
        "{} is for the backend `{backend}`, which this program was built without; build it with the feature `{features}` of `infer`",
        source.path.display()
    ))
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
