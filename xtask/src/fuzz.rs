//! `cargo xtask fuzz`: inputs that nobody thought of.
//!
//! The targets are a workspace of their own (fuzz/), laid out as cargo-fuzz wants it. Nothing but a nightly compiler is needed to run
//! them: the flags below are what cargo-fuzz would pass.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::thread;

use clap::builder::PossibleValuesParser;

use crate::Result;
use crate::nightly;
use crate::workspace::{root, run as run_command, target};

/// Every target, by the name of its file in fuzz/fuzz_targets/.
const TARGETS: &[&str] = &[
    "gguf_header",
    "detokenizer",
    "chat_template",
    "saved_state",
    "answers",
    "onnx_model",
    "tokenizer_json",
    "npy",
    "safetensors",
];

/// Coverage of every edge and comparison for the fuzzer to steer by, and AddressSanitizer.
const RUSTFLAGS: &str = "-Cpasses=sancov-module -Cllvm-args=-sanitizer-coverage-level=4 \
    -Cllvm-args=-sanitizer-coverage-inline-8bit-counters -Cllvm-args=-sanitizer-coverage-pc-table \
    -Cllvm-args=-sanitizer-coverage-trace-compares -Cllvm-args=-sanitizer-coverage-stack-depth \
    --cfg fuzzing -Zsanitizer=address -Ccodegen-units=1 -Cforce-frame-pointers";

/// What one input may take; far more than any needs on a machine with nothing else to do.
const LIMITS: &[&str] = &["-timeout=60", "-rss_limit_mb=1024"];

/// Feed each fuzz target inputs of the fuzzer's making. Prints what was run; an input that breaks a promise is kept, and ends this
/// with 1.
///
/// What was learnt is kept in the target folder, and the next run begins with it.
#[derive(clap::Args)]
pub(crate) struct Arguments {
    /// Only these; all of them by default.
    #[arg(value_parser = PossibleValuesParser::new(TARGETS))]
    targets: Vec<String>,
    /// How long, for each.
    #[arg(long, default_value_t = 30)]
    seconds: u64,
    /// Run this one input again, in the one target that is named.
    #[arg(long, requires = "targets")]
    input: Option<PathBuf>,
    #[command(flatten)]
    without: nightly::Without,
}

pub(crate) fn run(arguments: &Arguments) -> Result {
    if !nightly::present(arguments.without)? {
        return Ok(());
    }
    let place = Place(target().join("fuzz"));
    let names: Vec<&str> = match &arguments.targets[..] {
        [] => TARGETS.to_vec(),
        names => names.iter().map(String::as_str).collect(),
    };
    place.build(&names)?;
    if let Some(input) = &arguments.input {
        let [name] = names[..] else { return Err("an input is for one target: name it".into()) };
        let mut again = place.command(name);
        return run_command(again.args(LIMITS).arg(std::path::absolute(input)?));
    }
    let mut broken = Vec::new();
    for group in names.chunks(thread::available_parallelism().map_or(1, usize::from)) {
        let ends: Vec<_> = thread::scope(|scope| {
            let running: Vec<_> = group
                .iter()
                .map(|name| scope.spawn(|| place.fuzz(name, arguments.seconds).map_err(|error| error.to_string())))
                .collect();
            running.into_iter().map(|run| run.join().expect("it does not panic")).collect()
        });
        for (name, end) in group.iter().zip(ends) {
            match end {
                Ok(figures) => println!("{name}: {figures}"),
                Err(error) => {
                    eprintln!("{name}: {error}");
                    broken.push(*name);
                }
            }
        }
    }
    if broken.is_empty() { Ok(()) } else { Err(format!("not good: {}", broken.join(", ")).into()) }
}

/// Where the programs are built, and what they learnt and found is kept.
struct Place(PathBuf);

impl Place {
    fn build(&self, names: &[&str]) -> Result {
        let mut build = nightly::cargo(["build", "--quiet", "--release", "--target", nightly::TARGET]);
        build.args(["--manifest-path", "fuzz/Cargo.toml", "--target-dir"]).arg(&self.0).env("RUSTFLAGS", RUSTFLAGS);
        run_command(build.args(names.iter().flat_map(|name| ["--bin", name])))
    }

    fn command(&self, name: &str) -> Command {
        let mut command = Command::new(self.0.join(nightly::TARGET).join("release").join(name));
        // What was freed is kept for a while to see it used; 256 MiB of it would hide what an input takes.
        command.current_dir(root()).env("ASAN_OPTIONS", "quarantine_size_mb=16");
        command
    }

    fn folder(&self, kind: &str, name: &str) -> Result<PathBuf> {
        let folder = self.0.join(kind).join(name);
        fs::create_dir_all(&folder)?;
        Ok(folder)
    }

    /// What a run of a target came to, as a line.
    fn fuzz(&self, name: &str, seconds: u64) -> Result<String> {
        let (seeds, learnt, found) =
            (self.folder("seeds", name)?, self.folder("corpus", name)?, self.folder("found", name)?);
        run_command(self.command(name).env("INFER_FUZZ_SEEDS", &seeds))?;
        let log = self.0.join(format!("{name}.log"));
        let mut command = self.command(name);
        command.args(LIMITS).args(["-print_final_stats=1", &format!("-max_total_time={seconds}")]);
        command.arg(format!("-artifact_prefix={}/", found.display()));
        let words = root().join("fuzz").join(format!("{name}.dict"));
        if words.exists() {
            command.arg(format!("-dict={}", words.display()));
        }
        command.args([&learnt, &seeds]).stderr(fs::File::create(&log)?);
        let ended = run_command(&mut command);
        let text = String::from_utf8_lossy(&fs::read(&log)?).into_owned();
        match (ended, figures(&text)) {
            (Ok(()), Some(figures)) => Ok(figures),
            _ => Err(complaint(&text, name, &log).into()),
        }
    }
}

/// What the fuzzer says at the end of a run: inputs that were run, the code they reached, and the memory it took. `None` where nothing
/// was run.
fn figures(log: &str) -> Option<String> {
    let stat = |name: &str| log.lines().find_map(|line| line.strip_prefix(name)).map(str::trim);
    let runs: u64 = stat("stat::number_of_executed_units:")?.parse().ok().filter(|&runs| runs > 0)?;
    let rss = stat("stat::peak_rss_mb:")?;
    let reached = log.lines().rev().find(|line| line.contains(" cov: "))?;
    let word = |name: &str| reached.split_whitespace().skip_while(|word| *word != name).nth(1);
    Some(format!("{runs} inputs, {} edges and {} features covered, {rss} MiB at most", word("cov:")?, word("ft:")?))
}

/// What broke, and how to see it again.
fn complaint(log: &str, name: &str, place: &Path) -> String {
    const SHOWN: usize = 40;
    // Panics and the sanitizers' reports begin so; without either, the end of the log has the reason.
    let begin = log.lines().position(|line| line.contains("panicked at") || line.contains("ERROR: "));
    let from = begin.unwrap_or_else(|| log.lines().count().saturating_sub(SHOWN));
    let said: Vec<&str> = log.lines().skip(from).take(SHOWN).collect();
    let again = match log.lines().find_map(|line| line.split_once("Test unit written to ")) {
        Some((_, input)) => format!("to see it again: cargo xtask fuzz {name} --input {input}"),
        None => "no input was kept".to_owned(),
    };
    format!("{}\nall of it: {}\n{again}", said.join("\n"), place.display())
}

#[cfg(test)]
mod tests {
    use super::*;

    const END: &str = "#8\tINITED cov: 1 ft: 2 corp: 3/4b exec/s: 0 rss: 40Mb\n#97166\tDONE   cov: 2301 ft: 7000 corp: 763/2Mb\n\
        Done 97166 runs in 21 second(s)\nstat::number_of_executed_units: 97166\nstat::peak_rss_mb:              98\n";

    #[test]
    fn a_run_has_figures() {
        let line = "97166 inputs, 2301 edges and 7000 features covered, 98 MiB at most";
        assert_eq!(figures(END).as_deref(), Some(line));
        assert_eq!(figures(&END.replace("97166", "0")), None, "nothing was run");
        assert_eq!(figures("INFO: Running with entropic power schedule"), None);
    }

    #[test]
    fn what_broke_can_be_seen_again() {
        let log = "#1\tINITED\nthread 'main' panicked at src/lib.rs:1:\nno\n\
            artifact_prefix='/x/'; Test unit written to /x/crash-1\n";
        let said = complaint(log, "detokenizer", Path::new("/x.log"));
        assert!(said.starts_with("thread 'main' panicked"), "{said}");
        assert!(said.ends_with("cargo xtask fuzz detokenizer --input /x/crash-1"), "{said}");
    }

    #[test]
    fn every_target_there_is_is_run() {
        let files = fs::read_dir(root().join("fuzz/fuzz_targets")).unwrap();
        let mut found: Vec<_> = files.map(|file| file.unwrap().path().file_stem().unwrap().to_owned()).collect();
        let mut known = TARGETS.to_vec();
        found.sort();
        known.sort_unstable();
        assert_eq!(found, known);
    }
}
