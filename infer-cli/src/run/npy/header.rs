//! The header of a `.npy` file: `{'descr': '<f4', 'fortran_order': False, 'shape': (3, 4), }`.

use super::{Kind, LONGEST_HEADER, MAGIC, MOST_DIMENSIONS};
use std::io::{ErrorKind, Read};

/// What an array is, as its file says.
#[derive(Debug, PartialEq)]
pub(super) struct Header {
    pub(super) kind: Kind,
    /// Whether numbers are in the byte order that this machine does not have.
    pub(super) is_swapped: bool,
    pub(super) is_fortran: bool,
    pub(super) shape: Vec<usize>,
}

impl Header {
    pub(super) fn read(source: &mut impl Read) -> Result<Self, String> {
        let mut begin = [0; 8];
        fill(source, &mut begin)?;
        if &begin[..6] != MAGIC {
            return Err(format!("is no .npy file: it begins with `{}`", begin[..6].escape_ascii()));
        }
        let length = match begin[6] {
            1 => {
                let mut length = [0; 2];
                fill(source, &mut length)?;
                u16::from_le_bytes(length).into()
            }
            2 | 3 => {
                let mut length = [0; 4];
                fill(source, &mut length)?;
                u32::from_le_bytes(length) as usize
            }
            version => return Err(format!("is of version {version} of the format; 1, 2 and 3 are known")),
        };
        if length > LONGEST_HEADER {
            return Err(format!("is said to have a header of {length} bytes, longer than any"));
        }
        let mut text = vec![0; length];
        fill(source, &mut text)?;
        let text = str::from_utf8(&text).map_err(|_| "has a header that is not text".to_owned())?;
        Self::parse(text).map_err(|what| format!("has a header that {what}: {}", text.trim_end().escape_debug()))
    }

    fn parse(text: &str) -> Result<Self, String> {
        let mut rest = Literal(text);
        let (mut descr, mut is_fortran, mut shape) = (None, None, None);
        rest.take("{").ok_or("is no dictionary")?;
        while rest.take("}").is_none() {
            let key = rest.string().ok_or("has something in place of a name")?;
            rest.take(":").ok_or("lacks a colon")?;
            match key {
                "descr" => descr = Some(rest.string().ok_or("says that it is a record array, which has no one type")?),
                "fortran_order" => is_fortran = Some(rest.truth().ok_or("has an order that is not True or False")?),
                "shape" => shape = Some(rest.tuple().ok_or("has a shape that is no tuple of numbers")?),
                _ => return Err(format!("has an unknown name `{}`", key.escape_debug())),
            }
            if rest.take(",").is_none() && !rest.0.trim_start().starts_with('}') {
                return Err("lacks a comma".into());
            }
        }
        if !rest.0.trim().is_empty() {
            return Err("goes on after its end".into());
        }
        let (kind, is_swapped) = kind(descr.ok_or("does not say `descr`")?)?;
        let is_fortran = is_fortran.ok_or("does not say `fortran_order`")?;
        let shape = shape.ok_or("does not say `shape`")?;
        if shape.len() > MOST_DIMENSIONS {
            return Err(format!("says {} dimensions, where NumPy has {MOST_DIMENSIONS} at most", shape.len()));
        }
        Ok(Self { kind, is_swapped, is_fortran, shape })
    }
}

/// A type by NumPy's name for it, such as `<f4`, and whether its byte order is the other one.
fn kind(descr: &str) -> Result<(Kind, bool), String> {
    let unknown = || format!("names a type `{}`, which is not of numbers, truth values or text", descr.escape_debug());
    let mut characters = descr.chars();
    let (order, letter) = (characters.next().ok_or_else(unknown)?, characters.next().ok_or_else(unknown)?);
    let is_swapped = match order {
        '<' => cfg!(target_endian = "big"),
        '>' => cfg!(target_endian = "little"),
        '|' | '=' => false,
        _ => return Err(unknown()),
    };
    let size = number(characters.as_str()).ok_or_else(unknown)?;
    let kind = match (letter, size) {
        ('b', 1) => Kind::Number(b'b', 1),
        ('i' | 'u', 1 | 2 | 4 | 8) | ('f', 2 | 4 | 8) | ('c', 8 | 16) => Kind::Number(letter as u8, size),
        ('V', 1..) => Kind::Raw(size),
        ('U', 1..) => Kind::Text(size),
        ('S', 1..) => Kind::Bytes(size),
        _ => return Err(unknown()),
    };
    Ok((kind, is_swapped))
}

/// What is left of a Python literal.
struct Literal<'t>(&'t str);

impl<'t> Literal<'t> {
    /// Goes past `mark` and the spaces before it; `None` where it is not there.
    fn take(&mut self, mark: &str) -> Option<()> {
        self.0 = self.0.trim_start().strip_prefix(mark)?;
        Some(())
    }

    /// A string without escapes, of which these have none.
    fn string(&mut self) -> Option<&'t str> {
        let text = self.0.trim_start();
        let quote = text.chars().next().filter(|quote| matches!(quote, '\'' | '"'))?;
        let (string, rest) = text[1..].split_once(quote)?;
        self.0 = rest;
        (!string.contains('\\')).then_some(string)
    }

    fn truth(&mut self) -> Option<bool> {
        self.take("True").map(|()| true).or_else(|| self.take("False").map(|()| false))
    }

    fn tuple(&mut self) -> Option<Vec<usize>> {
        self.take("(")?;
        let (inside, rest) = self.0.split_once(')')?;
        self.0 = rest;
        let mut numbers: Vec<&str> = inside.split(',').map(str::trim).collect();
        if numbers.last() == Some(&"") {
            numbers.pop();
        }
        // Python 2 ended long numbers with an L.
        numbers.into_iter().map(|digits| number(digits.strip_suffix('L').unwrap_or(digits))).collect()
    }
}

/// A number of digits alone.
fn number(digits: &str) -> Option<usize> {
    digits.bytes().all(|digit| digit.is_ascii_digit()).then(|| digits.parse().ok())?
}

fn fill(source: &mut impl Read, bytes: &mut [u8]) -> Result<(), String> {
    source.read_exact(bytes).map_err(|error| match error.kind() {
        ErrorKind::UnexpectedEof => "ends within its header; it is truncated, or no .npy file".to_owned(),
        _ => format!("cannot be read: {error}"),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_numpy_writes_is_read() {
        let header =
            |kind, is_fortran, shape: &[usize]| Header { kind, is_swapped: false, is_fortran, shape: shape.to_vec() };
        for (text, wanted) in [
            (
                "{'descr': '<f4', 'fortran_order': False, 'shape': (3, 4), }  \n",
                header(Kind::Number(b'f', 4), false, &[3, 4]),
            ),
            ("{'shape': (), 'fortran_order': True, 'descr': '|b1'}", header(Kind::Number(b'b', 1), true, &[])),
            (r#"{"descr": "<U12", "fortran_order": False, "shape": (7L,)}"#, header(Kind::Text(12), false, &[7])),
            ("{'descr':'|V2','fortran_order':False,'shape':(0,5,)}", header(Kind::Raw(2), false, &[0, 5])),
        ] {
            if cfg!(target_endian = "little") {
                assert_eq!(Header::parse(text), Ok(wanted), "{text}");
            }
        }
    }

    #[test]
    fn what_it_does_not_write_is_refused_in_words() {
        let full = |descr: &str, order: &str, shape: &str| {
            format!("{{'descr': {descr}, 'fortran_order': {order}, 'shape': {shape}, }}")
        };
        for (text, said) in [
            (String::new(), "is no dictionary"),
            ("{".into(), "in place of a name"),
            ("{'descr' '<f4'}".into(), "lacks a colon"),
            ("{'descr': '<f4'}".into(), "does not say `fortran_order`"),
            ("{'fortran_order': False, 'shape': (1,)}".into(), "does not say `descr`"),
            ("{'descr': '<f4', 'fortran_order': False}".into(), "does not say `shape`"),
            ("{'a': 1}".into(), "unknown name `a`"),
            ("{'descr': '<f4' 'shape': (1,)}".into(), "lacks a comma"),
            (full("'<f4'", "0", "(1,)"), "not True or False"),
            (full("'<f4'", "False", "3"), "no tuple of numbers"),
            (full("'<f4'", "False", "(-1,)"), "no tuple of numbers"),
            (full("'<f4'", "False", "(1,,2)"), "no tuple of numbers"),
            (full("'<f4'", "False", "(99999999999999999999,)"), "no tuple of numbers"),
            (full("[('a', '<f4')]", "False", "(1,)"), "a record array"),
            (full("'|O'", "False", "(1,)"), "type `|O`"),
            (full("'<M8[ns]'", "False", "(1,)"), "type `<M8[ns]`"),
            (full("'<f3'", "False", "(1,)"), "type `<f3`"),
            (full("'\\x41'", "False", "(1,)"), "a record array"),
            (full("'<f4'", "False", &format!("({})", "1, ".repeat(65))), "says 65 dimensions"),
            (full("'<f4'", "False", "(1,)") + "x", "goes on after its end"),
        ] {
            let error = Header::parse(&text).unwrap_err();
            assert!(error.contains(said), "{text}: {error}");
        }
    }
}
