//! Operations at random: whatever is done to some sequences of a session, each is what its own history says.

use crate::kit::{CONTEXT, FORMS, Form, text};
use infer_core::{
    Batch, ErrorKind, OpenOptions, Result, Sampling, Sequence, Session as _, Token, Want, sampling::Sampler,
};
use infer_onnx::Session;
use std::{thread, time::Duration};
use test_kit::Random;

const STEPS: usize = 150;

struct Known {
    seq: Sequence,
    log: Vec<Token>,
    /// How tokens are drawn, and what was its prompt: known also when the sequence was cut within it.
    sampling: Option<(Sampling, Vec<Token>)>,
}

struct Play {
    form: Form,
    session: Session,
    known: Vec<Known>,
    random: Random,
    what: String,
}

impl Play {
    fn below(&mut self, end: usize) -> usize {
        self.random.index(end.max(1))
    }

    #[track_caller]
    fn unless<T>(&self, result: Result<T>, kinds: &[ErrorKind]) -> Option<T> {
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
            if let Some(seq) = self.unless(opened, &[ErrorKind::TooManySequences]) {
                self.known.push(Known { seq, log: Vec::new(), sampling: None });
            }
            return;
        }
        match choice {
            1 => drop(self.known.swap_remove(at)),
            2 | 3 => self.fork(at),
            4 | 5 => self.truncate(at),
            6 | 7 => self.save_and_restore(at),
            8 | 9 => self.sample_with(at),
            _ => self.pass(),
        }
    }

    fn fork(&mut self, at: usize) {
        let held = self.known[at].log.len();
        let len = if self.below(2) == 0 { held } else { self.below(held + 1) };
        let forked = self.session.fork(&self.known[at].seq, len);
        if let Some(seq) = self.unless(forked, &[ErrorKind::TooManySequences]) {
            let log = self.known[at].log[..len].to_vec();
            self.known.push(Known { seq, log, sampling: None });
        }
    }

    fn truncate(&mut self, at: usize) {
        let len = self.below(self.known[at].log.len() + 1);
        self.session.truncate(&self.known[at].seq, len).unwrap();
        self.known[at].log.truncate(len);
    }

    fn save_and_restore(&mut self, at: usize) {
        let mut state = Vec::new();
        self.session.save(&self.known[at].seq, &mut state).unwrap();
        if self.below(3) == 0 {
            let byte = self.below(state.len());
            state[byte] ^= 4;
            let restored = self.session.restore(&mut &state[..]);
            let kinds = [ErrorKind::InvalidInput, ErrorKind::TooManySequences];
            assert!(self.unless(restored, &kinds).is_none(), "{}: it was damaged at {byte}", self.what);
            return;
        }
        let restored = self.session.restore(&mut &state[..]);
        if let Some(seq) = self.unless(restored, &[ErrorKind::TooManySequences]) {
            let log = self.known[at].log.clone();
            self.known.push(Known { seq, log, sampling: None });
        }
    }

    fn sample_with(&mut self, at: usize) {
        let sampling = match self.below(2) {
            0 => Sampling::greedy(),
            _ => Sampling::default().with_temperature(0.9).with_repetition_penalty(1.2).with_seed(self.random.next()),
        };
        let Known { seq, log, sampling: known } = &mut self.known[at];
        let prompt = log[..log.len() / 2].to_vec();
        self.session.sample_with(seq, &sampling, &prompt).unwrap();
        *known = Some((sampling, prompt));
    }

    /// Some tokens for some sequences; now and then with an interrupt in the middle.
    fn pass(&mut self) {
        let (mut batch, mut fed) = (Batch::new(), Vec::new());
        for at in 0..self.known.len() {
            if self.below(3) == 0 {
                continue;
            }
            let len = if self.below(3) == 0 { 1 + self.below(12) } else { 1 };
            let tokens = text(self.random.next(), len);
            if self.known[at].log.len() + len > CONTEXT {
                continue;
            }
            let want = match self.below(6) {
                0 => Want::Nothing,
                1 => Want::Score,
                2 if self.known[at].sampling.is_some() => Want::Token,
                _ => Want::Logits,
            };
            batch.push(&self.known[at].seq, &tokens, want);
            fed.push((at, tokens, want));
        }
        if fed.is_empty() {
            return;
        }
        let outcome = if self.below(8) == 0 { self.stopped(&batch) } else { self.session.decode(&batch) };
        if self.unless(outcome, &[ErrorKind::Cancelled]).is_none() {
            assert!(self.session.outputs().is_empty());
            return;
        }
        for (entry, (at, tokens, want)) in fed.into_iter().enumerate() {
            self.known[at].log.extend(&tokens);
            self.check(entry, at, &tokens, want);
        }
    }

    fn stopped(&mut self, batch: &Batch) -> Result<()> {
        let (interrupt, wait) = (self.session.interrupt(), Duration::from_micros(self.random.below(600)));
        let raiser = thread::spawn({
            let interrupt = interrupt.clone();
            move || {
                thread::sleep(wait);
                interrupt.raise();
            }
        });
        let outcome = self.session.decode(batch);
        raiser.join().unwrap();
        interrupt.lower();
        outcome
    }

    fn check(&self, entry: usize, at: usize, tokens: &[Token], want: Want) {
        let (known, out) = (&self.known[at], self.session.outputs());
        if let Some(row) = out.logits(entry) {
            self.form.near(row, &known.log, &self.what);
        }
        assert_eq!(out.logits(entry).is_some(), want == Want::Logits);
        assert_eq!(out.scores(entry).len(), if want == Want::Score { tokens.len() } else { 0 });
        let drawn = matches!(want, Want::Token | Want::Logits) && known.sampling.is_some();
        assert_eq!(out.token(entry).is_some(), drawn, "{}", self.what);
        if let (Some((sampling, prompt)), Some(row)) = (&known.sampling, out.logits(entry)) {
            let mut sampler = Sampler::new(sampling, prompt, row.len()).unwrap();
            sampler.accept(0, &known.log);
            let mut wanted = Vec::new();
            sampler.sample(row, known.log.len(), &mut wanted).unwrap();
            assert_eq!(out.token(entry), Some(wanted[0].token), "{}", self.what);
        }
    }

    fn check_lengths(&self) {
        let held: usize = self.known.iter().map(|known| known.log.len()).sum();
        let usage = self.session.usage();
        assert_eq!((usage.sequences, usage.cells), (self.known.len(), held), "{}", self.what);
        for known in &self.known {
            assert_eq!((known.seq.len(), known.seq.is_spent()), (known.log.len(), false), "{}", self.what);
        }
    }
}

#[test]
fn whatever_is_done_each_sequence_is_what_its_tokens_say() {
    for form in FORMS {
        for seed in 0..4 {
            let (session, random) = (form.session(), Random(seed));
            let mut play = Play { form, session, known: Vec::new(), random, what: String::new() };
            for step in 0..STEPS {
                play.what = format!("{}, seed {seed}, step {step}", form.name);
                play.step();
                play.check_lengths();
            }
        }
    }
}
