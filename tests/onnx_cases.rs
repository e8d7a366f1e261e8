//! Every conformance case of the `onnx` package that ONNX Runtime's own Python passes passes here too, with the same outputs to
//! the bit: the cases that lie in the package, and those it generates for each operator. There is no list of them: Python runs them all,
//! judges them as the package does, and says what went in and what came out.

use infer_onnx::{DType, Graph, GraphOptions, Input, LoadOptions, Onnx, Tensor, Value, ValueType, ValueView};
use kit::script;
use serde::Deserialize;
use std::fs;
use test_kit::Folder;

/// Fewer mean that something is wrong with Python, or with what makes the cases.
const LEAST: usize = 1_400;

/// Where bytes lie: the first one, and how many.
type Span = (usize, usize);

/// A line of what the script writes.
#[derive(Deserialize)]
struct Case {
    name: String,
    passed: bool,
    #[serde(default)]
    model: Span,
    /// Names and types, as Python writes them: `seq(tensor(float))`.
    #[serde(default)]
    inputs: Vec<(String, String)>,
    #[serde(default)]
    outputs: Vec<(String, String)>,
    #[serde(default)]
    runs: Vec<Pass>,
}

#[derive(Deserialize)]
struct Pass {
    inputs: Vec<Option<Noted>>,
    outputs: Vec<Option<Noted>>,
}

/// A value that went in or came out.
#[derive(Deserialize)]
#[serde(untagged)]
enum Noted {
    Numbers { shape: Vec<usize>, bytes: Span },
    Strings { shape: Vec<usize>, strings: Vec<String> },
    Sequence { sequence: Vec<Noted> },
}

#[test]
fn what_python_passes_passes_with_the_same_outputs() {
    let folder = Folder::new();
    script::run("onnx_cases.py", [folder.path()], "").unwrap_or_else(|error| panic!("{error}"));
    let bytes = fs::read(folder.path().join("cases.bin")).unwrap();
    let lines = fs::read_to_string(folder.path().join("cases.json")).unwrap();
    let cases: Vec<Case> = lines.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let (passed, failed): (Vec<&Case>, Vec<&Case>) = cases.iter().partition(|case| case.passed);

    let onnx = Onnx::load(&LoadOptions::new()).unwrap_or_else(|error| panic!("{error}"));
    let attempt = |case: &&Case| Some(format!("{}: {}", case.name, case.attempt(&onnx, &bytes).err()?));
    let wrong: Vec<String> = passed.iter().filter_map(attempt).collect();
    println!(
        "{} cases: Python fails {}, and of {} {} are other here",
        cases.len(),
        failed.len(),
        passed.len(),
        wrong.len()
    );
    assert!(passed.len() >= LEAST, "Python passes {} of {}", passed.len(), cases.len());
    assert!(wrong.is_empty(), "{} of {}:\n{}", wrong.len(), passed.len(), wrong.join("\n"));
}

impl Case {
    fn attempt(&self, onnx: &Onnx, bytes: &[u8]) -> Result<(), String> {
        // One thread adds up in one order.
        let options = GraphOptions::new().with_threads(1);
        let mut graph =
            Graph::from_bytes(onnx, span(bytes, self.model), &options).map_err(|error| error.to_string())?;
        self.compare_ports(&graph)?;
        if self.runs.is_empty() || self.outputs.is_empty() {
            return Err("nothing to compare".to_owned());
        }
        for run in &self.runs {
            let inputs = self.inputs.iter().zip(&run.inputs);
            let inputs = inputs.map(|((name, kind), noted)| Ok((name, value(noted.as_ref(), kind, bytes)?)));
            let inputs: Vec<(&String, Value)> = inputs.collect::<Result<_, String>>()?;
            let given = inputs.iter().map(|(name, value)| (name.as_str(), Input::from(value)));
            graph.run(given).map_err(|error| error.to_string())?;
            for ((name, kind), noted) in self.outputs.iter().zip(&run.outputs) {
                let found = graph.outputs().get(name).map_err(|error| error.to_string())?;
                same(found, noted.as_ref(), kind, bytes).map_err(|why| format!("{name}: {why}"))?;
            }
        }
        Ok(())
    }

    /// What the graph says of itself is what Python says.
    fn compare_ports(&self, graph: &Graph) -> Result<(), String> {
        // Weights that could be replaced come after the inputs; Python does not show them.
        for (ports, noted) in [(graph.inputs(), &self.inputs), (graph.declared_outputs(), &self.outputs)] {
            let found: Vec<_> =
                ports.iter().take(noted.len()).map(|port| (port.name().to_owned(), python(port.kind()))).collect();
            if found != *noted {
                return Err(format!("the ports are {found:?}, and {noted:?} in Python"));
            }
        }
        Ok(())
    }
}

fn span(bytes: &[u8], (at, len): Span) -> &[u8] {
    &bytes[at..at + len]
}

/// The value to give.
fn value(noted: Option<&Noted>, kind: &str, bytes: &[u8]) -> Result<Value, String> {
    let tensor = |tensor: infer::Result<Tensor>| tensor.map(Value::Tensor).map_err(|error| error.to_string());
    let kind = kind.strip_prefix("optional(").map_or(kind, inside);
    match noted {
        None => Ok(Value::Nothing),
        Some(Noted::Numbers { shape, bytes: at }) => {
            let dtype = dtype(kind).ok_or_else(|| format!("{kind} is no type of tensors here"))?;
            tensor(Tensor::from_bytes(dtype, shape, span(bytes, *at)))
        }
        Some(Noted::Strings { shape, strings }) => tensor(Tensor::strings(shape, strings.clone())),
        Some(Noted::Sequence { sequence }) => {
            let kind = kind.strip_prefix("seq(").map_or(kind, inside);
            let elements = sequence.iter().map(|element| value(Some(element), kind, bytes));
            elements.collect::<Result<_, String>>().map(Value::Sequence)
        }
    }
}

/// Whether what came out here is what came out there.
fn same(found: ValueView<'_>, noted: Option<&Noted>, kind: &str, bytes: &[u8]) -> Result<(), String> {
    let kind = kind.strip_prefix("optional(").map_or(kind, inside);
    match (found, noted) {
        (ValueView::Nothing, None) => Ok(()),
        (ValueView::Tensor(found), Some(Noted::Numbers { shape, bytes: at })) => {
            let dtype = dtype(kind);
            if (Some(found.dtype()), found.shape()) != (dtype, shape) {
                return Err(format!("{found:?}, and {dtype:?} {shape:?} in Python"));
            }
            match found.bytes() == Some(span(bytes, *at)) {
                true => Ok(()),
                false => Err("other numbers".to_owned()),
            }
        }
        (ValueView::Tensor(found), Some(Noted::Strings { shape, strings })) => {
            let texts = found.to_strings().map_err(|error| error.to_string())?;
            match found.shape() == shape && texts == *strings {
                true => Ok(()),
                false => Err(format!("{texts:?}, and {strings:?} in Python")),
            }
        }
        (ValueView::Sequence(found), Some(Noted::Sequence { sequence })) => {
            let elements = found.iter().collect::<infer::Result<Vec<_>>>().map_err(|error| error.to_string())?;
            if elements.len() != sequence.len() {
                return Err(format!("{} elements, and {} in Python", elements.len(), sequence.len()));
            }
            let kind = kind.strip_prefix("seq(").map_or(kind, inside);
            elements.iter().zip(sequence).try_for_each(|(found, noted)| match found.as_tensor() {
                Some(tensor) => same(ValueView::Tensor(tensor.view()), Some(noted), kind, bytes),
                None => Err(format!("an element is {found:?}")),
            })
        }
        (found, _) => Err(format!("{found:?}, and something else in Python")),
    }
}

/// What stands before the bracket that closes last.
fn inside(kind: &str) -> &str {
    kind.strip_suffix(')').unwrap_or(kind)
}

/// The type of a tensor's elements, by its name in Python.
fn dtype(kind: &str) -> Option<DType> {
    TYPES.iter().find(|(_, name)| kind.strip_prefix("tensor(").map(inside) == Some(name)).map(|(dtype, _)| *dtype)
}

/// A type as Python writes it.
fn python(kind: &ValueType) -> String {
    let name = |dtype: &DType| TYPES.iter().find(|(known, _)| known == dtype).map_or("unknown", |(_, name)| name);
    match kind {
        ValueType::Tensor { dtype, .. } => format!("tensor({})", name(dtype)),
        ValueType::Sequence(element) => format!("seq({})", python(element)),
        ValueType::Map { key, value, .. } => format!("map({},{})", name(key), python(value)),
        ValueType::Optional(inner) => format!("optional({})", python(inner)),
        other => format!("{other:?}"),
    }
}

const TYPES: [(DType, &str); 26] = [
    (DType::F32, "float"),
    (DType::F64, "double"),
    (DType::F16, "float16"),
    (DType::Bf16, "bfloat16"),
    (DType::I8, "int8"),
    (DType::U8, "uint8"),
    (DType::I16, "int16"),
    (DType::U16, "uint16"),
    (DType::I32, "int32"),
    (DType::U32, "uint32"),
    (DType::I64, "int64"),
    (DType::U64, "uint64"),
    (DType::Bool, "bool"),
    (DType::String, "string"),
    (DType::Complex64, "complex64"),
    (DType::Complex128, "complex128"),
    (DType::F8E4M3Fn, "float8e4m3fn"),
    (DType::F8E4M3FnUz, "float8e4m3fnuz"),
    (DType::F8E5M2, "float8e5m2"),
    (DType::F8E5M2FnUz, "float8e5m2fnuz"),
    (DType::F8E8M0, "float8e8m0"),
    (DType::U4, "uint4"),
    (DType::I4, "int4"),
    (DType::F4E2M1, "float4e2m1"),
    (DType::U2, "uint2"),
    (DType::I2, "int2"),
];
