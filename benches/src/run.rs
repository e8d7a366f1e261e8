use crate::{Figure, Verdict, memory};
use std::process::ExitCode;

/// One run of a bench: what it was asked, and what it found so far.
#[derive(Debug)]
pub struct Run {
    quick: bool,
    /// The parts that were asked for; all of them where none was.
    parts: Vec<String>,
    figures: Vec<Figure>,
}

impl Run {
    /// Reads the command line: `--quick` for a run of seconds, whose timings are information only.
    ///
    /// # Panics
    /// At an argument it does not know.
    pub fn from_args() -> Self {
        Self::of_parts(&[])
    }

    /// Reads the command line of a bench that has parts: their names, for these alone, and `--quick`.
    ///
    /// # Panics
    /// As [`from_args`](Self::from_args).
    pub fn of_parts(names: &[&str]) -> Self {
        let (mut quick, mut parts) = (false, Vec::new());
        for argument in std::env::args().skip(1) {
            match argument.as_str() {
                "--quick" => quick = true,
                // `cargo bench` adds it.
                "--bench" => {}
                name if names.contains(&name) => parts.push(argument),
                other => panic!("unknown argument {other:?}; there is {}", [&["--quick"], names].concat().join(", ")),
            }
        }
        Self { quick, parts, figures: Vec::new() }
    }

    /// Whether this part was asked for.
    pub fn wants(&self, part: &str) -> bool {
        self.parts.is_empty() || self.parts.iter().any(|name| name == part)
    }

    /// Whether this is a run of seconds.
    pub fn quick(&self) -> bool {
        self.quick
    }

    /// Says what is being done.
    pub fn progress(&self, text: &str) {
        eprintln!("  {text} …");
    }

    /// Adds a figure that does not depend on how long it was measured: a count, a comparison of tokens.
    pub fn figure(&mut self, figure: Figure) {
        println!("{}", figure.json());
        self.figures.push(figure);
    }

    /// Adds a timing. In a quick run no bar counts.
    pub fn timing(&mut self, figure: Figure) {
        self.figure(if self.quick { figure.unjudged() } else { figure });
    }

    /// States the most memory this process has had, and prints the table. The exit code says whether a bar was missed.
    pub fn finish(mut self) -> ExitCode {
        let bench = self.figures.first().and_then(|first| first.name().split('/').next()).unwrap_or("bench").to_owned();
        // Where the system does not tell, there is no figure.
        if let Ok(bytes) = memory::peak() {
            let note = "the most this process had in memory, mapped weights included";
            self.figure(Figure::new(format!("{bench}/peak"), bytes as f64 / 1e6, "MB").with_note(note));
        }
        eprint!("{}", Figure::table(&self.figures));
        let missed = self.figures.iter().any(|figure| figure.verdict() == Verdict::Missed);
        if missed { ExitCode::FAILURE } else { ExitCode::SUCCESS }
    }
}
