//! The inputs and outputs of a graph by name, and what is wrong with a value for one.

use crate::{
    DType, Dim, Port, ValueType,
    error::{error, invalid_input},
};
use infer_core::{Error, ErrorKind, Result};

/// How many names an error lists.
const NAMED: usize = 8;

/// The inputs and outputs of a graph.
#[derive(Debug)]
pub(crate) struct Ports {
    pub(super) inputs: Vec<Port>,
    pub(super) outputs: Vec<Port>,
    /// Their indices in the order of their names.
    input_order: Vec<usize>,
    output_order: Vec<usize>,
}

impl Ports {
    pub(super) fn new(inputs: Vec<Port>, outputs: Vec<Port>) -> Self {
        let order = |ports: &[Port]| {
            let mut order: Vec<usize> = (0..ports.len()).collect();
            order.sort_by_key(|&index| ports[index].name.as_str());
            order
        };
        let (input_order, output_order) = (order(&inputs), order(&outputs));
        Self { inputs, outputs, input_order, output_order }
    }

    /// The index of an input.
    pub(super) fn input(&self, name: &str) -> Result<usize> {
        find(&self.inputs, &self.input_order, name).ok_or_else(|| unknown("input", name, &self.inputs))
    }

    /// The same, where inputs are mostly named in the graph's order.
    pub(super) fn input_near(&self, place: usize, name: &str) -> Result<usize> {
        match self.inputs.get(place) {
            Some(port) if port.name == name => Ok(place),
            _ => self.input(name),
        }
    }

    /// The index of an output.
    pub(super) fn output(&self, name: &str) -> Result<usize> {
        find(&self.outputs, &self.output_order, name).ok_or_else(|| unknown("output", name, &self.outputs))
    }

    /// The first input that has no value and needs one.
    pub(super) fn check_given(&self, is_given: impl Fn(usize) -> bool) -> Result<()> {
        let missing = self.inputs.iter().enumerate().find(|(index, port)| !port.is_optional() && !is_given(*index));
        missing.map_or(Ok(()), |(_, port)| {
            Err(invalid_input(format!("the input {:?} ({}) was not given", port.name, port.kind)))
        })
    }
}

fn find(ports: &[Port], order: &[usize], name: &str) -> Option<usize> {
    let at = order.binary_search_by_key(&name, |&index| ports[index].name.as_str()).ok()?;
    Some(order[at])
}

fn unknown(what: &str, name: &str, ports: &[Port]) -> Error {
    let mut names: Vec<String> =
        ports.iter().take(NAMED).map(|port| format!("{:?} ({})", port.name, port.kind)).collect();
    if ports.len() > NAMED {
        names.push(format!("{} more", ports.len() - NAMED));
    }
    let has = if names.is_empty() { "none".to_owned() } else { names.join(", ") };
    invalid_input(format!("the graph has no {what} {name:?}; it has {has}"))
}

/// Whether a tensor can be a value of an input or output.
pub(super) fn check_tensor(what: &str, port: &Port, dtype: DType, shape: &[usize]) -> Result<()> {
    let declared = match &port.kind {
        ValueType::Optional(inner) => inner,
        kind => kind,
    };
    let ValueType::Tensor { dtype: wanted, dims } = declared else {
        return Err(other_kind(what, port, "a tensor"));
    };
    let fits = |(dim, &size): (&Dim, &usize)| !matches!(dim, Dim::Fixed(fixed) if *fixed != size);
    let wrong = if dtype != *wanted {
        "the type of the elements differs".to_owned()
    } else if let Some(dims) = dims.as_ref().filter(|dims| dims.len() != shape.len()) {
        format!("it has {} dimensions, not {}", shape.len(), dims.len())
    } else if let Some(axis) = dims.iter().flat_map(|dims| dims.iter().zip(shape)).position(|dim| !fits(dim)) {
        format!("dimension {axis} differs")
    } else {
        return Ok(());
    };
    let given: Vec<String> = shape.iter().map(usize::to_string).collect();
    let given = format!("{dtype}[{}]", given.join(", "));
    Err(invalid_input(format!("the {what} {:?} is {}, but {given} was given: {wrong}", port.name, port.kind)))
}

/// The error of a value that is of another kind than its input or output.
pub(super) fn other_kind(what: &str, port: &Port, given: &str) -> Error {
    match port.kind {
        ValueType::Sparse | ValueType::Opaque => {
            let message = format!("the {what} {:?} is {}, which is not supported", port.name, port.kind);
            error(ErrorKind::Unsupported, message)
        }
        _ => invalid_input(format!("the {what} {:?} is {}, but {given} was given", port.name, port.kind)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn port(name: &str, dims: Option<Vec<Dim>>) -> Port {
        let kind = ValueType::Tensor { dtype: DType::F32, dims };
        Port { name: name.to_owned(), kind, has_default: false }
    }

    fn said(result: Result<()>) -> String {
        result.map_or_else(|error| error.to_string(), |()| "fine".to_owned())
    }

    #[test]
    fn names_are_found_whatever_their_order() {
        let ports =
            Ports::new(vec![port("b", None), port("a", None)], (0..10).map(|n| port(&n.to_string(), None)).collect());
        assert_eq!((ports.input("a").unwrap(), ports.input("b").unwrap(), ports.output("7").unwrap()), (1, 0, 7));
        let error = ports.input("c").unwrap_err().to_string();
        assert!(
            error.starts_with("the graph has no input \"c\"; it has \"b\" (float32 of any rank), \"a\""),
            "{error}"
        );
        assert!(ports.output("c").unwrap_err().to_string().contains(", 2 more"));
        let error = said(ports.check_given(|index| index == 0));
        assert!(error.starts_with("the input \"a\" (float32 of any rank) was not given"), "{error}");
    }

    #[test]
    fn what_differs_is_said() {
        let of = port("x", Some(vec![Dim::Dynamic(Some("n".into())), Dim::Fixed(64)]));
        assert_eq!(said(check_tensor("input", &of, DType::F32, &[0, 64])), "fine");
        let cases = [
            (DType::F64, &[1, 64][..], "but float64[1, 64] was given: the type of the elements differs"),
            (DType::F32, &[64], "but float32[64] was given: it has 1 dimensions, not 2"),
            (
                DType::F32,
                &[1, 63],
                "the input \"x\" is float32[n, 64], but float32[1, 63] was given: dimension 1 differs",
            ),
        ];
        for (dtype, shape, wanted) in cases {
            let error = said(check_tensor("input", &of, dtype, shape));
            assert!(error.contains(wanted), "{error}");
        }
        assert_eq!(said(check_tensor("input", &port("y", None), DType::F32, &[1, 2, 3])), "fine");
    }
}
