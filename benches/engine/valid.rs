//! Documents drawn at random under schemas, judged by a validator that has nothing to do with what made them.

use crate::{ours, peer::Setting};
use infer::{Constraint, Engine, FinishReason, Request, Sampling};
use infer_benches::{Bar, Figure, Run, judge};
use serde::Deserialize;
use serde_json::Value;

/// The schemas, each with a name and a prompt.
const SCHEMAS: &str = include_str!("schemas.json");

/// More tokens than any document of a bounded schema has.
const ENOUGH: usize = 1000;
/// Tokens within which documents of unbounded schemas are to be closed.
const BUDGET: usize = 48;
const CONTEXT: usize = 1152;

#[derive(Deserialize)]
struct Schemas {
    bounded: Vec<Case>,
    unbounded: Vec<Case>,
}

#[derive(Deserialize)]
struct Case {
    name: String,
    prompt: String,
    schema: Value,
}

pub(crate) fn measure(run: &mut Run, setting: &Setting) {
    let schemas: Schemas = serde_json::from_str(SCHEMAS).expect("it is in the repository");
    let seeds = if run.quick() { 1 } else { 10 };
    let engine =
        ours::engine(setting, |builder| builder.with_sequences(16).with_context(CONTEXT).with_cells(16 * CONTEXT));
    run.progress(&format!("{} schemas × {seeds} seeds", schemas.bounded.len()));
    under(run, &engine, "bounded", &schemas.bounded, seeds, None);
    run.progress(&format!("{} schemas without bounds × {seeds} seeds", schemas.unbounded.len()));
    under(run, &engine, "closed", &schemas.unbounded, seeds, Some(BUDGET));
}

fn under(run: &mut Run, engine: &Engine, what: &str, cases: &[Case], seeds: u64, budget: Option<usize>) {
    let asked: Vec<_> = cases
        .iter()
        .flat_map(|case| (0..seeds).map(move |seed| (case, seed)))
        .map(|(case, seed)| (case, seed, engine.generate(request(case, seed, budget))))
        .collect();
    let (mut invalid, mut cut, mut longest) = (0, 0, 0);
    let count = asked.len();
    let done: Vec<_> = asked
        .into_iter()
        .map(|(case, seed, generation)| match generation.complete() {
            Ok(done) => (case, seed, done),
            Err(error) => panic!("{}, seed {seed}: {error}", case.name),
        })
        .collect();
    let texts: Vec<_> = done.iter().map(|(case, _, done)| (&case.schema, done.text.as_str())).collect();
    let wrong = judge(&texts).unwrap_or_else(|error| panic!("{error}"));
    for ((case, seed, done), wrong) in done.iter().zip(wrong) {
        longest = longest.max(done.tokens.len());
        cut += u32::from(done.finish != FinishReason::EndOfText);
        if let Some(error) = wrong {
            invalid += 1;
            eprintln!("  {}, seed {seed}: {error}\n    {:?}, {}", case.name, done.text, done.finish);
        }
    }
    let note = format!("of {count} texts at temperature 1; the longest has {longest} tokens");
    run.figure(
        Figure::new(format!("engine/schema/{what}/invalid"), f64::from(invalid), "texts")
            .with_bar(Bar::AtMost(0.0))
            .with_note(note),
    );
    run.figure(
        Figure::new(format!("engine/schema/{what}/cut"), f64::from(cut), "texts")
            .with_bar(Bar::AtMost(0.0))
            .with_note(budget.map_or(String::new(), |budget| format!("with a budget of {budget} tokens"))),
    );
}

fn request(case: &Case, seed: u64, budget: Option<usize>) -> Request {
    let constraint = Constraint::json_schema(case.schema.to_string());
    let constraint = match budget {
        Some(budget) => constraint.with_budget(budget),
        None => constraint,
    };
    let sampling = Sampling::default().with_temperature(1.0).with_seed(seed).with_constraint(constraint);
    // Beyond the budget there is only the token that ends the text.
    let most = budget.map_or(ENOUGH, |budget| budget + 1);
    Request::text(case.prompt.as_str()).with_sampling(sampling).with_max_tokens(most)
}
