//! `infer inspect`: what a model file says of itself.

use crate::{failure::Failure, output};
use infer::{Inspection, ModelInfo, ModelKind, cost::DtypeWeights};
use serde::Serialize;
use std::{collections::BTreeMap, fmt::Write as _, path::PathBuf};

/// Show what a model says of itself. Reads headers and settings only; no runtime is needed.
#[derive(clap::Args, Debug)]
pub(crate) struct Inspect {
    /// The model file, of a split GGUF the first part; for ONNX the file or its folder; for MLX the folder.
    path: PathBuf,

    /// One JSON object.
    #[arg(long)]
    json: bool,
}

#[derive(Serialize)]
struct Report<'i> {
    format: &'i str,
    backend: &'static str,
    /// `None` where it is not known, or no model by itself.
    kind: Option<&'static str>,
    files: Vec<File>,
    #[serde(flatten)]
    info: &'i ModelInfo,
    weights: &'i [DtypeWeights],
    tokenizer: Option<&'i str>,
    metadata: BTreeMap<&'i str, &'i str>,
}

#[derive(Serialize)]
struct File {
    path: String,
    bytes: u64,
}

impl Inspect {
    pub(crate) fn run(&self) -> Result<(), Failure> {
        let inspection = infer::inspect(&self.path)?;
        if self.json {
            output::json(&report(&inspection))
        } else {
            output::text(&output::printable(&text(&inspection)))
        }
    }
}

fn report(of: &Inspection) -> Report<'_> {
    Report {
        format: &of.format,
        backend: of.backend.name(),
        kind: of.kind.map(ModelKind::as_str),
        files: of.files.iter().map(|(path, bytes)| File { path: path.display().to_string(), bytes: *bytes }).collect(),
        info: &of.info,
        weights: of.weights.by_dtype(),
        tokenizer: of.tokenizer.as_deref(),
        metadata: of.metadata.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect(),
    }
}

fn text(of: &Inspection) -> String {
    let mut text = String::new();
    let mut row = |name: &str, value: String| {
        // Infallible: it is a string that is written to.
        let _ = writeln!(text, "{name:<15} {value}");
    };
    for (path, bytes) in &of.files {
        row("file", format!("{}, {}", path.display(), output::bytes(*bytes)));
    }
    row("format", format!("{}, for the backend {}", of.format, of.backend));
    if let Some(kind) = of.kind {
        row("kind", kind.to_string());
    }
    if let Some(name) = &of.info.name {
        row("name", name.clone());
    }
    if !of.info.architecture.is_empty() {
        row("architecture", of.info.architecture.clone());
    }
    // Graphs need not be of text, and have none of these.
    for (name, number) in [("layers", of.info.layers), ("width", of.info.width)] {
        if number > 0 {
            row(name, number.to_string());
        }
    }
    if of.info.heads > 0 {
        row("heads", format!("{}, on {} key/value heads", of.info.heads, of.info.kv_heads));
    }
    if of.info.context > 0 {
        row("context", format!("{} tokens", output::count(of.info.context as u64)));
    }
    row("parameters", output::count(of.info.parameters));
    for dtype in of.weights.by_dtype() {
        let (count, bytes) = (output::count(dtype.elements), output::bytes(dtype.bytes));
        row("weights", format!("{:<6} {bytes}, {count} parameters in {} tensors", dtype.dtype, dtype.tensors));
    }
    let bits = of.weights.bits_per_weight();
    row("", format!("{} in all, {bits:.2} bits a parameter", output::bytes(of.weights.bytes())));
    if let Some(family) = &of.tokenizer {
        row("tokenizer", format!("{family}, {} tokens", output::count(of.info.vocab as u64)));
    }
    row(
        "chat template",
        of.info
            .chat_template
            .as_deref()
            .map_or("none".into(), |template| format!("{} characters, as follows", template.chars().count())),
    );
    if let Some(template) = &of.info.chat_template {
        text.push_str(template.trim_end());
        text.push('\n');
    }
    text.push_str("\nmetadata\n");
    for (name, value) in &of.metadata {
        // Infallible: it is a string that is written to.
        let _ = writeln!(text, "  {name} = {value}");
    }
    text
}
