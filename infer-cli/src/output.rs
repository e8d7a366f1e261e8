//! The two streams: stdout has the answer and nothing else, stderr has everything about it.

use crate::failure::Failure;
use indicatif::{ProgressBar, ProgressFinish, ProgressStyle};
use infer::Sampled;
use serde::Serialize;
use std::{
    io::{IsTerminal, Write},
    time::Duration,
};

/// Writes text to stdout at once, so that a reader sees it as it is made.
pub(crate) fn text(text: &str) -> Result<(), Failure> {
    if text.is_empty() {
        return Ok(());
    }
    let mut out = std::io::stdout().lock();
    out.write_all(text.as_bytes())?;
    Ok(out.flush()?)
}

/// Writes one JSON object to stdout, on one line.
pub(crate) fn json(value: &impl Serialize) -> Result<(), Failure> {
    let mut line = serde_json::to_string(value).map_err(std::io::Error::from)?;
    line.push('\n');
    text(&line)
}

/// A token that was drawn, and what else might have been.
#[derive(Serialize)]
pub(crate) struct Place {
    #[serde(flatten)]
    drawn: Sampled,
    top: Vec<Sampled>,
}

impl Place {
    /// `top` has one for each token, or nothing where none were asked for.
    pub(crate) fn all(tokens: &[Sampled], top: Vec<Vec<Sampled>>) -> Vec<Self> {
        let top = top.into_iter().chain(std::iter::repeat(Vec::new()));
        tokens.iter().zip(top).map(|(&drawn, top)| Self { drawn, top }).collect()
    }
}

/// Ends the line of a streamed text where a person is reading, and leaves the bytes alone where a program is.
pub(crate) fn end_of_text() -> Result<(), Failure> {
    if std::io::stdout().is_terminal() { text("\n") } else { Ok(()) }
}

/// Says something about the work on stderr. That stderr is gone is no reason to stop.
pub(crate) fn note(line: &str) {
    let _ = writeln!(std::io::stderr().lock(), "{line}");
}

/// Writes text to stderr, as [`text`] does to stdout. That stderr is gone is no reason to stop.
pub(crate) fn aside(text: &str) {
    let mut err = std::io::stderr().lock();
    let _ = err.write_all(text.as_bytes()).and_then(|()| err.flush());
}

/// A bar on stderr from 0 to 1, shown where a person is watching and the work takes its time.
pub(crate) fn progress(what: &str) -> impl FnMut(f32) {
    const STEPS: u64 = 1000;
    // Also where what it shows ends early.
    let bar = ProgressBar::new(STEPS).with_finish(ProgressFinish::AndClear);
    let style = ProgressStyle::with_template("{msg} {wide_bar} {percent:>3} %").expect("the template is a constant");
    bar.set_style(style);
    bar.set_message(what.to_owned());
    move |done| {
        // A share of 0 to 1; whatever else comes is clamped by the cast.
        let steps = (done * STEPS as f32) as u64;
        if steps >= STEPS { bar.finish_and_clear() } else { bar.set_position(steps) }
    }
}

/// A bar on stderr that counts to `total`, where that is known, from what is done already; shown where a person is watching.
pub(crate) fn counted(what: &str, total: Option<u64>, done: u64) -> ProgressBar {
    let template = match total {
        Some(_) => "{prefix} {wide_bar} {pos}/{len}, {msg}, {eta} left",
        None => "{prefix} {spinner} {pos}, {msg}",
    };
    let bar = total.map_or_else(ProgressBar::new_spinner, ProgressBar::new);
    bar.set_style(ProgressStyle::with_template(template).expect("the templates are constants"));
    bar.set_prefix(what.to_owned());
    bar.with_position(done).with_elapsed(Duration::ZERO)
}

/// Seconds as JSON has them: whole microseconds, not the digits of a binary fraction.
pub(crate) fn seconds(duration: Duration) -> f64 {
    duration.as_micros() as f64 / 1e6
}

/// A number of bytes in the unit that gives one to four digits before the point.
pub(crate) fn bytes(count: u64) -> String {
    const UNITS: [&str; 6] = ["B", "KiB", "MiB", "GiB", "TiB", "PiB"];
    let power = (0..UNITS.len() - 1).find(|power| count >> (10 * power) < 1024).unwrap_or(UNITS.len() - 1);
    if power == 0 {
        return format!("{count} B");
    }
    let value = count as f64 / (1u64 << (10 * power)) as f64;
    let decimals = if value.fract() == 0.0 { 0 } else { 2 };
    format!("{value:.decimals$} {}", UNITS[power])
}

/// Text out of a model's file, fit for a terminal: a file must not move the cursor or rename the window.
pub(crate) fn printable(text: &str) -> String {
    let harmless = |c: char| !c.is_control() || matches!(c, '\n' | '\t');
    text.chars().map(|c| if harmless(c) { c } else { char::REPLACEMENT_CHARACTER }).collect()
}

/// A number with commas between thousands.
pub(crate) fn count(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::new();
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_told_in_the_unit_that_reads_best() {
        assert_eq!(bytes(0), "0 B");
        assert_eq!(bytes(1023), "1023 B");
        assert_eq!(bytes(144 << 10), "144 KiB");
        assert_eq!(bytes(576 << 20), "576 MiB");
        assert_eq!(bytes(3 << 29), "1.50 GiB");
        assert_eq!(bytes(u64::MAX), "16384 PiB");
        assert_eq!([0, 999, 1000, 134_515_008].map(count), ["0", "999", "1,000", "134,515,008"]);
    }

    #[test]
    fn a_file_does_not_speak_to_the_terminal() {
        assert_eq!(printable("a\n\tb\u{1b}[2Jc\u{9b}d"), "a\n\tb\u{fffd}[2Jc\u{fffd}d");
    }

    #[test]
    fn seconds_have_no_digits_nobody_measured() {
        assert_eq!(serde_json::to_string(&seconds(Duration::from_nanos(123_456_789))).unwrap(), "0.123456");
    }
}
