//! Progress on stderr: a bar or a spinner on a terminal, plain lines elsewhere.

use std::io::IsTerminal;
use std::time::{Duration, Instant};

use build_support::Progress;
use indicatif::{ProgressBar, ProgressStyle};

/// How often a plain log hears of a long step.
const EVERY: Duration = Duration::from_secs(15);

/// Shows what is being done and how long it took.
#[derive(Default)]
pub(crate) struct Terminal {
    step: String,
    begin: Option<Instant>,
    bar: Option<ProgressBar>,
    spoke: Option<Instant>,
}

impl Progress for Terminal {
    fn start(&mut self, step: &str) {
        step.clone_into(&mut self.step);
        let now = Instant::now();
        (self.begin, self.spoke) = (Some(now), Some(now));
        if std::io::stderr().is_terminal() {
            let bar = ProgressBar::new_spinner().with_message(step.to_owned());
            bar.set_style(ProgressStyle::with_template("{spinner} {msg} {elapsed}").expect("a constant template"));
            bar.enable_steady_tick(Duration::from_millis(100));
            self.bar = Some(bar);
        } else {
            eprintln!("{step}");
        }
    }

    fn advance(&mut self, done: u64, total: u64) {
        if let Some(bar) = &self.bar {
            if bar.length() != Some(total) {
                let style = ProgressStyle::with_template("{spinner} {msg} {bar:30} {pos}/{len} {elapsed}, {eta} to go");
                bar.set_style(style.expect("a constant template"));
                bar.set_length(total);
            }
            bar.set_position(done);
        } else if self.spoke.is_some_and(|spoke| spoke.elapsed() >= EVERY) {
            eprintln!("  {done} of {total} after {:.0} s", self.seconds());
            self.spoke = Some(Instant::now());
        }
    }

    fn finish(&mut self, note: &str) {
        if let Some(bar) = self.bar.take() {
            bar.finish_and_clear();
        }
        let note = if note.is_empty() { String::new() } else { format!(" ({note})") };
        eprintln!("{}: {:.1} s{note}", self.step, self.seconds());
    }

    fn note(&mut self, line: &str) {
        match &self.bar {
            Some(bar) => bar.println(line),
            None => eprintln!("{line}"),
        }
    }
}

impl Terminal {
    fn seconds(&self) -> f64 {
        self.begin.map_or(0.0, |begin| begin.elapsed().as_secs_f64())
    }
}
