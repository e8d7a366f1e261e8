use serde::Serialize;
use std::{borrow::Cow, fmt::Write};

/// How far from 1 the ratio of a contestant to itself may be for a bar to count.
const QUIET: f64 = 0.02;

/// What a figure has to be.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Bar {
    /// At least this.
    AtLeast(f64),
    /// At most this.
    AtMost(f64),
    /// Less than this.
    Below(f64),
}

/// One number that a bench found.
#[derive(Clone, Debug, PartialEq)]
pub struct Figure {
    name: Cow<'static, str>,
    value: f64,
    unit: &'static str,
    bar: Option<Bar>,
    against_itself: Option<f64>,
    judged: bool,
    note: String,
}

/// Whether a figure is what it has to be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// It is.
    Met,
    /// It is not.
    Missed,
    /// Nobody said what it has to be, or it was not measured well enough to say.
    Information,
}

/// A figure as JSON has it.
#[derive(Serialize)]
struct Line<'f> {
    name: &'f str,
    value: f64,
    unit: &'f str,
    bar: Option<String>,
    a_against_a: Option<f64>,
    met: Met,
    note: &'f str,
}

#[derive(Serialize)]
#[serde(untagged)]
enum Met {
    Judged(bool),
    Not(&'static str),
}

impl Figure {
    /// A number without a bar.
    pub fn new(name: impl Into<Cow<'static, str>>, value: f64, unit: &'static str) -> Self {
        Self { name: name.into(), value, unit, bar: None, against_itself: None, judged: true, note: String::new() }
    }

    /// Says what it has to be.
    #[must_use]
    pub fn with_bar(mut self, bar: Bar) -> Self {
        self.bar = Some(bar);
        self
    }

    /// Adds the same ratio of a contestant to itself, measured in the same rounds. Further than 2 % from 1, the bar does
    /// not count.
    #[must_use]
    pub fn with_against_itself(mut self, ratio: f64) -> Self {
        self.against_itself = Some(ratio);
        self
    }

    /// The bar does not count: there were fewer rounds than it asks for.
    #[must_use]
    pub fn unjudged(mut self) -> Self {
        self.judged = false;
        self
    }

    /// Adds how it was measured, or what else should be known.
    #[must_use]
    pub fn with_note(mut self, note: impl Into<String>) -> Self {
        self.note = note.into();
        self
    }

    /// What it is called: the bench, a slash, and what was measured.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Whether it is what it has to be.
    pub fn verdict(&self) -> Verdict {
        let quiet = self.against_itself.is_none_or(|ratio| (ratio - 1.0).abs() <= QUIET);
        match self.bar {
            Some(bar) if self.judged && quiet => match bar.holds(self.value) {
                true => Verdict::Met,
                false => Verdict::Missed,
            },
            _ => Verdict::Information,
        }
    }

    /// One line of JSON: `name`, `value`, `unit`, `bar`, `a_against_a`, `met` (true, false or "information"), `note`.
    pub fn json(&self) -> String {
        let line = Line {
            name: &self.name,
            value: self.value,
            unit: self.unit,
            bar: self.bar.map(Bar::text),
            a_against_a: self.against_itself,
            met: match self.verdict() {
                Verdict::Met => Met::Judged(true),
                Verdict::Missed => Met::Judged(false),
                Verdict::Information => Met::Not("information"),
            },
            note: &self.note,
        };
        serde_json::to_string(&line).expect("numbers and text")
    }

    /// Figures as a table for people.
    pub fn table(figures: &[Self]) -> String {
        let heads = ["figure", "value", "unit", "bar", "A/A", "met", "note"].map(str::to_owned);
        let rows: Vec<[String; 7]> = std::iter::once(heads).chain(figures.iter().map(Self::row)).collect();
        let widths: [usize; 7] =
            std::array::from_fn(|column| rows.iter().map(|row| row[column].chars().count()).max().unwrap_or_default());
        let mut table = String::new();
        for row in &rows {
            let mut line = String::new();
            for (cell, width) in row.iter().zip(widths) {
                write!(line, "{cell:width$}  ").expect("a string takes all");
            }
            table.push_str(line.trim_end());
            table.push('\n');
        }
        table
    }

    fn row(&self) -> [String; 7] {
        let met = match self.verdict() {
            Verdict::Met => "yes",
            Verdict::Missed => "NO",
            Verdict::Information => "-",
        };
        [
            self.name.to_string(),
            number(self.value),
            self.unit.to_owned(),
            self.bar.map(Bar::text).unwrap_or_default(),
            self.against_itself.map(number).unwrap_or_default(),
            met.to_owned(),
            self.note.clone(),
        ]
    }
}

impl Bar {
    fn holds(self, value: f64) -> bool {
        match self {
            Self::AtLeast(bar) => value >= bar,
            Self::AtMost(bar) => value <= bar,
            Self::Below(bar) => value < bar,
        }
    }

    fn text(self) -> String {
        match self {
            Self::AtLeast(bar) => format!(">= {bar}"),
            Self::AtMost(bar) => format!("<= {bar}"),
            Self::Below(bar) => format!("< {bar}"),
        }
    }
}

/// Four significant digits; counts as they are.
fn number(value: f64) -> String {
    if value == value.trunc() && value.abs() < 1e15 {
        return format!("{value}");
    }
    let before = value.abs().log10().floor() as i32 + 1;
    format!("{value:.*}", usize::try_from(4 - before).unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ratio(value: f64) -> Figure {
        Figure::new("llama/decode", value, "raw/ours").with_bar(Bar::AtLeast(0.98))
    }

    #[test]
    fn a_bar_counts_where_the_machine_was_quiet() {
        assert_eq!(ratio(0.981).with_against_itself(1.019).verdict(), Verdict::Met);
        assert_eq!(ratio(0.979).with_against_itself(0.981).verdict(), Verdict::Missed);
        assert_eq!(ratio(0.9).with_against_itself(1.03).verdict(), Verdict::Information);
        assert_eq!(ratio(0.9).with_against_itself(0.97).verdict(), Verdict::Information);
        assert_eq!(ratio(0.9).unjudged().verdict(), Verdict::Information);
        assert_eq!(Figure::new("x", 1.0, "s").verdict(), Verdict::Information);
    }

    #[test]
    fn bars_are_what_they_say() {
        assert!(Bar::AtLeast(1.0).holds(1.0) && !Bar::AtLeast(1.0).holds(0.999));
        assert!(Bar::AtMost(0.0).holds(0.0) && !Bar::AtMost(0.0).holds(1.0));
        assert!(Bar::Below(1.0).holds(0.999) && !Bar::Below(1.0).holds(1.0));
        assert!(![Bar::AtLeast(1.0), Bar::AtMost(1.0), Bar::Below(1.0)].iter().any(|bar| bar.holds(f64::NAN)));
    }

    #[test]
    fn a_figure_is_one_line_of_json() {
        let line = ratio(0.99).with_against_itself(1.001).with_note("1000 \"pairs\"").json();
        assert_eq!(
            line,
            r#"{"name":"llama/decode","value":0.99,"unit":"raw/ours","bar":">= 0.98","a_against_a":1.001,"met":true,"note":"1000 \"pairs\""}"#
        );
        let bare = Figure::new("x", 2.5, "MB").json();
        assert_eq!(
            bare,
            r#"{"name":"x","value":2.5,"unit":"MB","bar":null,"a_against_a":null,"met":"information","note":""}"#
        );
    }

    #[test]
    fn a_table_stands_in_columns() {
        let table = Figure::table(&[ratio(0.123456), Figure::new("long/name/of/it", 1234.5678, "MB").with_note("n")]);
        assert_eq!(
            table,
            "figure           value   unit      bar      A/A  met  note\n\
             llama/decode     0.1235  raw/ours  >= 0.98       NO\n\
             long/name/of/it  1235    MB                      -    n\n"
        );
    }

    #[test]
    fn numbers_have_four_digits() {
        assert_eq!([0.98765, 12.3456, 0.00123456, 3.0, 0.0].map(number), ["0.9877", "12.35", "0.001235", "3", "0"]);
    }
}
