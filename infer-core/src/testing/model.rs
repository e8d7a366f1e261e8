use crate::{
    Encoder, EncoderOptions, Error, KvLayout, Model, ModelInfo, Result, Session, SessionOptions, Special,
    SpecialTokens, Token, TokenFlags, Tokenizer, Vocab, VocabKind,
    testing::{Script, Scripted, ScriptedEncoder, adapters::Adapters},
};
use std::sync::{
    Arc,
    atomic::{AtomicU64, Ordering},
};

/// Beginning of sequence, `<s>`: added where a tokenizer is asked to add.
pub const BOS: Token = Token(256);
/// End of sequence, `</s>`: ends a generation.
pub const EOS: Token = Token(257);
/// Begins a turn of a chat, `<|im_start|>`.
pub const IM_START: Token = Token(258);
/// Ends a turn of a chat, `<|im_end|>`, and a generation.
pub const IM_END: Token = Token(259);

const CONTROL: [(Token, &str, TokenFlags); 4] = [
    (BOS, "<s>", TokenFlags::CONTROL),
    (EOS, "</s>", TokenFlags::END),
    (IM_START, "<|im_start|>", TokenFlags::CONTROL),
    (IM_END, "<|im_end|>", TokenFlags::END),
];

pub(super) const CHAT_TEMPLATE: &str = "{% for message in messages %}<|im_start|>{{ message.role }}\n{{ message.content }}<|im_end|>\n\
     {% endfor %}{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}";

/// The model of [`Scripted`] sessions: `Send + Sync`, cheap to clone.
#[derive(Clone, Debug)]
pub struct ScriptedModel {
    script: Script,
    info: Arc<ModelInfo>,
    tokenizer: ByteTokenizer,
    sessions: Arc<AtomicU64>,
}

impl ScriptedModel {
    /// A model whose sessions follow this script.
    #[must_use]
    pub fn new(script: Script) -> Self {
        let tokenizer = ByteTokenizer::default();
        let info = ModelInfo {
            architecture: "scripted".into(),
            name: Some("Scripted".into()),
            description: "scripted, no weights".into(),
            vocab: tokenizer.vocab().len(),
            context: script.context,
            layers: 1,
            width: super::session::WIDTH,
            heads: 1,
            kv_heads: 1,
            chat_template: Some(script.chat_template.clone()),
            ..ModelInfo::default()
        };
        Self { script, info: Arc::new(info), tokenizer, sessions: Arc::default() }
    }

    /// A session as its own type. Same as [`Model::session`] otherwise.
    ///
    /// # Errors
    /// [`InvalidInput`](crate::ErrorKind::InvalidInput) when the options ask for no sequence or no batch, for more cells than
    /// a `u32` counts, for cells in all where each sequence has its own, or for two adapters of one name.
    pub fn scripted(&self, options: &SessionOptions) -> Result<Scripted> {
        let context = options.context.filter(|&context| context > 0).unwrap_or(self.script.context);
        let batch = options.batch.unwrap_or(self.script.batch);
        let layout = options.layout.unwrap_or(self.script.layout);
        if layout == KvLayout::Split && options.cells.is_some() {
            return Err(Error::invalid_input(
                "cells in all are for the unified layout; in the split one the context says it",
            ));
        }
        let cells = options.cells.or(self.script.cells).or_else(|| context.checked_mul(options.sequences));
        let (Ok(sequences), Some(cells)) = (u32::try_from(options.sequences), cells) else {
            return Err(Error::invalid_input(format!("{} sequences are too many", options.sequences)));
        };
        if sequences == 0 || batch == 0 || u32::try_from(cells).is_err() {
            return Err(Error::invalid_input(format!(
                "{sequences} sequences, batches of {batch} and {cells} cells: none may be 0, and the cells must be below 2^32"
            )));
        }
        let limits = crate::Limits::new(context, batch, sequences as usize, self.info.vocab);
        let adapters = Adapters::new(&options.adapters)?;
        let number = self.sessions.fetch_add(1, Ordering::Relaxed);
        let vocab = self.tokenizer.vocab.clone();
        let script = self.script.clone().with_layout(layout);
        Ok(Scripted::new(script, self.info.clone(), vocab, limits, adapters, cells, number))
    }

    /// An encoder as its own type. Same as [`Model::encoder`] otherwise.
    ///
    /// # Errors
    /// [`InvalidInput`](crate::ErrorKind::InvalidInput) when the options ask for no context, no batch or no threads.
    pub fn scripted_encoder(&self, options: &EncoderOptions) -> Result<ScriptedEncoder> {
        let number = self.sessions.fetch_add(1, Ordering::Relaxed);
        ScriptedEncoder::new(self.script.clone(), self.info.clone(), options, number, self.info.vocab)
    }
}

impl Default for ScriptedModel {
    fn default() -> Self {
        Self::new(Script::default())
    }
}

impl Model for ScriptedModel {
    fn info(&self) -> &Arc<ModelInfo> {
        &self.info
    }

    fn tokenizer(&self) -> Arc<dyn Tokenizer> {
        Arc::new(self.tokenizer.clone())
    }

    fn session(&self, options: &SessionOptions) -> Result<Box<dyn Session>> {
        Ok(Box::new(self.scripted(options)?))
    }

    fn encoder(&self, options: &EncoderOptions) -> Result<Box<dyn Encoder>> {
        Ok(Box::new(self.scripted_encoder(options)?))
    }
}

/// A byte is a token: token 0 to 255 is that byte, and the control tokens follow.
#[derive(Clone, Debug)]
pub struct ByteTokenizer {
    vocab: Arc<Vocab>,
}

impl Default for ByteTokenizer {
    fn default() -> Self {
        Self { vocab: Arc::new(byte_vocab()) }
    }
}

impl Tokenizer for ByteTokenizer {
    fn vocab(&self) -> &Arc<Vocab> {
        &self.vocab
    }

    fn encode(&self, text: &str, special: Special, out: &mut Vec<Token>) -> Result<()> {
        if special.add {
            out.push(BOS);
        }
        let mut rest = text.as_bytes();
        while let Some((&byte, after)) = rest.split_first() {
            let control = CONTROL.iter().find(|(_, name, _)| special.parse && rest.starts_with(name.as_bytes()));
            let (token, next) = match control {
                Some((token, name, _)) => (*token, &rest[name.len()..]),
                None => (Token(byte.into()), after),
            };
            out.push(token);
            rest = next;
        }
        Ok(())
    }
}

/// The vocabulary of [`ByteTokenizer`]: the 256 bytes, [`BOS`], [`EOS`], [`IM_START`], [`IM_END`].
#[must_use]
pub fn byte_vocab() -> Vocab {
    let special =
        SpecialTokens { bos: Some(BOS), eos: Some(EOS), eot: Some(IM_END), add_bos: true, ..SpecialTokens::default() };
    let bytes = (0..=u8::MAX).map(|byte| (vec![byte], TokenFlags::BYTE));
    let control = CONTROL.iter().map(|(_, name, flags)| (name.as_bytes().to_vec(), *flags));
    Vocab::new(VocabKind::Bpe, special, bytes.chain(control)).expect("its special tokens are its own")
}
