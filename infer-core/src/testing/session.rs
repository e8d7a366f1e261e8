use crate::{
    Batch, Capabilities, Entry, Error, ErrorKind, Interrupt, Limits, ModelInfo, OpenOptions, Outputs, Result, Rows,
    Sampled, Sampling, Sequence, Session, Slots, Token, Usage, Vocab, Want,
    sampling::Sampler,
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
    samplers: Box<[Option<Sampler>]>,
    adapters: Adapters,
    /// Slot → the adapter its sequence is computed with.
    adapted: Box<[Option<usize>]>,
    found: Found,
    passes: u64,
    lost: bool,
    raised: Arc<AtomicBool>,
    interrupt: Interrupt,
    /// Sessions of native runtimes may not be sent; what passes its tests with this one must do without too.
    not_send: PhantomData<*const ()>,
}

/// What a pass has found, in the arrays that [`Outputs`] shows.
#[derive(Default)]
struct Found {
    sampled: Vec<Sampled>,
    sampled_ends: Vec<u32>,
    top: Vec<Sampled>,
    top_ends: Vec<u32>,
    logits: Vec<f32>,
    logits_rows: Vec<u32>,
    hidden: Vec<f32>,
    hidden_rows: Vec<u32>,
    scores: Vec<f32>,
    score_ends: Vec<u32>,
    errors: Vec<(u32, Error)>,
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
            samplers: (0..limits.sequences).map(|_| None).collect(),
            adapted: (0..limits.sequences).map(|_| None).collect(),
            adapters,
            found: Found::default(),
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
        self.found.clear();
        let Self { slots, cache, samplers, .. } = self;
        slots.reap(|slot| {
            cache.truncate(slot, 0);
            samplers[slot as usize] = None;
        });
        Ok(())
    }

    /// The slot of a sequence that may be cut to, or forked at, `len`.
    fn cut(&self, seq: &Sequence, len: usize) -> Result<u32> {
        let slot = self.slots.slot(seq)?;
        let held = self.slots.len(slot);
        if len > held {
            return Err(Error::invalid_input(format!("the sequence has {held} positions, fewer than {len}")));
        }
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

    fn check_sampling(&self, batch: &Batch) -> Result<()> {
        let lacking = |entry: &Entry| entry.want() == Want::Token && self.samplers[entry.slot() as usize].is_none();
        match batch.entries().iter().position(lacking) {
            Some(index) => Err(Error::invalid_input(format!(
                "entry {index} of the batch wants a token, and no sampling was set for its sequence; call `sample_with`"
            ))),
            None => Ok(()),
        }
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
        let Self { script, cache, found, limits, adapters, adapted, .. } = self;
        let slot = entry.slot();
        let seed = adapters.seed(adapted[slot as usize], script.seed);
        for (at, &token) in (entry.start()..).zip(tokens) {
            if entry.want() == Want::Score {
                let after = Distribution::new(script, cache, slot, seed);
                found.scores.push(if at == 0 { 0.0 } else { after.logprob(token, limits.vocab) });
            }
            cache.push(slot, token, seed);
        }
        let (mut logits_row, mut hidden_row) = (Rows::NONE, Rows::NONE);
        let after = Distribution::new(script, cache, slot, seed);
        match entry.want() {
            Want::Token | Want::Logits => {
                if entry.want() == Want::Logits {
                    logits_row = count(found.logits.len() / limits.vocab);
                }
                found.logits.extend((0..limits.vocab).map(|token| after.logit(token)));
            }
            Want::Embedding => {
                hidden_row = count(found.hidden.len() / WIDTH);
                found.hidden.extend((0..WIDTH).map(|i| unit(after.digest, i) * 2.0 - 1.0));
            }
            Want::Nothing | Want::Score => {}
        }
        found.logits_rows.push(logits_row);
        found.hidden_rows.push(hidden_row);
        found.score_ends.push(count(found.scores.len()));
    }

    /// Feeds the samplers and draws what is wanted.
    fn draw(&mut self, batch: &Batch) -> Result<()> {
        let Self { samplers, found, limits, .. } = self;
        let mut rows = found.logits.chunks_exact(limits.vocab);
        for (index, entry) in batch.entries().iter().enumerate() {
            let row = if matches!(entry.want(), Want::Token | Want::Logits) { rows.next() } else { None };
            if let Some(sampler) = &mut samplers[entry.slot() as usize] {
                sampler.accept(entry.start(), batch.tokens(entry));
                if let Some(row) = row {
                    match sampler.sample(row, entry.start() + entry.range().len(), &mut found.sampled) {
                        Err(error) if error.kind() == ErrorKind::InvalidConstraint => {
                            found.errors.push((count(index), error));
                        }
                        drawn => drawn?,
                    }
                    sampler.top(row, &mut found.top)?;
                }
            }
            found.sampled_ends.push(count(found.sampled.len()));
            found.top_ends.push(count(found.top.len()));
        }
        Ok(())
    }

    /// Brings everything back to before the pass.
    fn take_back(&mut self, batch: &Batch) {
        self.found.clear();
        for entry in batch.entries() {
            self.cache.truncate(entry.slot(), entry.start());
            if let Some(sampler) = &mut self.samplers[entry.slot() as usize] {
                sampler.truncate(entry.start());
            }
        }
    }

    /// Gives the sequences of the batch up: their cells are empty and their handles refused.
    fn spend(&mut self, batch: &Batch) {
        self.found.clear();
        for entry in batch.entries() {
            self.cache.truncate(entry.slot(), 0);
            self.samplers[entry.slot() as usize] = None;
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
        self.adapted[slot as usize] = adapter;
        Ok(seq)
    }

    fn fork(&mut self, parent: &Sequence, len: usize) -> Result<Sequence> {
        self.begin()?;
        let from = self.cut(parent, len)?;
        let (to, seq) = self.slots.open()?;
        self.cache.fork(from, to, len);
        self.adapted[to as usize] = self.adapted[from as usize];
        self.slots.set_len(to, len);
        Ok(seq)
    }

    fn truncate(&mut self, seq: &Sequence, len: usize) -> Result<()> {
        self.begin()?;
        let slot = self.cut(seq, len)?;
        self.cache.truncate(slot, len);
        if let Some(sampler) = &mut self.samplers[slot as usize] {
            sampler.truncate(len);
        }
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
        self.samplers[slot as usize] = None;
        self.slots.set_len(slot, held - dropped.len());
        self.cache.remove(slot, dropped);
        Ok(())
    }

    fn sample_with(&mut self, seq: &Sequence, sampling: &Sampling, prompt: &[Token]) -> Result<()> {
        self.begin()?;
        let slot = self.slots.slot(seq)?;
        let mut sampler = Sampler::for_vocab(sampling, prompt, &self.vocab)?;
        let held: Vec<Token> = self.cache.tokens(slot).collect();
        sampler.accept(0, &held);
        self.samplers[slot as usize] = Some(sampler);
        Ok(())
    }

    fn decode(&mut self, batch: &Batch) -> Result<()> {
        self.begin()?;
        self.slots.check(batch, &self.limits, &self.capabilities)?;
        self.check_sampling(batch)?;
        self.adapters.check(batch.entries().iter().map(|entry| self.adapted[entry.slot() as usize]))?;
        self.cache.check_room(batch.entries().iter().map(|entry| (entry.slot(), entry.range().len())))?;
        self.pass(batch).map_err(|(done, fault)| self.fail(batch, done, fault))?;
        if let Err(error) = self.draw(batch) {
            self.take_back(batch);
            return Err(error);
        }
        self.slots.commit(batch);
        Ok(())
    }

    fn outputs(&self) -> Outputs<'_> {
        let found = &self.found;
        Outputs::new(&found.sampled, &found.sampled_ends)
            .with_top(&found.top, &found.top_ends)
            .with_logits(Rows::new(&found.logits, self.limits.vocab, &found.logits_rows))
            .with_embeddings(Rows::new(&found.hidden, WIDTH, &found.hidden_rows))
            .with_scores(&found.scores, &found.score_ends)
            .with_errors(&found.errors)
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
        }
        self.slots.set_len(slot, positions.len());
        Ok(seq)
    }
}

impl Found {
    fn clear(&mut self) {
        self.sampled.clear();
        self.sampled_ends.clear();
        self.top.clear();
        self.top_ends.clear();
        self.logits.clear();
        self.logits_rows.clear();
        self.hidden.clear();
        self.hidden_rows.clear();
        self.scores.clear();
        self.score_ends.clear();
        self.errors.clear();
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

fn count(n: usize) -> u32 {
    u32::try_from(n).expect("a batch is counted in u32")
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
