use crate::{ctrl_c::ENDED_BY_CTRL_C, output};
use infer::ModelKind;
use std::{fmt::Write as _, io, process::ExitCode};

/// Why a command ends early.
#[derive(Debug)]
pub(crate) enum Failure {
    /// The arguments do not make sense together. Exit code 2, as for those that clap refuses.
    Usage(String),
    /// It could not be done. Exit code 1.
    Run(infer::Error),
    /// It could not be done with a model of this kind. Exit code 1.
    Unfit(infer::Error, ModelKind),
    /// Some of it could not be done, and what says so. Exit code 3.
    Partly(String),
    /// Ctrl-C has ended it before it was done. Exit code 130, by convention of shells.
    Stopped(String),
    /// Whoever read stdout has gone: nobody is left to tell. A quiet end, exit code 0.
    Closed,
}

impl Failure {
    /// Says what went wrong on stderr, with the chain of causes.
    pub(crate) fn report(&self) -> ExitCode {
        let (text, code) = match self {
            Self::Closed => return ExitCode::SUCCESS,
            Self::Usage(what) => (format!("error: {what}\n\nFor more information, try '--help'."), 2),
            Self::Run(error) => (format!("error: {}", chain(error)), 1),
            Self::Unfit(error, kind) => (format!("error: {}\n  {}", chain(error), right_command(*kind)), 1),
            Self::Partly(what) => (format!("error: {what}"), 3),
            Self::Stopped(what) => (format!("stopped: {what}"), ENDED_BY_CTRL_C),
        };
        // Errors quote files: names, header fields, what a chat template says.
        output::note(&output::printable(&text));
        ExitCode::from(code)
    }
}

/// Which commands a model of this kind is for.
pub(crate) fn right_command(kind: ModelKind) -> String {
    let commands = match kind {
        ModelKind::Decoder => "`infer generate`, `infer chat` and `infer batch` go on with texts",
        ModelKind::Encoder => "`infer embed`, `infer rerank` and `infer classify` are for what it gives",
        ModelKind::Graph => "`infer run` computes it",
        _ => "`infer inspect` says more",
    };
    let article = if kind == ModelKind::Encoder { "an" } else { "a" };
    format!("the model is {article} {kind}: {commands}")
}

/// What an error says, with the chain of causes.
pub(crate) fn chain(error: &infer::Error) -> String {
    let mut text = error.to_string();
    let mut cause = std::error::Error::source(error);
    while let Some(error) = cause {
        let said = error.to_string();
        // Some errors quote the one that caused them.
        if !text.contains(&said) {
            // Infallible: it is a string that is written to.
            let _ = write!(text, "\n  because: {said}");
        }
        cause = error.source();
    }
    text
}

impl From<infer::Error> for Failure {
    fn from(error: infer::Error) -> Self {
        Self::Run(error)
    }
}

/// For writes to stdout, the only input or output the commands do without naming a file.
impl From<io::Error> for Failure {
    fn from(error: io::Error) -> Self {
        if error.kind() == io::ErrorKind::BrokenPipe {
            return Self::Closed;
        }
        Self::Run(infer::Error::new(infer::ErrorKind::Io, "cannot write to stdout").with_source(error))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_closed_pipe_is_no_error_and_causes_are_told() {
        assert!(matches!(Failure::from(io::Error::from(io::ErrorKind::BrokenPipe)), Failure::Closed));
        let Failure::Run(error) = Failure::from(io::Error::other("disk on fire")) else {
            panic!("an error was dropped")
        };
        assert_eq!(chain(&error), "cannot write to stdout\n  because: disk on fire");
        let quoting = infer::Error::invalid_input("no: disk on fire").with_source(io::Error::other("disk on fire"));
        assert_eq!(chain(&quoting), "no: disk on fire");
    }
}
