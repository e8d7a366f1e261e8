//! `cargo xtask setup`: brings what a machine lacks, once.

use std::time::Instant;

use build_support::choose::Variant;
use build_support::env::{Env, LLAMA_PREFIX, LLAMA_SYSTEM, LLAMA_VARIANT, NAMES};
use build_support::python::Packages;
use build_support::{Host, made, setup};
use clap::ValueEnum;

use crate::terminal::Terminal;
use crate::{Result, model};

/// Bring what is missing into the native cache: tools, llama.cpp, ONNX Runtime, MLX, models, what tests read and compare with.
///
/// What is there is left alone. Only this command fetches (by pip and cargo, with hashes); no build script does.
#[derive(clap::Args, Default)]
#[command(after_help = environment())]
pub(crate) struct Arguments {
    /// Only these (several: --only llama --only smollm2); all but libclang by default.
    #[arg(long, value_enum)]
    only: Vec<Thing>,

    /// How llama.cpp is built: cpu, vulkan, cuda or metal. Each has a place of its own, beside the others.
    #[arg(long, value_name = "NAME")]
    variant: Option<Variant>,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Thing {
    /// The patched source, built into a library to link and one to load.
    Llama,
    /// SmolLM2-135M-Instruct, Q4_1: the model of the demo and the tests.
    Smollm2,
    /// all-MiniLM-L6-v2, converted to GGUF: the encoder of the tests.
    Minilm,
    /// A network that tells file types apart: a graph as it is published.
    Magika,
    /// What ONNX Runtime reads, and llama.cpp beside it: made of SmolLM2, MiniLM and the tiny models.
    OnnxModels,
    /// What MLX reads: made of SmolLM2, MiniLM and random numbers.
    MlxModels,
    /// ONNX Runtime's library.
    Onnx,
    /// MLX's library, and the door made for it.
    Mlx,
    /// The Python packages that make fixtures and are compared with, all but MLX's.
    Python,
    /// Those, and MLX's.
    PythonMlx,
    /// llama.cpp's tokenizer vectors.
    Vocabularies,
    /// The chat templates that come with llama.cpp.
    Templates,
    /// The patched source alone.
    Source,
    /// For `cargo xtask bindings`.
    Libclang,
}

/// What the tests need. The source among it even where the build is there: a program of theirs includes its headers.
pub(crate) const ALL: &[Thing] = &[
    Thing::Smollm2,
    Thing::Minilm,
    Thing::Vocabularies,
    Thing::Templates,
    Thing::Onnx,
    Thing::PythonMlx,
    Thing::Magika,
    Thing::OnnxModels,
    Thing::MlxModels,
    Thing::Mlx,
    Thing::Source,
    Thing::Llama,
];

pub(crate) fn run(host: &Host, arguments: &Arguments) -> Result {
    let things = if arguments.only.is_empty() { ALL } else { &arguments.only };
    let begin = Instant::now();
    let env = Env::from_process();
    let env = arguments.variant.map_or(env.clone(), |variant| env.with(LLAMA_VARIANT, variant.name()));
    if ensure_in(host, things, &env)? {
        eprintln!("set up in {:.0} s", begin.elapsed().as_secs_f64());
    } else {
        eprintln!("everything is there: nothing was fetched or built");
    }
    Ok(())
}

/// Brings `things`, and says whether any of it had to be brought.
pub(crate) fn ensure(host: &Host, things: &[Thing]) -> Result<bool> {
    ensure_in(host, things, &Env::from_process())
}

/// [`ensure`], in another environment than this process's.
pub(crate) fn ensure_in(host: &Host, things: &[Thing], env: &Env) -> Result<bool> {
    let mut terminal = Terminal::default();
    let own_library = env.path(LLAMA_PREFIX).is_some() || env.switch(LLAMA_SYSTEM)? == Some(true);
    let mut fresh = false;
    for thing in things {
        if *thing == Thing::Llama && own_library {
            eprintln!("llama.cpp is left alone: {LLAMA_PREFIX} or {LLAMA_SYSTEM} names a library");
            continue;
        }
        fresh |= match thing {
            Thing::Llama => setup::llama(host, env, &mut terminal)?.fresh,
            Thing::Onnx => setup::onnxruntime(env, &mut terminal)?.fresh,
            Thing::Mlx => setup::mlx(host, env, &mut terminal)?.fresh,
            Thing::Python => setup::python(Packages::Common, env, &mut terminal)?.fresh,
            Thing::PythonMlx => setup::python(Packages::Mlx, env, &mut terminal)?.fresh,
            Thing::Smollm2 => model::bring("smollm2", env, &mut terminal)?.fresh,
            Thing::Minilm => model::bring("minilm", env, &mut terminal)?.fresh,
            Thing::Magika => model::bring("magika", env, &mut terminal)?.fresh,
            Thing::OnnxModels => model::bring_made(made::ONNX, env, &mut terminal)?,
            Thing::MlxModels => model::bring_made(made::MLX, env, &mut terminal)?,
            Thing::Vocabularies => setup::fixture("vocabularies", env, &mut terminal)?.fresh,
            Thing::Templates => setup::fixture("templates", env, &mut terminal)?.fresh,
            Thing::Source => setup::source(env, &mut terminal)?.fresh,
            Thing::Libclang => setup::tool("libclang", env, &mut terminal)?.fresh,
        };
    }
    Ok(fresh)
}

/// The variables a user may set, as a table.
fn environment() -> String {
    let lines = NAMES.iter().map(|(name, line)| format!("  {name:<20} {line}\n"));
    format!("Environment:\n{}", lines.collect::<String>())
}
