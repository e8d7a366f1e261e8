//! Texts to vectors and scores, between the scheduler's steps: a pass a turn, filled with the texts of all who wait.

use super::shared::{Place, Shared};
use crate::EncoderOptions;
use infer_core::{Encoder, EncoderInfo, Error, ErrorKind, Model, Pooling, Result, Token};
use std::{
    cmp::Reverse,
    collections::VecDeque,
    mem,
    rc::Rc,
    sync::{
        Arc, OnceLock,
        atomic::{AtomicBool, Ordering},
    },
    time::{Duration, Instant},
};

/// How long a pass may take while texts are being generated, unless the engine's step time says so.
const USUAL_TIME: Duration = Duration::from_millis(50);
/// Tokens of such a pass as long as it is not known what one takes.
const UNKNOWN: usize = 64;
/// The share of the last pass in what is remembered of how long tokens take.
const NEW: f64 = 0.3;

/// Texts to be encoded.
pub(super) struct EncodeJob {
    pub(super) wanted: Wanted,
    /// Those whose tokens are known: all of them, unless they come in pairs.
    pub(super) texts: Vec<Vec<Token>>,
    pub(super) pairs: Option<Pairs>,
    pub(super) answer: EncodeAnswer,
    pub(super) is_cancelled: Arc<AtomicBool>,
    /// Its place in the queue, which it gives up when it is begun.
    pub(super) place: Option<Place>,
    pub(super) found: Vec<Vec<f32>>,
    /// Where in the request each of the texts is, once they are sorted; empty where they are not.
    pub(super) order: Vec<usize>,
    /// A pass that it shared has failed: it has passes of its own.
    pub(super) is_alone: bool,
}

/// Told the vectors, or the scores, of each text.
pub(super) type EncodeAnswer = Box<dyn FnOnce(Result<Vec<Vec<f32>>>) + Send>;

/// A query and documents, which are joined one by one when their turn comes: only the encoder knows how.
pub(super) struct Pairs {
    pub(super) query: String,
    pub(super) documents: Vec<String>,
}

/// What the numbers are to be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Wanted {
    Vectors,
    /// One score for each pair.
    Score,
    /// Scores of labels.
    Labels,
}

/// The encoder, and the texts that wait for it.
pub(super) struct Encodes {
    jobs: VecDeque<EncodeJob>,
    encoder: Option<Box<dyn Encoder>>,
    options: EncoderOptions,
    info: Arc<OnceLock<EncoderInfo>>,
    model: Rc<dyn Model>,
    shared: Arc<Shared>,
    time: Duration,
    /// Seconds that a token takes, of late.
    pace: Option<f64>,
}

impl Encodes {
    pub(super) fn new(
        model: Rc<dyn Model>,
        options: EncoderOptions,
        info: Arc<OnceLock<EncoderInfo>>,
        shared: Arc<Shared>,
        time: Option<Duration>,
    ) -> Self {
        let time = time.unwrap_or(USUAL_TIME);
        Self { jobs: VecDeque::new(), encoder: None, options, info, model, shared, time, pace: None }
    }

    pub(super) fn is_idle(&self) -> bool {
        self.jobs.is_empty()
    }

    /// Makes the encoder, where there is none.
    pub(super) fn prepare(&mut self) -> Result<()> {
        if self.encoder.is_none() {
            let encoder = self.model.encoder(&self.options)?;
            self.shared.set_encoder_interrupt(encoder.interrupt());
            // They are all alike.
            let _ = self.info.set(encoder.info().clone());
            self.encoder = Some(encoder);
        }
        Ok(())
    }

    /// Takes texts; what is wrong with them is said at once.
    pub(super) fn push(&mut self, job: EncodeJob) {
        match self.prepare().and_then(|()| self.check(&job)) {
            Ok(()) if job.count() == 0 => (job.answer)(Ok(Vec::new())),
            Ok(()) => self.jobs.push_back(job.by_length()),
            Err(error) => (job.answer)(Err(error)),
        }
    }

    fn check(&self, job: &EncodeJob) -> Result<()> {
        let info = self.info.get().expect("the encoder was made");
        let is_ranking = info.pooling == Pooling::Rank;
        let why = match job.wanted {
            Wanted::Vectors if is_ranking => "this model gives scores and no vectors: ask it to rerank or to classify",
            Wanted::Vectors if info.pooling == Pooling::None => {
                "without a pooling there is a vector for each token; make the engine's encoder with one, or encode by hand"
            }
            Wanted::Score | Wanted::Labels if !is_ranking => {
                "this model, or the pooling that was chosen, gives vectors and no scores: reranking and classifying need a model with \
                 a classification head and `Pooling::Rank`"
            }
            Wanted::Score if info.width != 1 => {
                "this model gives a score for each of its labels, and none for a pair of texts: classify"
            }
            _ => {
                let texts: Vec<_> = job.texts.iter().map(Vec::as_slice).collect();
                return info.check(&texts, self.model.info().vocab);
            }
        };
        Err(Error::unsupported(why))
    }

    /// Encodes about as many texts as fit one pass; fewer where texts are being generated meanwhile, whose readers wait for it. Says whether
    /// there are more.
    pub(super) fn turn(&mut self, is_any_running: bool) -> bool {
        self.jobs.retain(|job| !job.is_cancelled.load(Ordering::Acquire));
        if self.jobs.is_empty() {
            return false;
        }
        if let Err(error) = self.prepare() {
            self.end(&error);
            return false;
        }
        let most = if is_any_running { self.tokens_in_time() } else { usize::MAX };
        let pack = self.pack(most);
        let encoder = self.encoder.as_mut().expect("it was made");
        let jobs = &self.jobs;
        let texts: Vec<_> = pack
            .iter()
            .flat_map(|share| &jobs[share.job].texts[share.from..][..share.count])
            .map(Vec::as_slice)
            .collect();
        if texts.is_empty() {
            // What was to be packed is wrong, and has been told so.
            return !self.jobs.is_empty();
        }
        let (tokens, begun) = (texts.iter().map(|text| text.len()).sum(), Instant::now());
        let encoded = encoder.encode(&texts).and_then(|()| {
            let vectors = encoder.vectors();
            let missing = (0..texts.len()).find(|&text| vectors.vector(text).is_none());
            missing.map_or(Ok(()), |text| {
                let message = format!("the encoder gave no vector for text {text} of the {} of its pass", texts.len());
                Err(Error::new(ErrorKind::Runtime, message))
            })
        });
        match encoded {
            Ok(()) => {
                self.measured(tokens, begun.elapsed());
                self.deliver(&pack);
            }
            Err(error) => self.failed(&pack, &error),
        }
        !self.jobs.is_empty()
    }

    fn tokens_in_time(&self) -> usize {
        self.pace.map_or(UNKNOWN, |pace| (self.time.as_secs_f64() / pace) as usize)
    }

    fn measured(&mut self, tokens: usize, took: Duration) {
        // Never nothing: a clock may be coarse.
        let new = took.as_secs_f64().max(1e-9) / tokens as f64;
        self.pace = Some(self.pace.map_or(new, |pace| pace + NEW * (new - pace)));
    }

    /// What each job has in the next pass of at most so many tokens: as much as fits of the first one, and what others can add.
    fn pack(&mut self, most: usize) -> Vec<Share> {
        let Self { jobs, encoder, info, .. } = self;
        let info = info.get().expect("the encoder was made");
        let encoder = encoder.as_deref().expect("it was made");
        let (mut tokens, mut texts) = (0, 0);
        let (mut pack, mut wrong) = (Vec::new(), Vec::new());
        for (at, job) in jobs.iter_mut().enumerate() {
            if at > 0 && (job.is_alone || texts >= info.texts.max(1)) {
                break;
            }
            let from = job.found.len();
            let mut count = 0;
            while from + count < job.count() && texts < info.texts.max(1) {
                match job.length_of(from + count, encoder, info) {
                    // A text that is longer has a pass of its own.
                    Ok(length) if texts == 0 || tokens + length <= info.batch.min(most) => tokens += length,
                    Ok(_) => break,
                    Err(error) => {
                        wrong.push((at, error));
                        (texts, count) = (texts - count, 0);
                        break;
                    }
                }
                (texts, count) = (texts + 1, count + 1);
            }
            if count > 0 {
                job.place = None;
                pack.push(Share { job: at, from, count });
            }
            if job.is_alone && count > 0 {
                break;
            }
        }
        self.dismiss(&mut pack, wrong);
        pack
    }

    /// Tells jobs what is wrong with them, and takes them out.
    fn dismiss(&mut self, pack: &mut [Share], wrong: Vec<(usize, Error)>) {
        for (at, error) in wrong.into_iter().rev() {
            if let Some(job) = self.jobs.remove(at) {
                (job.answer)(Err(error));
            }
            pack.iter_mut().filter(|share| share.job > at).for_each(|share| share.job -= 1);
        }
    }

    fn deliver(&mut self, pack: &[Share]) {
        let vectors = self.encoder.as_deref().expect("it has encoded").vectors();
        let mut text = 0;
        for share in pack {
            let job = &mut self.jobs[share.job];
            for at in text..text + share.count {
                job.found.push(vectors.vector(at).unwrap_or_default().to_vec());
            }
            text += share.count;
        }
        for share in pack.iter().rev() {
            let job = &self.jobs[share.job];
            if job.found.len() == job.count()
                && let Some(job) = self.jobs.remove(share.job)
            {
                let (answer, found) = job.done();
                answer(Ok(found));
            }
        }
        // Whoever has many texts lets others go first the next time.
        if self.jobs.front().is_some_and(|job| !job.found.is_empty()) {
            self.jobs.rotate_left(1);
        }
    }

    /// A pass has failed. Where several shared it, or the encoder was lost, each is tried once more by itself.
    fn failed(&mut self, pack: &[Share], error: &Error) {
        let is_lost = error.kind() == ErrorKind::SessionLost;
        if is_lost {
            self.encoder = None;
        }
        let is_shared = pack.len() > 1;
        for share in pack.iter().rev() {
            let job = &mut self.jobs[share.job];
            if is_shared || (is_lost && !job.is_alone) {
                job.is_alone = true;
            } else if let Some(job) = self.jobs.remove(share.job) {
                (job.answer)(Err(copy_of(error)));
            }
        }
    }

    /// Ends all of them with this error.
    pub(super) fn end(&mut self, error: &Error) {
        for job in self.jobs.drain(..) {
            (job.answer)(Err(copy_of(error)));
        }
    }
}

/// Texts that one job has in a pass.
struct Share {
    job: usize,
    from: usize,
    count: usize,
}

impl EncodeJob {
    fn count(&self) -> usize {
        self.pairs.as_ref().map_or(self.texts.len(), |pairs| pairs.documents.len())
    }

    /// With its texts sorted, the longest first: those that share a pass are then about as long as each other, and need little padding
    /// where a runtime pads. Pairs are not known yet, and stay as they are.
    fn by_length(mut self) -> Self {
        self.order = (0..self.texts.len()).collect();
        self.order.sort_by_key(|&text| Reverse(self.texts[text].len()));
        self.texts = self.order.iter().map(|&text| mem::take(&mut self.texts[text])).collect();
        self
    }

    /// Whom to tell, and what was found, in the order of the request.
    fn done(self) -> (EncodeAnswer, Vec<Vec<f32>>) {
        let Self { answer, mut found, order, .. } = self;
        if !order.is_empty() {
            let mut in_order = vec![Vec::new(); found.len()];
            order.into_iter().zip(found).for_each(|(text, vector)| in_order[text] = vector);
            found = in_order;
        }
        (answer, found)
    }

    /// How many tokens text `at` has, which is encoded here if it is one of a pair.
    fn length_of(&mut self, at: usize, encoder: &dyn Encoder, info: &EncoderInfo) -> Result<usize> {
        if let Some(Pairs { query, documents }) = &self.pairs
            && self.texts.len() == at
        {
            let mut tokens = Vec::new();
            encoder.pair(query, &documents[at], &mut tokens)?;
            if tokens.len() > info.context {
                return Err(Error::invalid_input(format!(
                    "document {at} and the query together have {} tokens, and {} fit; shorten it or cut it in pieces",
                    tokens.len(),
                    info.context
                )));
            }
            self.texts.push(tokens);
        }
        Ok(self.texts[at].len())
    }
}

/// The same error once more, for another request.
pub(super) fn copy_of(error: &Error) -> Error {
    Error::new(error.kind(), error.to_string())
}
