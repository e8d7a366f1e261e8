//! `infer generate`: a prompt in, text out.

use crate::{
    args::{self, ModelArgs},
    constraint::{ConstraintArgs, closed, closed_by},
    ctrl_c::Reader,
    failure::Failure,
    output::{self, Place},
    sampling::SamplingArgs,
};
use clap::builder::NonEmptyStringValueParser;
use infer::{
    AdapterSource, Engine, EngineBuilder, Error, Finish, Generation, Model, Piece, Request, Sampling, SessionOptions,
    Special, Token,
    chat::{Message, RenderOptions},
};
use serde::Serialize;
use std::{
    path::{Path, PathBuf},
    sync::{Arc, OnceLock},
    time::{Duration, Instant},
};

/// Continue a text, or answer a message with --chat.
///
/// The text goes to stdout as it is made, and nothing else does. Ctrl-C ends the text, not the program.
#[derive(clap::Args, Debug)]
#[command(allow_negative_numbers = true)] // so that -1 is told to be out of range, and not to be unknown
pub(crate) struct Generate {
    #[command(flatten)]
    model: ModelArgs,

    /// The prompt. Without it and --file it is read from stdin, without the line break at its end.
    #[arg(long, short, value_name = "TEXT", allow_hyphen_values = true, conflicts_with = "file")]
    prompt: Option<String>,

    /// A file that has the prompt; a line break at its end is left out.
    #[arg(long, short, value_name = "PATH")]
    file: Option<PathBuf>,

    /// Take the prompt as a user's message and render it by the model's chat template.
    #[arg(long)]
    chat: bool,

    /// A system message before it.
    #[arg(long, value_name = "TEXT", allow_hyphen_values = true, requires = "chat")]
    system: Option<String>,

    /// Tokens to generate at most.
    #[arg(long, short = 'n', value_name = "N", default_value_t = 256)]
    max_tokens: usize,

    /// End where this text comes; it is left out. May be given several times.
    #[arg(long, value_name = "TEXT", allow_hyphen_values = true, value_parser = NonEmptyStringValueParser::new())]
    stop: Vec<String>,

    /// Go on where the model would end the text.
    #[arg(long, visible_alias = "ignore-eos")]
    ignore_end: bool,

    /// Threads, at most the CPUs this process may run on; as many as it may use if not given.
    #[arg(long, short, value_name = "N")]
    threads: Option<usize>,

    /// Context in tokens, prompt and answer together; 0 is what the model was trained for. If not given, as much as this
    /// run can need.
    #[arg(long, short, value_name = "N")]
    ctx: Option<usize>,

    /// An adapter (LoRA) for the model, a GGUF file, and how strongly it counts if not as it was trained: FILE:0.5.
    #[arg(long, value_name = "FILE[:SCALE]", value_parser = adapter)]
    adapter: Option<AdapterSource>,

    /// One JSON object when it is done, in place of the text.
    #[arg(long)]
    json: bool,

    /// With --json: the log-probability of each token, and the N most probable ones at its place.
    #[arg(long, value_name = "N", requires = "json")]
    logprobs: Option<usize>,

    #[command(flatten)]
    constraint: ConstraintArgs,

    #[command(flatten)]
    sampling: SamplingArgs,
}

/// What `--json` prints.
#[derive(Serialize)]
struct Report {
    text: String,
    tokens: Vec<Token>,
    #[serde(skip_serializing_if = "Option::is_none")]
    logprobs: Option<Vec<Place>>,
    prompt_tokens: usize,
    finish_reason: &'static str,
    load_s: f64,
    prefill_s: f64,
    decode_s: f64,
}

/// What is to be continued or answered.
struct Asked {
    text: String,
    is_chat: bool,
    system: Option<String>,
}

impl Generate {
    pub(crate) fn run(&self) -> Result<(), Failure> {
        // What can be wrong without the model is found before it is loaded.
        let sampling = self.sampling()?;
        let asked = Asked { text: self.prompt_text()?, is_chat: self.chat, system: self.system.clone() };

        let begun = Instant::now();
        let (engine, prompt) = self.engine(asked)?;
        let load = begun.elapsed();
        let sampling = self.sampling.with_breakers(sampling, &**engine.tokenizer())?;
        self.constraint.check(&sampling, &engine)?;
        let reader = Reader::new()?;
        let constraint = sampling.constraint.clone();
        let generation = engine.generate(self.request(prompt, sampling));
        let end = if self.json {
            report(&reader, generation, self.logprobs.is_some(), load)
        } else {
            stream(&reader, generation, load)
        };
        end.map_err(|failure| match failure {
            Failure::Run(error) => closed_by("--max-tokens", error, constraint.as_ref(), &engine).into(),
            failure => failure,
        })
    }

    fn sampling(&self) -> Result<Sampling, Failure> {
        let mut sampling = self.sampling.sampling()?.with_logprobs(self.logprobs.unwrap_or(0));
        let constraint = self.constraint.constraint()?;
        sampling.constraint = match constraint {
            Some(constraint) if self.constraint.closes() => Some(closed(constraint, self.max_tokens)),
            constraint => constraint,
        };
        Ok(sampling)
    }

    /// An engine for one text, with a session as long as it can need; and the text's tokens.
    fn engine(&self, asked: Asked) -> Result<(Engine, Vec<Token>), Failure> {
        let prompt = Arc::new(OnceLock::new());
        let (encoded, ctx, max_tokens) = (prompt.clone(), self.ctx, self.max_tokens);
        let builder = self.model.engine(self.threads).with_sequences(1).with_prefix_cache(0).with_sessions(
            move |model, options| {
                let tokens = asked.encode(model)?;
                let options = session_options(options, ctx, model.info().context, tokens.len(), max_tokens);
                // A session that replaces a lost one has the same text.
                let _ = encoded.set(tokens);
                model.session(&options)
            },
        );
        let builder = self.adapter.iter().cloned().fold(builder, EngineBuilder::with_adapter);
        let engine = self.model.build(builder)?;
        Ok((engine, prompt.get().cloned().unwrap_or_default()))
    }

    fn prompt_text(&self) -> Result<String, Failure> {
        let mut text = match (&self.prompt, &self.file) {
            (Some(text), _) => return Ok(text.clone()),
            (None, Some(path)) => args::file(path)?,
            (None, None) => args::stdin("the prompt")?,
        };
        // The line break that an editor or `echo` has put there is no part of what was meant.
        if text.ends_with('\n') {
            text.pop();
            if text.ends_with('\r') {
                text.pop();
            }
        }
        Ok(text)
    }

    fn request(&self, prompt: Vec<Token>, sampling: Sampling) -> Request {
        let request = Request::tokens(prompt)
            .with_sampling(sampling)
            .with_max_tokens(self.max_tokens)
            .with_ignore_end(self.ignore_end);
        let request = match &self.adapter {
            Some(adapter) => request.with_adapter(&adapter.name),
            None => request,
        };
        self.stop.iter().fold(request, |request, text| request.with_stop(text))
    }
}

impl Asked {
    fn encode(&self, model: &dyn Model) -> Result<Vec<Token>, Error> {
        let mut tokens = Vec::new();
        if self.is_chat {
            let system = self.system.iter().map(Message::system);
            let messages: Vec<_> = system.chain([Message::user(&self.text)]).collect();
            let prompt = infer::chat_template(model)?.render(&messages, &RenderOptions::new())?;
            model.tokenizer().encode(&prompt, Special::PARSE, &mut tokens)?;
        } else {
            model.tokenizer().encode(&self.text, Special::ADD, &mut tokens)?;
        }
        Ok(tokens)
    }
}

/// `trained` is the context the model was trained for, 0 where it does not say.
fn session_options(
    options: &SessionOptions,
    ctx: Option<usize>,
    trained: usize,
    prompt: usize,
    max_tokens: usize,
) -> SessionOptions {
    let needed = prompt.saturating_add(max_tokens);
    let most = if trained == 0 { needed } else { trained };
    let context = ctx.unwrap_or(needed.clamp(1, most));
    let mut options = options.clone().with_context(context);
    options.cells = None;
    options
}

/// `FILE`, or `FILE:SCALE` where what stands behind the last colon is a number. Of a file whose name ends so, the scale has to be
/// given too.
pub(crate) fn adapter(text: &str) -> Result<AdapterSource, String> {
    let scaled = text.rsplit_once(':').and_then(|(path, scale)| Some((path, scale.parse::<f32>().ok()?)));
    // A file that is not there is told when it is opened; here it is told what was no scale.
    if let (None, Some((path, scale))) = (scaled, text.rsplit_once(':'))
        && !Path::new(text).exists()
        && Path::new(path).is_file()
    {
        return Err(format!("{path} is there, and `{scale}` behind it is no number for the scale"));
    }
    let (path, scale) = scaled.unwrap_or((text, 1.0));
    if path.is_empty() {
        return Err("a file is wanted".into());
    }
    if !scale.is_finite() {
        return Err(format!("the scale is {scale}, it must be finite"));
    }
    Ok(AdapterSource::new(path, path).with_scale(scale))
}

/// Reads all of it, hands the text on, and returns the rest.
fn read(
    reader: &Reader,
    generation: Generation,
    mut text: impl FnMut(&str) -> Result<(), Failure>,
) -> Result<(Piece, Finish), Failure> {
    let mut all = Piece::default();
    reader.read(generation, |piece| {
        text(&piece.text)?;
        all.tokens.extend(piece.tokens);
        all.top.extend(piece.top);
        all.finish = all.finish.take().or(piece.finish);
        Ok(())
    })?;
    let finish = all.finish.take().expect("a generation ends with how it ended, or an error");
    Ok((all, finish))
}

fn report(reader: &Reader, generation: Generation, has_logprobs: bool, load: Duration) -> Result<(), Failure> {
    let mut text = String::new();
    let (all, finish) = read(reader, generation, |more| {
        text += more;
        Ok(())
    })?;
    output::json(&Report {
        text,
        tokens: all.tokens.iter().map(|sampled| sampled.token).collect(),
        logprobs: has_logprobs.then(|| Place::all(&all.tokens, all.top)),
        prompt_tokens: finish.stats.prompt_tokens,
        finish_reason: finish.reason.as_str(),
        load_s: output::seconds(load),
        prefill_s: output::seconds(finish.stats.prefill),
        decode_s: output::seconds(finish.stats.decode),
    })
}

fn stream(reader: &Reader, generation: Generation, load: Duration) -> Result<(), Failure> {
    let (_, Finish { stats, reason, .. }) = read(reader, generation, output::text)?;
    output::end_of_text()?;
    output::note(&format!(
        "loaded in {:.2} s, {} prompt tokens in {:.2} s, {} tokens in {:.2} s ({:.1} a second), ended by: {reason}",
        load.as_secs_f64(),
        stats.prompt_tokens,
        stats.prefill.as_secs_f64(),
        stats.generated_tokens,
        stats.decode.as_secs_f64(),
        stats.decode_rate(),
    ));
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_adapter_may_have_a_scale() {
        for (text, path, scale) in [
            ("a.gguf", "a.gguf", 1.0),
            ("a.gguf:0.5", "a.gguf", 0.5),
            ("a.gguf:-1", "a.gguf", -1.0),
            (r"C:\a.gguf", r"C:\a.gguf", 1.0),
            ("a:b.gguf:2", "a:b.gguf", 2.0),
        ] {
            assert_eq!(adapter(text), Ok(AdapterSource::new(path, path).with_scale(scale)), "{text}");
        }
        for text in ["", ":1", "a.gguf:nan", "a.gguf:inf"] {
            assert!(adapter(text).is_err(), "{text}");
        }
    }
}
