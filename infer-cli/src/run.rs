//! `infer run`: arrays in, arrays out, through any graph.

mod files;
mod npy;
mod npz;
mod tensors;

use self::files::{Input, Output};
use crate::{
    args, ctrl_c,
    failure::{self, Failure},
    output,
};
use infer::{
    Backend, Error, Library, ModelSource,
    onnx::{self, Graph, GraphOptions, Package, Provider},
};
use serde::Serialize;
use std::{
    fmt::Write as _,
    path::{Path, PathBuf},
    time::Instant,
};

/// Run a graph on arrays.
///
/// Inputs are NumPy's files: `--input NAME=FILE.npy` is one array, `--input FILE.npz` all that are in it, by their names. One line an
/// output: its name, the type of its numbers and its shape, and the file it is in. `infer inspect` shows what a graph takes and gives.
#[derive(clap::Args, Debug)]
pub(crate) struct Run {
    /// The graph: an .onnx file, or a folder with one.
    #[arg(long, short, value_name = "PATH")]
    model: PathBuf,

    /// ONNX Runtime's shared library, in place of the one that is found.
    #[arg(long, value_name = "PATH", value_parser = args::library)]
    library: Option<PathBuf>,

    /// An array: NAME=FILE.npy, or FILE.npy for a graph of one input; or all of an archive: FILE.npz. May be given several times.
    #[arg(long = "input", short, value_name = "[NAME=]FILE")]
    inputs: Vec<Input>,

    /// Where outputs are written to, over what is there: a folder, which gets a file NAME.npy for each, or one file that ends in .npz.
    /// Without it they are computed, and their shapes are told.
    #[arg(long, short, value_name = "PATH")]
    output: Option<PathBuf>,

    /// Threads that compute a node together; as many as this process may run on if not given.
    #[arg(long, short, value_name = "N")]
    threads: Option<usize>,

    /// An execution provider, such as cuda; several in the order in which they are asked, and the processor last. One that cannot be used is
    /// an error.
    #[arg(long = "provider", value_name = "NAME")]
    providers: Vec<String>,

    /// One JSON object.
    #[arg(long)]
    json: bool,
}

#[derive(Serialize)]
struct Report<'r> {
    outputs: Vec<Row<'r>>,
    /// Seconds that the run took.
    run_s: f64,
}

/// One array that came out.
#[derive(Serialize)]
struct Row<'r> {
    name: &'r str,
    dtype: &'static str,
    shape: &'r [usize],
    /// Where it is.
    file: Option<&'r Path>,
}

impl Run {
    pub(crate) fn run(&self) -> Result<(), Failure> {
        let mut graph = self.open()?;
        let wanted: Vec<&str> =
            graph.inputs().iter().filter(|input| !input.is_optional()).map(onnx::Port::name).collect();
        let arrays = files::read(&self.inputs, &wanted)?;
        let tensors = arrays.iter().map(|(name, array)| Ok((name.as_str(), tensors::of_array(name, array)?)));
        let tensors = tensors.collect::<Result<Vec<_>, Error>>()?;

        let interrupt = graph.interrupt();
        ctrl_c::does(move || interrupt.raise())?;
        let begun = Instant::now();
        graph.run(tensors.iter().map(|(name, tensor)| (*name, tensor)))?;
        let run_s = output::seconds(begun.elapsed());

        let outputs = tensors::of_outputs(graph.outputs())?;
        let files = self.write(&outputs)?;
        let rows = outputs.iter().zip(&files).map(|(output, file)| Row {
            name: &output.name,
            dtype: output.dtype.as_str(),
            shape: &output.array.shape,
            file: file.as_deref(),
        });
        if self.json {
            return output::json(&Report { outputs: rows.collect(), run_s });
        }
        output::text(&output::printable(&lines(rows)))
    }

    fn open(&self) -> Result<Graph, Error> {
        let library = self.library.clone().map_or(Library::Default, Library::At);
        let mut options = GraphOptions::new();
        options.threads = self.threads;
        for name in &self.providers {
            options = options.with_provider(Provider::new(name));
        }
        self.check()?;
        // A folder has one graph to run, or says that it does not.
        let path =
            if self.model.is_dir() { Package::read(&self.model)?.graph().to_owned() } else { self.model.clone() };
        Graph::open(&onnx::library(&library)?, path, &options)
    }

    /// A model that another runtime reads is no graph to be run.
    fn check(&self) -> Result<(), Error> {
        let Ok(backend) = ModelSource::new(&self.model).backend() else { return Ok(()) };
        if backend == Backend::Onnx {
            return Ok(());
        }
        let kind = infer::inspect(&self.model).ok().and_then(|model| model.kind);
        let advice = kind.map_or(String::new(), |kind| format!("; {}", failure::right_command(kind)));
        Err(Error::unsupported(format!(
            "`infer run` computes graphs of ONNX, and {} is for the backend `{backend}`{advice}",
            self.model.display()
        )))
    }

    /// Writes what is wanted, and gives the file of each.
    fn write(&self, outputs: &[tensors::Output]) -> Result<Vec<Option<PathBuf>>, Error> {
        let Some(place) = &self.output else { return Ok(vec![None; outputs.len()]) };
        let written = Output::new(place).write(outputs.iter().map(|output| (output.name.as_str(), &output.array)))?;
        Ok(written.into_iter().map(Some).collect())
    }
}

fn lines<'r>(rows: impl Iterator<Item = Row<'r>>) -> String {
    let mut lines = String::new();
    for Row { name, dtype, shape, file } in rows {
        // Infallible: it is a string that is written to.
        let _ = write!(lines, "{name}  {dtype} {shape:?}");
        let _ = file.map_or(Ok(()), |file| write!(lines, "  {}", file.display()));
        lines.push('\n');
    }
    lines
}
