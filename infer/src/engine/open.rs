//! The model and its sessions, as the engine's thread opens them.

use crate::{ModelSource, SessionOptions};
use infer_core::{Capabilities, Error, ErrorKind, KvLayout, Limits, Model, Result, Session};
use std::{
    ops::ControlFlow,
    sync::{Arc, OnceLock},
};

/// Sequences a session can have at most.
pub(super) const MOST_SEQUENCES: usize = 256;
/// Positions a sequence has at most where nothing is said: few models need more, and cells take memory whether they are used or not.
pub(super) const USUAL_CONTEXT: usize = 4096;
/// What a context that nobody has chosen is not made smaller than.
const LEAST_CONTEXT: usize = 512;

/// Where the model comes from.
pub(super) enum Opener {
    Source(ModelSource),
    Function(Box<dyn FnOnce() -> Result<Box<dyn Model>> + Send>),
}

/// Told how much of the model is loaded.
pub(super) type Progress = Box<dyn FnMut(f32) -> ControlFlow<()> + Send>;
/// Makes a session of a model.
pub(super) type MakeSession = Box<dyn FnMut(&dyn Model, &SessionOptions) -> Result<Box<dyn Session>> + Send>;

impl Opener {
    pub(super) fn open(self, progress: Option<Progress>) -> Result<Box<dyn Model>> {
        match (self, progress) {
            (Self::Source(source), Some(mut progress)) => source.open_watched(&mut *progress),
            (Self::Source(source), None) => source.open(),
            (Self::Function(open), _) => open(),
        }
    }
}

/// What of a session is chosen, and what is left to the model and the memory.
#[derive(Clone, Debug)]
pub(super) struct Shape {
    /// Threads, adapters, tokens a pass.
    pub(super) common: SessionOptions,
    /// Sequences that run at once.
    pub(super) sequences: usize,
    /// Sequences that the prefix cache has beside them, where they share their cells.
    pub(super) cached: usize,
    pub(super) context: Option<usize>,
    pub(super) layout: Option<KvLayout>,
    pub(super) cells: Option<usize>,
}

/// What is known of the sessions that an engine makes, which are all alike.
#[derive(Clone, Debug)]
pub(super) struct Made {
    pub(super) limits: Limits,
    pub(super) capabilities: Capabilities,
    /// Cells there are; 0 where a sequence of any length takes one.
    pub(super) cells: usize,
    pub(super) layout: Option<KvLayout>,
}

/// Makes the engine's sessions: the first one as large as fits, and those that replace it as that one was.
pub(super) struct Factory {
    pub(super) make: MakeSession,
    pub(super) shape: Shape,
    pub(super) fitted: Option<SessionOptions>,
    pub(super) made: Arc<OnceLock<Made>>,
}

impl Factory {
    pub(super) fn session(&mut self, model: &dyn Model) -> Result<Box<dyn Session>> {
        if let Some(options) = &self.fitted {
            return (self.make)(model, options);
        }
        let (session, options) = self.first(model)?;
        let (usage, limits) = (session.usage(), session.limits());
        let cells = usage.cells + usage.cells_free;
        let made = Made {
            limits: Limits::new(limits.context, limits.batch, self.shape.sequences.min(limits.sequences), limits.vocab),
            capabilities: session.capabilities().clone(),
            // A recurrent model has one state a sequence, which takes any number of tokens.
            cells: if cells > limits.sequences { cells } else { 0 },
            layout: options.layout,
        };
        // There is nothing in it: sessions are made once before any is replaced.
        let _ = self.made.set(made);
        self.fitted = Some(options);
        Ok(session)
    }

    fn first(&mut self, model: &dyn Model) -> Result<(Box<dyn Session>, SessionOptions)> {
        let layouts: &[_] = match (self.shape.layout, self.shape.cells) {
            (Some(layout), _) => &[Some(layout)],
            // What a backend has no layouts for it lays out as it likes.
            (None, None) => &[Some(KvLayout::Split), None],
            // A number of cells for all says that they are to be shared.
            (None, Some(_)) => &[Some(KvLayout::Unified), None],
        };
        let mut refused = None;
        for &layout in layouts {
            match self.fitting(model, layout) {
                Err(error) if error.kind() == ErrorKind::Unsupported => refused = refused.or(Some(error)),
                made => return made,
            }
        }
        Err(refused.expect("there is a layout to be tried"))
    }

    /// A session with this layout: as it was chosen, or where nothing was, as much smaller as it takes to fit the memory.
    fn fitting(&mut self, model: &dyn Model, layout: Option<KvLayout>) -> Result<(Box<dyn Session>, SessionOptions)> {
        let mut options = self.shape.options(model, layout)?;
        loop {
            let error = match (self.make)(model, &options) {
                Err(error) if error.kind() == ErrorKind::OutOfMemory => error,
                Err(error) => return Err(error),
                Ok(session) => return Ok((session, options)),
            };
            if !self.shape.shrink(&mut options) {
                return Err(error);
            }
            let (context, cells) = (options.context, options.cells);
            tracing::warn!(%error, context, cells, "the engine's session does not fit the memory, a smaller one is tried");
        }
    }
}

impl Shape {
    fn options(&self, model: &dyn Model, layout: Option<KvLayout>) -> Result<SessionOptions> {
        let trained = Some(model.info().context).filter(|&context| context > 0);
        let context = match self.context {
            Some(0) => trained.unwrap_or(USUAL_CONTEXT),
            Some(context) => context,
            None => trained.unwrap_or(USUAL_CONTEXT).min(USUAL_CONTEXT),
        };
        let mut options = self.common.clone().with_context(context);
        options.layout = layout;
        options.sequences = self.sequences;
        options.cells = self.cells;
        if layout == Some(KvLayout::Unified) {
            options.sequences = self.sequences.max(self.sequences.saturating_add(self.cached).min(MOST_SEQUENCES));
            if self.cells.is_none() {
                // Texts are seldom all as long as they may be; where they are, the youngest waits.
                let half = context.checked_mul(self.sequences.div_ceil(2)).ok_or_else(|| {
                    Error::invalid_input(format!(
                        "{} sequences of {context} positions are more cells than can be counted",
                        self.sequences
                    ))
                })?;
                options.cells = Some(half);
            }
        }
        Ok(options)
    }

    /// Halves what was not chosen. `false` where everything was, or is small already.
    fn shrink(&self, options: &mut SessionOptions) -> bool {
        let Some(context) = options.context else { return false };
        if let (None, Some(cells)) = (self.cells, options.cells)
            && cells > context
        {
            options.cells = Some((cells / 2).max(context));
            return true;
        }
        if self.context.is_some() || context / 2 < LEAST_CONTEXT {
            return false;
        }
        options.context = Some(context / 2);
        if self.cells.is_none() && options.cells.is_some() {
            options.cells = options.context;
        }
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use infer_core::testing::{Script, ScriptedModel};

    fn shape() -> Shape {
        Shape { common: SessionOptions::new(), sequences: 8, cached: 8, context: None, layout: None, cells: None }
    }

    /// What sessions are asked for when no more than so many cells fit, and what is made in the end.
    fn made(shape: Shape, fit: usize) -> (Vec<(usize, Option<usize>)>, Result<SessionOptions>) {
        let model = ScriptedModel::new(Script::new().with_context(8192));
        let (asked, tell) = std::sync::mpsc::channel();
        let make: MakeSession = Box::new(move |model, options| {
            let cells = options.cells.unwrap_or(options.context.unwrap() * options.sequences);
            asked.send((options.context.unwrap(), options.cells)).unwrap();
            if cells > fit { Err(ErrorKind::OutOfMemory.into()) } else { model.session(options) }
        });
        let mut factory = Factory { make, shape, fitted: None, made: Arc::default() };
        let made = factory.session(&model).map(|_| factory.fitted.clone().unwrap());
        (tell.try_iter().collect(), made)
    }

    #[test]
    fn what_nobody_chose_is_made_to_fit() {
        let (asked, options) = made(shape(), 1 << 20);
        let options = options.unwrap();
        assert_eq!((asked.len(), options.context, options.sequences), (1, Some(4096), 8));
        assert_eq!((options.cells, options.layout), (None, Some(KvLayout::Split)));
        let (asked, options) = made(shape(), 8 * 1024);
        assert_eq!(asked, [(4096, None), (2048, None), (1024, None)]);
        assert_eq!(options.unwrap().sequences, 8, "each of them would cost a whole context");
    }

    #[test]
    fn shared_cells_that_nobody_chose_are_made_to_fit() {
        let shape = || Shape { layout: Some(KvLayout::Unified), ..shape() };
        let (asked, options) = made(shape(), 1 << 20);
        let options = options.unwrap();
        assert_eq!((asked.len(), options.context, options.sequences), (1, Some(4096), 16));
        assert_eq!((options.cells, options.layout), (Some(16_384), Some(KvLayout::Unified)));
        let (asked, options) = made(shape(), 2048);
        let cells = [16_384, 8192, 4096, 2048].map(Some);
        assert_eq!(asked, [(4096, cells[0]), (4096, cells[1]), (4096, cells[2]), (2048, cells[3])]);
        assert_eq!(options.unwrap().cells, Some(2048));
        let (asked, options) = made(shape(), 100);
        assert_eq!((asked.last(), options.unwrap_err().kind()), (Some(&(512, Some(512))), ErrorKind::OutOfMemory));
    }

    #[test]
    fn what_was_chosen_is_made_or_refused() {
        let (asked, options) = made(Shape { context: Some(4000), cells: Some(5000), ..shape() }, 4999);
        assert_eq!((asked, options.unwrap_err().kind()), (vec![(4000, Some(5000))], ErrorKind::OutOfMemory));
        let unified = || Shape { layout: Some(KvLayout::Unified), ..shape() };
        let (asked, _) = made(Shape { context: Some(0), ..unified() }, 1 << 20);
        assert_eq!(asked, [(8192, Some(4 * 8192))]);
        let (_, options) = made(Shape { sequences: 250, ..unified() }, 1 << 30);
        assert_eq!(options.unwrap().sequences, 256);
        for cached in [0, 64] {
            let error = made(Shape { sequences: usize::MAX, cached, ..unified() }, 1).1.unwrap_err();
            assert_eq!(error.kind(), ErrorKind::InvalidInput);
        }
    }
}
