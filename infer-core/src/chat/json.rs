//! JSON in, for what templates are told, and JSON out, for what they write.

use super::values;
use crate::Result as CoreResult;
use minijinja::{
    Error, ErrorKind, State, Value,
    value::{Kwargs, ValueKind},
};
use std::fmt::Write;

/// Lists in lists in … as deep as this are written.
const MAX_DEPTH: usize = 64;

/// The value of a JSON text that was given under `name`.
pub(super) fn parse(name: &str, text: &str) -> CoreResult<Value> {
    let invalid = |message: String| crate::Error::invalid_input(message);
    let value: Value =
        serde_json::from_str(text).map_err(|error| invalid(format!("`{name}` is not JSON")).with_source(error))?;
    values::solid(&value, &mut |_| Ok(())).map_err(|error| invalid(format!("`{name}`: {error}")))
}

/// The filter `tojson`: JSON as Python's `json.dumps` writes it, which is what models were trained on, not escaped for
/// HTML. `ensure_ascii`, `indent`, `separators` and `sort_keys` are
/// its arguments.
pub(super) fn tojson(state: &State<'_, '_>, value: &Value, options: Kwargs) -> Result<String, Error> {
    let indent = match options.get::<Option<Value>>("indent")? {
        Some(text) if text.as_str().is_some() => text.as_str().map(str::to_owned),
        Some(count) if !count.is_none() => Some(" ".repeat(usize::try_from(count)?.min(64))),
        _ => None,
    };
    let separators = options.get::<Option<Vec<String>>>("separators")?;
    let (item, key) = match separators.as_deref() {
        None if indent.is_some() => (",".to_owned(), ": ".to_owned()),
        None => (", ".to_owned(), ": ".to_owned()),
        Some([item, key]) => (item.clone(), key.clone()),
        Some(_) => return Err(Error::new(ErrorKind::InvalidOperation, "tojson: `separators` must be a pair")),
    };
    let mut writer = Writer {
        state,
        out: String::new(),
        charged: 0,
        ensure_ascii: options.get::<Option<bool>>("ensure_ascii")?.unwrap_or(false),
        sort_keys: options.get::<Option<bool>>("sort_keys")?.unwrap_or(false),
        indent,
        item,
        key,
    };
    options.assert_all_used()?;
    writer.value(value, 0)?;
    Ok(writer.out)
}

struct Writer<'a, 'b, 'c> {
    state: &'a State<'b, 'c>,
    out: String,
    /// Bytes of `out` that fuel was paid for.
    charged: usize,
    ensure_ascii: bool,
    sort_keys: bool,
    indent: Option<String>,
    item: String,
    key: String,
}

impl Writer<'_, '_, '_> {
    fn value(&mut self, value: &Value, depth: usize) -> Result<(), Error> {
        self.charge()?;
        if depth > MAX_DEPTH {
            return Err(Error::new(ErrorKind::InvalidOperation, "tojson: the value is nested too deeply"));
        }
        match value.kind() {
            ValueKind::Undefined => {
                return Err(Error::new(ErrorKind::UndefinedError, "tojson: the value is undefined"));
            }
            ValueKind::None => self.out.push_str("null"),
            ValueKind::Bool => self.out.push_str(if value.is_true() { "true" } else { "false" }),
            ValueKind::Number => self.number(value),
            ValueKind::String => self.string(value.as_str().unwrap_or_default()),
            ValueKind::Seq | ValueKind::Iterable => self.list(value, depth)?,
            ValueKind::Map => self.map(value, depth)?,
            kind => {
                let message = format!("tojson: a {kind} has no JSON");
                return Err(Error::new(ErrorKind::InvalidOperation, message));
            }
        }
        Ok(())
    }

    /// One fuel for 16 bytes or for a value, whichever is more: writing costs more than copying.
    fn charge(&mut self) -> Result<(), Error> {
        let new = self.out.len() - self.charged;
        self.charged = self.out.len();
        self.state.consume_fuel(1 + new as u64 / 16)
    }

    fn list(&mut self, list: &Value, depth: usize) -> Result<(), Error> {
        self.out.push('[');
        let mut any = false;
        for item in list.try_iter()? {
            self.separate(any, depth + 1);
            self.value(&item, depth + 1)?;
            any = true;
        }
        self.close(any, depth, ']');
        Ok(())
    }

    fn map(&mut self, map: &Value, depth: usize) -> Result<(), Error> {
        let mut keys: Vec<Value> = map.try_iter()?.collect();
        if self.sort_keys {
            keys.sort();
        }
        self.out.push('{');
        let any = !keys.is_empty();
        for (nth, key) in keys.iter().enumerate() {
            self.separate(nth > 0, depth + 1);
            match key.kind() {
                ValueKind::String => self.string(key.as_str().unwrap_or_default()),
                ValueKind::None | ValueKind::Bool | ValueKind::Number => {
                    self.out.push('"');
                    self.value(key, depth + 1)?;
                    self.out.push('"');
                }
                kind => {
                    let message = format!("tojson: a {kind} cannot be a key");
                    return Err(Error::new(ErrorKind::InvalidOperation, message));
                }
            }
            self.out.push_str(&self.key);
            self.value(&map.get_item(key)?, depth + 1)?;
        }
        self.close(any, depth, '}');
        Ok(())
    }

    fn separate(&mut self, any_before: bool, depth: usize) {
        if any_before {
            self.out.push_str(&self.item);
        }
        self.new_line(depth);
    }

    fn close(&mut self, any: bool, depth: usize, bracket: char) {
        if any {
            self.new_line(depth);
        }
        self.out.push(bracket);
    }

    fn new_line(&mut self, depth: usize) {
        if let Some(indent) = &self.indent {
            self.out.push('\n');
            (0..depth).for_each(|_| self.out.push_str(indent));
        }
    }

    fn number(&mut self, number: &Value) {
        let write = match f64::try_from(number.clone()) {
            Ok(float) if !number.is_integer() => write!(self.out, "{}", python_float(float)),
            _ => write!(self.out, "{number}"),
        };
        write.expect("a String takes everything");
    }

    fn string(&mut self, text: &str) {
        self.out.push('"');
        for c in text.chars() {
            match c {
                '"' => self.out.push_str("\\\""),
                '\\' => self.out.push_str("\\\\"),
                '\n' => self.out.push_str("\\n"),
                '\r' => self.out.push_str("\\r"),
                '\t' => self.out.push_str("\\t"),
                '\u{8}' => self.out.push_str("\\b"),
                '\u{c}' => self.out.push_str("\\f"),
                c if c < ' ' || (self.ensure_ascii && !c.is_ascii()) => {
                    for unit in c.encode_utf16(&mut [0; 2]) {
                        write!(self.out, "\\u{unit:04x}").expect("a String takes everything");
                    }
                }
                c => self.out.push(c),
            }
        }
        self.out.push('"');
    }
}

/// A float as Python's `repr` has it. Rust's shortest form has the same digits and switches to exponents at the same
/// places, but writes them without sign and padding.
fn python_float(float: f64) -> String {
    if float.is_nan() {
        return "NaN".to_owned();
    }
    if float.is_infinite() {
        return if float > 0.0 { "Infinity" } else { "-Infinity" }.to_owned();
    }
    let text = format!("{float:?}");
    match text.split_once('e') {
        None => text,
        Some((digits, exponent)) => {
            let (sign, exponent) = exponent.strip_prefix('-').map_or(('+', exponent), |exponent| ('-', exponent));
            format!("{digits}e{sign}{exponent:0>2}")
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The expected texts are those of CPython 3.11.
    #[test]
    fn floats_are_those_of_python() {
        let cases = [
            (1.0, "1.0"),
            (-0.0, "-0.0"),
            (0.1, "0.1"),
            (1e15, "1000000000000000.0"),
            (1e16, "1e+16"),
            (1.5e300, "1.5e+300"),
            (1e-4, "0.0001"),
            (1e-5, "1e-05"),
            (2.5e-10, "2.5e-10"),
        ];
        for (float, expected) in cases {
            assert_eq!(python_float(float), expected);
        }
    }
}
