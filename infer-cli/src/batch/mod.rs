//! `infer batch`: many requests from a file, answered together.

mod answer;
mod fields;
mod input;
mod line;
mod message;
mod output;
mod progress;
mod work;

use crate::{
    args::{self, ModelArgs},
    constraint::{self, ConstraintArgs},
    ctrl_c,
    failure::Failure,
    generate, output as streams,
    sampling::SamplingArgs,
};
use answer::Said;
use clap::builder::NonEmptyStringValueParser;
use infer::{AdapterSource, Engine, EngineBuilder, Error, KvLayout, Request, WhenFull};
use input::{Entry, Input};
use line::Defaults;
use output::{Earlier, Output};
use progress::Progress;
use serde::Serialize;
use std::{
    mem,
    path::PathBuf,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::{Duration, Instant},
};
use work::{Tally, Work};

/// Answer many requests together: a line in is a request, a line out its answer.
///
/// A line in is a JSON object with `prompt` (a text, or a list of tokens) or `messages`, and what it wants otherwise than the flags say:
/// max_tokens, stop, seed, temperature, json_schema, … docs/cli.md has all of them. Answers are written as they come, each with the
/// number of its request, and are in the file when the next one begins.
///
/// The same command goes on where an earlier one was stopped: what is answered is not computed again, and errors are tried
/// again. Ctrl-C stops it.
///
/// Exit codes: 0 each request has an answer, 3 some have an error in its place, 130 it was stopped, 1 and 2 as always.
#[derive(clap::Args, Debug)]
#[command(allow_negative_numbers = true)] // so that -1 is told to be out of range, and not to be unknown
pub(crate) struct Batch {
    #[command(flatten)]
    model: ModelArgs,

    /// The requests, a line each; `-` is stdin, which no later run can go on with.
    #[arg(long, short, value_name = "PATH")]
    input: PathBuf,

    /// Where the answers go.
    #[arg(long, short, value_name = "PATH")]
    output: PathBuf,

    /// Begin anew, whatever there is in the output.
    #[arg(long)]
    overwrite: bool,

    /// How many requests are computed together.
    #[arg(long, short, value_name = "N", default_value_t = 8)]
    parallel: usize,

    /// Threads, at most the CPUs this process may run on; as many as it may use if not given.
    #[arg(long, short, value_name = "N")]
    threads: Option<usize>,

    /// Context in tokens, of all requests that are computed together; none of them gets more than the model was trained for. If
    /// not given, what the engine takes for usual.
    #[arg(long, short, value_name = "N")]
    ctx: Option<usize>,

    /// How the context is divided: `split`, an equal share for each request that is computed, which is faster; `unified`, to each as much as
    /// it needs, which is for requests of very different length.
    #[arg(long, value_enum, value_name = "NAME", default_value_t = Layout::Split)]
    layout: Layout,

    /// An adapter (LoRA) that lines may name, a GGUF file; if not given, its name is the file's without the ending. May be given several times.
    #[arg(long = "adapter", value_name = "[NAME=]FILE[:SCALE]", value_parser = named_adapter)]
    adapters: Vec<AdapterSource>,

    /// One JSON object on stdout when it is done: requests, errors, tokens, total_s, …
    #[arg(long)]
    json: bool,

    #[command(flatten)]
    defaults: DefaultArgs,
}

#[derive(clap::ValueEnum, Clone, Copy, Debug, PartialEq, Eq)]
enum Layout {
    Split,
    Unified,
}

/// What a line does not say.
#[derive(clap::Args, Debug)]
#[command(next_help_heading = "Where a line does not say")]
struct DefaultArgs {
    /// Tokens to generate at most.
    #[arg(long, short = 'n', value_name = "N", default_value_t = 256)]
    max_tokens: usize,

    /// End where this text comes; it is left out. May be given several times.
    #[arg(long, value_name = "TEXT", allow_hyphen_values = true, value_parser = NonEmptyStringValueParser::new())]
    stop: Vec<String>,

    /// Go on where the model would end the text.
    #[arg(long, visible_alias = "ignore-eos")]
    ignore_end: bool,

    #[command(flatten)]
    constraint: ConstraintArgs,

    #[command(flatten)]
    sampling: SamplingArgs,
}

/// What `--json` prints.
#[derive(Serialize)]
struct Summary {
    /// Requests of the input that there is an answer or an error to.
    requests: u64,
    /// Those with an error.
    errors: u64,
    /// Those that were answered by an earlier run; what follows is of this one.
    resumed: u64,
    /// Tokens that were generated.
    tokens: u64,
    prompt_tokens: u64,
    /// Those of them that were not computed again, since another prompt began like that.
    cached_tokens: u64,
    load_s: f64,
    /// From the beginning to the end, loading included.
    total_s: f64,
}

/// How many requests are under way beyond those that are computed: where one ends, the next is there. As many again, but no more than
/// this.
const MOST_WAITING: usize = 32;

impl Batch {
    pub(crate) fn run(&self) -> Result<(), Failure> {
        let begun = Instant::now();
        // What can be wrong without the model is found before it is loaded.
        self.check()?;
        let mut defaults = self.defaults.defaults()?;
        let settings = self.settings(&defaults)?;
        let input = Input::new(&self.input);
        input.check()?;
        let earlier = self.earlier(&input)?;
        let total = if input.is_file() { Some(compare(&input, &earlier, &settings)?) } else { None };
        let resumed = earlier.answered();

        // Where nothing is left to do, no model is needed; and where it cannot be loaded, nothing of the output is lost.
        let engine = if total == Some(resumed) { None } else { Some(self.engine()?) };
        if let Some(engine) = &engine {
            self.defaults.constraint.check(&defaults.request.sampling, engine)?;
        }
        let load = if engine.is_some() { begun.elapsed() } else { Duration::ZERO };
        let (output, answered) = earlier.go_on()?;
        let (mut tally, mut is_stopped) = (Tally::default(), false);
        if let Some(engine) = engine {
            let sampling = mem::take(&mut defaults.request.sampling);
            defaults.request.sampling = self.defaults.sampling.with_breakers(sampling, &**engine.tokenizer())?;
            let entries = input.entries(&settings)?;
            let entries =
                entries.filter(|entry| entry.as_ref().map_or(true, |entry| !answered.contains_key(&entry.index)));
            let progress = Progress::new(total, resumed);
            (tally, is_stopped) = self.answer(&engine, entries, output, &defaults, progress)?;
            engine.shutdown();
        }
        self.report(&Summary {
            requests: resumed + tally.requests,
            errors: tally.errors,
            resumed,
            tokens: tally.tokens,
            prompt_tokens: tally.prompt_tokens,
            cached_tokens: tally.cached_tokens,
            load_s: streams::seconds(load),
            total_s: streams::seconds(begun.elapsed()),
        })?;
        let output = self.output.display();
        match tally.errors {
            _ if is_stopped => Err(Failure::Stopped(format!(
                "{} requests are answered; the same command goes on with the others",
                resumed + tally.requests - tally.errors
            ))),
            0 => Ok(()),
            1 => Err(Failure::Partly(format!("a request has no answer: {output} says why"))),
            errors => Err(Failure::Partly(format!("{errors} requests have no answer: {output} says why"))),
        }
    }

    fn check(&self) -> Result<(), Failure> {
        if self.parallel == 0 {
            return Err(Failure::Usage("--parallel is 0, it must be 1 or more".to_owned()));
        }
        let same = |(at, adapter): (usize, &AdapterSource)| {
            self.adapters[..at].iter().any(|earlier| earlier.name == adapter.name).then(|| adapter.name.clone())
        };
        match self.adapters.iter().enumerate().find_map(same) {
            Some(name) => Err(Failure::Usage(format!("two adapters are called {name}; NAME=FILE names one otherwise"))),
            None => Ok(()),
        }
    }

    /// What answers depend on besides the lines: those of another model or of other flags are never mixed.
    fn settings(&self, defaults: &Defaults) -> Result<String, Failure> {
        let path = self.model.path();
        let bytes = std::fs::metadata(path).map(|data| data.len());
        let bytes = bytes.map_err(|error| args::unreadable(&path.display().to_string(), error))?;
        let Self { adapters, defaults: DefaultArgs { sampling, .. }, .. } = self;
        Ok(format!("{:?} {bytes} {adapters:?} {defaults:?} {sampling:?}", path.file_name()))
    }

    fn earlier(&self, input: &Input) -> Result<Earlier, Failure> {
        if input.is_at(&self.output) {
            return Err(Failure::Usage("--input and --output are the same file".to_owned()));
        }
        let earlier = Earlier::open(&self.output)?;
        if self.overwrite {
            return Ok(earlier);
        }
        if !input.is_file() {
            earlier.check_empty()?;
        }
        earlier.scan()
    }

    fn engine(&self) -> Result<Engine, Failure> {
        let mut builder =
            self.model.engine(self.threads).with_sequences(self.parallel).with_queue(self.at_once(), WhenFull::Wait);
        builder = match self.layout {
            Layout::Split => builder.with_layout(KvLayout::Split),
            Layout::Unified => builder.with_layout(KvLayout::Unified),
        };
        if let Some(cells) = self.ctx {
            builder = match self.layout {
                Layout::Split => builder.with_context((cells / self.parallel).max(1)),
                Layout::Unified => builder.with_context(cells).with_cells(cells),
            };
            builder = builder.with_sessions(|model, options| {
                let mut options = options.clone();
                let trained = Some(model.info().context).filter(|&trained| trained > 0);
                options.context = options.context.map(|context| context.min(trained.unwrap_or(context)));
                model.session(&options)
            });
        }
        let builder = self.adapters.iter().cloned().fold(builder, EngineBuilder::with_adapter);
        self.model.build(builder)
    }

    fn at_once(&self) -> usize {
        self.parallel + self.parallel.min(MOST_WAITING)
    }

    /// Answers the entries. Returns what was done, and whether Ctrl-C ended it.
    fn answer(
        &self,
        engine: &Engine,
        entries: impl Iterator<Item = Result<Entry, Error>> + Send,
        mut output: Output,
        defaults: &Defaults,
        mut progress: Progress,
    ) -> Result<(Tally, bool), Failure> {
        let stop = Arc::new(AtomicBool::new(false));
        let (pressed, stopped) = (stop.clone(), engine.clone());
        ctrl_c::does(move || {
            pressed.store(true, Ordering::Relaxed);
            stopped.shutdown();
        })?;
        let work = Work {
            defaults,
            at_once: self.at_once(),
            answer: &|request, has_logprobs| {
                let constraint = request.sampling.constraint.clone();
                let all = engine.generate(request).complete_all();
                let all =
                    all.map_err(|error| constraint::closed_by("max_tokens", error, constraint.as_ref(), engine))?;
                Ok(Said::new(all, has_logprobs))
            },
            stop: &stop,
            halt: &|| engine.shutdown(),
        };
        let tally = work.run(entries, |answer, tally| {
            output.write(answer)?;
            progress.one(tally);
            Ok(())
        });
        // Where it was stopped or failed, that is told and says as much.
        progress.end(tally.as_ref().ok().filter(|_| !stop.load(Ordering::Relaxed)));
        let synced = output.sync();
        let tally = tally?;
        synced?;
        Ok((tally, stop.load(Ordering::Relaxed)))
    }

    fn report(&self, summary: &Summary) -> Result<(), Failure> {
        if self.json {
            return streams::json(summary);
        }
        let Summary { requests, errors, resumed, tokens, load_s, total_s, .. } = *summary;
        let seconds = total_s - load_s;
        let rate = if seconds > 0.0 { tokens as f64 / seconds } else { 0.0 };
        streams::note(&format!(
            "{requests} requests ({resumed} answered before, {errors} errors), loaded in {load_s:.2} s, {tokens} tokens in {seconds:.2} s \
             ({rate:.1} a second)",
        ));
        Ok(())
    }
}

impl DefaultArgs {
    fn defaults(&self) -> Result<Defaults, Failure> {
        let mut sampling = self.sampling.sampling()?;
        sampling.constraint = self.constraint.constraint()?;
        let request =
            Request::text("").with_sampling(sampling).with_max_tokens(self.max_tokens).with_ignore_end(self.ignore_end);
        let request = self.stop.iter().fold(request, |request, text| request.with_stop(text));
        Ok(Defaults { request, close: self.constraint.closes() })
    }
}

/// Counts the requests of the input, and checks that what is answered is what it asks.
fn compare(input: &Input, earlier: &Earlier, settings: &str) -> Result<u64, Failure> {
    let mut requests = 0;
    for entry in input.entries(settings)? {
        let entry = entry?;
        earlier.check(entry.index, entry.key)?;
        requests = entry.index + 1;
    }
    earlier.check_end(requests)?;
    Ok(requests)
}

/// `[NAME=]FILE[:SCALE]`. What stands before a `=` is a name where no file could be called so, for want of its folder.
fn named_adapter(text: &str) -> Result<AdapterSource, String> {
    let (name, file) = match text.split_once('=') {
        Some((name, file)) if !name.is_empty() && !name.contains(['/', '\\']) => (Some(name), file),
        _ => (None, text),
    };
    let mut adapter = generate::adapter(file)?;
    match (name, adapter.path.file_stem()) {
        (Some(name), _) => adapter.name = name.to_owned(),
        (None, Some(stem)) => adapter.name = stem.to_string_lossy().into_owned(),
        (None, None) => return Err(format!("{file} has no name; give it one: NAME={file}")),
    }
    Ok(adapter)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn adapters_have_names() {
        for (text, name, path, scale) in [
            ("tuned.gguf", "tuned", "tuned.gguf", 1.0),
            ("/a/b/tuned.v2.gguf:0.5", "tuned.v2", "/a/b/tuned.v2.gguf", 0.5),
            ("x=/a/tuned.gguf:2", "x", "/a/tuned.gguf", 2.0),
            ("/a=b/tuned.gguf", "tuned", "/a=b/tuned.gguf", 1.0),
        ] {
            let expected = AdapterSource::new(name, path).with_scale(scale);
            assert_eq!(named_adapter(text), Ok(expected), "{text}");
        }
        assert!(named_adapter("x=").is_err() && named_adapter("/").is_err());
    }
}
