//! One suite of behaviour for everything that is a [`Model`](infer::Model): what the traits of `infer-core` promise, on each
//! runtime that implements them.
//!
//! A test is a case times a subject, as in `smollm2_unified::fork_equals_recompute`. `libtest-mimic` makes the list when it
//! runs: a runtime joins by one entry in `subject.rs`, a promise by one function in `cases/`, and neither by a macro. Expected
//! failures are judged in one place; a declared exception that passes is a failure.
//!
//! - `subject.rs`: what is tested, and what is known of it;
//! - `setting.rs`: a subject that was opened, and the words cases are written in;
//! - `cases/`: what is promised.

mod cases;
mod opened;
mod setting;
mod subject;

use cases::Case;
use kit::expectation::{judge, words};
use libtest_mimic::{Arguments, Failed, Trial};
use setting::Setting;
use std::{
    panic::{AssertUnwindSafe, catch_unwind},
    process::ExitCode,
};
use subject::Subject;

fn main() -> ExitCode {
    let (subjects, cases) = (subject::all(), cases::all());
    let mut trials = vec![Trial::test("suite::exceptions_are_of_cases_there_are", move || {
        let unknown = subjects
            .iter()
            .flat_map(|subject| subject.exceptions)
            .find(|exception| exception.why.is_empty() || !cases.iter().any(|case| case.name == exception.case));
        unknown.map_or(Ok(()), |exception| Err(format!("{exception:?} is of no case, or has no reason").into()))
    })];
    for subject in subjects {
        let fitting = cases.iter().filter(|case| case.kind == subject.kind);
        trials.extend(fitting.map(|case| {
            Trial::test(format!("{}::{}", subject.name, case.name), move || run(subject, case).map_err(Failed::from))
        }));
    }
    libtest_mimic::run(&Arguments::from_args(), trials).exit_code()
}

/// Opens the subject on this thread, runs the case, and judges what came of it.
fn run(subject: &Subject, case: &Case) -> Result<(), String> {
    let happened = catch_unwind(AssertUnwindSafe(|| {
        let opened = (subject.open)();
        (case.run)(&Setting { subject, model: &*opened.model });
        drop(opened.model);
        (opened.afterwards)();
    }));
    let exception = subject.exceptions.iter().find(|exception| exception.case == case.name);
    judge(exception, happened.map_err(|panic| words(&*panic)))
}
