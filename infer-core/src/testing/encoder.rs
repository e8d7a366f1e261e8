use crate::{
    Encoder, EncoderInfo, EncoderOptions, Error, ErrorKind, Interrupt, ModelInfo, Pooling, Result, Special, Token,
    Tokenizer, Vectors,
    testing::{BOS, ByteTokenizer, EOS, Fault, Script, Step, cache::mix, session::WIDTH},
};
use std::{
    collections::BTreeSet,
    fmt,
    marker::PhantomData,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
};

/// Tokens that the vector of a token depends on: its own, and those before it.
const REACH: usize = 3;
/// Texts one pass can have.
const TEXTS: usize = 8;

/// The encoder of a [`ScriptedModel`](super::ScriptedModel). See the [module](super).
///
/// The vector of a token is drawn from it and the two before it, so texts are near each other that have pieces in common.
/// [`Pooling::Rank`] gives one number between 0 and 1, how much of the second text of a [pair](Encoder::pair) is in the
/// first; or one for each of the script's [labels](Script::with_labels), drawn from all tokens.
pub struct ScriptedEncoder {
    script: Script,
    number: u64,
    model: Arc<ModelInfo>,
    info: EncoderInfo,
    vocab: usize,
    data: Vec<f32>,
    ends: Vec<u32>,
    passes: u64,
    lost: bool,
    raised: Arc<AtomicBool>,
    interrupt: Interrupt,
    /// Encoders of native runtimes may not be sent; what passes its tests with this one must do without too.
    not_send: PhantomData<*const ()>,
}

impl ScriptedEncoder {
    pub(super) fn new(
        script: Script,
        model: Arc<ModelInfo>,
        options: &EncoderOptions,
        number: u64,
        vocab: usize,
    ) -> Result<Self> {
        let pooling = options.pooling.unwrap_or(Pooling::Mean);
        if pooling == Pooling::Model {
            return Err(Error::unsupported("a scripted encoder has hidden states and no vector of its own"));
        }
        let rank = pooling == Pooling::Rank;
        let context = options.context.unwrap_or(script.context);
        let batch = options.batch.unwrap_or(script.batch);
        if context == 0 || batch == 0 || options.threads == Some(0) {
            return Err(Error::invalid_input("context, batch and threads of an encoder are at least 1"));
        }
        let labels = if rank { script.labels.clone() } else { Vec::new() };
        let info = EncoderInfo {
            pooling,
            width: if rank { labels.len().max(1) } else { WIDTH },
            normalized: options.normalize && !rank,
            context,
            batch,
            texts: TEXTS,
            labels,
        };
        let raised = Arc::new(AtomicBool::new(false));
        let flag = raised.clone();
        Ok(Self {
            script,
            number,
            model,
            info,
            vocab,
            data: Vec::new(),
            ends: Vec::new(),
            passes: 0,
            lost: false,
            raised,
            interrupt: Interrupt::new(move |up| flag.store(up, Ordering::Release)),
            not_send: PhantomData,
        })
    }

    /// As many texts from the first on as one pass takes.
    fn fitting(&self, texts: &[&[Token]]) -> usize {
        let mut tokens = 0;
        let fits = |text: &&&[Token]| {
            tokens += text.len();
            tokens <= self.info.batch
        };
        texts.iter().take(self.info.texts).take_while(fits).count().max(1)
    }

    fn pass(&mut self, texts: &[&[Token]]) -> Result<()> {
        let (pass, entries) = (self.passes, texts.len());
        self.passes += 1;
        for done in 0..=entries {
            let step = Step { session: self.number, pass, done, entries, interrupt: &self.interrupt };
            let kind = match self.script.fault(&step) {
                Some(Fault::Lose) => {
                    self.lost = true;
                    Some(ErrorKind::SessionLost)
                }
                Some(Fault::Error(kind) | Fault::Spend(kind)) => Some(kind),
                None => self.raised.load(Ordering::Acquire).then_some(ErrorKind::Cancelled),
            };
            if let Some(kind) = kind {
                let message = format!("{kind}: the pass ended after {done} of {entries} texts");
                return Err(Error::new(kind, message).with_backend("scripted"));
            }
            if let Some(text) = texts.get(done) {
                self.compute(text);
            }
        }
        Ok(())
    }

    fn compute(&mut self, text: &[Token]) {
        let Self { data, info, script, .. } = self;
        let begin = data.len();
        let digests = (1..=text.len()).map(|end| digest(&text[end.saturating_sub(REACH)..end], script.seed));
        let vector = |digest: u64| (0..info.width).map(move |i| number(digest, i));
        match info.pooling {
            Pooling::None => digests.for_each(|digest| data.extend(vector(digest))),
            Pooling::Cls => digests.take(1).for_each(|digest| data.extend(vector(digest))),
            Pooling::Last => digests.skip(text.len() - 1).for_each(|digest| data.extend(vector(digest))),
            Pooling::Mean => {
                data.resize(begin + info.width, 0.0);
                for digest in digests {
                    let share = vector(digest).map(|number| number / text.len() as f32);
                    data[begin..].iter_mut().zip(share).for_each(|(sum, share)| *sum += share);
                }
            }
            Pooling::Max => {
                data.resize(begin + info.width, f32::NEG_INFINITY);
                for digest in digests {
                    data[begin..].iter_mut().zip(vector(digest)).for_each(|(most, number)| *most = most.max(number));
                }
            }
            Pooling::Model => unreachable!("it was refused"),
            Pooling::Rank if info.labels.is_empty() => data.push(overlap(text)),
            Pooling::Rank => data.extend(vector(digest(text, script.seed))),
        }
        data[begin..].chunks_exact_mut(info.width).for_each(|vector| info.normalize(vector));
        self.ends.push(u32::try_from(self.data.len() / self.info.width).expect("vectors were counted"));
    }
}

impl Encoder for ScriptedEncoder {
    fn model(&self) -> &Arc<ModelInfo> {
        &self.model
    }

    fn info(&self) -> &EncoderInfo {
        &self.info
    }

    fn interrupt(&self) -> Interrupt {
        self.interrupt.clone()
    }

    fn pair(&self, first: &str, second: &str, out: &mut Vec<Token>) -> Result<()> {
        if self.info.pooling != Pooling::Rank {
            return Err(Error::unsupported("two texts are compared by an encoder with rank pooling"));
        }
        out.push(BOS);
        for text in [first, second] {
            ByteTokenizer::default().encode(text, Special::NONE, out)?;
            out.push(EOS);
        }
        Ok(())
    }

    fn encode(&mut self, texts: &[&[Token]]) -> Result<()> {
        self.data.clear();
        self.ends.clear();
        if self.lost {
            return Err(ErrorKind::SessionLost.into());
        }
        self.info.check(texts, self.vocab)?;
        let mut rest = texts;
        while !rest.is_empty() {
            let (now, later) = rest.split_at(self.fitting(rest));
            if let Err(error) = self.pass(now) {
                self.data.clear();
                self.ends.clear();
                return Err(error);
            }
            rest = later;
        }
        Ok(())
    }

    fn vectors(&self) -> Vectors<'_> {
        Vectors::new(&self.data, self.info.width, &self.ends)
    }
}

impl fmt::Debug for ScriptedEncoder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ScriptedEncoder")
            .field("info", &self.info)
            .field("passes", &self.passes)
            .finish_non_exhaustive()
    }
}

fn digest(tokens: &[Token], seed: u64) -> u64 {
    tokens.iter().fold(mix(seed), |digest, token| mix(digest ^ u64::from(token.0)))
}

/// Number `index` of a digest's vector, from -1 to 1.
fn number(digest: u64, index: usize) -> f32 {
    let bits = mix(digest.wrapping_add(index as u64)) >> 40;
    bits as f32 / (1 << 23) as f32 - 1.0
}

/// The share of the second text's pieces that are in the first.
fn overlap(pair: &[Token]) -> f32 {
    let mut texts = pair.split(|&token| token == EOS || token == BOS).filter(|text| !text.is_empty());
    let mut pieces = || texts.next().unwrap_or_default().windows(REACH).collect::<BTreeSet<_>>();
    let (first, second) = (pieces(), pieces());
    if second.is_empty() { 0.0 } else { first.intersection(&second).count() as f32 / second.len() as f32 }
}
