//! Arguments that several subcommands take.

use crate::{
    failure::Failure,
    lines::{Ended, Lines},
    output,
};
use infer::{
    Backend, Engine, EngineBuilder, Error, ErrorKind, Library, Model, ModelKind, ModelSource, Request, Variant,
};
use std::{
    fs::File,
    io::{BufRead, IsTerminal, Read, StdinLock},
    ops::ControlFlow,
    path::{Path, PathBuf},
};

/// Bytes of text that are read at most.
const MOST: u64 = 256 << 20;

/// Bytes of a line that are read at most.
pub(crate) const LONGEST_LINE: usize = 1 << 20;
/// Lines that are read at most.
const MOST_LINES: usize = 100_000;

/// Which model, and with what it is opened.
#[derive(clap::Args, Debug)]
pub(crate) struct ModelArgs {
    /// The model file, of a split GGUF the first part; for ONNX the file or its folder; for MLX the folder.
    #[arg(long, short, value_name = "PATH")]
    model: PathBuf,

    /// The runtime to open it with, where a model is for several, or is not recognised: llama, onnx or mlx.
    #[arg(long, value_name = "NAME")]
    backend: Option<Backend>,

    /// The runtime's shared library, in place of the one that is linked in or found.
    #[arg(long, value_name = "PATH", value_parser = library)]
    library: Option<PathBuf>,

    /// The runtime's shared library that was built so: cpu, vulkan, cuda or metal. `infer setup llama --variant` makes llama.cpp's; of ONNX Runtime
    /// and MLX `infer setup` has the one for cpu.
    #[arg(long, value_name = "NAME", conflicts_with = "library")]
    variant: Option<Variant>,

    /// A device to compute on, as `infer devices` names it (several: --device Vulkan0 --device Vulkan1); CPU is the processor alone. For
    /// ONNX an execution provider, such as CUDA.
    #[arg(long = "device", value_name = "NAME")]
    devices: Vec<String>,
}

impl ModelArgs {
    pub(crate) fn source(&self) -> ModelSource {
        let mut source = ModelSource::new(&self.model);
        if let Some(backend) = self.backend {
            source = source.with_backend(backend);
        }
        if let Some(library) = &self.library {
            source = source.with_library(Library::At(library.clone()));
        }
        if let Some(variant) = self.variant {
            source = source.with_library(Library::Variant(variant));
        }
        if !self.devices.is_empty() {
            source = source.with_devices(&self.devices);
        }
        source
    }

    /// Opens the model, with a bar on stderr.
    pub(crate) fn open(&self) -> Result<Box<dyn Model>, Failure> {
        let mut show = output::progress("loading");
        let model = self.source().open_watched(&mut |done| {
            show(done);
            ControlFlow::Continue(())
        });
        show(1.0);
        Ok(model?)
    }

    /// The failure of a command for models of another kind: what this one is for is told as well.
    pub(crate) fn unfit(&self, error: Error, wanted: ModelKind) -> Failure {
        let is_of_kind = matches!(error.kind(), ErrorKind::Unsupported | ErrorKind::InvalidInput);
        let kind = is_of_kind.then(|| infer::inspect(&self.model).ok()?.kind).flatten();
        match kind.filter(|&kind| kind != wanted) {
            Some(kind) => Failure::Unfit(error, kind),
            None => error.into(),
        }
    }

    /// An engine of the model to be built, which has a bar on stderr.
    pub(crate) fn engine(&self, threads: Option<usize>) -> EngineBuilder {
        let mut show = output::progress("loading");
        let builder = Engine::builder(self.source()).with_progress(move |done| {
            show(done);
            ControlFlow::Continue(())
        });
        match threads {
            Some(threads) => builder.with_threads(threads),
            None => builder,
        }
    }

    /// Builds an engine that is to generate texts: of a model that gives vectors it would be one, too.
    pub(crate) fn build(&self, builder: EngineBuilder) -> Result<Engine, Failure> {
        let engine = builder.build().map_err(|error| self.unfit(error, ModelKind::Decoder))?;
        if engine.limits().is_some() {
            return Ok(engine);
        }
        // Whatever is asked for is refused with the reason.
        let refused = engine.generate(Request::text("")).complete().err();
        let refused = refused.unwrap_or_else(|| Error::unsupported("the model does not go on with texts"));
        Err(self.unfit(refused, ModelKind::Decoder))
    }

    /// The model's file.
    pub(crate) fn path(&self) -> &Path {
        &self.model
    }

    /// Opens only the vocabulary, which takes no time worth showing.
    pub(crate) fn open_vocab(&self) -> Result<Box<dyn Model>, Failure> {
        Ok(self.source().with_vocab_only(true).open()?)
    }
}

/// The path of a library. What is loaded is code, so the library crates take absolute paths only; on a command line the
/// working folder is what the user means.
pub(crate) fn library(path: &str) -> Result<PathBuf, std::io::Error> {
    std::path::absolute(path)
}

/// The lines of stdin. Each of them costs memory again when it is computed, so that there are limits to their length and number: what
/// never ends is told soon.
pub(crate) fn stdin_lines(what: &str) -> Result<Vec<String>, Error> {
    lines(waited_for(what), "stdin")
}

/// All of stdin as text.
pub(crate) fn stdin(what: &str) -> Result<String, Error> {
    text(waited_for(what), "stdin")
}

/// Stdin, once a person at a terminal was told what is being waited for.
fn waited_for(what: &str) -> StdinLock<'static> {
    let stdin = std::io::stdin().lock();
    if stdin.is_terminal() {
        output::note(&format!("reading {what} from stdin; Ctrl-D ends it"));
    }
    stdin
}

/// All of a file as text.
pub(crate) fn file(path: &Path) -> Result<String, Error> {
    let name = path.display().to_string();
    let file = File::open(path).map_err(|error| unreadable(&name, error))?;
    text(file, &name)
}

/// All there is to read, up to a limit: what never ends, such as `/dev/zero`, must not take all memory before it is told.
fn text(source: impl Read, name: &str) -> Result<String, Error> {
    let mut bytes = Vec::new();
    source.take(MOST + 1).read_to_end(&mut bytes).map_err(|error| unreadable(name, error))?;
    if bytes.len() as u64 > MOST {
        let message = format!("{name} has more than {}, longer than any prompt or configuration", output::bytes(MOST));
        return Err(Error::invalid_input(message));
    }
    String::from_utf8(bytes).map_err(|error| {
        let at = error.utf8_error().valid_up_to();
        Error::invalid_input(format!("{name} is not UTF-8 text: byte {at} is where it stops to be; convert it first"))
    })
}

fn lines(source: impl BufRead, name: &str) -> Result<Vec<String>, Error> {
    let mut source = Lines::new(source, LONGEST_LINE);
    let (mut line, mut lines) = (Vec::new(), Vec::new());
    while let Some(ended) = source.next(&mut line).map_err(|error| unreadable(name, error))? {
        let number = source.number();
        let refuse = |what: String| Err(Error::invalid_input(format!("{name}: line {number}{what}")));
        if ended == Ended::TooLong {
            return refuse(format!(" has more than {}, longer than any text", output::bytes(LONGEST_LINE as u64)));
        }
        if lines.len() == MOST_LINES {
            return refuse(format!(": {MOST_LINES} are taken at once; give the others to another call"));
        }
        match String::from_utf8(std::mem::take(&mut line)) {
            Ok(line) => lines.push(line),
            Err(error) => {
                let at = error.utf8_error().valid_up_to();
                return refuse(format!(" is not UTF-8 text: byte {at} is where it stops to be; convert it first"));
            }
        }
    }
    Ok(lines)
}

pub(crate) fn unreadable(name: &str, error: std::io::Error) -> Error {
    Error::new(ErrorKind::Io, format!("cannot read {name}")).with_source(error)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::{BufReader, Cursor, repeat};

    fn read(bytes: &[u8]) -> Result<Vec<String>, Error> {
        lines(Cursor::new(bytes), "stdin")
    }

    #[test]
    fn lines_without_end_are_refused_early() {
        let full = vec![b'a'; LONGEST_LINE];
        assert_eq!(read(&[&full[..], b"\nb"].concat()).unwrap().len(), 2);
        for (bytes, said) in [
            (&[&full[..], b"a\n"].concat()[..], "line 1 has more than 1 MiB"),
            (b"a\ncaf\xe9", "line 2 is not UTF-8 text: byte 3"),
            (&[b'\n'; MOST_LINES + 1], "line 100001: 100000 are taken"),
        ] {
            let error = read(bytes).unwrap_err().to_string();
            assert!(error.contains(said), "{error}");
        }
        assert_eq!(read(&[b'\n'; MOST_LINES]).unwrap().len(), MOST_LINES);
        let error = lines(BufReader::new(repeat(0)), "stdin").unwrap_err().to_string();
        assert!(error.contains("line 1 has more than"), "{error}");
    }
}
