//! The fields of a JSON object, taken one by one, of which each must be known.

use serde::{
    Deserialize, Deserializer,
    de::{DeserializeOwned, Error, MapAccess, Visitor},
};
use serde_json::value::RawValue;
use std::fmt;

/// An object whose values are not read yet: a schema keeps the order of its properties.
pub(crate) struct Fields(Vec<(String, Box<RawValue>)>);

impl Fields {
    /// Reads the object that a line is.
    pub(crate) fn of(line: &str) -> Result<Self, String> {
        serde_json::from_str(line).map_err(|error| {
            let not = if error.is_data() { "" } else { "not JSON: " };
            // There is one line; only the column says something.
            match error.column() {
                0 => format!("{not}{}", said(&error)),
                column => format!("{not}{} at column {column}", said(&error)),
            }
        })
    }

    /// The value of a field as it is written; `None` where it is not there, or `null`.
    pub(crate) fn raw(&mut self, name: &str) -> Option<Box<RawValue>> {
        let at = self.0.iter().position(|field| field.0 == name)?;
        let value = self.0.swap_remove(at).1;
        (value.get() != "null").then_some(value)
    }

    /// The value of a field.
    pub(crate) fn take<T: DeserializeOwned>(&mut self, name: &str) -> Result<Option<T>, String> {
        let Some(value) = self.raw(name) else { return Ok(None) };
        serde_json::from_str(value.get()).map(Some).map_err(|error| format!("`{name}`: {}", said(&error)))
    }

    /// Puts the value of a field in this place, which stays as it is where there is none.
    pub(crate) fn set<T: DeserializeOwned>(&mut self, name: &str, place: &mut T) -> Result<(), String> {
        if let Some(value) = self.take(name)? {
            *place = value;
        }
        Ok(())
    }

    /// A text, or a list of texts.
    pub(crate) fn texts(&mut self, name: &str) -> Result<Option<Vec<String>>, String> {
        match self.0.iter().find(|field| field.0 == name) {
            Some((_, value)) if value.get().starts_with('"') => Ok(self.take(name)?.map(|text| vec![text])),
            _ => self.take(name),
        }
    }

    /// Whether there is a field of this name.
    pub(crate) fn has(&self, name: &str) -> bool {
        self.0.iter().any(|field| field.0 == name)
    }

    /// Each has to be one of these: looked at before any is taken, since one that is missing may be there by a wrong name.
    pub(crate) fn check(&self, known: &[&str]) -> Result<(), String> {
        let Some((name, _)) = self.0.iter().find(|(name, _)| !known.contains(&name.as_str())) else { return Ok(()) };
        let near = match nearest(name, known) {
            Some(near) => format!("did you mean `{near}`? There"),
            None => "there".to_owned(),
        };
        Err(format!("unknown field `{name}`; {near} are {}", known.join(", ")))
    }

    /// Nothing may be left: all that is known is taken.
    pub(crate) fn end(&self) {
        debug_assert!(self.0.is_empty(), "`{}` is known, and not taken", self.0[0].0);
    }
}

/// The known name that this one may have been meant for.
fn nearest<'k>(name: &str, known: &[&'k str]) -> Option<&'k str> {
    // Names are told apart by their letters: `maxTokens` and `max-tokens` are `max_tokens`.
    let letters = |name: &str| name.chars().filter(|c| c.is_alphanumeric()).collect::<String>().to_lowercase();
    let meant = letters(name);
    let apart = |known: &str| strsim::damerau_levenshtein(&meant, &letters(known));
    let near = known.iter().copied().min_by_key(|known| apart(known))?;
    (3 * apart(near) <= meant.chars().count()).then_some(near)
}

/// What an error says, without a place: of a value that was taken out of its line it would be a wrong one.
pub(crate) fn said(error: &serde_json::Error) -> String {
    let text = error.to_string();
    match text.rfind(" at line ") {
        Some(at) => text[..at].to_owned(),
        None => text,
    }
}

impl<'de> Deserialize<'de> for Fields {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        struct Object;
        impl<'de> Visitor<'de> for Object {
            type Value = Fields;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a JSON object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Fields, A::Error> {
                let mut fields: Vec<(String, Box<RawValue>)> = Vec::new();
                while let Some((name, value)) = map.next_entry()? {
                    if fields.iter().any(|field| field.0 == name) {
                        return Err(A::Error::custom(format_args!("`{name}` stands twice")));
                    }
                    fields.push((name, value));
                }
                Ok(Fields(fields))
            }
        }
        from.deserialize_map(Object)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_taken_by_name() {
        let mut fields = Fields::of(r#"{"a": 1, "b": [1,  2], "c": null, "d": "x", "e": ["x", "y"]}"#).unwrap();
        let (mut a, mut none) = (0_u8, 7_u8);
        fields.set("a", &mut a).unwrap();
        fields.set("nothing", &mut none).unwrap();
        fields.set("c", &mut none).unwrap();
        assert_eq!((a, none), (1, 7));
        assert_eq!(fields.raw("b").unwrap().get(), "[1,  2]", "as it is written");
        assert_eq!(fields.texts("d").unwrap().unwrap(), ["x"]);
        assert_eq!(fields.texts("e").unwrap().unwrap(), ["x", "y"]);
        fields.end();
    }

    #[test]
    fn a_name_that_is_near_is_told() {
        let known = ["prompt", "max_tokens", "n", "stop", "stop_tokens", "top_p", "top_k"];
        for (name, near) in [
            ("promt", Some("prompt")),
            ("pormpt", Some("prompt")),
            ("maxTokens", Some("max_tokens")),
            ("max-token", Some("max_tokens")),
            ("Stop", Some("stop")),
            ("topp", Some("top_p")),
            ("N", Some("n")),
            ("temperature", None),
            ("x", None),
            ("", None),
        ] {
            assert_eq!(nearest(name, &known), near, "{name}");
        }
        assert_eq!(nearest("a", &[]), None);
    }

    #[test]
    fn what_is_wrong_is_named() {
        for (line, said) in [
            ("", "not JSON: EOF while parsing a value"),
            ("{", "not JSON: EOF while parsing an object at column 1"),
            ("[1]", "invalid type: sequence, expected a JSON object"),
            (r#"{"a": 1} x"#, "not JSON: trailing characters at column 10"),
            (r#"{"a": 1, "a": 2}"#, "`a` stands twice"),
        ] {
            let error = Fields::of(line).err().unwrap();
            assert!(error.starts_with(said), "{line}: {error}");
        }
        let mut fields = Fields::of(r#"{"a": "x", "b": 1}"#).unwrap();
        assert_eq!(fields.take::<f32>("a").unwrap_err(), "`a`: invalid type: string \"x\", expected f32");
        fields.check(&["a", "b", "c"]).unwrap();
        let mut fields = Fields::of(r#"{"b": 1}"#).unwrap();
        assert_eq!(fields.check(&["a", "long"]).unwrap_err(), "unknown field `b`; there are a, long");
        let said = "unknown field `b`; did you mean `B`? There are B, c";
        assert_eq!(fields.check(&["B", "c"]).unwrap_err(), said);
        fields.raw("b").unwrap();
        fields.check(&[]).unwrap();
    }
}
