//! What the parts stand on: the library, models, and passes of a session.

use infer::{Batch, OpenOptions, Sampling, Sequence, Session as _, Token, Want};
use infer_mlx::{LoadOptions, Mlx, Model, Session, SessionOptions};
use std::path::PathBuf;

/// The folder of a model in the cache.
///
/// # Panics
/// When it is not there.
pub(crate) fn folder(name: &str) -> PathBuf {
    build_support::fixtures::model(name).unwrap_or_else(|error| panic!("{error}"))
}

/// The library of the cache, on this thread.
///
/// # Panics
/// When it is not there.
pub(crate) fn mlx() -> Mlx {
    Mlx::load(&LoadOptions::new()).unwrap_or_else(|error| panic!("{error}"))
}

/// An open model.
///
/// # Panics
/// When it is not there, or not what it is to be.
pub(crate) fn open(mlx: &Mlx, name: &str) -> Model {
    Model::open(mlx, folder(name)).unwrap_or_else(|error| panic!("{error}"))
}

/// A session that draws greedily.
pub(crate) struct Greedy {
    session: Session,
    batch: Batch,
}

impl Greedy {
    /// # Panics
    /// When the model has no room for so many.
    pub(crate) fn new(model: &Model, context: usize, sequences: usize) -> Self {
        let options = SessionOptions::new().with_context(context).with_sequences(sequences).with_batch(context);
        let session = model.session(&options).unwrap_or_else(|error| panic!("{error}"));
        Self { session, batch: Batch::new() }
    }

    /// A new sequence.
    ///
    /// # Panics
    /// When all are taken.
    pub(crate) fn open(&mut self) -> Sequence {
        let seq = self.session.open(&OpenOptions::default()).expect("a sequence is free");
        self.session.sample_with(&seq, &Sampling::greedy(), &[]).expect("greedy is in range");
        seq
    }

    /// A pass over tokens of each text, and what comes after them.
    ///
    /// # Panics
    /// When it fails.
    pub(crate) fn step(&mut self, texts: &[(&Sequence, &[Token])]) -> Vec<Token> {
        self.batch.clear();
        for (seq, tokens) in texts {
            self.batch.push(seq, tokens, Want::Token);
        }
        self.session.decode(&self.batch).unwrap_or_else(|error| panic!("{error}"));
        (0..texts.len()).map(|row| self.session.outputs().token(row).expect("it was wanted")).collect()
    }
}
