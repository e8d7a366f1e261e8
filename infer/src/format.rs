//! Which kind of file a path holds, by its first bytes and not by its name.

use crate::Backend;
use infer_core::{Error, ErrorKind, Result};
use std::{fs::File, io::Read, path::Path};

/// The formats that a backend of this library reads, as an error names them.
const KNOWN: &str = "GGUF (a file that begins with `GGUF`: backend `llama`)";

/// First bytes and what a file with them is, for those that are often met in place of a model.
const STRANGERS: &[(&[u8], &str)] = &[
    (b"FUGG", "a GGUF file of the other byte order"),
    (b"version https://git-lfs", "a Git LFS pointer, not the file it stands for: fetch it with `git lfs pull`"),
    (b"<!", "an HTML page: the download went wrong"),
    (b"<html", "an HTML page: the download went wrong"),
    (b"PK\x03\x04", "a zip archive, such as a PyTorch checkpoint"),
    (b"\x80\x02", "a Python pickle"),
    (b"ggml", "a GGML file from before GGUF"),
    (b"ggjt", "a GGML file from before GGUF"),
    (b"\x89HDF", "an HDF5 file"),
    (b"{", "a JSON file"),
];

/// The backend whose file this is.
pub(crate) fn recognise(path: &Path) -> Result<Backend> {
    let metadata = std::fs::metadata(path).map_err(|error| unreadable(path, error))?;
    if metadata.is_dir() {
        return Err(unknown(path, "a folder"));
    }
    // Opening a pipe would wait for someone to write to it.
    if !metadata.is_file() {
        return Err(unknown(path, "not a regular file"));
    }
    let mut head = [0; 64];
    let head = read_head(path, &mut head).map_err(|error| unreadable(path, error))?;
    if head.starts_with(b"GGUF") {
        return Ok(Backend::Llama);
    }
    Err(unknown(path, &describe(path, head)))
}

fn read_head<'b>(path: &Path, buffer: &'b mut [u8]) -> std::io::Result<&'b [u8]> {
    let (mut file, mut length) = (File::open(path)?, 0);
    while length < buffer.len() {
        match file.read(&mut buffer[length..])? {
            0 => break,
            read => length += read,
        }
    }
    Ok(&buffer[..length])
}

fn describe(path: &Path, head: &[u8]) -> String {
    if head.is_empty() {
        return "empty".into();
    }
    if let Some((_, what)) = STRANGERS.iter().find(|(magic, _)| head.starts_with(magic)) {
        return (*what).into();
    }
    // A safetensors file begins with the length of its JSON header.
    if head.get(8) == Some(&b'{') {
        return "a safetensors file".into();
    }
    if path.extension().is_some_and(|extension| extension == "onnx") {
        return "an ONNX model, by its name".into();
    }
    let first = &head[..head.len().min(4)];
    format!("a file that begins with the bytes `{}`", first.escape_ascii())
}

fn unknown(path: &Path, what: &str) -> Error {
    Error::new(
        ErrorKind::InvalidModel,
        format!("{} is {what}; the model formats this library reads are {KNOWN}", path.display()),
    )
}

fn unreadable(path: &Path, error: std::io::Error) -> Error {
    Error::new(ErrorKind::Io, format!("cannot read the model file {}", path.display())).with_source(error)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(name: &str, bytes: &[u8]) -> Result<Backend> {
        let folder = std::env::temp_dir().join(format!("infer-format-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let path = folder.join(name);
        std::fs::write(&path, bytes).unwrap();
        recognise(&path)
    }

    #[test]
    fn a_magic_decides_and_not_the_name() {
        assert_eq!(of("model.bin", b"GGUF\x03\0\0\0").unwrap(), Backend::Llama);
        assert_eq!(of("text.gguf", b"hello").unwrap_err().kind(), ErrorKind::InvalidModel);
    }

    #[test]
    fn an_unknown_file_is_said_to_be_what_it_is() {
        for (name, bytes, what) in [
            ("empty", &b""[..], "empty"),
            ("short", b"GGU", "begins with the bytes `GGU`"),
            ("lfs", b"version https://git-lfs.github.com/spec/v1\n", "git lfs pull"),
            ("page", b"<!DOCTYPE html>", "HTML page"),
            ("weights", b"\x10\0\0\0\0\0\0\0{\"a\":1}", "safetensors"),
            ("model.onnx", b"\x08\x07\x12\x04", "ONNX"),
            ("noise", b"\xff\x00ab", "`\\xff\\x00ab`"),
        ] {
            let said = of(name, bytes).unwrap_err().to_string();
            assert!(said.contains(what) && said.contains(name) && said.contains("GGUF"), "{said}");
        }
    }

    #[test]
    fn a_folder_and_a_missing_file_are_told_apart() {
        assert!(recognise(&std::env::temp_dir()).unwrap_err().to_string().contains("a folder"));
        assert_eq!(recognise(Path::new("no such file")).unwrap_err().kind(), ErrorKind::Io);
    }
}
