//! What goes into a graph and comes out of it, where it need not be a tensor.

use super::{Tensor, TensorView};
use crate::{
    error::{error, invalid_input},
    raw::{self, Contents},
};
use infer_core::{ErrorKind, Result};

/// What a graph gave, borrowed from it.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub enum ValueView<'a> {
    /// A tensor.
    Tensor(TensorView<'a>),
    /// Values in an order.
    Sequence(SequenceView<'a>),
    /// Values by key.
    Map(MapView<'a>),
    /// Nothing: an optional output without a value.
    Nothing,
}

/// A sequence that a graph gave. Its elements are copied when they are asked for: the runtime does not lend them.
#[derive(Clone, Copy, Debug)]
pub struct SequenceView<'a>(&'a raw::Value);

/// A map that a graph gave. Its keys and values are copied when they are asked for: the runtime does not lend them.
#[derive(Clone, Copy, Debug)]
pub struct MapView<'a>(&'a raw::Value);

/// A value of one's own.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum Value {
    /// A tensor.
    Tensor(Tensor),
    /// Values in an order, all of one type.
    Sequence(Vec<Value>),
    /// Values by key.
    Map(Map),
    /// Nothing: of an optional input or output.
    Nothing,
}

/// Values by key: a tensor of keys (integers or strings) and one of as many values.
#[derive(Clone, Debug)]
pub struct Map {
    keys: Tensor,
    values: Tensor,
}

/// What a run is given for an input. Made `from` a view of a tensor, or a reference to a tensor or value of one's own.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub enum Input<'a> {
    /// A tensor: not copied, unless it is of strings.
    Tensor(TensorView<'a>),
    /// A value of any kind: what is no tensor is copied.
    Value(&'a Value),
    /// Nothing, for an optional input: as if it were not named.
    Nothing,
}

impl<'a> ValueView<'a> {
    pub(crate) fn of_runtime(value: &'a raw::Value) -> Result<Self> {
        Ok(match value.contents() {
            Contents::Tensor(_) => Self::Tensor(TensorView::of_runtime(value)?),
            Contents::Sequence => Self::Sequence(SequenceView(value)),
            Contents::Map => Self::Map(MapView(value)),
            Contents::Nothing => Self::Nothing,
        })
    }

    /// The tensor.
    ///
    /// # Errors
    /// [`InvalidInput`](ErrorKind::InvalidInput) when it is none.
    pub fn tensor(self) -> Result<TensorView<'a>> {
        match self {
            Self::Tensor(tensor) => Ok(tensor),
            other => Err(invalid_input(format!("the value is {}, not a tensor", other.what()))),
        }
    }

    /// The value, copied.
    ///
    /// # Errors
    /// [`Runtime`](ErrorKind::Runtime) when the runtime cannot give it, or has strings in it that are no text.
    pub fn to_value(self) -> Result<Value> {
        match self {
            Self::Tensor(tensor) => tensor.to_tensor().map(Value::Tensor),
            Self::Sequence(sequence) => sequence.iter().collect::<Result<_>>().map(Value::Sequence),
            Self::Map(map) => map.to_map().map(Value::Map),
            Self::Nothing => Ok(Value::Nothing),
        }
    }

    /// What it is, in errors.
    pub(crate) fn what(&self) -> &'static str {
        match self {
            Self::Tensor(_) => "a tensor",
            Self::Sequence(_) => "a sequence",
            Self::Map(_) => "a map",
            Self::Nothing => "missing",
        }
    }
}

impl SequenceView<'_> {
    /// How many elements there are.
    ///
    /// # Errors
    /// [`Runtime`](ErrorKind::Runtime) when the runtime cannot say.
    pub fn len(&self) -> Result<usize> {
        self.0.count()
    }

    /// Whether there are none.
    ///
    /// # Errors
    /// As of [`len`](Self::len).
    pub fn is_empty(&self) -> Result<bool> {
        Ok(self.len()? == 0)
    }

    /// An element, copied.
    ///
    /// # Errors
    /// [`InvalidInput`](ErrorKind::InvalidInput) when there are not so many.
    pub fn get(&self, index: usize) -> Result<Value> {
        Value::of_runtime(self.0.part(index)?)
    }

    /// The elements, each copied when it is its turn.
    pub fn iter(&self) -> impl Iterator<Item = Result<Value>> {
        let view = *self;
        // One that cannot be counted is an error in the place of its elements.
        let (count, failed) = match view.len() {
            Ok(count) => (count, None),
            Err(error) => (0, Some(Err(error))),
        };
        failed.into_iter().chain((0..count).map(move |index| view.get(index)))
    }
}

impl MapView<'_> {
    /// The keys, copied.
    ///
    /// # Errors
    /// [`Runtime`](ErrorKind::Runtime) when the runtime cannot give them.
    pub fn keys(&self) -> Result<Tensor> {
        Tensor::of_runtime(self.0.part(0)?)
    }

    /// The values in the order of the keys, copied.
    ///
    /// # Errors
    /// [`Runtime`](ErrorKind::Runtime) when the runtime cannot give them.
    pub fn values(&self) -> Result<Tensor> {
        Tensor::of_runtime(self.0.part(1)?)
    }

    /// Both, copied.
    ///
    /// # Errors
    /// [`Runtime`](ErrorKind::Runtime) when the runtime cannot give them.
    pub fn to_map(&self) -> Result<Map> {
        Map::new(self.keys()?, self.values()?)
    }
}

impl Value {
    /// What a graph gave, where it is as far as that can be.
    pub(crate) fn of_runtime(value: raw::Value) -> Result<Self> {
        if let Contents::Tensor(_) = value.contents() {
            return Tensor::of_runtime(value).map(Self::Tensor);
        }
        ValueView::of_runtime(&value)?.to_value()
    }

    /// The tensor, where it is one.
    #[must_use]
    pub fn as_tensor(&self) -> Option<&Tensor> {
        match self {
            Self::Tensor(tensor) => Some(tensor),
            _ => None,
        }
    }

    /// What it is, in errors.
    pub(crate) fn what(&self) -> &'static str {
        match self {
            Self::Tensor(_) => "a tensor",
            Self::Sequence(_) => "a sequence",
            Self::Map(_) => "a map",
            Self::Nothing => "missing",
        }
    }

    /// The same for the runtime, copied. A sequence of nothing has no type by itself, so it is none here.
    pub(crate) fn to_raw_copy(&self) -> Result<raw::Value> {
        match self {
            Self::Tensor(tensor) => tensor.view().to_raw_copy(),
            Self::Sequence(elements) => {
                raw::Value::sequence(elements.iter().map(Self::to_raw_copy).collect::<Result<_>>()?)
            }
            Self::Map(map) => raw::Value::map(map.keys.view().to_raw_copy()?, map.values.view().to_raw_copy()?),
            Self::Nothing => Err(error(ErrorKind::InvalidInput, "nothing cannot be an element of anything")),
        }
    }
}

impl Map {
    /// A map of these keys to these values, of which there are as many.
    ///
    /// # Errors
    /// [`InvalidInput`](ErrorKind::InvalidInput) when there are not as many of one as of the other.
    pub fn new(keys: Tensor, values: Tensor) -> Result<Self> {
        let (of_keys, of_values) = (keys.view().len(), values.view().len());
        if of_keys != of_values {
            return Err(invalid_input(format!("a map has {of_keys} keys, but {of_values} values")));
        }
        Ok(Self { keys, values })
    }

    /// The keys.
    #[must_use]
    pub fn keys(&self) -> &Tensor {
        &self.keys
    }

    /// The values, in the order of the keys.
    #[must_use]
    pub fn values(&self) -> &Tensor {
        &self.values
    }
}

impl<'a> From<TensorView<'a>> for Input<'a> {
    fn from(tensor: TensorView<'a>) -> Self {
        Self::Tensor(tensor)
    }
}

impl<'a> From<&'a Tensor> for Input<'a> {
    fn from(tensor: &'a Tensor) -> Self {
        Self::Tensor(tensor.view())
    }
}

impl<'a> From<&'a Value> for Input<'a> {
    fn from(value: &'a Value) -> Self {
        match value {
            Value::Tensor(tensor) => Self::Tensor(tensor.view()),
            Value::Nothing => Self::Nothing,
            other => Self::Value(other),
        }
    }
}

impl From<Tensor> for Value {
    fn from(tensor: Tensor) -> Self {
        Self::Tensor(tensor)
    }
}
