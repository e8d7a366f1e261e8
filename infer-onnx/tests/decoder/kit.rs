//! Models, sessions, and what each text gives alone.

use infer_core::{Batch, OpenOptions, Result, Sequence, Session as _, SessionOptions, Token, Want};
use infer_onnx::{LoadOptions, Model, Onnx, Session};
use std::{
    collections::HashMap,
    path::{Path, PathBuf},
    sync::{LazyLock, Mutex},
};
use test_kit::{Folder, Random};

/// Positions a sequence has in the sessions of these tests, unless they say otherwise.
pub(crate) const CONTEXT: usize = 64;
pub(crate) const SEQUENCES: usize = 5;
/// Tokens that every vocabulary here has.
const LETTERS: u32 = 250;

/// A model, and how far apart its logits may be that are computed in another order.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Form {
    pub(crate) name: &'static str,
    pub(crate) epsilon: f32,
}

/// One of each kind. Numbers of 32 bits are added up in another order where a run has more tokens; those of 16 bits are rounded after each
/// step; and beside weights of 4 bits states are rounded to 8, where a little more makes a whole step.
pub(crate) const FORMS: [Form; 6] = [
    Form { name: "tiny-onnx", epsilon: 1e-4 },
    Form { name: "tiny-onnx-int4", epsilon: 0.3 },
    Form { name: "tiny-onnx-f16", epsilon: 0.02 },
    Form { name: "tiny-onnx-plain", epsilon: 1e-4 },
    Form { name: "tiny-onnx-no-positions", epsilon: 1e-4 },
    Form { name: "tiny-onnx-merged", epsilon: 1e-4 },
];

pub(crate) fn shared() -> Form {
    FORMS[0]
}

pub(crate) fn growing() -> Form {
    FORMS[3]
}

pub(crate) fn merged() -> Form {
    FORMS[5]
}

pub(crate) fn folder(name: &str) -> PathBuf {
    build_support::fixtures::model(name).unwrap_or_else(|error| panic!("{error}"))
}

pub(crate) fn open(folder: &Path) -> Result<Model> {
    static ONNX: LazyLock<Onnx> =
        LazyLock::new(|| Onnx::load(&LoadOptions::new()).unwrap_or_else(|error| panic!("{error}")));
    Model::open(&ONNX, folder)
}

pub(crate) fn options() -> SessionOptions {
    SessionOptions::new().with_context(CONTEXT).with_sequences(SEQUENCES).with_threads(1)
}

impl Form {
    pub(crate) fn model(self) -> Model {
        static MODELS: LazyLock<Mutex<HashMap<&'static str, Model>>> = LazyLock::new(Mutex::default);
        let mut models = MODELS.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
        models
            .entry(self.name)
            .or_insert_with(|| open(&folder(self.name)).unwrap_or_else(|error| panic!("{error}")))
            .clone()
    }

    pub(crate) fn session(self) -> Session {
        self.model().session(&options()).unwrap_or_else(|error| panic!("{error}"))
    }

    /// The logits after these tokens, computed in one pass by a session that does nothing else; once for each text.
    pub(crate) fn alone(self, tokens: &[Token]) -> Vec<f32> {
        type Rows = HashMap<(&'static str, Vec<Token>), Vec<f32>>;
        static ROWS: LazyLock<Mutex<Rows>> = LazyLock::new(Mutex::default);
        let rows = || ROWS.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
        let text = (self.name, tokens.to_vec());
        if let Some(row) = rows().get(&text) {
            return row.clone();
        }
        let mut session = self.model().session(&options().with_sequences(1)).unwrap();
        let seq = open_in(&mut session);
        let row = feed(&mut session, &seq, tokens);
        rows().insert(text, row.clone());
        row
    }

    #[track_caller]
    pub(crate) fn near(self, found: &[f32], tokens: &[Token], what: &str) {
        let apart = found.iter().zip(self.alone(tokens)).map(|(one, other)| (one - other).abs()).fold(0.0, f32::max);
        assert!(apart <= self.epsilon, "{}, {what}: {apart} apart, more than {}", self.name, self.epsilon);
    }
}

pub(crate) fn open_in(session: &mut Session) -> Sequence {
    session.open(&OpenOptions::default()).unwrap()
}

/// Appends tokens in one pass; the logits after them.
#[track_caller]
pub(crate) fn feed(session: &mut Session, seq: &Sequence, tokens: &[Token]) -> Vec<f32> {
    let mut batch = Batch::new();
    batch.push(seq, tokens, Want::Logits);
    session.decode(&batch).unwrap_or_else(|error| panic!("{error}"));
    session.outputs().logits(0).expect("logits were wanted").to_vec()
}

/// Some text, always the same for a seed.
pub(crate) fn text(seed: u64, len: usize) -> Vec<Token> {
    let mut random = Random(seed);
    (0..len).map(|_| Token(random.below(LETTERS.into()) as u32)).collect()
}

/// A copy of a model's folder, to be changed.
pub(crate) fn copy(form: Form) -> Folder {
    Folder::copy_of(folder(form.name))
}
