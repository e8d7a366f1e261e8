//! What a graph says of its inputs and outputs.

use crate::DType;
use std::fmt;

/// What an input or output of a graph is.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ValueType {
    /// A tensor.
    #[non_exhaustive]
    Tensor {
        /// What its elements are.
        dtype: DType,
        /// Its dimensions, outermost first; `None` where the graph does not say how many there are. A scalar has none.
        dims: Option<Vec<Dim>>,
    },
    /// Any number of values of one type, in an order.
    Sequence(Box<ValueType>),
    /// Values by key.
    #[non_exhaustive]
    Map {
        /// What the keys are: integers or strings.
        key: DType,
        /// What the values are.
        value: Box<ValueType>,
    },
    /// A value that may be missing.
    Optional(Box<ValueType>),
    /// A sparse tensor, which is not supported here.
    Sparse,
    /// Something that the runtime does not describe.
    Opaque,
}

/// An input or output of a graph, as the graph declares it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Port {
    pub(crate) name: String,
    pub(crate) kind: ValueType,
    pub(crate) has_default: bool,
}

impl Port {
    /// Its name: what values are given and asked for by.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// What it is.
    #[must_use]
    pub fn kind(&self) -> &ValueType {
        &self.kind
    }

    /// Of an input: whether a run needs no value for it, since the graph has one or can do without.
    #[must_use]
    pub fn is_optional(&self) -> bool {
        self.has_default || matches!(self.kind, ValueType::Optional(_))
    }
}

/// One dimension, as a graph declares it.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Dim {
    /// Always this many.
    Fixed(usize),
    /// Any number, decided by each run; where it has a name, dimensions of that name are meant to be equal.
    Dynamic(Option<String>),
}

impl ValueType {
    /// Of a tensor, also one that may be missing: the type of its elements.
    #[must_use]
    pub fn dtype(&self) -> Option<DType> {
        match self {
            Self::Tensor { dtype, .. } => Some(*dtype),
            Self::Optional(inner) => inner.dtype(),
            _ => None,
        }
    }

    /// Of a tensor, also one that may be missing: its dimensions, where the graph says how many there are.
    #[must_use]
    pub fn dims(&self) -> Option<&[Dim]> {
        match self {
            Self::Tensor { dims, .. } => dims.as_deref(),
            Self::Optional(inner) => inner.dims(),
            _ => None,
        }
    }

    /// The dimensions, where all of them are fixed.
    pub(crate) fn fixed_shape(&self) -> Option<impl Iterator<Item = i64>> {
        let Self::Tensor { dims: Some(dims), .. } = self else { return None };
        let fixed = |dim: &Dim| match dim {
            Dim::Fixed(size) => i64::try_from(*size).ok(),
            Dim::Dynamic(_) => None,
        };
        dims.iter().all(|dim| fixed(dim).is_some()).then(|| dims.iter().filter_map(fixed))
    }
}

/// As it reads in errors: `float32[batch, 3, ?]`, `sequence of int64[]`.
impl fmt::Display for ValueType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Tensor { dtype, dims: None } => write!(f, "{dtype} of any rank"),
            Self::Tensor { dtype, dims: Some(dims) } => {
                write!(f, "{dtype}[")?;
                for (index, dim) in dims.iter().enumerate() {
                    write!(f, "{}{dim}", if index == 0 { "" } else { ", " })?;
                }
                f.write_str("]")
            }
            Self::Sequence(element) => write!(f, "sequence of {element}"),
            Self::Map { key, value } => write!(f, "map from {key} to {value}"),
            Self::Optional(inner) => write!(f, "optional {inner}"),
            Self::Sparse => f.write_str("sparse tensor"),
            Self::Opaque => f.write_str("opaque value"),
        }
    }
}

impl fmt::Display for Dim {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Fixed(size) => write!(f, "{size}"),
            Self::Dynamic(Some(name)) => f.write_str(name),
            Self::Dynamic(None) => f.write_str("?"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_as_onnx_is_written() {
        let dims = vec![Dim::Dynamic(Some("batch".into())), Dim::Fixed(3), Dim::Dynamic(None)];
        let tensor = ValueType::Tensor { dtype: DType::F32, dims: Some(dims) };
        assert_eq!(tensor.to_string(), "float32[batch, 3, ?]");
        assert!(tensor.fixed_shape().is_none());
        let map =
            ValueType::Map { key: DType::String, value: Box::new(ValueType::Tensor { dtype: DType::I64, dims: None }) };
        assert_eq!(ValueType::Sequence(Box::new(map)).to_string(), "sequence of map from string to int64 of any rank");
    }

    #[test]
    fn a_scalar_is_fixed() {
        let scalar = ValueType::Tensor { dtype: DType::Bool, dims: Some(Vec::new()) };
        assert_eq!(scalar.fixed_shape().unwrap().count(), 0);
        assert_eq!(scalar.to_string(), "bool[]");
    }
}
