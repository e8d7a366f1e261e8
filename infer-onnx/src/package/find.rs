//! Which files a path stands for.

use crate::{decoder, error::BACKEND, genai};
use infer_core::{Error, ErrorKind, Result};
use std::path::{Path, PathBuf};

/// What graphs are called, the one to take first first: with its keys and values in one graph, then two in one.
const NAMES: [&str; 2] = ["model.onnx", "decoder_model_merged.onnx"];
/// What a decoder is called that was exported as two graphs: for first tokens, and for one behind others.
const FIRST: &str = "decoder_model.onnx";
const NEXT: [&str; 2] = ["decoder_with_past_model.onnx", "decoder_model_with_past.onnx"];

/// The files of a model.
pub(super) struct Found {
    pub(super) graph: PathBuf,
    /// Where the settings and the tokenizer are.
    pub(super) folder: PathBuf,
    /// What a `genai_config.json` says, where it is the one that names the graph.
    pub(super) genai: Option<decoder::Config>,
}

pub(super) fn find(path: &Path) -> Result<Found> {
    let kind = std::fs::metadata(path).map_err(|error| {
        Error::new(ErrorKind::Io, format!("{} cannot be read", path.display())).with_source(error).with_backend(BACKEND)
    })?;
    if kind.is_dir() {
        return in_folder(path);
    }
    let folder = path.parent().unwrap_or(Path::new(""));
    if path.file_name().is_some_and(|name| name == genai::FILE) {
        return in_folder(folder);
    }
    let genai = genai_in(folder)?.filter(|decoder| decoder.graph == path);
    Ok(Found { graph: path.to_owned(), folder: settings_of(path), genai })
}

fn in_folder(folder: &Path) -> Result<Found> {
    if let Some(decoder) = genai_in(folder)? {
        return Ok(Found { graph: decoder.graph.clone(), folder: folder.to_owned(), genai: Some(decoder) });
    }
    let places = [folder.to_owned(), folder.join("onnx")];
    let called = |names: &[&str]| {
        let mut usual = places.iter().flat_map(|place| names.iter().map(|name| place.join(name)));
        usual.find(|graph| graph.is_file())
    };
    let graph = match called(&NAMES) {
        Some(graph) => graph,
        None => match (called(&[FIRST]), called(&NEXT)) {
            (Some(first), Some(next)) => return Err(two_graphs(&first, &next)),
            (None, Some(graph)) | (Some(graph), None) => graph,
            (None, None) => the_only_one(folder, &places)?,
        },
    };
    Ok(Found { graph, folder: folder.to_owned(), genai: None })
}

fn two_graphs(first: &Path, next: &Path) -> Error {
    let message = format!(
        "the decoder is two graphs, {} for the first tokens of a text and {} for one token behind others, and one is needed: export it \
         again (Optimum makes one, {}), or get {}, which has both; {1} alone works too, if it is named, but reads a prompt token by token",
        first.display(),
        next.display(),
        NAMES[0],
        NAMES[1]
    );
    Error::new(ErrorKind::Unsupported, message).with_backend(BACKEND)
}

/// The folder of a graph's settings: its own, or the one around a folder `onnx`.
fn settings_of(graph: &Path) -> PathBuf {
    let folder = graph.parent().unwrap_or(Path::new(""));
    let has = |folder: &Path| ["config.json", "tokenizer.json"].iter().any(|name| folder.join(name).is_file());
    let is_onnx = folder.file_name().is_some_and(|name| name == "onnx");
    match folder.parent() {
        Some(around) if is_onnx && !has(folder) && has(around) => around.to_owned(),
        _ => folder.to_owned(),
    }
}

/// The one graph there is, by whatever name.
fn the_only_one(folder: &Path, places: &[PathBuf]) -> Result<PathBuf> {
    let is_graph = |path: &PathBuf| path.extension().is_some_and(|end| end == "onnx") && path.is_file();
    let listed = places.iter().filter_map(|place| std::fs::read_dir(place).ok()).flatten();
    let mut graphs: Vec<PathBuf> = listed.filter_map(|entry| Some(entry.ok()?.path())).filter(is_graph).collect();
    graphs.sort();
    let invalid = |what: String| Error::new(ErrorKind::InvalidModel, what).with_backend(BACKEND);
    match &graphs[..] {
        [graph] => Ok(graph.clone()),
        [] => Err(invalid(format!(
            "{} has no ONNX model in it: no {}, and no file that ends in .onnx, there or in a folder `onnx`",
            folder.display(),
            genai::FILE
        ))),
        [first, ..] => Err(invalid(format!(
            "{} has {} graphs, none of which is called {}; name the one to open, such as {}",
            folder.display(),
            graphs.len(),
            NAMES[0],
            first.display()
        ))),
    }
}

/// The decoder of a `genai_config.json`, where the folder has such a file.
fn genai_in(folder: &Path) -> Result<Option<decoder::Config>> {
    folder.join(genai::FILE).is_file().then(|| genai::read(folder)).transpose()
}
