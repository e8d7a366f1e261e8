//! Operations at random, over the linked door: whatever is done to some sequences of a session, each is what its own history says.

mod kit;
#[path = "kit/linked.rs"]
mod linked;

use infer_core::{Batch, ErrorKind, KvLayout, OpenOptions, Result, Sampling, Sequence, Session as _, Token, Want};
use infer_llama::{KvType, Model, Session, SessionOptions};
use linked::{LAYOUTS, alone, assert_near, model, options, text};
use std::{thread, time::Duration};
use test_kit::Random;

const SEQUENCES: usize = 5;
const STEPS: usize = 120;

/// A sequence, and the tokens it holds; `None` after a shift, which leaves what no computation gives.
struct Known {
    seq: Sequence,
    log: Option<Vec<Token>>,
    len: usize,
}

struct Play<'m> {
    model: &'m Model,
    options: SessionOptions,
    session: Session,
    known: Vec<Known>,
    random: Random,
    what: String,
}

impl Play<'_> {
    fn below(&mut self, end: usize) -> usize {
        self.random.index(end.max(1))
    }

    fn tokens(&mut self, len: usize) -> Vec<Token> {
        text(self.random.below(1000) as u32, len as u32)
    }

    /// What may not be possible is an error of these kinds.
    #[track_caller]
    fn done<T>(&self, result: Result<T>, kinds: &[ErrorKind]) -> Option<T> {
        match result {
            Ok(value) => Some(value),
            Err(error) if kinds.contains(&error.kind()) => None,
            Err(error) => panic!("{}: {error:?}", self.what),
        }
    }

    fn step(&mut self) {
        let (choice, at) = (self.below(20), self.below(self.known.len()));
        if self.known.is_empty() || choice == 0 {
            let opened = self.session.open(&OpenOptions::default());
            if let Some(seq) = self.done(opened, &[ErrorKind::TooManySequences]) {
                self.known.push(Known { seq, log: Some(Vec::new()), len: 0 });
            }
            return;
        }
        match choice {
            1 => drop(self.known.swap_remove(at)),
            2 | 3 => self.fork(at),
            4 | 5 => self.truncate(at),
            6 => self.shift(at),
            7 | 8 => self.save_and_restore(at),
            9 | 10 => self.sample_with(at),
            _ => self.pass(choice),
        }
    }

    fn fork(&mut self, at: usize) {
        let held = self.known[at].len;
        let len = if self.below(2) == 0 { held } else { self.below(held + 1) };
        let forked = self.session.fork(&self.known[at].seq, len);
        if let Some(seq) = self.done(forked, &[ErrorKind::TooManySequences, ErrorKind::Unsupported]) {
            let log = self.known[at].log.as_ref().map(|log| log[..len].to_vec());
            self.known.push(Known { seq, log, len });
        }
    }

    fn truncate(&mut self, at: usize) {
        let len = self.below(self.known[at].len + 1);
        let cut = self.session.truncate(&self.known[at].seq, len);
        if self.done(cut, &[ErrorKind::Unsupported]).is_some() {
            self.known[at].len = len;
            self.known[at].log.iter_mut().for_each(|log| log.truncate(len));
        }
    }

    fn shift(&mut self, at: usize) {
        let held = self.known[at].len;
        if held == 0 {
            return;
        }
        let start = self.below(held);
        let end = start + 1 + self.below(held - start);
        let shifted = self.session.shift(&self.known[at].seq, start..end);
        if self.done(shifted, &[ErrorKind::Unsupported]).is_some() {
            let known = &mut self.known[at];
            known.len -= end - start;
            match &mut known.log {
                Some(log) if end == held => log.truncate(start),
                log => *log = None,
            }
        }
    }

    fn save_and_restore(&mut self, at: usize) {
        let mut state = Vec::new();
        self.session.save(&self.known[at].seq, &mut state).unwrap();
        if self.below(3) == 0 {
            let byte = self.below(state.len());
            state[byte] ^= 4;
            let kinds = [ErrorKind::InvalidInput, ErrorKind::TooManySequences, ErrorKind::OutOfCells];
            let restored = self.session.restore(&mut &state[..]);
            assert!(self.done(restored, &kinds).is_none(), "{}: it was damaged at {byte}", self.what);
            return;
        }
        let restored = self.session.restore(&mut &state[..]);
        if let Some(seq) = self.done(restored, &[ErrorKind::TooManySequences, ErrorKind::OutOfCells]) {
            let (log, len) = (self.known[at].log.clone(), self.known[at].len);
            self.known.push(Known { seq, log, len });
        }
    }

    fn sample_with(&mut self, at: usize) {
        let warm = Sampling::default().with_temperature(0.1 + self.below(30) as f32).with_seed(self.random.next());
        let sampling = match self.below(7) {
            0 => Sampling::greedy(),
            1 => warm,
            2 => warm.with_top_k(1 + self.below(250)),
            3 => warm.with_min_p(0.1),
            4 => warm.with_top_k(40).with_min_p(1.0),
            5 => warm.with_repetition_penalty(1.2),
            _ => warm.with_top_p(0.9).with_logprobs(3),
        };
        self.session.sample_with(&self.known[at].seq, &sampling, &[]).unwrap();
    }

    fn pass(&mut self, choice: usize) {
        let wants = [Want::Nothing, Want::Token, Want::Logits, Want::Embedding, Want::Score];
        let (mut batch, mut fed) = (Batch::new(), Vec::new());
        for at in 0..self.known.len() {
            if self.below(2) == 0 {
                let (many, want) = (self.below(40) + 1, wants[self.below(5)]);
                if want == Want::Token {
                    self.sample_with(at);
                }
                let tokens = self.tokens(many);
                batch.push(&self.known[at].seq, &tokens, want);
                fed.push((at, tokens, want));
            }
        }
        if fed.is_empty() {
            return;
        }
        let interrupt = self.session.interrupt();
        let wait = Duration::from_micros(self.random.below(3000));
        let stopping = choice > 17;
        let result = thread::scope(|scope| {
            if stopping {
                scope.spawn(|| {
                    thread::sleep(wait);
                    interrupt.raise();
                });
            }
            self.session.decode(&batch)
        });
        interrupt.lower();
        let mut kinds = vec![ErrorKind::OutOfCells, ErrorKind::ContextFull, ErrorKind::Unsupported];
        kinds.extend(stopping.then_some(ErrorKind::Cancelled));
        if self.done(result, &kinds).is_some() {
            for (entry, (at, tokens, want)) in fed.iter().enumerate() {
                let out = self.session.outputs();
                assert!(out.token(entry).is_some() || *want != Want::Token, "{}", self.what);
                assert_eq!(out.logits(entry).is_some(), *want == Want::Logits, "{}", self.what);
                assert_eq!(out.embedding(entry).is_some(), *want == Want::Embedding, "{}", self.what);
                let scores = if *want == Want::Score { tokens.len() } else { 0 };
                assert_eq!(out.scores(entry).len(), scores, "{}", self.what);
                self.known[*at].len += tokens.len();
                self.known[*at].log.iter_mut().for_each(|log| log.extend(tokens));
            }
        }
    }

    /// Lengths and cells are what they should be; and logits of one, of which is known how they come about.
    fn look(&mut self, step: usize) {
        self.known.retain(|known| !known.seq.is_spent());
        for known in &self.known {
            assert_eq!(known.seq.len(), known.len, "{}", self.what);
        }
        let usage = self.session.usage();
        assert_eq!(usage.sequences, self.known.len(), "{}", self.what);
        let at = self.below(self.known.len());
        let Some(Known { log: Some(log), .. }) = self.known.get(at) else { return };
        if !step.is_multiple_of(4) || log.len() >= 200 {
            return;
        }
        let more = [&log[..], &[Token(7)]].concat();
        let expected = alone(self.model, &self.options, &more);
        let mut batch = Batch::new();
        batch.push(&self.known[at].seq, &[Token(7)], Want::Logits);
        let result = self.session.decode(&batch);
        if self.done(result, &[ErrorKind::OutOfCells]).is_some() {
            assert_near(self.session.outputs().logits(0).unwrap(), &expected, &self.what);
            self.known[at].len += 1;
            self.known[at].log.iter_mut().for_each(|log| log.push(Token(7)));
        }
    }
}

fn play(name: &str, layout: KvLayout, draws: bool, seed: u64) {
    let model = model(name);
    // Of 32 bits, for what is rounded in another order on the way to cells to stay near.
    let mut options =
        options().with_flash_attention(false).with_kv_type(KvType::F32).with_sequences(SEQUENCES).with_layout(layout);
    options = options.with_device_sampling(draws);
    if layout == KvLayout::Unified {
        options = options.with_cells(512);
    }
    let session = model.session(&options).unwrap();
    let mut play =
        Play { model: &model, options, session, known: Vec::new(), random: Random(seed), what: String::new() };
    for step in 0..STEPS {
        play.what = format!("{name}, {layout:?}, draws {draws}, seed {seed}, step {step}");
        play.step();
        play.look(step);
    }
    play.known.clear();
    let usage = play.session.usage();
    assert_eq!((usage.sequences, usage.cells), (0, 0), "{}", play.what);
}

#[test]
fn each_sequence_is_what_its_own_history_says() {
    let seeds: u64 = std::env::var("INFER_RANDOM_SEEDS").map_or(3, |seeds| seeds.parse().unwrap());
    for seed in 0..seeds {
        for name in ["tiny-llama", "tiny-gemma3", "tiny-mamba", "tiny-lfm2"] {
            for layout in LAYOUTS {
                play(name, layout, seed % 2 == 1, seed);
            }
        }
    }
}
