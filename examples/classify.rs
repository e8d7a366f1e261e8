//! What kind of file is it? Google's `magika`, a small model that looks at the first and the last bytes, on the files given as arguments.
//!
//! `cargo run -p infer-examples --bin classify -- FOLDER FILE…`
//!
//! FOLDER has `model.onnx` and `config.min.json`, as they are in the Python package `magika`; `cargo xtask model magika` prints one.

use infer::onnx::{Graph, GraphOptions, LoadOptions, Onnx, TensorView};
use serde::Deserialize;
use std::{
    collections::HashMap,
    error::Error,
    fs::File,
    io::{self, Read, Seek, SeekFrom},
    path::Path,
};

/// What the model was trained to see of a file, and what its answers mean.
#[derive(Deserialize)]
struct Config {
    /// Bytes it sees of the beginning, and of the end.
    beg_size: usize,
    end_size: usize,
    /// What stands for bytes that are not there.
    padding_token: i32,
    /// Bytes at either end that spaces are taken off, before those are counted.
    block_size: usize,
    /// A file with fewer bytes says too little.
    min_file_size_for_dl: usize,
    target_labels_space: Vec<String>,
    /// How sure it has to be of a label; of one that is not here, this sure.
    thresholds: HashMap<String, f32>,
    medium_confidence_threshold: f32,
    /// Labels that are told as others.
    overwrite_map: HashMap<String, String>,
}

fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args().skip(1);
    let folder = arguments.next().ok_or("which folder? `cargo xtask model magika` prints one")?;
    let files: Vec<String> = arguments.collect();
    let folder = Path::new(&folder);
    let config: Config = serde_json::from_reader(File::open(folder.join("config.min.json"))?)?;

    // Files that the model is not asked about have their answer here; the bytes of the others are the rows of one table.
    let width = config.beg_size + config.end_size;
    let (mut answers, mut table) = (Vec::new(), Vec::new());
    for file in &files {
        let seen = look(Path::new(file), &config).map_err(|error| format!("{file}: {error}"))?;
        answers.push(match seen {
            Seen::Known(label) => Some(label),
            Seen::Bytes(bytes) => {
                table.extend(bytes);
                None
            }
        });
    }

    let rows = table.len() / width;
    let mut graph = Graph::open(&Onnx::load(&LoadOptions::new())?, folder.join("model.onnx"), &GraphOptions::new())?;
    let labels = &config.target_labels_space;
    let mut scores = Vec::new();
    if rows > 0 {
        // All files in one run. The table is read where it is, and so are the scores.
        graph.run([("bytes", TensorView::new(&[rows, width], &table)?)])?;
        scores.extend_from_slice(graph.outputs().tensor("target_label")?.as_slice::<f32>()?);
    }
    let mut scores = scores.chunks_exact(labels.len());
    for (file, answer) in files.iter().zip(answers) {
        match answer {
            Some(label) => println!("{file}: {label}"),
            None => println!("{file}: {}", config.answer(scores.next().ok_or("a file has no scores")?)),
        }
    }
    Ok(())
}

/// What is seen of a file.
enum Seen {
    /// It says too little for the model.
    Known(&'static str),
    Bytes(Vec<i32>),
}

/// The bytes at both ends, without the spaces there.
fn look(path: &Path, config: &Config) -> io::Result<Seen> {
    if path.is_dir() {
        return Ok(Seen::Known("directory"));
    }
    let mut file = File::open(path)?;
    let length = file.metadata()?.len();
    if length == 0 {
        return Ok(Seen::Known("empty"));
    }
    let mut block = |from: u64| -> io::Result<Vec<u8>> {
        let mut bytes = Vec::new();
        file.seek(SeekFrom::Start(from))?;
        file.by_ref().take(config.block_size as u64).read_to_end(&mut bytes)?;
        Ok(bytes)
    };
    let first = block(0)?;
    let last = block(length.saturating_sub(config.block_size as u64))?;
    let begin = first.iter().position(|byte| !is_space(*byte)).unwrap_or(first.len());
    let end = last.iter().rposition(|byte| !is_space(*byte)).map_or(0, |at| at + 1);
    if first.len() - begin < config.min_file_size_for_dl {
        return Ok(Seen::Known(if str::from_utf8(&first).is_ok() { "txt" } else { "unknown" }));
    }
    // Padding is behind the beginning, and before the end.
    let beginning = &first[begin..first.len().min(begin + config.beg_size)];
    let ending = &last[end.saturating_sub(config.end_size)..end];
    let mut bytes = vec![config.padding_token; config.beg_size + config.end_size];
    let places = bytes.len();
    bytes[..beginning.len()].iter_mut().zip(beginning).for_each(|(place, &byte)| *place = byte.into());
    bytes[places - ending.len()..].iter_mut().zip(ending).for_each(|(place, &byte)| *place = byte.into());
    Ok(Seen::Bytes(bytes))
}

/// As Python's `bytes.strip` has it.
fn is_space(byte: u8) -> bool {
    byte.is_ascii_whitespace() || byte == 0x0b
}

impl Config {
    /// The label with the highest score, and how sure it is.
    fn answer(&self, scores: &[f32]) -> String {
        // Of two that are equal the first, as in Python.
        let best = scores.iter().zip(&self.target_labels_space).rev().max_by(|(a, _), (b, _)| a.total_cmp(b));
        let Some((score, label)) = best else { return "unknown".into() };
        let enough = self.thresholds.get(label).unwrap_or(&self.medium_confidence_threshold);
        let told = self.overwrite_map.get(label).unwrap_or(label);
        if score < enough { format!("not sure; {told}, perhaps ({score:.3})") } else { format!("{told} ({score:.3})") }
    }
}
