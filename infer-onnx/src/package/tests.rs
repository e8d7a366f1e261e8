use super::*;
use crate::DType;
use test_kit::Folder;

fn varint(mut value: u64) -> Vec<u8> {
    let mut bytes = Vec::new();
    while value >= 0x80 {
        bytes.push(value as u8 | 0x80);
        value >>= 7;
    }
    bytes.push(value as u8);
    bytes
}

fn number(field: u64, value: u64) -> Vec<u8> {
    [varint(field << 3), varint(value)].concat()
}

fn bytes(field: u64, value: impl AsRef<[u8]>) -> Vec<u8> {
    [varint(field << 3 | 2), varint(value.as_ref().len() as u64), value.as_ref().to_vec()].concat()
}

/// An input or output: a tensor of f32 with these dimensions, those below 0 by the name `batch`.
fn tensor_port(name: &str, dims: &[i64]) -> Vec<u8> {
    let dims: Vec<u8> = dims
        .iter()
        .flat_map(|&dim| bytes(1, if dim < 0 { bytes(2, "batch") } else { number(1, dim as u64) }))
        .collect();
    let tensor = [number(1, 1), bytes(2, dims)].concat();
    [bytes(1, name), bytes(2, bytes(1, tensor))].concat()
}

fn weight(name: &str, dtype: u64, dims: &[u64], rest: &[u8]) -> Vec<u8> {
    let dims: Vec<u8> = dims.iter().flat_map(|&dim| number(1, dim)).collect();
    [dims, number(2, dtype), bytes(8, name), rest.to_vec()].concat()
}

fn node(name: &str, domain: &str, inputs: &[&str], integers: &[(&str, u64)]) -> Vec<u8> {
    let inputs: Vec<u8> = inputs.iter().flat_map(|input| bytes(1, input)).collect();
    let attributes: Vec<u8> =
        integers.iter().flat_map(|(name, value)| bytes(5, [bytes(1, name), number(3, *value)].concat())).collect();
    [inputs, bytes(4, name), bytes(7, domain), attributes].concat()
}

/// A model with this in its graph, beside an input, an output and a node.
fn model(graph: &[Vec<u8>]) -> Vec<u8> {
    let port = |field, name, dims: &[i64]| bytes(field, tensor_port(name, dims));
    let usual =
        [bytes(2, "net"), port(11, "x", &[-1, 64]), port(12, "y", &[-1, 64]), bytes(1, node("Relu", "", &["x"], &[]))];
    let graph = [usual.concat(), graph.concat()].concat();
    let metadata = [bytes(1, "author"), bytes(2, "me")].concat();
    let opset = [bytes(1, ""), number(2, 17)].concat();
    [number(1, 9), bytes(2, "maker"), bytes(3, "2"), bytes(7, graph), bytes(8, opset), bytes(14, metadata)].concat()
}

#[test]
fn contents_are_ports_operators_and_weights() {
    let folder = Folder::new();
    let packed = node("MatMulNBits", "com.microsoft", &["y", "q", "scales"], &[("K", 64), ("N", 32), ("bits", 4)]);
    let graph = [
        bytes(1, packed),
        bytes(5, weight("w", 1, &[4, 8], &bytes(9, [0; 128]))),
        bytes(5, weight("shape", 7, &[2], &bytes(9, [0; 16]))),
        bytes(5, weight("q", 2, &[32, 2, 16], &bytes(9, vec![0; 1024]))),
        bytes(5, weight("scales", 1, &[64], &bytes(9, [0; 256]))),
        bytes(5, [bytes(1, [5, 2]), number(2, 10), bytes(8, "dims in one field")].concat()),
        bytes(11, tensor_port("w", &[4, 8])),
    ];
    let package = Package::read(folder.file("m.onnx", &model(&graph))).unwrap();
    let contents = package.contents();
    let ports: Vec<String> = contents
        .inputs
        .iter()
        .chain(&contents.outputs)
        .map(|port| format!("{}: {}", port.name(), port.kind()))
        .collect();
    assert_eq!(ports, ["x: float32[batch, 64]", "y: float32[batch, 64]"]);
    assert_eq!(contents.operators.get("com.microsoft.MatMulNBits"), Some(&1));
    assert_eq!(contents.operators.get("Relu"), Some(&1));
    // Weights of four bits count one by one; how they are scaled, and shapes, are no parameters.
    assert_eq!(contents.parameters(), 32 + 64 * 32 + 10);
    assert_eq!(contents.bytes(), 128 + 16 + 1024 + 256 + 20);
    assert_eq!(contents.main_dtype(), Some(DType::U4));
    assert_eq!((package.info().parameters, package.info().bytes), (contents.parameters(), contents.bytes()));
    assert_eq!(package.files(), [(package.graph().to_owned(), std::fs::metadata(package.graph()).unwrap().len())]);
}

#[test]
fn a_package_is_a_folder_or_a_graph_with_files_around_it() {
    let form = |package: &Package| package.form().as_str();
    let folder = Folder::new();
    let path = folder.file("m.onnx", &model(&[]));
    let package = Package::read(&path).unwrap();
    assert_eq!(
        (form(&package), package.graph(), package.info().description.as_str()),
        ("graph", path.as_path(), "net")
    );
    // The one graph of a folder, by any name; not one of two.
    assert_eq!(Package::read(folder.path()).unwrap().graph(), path);
    folder.file("n.onnx", &model(&[]));
    let said = Package::read(folder.path()).unwrap_err().to_string();
    assert!(said.contains("2 graphs") && said.contains("m.onnx"), "{said}");

    let folder = Folder::new();
    let said = Package::read(folder.path()).unwrap_err().to_string();
    assert!(said.contains("no ONNX model in it"), "{said}");
    let tokens = bytes(11, tensor_port("input_ids", &[-1, -1]));
    let past = bytes(11, tensor_port("past_key_values.0.key", &[-1, 2, -1, 8]));
    folder.file("onnx/model.onnx", &model(std::slice::from_ref(&tokens)));
    folder.file("config.json", br#"{"model_type": "bert", "hidden_size": 64, "num_hidden_layers": 2, "num_attention_heads": 4, "vocab_size": 99}"#);
    let package = Package::read(folder.path()).unwrap();
    let info = package.info();
    assert_eq!((form(&package), info.architecture.as_str(), package.folder()), ("encoder", "bert", folder.path()));
    assert_eq!((info.vocab, info.layers, info.width, info.heads, info.kv_heads), (99, 2, 64, 4, 4));
    // From the graph, the settings around its folder are found too.
    assert_eq!(Package::read(folder.path().join("onnx/model.onnx")).unwrap().folder(), folder.path());
    assert!(package.tokenizer().unwrap_err().to_string().contains("no tokenizer.json"));
    folder.file("onnx/model.onnx", &model(&[tokens.clone(), past]));
    assert_eq!(form(&Package::read(folder.path()).unwrap()), "optimum");
    folder.file("onnx/model.onnx", &model(&[tokens]));
    folder.file("config.json", br#"{"architectures": ["LlamaForCausalLM"]}"#);
    assert_eq!(form(&Package::read(folder.path()).unwrap()), "optimum");
}

#[test]
fn a_genai_folder_names_its_graph_and_nothing_outside() {
    let folder = Folder::new();
    let config = |name: &str| {
        format!(
            r#"{{"model": {{"type": "llama", "context_length": 32, "decoder": {{"filename": "{name}", "head_size": 8}}}}}}"#
        )
    };
    let path = folder.file("d.onnx", &model(&[]));
    folder.file("genai_config.json", config("d.onnx").as_bytes());
    for place in [folder.path(), &path, &folder.path().join("genai_config.json")] {
        let package = Package::read(place).unwrap();
        assert_eq!((package.form().as_str(), package.graph(), package.info().context), ("genai", path.as_path(), 32));
    }
    for (outside, kind) in
        [("../d.onnx", ErrorKind::InvalidModel), ("/d.onnx", ErrorKind::InvalidModel), ("x.onnx", ErrorKind::Io)]
    {
        folder.file("genai_config.json", config(outside).as_bytes());
        let error = Package::read(folder.path()).unwrap_err();
        assert!(error.kind() == kind && error.to_string().contains(outside), "{error}");
    }
    folder.file("genai_config.json", b"{\"model\": 3}");
    assert!(Package::read(folder.path()).unwrap_err().to_string().contains("genai_config.json"));
}
