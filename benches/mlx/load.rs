//! What loading a model takes of memory, in a process of its own.

use crate::setting::{folder, mlx, open};
use infer_benches::{Bar, Figure, Run, memory};
use kit::child::{Outcome, run_command};
use std::{process::Command, time::Duration};

/// Comes first on a child's command line, before the name of a model.
const CHILD: &str = "--load";

/// The model that this process is to load and nothing else, where it is a child.
pub(crate) fn way() -> Option<String> {
    std::env::args().skip_while(|argument| argument != CHILD).nth(1)
}

/// In the child: loads, and prints the most that this process has had in memory.
pub(crate) fn in_this_process(name: &str) {
    let mlx = mlx();
    let _model = open(&mlx, name);
    println!("{}", memory::peak().unwrap_or_else(|error| panic!("{error}")));
}

pub(crate) fn measure(run: &mut Run) {
    run.progress("loads, each in a process of its own");
    let [floats, quantised] = ["smollm2-mlx", "smollm2-mlx-4bit"].map(|name| (peak(name), stored(name)));
    let figure = |name: &'static str, (peak, stored): (u64, u64)| {
        let note =
            format!("{:.1} MB at most with the program and its libraries; weights {:.1} MB", mb(peak), mb(stored));
        Figure::new(name, peak as f64 / stored as f64, "of the weights as stored").with_note(note)
    };
    run.figure(figure("mlx/load", floats).with_bar(Bar::AtMost(1.2)));
    run.figure(figure("mlx/load/4bit", quantised));
}

fn mb(bytes: u64) -> f64 {
    bytes as f64 / 1e6
}

fn peak(name: &str) -> u64 {
    let mut command = Command::new(std::env::current_exe().expect("the running program has a path"));
    command.args([CHILD, name]);
    match run_command(command, Duration::from_secs(120)) {
        Outcome::Ok(output) => output.trim().parse().expect("a child prints a number"),
        other => panic!("loading {name}: {other:?}"),
    }
}

/// Bytes of the files with weights.
fn stored(name: &str) -> u64 {
    let folder = folder(name);
    let entries = folder.read_dir().unwrap_or_else(|error| panic!("{}: {error}", folder.display()));
    let entries = entries.map(|entry| entry.expect("the folder can be read"));
    let weights = entries.filter(|entry| entry.path().extension().is_some_and(|extension| extension == "safetensors"));
    weights.map(|entry| entry.metadata().expect("a file has a size").len()).sum()
}
