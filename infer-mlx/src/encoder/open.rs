//! How an encoder is made: what the files say, and what is asked for.

use super::Encoder;
use crate::{
    Model,
    error::{BACKEND, error, invalid_input},
};
use infer_core::{
    EncoderInfo, EncoderOptions, Error, ErrorKind, PaddedPasses, Pooling, Result, Token, Tokenizer as _, VectorTable,
    huggingface::EncoderConfig,
};

/// Tokens a pass is filled up to. The weights are read once a pass, and by then that costs little beside the arithmetic; while what is
/// computed for each token should stay in the processor's caches.
const BATCH: usize = 512;
/// Texts a pass is filled up to.
const TEXTS: usize = 256;

impl Encoder {
    pub(crate) fn new(model: &Model, options: &EncoderOptions) -> Result<Self> {
        let width = model.bert()?.width();
        check_vocab(model)?;
        let config = EncoderConfig::read(model.package().folder()).map_err(|error| error.with_backend(BACKEND))?;
        let pooling = pooling(options.pooling, &config)?;
        if options.threads == Some(0) {
            return Err(invalid_input("threads: 0; a pass is computed by at least 1"));
        }
        let mut info = EncoderInfo::new(pooling, width, context(model.info().context, options.context, &config)?);
        info.normalized = options.normalize;
        info.batch = match options.batch {
            Some(0) => return Err(invalid_input("batch: 0 tokens; a pass has at least 1")),
            batch => batch.unwrap_or(BATCH),
        };
        info.texts = TEXTS;
        let vocab = model.tokenizer().vocab();
        Ok(Self {
            info,
            vocab: vocab.len(),
            padding: vocab.special().pad.unwrap_or(Token(0)),
            stop: Default::default(),
            table: VectorTable::default(),
            passes: PaddedPasses::default(),
            tokens: Vec::new(),
            model: model.clone(),
        })
    }
}

/// A row of weights is looked up for each token, and nobody looks whether there is one.
fn check_vocab(model: &Model) -> Result<()> {
    let (tokens, rows) = (model.tokenizer().vocab().len(), model.package().dims().vocab);
    if tokens <= rows {
        return Ok(());
    }
    let folder = model.package().folder().display();
    let message = format!(
        "{folder}: the model has weights for {rows} tokens, and the tokenizer has {tokens}: they are not of one model"
    );
    Err(error(ErrorKind::InvalidModel, message))
}

/// How hidden states are pooled: as asked for, else as the files say.
fn pooling(asked: Option<Pooling>, config: &EncoderConfig) -> Result<Pooling> {
    let unsupported = |message: String| Err(Error::unsupported(message).with_backend(BACKEND));
    let pooling = match (asked, &config.foreign, config.pooling) {
        (Some(asked), ..) => asked,
        (None, Some(foreign), _) => {
            return unsupported(format!("the model is made with {foreign}, which this library does not do"));
        }
        (None, None, Some(said)) => said,
        (None, None, None) => {
            return Err(invalid_input(
                "the model's folder does not say how hidden states are pooled (1_Pooling/config.json): choose one, such as mean or cls",
            ));
        }
    };
    match pooling {
        Pooling::None | Pooling::Mean | Pooling::Cls | Pooling::Last | Pooling::Max => Ok(pooling),
        Pooling::Rank => unsupported(
            "rank pooling is the score of a classification head, and this backend has none; ONNX Runtime and llama.cpp do"
                .to_owned(),
        ),
        other => unsupported(format!("this backend has no pooling {other:?}")),
    }
}

/// Tokens a text can have, of a model with so many positions.
fn context(positions: usize, asked: Option<usize>, config: &EncoderConfig) -> Result<usize> {
    match asked {
        Some(0) => Err(invalid_input("context: 0 tokens; a text has at least 1")),
        Some(asked) if asked > positions => Err(invalid_input(format!(
            "context: {asked} tokens, and the model has positions for {positions}; ask for fewer"
        ))),
        Some(asked) => Ok(asked),
        None => Ok(config.longest.filter(|&tokens| tokens > 0).map_or(positions, |trained| trained.min(positions))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_asked_for_comes_before_what_files_say() {
        let mut config = EncoderConfig::default();
        assert_eq!(pooling(None, &config).unwrap_err().kind(), ErrorKind::InvalidInput);
        config.pooling = Some(Pooling::Mean);
        assert_eq!(pooling(None, &config).unwrap(), Pooling::Mean);
        assert_eq!(pooling(Some(Pooling::Cls), &config).unwrap(), Pooling::Cls);
        config.foreign = Some("a step `Dense` (modules.json)".to_owned());
        let error = pooling(None, &config).unwrap_err();
        assert!(error.kind() == ErrorKind::Unsupported && error.to_string().contains("Dense"), "{error}");
        assert_eq!(pooling(Some(Pooling::Cls), &config).unwrap(), Pooling::Cls);
        for other in [Pooling::Rank, Pooling::Model] {
            assert_eq!(pooling(Some(other), &config).unwrap_err().kind(), ErrorKind::Unsupported, "{other:?}");
        }
    }

    #[test]
    fn a_text_is_no_longer_than_there_are_positions() {
        let mut config = EncoderConfig::default();
        assert_eq!(context(512, None, &config).unwrap(), 512);
        config.longest = Some(256);
        assert_eq!((context(512, None, &config).unwrap(), context(100, None, &config).unwrap()), (256, 100));
        assert_eq!(context(512, Some(400), &config).unwrap(), 400);
        for wrong in [0, 513] {
            assert_eq!(context(512, Some(wrong), &config).unwrap_err().kind(), ErrorKind::InvalidInput);
        }
    }
}
