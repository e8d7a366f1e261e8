//! A JSON schema before it is compiled: read, looked through for what would not be kept, and given its whitespace.

use super::{Whitespace, compile::invalid};
use crate::Result;
use serde_json::{Map, Value, json};
use std::collections::HashSet;

/// Keywords whose value is a schema.
const ONE: [&str; 1] = ["additionalProperties"];
/// … a list of schemas.
const LIST: [&str; 4] = ["anyOf", "oneOf", "allOf", "prefixItems"];
/// … an object of schemas.
const NAMED: [&str; 4] = ["properties", "patternProperties", "$defs", "definitions"];
/// … anything, a string, a count, a number.
const ANY: [&str; 1] = ["const"];
const STRINGS: [&str; 3] = ["pattern", "format", "$schema"];
const COUNTS: [&str; 6] = ["minItems", "maxItems", "minProperties", "maxProperties", "minLength", "maxLength"];
const NUMBERS: [&str; 4] = ["minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum"];
/// Keywords that constrain nothing.
const NOTES: [&str; 11] = [
    "$comment",
    "title",
    "description",
    "default",
    "deprecated",
    "readOnly",
    "writeOnly",
    "examples",
    "contentMediaType",
    "contentEncoding",
    "$id",
];
/// Schemas within each other, references followed: what compiles them takes stack for each.
const DEEPEST: usize = 2_000;

/// The schema as it is to be compiled.
pub(crate) fn prepare(text: &str, whitespace: Whitespace) -> Result<Value> {
    let mut root: Value = serde_json::from_str(text).map_err(|error| invalid(format!("not JSON: {error}")))?;
    // `true` is the schema of everything; as an object it has a place for the whitespace.
    if root == Value::Bool(true) {
        root = json!({});
    }
    let mut walk = Walk { root: &root, followed: HashSet::new(), depth: 0, steps: Vec::new(), is_joined: false };
    walk.schema(&root, "#")?;
    walk.check_steps()?;
    let Value::Object(members) = &mut root else {
        return Err(invalid("#: the schema `false` allows no document"));
    };
    plain(members);
    members.insert("x-guidance".into(), separators(whitespace));
    Ok(root)
}

fn separators(whitespace: Whitespace) -> Value {
    match whitespace {
        Whitespace::Spaced => json!({"whitespace_flexible": false, "item_separator": ", ", "key_separator": ": "}),
        Whitespace::Compact => json!({"whitespace_flexible": false}),
        Whitespace::Flexible => json!({"whitespace_pattern": r" |\n[ ]{0,20}"}),
    }
}

/// Writes older drafts as 2020-12, and takes out what constrains nothing: the library knows each keyword of the draft that a
/// schema names and passes over the others.
fn plain(members: &mut Map<String, Value>) {
    members.retain(|key, _| !NOTES.contains(&key.as_str()) && key != "$schema");
    if members.get("items").is_some_and(Value::is_array) {
        let first = members.remove("items").unwrap_or_default();
        members.insert("prefixItems".into(), first);
        if let Some(rest) = members.remove("additionalItems") {
            members.insert("items".into(), rest);
        }
    } else {
        // Beside `items` that is one schema for all, it says nothing.
        members.remove("additionalItems");
    }
    for (key, value) in members {
        let key = key.as_str();
        match value {
            Value::Object(one) if ONE.contains(&key) || key == "items" => plain(one),
            Value::Object(named) if NAMED.contains(&key) => {
                named.values_mut().filter_map(Value::as_object_mut).for_each(plain);
            }
            Value::Array(list) if LIST.contains(&key) => {
                list.iter_mut().filter_map(Value::as_object_mut).for_each(plain);
            }
            _ => {}
        }
    }
}

/// Looks through a schema, and what it refers to.
struct Walk<'v> {
    root: &'v Value,
    /// References that were followed.
    followed: HashSet<&'v str>,
    depth: usize,
    /// What numbers are to be multiples of.
    steps: Vec<Step>,
    /// A number may have to keep to several schemas at once.
    is_joined: bool,
}

impl<'v> Walk<'v> {
    fn schema(&mut self, schema: &'v Value, at: &str) -> Result<()> {
        if self.depth == DEEPEST {
            return Err(invalid(format!("{at}: more than {DEEPEST} schemas within each other")));
        }
        self.depth += 1;
        let outcome = match schema {
            Value::Bool(_) => Ok(()),
            Value::Object(members) => members.iter().try_for_each(|(key, value)| self.keyword(key, value, at)),
            _ => Err(invalid(format!("{at}: a schema is an object, `true` or `false`"))),
        };
        self.depth -= 1;
        outcome
    }

    fn keyword(&mut self, key: &str, value: &'v Value, at: &str) -> Result<()> {
        let here = below(at, key);
        let is_text = |value: &Value| value.is_string();
        self.is_joined |= key == "$ref" || LIST.contains(&key);
        match key {
            "items" if value.is_array() => self.list(value, &here),
            "items" | "additionalItems" => self.schema(value, &here),
            _ if ONE.contains(&key) => self.schema(value, &here),
            _ if LIST.contains(&key) => self.list(value, &here),
            _ if NAMED.contains(&key) => self.named(value, &here),
            "$ref" => self.reference(value, &here),
            "$id" if at != "#" => Err(invalid(format!("{here}: an identifier within a schema is not supported"))),
            "enum" => expect(value.is_array(), value, "a list", &here),
            "required" => expect(is_list_of(value, is_text), value, "a list of names", &here),
            "type" => expect(value.is_string() || is_list_of(value, is_text), value, "a type or a list of them", &here),
            _ if STRINGS.contains(&key) => expect(value.is_string(), value, "a string", &here),
            _ if COUNTS.contains(&key) => expect(value.is_u64(), value, "a count", &here),
            "multipleOf" => {
                self.steps.push(Step::read(value, &here)?);
                Ok(())
            }
            _ if NUMBERS.contains(&key) => expect(value.is_number(), value, "a number", &here),
            _ if ANY.contains(&key) || NOTES.contains(&key) => Ok(()),
            _ => Err(invalid(format!(
                "{here}: the keyword \"{key}\" is unknown or cannot be kept, and nothing is passed over; take it out if the rest is enough"
            ))),
        }
    }

    fn list(&mut self, value: &'v Value, at: &str) -> Result<()> {
        let Value::Array(list) = value else { return expect(false, value, "a list of schemas", at) };
        list.iter().enumerate().try_for_each(|(index, schema)| self.schema(schema, &format!("{at}/{index}")))
    }

    fn named(&mut self, value: &'v Value, at: &str) -> Result<()> {
        let Value::Object(named) = value else { return expect(false, value, "an object of schemas", at) };
        named.iter().try_for_each(|(name, schema)| self.schema(schema, &below(at, name)))
    }

    fn reference(&mut self, value: &'v Value, at: &str) -> Result<()> {
        let Value::String(target) = value else { return expect(false, value, "a reference", at) };
        let Some(pointer) = target.strip_prefix('#').filter(|rest| rest.is_empty() || rest.starts_with('/')) else {
            return Err(invalid(format!(
                "{at}: \"{target}\" does not begin with \"#/\"; only references within the schema are followed"
            )));
        };
        // The library takes the parts of a reference as they are.
        if pointer.contains(['~', '%']) {
            let message = format!("{at}: \"{target}\" has escaped characters; rename what it refers to");
            return Err(invalid(message));
        }
        let Some(schema) = self.root.pointer(pointer) else {
            return Err(invalid(format!("{at}: \"{target}\" is not there")));
        };
        if self.followed.insert(target) { self.schema(schema, target) } else { Ok(()) }
    }

    /// Where schemas are joined, any of these may come together: a number is then to be a multiple of all of them.
    fn check_steps(&self) -> Result<()> {
        let Some((&first, others)) = self.steps.split_first().filter(|_| self.is_joined) else { return Ok(()) };
        let mut common = first;
        for &other in others {
            common = common.common(other);
            if !common.can_be_followed() {
                return Err(invalid(
                    "the numbers that \"multipleOf\" names have a common multiple of too many digits, and some may come together; \
                     at most eight can be followed",
                ));
            }
        }
        Ok(())
    }
}

/// A number that others are to be multiples of: digits, and the power of ten they are divided by. What is to be a multiple of it is followed
/// digit by digit, in 32 bits that silently overflow.
#[derive(Clone, Copy)]
struct Step {
    digits: u128,
    point: u128,
}

impl Step {
    fn read(value: &Value, at: &str) -> Result<Self> {
        expect(value.as_f64().is_some_and(|step| step > 0.0), value, "a number above 0", at)?;
        let (mut digits, mut point) = (value.as_f64().unwrap_or_default(), 1);
        while digits.fract() != 0.0 && digits < f64::from(u32::MAX) {
            (digits, point) = (digits * 10.0, point * 10);
        }
        let step = Self { digits: digits as u128, point };
        if step.can_be_followed() {
            return Ok(step);
        }
        Err(invalid(format!("{at}: {value} has too many digits; at most eight can be followed")))
    }

    fn can_be_followed(self) -> bool {
        self.digits.saturating_mul(10).saturating_add(self.point * 9) <= u128::from(u32::MAX)
    }

    /// What is a multiple of both; both can be followed, so nothing overflows.
    fn common(self, other: Self) -> Self {
        let point = self.point.max(other.point);
        let (one, two) = (self.digits * (point / self.point), other.digits * (point / other.point));
        Self { digits: one / gcd(one, two) * two, point }
    }
}

fn gcd(one: u128, two: u128) -> u128 {
    if two == 0 { one } else { gcd(two, one % two) }
}

/// Where a member is, as a JSON pointer.
fn below(at: &str, key: &str) -> String {
    format!("{at}/{}", key.replace('~', "~0").replace('/', "~1"))
}

fn is_list_of(value: &Value, is: impl Fn(&Value) -> bool) -> bool {
    value.as_array().is_some_and(|list| list.iter().all(is))
}

fn expect(is: bool, value: &Value, what: &str, at: &str) -> Result<()> {
    if is { Ok(()) } else { Err(invalid(format!("{at}: {value} is not {what}"))) }
}
