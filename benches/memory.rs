//! What loading a model takes of memory that no file backs. Each load is measured in a process of its own.

use infer_benches::{Bar, Figure, Run, memory};
use infer_llama::{Llama, Model, ModelOptions};
use kit::child::{Outcome, run_command};
use std::{
    path::Path,
    process::{Command, ExitCode},
    time::Duration,
};

/// Comes first on a child's command line, before the name of a way to load.
const CHILD: &str = "--load";

fn main() -> ExitCode {
    let path = build_support::fixtures::model("smollm2").unwrap_or_else(|error| panic!("{error}"));
    let mut arguments = std::env::args().skip_while(|argument| argument != CHILD).skip(1);
    if let Some(way) = arguments.next() {
        load(&path, &way);
        return ExitCode::SUCCESS;
    }
    let mut run = Run::from_args();
    run.progress("loads, each in a process of its own");
    let [vocabulary, mapped, repacked] = ["vocabulary", "mapped", "repacked"].map(in_child);
    let weights = mapped.weights as f64;
    let besides = |load: &Load| load.anonymous.saturating_sub(vocabulary.anonymous) as f64;
    let figure = Figure::new("memory/anonymous", besides(&mapped) / weights * 100.0, "% of weights")
        .with_bar(Bar::Below(2.0))
        .with_note(format!(
            "mapped, not repacked: {}; vocabulary alone {}; weights {}",
            megabytes(mapped.anonymous),
            megabytes(vocabulary.anonymous),
            megabytes(mapped.weights),
        ));
    run.figure(figure);
    // Q4_1, which most of this file is, has no rearranged form; one that has, such as Q4_0, is copied whole.
    let note = "with repacking on: what was rearranged for this processor is a copy beside the mapped file";
    run.figure(Figure::new("memory/repacked", besides(&repacked) / 1e6, "MB").with_note(note));
    run.finish()
}

/// What a load took.
struct Load {
    /// Growth of the memory that no file backs, in bytes.
    anonymous: u64,
    /// Bytes of the weights.
    weights: u64,
}

/// In the child: loads, and prints by how much the memory has grown that no file backs, and the bytes of the weights.
fn load(path: &Path, way: &str) {
    let options = match way {
        "vocabulary" => ModelOptions::new().with_vocab_only(true),
        "mapped" => ModelOptions::new().with_repack(false),
        "repacked" => ModelOptions::new(),
        other => panic!("there is no way {other:?} to load"),
    };
    let llama = Llama::linked().unwrap_or_else(|error| panic!("{error}"));
    let before = memory::anonymous().unwrap_or_else(|error| panic!("{error}"));
    let model = Model::open_with(&llama, path, &options).unwrap_or_else(|error| panic!("{error}"));
    let after = memory::anonymous().unwrap_or_else(|error| panic!("{error}"));
    println!("{} {}", after.saturating_sub(before), model.info().bytes);
}

fn in_child(way: &str) -> Load {
    let mut command = Command::new(std::env::current_exe().expect("the running program has a path"));
    command.args([CHILD, way]);
    let output = match run_command(command, Duration::from_secs(60)) {
        Outcome::Ok(output) => output,
        other => panic!("loading {way}: {other:?}"),
    };
    let mut numbers = output.split_whitespace().map(|number| number.parse().expect("a child prints two numbers"));
    let [anonymous, weights] = [(); 2].map(|()| numbers.next().expect("a child prints two numbers"));
    Load { anonymous, weights }
}

fn megabytes(bytes: u64) -> String {
    format!("{:.1} MB", bytes as f64 / 1e6)
}
