//! Any sequence of operations, against a model of a session in plain Rust.

use crate::{
    setting::{Setting, unless_unsupported},
    subject::{Cells, Pace},
};
use infer::{
    Batch, ErrorKind, OpenOptions, Sampling, Sequence, Session, SessionOptions, Token, Want, sampling::Sampler,
};
use proptest::{
    collection::vec,
    prelude::*,
    test_runner::{Config, RngAlgorithm, TestRng, TestRunner},
};

const CONTEXT: usize = 40;
const BATCH: usize = 24;
const SEQUENCES: usize = 3;

#[derive(Clone, Debug)]
enum Operation {
    Open,
    /// Sequence and share of its length, in sixteenths.
    Fork(usize, usize),
    Truncate(usize, usize),
    Drop(usize),
    /// Sequences with how many tokens each gets.
    Decode(Vec<(usize, usize)>),
    /// Saved, dropped, restored.
    Park(usize),
    /// Tokens are drawn from here on, by one of the samplings.
    Sample(usize, usize),
}

fn operations() -> impl Strategy<Value = Vec<Operation>> {
    let (seq, share) = (0..SEQUENCES, 0..=16_usize);
    let operation = prop_oneof![
        3 => Just(Operation::Open),
        3 => (seq.clone(), share.clone()).prop_map(|(seq, share)| Operation::Fork(seq, share)),
        2 => (seq.clone(), share).prop_map(|(seq, share)| Operation::Truncate(seq, share)),
        1 => seq.clone().prop_map(Operation::Drop),
        6 => vec((seq.clone(), 1..9_usize), 1..4).prop_map(Operation::Decode),
        1 => seq.clone().prop_map(Operation::Park),
        2 => (seq, 0..16_usize).prop_map(|(seq, sampling)| Operation::Sample(seq, sampling)),
    ];
    vec(operation, 1..24)
}

pub(crate) fn any_sequence_of_operations_equals_recompute(at: &Setting<'_>) {
    let config = Config {
        cases: if at.subject.pace == Pace::Quick { 48 } else { 2 },
        failure_persistence: None,
        max_shrink_iters: if at.subject.pace == Pace::Quick { 2000 } else { 0 },
        ..Config::default()
    };
    // The same ones each time.
    let mut runner = TestRunner::new_with_rng(config, TestRng::deterministic_rng(RngAlgorithm::ChaCha));
    let outcome = runner.run(&operations(), |operations| {
        let mut world = World::new(at);
        for operation in &operations {
            world.run(operation);
        }
        Ok(())
    });
    outcome.unwrap_or_else(|error| panic!("{error}"));
}

/// A session, and what it should be.
struct World<'a> {
    at: &'a Setting<'a>,
    session: Box<dyn Session>,
    seqs: Vec<Known>,
    total: usize,
    cells: usize,
}

/// A sequence, its tokens, and the cells of its positions.
struct Known {
    seq: Sequence,
    tokens: Vec<Token>,
    cells: Vec<usize>,
    /// How tokens are drawn, and what was its prompt.
    sampling: Option<(Sampling, Vec<Token>)>,
}

impl Known {
    fn new(seq: Sequence, tokens: Vec<Token>, cells: Vec<usize>) -> Self {
        Self { seq, tokens, cells, sampling: None }
    }

    /// What is drawn from this row: by a sampler that is made for it, and knows nothing of forks and cuts before.
    fn draw(&self, row: &[f32]) -> Option<Token> {
        let (sampling, prompt) = self.sampling.as_ref()?;
        let mut sampler = Sampler::new(sampling, prompt, row.len()).unwrap();
        sampler.accept(0, &self.tokens);
        let mut drawn = Vec::new();
        sampler.sample(row, self.tokens.len(), &mut drawn).unwrap();
        Some(drawn[0].token)
    }
}

impl<'a> World<'a> {
    fn new(at: &'a Setting<'a>) -> Self {
        let options = SessionOptions::new().with_context(CONTEXT).with_batch(BATCH).with_sequences(SEQUENCES);
        let session = at.model.session(&options.with_threads(1)).unwrap();
        Self { at, total: session.usage().cells_free, session, seqs: Vec::new(), cells: 0 }
    }

    fn run(&mut self, operation: &Operation) {
        match operation {
            Operation::Open => self.open(),
            &Operation::Fork(which, share) if which < self.seqs.len() => self.fork(which, share),
            &Operation::Truncate(which, share) if which < self.seqs.len() => self.truncate(which, share),
            &Operation::Drop(which) if which < self.seqs.len() => drop(self.seqs.remove(which)),
            Operation::Decode(entries) => self.decode(entries),
            &Operation::Park(which) if which < self.seqs.len() => self.park(which),
            &Operation::Sample(which, sampling) if which < self.seqs.len() => self.sample(which, sampling),
            _ => {}
        }
        self.check();
    }

    fn open(&mut self) {
        match self.session.open(&OpenOptions::default()) {
            Ok(seq) => self.seqs.push(Known::new(seq, Vec::new(), Vec::new())),
            Err(error) => self.full(&error),
        }
    }

    #[track_caller]
    fn full(&self, error: &infer::Error) {
        assert_eq!((error.kind(), self.seqs.len()), (ErrorKind::TooManySequences, SEQUENCES), "{error}");
    }

    fn new_cells(&mut self, count: usize) -> Vec<usize> {
        self.cells += count;
        (self.cells - count..self.cells).collect()
    }

    fn fork(&mut self, which: usize, share: usize) {
        let (held, able) = (self.seqs[which].tokens.len(), self.session.capabilities().fork);
        let len = held * share / 16;
        let outcome = self.session.fork(&self.seqs[which].seq, len);
        if let Err(error) = outcome.as_ref()
            && error.kind() == ErrorKind::TooManySequences
        {
            return self.full(error);
        }
        let Some(seq) = unless_unsupported(outcome, able, held, len) else { return };
        let tokens = self.seqs[which].tokens[..len].to_vec();
        let cells = match self.at.subject.cells {
            Cells::Copied => self.new_cells(len),
            Cells::Shared | Cells::States => self.seqs[which].cells[..len].to_vec(),
        };
        self.seqs.push(Known::new(seq, tokens, cells));
    }

    fn truncate(&mut self, which: usize, share: usize) {
        let (known, able) = (&mut self.seqs[which], self.session.capabilities().truncate);
        let (held, len) = (known.tokens.len(), known.tokens.len() * share / 16);
        if unless_unsupported(self.session.truncate(&known.seq, len), able, held, len).is_some() {
            known.tokens.truncate(len);
            known.cells.truncate(len);
        }
    }

    fn park(&mut self, which: usize) {
        if !self.session.capabilities().save {
            return;
        }
        let (mut state, known) = (Vec::new(), self.seqs.remove(which));
        self.session.save(&known.seq, &mut state).unwrap();
        drop(known.seq);
        let seq = self.session.restore(&mut &state[..]).unwrap();
        let cells = self.new_cells(known.tokens.len());
        self.seqs.push(Known::new(seq, known.tokens, cells));
    }

    fn sample(&mut self, which: usize, sampling: usize) {
        let (mut samplings, known) = (self.at.samplings(), &mut self.seqs[which]);
        let (_, sampling) = samplings.swap_remove(sampling % samplings.len());
        // A part of it is the prompt, the rest was generated.
        let prompt = known.tokens[..known.tokens.len() / 2].to_vec();
        self.session.sample_with(&known.seq, &sampling, &prompt).unwrap();
        known.sampling = Some((sampling, prompt));
    }

    fn decode(&mut self, entries: &[(usize, usize)]) {
        let mut batch = Batch::new();
        let mut fed: Vec<(usize, Vec<Token>)> = Vec::new();
        for &(which, count) in entries {
            let Some(known) = self.seqs.get(which) else { continue };
            // A sequence's text follows from what it holds, so that few texts have to be computed for comparison.
            let from = known.tokens.len() + self.seqs.len();
            let tokens = self.at.text(which, from + count)[from..].to_vec();
            batch.push(&known.seq, &tokens, Want::Logits);
            fed.push((which, tokens));
        }
        let twice = (1..fed.len()).any(|index| fed[..index].iter().any(|(which, _)| *which == fed[index].0));
        let over = fed.iter().any(|(which, tokens)| self.seqs[*which].tokens.len() + tokens.len() > CONTEXT);
        let wrong = fed.is_empty() || twice || batch.token_count() > BATCH;
        match self.session.decode(&batch) {
            Ok(()) => assert!(!wrong && !over, "it was taken: {fed:?}"),
            Err(error) if wrong || over => {
                let kinds = [(wrong, ErrorKind::InvalidInput), (over, ErrorKind::ContextFull)];
                assert!(kinds.contains(&(true, error.kind())), "{error}");
                return;
            }
            Err(error) => panic!("{error}"),
        }
        for (entry, (which, tokens)) in fed.into_iter().enumerate() {
            let cells = self.new_cells(tokens.len());
            let known = &mut self.seqs[which];
            known.tokens.extend(tokens);
            known.cells.extend(cells);
            let out = self.session.outputs();
            let row = out.logits(entry).expect("logits were wanted");
            assert_eq!(out.token(entry), known.draw(row), "what is drawn after {} tokens", known.tokens.len());
            let wanted = self.at.alone(&known.tokens);
            self.at.near_scattered(row, &wanted, &format!("{} tokens of sequence {which}", known.tokens.len()));
        }
    }

    fn check(&self) {
        let mut cells: Vec<usize> = self.seqs.iter().flat_map(|known| known.cells.iter().copied()).collect();
        cells.sort_unstable();
        cells.dedup();
        let cells = match self.at.subject.cells {
            Cells::States => self.seqs.iter().filter(|known| !known.tokens.is_empty()).count(),
            Cells::Shared | Cells::Copied => cells.len(),
        };
        let usage = self.session.usage();
        assert_eq!((usage.sequences, usage.sequences_free), (self.seqs.len(), SEQUENCES - self.seqs.len()));
        assert_eq!((usage.cells, usage.cells_free), (cells, self.total - cells));
        for known in &self.seqs {
            assert_eq!((known.seq.len(), known.seq.is_spent()), (known.tokens.len(), false));
        }
    }
}
