use crate::{Capabilities, ErrorKind, Interrupt, KvLayout, Special, Token, Tokenizer, testing::ByteTokenizer};
use std::{fmt, sync::Arc};

/// What a scripted session is like: its size, its abilities, what it answers, and what goes wrong.
///
/// Plain data with one exception, the [hook](Self::with_hook). Cloning is cheap, and a script may cross threads.
#[derive(Clone)]
pub struct Script {
    pub(super) context: usize,
    pub(super) batch: usize,
    pub(super) cells: Option<usize>,
    pub(super) layout: KvLayout,
    pub(super) cuts: Cuts,
    pub(super) capabilities: Capabilities,
    pub(super) seed: u64,
    pub(super) lines: Vec<Line>,
    pub(super) labels: Vec<String>,
    pub(super) faults: Vec<(u64, Fault)>,
    pub(super) hook: Option<Hook>,
    pub(super) chat_template: String,
}

pub(super) type Hook = Arc<dyn Fn(&Step<'_>) -> Option<Fault> + Send + Sync>;

/// What is said after what.
#[derive(Clone)]
pub(super) struct Line {
    after: Vec<Token>,
    then: Vec<Token>,
}

/// At which lengths a sequence can be cut or forked. Its own length and 0 always work.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Cuts {
    /// At every length.
    #[default]
    Anywhere,
    /// Nowhere, as in a recurrent model, which has one state and no way back. A pass that fails half-way leaves the
    /// sequences of its batch spent.
    Nowhere,
    /// As long as the sequence has not outgrown a sliding window of this many positions: from then on the positions
    /// that a shorter sequence would need are gone.
    Window(usize),
}

impl Cuts {
    pub(super) fn allow(self, held: usize, len: usize) -> bool {
        len == held
            || len == 0
            || match self {
                Self::Anywhere => true,
                Self::Nowhere => false,
                Self::Window(window) => held <= window,
            }
    }
}

/// How a pass goes wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Fault {
    /// The pass ends with an error of this kind, and what it had computed is taken back. Where the script's [`Cuts`] say
    /// that there is no way back and something had been computed, it is as [`Spend`](Self::Spend).
    Error(ErrorKind),
    /// The pass ends with an error of this kind, and the sequences of its batch are spent.
    Spend(ErrorKind),
    /// The pass ends with [`SessionLost`](ErrorKind::SessionLost), and so does every later call.
    Lose,
}

/// A moment in a pass, as the [hook](Script::with_hook) sees it.
#[derive(Debug)]
#[non_exhaustive]
pub struct Step<'a> {
    /// How many sessions and encoders the model had made before this one.
    pub session: u64,
    /// How many passes the session or encoder had begun before this one. A batch that was refused is not a pass.
    pub pass: u64,
    /// How many entries of the batch, or texts of the pass, have been computed: from 0 to [`entries`](Self::entries), both included.
    pub done: usize,
    /// How many there are.
    pub entries: usize,
    /// The interrupt: raised in the hook, it stops this very pass at this very moment.
    pub interrupt: &'a Interrupt,
}

impl Script {
    /// A context of 2,048, batches of 512, as many cells as all sequences can use, every ability, nothing said and
    /// nothing going wrong.
    #[must_use]
    pub fn new() -> Self {
        let capabilities = Capabilities {
            truncate: true,
            fork: true,
            logits: true,
            embedding: true,
            score: true,
            save: true,
            shift: true,
            device_sampling: false,
        };
        Self {
            context: 2048,
            batch: 512,
            cells: None,
            layout: KvLayout::Unified,
            cuts: Cuts::default(),
            capabilities,
            seed: 0,
            lines: Vec::new(),
            labels: Vec::new(),
            faults: Vec::new(),
            hook: None,
            chat_template: super::model::CHAT_TEMPLATE.to_owned(),
        }
    }

    /// The chat template of the model; without it, a plain one that knows no tools.
    #[must_use]
    pub fn with_chat_template(mut self, source: impl Into<String>) -> Self {
        self.chat_template = source.into();
        self
    }

    /// Positions a sequence can have, unless the session's options say otherwise.
    #[must_use]
    pub fn with_context(mut self, context: usize) -> Self {
        self.context = context;
        self
    }

    /// Tokens a batch can hold, unless the session's options say otherwise.
    #[must_use]
    pub fn with_batch(mut self, batch: usize) -> Self {
        self.batch = batch;
        self
    }

    /// KV cells there are for all sequences together, unless the session's options say otherwise: fewer than they can use, and a pass may end with
    /// [`OutOfCells`](ErrorKind::OutOfCells).
    #[must_use]
    pub fn with_cells(mut self, cells: usize) -> Self {
        self.cells = Some(cells);
        self
    }

    /// How the cells of several sequences lie, unless the session's options say otherwise: [`Unified`](KvLayout::Unified) by default.
    #[must_use]
    pub fn with_layout(mut self, layout: KvLayout) -> Self {
        self.layout = layout;
        self
    }

    /// At which lengths sequences can be cut and forked.
    #[must_use]
    pub fn with_cuts(mut self, cuts: Cuts) -> Self {
        self.cuts = cuts;
        self
    }

    /// What the session is able to do. Whether it can cut and fork at every length follows from the [`Cuts`].
    #[must_use]
    pub fn with_capabilities(mut self, capabilities: Capabilities) -> Self {
        self.capabilities = capabilities;
        self
    }

    /// Another model: other logits for the same tokens, and states of the one are refused by the other.
    #[must_use]
    pub fn with_seed(mut self, seed: u64) -> Self {
        self.seed = seed;
        self
    }

    /// What the model says: wherever a sequence ends with `after`, or with `after` and a beginning of `then`, the next
    /// byte of `then` is by far the most probable token, and [`EOS`](super::EOS) after the last, unless `then` itself
    /// ends with a token that ends a generation. Control tokens may be written in both. Of several lines that fit the
    /// first one counts.
    #[must_use]
    pub fn with_line(mut self, after: &str, then: &str) -> Self {
        let tokenizer = ByteTokenizer::default();
        let encode = |text: &str| {
            let mut tokens = Vec::new();
            tokenizer.encode(text, Special::PARSE, &mut tokens).expect("bytes always encode");
            tokens
        };
        let (after, mut then) = (encode(after), encode(then));
        if !then.last().is_some_and(|&token| tokenizer.vocab().is_end(token)) {
            then.push(super::EOS);
        }
        self.lines.push(Line { after, then });
        self
    }

    /// What an encoder with [`Pooling::Rank`](crate::Pooling::Rank) gives the scores of.
    #[must_use]
    pub fn with_labels<L: Into<String>>(mut self, labels: impl IntoIterator<Item = L>) -> Self {
        self.labels = labels.into_iter().map(Into::into).collect();
        self
    }

    /// Pass `pass` of each session or encoder, counted from 0, goes wrong half-way: when half its entries or texts, rounded up, are
    /// computed.
    #[must_use]
    pub fn with_fault(mut self, pass: u64, fault: Fault) -> Self {
        self.faults.push((pass, fault));
        self
    }

    /// A function that is called before the first entry of every pass is computed and after each one. What it answers
    /// goes wrong there and then. It may also wait (a slow pass), or raise the interrupt.
    #[must_use]
    pub fn with_hook(mut self, hook: impl Fn(&Step<'_>) -> Option<Fault> + Send + Sync + 'static) -> Self {
        self.hook = Some(Arc::new(hook));
        self
    }

    /// The fault of this moment, if there is to be one.
    pub(super) fn fault(&self, step: &Step<'_>) -> Option<Fault> {
        let by_hook = self.hook.as_ref().and_then(|hook| hook(step));
        let half = step.done == step.entries.div_ceil(2);
        by_hook
            .or_else(|| half.then(|| self.faults.iter().find(|(pass, _)| *pass == step.pass))?.map(|(_, fault)| *fault))
    }
}

impl Default for Script {
    fn default() -> Self {
        Self::new()
    }
}

impl fmt::Debug for Script {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Script")
            .field("context", &self.context)
            .field("batch", &self.batch)
            .field("cells", &self.cells)
            .field("layout", &self.layout)
            .field("cuts", &self.cuts)
            .field("faults", &self.faults)
            .finish_non_exhaustive()
    }
}

impl Line {
    /// What comes next where `held` is the end of what was said, read from its end.
    pub(super) fn next(&self, held: impl DoubleEndedIterator<Item = Token> + Clone) -> Option<Token> {
        (0..self.then.len())
            .rev()
            .find(|&said| {
                let mut back = held.clone().rev();
                self.then[..said].iter().rev().chain(self.after.iter().rev()).all(|token| back.next() == Some(*token))
            })
            .map(|said| self.then[said])
    }
}
