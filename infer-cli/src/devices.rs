//! `infer devices`: what models can be computed on.

use crate::{failure::Failure, output};
use infer::{Device, Library};
use serde::Serialize;
use std::{fmt::Write as _, path::PathBuf};

/// List the devices each runtime can compute on.
#[derive(clap::Args, Debug)]
pub(crate) struct Devices {
    /// The runtime's shared library, in place of the one that is linked in or found.
    #[arg(long, value_name = "PATH", value_parser = crate::args::library)]
    library: Option<PathBuf>,

    /// One JSON object.
    #[arg(long)]
    json: bool,
}

#[derive(Serialize)]
struct Report<'d> {
    devices: Vec<Row<'d>>,
}

#[derive(Serialize)]
struct Row<'d> {
    backend: &'static str,
    name: &'d str,
    description: &'d str,
    kind: &'static str,
    /// `None` where the runtime does not know.
    memory_free: Option<u64>,
    memory_total: Option<u64>,
}

impl Devices {
    pub(crate) fn run(&self) -> Result<(), Failure> {
        let library = self.library.clone().map_or(Library::Default, Library::At);
        let devices = infer::devices(&library)?;
        if self.json {
            return output::json(&Report { devices: devices.iter().map(row).collect() });
        }
        let mut text = String::new();
        for device in &devices {
            let memory = match (device.memory_free, device.memory_total) {
                (Some(free), Some(total)) => format!("{} free of {}", output::bytes(free), output::bytes(total)),
                _ => "memory unknown".into(),
            };
            let Device { backend, name, kind, description, .. } = device;
            // Infallible: it is a string that is written to.
            let _ = writeln!(text, "{backend:<6} {name:<12} {kind:<15} {memory:<28} {description}");
        }
        output::text(&text)
    }
}

fn row(device: &Device) -> Row<'_> {
    Row {
        backend: device.backend.name(),
        name: &device.name,
        description: &device.description,
        kind: device.kind,
        memory_free: device.memory_free,
        memory_total: device.memory_total,
    }
}
