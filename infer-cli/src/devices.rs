//! `infer devices`: what models can be computed on.

use crate::{failure::Failure, output};
use infer::{Device, Installed, Library, Variant};
use serde::Serialize;
use std::{
    fmt::Write as _,
    path::{Path, PathBuf},
};

/// List the runtimes' libraries that are there, and the devices each can compute on.
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
    /// Empty where one was asked for.
    libraries: Vec<Found<'d>>,
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
            return output::json(&Report { devices, libraries: Vec::new() });
        }
        output::text(&devices.iter().map(|device| line(device, "")).collect::<String>())
    }

    fn all(&self) -> Result<(), Failure> {
        let installed = infer::installed();
        if !installed.iter().any(|library| library.devices.is_ok()) {
            // What was looked for, and where, is its error.
            infer::devices(&Library::Default)?;
        }
        if self.json {
            let devices = installed.iter().flat_map(|library| {
                let devices = library.devices.as_deref().unwrap_or_default();
                devices.iter().map(|device| row(device, library.variant.as_deref()))
            });
            return output::json(&Report {
                devices: devices.collect(),
                libraries: installed.iter().map(found).collect(),
            });
        }
        output::text(&installed.iter().map(section).collect::<String>())
    }
}

/// A library, and its devices below.
fn section(library: &Installed) -> String {
    let mut text = format!("{} {}, {}", library.backend, library.variant.as_deref().unwrap_or("?"), library.place);
    if let Some(path) = &library.path {
        // Infallible: it is a string that is written to.
        let _ = write!(text, ": {}", path.display());
    }
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
        variant: library.variant.as_deref(),
        error: library.devices.as_ref().err().map(ToString::to_string),
    }
}
