//! Lists and maps that know how large they are.
//!
//! The engine's own lists may be lazy: `x + x` or `x[1:]` is a small object that stands for the result, and one made of
//! such ones in a loop stands for more than any machine holds, or is nested deeper than any stack. So whatever a template
//! gives a name is made solid first ([`solid`]): plain lists and maps, of known depth and known *weight*, the bytes it
//! takes to write them out. See [`guard`](super::guard), which sees to it that nothing gets past.

use super::methods::BYTES_A_FUEL;
use minijinja::{
    Error, ErrorKind, State, Value, functions,
    value::{Enumerator, Object, ObjectRepr, ValueKind, ValueOrKwargs},
};
use std::{collections::HashMap, sync::Arc};

/// What [`own`] is called in a template.
pub(super) const OWN: &str = "__own";
/// What [`field`] is called in a template.
pub(super) const FIELD: &str = "__field";
/// What [`factor`] is called in a template.
pub(super) const FACTOR: &str = "__factor";
/// Lists in lists in … as deep as this are taken.
const MAX_DEPTH: u32 = 64;
/// Weight of a value beside its text.
const WEIGHT: u64 = 32;

/// What a solid list or map is known to be.
#[derive(Clone, Copy, Debug, Default)]
struct Size {
    weight: u64,
    depth: u32,
}

#[derive(Debug)]
struct List {
    items: Vec<Value>,
    size: Size,
}

#[derive(Debug)]
struct Map {
    entries: Vec<(Value, Value)>,
    index: HashMap<Value, usize>,
    size: Size,
}

impl Object for List {
    fn repr(self: &Arc<Self>) -> ObjectRepr {
        ObjectRepr::Seq
    }

    fn get_value(self: &Arc<Self>, key: &Value) -> Option<Value> {
        self.items.get(key.as_usize()?).cloned()
    }

    fn enumerate(self: &Arc<Self>) -> Enumerator {
        Enumerator::Seq(self.items.len())
    }
}

impl Object for Map {
    fn get_value(self: &Arc<Self>, key: &Value) -> Option<Value> {
        let at = *self.index.get(key)?;
        Some(self.entries[at].1.clone())
    }

    fn enumerate(self: &Arc<Self>) -> Enumerator {
        Enumerator::Values(self.entries.iter().map(|(key, _)| key.clone()).collect())
    }
}

/// A map of these fields, in this order. Of two fields of one name the last one counts, at the place of the first.
pub(super) fn map(fields: impl IntoIterator<Item = (Value, Value)>) -> Value {
    let (mut entries, mut index) = (Vec::new(), HashMap::new());
    for (key, value) in fields {
        let at = *index.entry(key.clone()).or_insert(entries.len());
        if at < entries.len() {
            entries[at] = (key, value);
        } else {
            entries.push((key, value));
        }
    }
    let size = total(entries.iter().flat_map(|(key, value)| [key, value]));
    Value::from_object(Map { entries, index, size })
}

/// A list of these items.
pub(super) fn list(items: Vec<Value>) -> Value {
    let size = total(&items);
    Value::from_object(List { items, size })
}

/// The same value without anything lazy in it. `pay` is called with the fuel it costs.
///
/// # Errors
/// When it is nested too deeply, or has a namespace in it, or what `pay` says.
pub(super) fn solid(value: &Value, pay: &mut dyn FnMut(u64) -> Result<(), Error>) -> Result<Value, Error> {
    solid_at(value, pay, 0)
}

/// The function that [`guard`](super::guard) puts around what gets a name. A value too heavy to be written out with
/// the fuel that is left is refused.
pub(super) fn own(state: &State<'_, '_>, value: &Value) -> Result<Value, Error> {
    if is_namespace(value) { Ok(value.clone()) } else { field(state, value) }
}

/// The function that [`guard`](super::guard) puts around what becomes a namespace's field: there another namespace has
/// no place, for it could be its own field in the end.
pub(super) fn field(state: &State<'_, '_>, value: &Value) -> Result<Value, Error> {
    let value = solid(value, &mut |fuel| state.consume_fuel(fuel))?;
    let cost = size(&value).weight / BYTES_A_FUEL;
    if state.fuel_levels().is_some_and(|(_, left)| cost >= left) {
        state.consume_fuel(cost)?;
    }
    Ok(value)
}

/// The function `namespace`: what it is made with is made solid.
pub(super) fn namespace(state: &State<'_, '_>, fields: Option<ValueOrKwargs>) -> Result<Value, Error> {
    let fields = fields.map(|fields| field(state, &fields)).transpose()?;
    functions::namespace(fields.map(ValueOrKwargs::from))
}

/// The function that [`guard`](super::guard) puts around what is multiplied: a list times a number is large and lazy.
pub(super) fn factor(value: &Value) -> Result<Value, Error> {
    match value.as_object() {
        None => Ok(value.clone()),
        Some(_) => {
            let message = format!("a {} cannot be multiplied in a chat template", value.kind());
            Err(Error::new(ErrorKind::InvalidOperation, message))
        }
    }
}

fn solid_at(value: &Value, pay: &mut dyn FnMut(u64) -> Result<(), Error>, depth: u32) -> Result<Value, Error> {
    let Some(object) = value.as_object() else { return Ok(value.clone()) };
    if object.downcast_ref::<List>().is_some() || object.downcast_ref::<Map>().is_some() {
        return Ok(value.clone());
    }
    if depth == MAX_DEPTH {
        return Err(too_deep());
    }
    let invalid = |message: &str| Error::new(ErrorKind::InvalidOperation, message.to_owned());
    let made = match value.kind() {
        ValueKind::Seq | ValueKind::Iterable => {
            let mut items = Vec::new();
            for item in value.try_iter()?.checked() {
                pay(1)?;
                items.push(solid_at(&item?, pay, depth + 1)?);
            }
            list(items)
        }
        ValueKind::Map if is_namespace(value) => {
            return Err(invalid("a namespace cannot be put into another value in a chat template"));
        }
        ValueKind::Map => {
            let mut fields = Vec::new();
            for key in value.try_iter()?.checked() {
                pay(1)?;
                let key = key?;
                if key.as_object().is_some() {
                    return Err(invalid("a list or a map cannot be a key in a chat template"));
                }
                let field = solid_at(&value.get_item(&key)?, pay, depth + 1)?;
                fields.push((key, field));
            }
            map(fields)
        }
        _ => return Err(invalid("a function cannot be given another name in a chat template")),
    };
    if size(&made).depth > MAX_DEPTH { Err(too_deep()) } else { Ok(made) }
}

/// The engine tells a namespace from a map only by the name of its type.
fn is_namespace(value: &Value) -> bool {
    value.as_object().is_some_and(|object| object.type_name().ends_with("::Namespace"))
}

fn too_deep() -> Error {
    Error::new(ErrorKind::InvalidOperation, format!("a value is nested more than {MAX_DEPTH} deep"))
}

fn total<'v>(parts: impl IntoIterator<Item = &'v Value>) -> Size {
    let whole = Size { weight: WEIGHT, depth: 0 };
    let whole = parts.into_iter().map(size).fold(whole, |whole, part| Size {
        weight: whole.weight.saturating_add(part.weight),
        depth: whole.depth.max(part.depth),
    });
    Size { depth: whole.depth.saturating_add(1), ..whole }
}

/// The size of a value that is solid.
fn size(value: &Value) -> Size {
    if let Some(list) = value.downcast_object_ref::<List>() {
        list.size
    } else if let Some(map) = value.downcast_object_ref::<Map>() {
        map.size
    } else {
        Size { weight: WEIGHT + value.as_str().map_or(0, |text| text.len() as u64), depth: 0 }
    }
}
