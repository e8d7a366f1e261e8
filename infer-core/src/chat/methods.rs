//! Python's methods of strings, lists and maps, as templates call them.
//!
//! Most are those of `minijinja-contrib`. Wrapped are those that could do, on a short call, work or memory that is not
//! paid for in fuel beforehand; added are a few that templates use beyond them.

use minijinja::{
    Error, ErrorKind, State, Value,
    value::{ValueKind, from_args},
};
use minijinja_contrib::pycompat::unknown_method_callback as python;

/// Bytes that one fuel pays for, as in the engine.
pub(super) const BYTES_A_FUEL: u64 = 64;

pub(super) fn call(state: &mut State<'_, '_>, value: &Value, method: &str, args: &[Value]) -> Result<Value, Error> {
    match value.kind() {
        ValueKind::String => string(state, value, method, args),
        ValueKind::Seq | ValueKind::Iterable => {
            visit(state, value)?;
            python(state, value, method, args)
        }
        _ => python(state, value, method, args),
    }
}

fn string(state: &mut State<'_, '_>, value: &Value, method: &str, args: &[Value]) -> Result<Value, Error> {
    let text = value.as_str().unwrap_or_default();
    match method {
        "split" | "rsplit" => {
            let (separator, limit) = from_args::<(Option<Value>, Option<i64>)>(args)?;
            let separator = separator.filter(|separator| !separator.is_none());
            let pieces = match &separator {
                Some(separator) => text.matches(separator.as_str().unwrap_or(" ")).count(),
                None => text.len() / 2,
            };
            pay(state, pieces.saturating_mul(size_of::<Value>()))?;
            if method == "rsplit" {
                rsplit(text, separator.as_ref(), limit)
            } else {
                python(state, value, method, args)
            }
        }
        "splitlines" => {
            pay(state, text.matches('\n').count().saturating_mul(size_of::<Value>()))?;
            python(state, value, method, args)
        }
        "join" => {
            let (items,) = from_args::<(&Value,)>(args)?;
            join(state, text, items)
        }
        "format" => {
            pay(state, widths(text))?;
            python(state, value, method, args)
        }
        "startswith" | "endswith" => {
            args.iter().filter(|arg| arg.as_object().is_some()).try_for_each(|arg| visit(state, arg))?;
            python(state, value, method, args)
        }
        "removeprefix" => {
            let (prefix,) = from_args::<(&str,)>(args)?;
            Ok(text.strip_prefix(prefix).unwrap_or(text).into())
        }
        "removesuffix" => {
            let (suffix,) = from_args::<(&str,)>(args)?;
            Ok(text.strip_suffix(suffix).unwrap_or(text).into())
        }
        "partition" => {
            let (separator,) = from_args::<(&str,)>(args)?;
            let (before, after) = text.split_once(separator).map_or((text, None), |(a, b)| (a, Some(b)));
            let middle = if after.is_some() { separator } else { "" };
            Ok([before, middle, after.unwrap_or_default()].into_iter().map(Value::from).collect())
        }
        _ => python(state, value, method, args),
    }
}

fn rsplit(text: &str, separator: Option<&Value>, limit: Option<i64>) -> Result<Value, Error> {
    let most = limit.and_then(|limit| usize::try_from(limit).ok()).map_or(usize::MAX, |limit| limit.saturating_add(1));
    let mut pieces: Vec<&str> = match separator {
        Some(separator) => {
            let separator = separator.as_str().filter(|separator| !separator.is_empty());
            let separator = separator
                .ok_or_else(|| Error::new(ErrorKind::InvalidOperation, "rsplit: the separator must be a text"))?;
            text.rsplitn(most, separator).collect()
        }
        None if limit.is_none_or(|limit| limit < 0) => text.split_whitespace().rev().collect(),
        None => {
            let message = "rsplit: a limit needs a separator";
            return Err(Error::new(ErrorKind::InvalidOperation, message));
        }
    };
    pieces.reverse();
    Ok(pieces.into_iter().map(Value::from).collect())
}

/// As in Python, the items must be texts: so no list in a list is written out unpaid.
fn join(state: &State<'_, '_>, separator: &str, items: &Value) -> Result<Value, Error> {
    let mut out = String::new();
    for (nth, item) in items.try_iter()?.enumerate() {
        let text = item.as_str().ok_or_else(|| {
            Error::new(ErrorKind::InvalidOperation, format!("join: item {nth} is a {}, not a string", item.kind()))
        })?;
        state.consume_fuel(1)?;
        pay(state, separator.len() + text.len())?;
        if nth > 0 {
            out.push_str(separator);
        }
        out.push_str(text);
    }
    Ok(Value::from(out))
}

/// An upper bound of what the widths and precisions of a format can add.
fn widths(format: &str) -> usize {
    format
        .split(|c: char| !c.is_ascii_digit())
        .filter(|digits| !digits.is_empty())
        .map(|digits| digits.parse().unwrap_or(usize::MAX))
        .fold(0, usize::saturating_add)
}

/// Pays for these many bytes before they are allocated.
fn pay(state: &State<'_, '_>, bytes: usize) -> Result<(), Error> {
    state.consume_fuel(bytes as u64 / BYTES_A_FUEL)
}

/// Pays for a look at every item.
fn visit(state: &State<'_, '_>, list: &Value) -> Result<(), Error> {
    state.consume_fuel(list.len().unwrap_or(0) as u64)
}
