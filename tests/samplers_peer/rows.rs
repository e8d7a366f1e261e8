//! Rows of logits, and what was fed before them.

use infer::{Batch, Model, OpenOptions, Session, SessionOptions, Special, Token, Want, sampling::uniform};
use kit::prompts;

/// A row of logits, and the tokens before it.
pub(crate) struct Row {
    pub(crate) name: String,
    pub(crate) logits: Vec<f32>,
    pub(crate) history: Vec<Token>,
}

impl Row {
    /// How far off, in proportion, sums over this row are that are made in `f32`, one addition after the other, as llama.cpp
    /// makes them: in the order of ids, and in that of the logits.
    ///
    /// Over 49,152 tokens it is some 1e-4: where the sum has grown, what is added to it is rounded to its last place.
    pub(crate) fn rounding(&self) -> f64 {
        let peak = self.logits.iter().copied().fold(f32::NEG_INFINITY, f32::max);
        let mut weights: Vec<f32> = self.logits.iter().map(|logit| (logit - peak).exp()).collect();
        let off = |weights: &[f32]| {
            let exact: f64 = weights.iter().copied().map(f64::from).sum();
            let rounded = weights.iter().fold(0.0, |sum: f32, weight| sum + weight);
            (f64::from(rounded) / exact - 1.0).abs()
        };
        let by_id = off(&weights);
        weights.sort_by(|a, b| b.total_cmp(a));
        by_id + off(&weights) + 2e-6
    }

    /// The entropy in nats, and by token how far its −ln p is from it.
    pub(crate) fn surprise(&self) -> (f64, Vec<f64>) {
        let logits = || self.logits.iter().copied().map(f64::from);
        let peak = logits().fold(f64::NEG_INFINITY, f64::max);
        let total = logits().map(|logit| (logit - peak).exp()).sum::<f64>().ln();
        let surprise = || logits().map(|logit| total - (logit - peak));
        let entropy = surprise().map(|surprise| surprise * (-surprise).exp()).sum();
        (entropy, surprise().map(|surprise| (surprise - entropy).abs()).collect())
    }
}

/// After some prompts, as the model computes them.
pub(crate) fn real(model: &dyn Model, prompts: &[usize]) -> Vec<Row> {
    let options = SessionOptions::new().with_context(1024).with_threads(1);
    let mut session = model.session(&options).unwrap();
    let mut batch = Batch::new();
    let all = prompts::all();
    let row = |&which: &usize| {
        let mut history = Vec::new();
        model.tokenizer().encode(&all[which], Special::ADD, &mut history).unwrap();
        let sequence = session.open(&OpenOptions::default()).unwrap();
        batch.clear();
        let entry = batch.push(&sequence, &history, Want::Logits);
        session.decode(&batch).unwrap();
        let logits = session.outputs().logits(entry).unwrap().to_vec();
        Row { name: format!("prompt {which}"), logits, history }
    };
    prompts.iter().map(row).collect()
}

/// Normally distributed, with a history of so few different tokens that much of it repeats.
pub(crate) fn random(vocab: usize, spread: f32, seed: u64) -> Row {
    let normal = |at| {
        let (a, b) = (1.0 - uniform(seed, 2 * at), uniform(seed, 2 * at + 1));
        (-2.0 * a.ln()).sqrt() * (std::f32::consts::TAU * b).cos()
    };
    let kinds = 2.0 + (seed % 5) as f32;
    Row {
        name: format!("row {seed}: {vocab} × {spread}"),
        logits: (0..vocab).map(|at| spread * normal(at)).collect(),
        history: (0..100).map(|at| Token((uniform(!seed, at) * kinds) as u32)).collect(),
    }
}
