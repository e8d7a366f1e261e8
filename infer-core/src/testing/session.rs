use crate::{
    Batch, Capabilities, Entry, Error, ErrorKind, Interrupt, Limits, ModelInfo, OpenOptions, Outputs, Result, Results,
    Sampling, Seats, Sequence, Session, Slots, Token, Usage, Vocab, Want,
    testing::{
        Cuts, Fault, Script, Step,
        adapters::Adapters,
        cache::{Cache, mix},
        state::{self, Saved},
    },
};
use std::{
    fmt,
    io::{Read, Write},
    marker::PhantomData,
    ops::Range,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
};

/// Tokens that there is room for from the start, so that a step does not allocate before a sequence is that long.
pub(super) const ROOM: usize = 1024;
/// Width of the hidden state.
pub(super) const WIDTH: usize = 64;

/// The session of a [`ScriptedModel`](super::ScriptedModel). See the [module](super).
pub struct Scripted {
    script: Script,
    number: u64,
    info: Arc<ModelInfo>,
    vocab: Arc<Vocab>,
    limits: Limits,
    capabilities: Capabilities,
    slots: Slots,
    cache: Cache,
    seats: Seats,
    adapters: Adapters,
    /// Slot → the adapter its sequence is computed with.
    adapted: Box<[Option<usize>]>,
    results: Results,
    /// Rows of logits that the last pass computed.
    logits: Vec<f32>,
    passes: u64,
    lost: bool,
    raised: Arc<AtomicBool>,
    interrupt: Interrupt,
    /// Sessions of native runtimes may not be sent; what passes its tests with this one must do without too.
    not_send: PhantomData<*const ()>,
}

impl Scripted {
    pub(super) fn new(
        script: Script,
        info: Arc<ModelInfo>,
        vocab: Arc<Vocab>,
        limits: Limits,
        adapters: Adapters,
        cells: usize,
        number: u64,
    ) -> Self {
        let mut capabilities = script.capabilities.clone();
        capabilities.truncate = script.cuts == Cuts::Anywhere;
        capabilities.fork = capabilities.truncate;
        let raised = Arc::new(AtomicBool::new(false));
        let flag = raised.clone();
        Self {
            number,
            slots: Slots::new(u32::try_from(limits.sequences).expect("the model has checked it")),
            cache: Cache::new(limits.sequences, limits.context, cells, script.layout),
            seats: Seats::new(limits.sequences),
            adapted: (0..limits.sequences).map(|_| None).collect(),
            adapters,
            results: Results::default(),
            logits: Vec::new(),
            passes: 0,
            lost: false,
            raised,
            interrupt: Interrupt::new(move |up| flag.store(up, Ordering::Release)),
            not_send: PhantomData,
            script,
            info,
            vocab,
            limits,
            capabilities,
        }
    }

    /// What every `&mut` method does first: outputs end, dropped sequences are cleared away.
    fn begin(&mut self) -> Result<()> {
        if self.lost {
            return Err(ErrorKind::SessionLost.into());
        }
        self.results.clear();
        self.logits.clear();
        let Self { slots, cache, seats, .. } = self;
        slots.reap(|slot| {
            cache.truncate(slot, 0);
            seats.clear(slot);
        });
        Ok(())
    }

    /// The slot of a sequence that may be cut to, or forked at, `len`.
    fn cut(&self, seq: &Sequence, len: usize) -> Result<u32> {
        let slot = self.slots.slot(seq)?;
        let held = self.slots.check_cut(slot, len)?;
        if !self.script.cuts.allow(held, len) {
            return Err(Error::unsupported(format!(
                "this model cannot go back from {held} positions to {len}; compute the sequence again"
            )));
        }
        Ok(slot)
    }

    fn check_interrupt(&self) -> Result<()> {
        if self.raised.load(Ordering::Acquire) { Err(ErrorKind::Cancelled.into()) } else { Ok(()) }
    }

    fn check_save(&self) -> Result<()> {
        if self.capabilities.save { Ok(()) } else { Err(Error::unsupported("this session cannot save sequences")) }
    }

    /// Computes the batch entry by entry, until it is done or something goes wrong.
    fn pass(&mut self, batch: &Batch) -> Result<(), (usize, Fault)> {
        let pass = self.passes;
        self.passes += 1;
        let entries = batch.len();
        for done in 0..=entries {
            let step = Step { session: self.number, pass, done, entries, interrupt: &self.interrupt };
            if let Some(fault) = self.script.fault(&step) {
                return Err((done, fault));
            }
            if self.raised.load(Ordering::Acquire) {
                return Err((done, Fault::Error(ErrorKind::Cancelled)));
            }
            if let Some(entry) = batch.entries().get(done) {
                self.compute(entry, batch.tokens(entry));
            }
        }
        Ok(())
    }

    fn compute(&mut self, entry: &Entry, tokens: &[Token]) {
        let Self { script, cache, results, logits, limits, adapters, adapted, .. } = self;
        let slot = entry.slot();
        let seed = adapters.seed(adapted[slot as usize], script.seed);
        for (at, &token) in (entry.start()..).zip(tokens) {
            if entry.want() == Want::Score {
                let after = Distribution::new(script, cache, slot, seed);
                results.scores_mut().push(if at == 0 { 0.0 } else { after.logprob(token, limits.vocab) });
            }
            cache.push(slot, token, seed);
        }
        let after = Distribution::new(script, cache, slot, seed);
        match entry.want() {
            Want::Token | Want::Logits => logits.extend((0..limits.vocab).map(|token| after.logit(token))),
            Want::Embedding => {
                let hidden: [f32; WIDTH] = std::array::from_fn(|i| unit(after.digest, i) * 2.0 - 1.0);
                let row = results.add_hidden(&hidden);
                results.end_hidden(Some(row));
            }
            Want::Nothing | Want::Score => {}
        }
        if entry.want() != Want::Embedding {
            results.end_hidden(None);
        }
        results.end_scores();
    }

    /// Feeds the samplers and draws what is wanted.
    fn draw(&mut self, batch: &Batch) -> Result<()> {
        let Self { seats, results, logits, limits, .. } = self;
        seats.accept(batch);
        let mut rows = (0..).zip(logits.chunks_exact(limits.vocab));
        for entry in batch.entries() {
            let row = if matches!(entry.want(), Want::Token | Want::Logits) { rows.next() } else { None };
            if let (Some((_, row)), Some(sampler)) = (row, seats.sampler_mut(entry.slot())) {
                results.draw(row, sampler, entry.start() + entry.range().len())?;
            }
            results.end_entry(row.filter(|_| entry.want() == Want::Logits).map(|(number, _)| number));
        }
        Ok(())
    }

    /// Brings everything back to before the pass.
    fn take_back(&mut self, batch: &Batch) {
        self.results.clear();
        self.seats.take_back(batch);
        for entry in batch.entries() {
            self.cache.truncate(entry.slot(), entry.start());
        }
    }

    /// Gives the sequences of the batch up: their cells are empty and their handles refused.
    fn spend(&mut self, batch: &Batch) {
        self.results.clear();
        for entry in batch.entries() {
            self.cache.truncate(entry.slot(), 0);
            self.seats.clear(entry.slot());
            self.slots.spend(entry.slot());
        }
    }

    /// What is left of a pass that went wrong after `done` entries.
    fn fail(&mut self, batch: &Batch, done: usize, fault: Fault) -> Error {
        let no_way_back = self.script.cuts == Cuts::Nowhere && done > 0;
        let kind = match fault {
            Fault::Error(kind) if no_way_back => {
                self.spend(batch);
                kind
            }
            Fault::Error(kind) => {
                self.take_back(batch);
                kind
            }
            Fault::Spend(kind) => {
                self.spend(batch);
                kind
            }
            Fault::Lose => {
                self.take_back(batch);
                self.lost = true;
                ErrorKind::SessionLost
            }
        };
        Error::new(kind, format!("{kind}: the pass ended after {done} of {} entries", batch.len()))
            .with_backend("scripted")
    }
}

impl Session for Scripted {
    fn model(&self) -> &Arc<ModelInfo> {
        &self.info
    }

    fn capabilities(&self) -> &Capabilities {
        &self.capabilities
    }

    fn limits(&self) -> &Limits {
        &self.limits
    }

    fn usage(&self) -> Usage {
        let sequences = self.slots.open_count();
        let dropped: Vec<u32> = self.slots.dropped().collect();
        let (cells, cells_free) = self.cache.usage(&dropped);
        Usage::new(sequences, self.limits.sequences - sequences, cells, cells_free)
    }

    fn interrupt(&self) -> Interrupt {
        self.interrupt.clone()
    }

    fn open(&mut self, options: &OpenOptions) -> Result<Sequence> {
        self.begin()?;
        let adapter = self.adapters.find(options.adapter.as_deref())?;
        let (slot, seq) = self.slots.open()?;
        self.seats.reserve(slot, self.limits.context.min(ROOM));
        self.adapted[slot as usize] = adapter;
        Ok(seq)
    }

    fn fork(&mut self, parent: &Sequence, len: usize) -> Result<Sequence> {
        self.begin()?;
        let from = self.cut(parent, len)?;
        let (to, seq) = self.slots.open()?;
        self.cache.fork(from, to, len);
        self.seats.fork(from, to, len);
        self.adapted[to as usize] = self.adapted[from as usize];
        self.slots.set_len(to, len);
        Ok(seq)
    }

    fn truncate(&mut self, seq: &Sequence, len: usize) -> Result<()> {
        self.begin()?;
        let slot = self.cut(seq, len)?;
        self.cache.truncate(slot, len);
        self.seats.truncate(slot, len);
        self.slots.set_len(slot, len);
        Ok(())
    }

    fn shift(&mut self, seq: &Sequence, dropped: Range<usize>) -> Result<()> {
        self.begin()?;
        let slot = self.slots.slot(seq)?;
        let held = self.slots.check_shift(slot, &dropped)?;
        if !self.capabilities.shift {
            return Err(Error::unsupported("this session cannot move positions"));
        }
        self.seats.remove(slot, dropped.clone());
        self.slots.set_len(slot, held - dropped.len());
        self.cache.remove(slot, dropped);
        Ok(())
    }

    fn sample_with(&mut self, seq: &Sequence, sampling: &Sampling, prompt: &[Token]) -> Result<()> {
        self.begin()?;
        let slot = self.slots.slot(seq)?;
        self.seats.sample_with(slot, sampling, prompt, &self.vocab)
    }

    fn decode(&mut self, batch: &Batch) -> Result<()> {
        self.begin()?;
        self.slots.check(batch, &self.limits, &self.capabilities)?;
        self.seats.check(batch)?;
        self.adapters.check(batch.entries().iter().map(|entry| self.adapted[entry.slot() as usize]))?;
        self.cache.check_room(batch.entries().iter().map(|entry| (entry.slot(), entry.range().len())))?;
        self.pass(batch).map_err(|(done, fault)| self.fail(batch, done, fault))?;
        if let Err(error) = self.draw(batch) {
            self.take_back(batch);
            return Err(error);
        }
        self.seats.commit(batch);
        self.slots.commit(batch);
        Ok(())
    }

    fn outputs(&self) -> Outputs<'_> {
        self.results.outputs_over(&self.logits, self.limits.vocab)
    }

    fn save(&mut self, seq: &Sequence, to: &mut dyn Write) -> Result<()> {
        self.begin()?;
        let slot = self.slots.slot(seq)?;
        self.check_save()?;
        self.check_interrupt()?;
        let adapter = self.adapters.used(self.adapted[slot as usize]);
        state::write(to, self.script.seed, adapter, self.cache.tokens(slot), self.cache.digests(slot))
    }

    fn restore(&mut self, from: &mut dyn Read) -> Result<Sequence> {
        self.begin()?;
        self.check_save()?;
        self.check_interrupt()?;
        let Saved { adapter, positions } = state::read(from, self.script.seed, &self.limits)?;
        let adapter = self.adapters.find_used(adapter.as_ref())?;
        let (slot, seq) = self.slots.open()?; // on an error below `seq` is dropped, and the slot comes back by itself
        self.cache.check_room(std::iter::once((slot, positions.len())))?;
        self.adapted[slot as usize] = adapter;
        for &(token, digest) in &positions {
            self.cache.push_digest(slot, token, digest);
            self.seats.fill(slot, &[token]);
        }
        self.slots.set_len(slot, positions.len());
        Ok(seq)
    }
}

/// What the model thinks comes after the tokens that a slot holds now.
struct Distribution {
    digest: u64,
    /// What the script says.
    said: Option<Token>,
}

impl Distribution {
    fn new(script: &Script, cache: &Cache, slot: u32, seed: u64) -> Self {
        let held = cache.tokens(slot);
        Self {
            digest: cache.digest(slot, held.len(), seed),
            said: script.lines.iter().find_map(|line| line.next(held.clone())),
        }
    }

    /// Printable text is likelier than other bytes, so that what is drawn can be read; control tokens come only where
    /// the script says so.
    fn logit(&self, token: usize) -> f32 {
        let base = match token {
            0x20..=0x7e => 0.0,
            0..=0xff => -8.0,
            _ => -40.0,
        };
        let said = if self.said.is_some_and(|said| said.index() == token) { 80.0 } else { 0.0 };
        base + said + unit(self.digest, token) * 8.0
    }

    fn logprob(&self, token: Token, vocab: usize) -> f32 {
        let total: f32 = (0..vocab).map(|token| self.logit(token).exp()).sum();
        self.logit(token.index()) - total.ln()
    }
}

/// A number in `0.0..1.0`, the `i`th of a digest.
fn unit(digest: u64, i: usize) -> f32 {
    (mix(digest ^ mix(i as u64)) >> 40) as f32 / (1 << 24) as f32
}

impl fmt::Debug for Scripted {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Scripted")
            .field("number", &self.number)
            .field("passes", &self.passes)
            .field("lost", &self.lost)
            .field("usage", &self.usage())
            .finish_non_exhaustive()
    }
}
