//! `infer embed`, `infer rerank`, `infer classify`: texts in, vectors or scores out.

use crate::{
    args::{self, ModelArgs},
    ctrl_c,
    failure::Failure,
    output,
};
use infer::{Encoder, EncoderOptions, Error, Model, ModelKind, Pooling, Special, Token};
use serde::Serialize;
use std::fmt::Write as _;

/// Turn texts into vectors (embeddings).
///
/// One line a text: its numbers, with spaces between them. With --pooling none, one line a token.
#[derive(clap::Args, Debug)]
pub(crate) struct Embed {
    #[command(flatten)]
    encoder: EncoderArgs,

    /// The texts; `-`, or none at all, reads stdin, one a line (100,000 at most).
    texts: Vec<String>,

    /// How the tokens of a text become one vector; what the model was trained for if not given.
    #[arg(long, value_enum, value_name = "HOW")]
    pooling: Option<How>,

    /// Leave vectors as long as they come. Without it their length is 1, and the dot product of two is their cosine.
    #[arg(long)]
    no_normalize: bool,
}

/// Sort documents by how well they answer a query, the best first. Needs a reranker.
///
/// One line a document: its score, its number from 0, its text.
#[derive(clap::Args, Debug)]
pub(crate) struct Rerank {
    #[command(flatten)]
    encoder: EncoderArgs,

    /// The query.
    #[arg(long, short, value_name = "TEXT", allow_hyphen_values = true)]
    query: String,

    /// The documents; `-`, or none at all, reads stdin, one a line (100,000 at most).
    documents: Vec<String>,
}

/// Score texts by each label of a classifier.
///
/// One line a text and label: its score, the label, the text. Scores are what the model gives, not probabilities.
#[derive(clap::Args, Debug)]
pub(crate) struct Classify {
    #[command(flatten)]
    encoder: EncoderArgs,

    /// The texts; `-`, or none at all, reads stdin, one a line (100,000 at most).
    texts: Vec<String>,
}

#[derive(clap::Args, Debug)]
struct EncoderArgs {
    #[command(flatten)]
    model: ModelArgs,

    /// Threads, at most the CPUs this process may run on; as many as it may use if not given.
    #[arg(long, short, value_name = "N")]
    threads: Option<usize>,

    /// Tokens one text can have; what the model was trained for if not given.
    #[arg(long, short, value_name = "N")]
    ctx: Option<usize>,

    /// JSON in place of the lines: `embed` gives an object, the others an array.
    #[arg(long)]
    json: bool,
}

/// A pooling, by the name it has on a command line.
#[derive(clap::ValueEnum, Clone, Copy, Debug)]
enum How {
    None,
    Mean,
    Cls,
    Last,
    Max,
}

#[derive(Serialize)]
struct Vectors<'e> {
    dimensions: usize,
    normalized: bool,
    /// Text by text, the vectors of one text after each other.
    embeddings: Vec<Vec<&'e [f32]>>,
    tokens: Vec<usize>,
}

#[derive(Serialize)]
struct Ranked<'e> {
    index: usize,
    score: f32,
    text: &'e str,
}

#[derive(Serialize)]
struct Classified<'e> {
    text: &'e str,
    scores: Vec<Score<'e>>,
}

#[derive(Serialize)]
struct Score<'e> {
    label: &'e str,
    score: f32,
}

impl Embed {
    pub(crate) fn run(&self) -> Result<(), Failure> {
        let texts = texts(&self.texts)?;
        let model = self.encoder.open()?;
        let mut options = self.encoder.options().with_normalize(!self.no_normalize);
        if let Some(how) = self.pooling {
            options = options.with_pooling(how.pooling());
        }
        let mut encoder = self.encoder.make(&*model, &options)?;
        if encoder.info().pooling == Pooling::Rank {
            let scores = match encoder.info().width {
                1 => "a score: it ranks; use `infer rerank`".to_owned(),
                count => format!("{count} scores: it classifies; use `infer classify`"),
            };
            let message = format!("the model gives no vectors but {scores}, or --pooling for its hidden states");
            return Err(Error::unsupported(message).into());
        }
        let tokens = tokens(&*model, &texts)?;
        encode(&mut *encoder, &tokens)?;
        let vectors = encoder.vectors();
        let all = (0..vectors.len()).map(|text| vectors.tokens(text).collect::<Vec<_>>());
        if self.encoder.json {
            return output::json(&Vectors {
                dimensions: encoder.info().width,
                normalized: encoder.info().normalized,
                embeddings: all.collect(),
                tokens: tokens.iter().map(Vec::len).collect(),
            });
        }
        let mut lines = String::new();
        for vector in all.flatten() {
            let numbers: Vec<String> = vector.iter().map(f32::to_string).collect();
            lines += &(numbers.join(" ") + "\n");
        }
        output::text(&lines)
    }
}

impl Rerank {
    pub(crate) fn run(&self) -> Result<(), Failure> {
        let documents = texts(&self.documents)?;
        let model = self.encoder.open()?;
        let mut encoder = self.encoder.make(&*model, &self.encoder.options().with_pooling(Pooling::Rank))?;
        if encoder.info().width != 1 {
            let message =
                format!("the model gives {} scores: it classifies; use `infer classify`", encoder.info().width);
            return Err(Error::unsupported(message).into());
        }
        let mut pairs = vec![Vec::new(); documents.len()];
        for (document, pair) in documents.iter().zip(&mut pairs) {
            encoder.pair(&self.query, document, pair)?;
        }
        encode(&mut *encoder, &pairs)?;
        let scores = (0..documents.len()).filter_map(|index| Some((index, encoder.vectors().vector(index)?[0])));
        let mut ranked: Vec<_> =
            scores.map(|(index, score)| Ranked { index, score, text: &documents[index] }).collect();
        ranked.sort_by(|a, b| b.score.total_cmp(&a.score));
        if self.encoder.json {
            return output::json(&ranked);
        }
        let line = |Ranked { index, score, text }: &Ranked<'_>| format!("{score:>9.4}  {index:>4}  {text}\n");
        output::text(&ranked.iter().map(line).collect::<String>())
    }
}

impl Classify {
    pub(crate) fn run(&self) -> Result<(), Failure> {
        let texts = texts(&self.texts)?;
        let model = self.encoder.open()?;
        let mut encoder = self.encoder.make(&*model, &self.encoder.options().with_pooling(Pooling::Rank))?;
        encode(&mut *encoder, &tokens(&*model, &texts)?)?;
        let info = encoder.info();
        let labels: Vec<String> = match &info.labels[..] {
            [] => (0..info.width).map(|number| number.to_string()).collect(),
            labels => labels.to_vec(),
        };
        let scores = |index| encoder.vectors().vector(index).unwrap_or_default();
        let scored = |index: usize| labels.iter().zip(scores(index)).map(|(label, &score)| Score { label, score });
        if self.encoder.json {
            let all = texts.iter().enumerate();
            let all = all.map(|(index, text)| Classified { text, scores: scored(index).collect() });
            return output::json(&all.collect::<Vec<_>>());
        }
        let mut lines = String::new();
        for (index, text) in texts.iter().enumerate() {
            for Score { label, score } in scored(index) {
                // Infallible: it is a string that is written to. Labels are the file's.
                let _ = writeln!(lines, "{score:>9.4}  {}  {text}", output::printable(label));
            }
        }
        output::text(&lines)
    }
}

impl EncoderArgs {
    fn options(&self) -> EncoderOptions {
        let mut options = EncoderOptions::new();
        (options.threads, options.context) = (self.threads, self.ctx);
        options
    }

    fn open(&self) -> Result<Box<dyn Model>, Failure> {
        self.model.open().map_err(|failure| match failure {
            Failure::Run(error) => self.model.unfit(error, ModelKind::Encoder),
            failure => failure,
        })
    }

    fn make(&self, model: &dyn Model, options: &EncoderOptions) -> Result<Box<dyn Encoder>, Failure> {
        let encoder = model.encoder(options).map_err(|error| self.model.unfit(error, ModelKind::Encoder))?;
        let interrupt = encoder.interrupt();
        ctrl_c::does(move || interrupt.raise())?;
        Ok(encoder)
    }
}

impl How {
    fn pooling(self) -> Pooling {
        match self {
            Self::None => Pooling::None,
            Self::Mean => Pooling::Mean,
            Self::Cls => Pooling::Cls,
            Self::Last => Pooling::Last,
            Self::Max => Pooling::Max,
        }
    }
}

/// The texts that were given, or the lines of stdin.
fn texts(given: &[String]) -> Result<Vec<String>, Failure> {
    match given {
        [] => {}
        [only] if only == "-" => {}
        texts => return Ok(texts.to_vec()),
    }
    let lines = args::stdin_lines("texts, one a line")?;
    if lines.is_empty() {
        return Err(Error::invalid_input("stdin is empty: give texts as arguments, or on stdin, one a line").into());
    }
    Ok(lines)
}

fn tokens(model: &dyn Model, texts: &[String]) -> Result<Vec<Vec<Token>>, Failure> {
    let tokenizer = model.tokenizer();
    let mut all = vec![Vec::new(); texts.len()];
    for (text, tokens) in texts.iter().zip(&mut all) {
        tokenizer.encode(text, Special::ADD, tokens)?;
    }
    Ok(all)
}

fn encode(encoder: &mut dyn Encoder, texts: &[Vec<Token>]) -> Result<(), Failure> {
    let texts: Vec<&[Token]> = texts.iter().map(Vec::as_slice).collect();
    Ok(encoder.encode(&texts)?)
}
