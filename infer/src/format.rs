//! Which kind of model a path holds: a file by its first bytes, and where these say too little by its name; a folder by what lies in it.

use crate::Backend;
use infer_core::{Error, ErrorKind, Result};
use std::{
    fs::File,
    io::Read,
    path::{Path, PathBuf},
};

/// The formats that a backend of this library reads, as an error names them.
const KNOWN: &str = "GGUF (a file that begins with `GGUF`: backend `llama`), ONNX (a file `.onnx`, or a folder that has one or a \
                     `genai_config.json`: backend `onnx`) and safetensors (a folder that has them and a `config.json`: backend `mlx`)";

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
        return recognise_folder(path);
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
    if is_onnx(head) {
        return Ok(Backend::Onnx);
    }
    // One file of a folder that a model comes in.
    if is_safetensors(head) && path.with_file_name("config.json").is_file() {
        return Ok(Backend::Mlx);
    }
    match stranger(head) {
        // Whatever it is, its backend says what is wrong with it.
        None if !head.is_empty() && has_onnx_name(path) => Ok(Backend::Onnx),
        known => Err(unknown(path, &known.map_or_else(|| describe(head), str::to_owned))),
    }
}

/// Holds a backend that was asked for by its name against what the path is, where that is of a format that others read. What is not known here
/// the backend itself looks at.
///
/// # Errors
/// [`InvalidInput`](ErrorKind::InvalidInput), saying what it is and which backend reads it.
pub(crate) fn check(path: &Path, asked: Backend) -> Result<()> {
    let (what, reader) = match std::fs::metadata(path) {
        Ok(found) if found.is_dir() => match Lying::within(path) {
            Ok(lies) if lies.is_for(asked) => return Ok(()),
            Ok(lies) if lies.is_for(Backend::Onnx) => ("a folder with an ONNX model", Backend::Onnx),
            Ok(lies) if lies.is_for(Backend::Mlx) => ("a folder with a `config.json` and safetensors", Backend::Mlx),
            _ => return Ok(()),
        },
        _ => match recognise(path) {
            Ok(Backend::Llama) => ("a GGUF file", Backend::Llama),
            Ok(Backend::Onnx) => ("an ONNX file", Backend::Onnx),
            Ok(Backend::Mlx) => ("a file of safetensors beside its `config.json`", Backend::Mlx),
            Err(_) => return Ok(()),
        },
    };
    if reader == asked {
        return Ok(());
    }
    Err(Error::invalid_input(format!(
        "{} is {what}, for the backend `{reader}`, and the backend `{asked}` was asked for, which reads {}: ask for `{reader}`, or for none",
        path.display(),
        asked.reads()
    )))
}

/// Folders are what models come in with their tokenizer and configuration. Of one with the weights in two formats the graph counts, which was made
/// of the others; who wants those names the backend.
fn recognise_folder(path: &Path) -> Result<Backend> {
    match Lying::within(path)? {
        lies if lies.is_for(Backend::Onnx) => Ok(Backend::Onnx),
        lies if lies.is_for(Backend::Mlx) => Ok(Backend::Mlx),
        Lying { gguf: Some(file), .. } => {
            Err(unknown(path, &format!("a folder; give the file in it, such as {}", file.display())))
        }
        Lying { has_safetensors: true, .. } => {
            Err(unknown(path, "a folder of safetensors without the `config.json` that says what they are of"))
        }
        Lying { has_config: true, .. } => {
            Err(unknown(path, "a folder with a `config.json`, and no weights (`.safetensors`) beside it"))
        }
        _ => Err(unknown(path, "a folder with no model in it")),
    }
}

/// What lies in a folder.
#[derive(Default)]
struct Lying {
    gguf: Option<PathBuf>,
    is_onnx: bool,
    has_config: bool,
    has_safetensors: bool,
}

impl Lying {
    fn within(path: &Path) -> Result<Self> {
        let mut lies = Self { has_config: path.join("config.json").is_file(), ..Self::default() };
        lies.is_onnx = path.join("genai_config.json").is_file();
        // Repositories of the Hugging Face hub have their graphs in a folder of this name.
        for folder in [path.to_owned(), path.join("onnx")] {
            if folder != path && !folder.is_dir() {
                continue;
            }
            for entry in std::fs::read_dir(&folder).map_err(|error| unreadable(path, error))? {
                lies.see(entry.map_err(|error| unreadable(path, error))?.path(), folder == path);
            }
        }
        Ok(lies)
    }

    /// Whether it has what this backend reads of a folder.
    fn is_for(&self, backend: Backend) -> bool {
        match backend {
            Backend::Llama => false,
            Backend::Onnx => self.is_onnx,
            Backend::Mlx => self.has_config && self.has_safetensors,
        }
    }

    fn see(&mut self, file: PathBuf, is_its_own: bool) {
        self.is_onnx |= has_onnx_name(&file);
        self.has_safetensors |= is_its_own && has_extension(&file, "safetensors");
        if has_extension(&file, "gguf") {
            self.gguf = Some(file);
        }
    }
}

/// Whether this is how a serialised `ModelProto` begins: field 1, the version of the format, is a small number, and another of its fields
/// comes next. Or a graph that ONNX Runtime has converted for itself, which bears its mark.
fn is_onnx(head: &[u8]) -> bool {
    let is_model = matches!(head, [0x08, 1..=0x3f, 0x12 | 0x1a | 0x22 | 0x28 | 0x32 | 0x3a | 0x42 | 0x72, ..]);
    is_model || head.get(4..8) == Some(b"ORTM")
}

fn has_onnx_name(path: &Path) -> bool {
    has_extension(path, "onnx") || has_extension(path, "ort")
}

fn has_extension(path: &Path, wanted: &str) -> bool {
    path.extension().is_some_and(|extension| extension == wanted)
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

/// What a file is that is often met in place of a model.
fn stranger(head: &[u8]) -> Option<&'static str> {
    let known = STRANGERS.iter().find(|(magic, _)| head.starts_with(magic));
    known
        .map(|(_, what)| *what)
        .or(is_safetensors(head).then_some("a safetensors file; give the folder that it and its `config.json` lie in"))
}

/// It begins with the length of its JSON header.
fn is_safetensors(head: &[u8]) -> bool {
    head.get(8) == Some(&b'{')
}

fn describe(head: &[u8]) -> String {
    if head.is_empty() {
        return "empty".into();
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
        assert_eq!(of("renamed", b"\x08\x0a\x12\x07pytorch").unwrap(), Backend::Onnx);
        assert_eq!(of("converted", b"\x18\0\0\0ORTM").unwrap(), Backend::Onnx);
    }

    #[test]
    fn a_name_decides_where_no_bytes_speak_against_it() {
        assert_eq!(of("fields in another order.onnx", b"\x42\x02\x10\x11").unwrap(), Backend::Onnx);
        for (name, bytes, what) in
            [("empty.onnx", &b""[..], "empty"), ("pointer.onnx", b"version https://git-lfs", "git lfs")]
        {
            let said = of(name, bytes).unwrap_err().to_string();
            assert!(said.contains(what) && said.contains(name), "{said}");
        }
    }

    #[test]
    fn an_unknown_file_is_said_to_be_what_it_is() {
        for (name, bytes, what) in [
            ("empty", &b""[..], "empty"),
            ("short", b"GGU", "begins with the bytes `GGU`"),
            ("lfs", b"version https://git-lfs.github.com/spec/v1\n", "git lfs pull"),
            ("page", b"<!DOCTYPE html>", "HTML page"),
            ("weights", b"\x10\0\0\0\0\0\0\0{\"a\":1}", "a safetensors file; give the folder"),
            ("noise", b"\xff\x00ab", "`\\xff\\x00ab`"),
        ] {
            let said = of(name, bytes).unwrap_err().to_string();
            assert!(said.contains(what) && said.contains(name) && said.contains("GGUF"), "{said}");
        }
    }

    #[test]
    fn a_folder_is_what_lies_in_it() {
        for (files, recognised) in [
            (&["genai_config.json", "model.onnx", "model.onnx.data"][..], Ok(Backend::Onnx)),
            (&["config.json", "onnx/model.onnx"], Ok(Backend::Onnx)),
            (&["model.onnx", "model.gguf"], Ok(Backend::Onnx)),
            (&["config.json", "model.safetensors", "onnx/model.onnx"], Ok(Backend::Onnx)),
            (&["config.json", "model.safetensors"], Ok(Backend::Mlx)),
            (
                &["config.json", "model-00001-of-00002.safetensors", "model-00002-of-00002.safetensors"],
                Ok(Backend::Mlx),
            ),
            (&["config.json", "model.safetensors", "model-q4.gguf"], Ok(Backend::Mlx)),
            (&["config.json", "sub/model.safetensors"], Err("no weights")),
            (&["model.safetensors"], Err("without the `config.json`")),
            (&["config.json"], Err("no weights")),
            (&["README.md"], Err("a folder with no model in it")),
            (&["README.md", "model-q4.gguf"], Err("model-q4.gguf")),
        ] {
            let folder = std::env::temp_dir().join(format!("infer-format-folder-{}", std::process::id()));
            let _ = std::fs::remove_dir_all(&folder);
            for file in files {
                let path = folder.join(file);
                std::fs::create_dir_all(path.parent().unwrap()).unwrap();
                std::fs::write(path, "").unwrap();
            }
            match (recognise(&folder), recognised) {
                (Ok(backend), Ok(wanted)) => assert_eq!(backend, wanted, "{files:?}"),
                (Err(error), Err(said)) => assert!(error.to_string().contains(said), "{error}"),
                (other, _) => panic!("{files:?}: {other:?}"),
            }
            std::fs::remove_dir_all(&folder).unwrap();
        }
    }

    /// A folder with the weights in both formats is for either.
    #[test]
    fn a_backend_that_is_asked_for_must_read_what_there_is() {
        let folder = std::env::temp_dir().join(format!("infer-format-asked-{}", std::process::id()));
        let [gguf, onnx, mlx, both] = ["gguf", "onnx", "mlx", "both"].map(|name| folder.join(name));
        for (place, files) in [
            (&gguf, &["model.gguf"][..]),
            (&onnx, &["config.json", "onnx/model.onnx"]),
            (&mlx, &["config.json", "model.safetensors"]),
            (&both, &["config.json", "model.safetensors", "model.onnx"]),
        ] {
            for file in files {
                let path = place.join(file);
                std::fs::create_dir_all(path.parent().unwrap()).unwrap();
                std::fs::write(path, if file.ends_with("gguf") { "GGUF\x03" } else { "\x08\x0a\x12\x07pytorch" })
                    .unwrap();
            }
        }
        for (path, readers) in [
            (gguf.join("model.gguf"), &[Backend::Llama][..]),
            (onnx.join("onnx/model.onnx"), &[Backend::Onnx]),
            (onnx, &[Backend::Onnx]),
            (mlx, &[Backend::Mlx]),
            (both, &[Backend::Onnx, Backend::Mlx]),
            // What is none of them is for the backend to tell.
            (gguf, Backend::ALL),
            (folder.join("nothing"), Backend::ALL),
        ] {
            for &asked in Backend::ALL {
                let Err(error) = check(&path, asked) else {
                    assert!(readers.contains(&asked), "{}: {asked}", path.display());
                    continue;
                };
                assert!(!readers.contains(&asked) && error.kind() == ErrorKind::InvalidInput, "{error}");
                let (text, asked) = (error.to_string(), format!("the backend `{asked}` was asked for"));
                assert!(text.contains(&format!("for the backend `{}`", readers[0])) && text.contains(&asked), "{text}");
            }
        }
        std::fs::remove_dir_all(&folder).unwrap();
    }

    #[test]
    fn weights_beside_their_configuration_are_their_folder() {
        let folder = std::env::temp_dir().join(format!("infer-format-weights-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let file = folder.join("model.safetensors");
        std::fs::write(&file, b"\x02\0\0\0\0\0\0\0{}").unwrap();
        assert!(recognise(&file).unwrap_err().to_string().contains("config.json"));
        std::fs::write(folder.join("config.json"), "{}").unwrap();
        assert_eq!(recognise(&file).unwrap(), Backend::Mlx);
        std::fs::remove_dir_all(&folder).unwrap();
    }

    #[test]
    fn a_folder_and_a_missing_file_are_told_apart() {
        let empty = std::env::temp_dir().join(format!("infer-format-empty-{}", std::process::id()));
        std::fs::create_dir_all(&empty).unwrap();
        assert!(recognise(&empty).unwrap_err().to_string().contains("a folder"));
        std::fs::remove_dir(&empty).unwrap();
        assert_eq!(recognise(Path::new("no such file")).unwrap_err().kind(), ErrorKind::Io);
    }
}
