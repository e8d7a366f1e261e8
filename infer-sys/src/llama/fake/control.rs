//! What the faked model is, and how a test steers it.

use std::cell::RefCell;
use std::collections::VecDeque;
use std::ffi::{CString, NulError};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

thread_local! {
    static NEXT: RefCell<Option<Arc<Shared>>> = const { RefCell::new(None) };
}

/// What the models that this thread loads are like.
#[derive(Clone, Debug)]
pub struct Script {
    pub(super) kind: Kind,
    pub(super) context_length: i32,
    pub(super) extra_tokens: i32,
    pub(super) width: i32,
    pub(super) class_outputs: u32,
    pub(super) class_labels: Vec<CString>,
    pub(super) metadata: Vec<(CString, CString)>,
    pub(super) chat_template: Option<CString>,
    pub(super) load_fault: Option<Fault>,
    pub(super) loading: Vec<f32>,
    pub(super) own_tree: bool,
}

/// The kinds of memory a faked model can have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A KV cache: sequences can be cut anywhere.
    Decoder,
    /// A state: sequences can only be removed as a whole.
    Recurrent,
    /// No memory at all: every pass stands alone.
    Encoder,
    /// A KV cache, and an encoder before it.
    EncoderDecoder,
}

/// How a call goes wrong.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Fault {
    /// It returns this as llama.cpp's result, having changed nothing; a line about it is logged in two fragments.
    Result(i32),
    /// It returns this as llama.cpp's result, after so many whole ubatches were done and stay.
    ResultAfter {
        /// llama.cpp's result.
        result: i32,
        /// Ubatches that stay in the memory.
        ubatches: usize,
    },
    /// A C++ exception came to the wall: the status is `INFER_LLAMA_EXCEPTION`, the message this.
    Exception(String),
    /// It runs until the context's abort callback says to stop, and then returns 2. Without a callback: 2 at once.
    UntilAborted,
}

/// What asking for a row gives.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(usize)]
pub enum Rows {
    /// The row.
    Given,
    /// `INFER_LLAMA_FAILED`, as for a position without a row.
    Failed,
    /// `INFER_LLAMA_OK` with a NULL pointer, which no door should do.
    Null,
    /// A length of one less, which no door should do.
    Short,
}

impl Default for Script {
    fn default() -> Self {
        Self {
            kind: Kind::Decoder,
            context_length: 512,
            extra_tokens: 0,
            width: 8,
            class_outputs: 1,
            class_labels: Vec::new(),
            metadata: vec![(c"general.architecture".to_owned(), c"fake".to_owned())],
            chat_template: None,
            load_fault: None,
            loading: vec![0.0, 0.5, 1.0],
            own_tree: true,
        }
    }
}

impl Script {
    /// A decoder with 512 positions, 259 tokens and embeddings of 8 numbers.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// The kind of memory.
    #[must_use]
    pub fn with_kind(mut self, kind: Kind) -> Self {
        self.kind = kind;
        self
    }

    /// The context length the model was trained with; at least 1.
    #[must_use]
    pub fn with_context_length(mut self, positions: i32) -> Self {
        self.context_length = positions.max(1);
        self
    }

    /// Tokens beyond the first 259.
    #[must_use]
    pub fn with_extra_tokens(mut self, tokens: u16) -> Self {
        self.extra_tokens = tokens.into();
        self
    }

    /// Numbers in an embedding; at least 1.
    #[must_use]
    pub fn with_width(mut self, numbers: u16) -> Self {
        self.width = i32::from(numbers.max(1));
        self
    }

    /// Numbers in a rank-pooled result; at least 1.
    #[must_use]
    pub fn with_class_outputs(mut self, numbers: u32) -> Self {
        self.class_outputs = numbers.max(1);
        self
    }

    /// What the numbers of a rank-pooled result are called, and hence how many there are.
    ///
    /// # Errors
    ///
    /// A label has a NUL inside.
    pub fn with_class_labels(mut self, labels: &[&str]) -> Result<Self, NulError> {
        self.class_labels = labels.iter().map(|label| CString::new(*label)).collect::<Result<_, _>>()?;
        Ok(self.with_class_outputs(labels.len() as u32))
    }

    /// One more pair of metadata.
    ///
    /// # Errors
    ///
    /// A string has a NUL inside.
    pub fn with_metadata(mut self, key: &str, value: &str) -> Result<Self, NulError> {
        self.metadata.push((CString::new(key)?, CString::new(value)?));
        Ok(self)
    }

    /// The default chat template.
    ///
    /// # Errors
    ///
    /// The template has a NUL inside.
    pub fn with_chat_template(mut self, template: &str) -> Result<Self, NulError> {
        self.chat_template = Some(CString::new(template)?);
        Ok(self)
    }

    /// Loading fails: with `INFER_LLAMA_FAILED` and logged lines, or with the exception.
    #[must_use]
    pub fn with_load_fault(mut self, fault: Fault) -> Self {
        self.load_fault = Some(fault);
        self
    }

    /// The values the progress callback is called with while loading.
    #[must_use]
    pub fn with_loading(mut self, progress: Vec<f32>) -> Self {
        self.loading = progress;
        self
    }

    /// Whether the door was built with llama.cpp's own tree; without it, what needs that is `INFER_LLAMA_UNSUPPORTED`.
    #[must_use]
    pub fn with_own_tree(mut self, own_tree: bool) -> Self {
        self.own_tree = own_tree;
        self
    }

    /// Has this thread's next loads, until another script is installed, follow this one. The handle steers all models so loaded, from
    /// any thread.
    #[must_use = "the handle steers the models; without one, `let _ =` says so"]
    pub fn install(self) -> Control {
        let shared = Arc::new(Shared::new(self));
        NEXT.with_borrow_mut(|next| *next = Some(Arc::clone(&shared)));
        Control { shared }
    }
}

/// Steers the models loaded under one script.
#[derive(Clone, Debug)]
pub struct Control {
    shared: Arc<Shared>,
}

impl Control {
    /// Has one pass to come go wrong: each call adds to a queue that every `decode` and `encode` takes one from.
    pub fn plan(&self, fault: Fault) {
        self.plan_all([Some(fault)]);
    }

    /// Plans several passes at once; `None` is one that goes well.
    pub fn plan_all(&self, faults: impl IntoIterator<Item = Option<Fault>>) {
        let mut plan = self.shared.plan();
        plan.extend(faults);
        self.shared.planned.store(!plan.is_empty(), Ordering::Release);
    }

    /// Has the next `memory_update` fail, as one that cannot move positions does.
    pub fn fail_update(&self) {
        self.shared.failing_update.store(true, Ordering::Release);
    }

    /// What asking for logits or embeddings gives from now on.
    pub fn set_rows(&self, rows: Rows) {
        self.shared.rows.store(rows as usize, Ordering::Release);
    }

    /// What there is now that was made and not yet freed.
    #[must_use]
    pub fn live(&self) -> Live {
        let count = |counter: &AtomicUsize| counter.load(Ordering::Acquire);
        let live = &self.shared.live;
        Live { models: count(&live.models), contexts: count(&live.contexts), adapters: count(&live.adapters) }
    }

    /// Passes that were run so far, failed ones included.
    #[must_use]
    pub fn passes(&self) -> usize {
        self.shared.passes.load(Ordering::Acquire)
    }

    /// Breaches of the door's contract that were seen, such as a model freed before its contexts. Empty for a right caller.
    #[must_use]
    pub fn breaches(&self) -> Vec<&'static str> {
        self.shared.breaches.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

/// Numbers of objects that are alive.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Live {
    /// Models.
    pub models: usize,
    /// Contexts.
    pub contexts: usize,
    /// Adapters.
    pub adapters: usize,
}

/// What a model and its contexts look up in every call.
#[derive(Debug)]
pub(super) struct Shared {
    pub(super) script: Script,
    /// Whether the plan has anything, so that a pass need not lock to see that it has not.
    planned: AtomicBool,
    plan: Mutex<VecDeque<Option<Fault>>>,
    rows: AtomicUsize,
    failing_update: AtomicBool,
    passes: AtomicUsize,
    pub(super) live: Counters,
    breaches: Mutex<Vec<&'static str>>,
}

#[derive(Debug, Default)]
pub(super) struct Counters {
    pub(super) models: AtomicUsize,
    pub(super) contexts: AtomicUsize,
    pub(super) adapters: AtomicUsize,
}

impl Shared {
    fn new(script: Script) -> Self {
        Self {
            script,
            planned: AtomicBool::new(false),
            plan: Mutex::default(),
            rows: AtomicUsize::new(Rows::Given as usize),
            failing_update: AtomicBool::new(false),
            passes: AtomicUsize::new(0),
            live: Counters::default(),
            breaches: Mutex::default(),
        }
    }

    /// The script of this thread's next load.
    pub(super) fn next() -> Arc<Self> {
        NEXT.with_borrow(|next| next.clone()).unwrap_or_else(|| Arc::new(Self::new(Script::default())))
    }

    /// Counts a pass, and takes its fault from the plan.
    pub(super) fn begin_pass(&self) -> Option<Fault> {
        self.passes.fetch_add(1, Ordering::AcqRel);
        if !self.planned.load(Ordering::Acquire) {
            return None;
        }
        let mut plan = self.plan();
        let fault = plan.pop_front().flatten();
        self.planned.store(!plan.is_empty(), Ordering::Release);
        fault
    }

    /// Whether this `memory_update` is the one that fails.
    pub(super) fn takes_failing_update(&self) -> bool {
        self.failing_update.swap(false, Ordering::AcqRel)
    }

    pub(super) fn rows(&self) -> Rows {
        match self.rows.load(Ordering::Acquire) {
            rows if rows == Rows::Failed as usize => Rows::Failed,
            rows if rows == Rows::Null as usize => Rows::Null,
            rows if rows == Rows::Short as usize => Rows::Short,
            _ => Rows::Given,
        }
    }

    pub(super) fn breach(&self, what: &'static str) {
        self.breaches.lock().unwrap_or_else(PoisonError::into_inner).push(what);
    }

    fn plan(&self) -> MutexGuard<'_, VecDeque<Option<Fault>>> {
        self.plan.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
