//! `infer devices`: what models can be computed on.

use crate::{failure::Failure, output};
use infer::{Device, Error, ErrorKind, Installed, Library, Runtime, Variant};
use serde::Serialize;
use std::{
    fmt::Write as _,
    path::{Path, PathBuf},
};

/// List the runtimes, their libraries that are there, and the devices each can compute on; and what is missing, with the command that brings it.
#[derive(clap::Args, Debug)]
pub(crate) struct Devices {
    /// This shared library alone.
    #[arg(long, value_name = "PATH", value_parser = crate::args::library)]
    library: Option<PathBuf>,

    /// The shared library alone that was built so: cpu, vulkan, cuda or metal.
    #[arg(long, value_name = "NAME", conflicts_with = "library")]
    variant: Option<Variant>,

    /// One JSON object.
    #[arg(long)]
    json: bool,
}

#[derive(Serialize)]
struct Report<'d> {
    /// Of all libraries.
    devices: Vec<Row<'d>>,
    /// Empty where one was asked for, as `runtimes` then.
    libraries: Vec<Found<'d>>,
    runtimes: Vec<Stands<'d>>,
}

/// How it stands with a runtime, where no library is asked for.
#[derive(Serialize)]
struct Stands<'d> {
    backend: &'static str,
    usable: bool,
    /// The devices a model is computed on.
    devices: Vec<&'d str>,
    /// Why it cannot be used, and what to do.
    error: Option<String>,
}

#[derive(Serialize)]
struct Row<'d> {
    backend: &'static str,
    /// Of its library; `None` where one was asked for.
    variant: Option<&'d str>,
    name: &'d str,
    description: &'d str,
    kind: &'static str,
    /// `None` where the runtime does not know.
    memory_free: Option<u64>,
    memory_total: Option<u64>,
}

#[derive(Serialize)]
struct Found<'d> {
    backend: &'static str,
    place: &'d str,
    path: Option<&'d Path>,
    version: Option<&'d str>,
    /// `None` where the library does not say.
    variant: Option<&'d str>,
    /// Why it cannot be used.
    error: Option<String>,
}

impl Devices {
    pub(crate) fn run(&self) -> Result<(), Failure> {
        match (&self.library, self.variant) {
            (Some(path), _) => self.one(&Library::At(path.clone())),
            (None, Some(variant)) => self.one(&Library::Variant(variant)),
            (None, None) => self.all(),
        }
    }

    fn one(&self, library: &Library) -> Result<(), Failure> {
        let devices = infer::devices(library)?;
        if self.json {
            let devices = devices.iter().map(|device| row(device, None)).collect();
            return output::json(&Report { devices, libraries: Vec::new(), runtimes: Vec::new() });
        }
        output::text(&devices.iter().map(|device| line(device, "")).collect::<String>())
    }

    fn all(&self) -> Result<(), Failure> {
        let runtimes = infer::runtimes();
        if self.json {
            output::json(&report(&runtimes))?;
        } else {
            output::text(&output::printable(&runtimes.iter().map(section).collect::<String>()))?;
        }
        if runtimes.iter().any(|runtime| runtime.devices.is_ok()) {
            return Ok(());
        }
        Err(Error::new(ErrorKind::Library, "no runtime can be used").into())
    }
}

fn report(runtimes: &[Runtime]) -> Report<'_> {
    let libraries = || runtimes.iter().flat_map(|runtime| &runtime.libraries);
    let devices = libraries().flat_map(|library| {
        let devices = library.devices.as_deref().unwrap_or_default();
        devices.iter().map(|device| row(device, library.variant.as_deref()))
    });
    Report {
        devices: devices.collect(),
        libraries: libraries().map(found).collect(),
        runtimes: runtimes.iter().map(stands).collect(),
    }
}

/// A runtime: its libraries, or why there is none to use.
fn section(runtime: &Runtime) -> String {
    let libraries = runtime.libraries.iter();
    let Err(error) = &runtime.devices else { return libraries.map(|one| library(one, "")).collect() };
    let mut text = format!("{}: cannot be used\n", runtime.backend);
    text.extend(error.to_string().lines().map(|line| format!("  {line}\n")));
    // Those that fail are told by the error.
    text.extend(libraries.filter(|one| one.devices.is_ok()).map(|one| library(one, " (not what is asked for)")));
    text
}

/// A library, and its devices below.
fn library(library: &Installed, remark: &str) -> String {
    let mut text = library.backend.to_string();
    for word in [&library.version, &library.variant].into_iter().flatten() {
        text += " ";
        text += word;
    }
    // Infallible: it is a string that is written to.
    let _ = write!(text, ", {}", library.place);
    if let Some(path) = &library.path {
        let _ = write!(text, ": {}", path.display());
    }
    text += remark;
    text.push('\n');
    match &library.devices {
        Ok(devices) => text.extend(devices.iter().map(|device| line(device, "  "))),
        Err(error) => text.extend(error.to_string().lines().map(|line| format!("  {line}\n"))),
    }
    text
}

fn line(device: &Device, indent: &str) -> String {
    let memory = match (device.memory_free, device.memory_total) {
        (Some(free), Some(total)) => format!("{} free of {}", output::bytes(free), output::bytes(total)),
        _ => "memory unknown".into(),
    };
    let Device { name, kind, description, .. } = device;
    format!("{indent}{name:<12} {kind:<15} {memory:<28} {description}\n")
}

fn row<'d>(device: &'d Device, variant: Option<&'d str>) -> Row<'d> {
    Row {
        backend: device.backend.name(),
        variant,
        name: &device.name,
        description: &device.description,
        kind: device.kind,
        memory_free: device.memory_free,
        memory_total: device.memory_total,
    }
}

fn found(library: &Installed) -> Found<'_> {
    Found {
        backend: library.backend.name(),
        place: &library.place,
        path: library.path.as_deref(),
        version: library.version.as_deref(),
        variant: library.variant.as_deref(),
        error: library.devices.as_ref().err().map(ToString::to_string),
    }
}

fn stands(runtime: &Runtime) -> Stands<'_> {
    let devices = runtime.devices.as_deref().unwrap_or_default();
    Stands {
        backend: runtime.backend.name(),
        usable: runtime.devices.is_ok(),
        devices: devices.iter().map(|device| device.name.as_str()).collect(),
        error: runtime.devices.as_ref().err().map(ToString::to_string),
    }
}
