//! MLX itself, with what only it has: arrays that live in scopes, the memory it holds, what a model's folder says of itself.
//!
//! [`open`](crate::open), [`Engine`](crate::Engine) and the traits are enough for models of text, and for programs that are to run on other
//! backends too. What is made here stays on its thread: an [`Mlx`] and all that comes of it cannot be sent. `docs/mlx.md` begins with what
//! people have.

pub use infer_mlx::*;

use crate::{Backend, Inspection, Library, ModelKind, ModelSource};
use infer_core::{Error, Result, huggingface::Settings};
use std::ops::ControlFlow;

/// The library, ready for use on this thread. A process has one, which the first use of it has chosen.
///
/// # Errors
/// Those of [`Mlx::load`]; [`Unsupported`](crate::ErrorKind::Unsupported) for a linked one, which there is not.
pub fn library(choice: &Library) -> Result<Mlx> {
    Mlx::load(&load_options(choice)?)
}

fn load_options(choice: &Library) -> Result<LoadOptions> {
    let options = LoadOptions::new();
    match choice {
        Library::Default | Library::Found => Ok(options),
        Library::At(path) => Ok(options.with_path(path)),
        Library::Variant(variant) => Ok(options.with_variant(variant.name())),
        Library::Linked => {
            let message =
                "MLX is not linked into programs, but loaded; leave the choice of the library out, or name a file";
            Err(Error::unsupported(message))
        }
    }
}

pub(super) fn open(
    source: &ModelSource,
    watch: &mut dyn FnMut(f32) -> ControlFlow<()>,
) -> Result<Box<dyn infer_core::Model>> {
    let mlx = library(&source.library)?;
    if let Some(names) = &source.devices {
        check_devices(names, &devices(&source.library)?)?;
    }
    let options = ModelOptions::new().with_vocab_only(source.vocab_only);
    Ok(Box::new(Model::open_watched(&mlx, &source.path, &options, watch)?))
}

/// A thread computes on one device, the first of those that the library has. It may be named.
fn check_devices(names: &[String], there: &[crate::Device]) -> Result<()> {
    let first = there.first().map_or("", |device| &device.name);
    match names.iter().find(|name| *name != first) {
        None => Ok(()),
        Some(name) => Err(Error::unsupported(format!(
            "MLX computes on {first} here, and not on `{name}`: leave the device out, or name the library of another variant"
        ))),
    }
}

pub(super) fn devices(choice: &Library) -> Result<Vec<crate::Device>> {
    Ok(listed(Mlx::available(&load_options(choice)?)?.devices))
}

pub(super) fn installed() -> Vec<crate::Installed> {
    let all = Mlx::installed(&LoadOptions::new()).into_iter();
    all.map(|one| crate::Installed {
        backend: Backend::Mlx,
        place: one.place,
        path: Some(one.path),
        version: one.library.as_ref().ok().map(|library| library.version.to_owned()),
        variant: one.library.as_ref().ok().map(|library| library.variant.to_owned()),
        devices: one.library.map(|library| listed(library.devices)),
    })
    .collect()
}

/// Named by what they are: MLX knows them by that and a number.
fn listed(devices: Vec<Device>) -> Vec<crate::Device> {
    let mut gpus = 0..;
    let mut name = |gpu: bool| match if gpu { gpus.next() } else { None } {
        None => "CPU".to_owned(),
        Some(0) => "GPU".to_owned(),
        Some(number) => format!("GPU{number}"),
    };
    let named = devices.into_iter().map(|device| crate::Device {
        backend: Backend::Mlx,
        name: name(device.gpu),
        description: device.name,
        kind: if device.gpu { "gpu" } else { "cpu" },
        memory_free: None,
        memory_total: Some(device.memory).filter(|&bytes| bytes > 0),
    });
    named.collect()
}

pub(super) fn inspect(source: &ModelSource) -> Result<Inspection> {
    let package = Package::read(&source.path)?;
    let mut info = package.info().clone();
    info.chat_template = Settings::read(package.folder())?.chat_template().map(str::to_owned);
    Ok(Inspection {
        backend: Backend::Mlx,
        kind: Some(if package.is_encoder() { ModelKind::Encoder } else { ModelKind::Decoder }),
        format: "safetensors".to_owned(),
        files: package.files(),
        info,
        weights: package.weights().clone(),
        dims: Some(*package.dims()),
        kv: package.kv().cloned(),
        tokenizer: package.folder().join("tokenizer.json").is_file().then(|| "tokenizer.json".to_owned()),
        metadata: metadata(&package),
    })
}

/// What the settings say, and what is written into the files of weights.
fn metadata(package: &Package) -> Vec<(String, String)> {
    let mut rows = package.settings();
    for header in package.headers() {
        let file = header.path().file_name().unwrap_or_default().to_string_lossy();
        rows.extend(header.metadata().iter().map(|(name, value)| (format!("{file}: {name}"), value.clone())));
    }
    rows.iter_mut().for_each(|(_, value)| super::cut(value));
    rows
}

#[cfg(test)]
mod tests {
    use super::*;
    use infer_core::ErrorKind;

    #[test]
    fn only_the_device_that_computes_may_be_named() {
        let there = devices(&Library::Default).unwrap_or_else(|error| panic!("{error}"));
        let names = |names: &[&str]| names.iter().map(|&name| name.to_owned()).collect::<Vec<_>>();
        check_devices(&[], &there).unwrap();
        check_devices(&names(&[&there[0].name]), &there).unwrap();
        let error = check_devices(&names(&[&there[0].name, "Abacus"]), &there).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Unsupported);
        assert!(error.to_string().contains("`Abacus`"), "{error}");
    }

    #[test]
    fn it_is_never_linked() {
        assert_eq!(library(&Library::Linked).unwrap_err().kind(), ErrorKind::Unsupported);
        assert!(installed().iter().any(|one| one.variant.as_deref() == Some("cpu") && one.devices.is_ok()));
    }
}
