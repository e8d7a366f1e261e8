//! What lives on the engine's thread: the model, the scheduler with its session, the encoder.

use super::{
    encode::{EncodeJob, Encodes},
    job::{Job, ScoreJob},
    open::{Factory, Opener, Progress},
    scheduler::Scheduler,
    settings::Settings,
    shared::Shared,
};
use crate::{EncoderOptions, Turn, panics};
use infer_core::{
    Encoder, EncoderInfo, Error, ErrorKind, Model, ModelInfo, Result, Session, SessionOptions, Tokenizer,
};
use std::{
    rc::Rc,
    sync::{Arc, OnceLock},
};

/// Everything that the thread needs to begin.
pub(super) struct Plan {
    pub(super) opener: Opener,
    pub(super) progress: Option<Progress>,
    pub(super) factory: Factory,
    pub(super) settings: Settings,
    /// `None`: one is made when it is first needed.
    pub(super) encoder: Option<EncoderOptions>,
    pub(super) encoder_default: EncoderOptions,
    pub(super) encoder_info: Arc<OnceLock<EncoderInfo>>,
    pub(super) shared: Arc<Shared>,
}

/// The value of the engine's worker.
pub(super) struct Core {
    /// `None` for a model that does not go from one token to the next.
    scheduler: Option<Scheduler>,
    /// Why there is none.
    pub(super) refused: Option<Error>,
    encodes: Encodes,
    shared: Arc<Shared>,
    pub(super) info: Arc<ModelInfo>,
    pub(super) tokenizer: Arc<dyn Tokenizer>,
}

impl Core {
    pub(super) fn open(plan: Plan) -> Result<Self> {
        let Plan { opener, progress, mut factory, settings, encoder, encoder_default, encoder_info, shared } = plan;
        let model: Rc<dyn Model> = Rc::from(opener.open(progress)?);
        let (info, tokenizer) = (model.info().clone(), model.tokenizer());
        let is_wanted = encoder.is_some();
        let options = encoder.unwrap_or(encoder_default);
        let mut encodes = Encodes::new(model.clone(), options, encoder_info, shared.clone(), settings.step_time);
        let make = Box::new(move |model: &dyn Model| factory.session(model));
        let (scheduler, refused) = match Scheduler::new(Box::new(OneModel(model)), make, settings, shared.clone()) {
            Ok(scheduler) => (Some(scheduler), None),
            Err(error) if error.kind() == ErrorKind::Unsupported => (None, Some(error)),
            Err(error) => return Err(error),
        };
        if let Err(error) = if is_wanted || refused.is_some() { encodes.prepare() } else { Ok(()) } {
            // Of a model that does neither, what it says of a session says more.
            return Err(refused.unwrap_or(error));
        }
        Ok(Self { scheduler, refused, encodes, shared, info, tokenizer })
    }

    pub(super) fn generate(&mut self, job: Job) {
        self.watched(|core| {
            if let Some(scheduler) = &mut core.scheduler {
                scheduler.push(job);
            }
        });
    }

    pub(super) fn score(&mut self, job: ScoreJob) {
        self.watched(|core| {
            if let Some(scheduler) = &mut core.scheduler {
                scheduler.push_score(job);
            }
        });
    }

    pub(super) fn encode(&mut self, job: EncodeJob) {
        self.watched(|core| core.encodes.push(job));
    }

    /// A step of the scheduler, then a pass of the encoder.
    pub(super) fn turn(&mut self) -> Turn {
        self.watched(Self::step)
    }

    /// Does something in which others' code runs.
    ///
    /// # Panics
    /// With whatever panicked in it, when all requests have been told: what is left of the value cannot be used.
    fn watched<R>(&mut self, work: impl FnOnce(&mut Self) -> R) -> R {
        panics::catch(|| work(self)).unwrap_or_else(|words| {
            let error = Error::new(ErrorKind::Panicked, format!("the engine {words}; it has ended"));
            // It may be half-way through anything.
            let _ = panics::catch(|| {
                if let Some(scheduler) = &mut self.scheduler {
                    scheduler.stop(&error);
                }
                self.encodes.end(&error);
            });
            panics::go_on(words)
        })
    }

    fn step(&mut self) -> Turn {
        let turn = self.scheduler.as_mut().map_or(Turn::Wait, Scheduler::turn);
        let is_any_running = self.scheduler.as_ref().is_some_and(|scheduler| !scheduler.is_idle());
        let is_more = !self.encodes.is_idle() && !self.shared.is_stopping() && self.encodes.turn(is_any_running);
        if is_more { Turn::Again } else { turn }
    }
}

/// The model, which makes sessions for the scheduler and encoders beside it.
struct OneModel(Rc<dyn Model>);

impl Model for OneModel {
    fn info(&self) -> &Arc<ModelInfo> {
        self.0.info()
    }

    fn tokenizer(&self) -> Arc<dyn Tokenizer> {
        self.0.tokenizer()
    }

    fn session(&self, options: &SessionOptions) -> Result<Box<dyn Session>> {
        self.0.session(options)
    }

    fn encoder(&self, options: &EncoderOptions) -> Result<Box<dyn Encoder>> {
        self.0.encoder(options)
    }
}
