//! Writes ONNX models: as much of protocol buffers and of `onnx.proto` as small graphs need.

/// A message: its fields, one after another.
#[derive(Clone, Debug, Default)]
pub(crate) struct Message(Vec<u8>);

impl Message {
    pub(crate) fn new() -> Self {
        Self::default()
    }

    /// A field with a number.
    pub(crate) fn int(mut self, field: u32, value: i64) -> Self {
        self.varint(u64::from(field) << 3);
        self.varint(value.cast_unsigned());
        self
    }

    /// A field with a 32-bit float.
    pub(crate) fn float(mut self, field: u32, value: f32) -> Self {
        self.varint(u64::from(field) << 3 | 5);
        self.0.extend(value.to_le_bytes());
        self
    }

    /// A field with bytes.
    pub(crate) fn bytes(mut self, field: u32, value: impl AsRef<[u8]>) -> Self {
        let value = value.as_ref();
        self.varint(u64::from(field) << 3 | 2);
        self.varint(value.len() as u64);
        self.0.extend(value);
        self
    }

    /// A field with a message.
    pub(crate) fn message(self, field: u32, value: &Self) -> Self {
        self.bytes(field, &value.0)
    }

    pub(crate) fn into_bytes(self) -> Vec<u8> {
        self.0
    }

    fn varint(&mut self, mut value: u64) {
        while value >= 0x80 {
            self.0.push(value.to_le_bytes()[0] | 0x80);
            value >>= 7;
        }
        self.0.push(value.to_le_bytes()[0]);
    }
}

/// Types of elements, by ONNX's numbers.
pub(crate) mod element {
    pub(crate) const F32: i64 = 1;
    pub(crate) const U8: i64 = 2;
    pub(crate) const I8: i64 = 3;
    pub(crate) const U16: i64 = 4;
    pub(crate) const I16: i64 = 5;
    pub(crate) const I32: i64 = 6;
    pub(crate) const I64: i64 = 7;
    pub(crate) const STRING: i64 = 8;
    pub(crate) const BOOL: i64 = 9;
    pub(crate) const F16: i64 = 10;
    pub(crate) const F64: i64 = 11;
    pub(crate) const U32: i64 = 12;
    pub(crate) const U64: i64 = 13;
    pub(crate) const BF16: i64 = 16;
}

/// A dimension: of a size, or of a name.
#[derive(Clone, Copy)]
pub(crate) enum Size {
    Fixed(i64),
    Named(&'static str),
}

impl From<i64> for Size {
    fn from(size: i64) -> Self {
        Self::Fixed(size)
    }
}

impl From<&'static str> for Size {
    fn from(name: &'static str) -> Self {
        Self::Named(name)
    }
}

/// The type of a tensor of any rank.
pub(crate) fn tensor_of(element: i64) -> Message {
    Message::new().message(1, &Message::new().int(1, element))
}

/// The type of a tensor.
pub(crate) fn tensor<const N: usize>(element: i64, dims: [impl Into<Size>; N]) -> Message {
    let shape = dims.into_iter().fold(Message::new(), |shape, dim| {
        let dim = match dim.into() {
            Size::Fixed(size) => Message::new().int(1, size),
            Size::Named(name) => Message::new().bytes(2, name),
        };
        shape.message(1, &dim)
    });
    Message::new().message(1, &Message::new().int(1, element).message(2, &shape))
}

/// The type of a sequence.
pub(crate) fn sequence(element: &Message) -> Message {
    Message::new().message(4, &Message::new().message(1, element))
}

/// The type of a map.
pub(crate) fn map(key: i64, value: &Message) -> Message {
    Message::new().message(5, &Message::new().int(1, key).message(2, value))
}

/// The type of an optional value.
pub(crate) fn optional(element: &Message) -> Message {
    Message::new().message(9, &Message::new().message(1, element))
}

/// An attribute of a node.
pub(crate) fn attribute(name: &str) -> Message {
    Message::new().bytes(1, name)
}

pub(crate) fn int(name: &str, value: i64) -> Message {
    attribute(name).int(3, value).int(20, 2)
}

pub(crate) fn subgraph(name: &str, graph: &Message) -> Message {
    attribute(name).message(6, graph).int(20, 5)
}

pub(crate) fn tensor_value(name: &str, tensor: &Message) -> Message {
    attribute(name).message(5, tensor).int(20, 4)
}

pub(crate) fn ints(name: &str, values: &[i64]) -> Message {
    values.iter().fold(attribute(name), |message, &value| message.int(8, value)).int(20, 7)
}

pub(crate) fn floats(name: &str, values: &[f32]) -> Message {
    values.iter().fold(attribute(name), |message, &value| message.float(7, value)).int(20, 6)
}

pub(crate) fn strings(name: &str, values: &[&str]) -> Message {
    values.iter().fold(attribute(name), |message, value| message.bytes(9, value)).int(20, 8)
}

/// A node of ONNX's operators, or of another domain as `domain/operator`.
pub(crate) fn node(operator: &str, inputs: &[&str], outputs: &[&str], attributes: &[Message]) -> Message {
    let (domain, name) = operator.rsplit_once('/').unwrap_or(("", operator));
    let node = inputs.iter().fold(Message::new(), |node, input| node.bytes(1, input));
    let node = outputs.iter().fold(node, |node, output| node.bytes(2, output)).bytes(4, name);
    let node = attributes.iter().fold(node, |node, attribute| node.message(5, attribute));
    if domain.is_empty() { node } else { node.bytes(7, domain) }
}

/// A tensor whose elements are in the model, as bytes.
pub(crate) fn weights(name: &str, element: i64, dims: &[i64], bytes: &[u8]) -> Message {
    described(name, element, dims).bytes(9, bytes)
}

/// A tensor whose elements are in a file.
pub(crate) fn external(name: &str, element: i64, dims: &[i64], entries: &[(&str, &str)]) -> Message {
    let tensor = described(name, element, dims).int(14, 1);
    entries
        .iter()
        .fold(tensor, |tensor, (key, value)| tensor.message(13, &Message::new().bytes(1, key).bytes(2, value)))
}

fn described(name: &str, element: i64, dims: &[i64]) -> Message {
    dims.iter().fold(Message::new(), |tensor, &dim| tensor.int(1, dim)).int(2, element).bytes(8, name)
}

/// A graph.
#[derive(Clone, Default)]
pub(crate) struct GraphOf(Message);

impl GraphOf {
    pub(crate) fn new(name: &str) -> Self {
        Self(Message::new().bytes(2, name))
    }

    pub(crate) fn node(self, node: &Message) -> Self {
        Self(self.0.message(1, node))
    }

    pub(crate) fn weights(self, tensor: &Message) -> Self {
        Self(self.0.message(5, tensor))
    }

    pub(crate) fn input(self, name: &str, kind: &Message) -> Self {
        Self(self.0.message(11, &Message::new().bytes(1, name).message(2, kind)))
    }

    pub(crate) fn output(self, name: &str, kind: &Message) -> Self {
        Self(self.0.message(12, &Message::new().bytes(1, name).message(2, kind)))
    }

    pub(crate) fn from_message(message: Message) -> Self {
        Self(message)
    }

    pub(crate) fn message(&self) -> &Message {
        &self.0
    }

    /// The model of this graph: ONNX's operators of version 17, and those of `ai.onnx.ml` and ONNX Runtime's own.
    pub(crate) fn model(&self) -> Vec<u8> {
        self.fields().into_bytes()
    }

    /// The same, to add fields to.
    pub(crate) fn fields(&self) -> Message {
        let opset = |domain: &str, version| Message::new().bytes(1, domain).int(2, version);
        Message::new()
            .int(1, 8)
            .bytes(2, "infer-tests")
            .message(7, &self.0)
            .message(8, &opset("", 17))
            .message(8, &opset("ai.onnx.ml", 3))
            .message(8, &opset("com.microsoft", 1))
    }
}

/// `y = operator(x)`, both of one type.
pub(crate) fn unary(operator: &str, kind: &Message) -> Vec<u8> {
    GraphOf::new(operator).node(&node(operator, &["x"], &["y"], &[])).input("x", kind).output("y", kind).model()
}

/// `y = x + b` of two numbers each, where `b` is 10 and 20 unless it is given.
pub(crate) fn sum_with_default() -> Vec<u8> {
    let kind = tensor(element::F32, [2_i64]);
    let default: Vec<u8> = [10.0_f32, 20.0].iter().flat_map(|value| value.to_le_bytes()).collect();
    GraphOf::new("default")
        .node(&node("Add", &["x", "b"], &["y"], &[]))
        .weights(&weights("b", element::F32, &[2], &default))
        .input("x", &kind)
        .input("b", &kind)
        .output("y", &kind)
        .model()
}

/// A loop that adds `x` to itself `n` times, to take time.
pub(crate) fn adding() -> Vec<u8> {
    let scalar = [0_i64; 0];
    let vector = tensor(element::F32, [1024]);
    let body = GraphOf::new("body")
        .node(&node("Identity", &["go"], &["goes_on"], &[]))
        .node(&node("Add", &["sum", "x"], &["next"], &[]))
        .input("i", &tensor(element::I64, scalar))
        .input("go", &tensor(element::BOOL, scalar))
        .input("sum", &vector)
        .output("goes_on", &tensor(element::BOOL, scalar))
        .output("next", &vector);
    GraphOf::new("adding")
        .node(&node("Loop", &["n", "", "x"], &["y"], &[subgraph("body", body.message())]))
        .input("n", &tensor(element::I64, scalar))
        .input("x", &vector)
        .output("y", &vector)
        .model()
}
