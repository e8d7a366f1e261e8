//! ONNX Runtime itself, with what only it has: graphs with named tensors in and out, pools of them, execution providers, what a file says of
//! itself.
//!
//! [`open`](crate::open) and the traits are enough for models of text, and for programs that are to run on other backends too. Everything
//! else is a [`Graph`]; `docs/onnx.md` begins with what people have.

pub use infer_onnx::*;

use crate::{Backend, Inspection, Library, ModelKind, ModelSource};
use infer_core::{Error, Result, cost::Weights};
use std::ops::ControlFlow;

/// The library that is loaded, which the first use of it has chosen: a process has one.
///
/// # Errors
/// Those of [`Onnx::load`]; [`Unsupported`](crate::ErrorKind::Unsupported) for a linked one, which there is not.
pub fn library(choice: &Library) -> Result<Onnx> {
    let options = LoadOptions::new();
    Onnx::load(&match choice {
        Library::Default | Library::Found => options,
        Library::At(path) => options.with_path(path),
        Library::Variant(variant) => options.with_variant(variant.name()),
        Library::Linked => {
            let message = "ONNX Runtime is not linked into programs, but loaded; leave the choice of the library out, or name a file";
            return Err(Error::unsupported(message));
        }
    })
}

pub(super) fn open(
    source: &ModelSource,
    watch: &mut dyn FnMut(f32) -> ControlFlow<()>,
) -> Result<Box<dyn infer_core::Model>> {
    let mut options = ModelOptions::new().with_vocab_only(source.vocab_only);
    options.graph.providers = providers(source.devices.as_deref().unwrap_or_default());
    Ok(Box::new(Model::open_watched(&library(&source.library)?, &source.path, &options, watch)?))
}

/// A device is what a provider drives. The processor is there without being named.
fn providers(devices: &[String]) -> Vec<Provider> {
    let all = devices.iter().map(Provider::new);
    all.filter(|provider| *provider != Provider::cpu()).collect()
}

pub(super) fn devices(choice: &Library) -> Result<Vec<crate::Device>> {
    let device = |provider: String| crate::Device {
        backend: Backend::Onnx,
        name: provider.strip_suffix("ExecutionProvider").unwrap_or(&provider).to_owned(),
        kind: if provider == Provider::cpu().name() { "cpu" } else { "other" },
        description: provider,
        memory_free: None,
        memory_total: None,
    };
    Ok(library(choice)?.providers()?.into_iter().map(device).collect())
}

pub(super) fn installed() -> Vec<crate::Installed> {
    let all = Onnx::installed(&LoadOptions::new()).into_iter();
    all.map(|one| crate::Installed {
        backend: Backend::Onnx,
        version: one.version.as_ref().ok().cloned(),
        variant: None,
        // Of several, a process has one.
        devices: one.version.and_then(|_| devices(&Library::At(one.path.clone()))),
        place: one.place,
        path: Some(one.path),
    })
    .collect()
}

pub(super) fn inspect(source: &ModelSource) -> Result<Inspection> {
    let package = Package::read(&source.path)?;
    let (header, contents) = (package.header(), package.contents());
    let mut weights = Weights::default();
    for (dtype, of_dtype) in &contents.weights {
        weights.add_all(dtype.as_str(), of_dtype.tensors as u64, of_dtype.parameters, of_dtype.bytes);
    }
    let operators = header.opset("").map_or(String::new(), |version| format!(", operators of version {version}"));
    Ok(Inspection {
        backend: Backend::Onnx,
        kind: Some(match package.form() {
            Form::Graph => ModelKind::Graph,
            Form::Encoder => ModelKind::Encoder,
            _ => ModelKind::Decoder,
        }),
        format: format!("ONNX {}{operators}, {}", header.ir_version(), package.form()),
        files: package.files(),
        info: package.info().clone(),
        weights,
        dims: None,
        kv: None,
        tokenizer: package.folder().join("tokenizer.json").is_file().then(|| "tokenizer.json".to_owned()),
        metadata: metadata(header, contents),
    })
}

/// What a graph takes and gives, and what else its file says.
fn metadata(header: &header::Header, contents: &header::Contents) -> Vec<(String, String)> {
    let mut rows = Vec::new();
    for (what, ports) in [("input", &contents.inputs), ("output", &contents.outputs)] {
        rows.extend(ports.iter().map(|port| (format!("{what}.{}", port.name()), port.kind().to_string())));
    }
    let producer = format!("{} {}", header.producer(), header.producer_version());
    let said = [("producer", producer.trim()), ("graph", header.graph_name()), ("description", header.description())];
    let said = said.into_iter().filter(|(_, value)| !value.is_empty());
    rows.extend(said.map(|(name, value)| (name.to_owned(), value.to_owned())));
    let opsets = header.opsets().iter().filter(|(domain, _)| !domain.is_empty());
    rows.extend(opsets.map(|(domain, version)| (format!("operators of {domain}"), format!("version {version}"))));
    rows.extend(header.metadata().iter().cloned());
    for (_, value) in &mut rows {
        super::cut(value);
    }
    rows
}
