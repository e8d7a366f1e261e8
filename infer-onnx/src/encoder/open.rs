//! How an encoder is made: what the graph and the files beside it say, what is asked for, and a first run.

use super::{
    Encoder, graph,
    lanes::Lanes,
    ports::{Given, Output, Ports},
    run,
};
use crate::{
    Model,
    error::{BACKEND, invalid_input},
    pool::share,
    raw::{RunOptions, Session},
    session::threads,
};
use infer_core::{
    EncoderInfo, EncoderOptions, Error, PaddedPasses, Pooling, Result, Token, Tokenizer as _, VectorTable,
    huggingface::EncoderConfig,
};
use std::sync::Arc;

/// Tokens a pass is filled up to. The weights are read once a pass, and by then that costs little beside the arithmetic; while what is
/// computed for each token should stay in the processor's caches.
const BATCH: usize = 512;
/// Texts a pass is filled up to.
const TEXTS: usize = 256;
/// Tokens of a text where no file says how long one can be.
const CONTEXT: usize = 512;

impl Encoder {
    pub(crate) fn new(model: &Model, options: &EncoderOptions) -> Result<Self> {
        let config = EncoderConfig::read(model.folder()).map_err(|error| error.with_backend(BACKEND))?;
        let threads = options.threads.map(|asked| threads(Some(asked))).transpose()?;
        let (session, lanes) = open(model, threads)?;
        let (pooling, output) = choose(options.pooling, &config, Given::of(session.outputs()), &session)?;
        let ports = Ports::new(session.inputs(), output, model.tokenizer().pair_form())?;
        let rank = pooling == Pooling::Rank;
        let context = context(model, options.context, &config, &ports)?;
        let vocab = model.tokenizer().vocab();
        let mut encoder = Self {
            session,
            lanes,
            options: RunOptions::new("encode")?,
            info: EncoderInfo::new(pooling, 0, context),
            vocab: vocab.len(),
            padding: vocab.special().pad.unwrap_or(Token(0)),
            model: model.clone(),
            table: VectorTable::default(),
            passes: PaddedPasses::default(),
            ports,
        };
        let info = &mut encoder.info;
        info.normalized = options.normalize && !rank;
        info.batch = match options.batch {
            Some(0) => return Err(invalid_input("batch: 0 tokens; a pass has at least 1")),
            batch => batch.unwrap_or(BATCH),
        };
        info.texts = encoder.ports.fixed()[0].unwrap_or(TEXTS);
        encoder.info.width = encoder.width()?;
        if rank {
            encoder.info.labels = labels(config.labels, encoder.info.width)?;
        }
        Ok(encoder)
    }

    /// How many numbers a vector has, as a run over one token shows: graphs may leave it open.
    fn width(&mut self) -> Result<usize> {
        let Self { session, options, ports, padding, .. } = self;
        let (shape, text) = (ports.shape(1, 1), [*padding]);
        let output = run(session, options, ports, shape, *padding, 1, |_| &text)?;
        let width = ports.rows(&output, shape)?.width();
        if width == 0 {
            return Err(unsupported("the graph gives vectors of no numbers"));
        }
        Ok(width)
    }
}

/// The graph for so many threads, and what computes passes side by side: as many as there are threads, where the CPU alone computes.
fn open(model: &Model, threads: Option<usize>) -> Result<(Session, Lanes)> {
    let most = model.threads(threads);
    if most < 2 || !model.is_of_cpu() {
        return Ok((graph::load(model, threads, None)?, Lanes::new(1, None)));
    }
    // What is wrong with the model, opening it says better.
    let weights = share::of_file(model.package().graph()).ok().filter(|weights| weights.bytes() != (0, 0));
    if let Some(weights) = weights.map(Arc::new) {
        match graph::load(model, threads, Some(&weights)) {
            Ok(session) => return Ok((session, Lanes::new(most, Some(weights)))),
            Err(refused) => tracing::warn!("the sessions of an encoder do not share weights: {refused}"),
        }
    }
    Ok((graph::load(model, threads, None)?, Lanes::new(most, None)))
}

fn unsupported(message: impl Into<String>) -> Error {
    Error::unsupported(message).with_backend(BACKEND)
}

/// What vectors are made of: as asked for, else as the files say, else the one way that the graph leaves.
fn choose(
    asked: Option<Pooling>,
    config: &EncoderConfig,
    given: Given,
    session: &Session,
) -> Result<(Pooling, Output)> {
    let pooling = match asked {
        Some(pooling) => pooling,
        None => usual(config, given)?,
    };
    let is_its_own = config.pooling == Some(pooling);
    let output = match pooling {
        Pooling::Rank => given.scores,
        Pooling::Model => given.pooled,
        Pooling::None | Pooling::Mean | Pooling::Cls | Pooling::Last | Pooling::Max => match config.foreign {
            // What comes behind is in the graph, or not done at all.
            Some(_) if asked.is_none() => given.pooled,
            _ => given.hidden.or(given.pooled.filter(|_| is_its_own)),
        },
        other => return Err(unsupported(format!("this backend has no pooling {other:?}"))),
    };
    let output =
        output.ok_or_else(|| lacks(pooling, config.foreign.as_deref().filter(|_| asked.is_none()), session))?;
    Ok((pooling, output))
}

/// The pooling where none is asked for.
fn usual(config: &EncoderConfig, given: Given) -> Result<Pooling> {
    let gives_vectors = given.hidden.is_some() || given.pooled.is_some();
    if given.scores.is_some() && (config.is_classifier || !gives_vectors) {
        return Ok(Pooling::Rank);
    }
    match (config.pooling, given.pooled, &config.foreign) {
        (Some(pooling), ..) => Ok(pooling),
        (None, Some(_), _) => Ok(Pooling::Model),
        (None, None, Some(foreign)) => Err(unsupported(format!(
            "the model is made with {foreign}, which this library does not do and the graph does not have as `sentence_embedding`"
        ))),
        (None, None, None) => Err(invalid_input(
            "the model's folder does not say how hidden states are pooled (1_Pooling/config.json): choose one, such as mean or cls",
        )),
    }
}

/// What a graph would have to give, and gives not.
fn lacks(pooling: Pooling, foreign: Option<&str>, session: &Session) -> Error {
    let wanted = match (pooling, foreign) {
        (_, Some(foreign)) => format!("is made with {foreign}, which needs an output `sentence_embedding`"),
        (Pooling::Rank, _) => "needs scores for each text, an output `logits` of [texts, labels]".to_owned(),
        (Pooling::Model, _) => {
            "needs a vector for each text, an output `sentence_embedding` of [texts, numbers]".to_owned()
        }
        _ => "needs hidden states, an output `last_hidden_state` of [texts, tokens, numbers]".to_owned(),
    };
    let names: Vec<_> = session.outputs().iter().map(|port| format!("`{}`", port.name)).collect();
    unsupported(format!("pooling {pooling:?} {wanted}, and the graph gives {}", names.join(", ")))
}

/// Tokens a text can have.
fn context(model: &Model, asked: Option<usize>, config: &EncoderConfig, ports: &Ports) -> Result<usize> {
    let most = [config.positions, ports.fixed()[1]].into_iter().flatten().min();
    let known = config.longest.or(Some(model.info().context)).filter(|&tokens| tokens > 0);
    let trained = known.or(most).unwrap_or(CONTEXT);
    match (asked, most) {
        (Some(0), _) => Err(invalid_input("context: 0 tokens; a text has at least 1")),
        (Some(asked), Some(most)) if asked > most => Err(invalid_input(format!(
            "context: {asked} tokens, and the model has positions for {most}; ask for fewer"
        ))),
        (Some(asked), _) => Ok(asked),
        (None, most) => Ok(most.map_or(trained, |most| trained.min(most)).max(1)),
    }
}

/// The names of all scores, or nothing where they have none.
fn labels(named: Vec<String>, scores: usize) -> Result<Vec<String>> {
    match named.len() {
        0 => Ok(named),
        count if count == scores => Ok(named),
        count => Err(unsupported(format!("the graph gives {scores} scores, and config.json (id2label) names {count}"))),
    }
}
