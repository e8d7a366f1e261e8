//! The only file that knows which backends are compiled in.

#[cfg(any(feature = "llama", feature = "llama-load"))]
pub mod llama;
#[cfg(feature = "mlx")]
pub mod mlx;
#[cfg(feature = "onnx")]
pub mod onnx;

use crate::{Device, Inspection, Installed, Library, ModelSource, Runtime, Variant, format};
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
    /// MLX, for folders with a `config.json` and safetensors.
    Mlx,
}

impl Backend {
    /// Every backend there is.
    pub const ALL: &'static [Self] = &[Self::Llama, Self::Onnx, Self::Mlx];

    /// The name by which it is chosen.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Llama => "llama",
            Self::Onnx => "onnx",
            Self::Mlx => "mlx",
        }
    }

    /// What it reads, in words.
    pub(crate) const fn reads(self) -> &'static str {
        match self {
            Self::Llama => "GGUF files",
            Self::Onnx => "ONNX files and the folders they come in",
            Self::Mlx => "folders with a `config.json` and safetensors",
        }
    }

    /// The features of this crate that bring it, any of which will do.
    #[must_use]
    pub const fn features(self) -> &'static [&'static str] {
        match self {
            Self::Llama => &["llama", "llama-load"],
            Self::Onnx => &["onnx"],
            Self::Mlx => &["mlx"],
        }
    }

    /// Whether this program has it.
    #[must_use]
    pub const fn is_compiled_in(self) -> bool {
        self.driver().is_some()
    }

    /// What this program has of it, if it has it.
    const fn driver(self) -> Option<Driver> {
        match self {
            #[cfg(any(feature = "llama", feature = "llama-load"))]
            Self::Llama => Some(Driver {
                open: llama::open,
                inspect: llama::inspect,
                devices: llama::devices,
                installed: llama::installed,
            }),
            #[cfg(feature = "onnx")]
            Self::Onnx => Some(Driver {
                open: onnx::open,
                inspect: onnx::inspect,
                devices: onnx::devices,
                installed: onnx::installed,
            }),
            #[cfg(feature = "mlx")]
            Self::Mlx => Some(Driver {
                open: mlx::open,
                inspect: mlx::inspect,
                devices: mlx::devices,
                installed: mlx::installed,
            }),
            #[allow(unreachable_patterns, reason = "where all of them are compiled in")]
            _ => None,
        }
    }
}

/// Who is told how far a load is, and may end it.
type Watch<'w> = &'w mut dyn FnMut(f32) -> ControlFlow<()>;

/// What this crate asks of a backend.
#[derive(Clone, Copy)]
struct Driver {
    open: fn(&ModelSource, Watch<'_>) -> Result<Box<dyn Model>>,
    inspect: fn(&ModelSource) -> Result<Inspection>,
    devices: fn(&Library) -> Result<Vec<Device>>,
    installed: fn() -> Vec<Installed>,
}

/// Opens a model with a backend, if this program has it.
pub(crate) fn open(backend: Backend, source: &ModelSource, watch: Watch<'_>) -> Result<Box<dyn Model>> {
    let driver = driver(backend, source)?;
    (driver.open)(source, watch)
}

/// Reads what a file says of itself with a backend, if this program has it.
pub(crate) fn inspect(backend: Backend, source: &ModelSource) -> Result<Inspection> {
    let driver = driver(backend, source)?;
    (driver.inspect)(source)
}

/// The driver of a backend, if this program has it and the model may be one of its own.
fn driver(backend: Backend, source: &ModelSource) -> Result<Driver> {
    let driver = backend.driver().ok_or_else(|| missing(backend, source))?;
    if source.backend.is_some() {
        format::check(&source.path, backend)?;
    }
    Ok(driver)
}

/// Those that this program has.
fn drivers() -> impl Iterator<Item = Driver> {
    Backend::ALL.iter().filter_map(|backend| backend.driver())
}

/// The devices of all backends that this program has, and of a library of one's own those of the one it is of.
pub(crate) fn devices(library: &Library) -> Result<Vec<Device>> {
    let (mut devices, mut refused) = (Vec::new(), None);
    for driver in drivers() {
        match (driver.devices)(library) {
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
    drivers().flat_map(|driver| (driver.installed)()).collect()
}

/// What there is of a backend. The library that is used by default is asked first: a process may have one.
pub(crate) fn runtime(backend: Backend) -> Runtime {
    let Some(driver) = backend.driver() else {
        let devices =
            Err(Error::unsupported(format!("this program was built without it; {}", built_with(backend.features()))));
        return Runtime { backend, devices, libraries: Vec::new() };
    };
    let devices = (driver.devices)(&Library::Default);
    Runtime { backend, devices, libraries: (driver.installed)() }
}

/// The error of a model of a backend that is not compiled in.
fn missing(backend: Backend, source: &ModelSource) -> Error {
    Error::unsupported(format!(
        "{} is for the backend `{backend}`, which this program was built without; {}",
        source.path.display(),
        built_with(backend.features())
    ))
}

/// Somebody may have put a whole file into a value that is to be shown.
#[cfg(any(feature = "mlx", feature = "onnx"))]
fn cut(value: &mut String) {
    const LONGEST: usize = 200;
    if let Some((end, _)) = value.char_indices().nth(LONGEST) {
        value.truncate(end);
        value.push('…');
    }
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
    Err(Error::unsupported(format!("llama.cpp is not linked into this program; {}", built_with(&["llama"]))))
}

#[cfg(feature = "llama-load")]
fn loaded(library: &Shared<'_>) -> Result<infer_llama::Llama> {
    let options = infer_llama::LoadOptions::new();
    infer_llama::Llama::load(&match library {
        Shared::Found => options,
        Shared::At(path) => options.with_path(path),
        Shared::Built(variant) if has_variant(*variant) => options.with_variant(variant.name()),
        Shared::Built(variant) => {
            let message = format!("{library} is not for this program; {}", built_with(&[variant.feature()]));
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
        built_with(&[feature])
    )))
}

/// How a program gets a feature, of which any will do: one of one's own, and the command.
fn built_with(features: &[&str]) -> String {
    format!(
        "build it with the feature `{}` of `infer`; the command with `cargo install --path infer-cli --features {}`",
        features.join("` or `"),
        features[0]
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

#[cfg(test)]
mod tests {
    use super::*;
    use infer_core::ErrorKind;

    #[test]
    fn each_is_known_by_its_name() {
        for backend in Backend::ALL {
            assert_eq!(backend.name().parse::<Backend>().unwrap(), *backend);
        }
        let text = "torch".parse::<Backend>().unwrap_err().to_string();
        assert!(text.contains("`torch`") && text.contains("llama, onnx, mlx"), "{text}");
    }

    /// On no machine is the path looked at: there is nobody to look.
    #[test]
    fn a_model_of_one_that_is_not_there_names_the_features() {
        for backend in Backend::ALL.iter().copied() {
            let source = ModelSource::new("/nowhere/a-model").with_backend(backend);
            let mut errors = vec![missing(backend, &source)];
            if !backend.is_compiled_in() {
                errors.extend(source.open().err());
                errors.extend(inspect(backend, &source).err());
                assert_eq!(errors.len(), 3);
            }
            for error in errors {
                let text = error.to_string();
                assert_eq!(error.kind(), ErrorKind::Unsupported, "{text}");
                assert!(text.contains("/nowhere/a-model") && text.contains(backend.name()), "{text}");
                assert!(backend.features().iter().all(|feature| text.contains(&format!("`{feature}`"))), "{text}");
            }
        }
    }
}
