//! Arguments that several subcommands take.

use crate::{failure::Failure, output};
use infer::{Backend, Error, ErrorKind, Library, Model, ModelSource, Variant};
use std::{
    fs::File,
    io::{IsTerminal, Read},
    ops::ControlFlow,
    path::{Path, PathBuf},
};

/// Bytes of text that are read at most.
const MOST: u64 = 256 << 20;

/// Which model, and with what it is opened.
#[derive(clap::Args, Debug)]
pub(crate) struct ModelArgs {
    /// The model file; of a split GGUF, the first part.
    #[arg(long, short, value_name = "PATH")]
    model: PathBuf,

    /// The runtime to open it with, whatever the file looks like.
    #[arg(long, value_name = "NAME")]
    backend: Option<Backend>,

    /// The runtime's shared library, in place of the one that is linked in or found.
    #[arg(long, value_name = "PATH", value_parser = library)]
    library: Option<PathBuf>,

    /// The runtime's shared library that was built so: cpu, vulkan, cuda or metal. `infer setup --variant` makes it.
    #[arg(long, value_name = "NAME", conflicts_with = "library")]
    variant: Option<Variant>,

    /// A device to compute on, as `infer devices` names it (several: --device Vulkan0 --device Vulkan1); CPU is the processor alone.
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

/// All of stdin as text. Tells a person at a terminal what is being waited for.
pub(crate) fn stdin(what: &str) -> Result<String, Error> {
    let stdin = std::io::stdin().lock();
    if stdin.is_terminal() {
        output::note(&format!("reading {what} from stdin; Ctrl-D ends it"));
    }
    text(stdin, "stdin")
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

fn unreadable(name: &str, error: std::io::Error) -> Error {
    Error::new(ErrorKind::Io, format!("cannot read {name}")).with_source(error)
}
