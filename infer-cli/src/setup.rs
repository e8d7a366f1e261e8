//! `infer setup`: the native libraries that are loaded. llama.cpp's and MLX's are made on this machine, ONNX Runtime's is fetched.

use crate::{failure::Failure, output};
use build_support::{
    Host, Progress,
    choose::Variant,
    env::{Env, LLAMA_VARIANT},
    setup,
};
use clap::ValueEnum;
use indicatif::{ProgressBar, ProgressStyle};
use infer::{Error, ErrorKind};
use std::time::{Duration, Instant};

/// Put a runtime's library into the cache; what is fetched, by pip and cargo, is checked by its hash.
///
/// What is there already is left alone. Needs Python with pip. llama.cpp is fetched as source and built, which needs a C and a
/// C++ compiler; cmake and ninja are fetched where they are missing. ONNX Runtime is taken as its authors have built it. MLX is too, and what
/// it is reached by (mlx-c, and this project's door) is built against it, which needs cargo and a compiler of C++20. Prints the library's path.
#[derive(clap::Args, Debug)]
pub(crate) struct Setup {
    /// Which runtime.
    #[arg(value_enum, default_value_t = Runtime::Llama)]
    runtime: Runtime,

    /// What the library computes on. llama.cpp: cpu, vulkan, cuda or metal, each with a place of its own in the cache, beside the others; by
    /// default what INFER_LLAMA_VARIANT says, else cpu. ONNX Runtime and MLX: cpu alone, also by default.
    #[arg(long, value_name = "NAME")]
    variant: Option<Variant>,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum Runtime {
    /// llama.cpp, for GGUF files.
    Llama,
    /// ONNX Runtime, for ONNX models.
    Onnx,
    /// MLX, for folders with a `config.json` and safetensors.
    Mlx,
}

impl Setup {
    pub(crate) fn run(&self, host: &Host) -> Result<(), Failure> {
        self.check_variant()?;
        let env = Env::from_process();
        let env = self.variant.map_or(env.clone(), |variant| env.with(LLAMA_VARIANT, variant.name()));
        let done = match self.runtime {
            Runtime::Llama => setup::llama(host, &env, &mut Steps::default()),
            Runtime::Onnx => setup::onnxruntime(&env, &mut Steps::default()),
            Runtime::Mlx => setup::mlx(host, &env, &mut Steps::default()),
        };
        let installed = done.map_err(|error| Error::new(ErrorKind::Library, error.to_string()))?;
        if !installed.fresh {
            output::note("it is there already: nothing was fetched or built");
        }
        output::text(&format!("{}\n", installed.path.display()))
    }

    /// Only llama.cpp is built in several ways.
    fn check_variant(&self) -> Result<(), Failure> {
        let Some(variant) = self.variant.filter(|&variant| variant != Variant::Cpu) else { return Ok(()) };
        let (name, own) = match self.runtime {
            Runtime::Llama => return Ok(()),
            Runtime::Onnx => ("ONNX Runtime", "INFER_ONNXRUNTIME_LIBRARY"),
            Runtime::Mlx => ("MLX", "INFER_MLX_LIBRARY"),
        };
        Err(Failure::Usage(format!(
            "`infer setup` has {name} for cpu, and for {variant} only llama.cpp (`infer setup llama --variant {variant}`): name a library of \
             {name} that you have for it in {own}"
        )))
    }
}

/// The steps on stderr: a spinner or a bar where a person is watching, and a line for each that has ended.
#[derive(Default)]
struct Steps {
    step: String,
    begun: Option<Instant>,
    bar: Option<ProgressBar>,
}

impl Progress for Steps {
    fn start(&mut self, step: &str) {
        step.clone_into(&mut self.step);
        self.begun = Some(Instant::now());
        // Draws nothing where stderr is no terminal: a log is told that something takes its time.
        let bar = ProgressBar::new_spinner().with_message(step.to_owned());
        bar.set_style(ProgressStyle::with_template("{spinner} {msg} {elapsed}").expect("the template is a constant"));
        bar.enable_steady_tick(Duration::from_millis(100));
        if bar.is_hidden() {
            output::note(step);
        }
        self.bar = Some(bar);
    }

    fn advance(&mut self, done: u64, total: u64) {
        let Some(bar) = &self.bar else { return };
        if bar.length() != Some(total) {
            let style = ProgressStyle::with_template("{spinner} {msg} {bar:30} {pos}/{len} {elapsed}, {eta} to go");
            bar.set_style(style.expect("the template is a constant"));
            bar.set_length(total);
        }
        bar.set_position(done);
    }

    fn finish(&mut self, note: &str) {
        if let Some(bar) = self.bar.take() {
            bar.finish_and_clear();
        }
        let seconds = self.begun.map_or(0.0, |begun| begun.elapsed().as_secs_f64());
        let note = if note.is_empty() { String::new() } else { format!(" ({note})") };
        output::note(&format!("{}: {seconds:.1} s{note}", self.step));
    }

    fn note(&mut self, line: &str) {
        match &self.bar {
            Some(bar) if !bar.is_hidden() => bar.println(line),
            _ => output::note(line),
        }
    }
}
