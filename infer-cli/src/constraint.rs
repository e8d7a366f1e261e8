//! What generated text must be, as arguments.

use crate::{args, failure::Failure};
use infer::{Constraint, Engine, Error, ErrorKind, Sampling};
use std::path::PathBuf;

#[derive(clap::Args, Debug)]
#[command(next_help_heading = "Structured output")]
pub(crate) struct ConstraintArgs {
    /// The text is a JSON document that the schema in this file allows.
    #[arg(long, value_name = "FILE", group = "constraint")]
    json_schema: Option<PathBuf>,

    /// The text as a whole matches this regular expression.
    #[arg(long, value_name = "EXPRESSION", allow_hyphen_values = true, group = "constraint")]
    regex: Option<String>,

    /// The text is one of the grammar in this file: Lark where the file's name ends in .lark, else llama.cpp's GBNF.
    #[arg(long, value_name = "FILE", group = "constraint")]
    grammar: Option<PathBuf>,

    /// Have the text come to its end within the tokens it may have, in place of being cut off there.
    #[arg(long, requires = "constraint")]
    close: bool,
}

impl ConstraintArgs {
    pub(crate) fn constraint(&self) -> Result<Option<Constraint>, Failure> {
        Ok(match (&self.json_schema, &self.regex, &self.grammar) {
            (Some(schema), ..) => Some(Constraint::json_schema(args::file(schema)?)),
            (_, Some(expression), _) => Some(Constraint::regex(expression)),
            (.., Some(path)) if path.extension().is_some_and(|end| end.eq_ignore_ascii_case("lark")) => {
                Some(Constraint::lark(args::file(path)?))
            }
            (.., Some(path)) => Some(Constraint::gbnf(args::file(path)?)),
            (None, None, None) => None,
        })
    }

    /// Whether texts can be what is asked for. What is wrong is told of the argument that says it.
    pub(crate) fn check(&self, sampling: &Sampling, engine: &Engine) -> Result<(), Failure> {
        let Some(constraint) = &sampling.constraint else { return Ok(()) };
        check(constraint, engine).map_err(|error| {
            let of = match (&self.json_schema, &self.grammar) {
                (Some(file), _) => format!("--json-schema {}", file.display()),
                (_, Some(file)) => format!("--grammar {}", file.display()),
                (None, None) => "--regex".to_owned(),
            };
            Error::new(error.kind(), format!("{of}: {error}")).with_source(error).into()
        })
    }

    /// Whether a text is to come to its end within the tokens it may have.
    pub(crate) fn closes(&self) -> bool {
        self.close
    }
}

/// Has the text end within so many tokens, the one that ends the generation among them.
pub(crate) fn closed(constraint: Constraint, max_tokens: usize) -> Constraint {
    constraint.with_budget(max_tokens.saturating_sub(1))
}

/// Tokens that are enough for a text of any constraint that is meant to end.
const ENOUGH: usize = 4096;

/// Whether texts can meet the constraint, if they may be long enough.
fn check(constraint: &Constraint, engine: &Engine) -> Result<(), Error> {
    let vocab = engine.tokenizer().vocab();
    match constraint.budget() {
        Some(budget) => constraint.clone().with_budget(budget.max(ENOUGH)).compile(vocab),
        None => constraint.compile(vocab),
    }
}

/// What an answer's error says, and where a closed text has too few tokens for its constraint, how it gets more: by `limit`.
pub(crate) fn closed_by(limit: &str, error: Error, constraint: Option<&Constraint>, engine: &Engine) -> Error {
    let is_of_closing = error.kind() == ErrorKind::InvalidConstraint
        && constraint.is_some_and(|constraint| constraint.budget().is_some() && check(constraint, engine).is_ok());
    if !is_of_closing {
        return error;
    }
    Error::new(error.kind(), format!("{error}; {limit} gives the text more")).with_source(error)
}
